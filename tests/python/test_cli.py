"""The `ptwm` command: results, exit statuses, and that a failure leaves one line and no files."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from conftest import errors_on_a_terminal

import ptwm
from ptwm.cli import main, units
from ptwm.random_access import TensorIndex
from ptwm.random_access.file import FileIndex
from ptwm.sharding import Writer

PTWM = [sys.executable, "-m", "ptwm"]
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and terminals")


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        "layer.weight": rng.standard_normal((256, 300)).astype("<f4"),
        "layer.bias": np.zeros(300, "<f4"),
        "ids": np.arange(1000, dtype="<i8").reshape(10, 100),
        "empty": np.zeros((0, 7), "<f4"),
        "scalar": np.array(3.5, "<f4"),
    }


@pytest.fixture
def model(tmp_path: Path, arrays: dict[str, np.ndarray]) -> Path:
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(arrays, path, {"format": "np"})
    return path


@pytest.fixture
def packed(model: Path) -> Path:
    path = model.with_suffix(".ptwm")
    assert main(["compress", str(model)]) == 0
    return path


@pytest.fixture
def fails(tmp_path: Path, capsys) -> Callable[..., str]:
    """Run a command that must fail with status 1, one line on stderr and no change to any file; returns the line."""

    def run(*args: object) -> str:
        capsys.readouterr()
        before = snapshot(tmp_path)
        assert main([str(arg) for arg in args]) == 1
        output = capsys.readouterr()
        assert snapshot(tmp_path) == before
        (line,) = output.err.splitlines()
        assert output.err.endswith("\n") and line.startswith("ptwm: ") and line.isprintable()
        return line.removeprefix("ptwm: ")

    return run


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def run_process(*args: object, **options: object) -> subprocess.CompletedProcess:
    return subprocess.run([*PTWM, *map(str, args)], capture_output=True, timeout=120, **options)


# ------------------------------------------------------------------------------------------ compress and decompress


def test_there_and_back(model: Path, tmp_path: Path, capsys) -> None:
    original = model.read_bytes()
    assert main(["compress", str(model)]) == 0
    packed = tmp_path / "model.ptwm"
    assert 0 < packed.stat().st_size < len(original)
    output = capsys.readouterr()
    assert output.err == "" and output.out.startswith(f"{packed}: ") and output.out.count("\n") == 1
    model.unlink()
    assert main(["decompress", str(packed)]) == 0
    assert model.read_bytes() == original
    assert sorted(os.listdir(tmp_path)) == ["model.ptwm", "model.safetensors"]


def test_an_explicit_file(model: Path, tmp_path: Path) -> None:
    assert main(["compress", str(model), "-o", str(tmp_path / "x")]) == 0
    assert main(["decompress", str(tmp_path / "x"), "-o", str(tmp_path / "y")]) == 0
    assert (tmp_path / "y").read_bytes() == model.read_bytes()


def test_several_sources_into_a_directory(model: Path, tmp_path: Path) -> None:
    other, target = tmp_path / "other.safetensors", tmp_path / "out"
    safetensors.numpy.save_file({"a": np.ones(3)}, other)
    target.mkdir()
    assert main(["compress", str(model), str(other), "-o", str(target)]) == 0
    assert sorted(os.listdir(target)) == ["model.ptwm", "other.ptwm"]
    assert main(["decompress", str(target / "model.ptwm"), str(target / "other.ptwm")]) == 0
    assert (target / "other.safetensors").read_bytes() == other.read_bytes()
    assert (target / "model.safetensors").read_bytes() == model.read_bytes()


def test_a_relative_path_without_a_directory(model: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compress", "model.safetensors", "--verify"]) == 0
    assert main(["decompress", "model.ptwm", "-f"]) == 0
    assert sorted(os.listdir(tmp_path)) == ["model.ptwm", "model.safetensors"]


@pytest.mark.parametrize("method", ["huffman", "zstd", "microscale", "rans", "identity"])
def test_every_method(method: str, model: Path, tmp_path: Path) -> None:
    assert main(["compress", str(model), "--method", method, "--verify", "--threads", "2", "--chunk", "64KiB"]) == 0
    assert main(["verify", str(tmp_path / "model.ptwm")]) == 0


def test_identity_is_larger_than_the_default(model: Path, tmp_path: Path) -> None:
    for method in ("identity", "microscale"):
        assert main(["compress", str(model), "-o", str(tmp_path / method), "--method", method]) == 0
    assert (tmp_path / "microscale").stat().st_size < 0.95 * (tmp_path / "identity").stat().st_size


def test_the_result_does_not_depend_on_the_thread_count(model: Path, tmp_path: Path) -> None:
    for threads in "123":
        assert main(["compress", str(model), "-o", str(tmp_path / threads), "--threads", threads, "--chunk", "4K"]) == 0
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes() == (tmp_path / "3").read_bytes()


def test_an_existing_target_needs_force(model: Path, packed: Path, fails) -> None:
    assert fails("compress", model) == f"{packed}: already exists; -f replaces it"
    assert fails("decompress", packed) == f"{model}: already exists; -f replaces it"
    packed.write_bytes(b"old")
    assert main(["compress", "-f", str(model)]) == 0
    assert main(["verify", str(packed)]) == 0


def test_nothing_is_done_when_one_target_exists(model: Path, packed: Path, tmp_path: Path, fails) -> None:
    other = tmp_path / "a.safetensors"
    safetensors.numpy.save_file({}, other)
    fails("compress", other, model)


def test_a_source_is_never_its_own_target(model: Path, packed: Path, tmp_path: Path, fails) -> None:
    assert "both the source and the target" in fails("compress", model, "-f", "-o", model)
    os.link(packed, tmp_path / "link")
    assert "both the source and the target" in fails("decompress", packed, "-f", "-o", tmp_path / "link")


def test_sources_are_removed_after_verifying(model: Path, tmp_path: Path, monkeypatch, fails, capsys) -> None:
    original = model.read_bytes()
    assert main(["compress", str(model), "--remove-source"]) == 0
    assert os.listdir(tmp_path) == ["model.ptwm"]
    assert "verified" in capsys.readouterr().out
    assert main(["decompress", str(tmp_path / "model.ptwm"), "--remove-source"]) == 0
    assert os.listdir(tmp_path) == ["model.safetensors"] and model.read_bytes() == original
    # What was written is not what was asked for.
    monkeypatch.setattr("ptwm.conversion.files.restores", lambda *args: False)
    assert "nothing was written" in fails("compress", model, "--remove-source")
    monkeypatch.undo()
    # Somebody changes the source while it is compressed.
    finish = Writer.finish
    monkeypatch.setattr(Writer, "finish", lambda self: (finish(self), os.utime(model))[0])
    assert main(["compress", str(model), "--remove-source"]) == 1
    assert "changed meanwhile" in capsys.readouterr().err and model.exists()


def test_a_dry_run_does_nothing(model: Path, tmp_path: Path, capsys) -> None:
    assert main(["compress", "-n", str(model)]) == 0
    assert capsys.readouterr().out == f"would compress {model} to {tmp_path / 'model.ptwm'}\n"
    assert os.listdir(tmp_path) == ["model.safetensors"]
    assert main(["compress", str(model)]) == 0
    model.unlink()
    capsys.readouterr()
    assert main(["decompress", "--dry-run", str(tmp_path / "model.ptwm")]) == 0
    assert capsys.readouterr().out == f"would restore {model} from {tmp_path / 'model.ptwm'}\n"
    assert os.listdir(tmp_path) == ["model.ptwm"]


def test_results_as_json(model: Path, tmp_path: Path, capsys) -> None:
    nbytes = model.stat().st_size
    assert main(["compress", "--json", str(model)]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["source"] == str(model) and report["target"] == str(tmp_path / "model.ptwm")
    assert report["raw_nbytes"] == nbytes
    assert report["stored_nbytes"] == (tmp_path / "model.ptwm").stat().st_size < nbytes
    assert main(["decompress", "--json", "-f", str(tmp_path / "model.ptwm")]) == 0
    assert json.loads(capsys.readouterr().out)[0]["raw_nbytes"] == nbytes


def test_two_sources_never_share_a_target(model: Path, tmp_path: Path, fails) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "model.safetensors").write_bytes(model.read_bytes())
    (tmp_path / "out").mkdir()
    assert "result of both" in fails("compress", model, tmp_path / "sub" / "model.safetensors", "-o", tmp_path / "out")
    assert "result of both" in fails("compress", model, model)


@pytest.mark.parametrize("target", ["missing/x.ptwm", "missing/", "model.safetensors/x"])
def test_a_target_without_a_directory(target: str, model: Path, tmp_path: Path, fails) -> None:
    line = fails("compress", model, "-o", f"{tmp_path}/{target}")
    assert "director" in line and str(tmp_path) in line


def test_several_sources_need_a_directory(model: Path, tmp_path: Path, fails) -> None:
    assert "no such directory" in fails("compress", model, model, "-o", tmp_path / "x")
    (tmp_path / "x").touch()
    assert "not a directory" in fails("compress", model, model, "-o", tmp_path / "x")


@posix
def test_a_target_that_is_a_device(model: Path, packed: Path, fails) -> None:
    assert "not a regular file" in fails("compress", model, "-f", "-o", os.devnull)
    assert "not a regular file" in fails("decompress", packed, "-f", "-o", os.devnull)
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs a directory that nobody may write to")
def test_an_unwritable_directory(model: Path, packed: Path, fails) -> None:
    assert fails("compress", model, "-o", "/proc/self/x").startswith("/proc/self/x: ")
    assert fails("decompress", packed, "-o", "/proc/self/x").startswith("/proc/self/x: ")
    assert fails("compress", model, "--verify", "-o", "/proc/self/x").startswith("/proc/self/x: ")


def test_missing_files(tmp_path: Path, fails) -> None:
    missing = tmp_path / "missing"
    for command in ("compress", "decompress", "info", "verify"):
        assert fails(command, missing) == f"{missing}: No such file or directory"
    assert fails("cat", missing, "a") == f"{missing}: No such file or directory"


def test_a_directory_as_the_source(tmp_path: Path, fails) -> None:
    for command in ("compress", "decompress", "info", "verify"):
        assert str(tmp_path) in fails(command, tmp_path)


@pytest.mark.parametrize("name, start, advice", [
    ("pytorch_model.bin", b"PK\x03\x04", "ptwm.torch.save_file"), ("m.pt", b"\x80\x02}q", "weights_only=True"),
    ("m.pth", b"", "ptwm.torch"), ("m.ckpt", b"x" * 99, "ptwm.torch"), ("m.gguf", b"GGUF\3", "GGUF"),
    ("renamed.safetensors", b"GGUF\3\0\0\0\0\0\0\0", "GGUF"), ("w.npz", b"PK", "ptwm.numpy.save_file"),
    ("w.h5", b"\x89HDF\r\n\x1a\n", "ptwm.numpy"), ("m.onnx", b"\x08", "ptwm.numpy"),
    ("model.safetensors.index.json", b'{"weight_map":{}}', "shards"), ("m.safetensors", b"\0" * 99, "safetensors"),
])  # fmt: skip
def test_other_formats_get_advice(name: str, start: bytes, advice: str, tmp_path: Path, fails) -> None:
    (tmp_path / name).write_bytes(start)
    line = fails("compress", tmp_path / name)
    assert advice in line and line.startswith(str(tmp_path / name))


def test_compressing_a_ptwm_file(packed: Path, fails) -> None:
    assert "is a .ptwm file already" in fails("compress", packed, "-o", packed.with_suffix(".x"))


def test_a_ptwm_suffix_does_not_make_a_ptwm_file(model: Path, fails) -> None:
    for command in ("decompress", "info", "verify"):
        assert fails(command, model, *(["-o", f"{model}.x"] if command == "decompress" else [])).startswith(
            f"{model}: "
        )


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file(seed: int, packed: Path, tmp_path: Path, fails) -> None:
    rng = np.random.default_rng(seed)
    content = bytearray(packed.read_bytes())
    content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    (tmp_path / "damaged.ptwm").write_bytes(content)
    assert fails("verify", tmp_path / "damaged.ptwm").startswith(str(tmp_path / "damaged.ptwm"))


def test_damage_leaves_no_partial_file(packed: Path, tmp_path: Path, fails) -> None:
    content = bytearray(packed.read_bytes())
    content[len(content) // 2] ^= 4  # in a plane: the index still opens
    (tmp_path / "damaged.ptwm").write_bytes(content)
    assert str(tmp_path / "damaged.ptwm") in fails("decompress", tmp_path / "damaged.ptwm")
    old = tmp_path / "old"
    old.write_bytes(b"old")
    fails("decompress", tmp_path / "damaged.ptwm", "-f", "-o", old)


@pytest.mark.parametrize("command", ["compress", "decompress", "verified compress"])
@pytest.mark.parametrize("error, status", [(KeyboardInterrupt, 130), (MemoryError, 1), (OSError(28, "full"), 1)])
def test_failing_half_way_leaves_nothing(
    command: str, error: BaseException, status: int, model: Path, packed: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    def second_call_fails(owner: type, name: str) -> None:
        calls: list[int] = []
        method = getattr(owner, name)

        def wrapper(*args: object, **options: object) -> object:
            calls.append(1)
            if len(calls) == 2:
                raise error
            return method(*args, **options)

        monkeypatch.setattr(owner, name, wrapper)

    capsys.readouterr()
    monkeypatch.setattr("ptwm.conversion.files.BATCH_NBYTES", 1000)
    monkeypatch.setattr("ptwm.sharding.writer.BATCH_NBYTES", 1000)
    second_call_fails(*((Writer, "_check") if command == "compress" else (FileIndex, "_decode")))
    source, extra = {"decompress": (packed, []), "compress": (model, []), "verified compress": (model, ["--verify"])}[
        command
    ]
    target = tmp_path / "target"
    target.write_bytes(b"old")
    before = snapshot(tmp_path)
    assert main([command.split()[-1], "-f", str(source), "-o", str(target), *extra]) == status
    assert snapshot(tmp_path) == before
    assert len(capsys.readouterr().err.splitlines()) == (status == 1)


def test_verification_notices_a_wrong_file(model: Path, monkeypatch, fails) -> None:
    right = Writer._add_many

    def wrong(self: Writer, tensors: Iterable[tuple], *args: object) -> None:
        def changed(name: str, data: memoryview, *others: object) -> tuple:
            content = bytearray(data)
            if name == "ids":
                content[17] ^= 1
            return (name, content, *others)

        right(self, (changed(*tensor) for tensor in tensors), *args)

    monkeypatch.setattr(Writer, "_add_many", wrong)
    assert "does not restore it; nothing was written" in fails("compress", model, "--verify")


@posix
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    import resource

    model = tmp_path / "m.safetensors"
    safetensors.numpy.save_file({"a": np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)}, model)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    for extra in ([], ["--verify"]):
        result = run_process("compress", model, "--method", "identity", *extra, preexec_fn=limit)
        assert result.returncode == 1 and result.stderr.count(b"\n") == 1, result.stderr
        assert os.listdir(tmp_path) == ["m.safetensors"]
    assert main(["compress", str(model)]) == 0
    result = run_process("decompress", tmp_path / "m.ptwm", "-o", tmp_path / "x", preexec_fn=limit)
    assert result.returncode == 1 and result.stderr.count(b"\n") == 1, result.stderr
    assert sorted(os.listdir(tmp_path)) == ["m.ptwm", "m.safetensors"]


@posix
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_removes_the_partial_file(number: int, status: int, tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    rng = np.random.default_rng(1)
    safetensors.numpy.save_file({f"t{i}": rng.integers(0, 9, 1 << 18, np.uint8) for i in range(400)}, model)
    process = subprocess.Popen(
        [*PTWM, "compress", str(model), "--method", "zstd", "--level", "19", "--threads", "1"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # whoever runs the tests may ignore it
    )
    deadline = time.monotonic() + 60
    while len(os.listdir(tmp_path)) == 1:  # until the partial file is there
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (status, b"", b"")
    assert os.listdir(tmp_path) == ["m.safetensors"]


# ---------------------------------------------------------------------------------------------------------- the rest


def test_info(packed: Path, arrays: dict[str, np.ndarray], capsys) -> None:
    capsys.readouterr()
    assert main(["info", str(packed)]) == 0
    output = capsys.readouterr().out
    assert "5 tensors" in output and "metadata format = np" in output
    assert re.search(r"^layer\.weight +F32 +256 x 300 +307 kB +\d+ kB +\d\d\.\d %$", output, re.MULTILINE)
    assert re.search(r"^empty +F32 +0 x 7 +0 B +0 B +-$", output, re.MULTILINE)
    assert re.search(r"^scalar +F32 +scalar +4 B ", output, re.MULTILINE)


def test_info_json(packed: Path, arrays: dict[str, np.ndarray], capsys) -> None:
    capsys.readouterr()
    assert main(["info", "--json", str(packed)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["path"] == str(packed)
    assert report["file_nbytes"] == packed.stat().st_size
    assert report["raw_nbytes"] == sum(array.nbytes for array in arrays.values())
    assert report["metadata"] == {"format": "np"}
    tensors = {tensor["name"]: tensor for tensor in report["tensors"]}
    assert {name: tensor["shape"] for name, tensor in tensors.items()} == {n: list(a.shape) for n, a in arrays.items()}
    assert tensors["ids"]["dtype"] == "I64" and tensors["ids"]["raw_nbytes"] == 8000
    assert tensors["ids"]["ratio"] == pytest.approx(tensors["ids"]["stored_nbytes"] / 8000, abs=1e-5)
    assert tensors["empty"]["ratio"] is None


def test_info_verbose_tells_how(packed: Path, capsys) -> None:
    capsys.readouterr()
    assert main(["info", "-v", str(packed)]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("layer.weight"))
    assert re.search(
        r"label\(.*: .*rest carried [\d.]+ kB, symbol label-rans [\d.]+ kB, tail [\d.]+ k?B with .*tables", line
    )
    assert main(["info", "-v", "--json", str(packed)]) == 0
    tensors = {tensor["name"]: tensor for tensor in json.loads(capsys.readouterr().out)["tensors"]}
    storage = tensors["layer.weight"]["storage"]
    planes = sum(plane["stored_nbytes"] for plane in storage["planes"])
    assert 0 <= storage["segment_stored_nbytes"] - planes - storage["tail_nbytes"] < 64 * storage["chunks"]


def test_info_of_odd_files(tmp_path: Path, capsys) -> None:
    path = tmp_path / "odd.ptwm"
    with Writer(path, metadata={"nested": {"list": [1, None, b"\xff"]}, "long": "x" * 10_000}) as writer:
        writer.add("evil\x1b[31m\n\u202e\0", b"abc")
        writer.add("", b"")
    for args in ([], ["-v"], ["--json"], ["-v", "--json"]):
        assert main(["info", str(path), *args]) == 0
        output = capsys.readouterr().out
        assert "\x1b" not in output and "\u202e" not in output and "evil" in output
    with Writer(path):
        pass
    assert main(["info", str(path)]) == 0
    assert "0 tensors" in capsys.readouterr().out


def test_verify(packed: Path, model: Path, capsys) -> None:
    capsys.readouterr()
    assert main(["verify", str(packed)]) == 0
    assert capsys.readouterr().out.startswith(f"{packed}: ok, 5 tensors")
    assert main(["verify", str(packed), str(model), "missing", str(packed)]) == 1
    output = capsys.readouterr()
    assert len(output.err.splitlines()) == 2 and output.out.count(": ok") == 2


def test_verify_json(packed: Path, model: Path, arrays: dict[str, np.ndarray], capsys) -> None:
    capsys.readouterr()
    assert main(["verify", "--json", str(packed), str(model)]) == 1
    good, bad = json.loads(capsys.readouterr().out)
    total = sum(array.nbytes for array in arrays.values())
    assert good == {"path": str(packed), "ok": True, "tensors": 5, "raw_nbytes": total}
    assert bad["path"] == str(model) and bad["ok"] is False and str(model) in bad["error"]


def test_cat(packed: Path, arrays: dict[str, np.ndarray], capfdbinary) -> None:
    for name, array in arrays.items():
        capfdbinary.readouterr()
        assert main(["cat", str(packed), name]) == 0
        assert capfdbinary.readouterr().out == array.tobytes()


def test_cat_of_an_unknown_tensor(packed: Path, fails) -> None:
    assert fails("cat", packed, "layer.wieght") == f"{packed}: no tensor 'layer.wieght'; did you mean 'layer.weight'?"
    assert fails("cat", packed, "\n\x1b") == rf"{packed}: no tensor '\n\x1b'"


def test_demo(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["demo"]) == 0
    output = capsys.readouterr()
    assert output.err == "" and "identical" in output.out and "memcpy" in output.out
    assert max(map(len, output.out.splitlines())) <= 120
    assert os.listdir(tmp_path) == []


def test_a_demo_that_finds_a_difference_fails(monkeypatch, tmp_path: Path, fails) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("filecmp.cmp", lambda *args, **options: False)
    assert "differs from the original" in fails("demo")


# ------------------------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize("args", [
    [], ["bogus"], ["compress"], ["info"], ["cat", "x"], ["verify"], ["compress", "x", "--method", "lzma"],
    ["compress", "x", "--chunk", "1X"], ["compress", "x", "--chunk", "4095"], ["compress", "x", "--chunk", "65M"],
    ["compress", "x", "--threads", "-1"], ["compress", "x", "--threads", "two"], ["compress", "x", "--level", "high"],
    ["demo", "x"], ["completion"], ["completion", "fish"], ["compress", "x", "--max-shard-size", "0"],
], ids=" ".join)  # fmt: skip
def test_usage_errors(args: list[str], capsys) -> None:
    assert main(args) == 2
    output = capsys.readouterr()
    assert output.out == "" and output.err.startswith("usage: ptwm")


@pytest.mark.parametrize(
    "args", [["--help"], *([c, "--help"] for c in "compress decompress info verify cat demo".split())]
)
def test_help(args: list[str], capsys) -> None:
    assert main(args) == 0
    assert capsys.readouterr().out.startswith("usage: ptwm")


def test_version(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ptwm {ptwm.__version__}\n"


@pytest.mark.parametrize("text, nbytes", [
    ("65536", 65536), ("64K", 65536), ("64k", 65536), ("64KiB", 65536), ("64kB", 64000), ("1M", 1 << 20),
    ("1MB", 10**6),
    ("1 MiB", 1 << 20), ("2G", 2 << 30), ("10B", 10), (" 7 ", 7),
])  # fmt: skip
def test_sizes_are_read(text: str, nbytes: int) -> None:
    assert units.parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5M", "1T", "0x10", "1iB", "1KK", "1 M B"])
def test_other_things_are_no_sizes(text: str) -> None:
    with pytest.raises(units.argparse.ArgumentTypeError):
        units.parse_size(text)


@pytest.mark.parametrize("nbytes, text", [
    (0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (1536, "1.54 kB"), (9994, "9.99 kB"), (9996, "10.0 kB"),
    (99_960, "100 kB"), (999_400, "999 kB"), (999_600, "1.00 MB"), (90_868_376, "90.9 MB"), (10**18, "1000 PB"),
])  # fmt: skip
def test_sizes_are_written(nbytes: int, text: str) -> None:
    assert units.human_size(nbytes) == text


def test_an_unexpected_error_is_one_line_too(packed: Path, monkeypatch, fails) -> None:
    monkeypatch.setattr(TensorIndex, "entries", lambda self: 1 // 0)
    assert (
        fails("info", packed)
        == "internal error, please report it: ZeroDivisionError: integer division or modulo by zero"
    )


# ------------------------------------------------------------------------------------------------- as a process


def test_the_command_is_installed(packed: Path) -> None:
    import shutil

    command = shutil.which("ptwm", path=os.path.dirname(sys.executable)) or pytest.skip("ptwm is not installed here")
    result = subprocess.run([command, "verify", str(packed)], capture_output=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, b"") and b": ok" in result.stdout


def test_a_process_fails_with_one_line(tmp_path: Path) -> None:
    result = run_process("info", tmp_path / "missing.ptwm")
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.decode().splitlines() == [f"ptwm: {tmp_path}/missing.ptwm: No such file or directory"]


def test_there_is_no_progress_bar_in_a_pipe(model: Path) -> None:
    result = run_process("compress", model, "--verify")
    assert (result.returncode, result.stderr) == (0, b"")


@posix
def test_there_is_a_progress_bar_on_a_terminal(model: Path) -> None:
    status, seen = errors_on_a_terminal([*PTWM, "compress", str(model)], columns=80)
    assert status == 0 and b"model.safetensors" in seen and b"%" in seen


@posix
def test_cat_refuses_a_terminal(packed: Path) -> None:
    import pty

    terminal, stdout = pty.openpty()
    result = subprocess.run([*PTWM, "cat", str(packed), "ids"], stdout=stdout, stderr=subprocess.PIPE, timeout=60)
    os.close(stdout)
    os.close(terminal)
    assert result.returncode == 1 and b"terminal" in result.stderr


@posix
@pytest.mark.parametrize("args", [["info", "-a"], ["info", "--json"], ["cat"]], ids=" ".join)
def test_a_broken_pipe_is_quiet(args: list[str], tmp_path: Path) -> None:
    path = tmp_path / "many.ptwm"
    with Writer(path) as writer:
        for i in range(5000):
            writer.add(f"tensor.{i}", struct.pack("<q", i), "I64", (1,))
        writer.add("large", bytes(1 << 20), "U8", (1 << 20,))
    process = subprocess.Popen(
        [*PTWM, *args, str(path), *(["large"] if args == ["cat"] else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141


@posix
def test_names_are_printed_in_any_locale(tmp_path: Path) -> None:
    path = tmp_path / "näme.ptwm"
    with Writer(path) as writer:
        writer.add("é😀", b"ab", "U8", (2,))
    result = run_process("info", path, env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (result.returncode, result.stderr) == (0, b"") and rb"\xe9\U0001f600" in result.stdout
