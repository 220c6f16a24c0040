"""`ptwm info` of many tensors, and the shells' completion."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import errors_on_a_terminal

from ptwm.cli import main
from ptwm.cli.groups import group_tensors
from ptwm.sharding import Writer

PTWM = [sys.executable, "-m", "ptwm"]


def large_model(path):
    """A thousand tensors, named as those of a mixture of experts are."""
    with Writer(path, metadata={"format": "pt"}) as writer:
        writer.add("model.embed_tokens.weight", bytes(64000), "BF16", (1000, 32))
        for layer in range(22):
            prefix = f"model.layers.{layer}"
            writer.add(f"{prefix}.input_layernorm.weight", bytes(64), "BF16", (32,))
            for kind in "qkvo":
                writer.add(f"{prefix}.self_attn.{kind}_proj.weight", bytes(2048), "BF16", (32, 32))
            for expert in range(13):
                for kind in ("gate", "up", "down"):
                    shape = (16, 32) if kind != "down" else (32, 16)
                    writer.add(f"{prefix}.mlp.experts.{expert}.{kind}_proj.weight", bytes(1024), "BF16", shape)
        writer.add("lm_head.weight", bytes(128000), "F32", (1000, 32))
        writer.add("model.layers.21.odd.0.weight", bytes(4), "F32", (1,))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "model.ptwm"
    large_model(path)
    return path


def test_a_thousand_tensors_fit_on_a_screen(large, capsys):
    assert main(["info", str(large)]) == 0
    output = capsys.readouterr().out
    lines = output.splitlines()
    assert "971 tensors" in lines[0] and len(lines) < 40 and max(map(len, lines)) <= 110
    assert re.search(r"^model\.layers\.\[0-21\]\.self_attn\.q_proj\.weight +22 +BF16 +32 x 32 +45\.1 kB ", output, re.M)
    assert re.search(
        r"^model\.layers\.\[0-21\]\.mlp\.experts\.\[0-12\]\.up_proj\.weight +286 +BF16 +16 x 32 ", output, re.M
    )
    assert re.search(r"^model\.layers\.21\.odd\.0\.weight +1 +F32 +1 ", output, re.M)
    assert re.search(r"^BF16 +969 ", output, re.M)  # the totals by type
    assert "info FILE NAME" in lines[-1]


def test_from_the_groups_to_the_tensor(large, capsys):
    assert main(["info", str(large), "-a"]) == 0
    assert len(re.findall(r"^model\.layers\.", capsys.readouterr().out, re.M)) == 969
    assert main(["info", str(large), "model.layers.3.*_proj.weight", "lm_head.weight"]) == 0
    output = capsys.readouterr().out
    assert len(re.findall(r"^model\.layers\.3\.", output, re.M)) == 4 + 39 and "lm_head.weight" in output
    assert main(["info", "-v", str(large), "model.layers.3.mlp.experts.5.up_proj.weight"]) == 0
    output = capsys.readouterr().out
    assert len(re.findall(r"^model\.", output, re.M)) == 1
    assert main(["info", "--json", str(large), "lm_head.weight"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [tensor["name"] for tensor in report["tensors"]] == ["lm_head.weight"]
    assert report["n_tensors"] == 971
    assert main(["info", str(large), "lm_haed.weight"]) == 1
    assert "did you mean 'lm_head.weight'?" in capsys.readouterr().err
    assert main(["info", str(large), "nothing.*"]) == 1


def test_few_tensors_are_not_grouped(tmp_path, capsys):
    with Writer(tmp_path / "m.ptwm") as writer:
        for n in range(30):
            writer.add(f"h.{n}.bias", bytes(8), "F32", (2,))
    assert main(["info", str(tmp_path / "m.ptwm")]) == 0
    assert capsys.readouterr().out.count("\nh.") == 30


@pytest.mark.parametrize(
    "names, patterns",
    [
        (["a.0", "a.1", "a.2"], ["a.[0-2]"]),
        (["a.0", "a.5"], ["a.[0,5]"]),
        ([f"a.{n}" for n in (0, 2, 4, 6, 8)], ["a.[0..8]"]),
        (["a.7"], ["a.7"]),
        (["a.b", "a.c"], ["a.b", "a.c"]),
        (["x1.w", "x2.w"], ["x1.w", "x2.w"]),  # part of a word, not a number of its own
        (["0.w", "1.w", "w.0", "w.1"], ["[0-1].w", "w.[0-1]"]),
        (["b.0.c.0", "b.0.c.1", "b.1.c.0", "b.1.c.1"], ["b.[0-1].c.[0-1]"]),
        (["t/0/a", "t/1/a", "t[0]", "t[1]"], ["t/[0-1]/a", "t[[0-1]]"]),
        ([""], [""]),
        (["#.0", "#.#"], ["#.0", "#.#"]),
    ],
)
def test_patterns(names, patterns):
    tensors = [
        {"name": name, "dtype": "F32", "shape": [2], "raw_nbytes": 8, "stored_nbytes": 4, "ratio": 0.5}
        for name in names
    ]
    groups = group_tensors(tensors)
    assert [group.pattern for group in groups] == patterns
    assert sum(group.raw_nbytes for group in groups) == 8 * len(names)


def test_other_shapes_are_other_groups():
    tensors = [
        {"name": f"l.{n}", "dtype": dtype, "shape": shape, "raw_nbytes": 8, "stored_nbytes": 4, "ratio": 0.5}
        for n, (dtype, shape) in enumerate([("F32", [2]), ("F32", [2]), ("F16", [2]), ("F32", [1, 2]), (None, None)])
    ]
    assert [group.pattern for group in group_tensors(tensors)] == ["l.[0-1]", "l.2", "l.3", "l.4"]


# ---------------------------------------------------------------------------------------------------------- completion


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path):
    pytest.importorskip("shtab", reason="shtab cannot be imported")
    script = subprocess.run([*PTWM, "completion", "bash"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "ptwm.bash").write_text(script)
    for name in ("model.safetensors", "other.txt"):
        (tmp_path / name).touch()

    def complete(*words):
        program = (
            "source ./ptwm.bash\n"
            f"COMP_WORDS=({' '.join(words)}) COMP_CWORD={len(words) - 1} COMP_LINE='{' '.join(words)}' "
            "COMP_POINT=${#COMP_LINE}\n"
            '_shtab_ptwm; printf "%s\\n" "${COMPREPLY[@]}"\n'
        )
        run = subprocess.run(["bash", "-c", program], capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        return set(run.stdout.split())

    assert complete("ptwm", "comp") == {"compress", "completion"}
    assert {"--max-shard-size", "--method", "--dry-run", "--remove-source"} <= complete("ptwm", "compress", "--")
    assert complete("ptwm", "compress", "--method", "mi") == {"microscale"}
    assert "model.safetensors" in complete("ptwm", "compress", "mod")


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_scripts_name_the_commands(shell, capsys):
    pytest.importorskip("shtab", reason="shtab cannot be imported")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("compress", "decompress", "report", "verify", "threads"))


def test_completion_without_shtab(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == "ptwm: completion needs the shtab package: pip install shtab\n"


def test_a_directorys_progress_bar(tmp_path):
    if os.name != "posix":
        pytest.skip("needs POSIX terminals")
    import numpy as np
    import safetensors.numpy

    (tmp_path / "hub").mkdir()
    rng = np.random.default_rng(0)
    safetensors.numpy.save_file({"x": rng.standard_normal((2000, 2000))}, tmp_path / "hub" / "model.safetensors")
    status, seen = errors_on_a_terminal([*PTWM, "compress", tmp_path / "hub"], columns=100)
    # Name, part, sizes, time left and rate.
    assert status == 0
    assert re.search(rb"model\.ptwm: +\d+%.*32\.0M.*B/s", seen), seen
