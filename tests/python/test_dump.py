"""ptwm-dump: that its JSON says what `describe` says, its man page, and the README's lines about it and about C.

It is PTWM_DUMP if the environment has that, else it is compiled.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import weights
from real_model import real_model  # noqa: F401  (a fixture)

import ptwm
import ptwm.numpy
from ptwm.chains import Chain

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "ptwm-dump"
README = (ROOT / "README.md").read_text(encoding="utf-8") if (ROOT / "README.md").is_file() else ""

if not TOOL.is_dir():
    pytest.skip("this is no checkout: tools/ptwm-dump is missing", allow_module_level=True)
if os.environ.get("PTWM_TEST_SANITIZED"):
    pytest.skip("the C suite runs ptwm-dump with the sanitizers", allow_module_level=True)
COMPILER = shutil.which("cc")


def run(*command, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, **options)


@pytest.fixture(scope="session")
def objects(tmp_path_factory):
    """The library, compiled without zstd and without optimisation."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    directory = tmp_path_factory.mktemp("objects")
    done = run(COMPILER, "-std=c99", "-c", *(ROOT / "libptwm").glob("*.c"), cwd=directory)
    assert done.returncode == 0, done.stderr
    return sorted(directory.glob("*.o"))


@pytest.fixture(scope="session")
def dump(request, tmp_path_factory):
    """The path of ptwm-dump."""
    given = os.environ.get("PTWM_DUMP")
    if given:
        return Path(given)
    path = tmp_path_factory.mktemp("dump") / "ptwm-dump"
    objects = request.getfixturevalue("objects")
    command = (
        COMPILER,
        "-std=c99",
        "-I",
        ROOT / "libptwm",
        *TOOL.glob("*.c"),
        *objects,
        "-o",
        path,
        "-lpthread",
        "-lm",
    )
    done = run(*command)
    assert done.returncode == 0, done.stderr
    return path


def dump_json(dump, path, *options, status=0):
    done = run(dump, "-j", *options, path)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


def describe_segment(tail):
    """What `describe` says of a segment, from ptwm-dump's JSON of it."""
    planes = []
    for records in zip(*(chunk["planes"] for chunk in tail["chunks"]), strict=True):
        planes.append(
            {
                "kind": records[0]["kind"],
                "raw_nbytes": sum(record["raw_nbytes"] for record in records),
                "stored_nbytes": sum(record["stored_nbytes"] for record in records),
                "codecs": dict(Counter(record["codec"] for record in records)),
            }
        )
    model = tail.get("model")
    return {
        "chain": repr(Chain.from_bytes(bytes.fromhex(tail["chain_bytes"]))),
        "chunks": tail["n_chunks"],
        "chunk_nbytes": tail["chunk_nbytes"],
        "planes": planes,
        "model": model and {"unit": model["unit"], "columns": model["columns"], "sets": len(model["sets"])},
    }


def only_keys_of(expected, found):
    """`found` without what `expected` lacks, at all depths."""
    if isinstance(expected, dict):
        return {key: only_keys_of(value, found[key]) for key, value in expected.items()}
    if isinstance(expected, list):
        return [only_keys_of(*pair) for pair in zip(expected, found, strict=True)]
    return found


def check_agreement(dump, path, *checks):
    found = dump_json(dump, path, "-a", *checks)
    assert found["problems"] == []
    with ptwm.TensorIndex(path) as index:
        assert [tensor["name"] for tensor in found["tensors"]] == index.names()
        for tensor in found["tensors"]:
            described = index.describe(tensor["name"])
            for key in ("dtype", "shape", "nbytes", "segment"):
                assert described[key] == tensor[key], (tensor["name"], key)
            assert described["hash"] == (None if tensor["hash"] is None else int(tensor["hash"], 16))
            if tensor["segment"] is None:
                continue
            assert described["segment_offset"] == tensor["segment_offset"]
            expected = describe_segment(found["segments"][tensor["segment"]]["tail"])
            assert only_keys_of(expected, described) == expected
    return found


def test_json_says_what_describe_says(dump, saved):
    found = check_agreement(dump, saved, "-c")
    assert "nul\0inside" in [tensor["name"] for tensor in found["tensors"]]


def test_json_of_column_shifts_with_phases(dump, tmp_path):
    scales = 2.0 ** (np.random.default_rng(0).integers(0, 5, 512) / 2)
    path = tmp_path / "model.ptwm"
    ptwm.numpy.save_file({"x": (weights((700, 512)) * scales).astype(ml_dtypes.bfloat16)}, path)
    model = check_agreement(dump, path, "-c")["segments"][0]["tail"]["model"]
    assert model["columns"] == len(model["shifts"]) == len(model["phases"]) == 512
    steps = 2 * np.array(model["shifts"]) // 2 + np.array(model["phases"])  # two symbols are an octave
    expected = np.round(2 * np.log2(scales)).astype(int)
    assert np.mean(np.diff(steps) == np.diff(expected)) > 0.95


def test_json_of_a_real_model(dump, real_model, tmp_path):
    from ptwm.cli import main

    path = tmp_path / "model.ptwm"
    assert main(["compress", str(real_model), "-o", str(path)]) == 0
    found = check_agreement(dump, path)  # its integers are stored by zstd, without which "-c" says that it cannot check
    assert len(found["tensors"]) > 50


def test_entropy_is_near_what_is_stored(dump, tmp_path):
    path = tmp_path / "model.ptwm"
    values = np.random.default_rng(0).geometric(0.3, 100_000).astype(np.uint8)
    ptwm.numpy.save_file({"x": values}, path)
    counts = np.bincount(values) / values.size
    expected = -np.sum(counts[counts > 0] * np.log2(counts[counts > 0])) * values.size / 8
    (plane,) = dump_json(dump, path, "-a", "-e")["segments"][0]["tail"]["chunks"][0]["planes"]
    assert plane["order0_nbytes"] == pytest.approx(expected, abs=0.1)
    assert expected < plane["stored_nbytes"] < 1.01 * expected + 100


def test_damage_is_named_with_its_place(dump, saved):
    data = bytearray(saved.read_bytes())
    plane = dump_json(dump, saved, "-a")["segments"][0]["tail"]["chunks"][0]["planes"][0]
    data[plane["offset"]] ^= 1
    saved.write_bytes(data)
    problems = dump_json(dump, saved, "-c", status=1)["problems"]
    assert {(p["offset"], p["kind"]) for p in problems} == {(plane["offset"], "checksum mismatch")}
    assert {p["found_by"] for p in problems} == {"ptwm-dump", "libptwm"}


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals")
def test_colours_are_for_terminals(dump, saved):
    def output(**variables):
        primary, secondary = os.openpty()
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "", **variables}
        process = subprocess.Popen([dump, "-x", "header", saved], stdout=secondary, env=environment)
        os.close(secondary)
        text = b""
        try:
            while block := os.read(primary, 4096):
                text += block
        except OSError:  # how Linux tells the end
            pass
        os.close(primary)
        assert process.wait() == 0
        return text

    assert b"\x1b[" in output()
    assert b"\x1b[" not in output(NO_COLOR="1")
    assert b"\x1b[" not in output(TERM="dumb")
    assert "\x1b" not in run(dump, "-x", "header", saved).stdout


def test_man_page_names_every_option(dump):
    page = (TOOL / "ptwm-dump.1").read_text()
    for short, name in re.findall(r"^  -(\w), --([\w-]+)", run(dump, "--help").stdout, re.MULTILINE):
        assert f".It Fl {short} " in page and f"Fl \\-{name}" in page
    if shutil.which("man") is None:
        pytest.skip("there is no man")
    done = run(
        "man", "--warnings", "-l", TOOL / "ptwm-dump.1", env={**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}
    )
    assert done.returncode == 0 and done.stderr == ""
    assert "ptwm-dump [-acefj]" in done.stdout


def test_readme_commands(dump, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ptwm.numpy.save_file({"lm_head.weight": weights((300, 64))}, "model.ptwm")
    commands = re.findall(r"^    ptwm-dump (.*?)(?: *#.*)?$", README, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        done = run(dump, *shlex.split(command))
        assert done.returncode == 0 and done.stdout, command


def test_readme_c(objects, tmp_path, monkeypatch):
    """The block is the body of a function; what it leaves open is filled in."""
    monkeypatch.chdir(tmp_path)
    head = weights((300, 64))
    ptwm.numpy.save_file({"head": head}, "model.ptwm")
    (block,) = re.findall(r"^```c\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert block.count("    ...\n") == 1
    body = block.replace("    ...\n", "    if (status == PTWM_OK) fwrite(weights, 1, info.nbytes, stdout);\n")
    Path("readme.c").write_text(
        "#include <ptwm.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        'static int fail(const char *what, const char *detail) { return printf("%s: %s", what, detail); }\n'
        f"int main(void)\n{{\n{body}return 0;\n}}\n"
    )
    flags = ("-std=c99", "-Wall", "-Wextra", "-Werror")
    done = run(COMPILER, *flags, "-I", ROOT / "libptwm", "readme.c", *objects, "-o", "readme", "-lpthread")
    assert done.returncode == 0, done.stderr
    assert subprocess.run(["./readme"], capture_output=True, check=True).stdout == head.tobytes()
