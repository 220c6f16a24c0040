"""`ptwm report`: its numbers are those of `info`."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import PACKED, SCALAR_TYPES, weights
from report_pages import check_page, info_of, report_of, write_model

import ptwm
import ptwm.numpy
from ptwm.cli import main
from ptwm.report import gather, render
from ptwm.report.histograms import FORMATS, MAX_ELEMENTS, MAX_ELEMENTS_OF_TYPE
from ptwm.report.segments import COPIED, FUSED, KERNELS, PARTS
from ptwm.report.shares import by_dtype, by_layer, fold, layer_of
from ptwm.sharding import Writer

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model.ptwm")


# ------------------------------------------------------------------------------------------------------------- numbers


def test_numbers_are_those_of_info(model: Path, arrays, tmp_path: Path, capsys) -> None:
    everything = tmp_path / "all.ptwm"
    ptwm.numpy.save_file(arrays, everything, metadata={"made by": "tests"})
    for path in (model, everything):
        info, report = info_of(path, capsys), report_of(path)
        assert report.name == path.name and report.metadata == info["metadata"]
        for key in ("file_nbytes", "raw_nbytes"):
            assert getattr(report, key) == info[key] and info["n_tensors"] == len(report.tensors)
        assert [tensor.as_info() for tensor in report.tensors] == [
            {key: value for key, value in tensor.items() if key != "storage"} for tensor in info["tensors"]
        ]
        for tensor, shown in zip(report.tensors, info["tensors"]):
            storage = shown["storage"]
            if tensor.segment is None:
                assert storage["segment"] is None
                continue
            assert tensor.segment.stored_nbytes == storage["segment_stored_nbytes"]
            planes = dict.fromkeys(PARTS, 0)
            for plane in storage["planes"]:
                planes[{"symbol": "symbols", "bytes": "other"}.get(plane["kind"], plane["kind"])] += plane[
                    "stored_nbytes"
                ]
            assert tensor.segment.parts["tails"] >= storage["tail_nbytes"]
            assert {**planes, "tails": 0} == {**tensor.segment.parts, "tails": 0}
        assert sum(report.parts.values()) == report.file_nbytes == path.stat().st_size
        assert all(nbytes >= 0 for nbytes in report.parts.values()) and report.problems == []
        assert sum(segment.stored_nbytes for segment in report.segments) + report.parts["index"] == report.file_nbytes


def test_numbers_of_the_page(model: Path, capsys) -> None:
    assert main(["info", str(model)]) == 0
    shown = capsys.readouterr().out.partition("\ndtype ")[0]  # there, bytes that two tensors share are counted twice
    page = " ".join(check_page(render(report_of(model))).text)
    for text in re.findall(r"\d+(?:\.\d+)? (?:k?B|MB|%)", shown):
        assert text in page, text


def test_shares_add_up(model: Path) -> None:
    report = report_of(model)
    stored = sum(segment.stored_nbytes for segment in report.segments)
    for shares in (by_layer(report.tensors), by_dtype(report.tensors), by_layer(report.tensors, max_rows=3)):
        assert sum(share.count for share in shares) == len(report.tensors)
        assert sum(share.raw_nbytes for share in shares) == report.raw_nbytes
        # A tensor's share is rounded up to whole bytes.
        assert 0 <= sum(share.own_nbytes for share in shares) - stored <= len(report.tensors)
        for share in shares:
            assert math.isclose(sum(share.parts.values()), share.own_nbytes, abs_tol=1e-6)
    head = next(tensor for tensor in report.tensors if tensor.name == "head.weight")
    assert head.same_as == "embed.weight" and head.own_nbytes == 0 and head.parts() == {}
    assert "the same bytes as" in render(report)


def test_layers(model: Path) -> None:
    shares = by_layer(report_of(model).tensors)
    assert [share.label for share in shares] == [
        *("embed", "layers.0", "layers.1", "layers.2", "layers.10", "ids", "empty", "head")
    ]
    names = {
        "model.layers.3.mlp.experts.5.up.weight": "model.layers.3",
        "h/7/w": "h/7",
        "blocks[2].w": "blocks[2",
        "0.weight": "0",
        "lm_head.weight": "lm_head",
        "weight": "weight",
        "": "",
        ".x": ".x",
        "x1.w": "x1",
    }
    assert {name: layer_of(name) for name in names} == names
    joined = by_layer(report_of(model).tensors, max_rows=6)
    assert [share.label for share in joined] == ["embed", "layers.[0-1]", "layers.[2-10]", "ids", "empty", "head"]
    folded = fold(shares, 3)
    assert [share.label for share in folded[:2]] == ["embed", "head"] and folded[2].count == 14
    assert folded[2].label == "6 others, all smaller"


def test_ways_of_decoding(tmp_path: Path) -> None:
    source = tmp_path / "m.safetensors"
    import safetensors.numpy

    data = {"x": weights((512, 512), ml_dtypes.bfloat16)}
    safetensors.numpy.save_file(data, source)
    found = {}
    for method in ("microscale", "huffman", "zstd", "identity"):
        assert main(["compress", str(source), "-o", str(tmp_path / method), "--method", method]) == 0
        (segment,) = report_of(tmp_path / method).segments
        assert math.isclose(sum(segment.ways.values()), 1)
        found[method] = max(segment.ways, key=lambda way: segment.ways[way])
        assert ("times slower than vector code" in render(report_of(tmp_path / method))) == bool(segment.slow_ways)
    assert found == {"microscale": FUSED, "huffman": "huffman", "zstd": "zstd", "identity": COPIED}


def test_kernels_are_the_librarys() -> None:
    source = (ROOT / "libptwm" / "label_fused.c").read_text(encoding="utf-8")
    kinds = re.search(r"kinds\[PTWM_N_KERNEL_KINDS\] = \{(.*?)\};", source, re.DOTALL)
    assert [tuple(map(int, kind)) for kind in re.findall(r"\{ (\d+), (\d+), (\d+) \}", kinds[1])] == list(KERNELS)
    header = (ROOT / "libptwm" / "label_kernel.h").read_text(encoding="utf-8")
    names = re.findall(r"PTWM_KERNEL_\w+", re.search(r"enum ptwm_kernel_kind \{(.*?)\}", header, re.DOTALL)[1])
    without = re.findall(r"kind != (PTWM_KERNEL_\w+)", header)
    assert [name not in without for name in names] == list(KERNELS.values())


# ---------------------------------------------------------------------------------------------------------- histograms


@pytest.mark.parametrize("name", FORMATS)
def test_exponents(name: str, tmp_path: Path) -> None:
    if name not in SCALAR_TYPES:
        pytest.skip("this ml_dtypes lacks the type")
    scalar_type = SCALAR_TYPES[name]
    values = weights((64, 96), scalar_type)
    ptwm.numpy.save_file({"x": values}, tmp_path / "x.ptwm")
    (histogram,) = report_of(tmp_path / "x.ptwm").histograms
    form = FORMATS[name]
    assert histogram.dtype == name and histogram.n_sampled == histogram.n_floats == values.size * form.parts
    assert sum(histogram.counts) == histogram.n_floats
    real = (
        values.view({"C32": np.float16, "C64": np.float32, "C128": np.float64, "BC32": ml_dtypes.bfloat16}[name])
        if (form.parts == 2)
        else values
    )
    numbers = np.abs(real.astype(np.float64))
    if form.mantissa:
        assert histogram.n_zeros == np.count_nonzero(numbers == 0)
    # What frexp says of the numbers that are neither subnormal nor special is what the fields say.
    powers = np.frexp(numbers[np.isfinite(numbers) & (numbers > 0)])[1] - 1
    lowest = (1 if form.mantissa else 0) - form.bias
    normal = powers[powers >= lowest]
    expected = np.bincount(normal + form.bias, minlength=len(histogram.counts))
    low = 1 if form.mantissa else 0
    high = len(histogram.counts) - 1  # holds NaNs too in some types
    assert histogram.counts[low:high] == expected[low:high].tolist()
    assert 0 < histogram.entropy <= form.exponent
    if name not in PACKED:
        assert math.isclose(
            histogram.stored_bits * histogram.n_floats / 8, report_of(tmp_path / "x.ptwm").tensors[0].own_nbytes
        )
    check_page(render(report_of(tmp_path / "x.ptwm")))


def test_exponents_without_ml_dtypes(tmp_path: Path) -> None:
    names = ["BF16", "F8_E4M3", "F4", "F6_E2M3"]
    ptwm.numpy.save_file({name: weights((64, 64), SCALAR_TYPES[name]) for name in names}, tmp_path / "x.ptwm")
    program = (
        "import sys; sys.modules['ml_dtypes'] = sys.modules['torch'] = None\n"
        "import ptwm, ptwm.report\n"
        "print(*(h.dtype for h in ptwm.report.gather(ptwm.TensorIndex('x.ptwm')).histograms))"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.split() == names


def test_samples_are_bounded(tmp_path: Path, monkeypatch) -> None:
    from ptwm.report import histograms

    monkeypatch.setattr(histograms, "MAX_ELEMENTS_OF_TYPE", 4096)
    with Writer(tmp_path / "x.ptwm") as writer:
        for i in range(1000):
            writer.add(f"x.{i}", weights((16, 16), np.float32, i).tobytes(), "F32", (16, 16))
        writer.add("large", weights((512, 500), np.float32).tobytes(), "F32", (512, 500))
        writer.add("other", weights((512, 500), ml_dtypes.bfloat16).tobytes(), "BF16", (512, 500))
    with ptwm.TensorIndex(tmp_path / "x.ptwm") as index:
        report = gather(index)
    for histogram in report.histograms:
        assert 3500 <= histogram.n_sampled <= 4096 < histogram.n_floats
    assert render(report) == render(report_of(tmp_path / "x.ptwm"))
    assert MAX_ELEMENTS_OF_TYPE < MAX_ELEMENTS <= 5_000_000
    assert "4,096 of 512,000 floats" in render(report)
