"""tools/bench: that it runs, and that what it says is true."""

import json
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
BENCH = TOOLS / "bench"
PACKAGES = ("ptwm", "safetensors", "zstandard")  # those that tests have; other peers are the user's

if not (BENCH / "__main__.py").is_file():
    pytest.skip("this is no checkout: tools/bench is missing", allow_module_level=True)
if not sys.platform.startswith("linux"):
    pytest.skip("tools/bench is for Linux", allow_module_level=True)
if os.environ.get("PTWM_TEST_SANITIZED"):
    pytest.skip("torch does not run with the sanitizers", allow_module_level=True)
pytest.importorskip("torch", reason="torch cannot be imported")
pytest.importorskip("safetensors", reason="safetensors cannot be imported")


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    """A small .safetensors file: weights in bf16 and fp32, integers, an empty tensor."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(300, 256, generator=generator) * 0.02
    path = tmp_path_factory.mktemp("bench") / "model.safetensors"
    tensors = {
        "embed.weight": weights.bfloat16(),
        "layer.weight": weights[:64, :64].contiguous(),
        "layer.bias": weights[0, :96].bfloat16(),
        "positions": torch.arange(128),
        "nothing": torch.zeros(0, 8),
    }
    save_file(tensors, path, metadata={"format": "pt"})
    return path


def run_bench(*args):
    return subprocess.run([sys.executable, BENCH, *map(str, args)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def results(model_path, tmp_path_factory):
    """Every section, of those contenders that tests can count on; as (JSON, text)."""
    directory = tmp_path_factory.mktemp("results")
    output = directory / "results.json"
    options = ("--quick", "--rounds", 2, "--budget", 0.5, "--contenders", ",".join(PACKAGES), "--levels", "c99")
    done = run_bench(model_path, *options, "--json", output, "--directory", directory)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in directory.iterdir()] == ["results.json"], "it leaves files behind"
    return json.loads(output.read_text()), done.stdout


def rows_of(table):
    return {row["name"]: row for row in table["rows"]}


def test_shape_of_the_json(results):
    result, _ = results
    assert set(result) == {"machine", "core", "rounds", "budget", "contenders", "files", "scaling"}
    assert {"cpu", "kernel", "versions", "commit", "ptwm_cpu", "command"} <= set(result["machine"])
    assert {entry["package"] for entry in result["contenders"]} == set(PACKAGES)
    assert all(entry["version"] for entry in result["contenders"])
    (entry,) = result["files"]
    assert entry["failures"] == {}
    assert entry["n_tensors"] == 5
    assert entry["largest"] == {"name": "embed.weight", "nbytes": 300 * 256 * 2}
    loads = {"load", "load_again"}
    decoding = {"decode_fresh", "decode_touched", "decode_one", "checks"}
    assert set(entry["sections"]) == {"sizes", "encode", *decoding, "threads", *loads, "cold", "memory", "levels"}
    assert set(result["scaling"]) == {"open", "latency", "million", "figures"}


def test_every_contender_is_timed_next_to_memcpy(results):
    (entry,) = results[0]["files"]
    for name in ("encode", "decode_fresh", "decode_touched", "decode_one"):
        rows = rows_of(entry["sections"][name])
        assert {"memcpy", "ptwm", "zstd-3"} <= set(rows)
        assert "zstd-19" not in rows, "it is for sizes only"
        for row in rows.values():
            assert row["failure"] is None
            assert 1 <= len(row["seconds"]) <= 2
            assert all(seconds > 0 for seconds in row["seconds"])
    loads = rows_of(entry["sections"]["load"])
    assert loads["ptwm mmap"]["seconds"]
    assert loads["ptwm pread"]["seconds"]
    assert loads["safetensors mmap"]["seconds"]


def test_sizes_are_true(results, model_path):
    import zstandard

    from ptwm.sharding import compress_ptwm_blob

    (entry,) = results[0]["files"]
    sizes = entry["sections"]["sizes"]
    rows = rows_of(sizes)
    assert sizes["original_nbytes"] == rows["safetensors"]["nbytes"] == model_path.stat().st_size
    content = model_path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    del header["__metadata__"]
    raw = {name: content[begin:][slice(*record["data_offsets"])] for name, record in header.items()}
    in_order = sorted(header, key=lambda name: header[name]["data_offsets"])
    blob = compress_ptwm_blob([(name, raw[name], header[name]["dtype"], header[name]["shape"]) for name in in_order])
    assert rows["ptwm"]["nbytes"] == len(blob)
    for level in (3, 19):
        compressor = zstandard.ZstdCompressor(level=level)
        frames = (compressor.compress(data) for data in raw.values() if data)
        assert rows[f"zstd-{level}"]["nbytes"] == sum(map(len, frames))


def test_figures_are_ratios_of_the_tables(results):
    (entry,) = results[0]["files"]
    figures = {figure["name"]: figure for figure in entry["figures"]}
    rows = rows_of(entry["sections"]["decode_touched"])
    expected = min(rows["memcpy"]["seconds"]) / min(rows["ptwm"]["seconds"])
    assert figures["get_into of the largest tensor, x memcpy"]["best"] == pytest.approx(expected)
    assert entry["sections"]["levels"]["c99"]["ran"] == "c99"
    assert entry["sections"]["levels"]["c99"]["figures"]


def test_text_names_machine_contenders_and_tables(results):
    result, text = results
    assert result["machine"]["cpu"] in text
    for contender in result["contenders"]:
        assert contender["name"] in text
    for title in ("Encode", "Decode everything", "page cache cold", "Memory", "Many small tensors", "Figures"):
        assert title in text


def test_failing_contenders_are_reported(model_path, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(TOOLS))
    from bench.contenders.base import PerTensor
    from bench.model import Model
    from bench.sections import coding
    from bench.timing import usable_cpus
    from bench.workspace import Options, Workspace

    class Stored(PerTensor):
        package = "none"
        note = "stores"

        def __init__(self, name, change):
            self.name = name
            self._change = change

        def encode_tensor(self, tensor):
            return bytes(tensor.data)

        def decode_tensor(self, tensor, frame):
            return self._change(frame)

    def fail(frame):
        raise RuntimeError("it broke")

    contenders = [
        Stored("right", bytes),
        Stored("wrong", lambda frame: frame[:-1] + bytes([frame[-1] ^ 1])),
        Stored("short", lambda frame: frame[:-2]),
        Stored("broken", fail),
    ]
    workspace = Workspace(Model.read(model_path), contenders, Options(1, 1.0, usable_cpus()[0], tmp_path))
    sizes = rows_of(coding.sizes(workspace))
    assert sizes["right"]["nbytes"] == workspace.model.nbytes
    assert sizes["right"]["failure"] is None
    for name in ("wrong", "short", "broken"):
        assert sizes[name]["nbytes"] is None
    assert "wrong bytes in" in sizes["wrong"]["failure"]
    assert "wrong bytes in" in sizes["short"]["failure"]
    assert sizes["broken"]["failure"] == "RuntimeError: it broke"
    assert set(rows_of(coding.decode_fresh(workspace))) == {"memcpy", "memcpy into fresh memory", "right"}


def test_contenders_that_write_to_their_input_are_out(model_path, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(TOOLS))
    from bench.contenders.base import PerTensor
    from bench.model import Model, address
    from bench.timing import copy, usable_cpus
    from bench.workspace import Options, Workspace

    class Vandal(PerTensor):
        name = package = note = "vandal"

        def encode_tensor(self, tensor):
            content = bytes(tensor.data)
            copy(address(tensor.data), address(content[::-1]), tensor.nbytes)
            return content

        def decode_tensor(self, tensor, frame):
            return frame

    vandal = Vandal()
    workspace = Workspace(Model.read(model_path), [vandal], Options(1, 1.0, usable_cpus()[0], tmp_path))
    assert workspace.archive(vandal) is None
    assert workspace.failures == {"vandal": "writes to its input"}
    assert workspace.model.content == model_path.read_bytes()


def test_fresh_memory_is_fresh(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import torch
    from bench.contenders.ours import Ptwm
    from bench.timing import Task, alternate

    import ptwm.torch

    Ptwm().start()
    weights = torch.randn(8 << 20, generator=torch.Generator().manual_seed(0)).bfloat16()
    blob = ptwm.torch.save({"weights": weights})
    task = Task("load", lambda _: ptwm.torch.load(blob))
    timing = alternate([task], 3, 60.0, fresh=True)["load"]
    assert timing.failure is None
    assert min(timing.faults) >= weights.nbytes // (2 << 20), "it lives on pages of the turn before"


def test_files_that_cannot_be_measured(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"no such thing")
    done = run_bench(path, "--only", "sizes", "--contenders", "zstandard")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "x.safetensors" in done.stderr
    assert run_bench("--only", "sizes").returncode == 2
    assert run_bench(path, "--only", "nonsense").returncode == 2


def test_variants(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import torch
    from bench import make_variants

    monkeypatch.setattr(make_variants, "EXTREME_NBYTES", 8000)
    generator = torch.Generator().manual_seed(0)
    model = {
        "embed": torch.randn(192, 128, generator=generator) * 0.02,
        "norm": torch.randn(128, generator=generator),
        "odd": torch.randn(4, 7, generator=generator),
        "ids": torch.arange(4),
    }
    made = {name: make(model) for name, make in make_variants.VARIANTS.items()}
    again = {name: make(model) for name, make in make_variants.VARIANTS.items()}
    for name, tensors in made.items():
        assert tensors.keys() == again[name].keys()
        for key, tensor in tensors.items():
            assert tensor.is_contiguous()
            same = again[name][key]
            assert tensor.reshape(-1).view(torch.uint8).equal(same.reshape(-1).view(torch.uint8)), (name, key)
    assert made["bf16"]["embed"].dtype == torch.bfloat16
    assert made["fp8-e4m3"]["embed"].dtype == torch.float8_e4m3fn
    assert made["fp8-e4m3"]["embed"].float().abs().amax(1).eq(448).all()
    assert made["fp8-e5m2"]["embed"].float().abs().amax(1).eq(57344).all()
    assert made["bf16-as-fp32"]["embed"].equal(made["bf16"]["embed"].float())
    assert made["int8"]["embed_scale"].dtype == torch.float16
    error = made["int8"]["embed"].float() * made["int8"]["embed_scale"].float() - model["embed"]
    assert error.abs().max() < model["embed"].abs().max() / 127
    assert made["mxfp4"]["embed_blocks"].shape == (192, 4, 16)
    assert made["mxfp4"]["embed_scales"].shape == (192, 4)
    assert made["mxfp4"]["odd"].dtype == torch.bfloat16, "its rows are no whole blocks"
    assert made["nvfp4"]["embed"].shape == (192, 64)
    assert made["nvfp4"]["embed_scale"].dtype == torch.float8_e4m3fn
    assert made["bf16-tied"]["lm_head.weight"].equal(made["bf16-tied"]["embed"])


@pytest.mark.parametrize("scheme", ["mxfp4", "nvfp4"])
def test_fp4_restores_what_it_can(monkeypatch, scheme):
    monkeypatch.syspath_prepend(str(TOOLS))
    import torch
    from bench import make_variants

    matrix = torch.randn(8, 64, generator=torch.Generator().manual_seed(0))
    made = make_variants.VARIANTS[scheme]({"w": matrix})
    if scheme == "mxfp4":
        packed, scale = made["w_blocks"], torch.exp2(made["w_scales"].float() - 127)[..., None]
    else:
        packed = made["w"].reshape(8, 4, 8)
        scale = made["w_scale"].float()[..., None] * made["w_scale_2"]
    codes = torch.stack([packed & 15, packed >> 4], -1).reshape(8, scale.shape[1], -1).numpy()
    values = torch.from_numpy(codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)) * scale
    blocks = matrix.reshape(values.shape)
    # Half the widest gap between values is 1; MXFP4 also cuts off what is beyond 6, which is below 8.
    assert ((values - blocks).abs() <= scale * (2 if scheme == "mxfp4" else 1.3)).all()


def test_fp4_rounds_to_nearest_and_ties_to_even(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import torch
    from bench import make_variants

    values = torch.arange(-6, 6.25, 0.125)
    codes = make_variants._fp4_codes(values).numpy()
    assert np.array_equal(codes, values.numpy().astype(ml_dtypes.float4_e2m1fn).view(np.uint8))
