"""`ptwm report`: its numbers are those of `info`, and its page is safe and whole whatever the file holds."""

from __future__ import annotations

import html.parser
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cbor2
import ml_dtypes
import numpy as np
import pytest
from browser import NAMES, Browser, find_browser
from conftest import PACKED, SCALAR_TYPES, weights
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hostile import SMALL, rebuild, take_apart

import ptwm
import ptwm.numpy
from ptwm.cli import main
from ptwm.report import gather, render
from ptwm.report.histograms import FORMATS, MAX_ELEMENTS, MAX_ELEMENTS_OF_TYPE
from ptwm.report.segments import COPIED, FUSED, KERNELS, PARTS
from ptwm.report.shares import by_dtype, by_layer, fold, layer_of
from ptwm.sharding import Writer

ROOT = Path(__file__).resolve().parents[2]
VOID = {"meta", "br", "input", "link", "wbr", "img", "hr"}
NASTY = [
    "<script>alert(1)</script>",
    "\"quoted\" 'single' & <b>",
    "line\nbreak\ttab\0nul\x1b[31m",
    "turned \u202e around \u2066 isolated",
    "--><!-- ]]> </title></style></script>",
    "a" * 5000,
    "ünïcode ☃ 🎈 עברית",
    "",
    "layers." + "9" * 6000 + ".weight",
    "layers." + "8" * 6000 + ".weight",
]


class Page(html.parser.HTMLParser):
    """A page that was read strictly: every element is closed where it must be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open and self._open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


def check_page(text: str) -> Page:
    """What holds of every page."""
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == tags.count("style") == tags.count("h1") == tags.count("main") == 1
    assert {"h1", "h2", "table", "section"} <= set(tags) and not {"img", "link", "iframe", "object", "form"} & set(tags)
    for _, attributes in page.tags:
        assert not {"src", "srcset", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("href", "#").startswith("#")
        assert attributes.get("href", "#x").removeprefix("#") in {*ids, "x"}
    assert not re.search(r"(?i)\b(https?|ftp|data|javascript):|url\(|@import|//[a-z]", text)
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\0\x1b\r")
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    for _, attributes in page.tags:
        for name in {"width", "height", "x", "y", "cx", "cy", "r", "x1", "x2", "y1", "y2"} & set(attributes):
            assert 0 <= float(attributes[name].removesuffix("%")) < math.inf
    return page


def report_of(path: Path | bytes):
    if isinstance(path, bytes):
        with ptwm.TensorIndex.from_buffer(path, threads=1) as index:
            return gather(index)
    with ptwm.TensorIndex(path) as index:
        return gather(index)


def info_of(path: Path, capsys) -> dict:
    assert main(["info", "--json", "-v", str(path)]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Layers of several types, tied tensors, integers and an empty tensor."""
    path = tmp_path / "model.ptwm"
    with Writer(path, metadata={"format": "pt", "<i>": "</td>"}) as writer:
        embedding = weights((600, 128), ml_dtypes.bfloat16, 1).tobytes()
        writer.add("embed.weight", embedding, "BF16", (600, 128))
        for layer in (0, 1, 2, 10):
            for part in ("q", "k"):
                data = weights((128, 128), ml_dtypes.bfloat16, layer)
                writer.add(f"layers.{layer}.attn.{part}.weight", data.tobytes(), "BF16", data.shape)
            writer.add(f"layers.{layer}.norm", weights((128,), np.float32, layer).tobytes(), "F32", (128,))
        writer.add("ids", np.arange(4096, dtype="<i8").tobytes(), "I64", (4096,))
        writer.add("empty", b"", "F32", (0, 3))
        writer.add("head.weight", embedding, "BF16", (600, 128))
    return path


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


# ---------------------------------------------------------------------------------------------------- hostile contents


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


# ------------------------------------------------------------------------------------------------------------- browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_browser()
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)}")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def complaints(browser: Browser) -> list:
    """What the page's scripts, its security policy and the network had to say."""
    told = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed")
    return [event for event in browser.events if event[0] in told]


def test_in_a_browser(model: Path, tmp_path: Path, browser: Browser) -> None:
    nasty = tmp_path / "nasty.ptwm"
    with Writer(nasty, metadata={name: name for name in NASTY}) as writer:
        for i, name in enumerate(NASTY):
            writer.add(name, weights((16 + i, 64)).tobytes(), "F32", (16 + i, 64))
    for path in (model, nasty):
        assert main(["report", str(path)]) == 0
        page = path.with_suffix(".html")
        for width in (400, 1400):
            for dark in (False, True):
                browser.resize(width, dark=dark)
                browser.open(page)
                assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
                assert browser.evaluate("document.querySelectorAll('svg.bar').length") > 5
                heights = "[...document.querySelectorAll('#tensor-list tr')].map(row => row.offsetHeight)"
                assert path is nasty or browser.evaluate(f"Math.max(...{heights})") < 100
                colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
                assert colour == ("rgb(18, 23, 29)" if dark else "rgb(255, 255, 255)")
                assert browser.screenshot().startswith(b"\x89PNG")
                requests = [event["request"]["url"] for name, event in browser.events if name.endswith("WillBeSent")]
                assert requests == [page.as_uri()] and complaints(browser) == []
        # Each bar is drawn inside its place.
        assert browser.evaluate(
            "[...document.querySelectorAll('svg.bar rect')].every(r => r.x.baseVal.value + r.width.baseVal.value < 1000.1)"
        )


def rows(browser: Browser, column: int) -> list[str]:
    return browser.evaluate(
        "[...document.querySelectorAll('#tensor-list tbody tr')].filter(row => !row.hidden)"
        f".map(row => row.cells[{column}].textContent)"
    )


def test_the_table_sorts(model: Path, browser: Browser) -> None:
    assert main(["report", str(model)]) == 0
    browser.resize(1200)
    browser.open(model.with_suffix(".html"))
    with ptwm.TensorIndex(model) as index:
        entries = index.entries()
    assert rows(browser, 0) == [entry.name for entry in entries]

    def click(column: int) -> str:
        browser.evaluate(f"document.querySelectorAll('#tensor-list th button')[{column}].click()")
        return browser.evaluate(f"document.querySelectorAll('#tensor-list th')[{column}].getAttribute('aria-sort')")

    sizes = {entry.name: entry.nbytes for entry in entries}
    assert click(3) == "descending"
    shown = [sizes[name] for name in rows(browser, 0)]
    assert shown == sorted(shown, reverse=True)
    assert click(3) == "ascending"
    shown = [sizes[name] for name in rows(browser, 0)]
    assert shown == sorted(shown)
    assert click(0) == "ascending"
    names = rows(browser, 0)
    assert names.index("layers.2.norm") < names.index("layers.10.norm")  # by numbers, not by digits
    browser.evaluate("document.getElementById('filter-text').value = 'LAYERS.10'")
    browser.evaluate("document.getElementById('filter-text').dispatchEvent(new Event('input'))")
    assert sorted(rows(browser, 0)) == ["layers.10.attn.k.weight", "layers.10.attn.q.weight", "layers.10.norm"]
    assert browser.evaluate("document.getElementById('filter-count').textContent") == "3 shown"
    assert complaints(browser) == []


def test_without_scripts(model: Path, browser: Browser) -> None:
    assert main(["report", str(model)]) == 0
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(model.with_suffix(".html"))
        text = browser.evaluate("document.body.innerText")
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    assert "layers.10.attn.k.weight" in text and "Find tensors" not in text
