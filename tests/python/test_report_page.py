"""`ptwm report`: its page is safe and whole whatever the file holds, and the command writes it or leaves no trace."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import cbor2
import numpy as np
import pytest
from conftest import weights
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import NASTY, check_page, info_of, report_of, write_model
from test_hostile import SMALL, rebuild, take_apart

import ptwm
import ptwm.numpy
from ptwm.cli import main
from ptwm.report import gather, render
from ptwm.sharding import Writer


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model.ptwm")


def test_names_are_shown_safely(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.ptwm", metadata={name: name for name in NASTY}) as writer:
        for name in NASTY:
            writer.add(name, weights((16, 16)).tobytes(), "F32", (16, 16))
    path = tmp_path / "<b>\"&'.ptwm"
    (tmp_path / "x.ptwm").rename(path)
    text = render(report_of(path))
    page = check_page(text)
    shown = "".join(page.text)
    assert "<script>alert(1)</script>" in shown and "<b>\"&'.ptwm" in shown
    assert r"turned \u202e around \u2066 isolated" in shown and r"line\nbreak\ttab\x00nul\x1b[31m" in shown
    assert "ünïcode ☃ 🎈 עברית" in shown and "(no name)" in shown
    assert len(text) < 200_000


def test_an_empty_file(tmp_path: Path) -> None:
    ptwm.numpy.save_file({}, tmp_path / "x.ptwm")
    page = check_page(render(report_of(tmp_path / "x.ptwm")))
    assert "There are none." in "".join(page.text)
    ptwm.numpy.save_file({"a": np.zeros((0, 4), np.float32)}, tmp_path / "y.ptwm")
    check_page(render(report_of(tmp_path / "y.ptwm")))


def test_bytes_without_a_type(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.ptwm") as writer:
        writer.add("blob", bytes(range(256)) * 100)
    assert "no type" in "".join(check_page(render(report_of(tmp_path / "x.ptwm"))).text)


def test_many_tensors_are_grouped(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.ptwm") as writer:
        for i in range(20_000):
            writer.add(f"layers.{i % 500}.experts.{i // 500}.w", b"\0\1\2\3", "F16", (2,))
        for i in range(4_000):
            writer.add(f"odd{i}", bytes(2), "F16", (1,))
    text = render(report_of(tmp_path / "x.ptwm"))
    page = check_page(text)
    shown = "".join(page.text)
    assert len(text) < 1_500_000
    assert "There are 24,000" in shown and "Of 4,001 lines these are the 3,000 largest" in shown
    assert "layers.[0-499].experts.[0-39].w" in shown and "others, all smaller" in shown


def test_an_unknown_type(tmp_path: Path) -> None:
    body, manifest = take_apart(SMALL)
    content = cbor2.loads(manifest)
    content[2][0][1] = 200
    content[2][0][7] = 30 * 128 * 2
    content[2][0].setdefault(2, [30, 128])
    report = report_of(rebuild(body, cbor2.dumps(content, canonical=True)))
    assert report.tensors[0].dtype == "UNKNOWN_200" and "code 200" in report.problems[0]
    assert "UNKNOWN_200" in "".join(check_page(render(report)).text)


def test_malformed_metadata() -> None:
    body, manifest = take_apart(SMALL)
    content = cbor2.loads(manifest)
    content[4] = b"\xff\xff"
    report = report_of(rebuild(body, cbor2.dumps(content, canonical=True)))
    assert report.metadata is None and "metadata is malformed" in report.problems[0]
    check_page(render(report))


def test_damaged_segments(model: Path) -> None:
    data = bytearray(model.read_bytes())
    whole = report_of(bytes(data))
    with ptwm.TensorIndex(model) as index:
        first = index._segment(0)
        at, nbytes = int(first.file_offset), int(first.stored_nbytes)
    data[at + nbytes - 1] ^= 1  # the tail's checksum
    report = report_of(bytes(data))
    assert report.parts["unknown"] == nbytes and report.file_nbytes == whole.file_nbytes
    assert any("the tail of segment 0 cannot be read" in problem for problem in report.problems)
    assert "Not all of it can be read" in "".join(check_page(render(report)).text)
    data[at + nbytes - 1] ^= 1
    data[at + 100] ^= 255  # a plane: only a sample notices
    report = report_of(bytes(data))
    assert report.parts == whole.parts and any("do not decode" in problem for problem in report.problems)
    check_page(render(report))


@settings(max_examples=150)
@given(st.integers(0, len(SMALL) - 1), st.integers(1, 255), st.booleans())
def test_damaged_files(at: int, flip: int, in_manifest: bool) -> None:
    """A file that can be opened has a page."""
    body, manifest = map(bytearray, take_apart(SMALL))
    part = manifest if in_manifest else body
    part[at % len(part)] ^= flip
    try:
        index = ptwm.TensorIndex.from_buffer(rebuild(bytes(body), bytes(manifest)), threads=1)
    except ptwm.PtwmError:
        return
    with index:
        check_page(render(gather(index)))


# ------------------------------------------------------------------------------------------------------------- command


def test_the_command(model: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    assert main(["report", str(model)]) == 0
    page = tmp_path / "model.html"
    output = capsys.readouterr()
    assert output.err == "" and output.out.startswith(f"{page}: 16 tensors, a page of ")
    first = page.read_bytes()
    check_page(first.decode("utf-8"))
    assert main(["report", str(model)]) == 1
    assert capsys.readouterr().err == f"ptwm: {page}: already exists; -f replaces it\n"
    # The same page from elsewhere, at another time, for a file elsewhere.
    (tmp_path / "sub").mkdir()
    shutil.copy(model, tmp_path / "sub" / "model.ptwm")
    monkeypatch.chdir(tmp_path / "sub")
    assert main(["report", "model.ptwm", "-o", ".."]) == 1
    assert main(["report", "-f", "model.ptwm", "-o", ".."]) == 0
    assert page.read_bytes() == first and os.listdir() == ["model.ptwm"]


def test_failures_leave_nothing(model: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "broken.ptwm").write_bytes(model.read_bytes()[:-1])
    before = sorted(os.listdir(tmp_path))
    for args in (
        ["broken.ptwm"],
        ["missing.ptwm"],
        [str(model), "-o", str(tmp_path / "no" / "x.html")],
        [str(model), "-f", "-o", str(model)],
    ):
        assert main(["report", *(str(tmp_path / arg) if arg.endswith("ptwm") else arg for arg in args)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("ptwm: ")
    assert sorted(os.listdir(tmp_path)) == before and model.stat().st_size > 1000


def test_stdout(model: Path, capfdbinary) -> None:
    assert main(["report", str(model), "-o", "-"]) == 0
    output = capfdbinary.readouterr()
    assert output.out == render(report_of(model)).encode("utf-8") and output.err == b""
    assert not model.with_suffix(".html").exists()


def test_a_directory(tmp_path: Path, capsys) -> None:
    import safetensors.numpy

    source = tmp_path / "hub"
    source.mkdir()
    tensors = {f"layers.{i}.w": weights((64, 64), np.float32, i) for i in range(6)}
    safetensors.numpy.save_file(tensors, source / "model.safetensors", {"format": "pt"})
    assert main(["compress", str(source), "--max-shard-size", "40K"]) == 0
    capsys.readouterr()
    packed = tmp_path / "hub-ptwm"
    info = info_of(packed, capsys)
    assert main(["report", str(packed)]) == 0
    report = report_of(packed)
    assert len(report.files) > 1 and sum(nbytes for _, nbytes in report.files) == info["file_nbytes"]
    assert sum(report.parts.values()) == info["file_nbytes"] and report.name == "hub-ptwm"
    assert {tensor.name for tensor in report.tensors} == set(tensors)
    page = (tmp_path / "hub-ptwm.html").read_text(encoding="utf-8")
    assert report.files[0][0] in "".join(check_page(page).text)
    shard = report.files[0][0]
    assert main(["report", "-f", str(packed), "-o", str(packed / shard)]) == 1
    assert main(["report", str(packed), "-o", str(packed)]) == 0 and (packed / "hub-ptwm.html").exists()
