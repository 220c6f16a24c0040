"""The second decoder, written from FORMAT.md alone, on the golden files: it has to make the same of them as the library."""

import os

import pytest
import second_decoder
from golden_files import BAD, DIRECTORY, GOOD, ROOT
from second_decoder import Corrupt, Malformed, NotPtwm, Unsupported, codecs
from second_decoder.checksums import crc32c, xxh3_64
from second_decoder.cursor import Cursor
from second_decoder.manifest import DTYPES
from second_decoder.source import safetensors

import ptwm
from ptwm._library import ffi, lib
from ptwm.conversion import ConversionError, decompress_file
from ptwm.sharding import compress_ptwm_blob

# What the library tells apart that FORMAT.md does not is Malformed.
EXPECTED = {
    "PTWM_ERR_NOT_PTWM": NotPtwm,
    "PTWM_ERR_FOREIGN": NotPtwm,
    "PTWM_ERR_VERSION": Unsupported,
    "PTWM_ERR_FEATURE": Unsupported,
    "PTWM_ERR_CHECKSUM": Corrupt,
    "PTWM_ERR_HASH": Corrupt,
}


@pytest.mark.parametrize("golden", GOOD, ids=lambda golden: golden.name)
def test_good(golden):
    file = second_decoder.File(golden.read())
    file.check()
    assert len(file.tensors) == len(golden.tensors)
    for tensor, expected in zip(file.tensors, golden.tensors):
        assert (tensor.name, tensor.dtype, tensor.shape) == (expected.name, expected.dtype, expected.shape)
        assert expected.is_like(file.decode(tensor))


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_bad(bad):
    data = bad.read()
    expected = EXPECTED.get(bad.status, Malformed)
    if bad.name == "bad-five-bytes.ptwm":
        expected = NotPtwm  # that it was one before it was cut is a guess
    with pytest.raises(second_decoder.Refused) as caught:
        file = second_decoder.File(data)
        assert bad.where != "open"
        if bad.where == "decode":
            file.decode(file.tensors[bad.tensor])
        file.check()
    assert type(caught.value) is expected


@pytest.mark.parametrize("nbytes", [*range(300), 511, 512, 513, 1023, 1024, 1025, 1088, 2048, 2049, 5000])
def test_checksums(nbytes):
    data = os.urandom(nbytes)
    assert crc32c(data) == lib.ptwm_crc32c(0, ffi.from_buffer(data), nbytes)
    assert xxh3_64(data) == lib.ptwm_xxh3_64(ffi.from_buffer(data), nbytes)


def test_what_the_writer_makes():
    """Files that are not golden: of the writer as it is now."""
    data = os.urandom(3000) + bytes(3000) + b"words, " * 500
    bits = dict(DTYPES.values())
    raw = data[: len(data) // 16 * 16]
    tensors = [(dtype, raw, dtype, [8 * len(raw) // bits[dtype]]) for dtype in ("U8", "BF16", "F32", "F64", "F4")]
    for method in ptwm.Method:
        file = second_decoder.File(compress_ptwm_blob(tensors, method_hint=method, streaming_chunk=4096))
        file.check()
        assert [file.decode(file.find(dtype)) for dtype in ("U8", "BF16", "F32", "F64", "F4")] == 5 * [raw]


@pytest.mark.parametrize("golden", GOOD, ids=lambda golden: golden.name)
def test_source(golden, tmp_path):
    """Section 9: both restore the same .safetensors file, or neither does."""
    path = tmp_path / "model.safetensors"
    try:
        expected = safetensors(second_decoder.File(golden.read()))
    except second_decoder.Refused:
        with pytest.raises((ConversionError, ptwm.PtwmError)):
            decompress_file(DIRECTORY / golden.name, path)
        return
    decompress_file(DIRECTORY / golden.name, path)
    assert path.read_bytes() == expected


def test_canonical_header(tmp_path):
    """All that its strings may hold, in names and in metadata."""
    texts = ["", '"\\/', *map(chr, range(32)), "\x7f\x80\xff", "\u20ac \U0001f9e0", "\u2028\ud7ff\uffff"]
    tensors = [(f"{text}{i}", bytes([i]), "U8", [1]) for i, text in enumerate(texts)]
    data = compress_ptwm_blob(tensors, metadata={text: text[::-1] for text in texts})
    (tmp_path / "model.ptwm").write_bytes(data)
    decompress_file(tmp_path / "model.ptwm", tmp_path / "model.safetensors")
    assert (tmp_path / "model.safetensors").read_bytes() == safetensors(second_decoder.File(data))


# ------------------------------------------------------------------------------------- what golden files hold


class Coverage:
    """What occurs in golden files."""

    def __init__(self):
        self.found = set()
        for golden in GOOD:
            self.add_file(second_decoder.File(golden.read()))

    def add_file(self, file):
        self.found |= {("metadata", file.manifest.metadata is not None), ("source", file.manifest.source is not None)}
        self.found |= {("tensors", min(len(file.tensors), 2)), ("segments", min(len(file.manifest.segments), 2))}
        for tensor in file.tensors:
            self.found |= {("dtype", tensor.dtype), ("hash", tensor.hash is not None), ("empty", tensor.nbytes == 0)}
            self.found.add(("dims", None if tensor.shape is None else min(len(tensor.shape), 3)))
        for index, place in enumerate(file.manifest.segments):
            self.found |= {("flags", place.checked, place.aligned), ("skipped before segment", place.skipped > 0)}
            self.add_segment(file.segment(index))

    def add_segment(self, segment):
        chain = segment.chain
        self.found |= {("delta", width) for width in chain.deltas}
        self.found |= {("deltas", len(chain.deltas)), ("bytes", chain.bytes_width)}
        self.found |= {
            ("chunks", min(segment.n_chunks, 2)),
            ("sets", segment.model and min(len(segment.model.sets), 3)),
        }
        if chain.label:
            self.found |= {
                ("label", chain.label.width),
                ("rest bits", chain.label.rest_bits),
                ("bits", chain.label.bits),
            }
            self.found.add(("columns", len(segment.model.shifts) > 0, segment.model.phases is not None))
            self.found |= {("shift", extreme) for extreme in (-128, 127) if extreme in segment.model.shifts}
        for chunk in segment.chunks:
            self.found.add(("skipped before chunk", chunk.skipped > 0))
            planes = chain.planes(chunk.raw_nbytes)
            for plane, stored in zip(planes, chunk.planes):
                self.found.add(("codec", stored.codec, plane.kind))
                if stored.codec == codecs.LABEL_RANS:
                    data = segment.data[stored.offset : stored.offset + stored.nbytes]
                    is_carried = any(other.codec == codecs.CARRIED for other in chunk.planes)
                    self.add_labels(data, segment.model, chain.label.width, is_carried)

    def add_labels(self, data, model, width, is_carried):
        cursor = Cursor(data, "label rANS")
        lanes, tables, n_exceptions = cursor.unsigned(1), model.sets[cursor.varint()], cursor.varint()
        self.found |= {("lanes", lanes, width), ("classes", len(tables)), ("exceptions", n_exceptions > 0)}
        self.found |= {("lanes and classes", lanes, min(len(tables), 5)), ("lanes, carried", lanes, is_carried)}
        self.found |= {
            ("lanes, phases", lanes, model.phases is not None),
            ("lanes, shifts", lanes, len(model.shifts) > 0),
        }
        self.found |= {("labels", len(table.symbols)) for table in tables}


KINDS = ("bytes", "low", "rest", "symbol")
WANTED = [
    *[("dtype", dtype) for dtype in [0, *DTYPES, 200]],
    *[("codec", codec, kind) for codec in range(5) for kind in KINDS],
    *[("codec", codecs.LABEL_RANS, "symbol"), ("codec", codecs.TRIM, "low"), ("codec", codecs.CARRIED, "rest")],
    *[("delta", width) for width in (1, 2, 4, 8)],
    *[("deltas", n) for n in (0, 1, 2, 8)],
    *[("bytes", width) for width in range(2, 17)],
    *[("label", width) for width in (0, 1, 2, 4, 8)],
    *[("rest bits", bits) for bits in range(16)],
    *[("bits", bits) for bits in range(1, 16)],
    *[("lanes", lanes, width) for lanes in range(3) for width in (0, 1, 2, 4, 8)],
    *[("lanes and classes", lanes, classes) for lanes in range(3) for classes in range(1, 5)],
    *[("lanes, carried", lanes, yes) for lanes in range(3) for yes in (False, True)],
    *[("lanes, phases", lanes, yes) for lanes in range(3) for yes in (False, True)],
    *[("lanes, shifts", lanes, yes) for lanes in range(3) for yes in (False, True)],
    *[("columns", *which) for which in ((False, False), (True, False), (True, True))],
    *[("classes", classes) for classes in range(1, 9)],
    *[("labels", n) for n in (2, 32)],
    *[("sets", n) for n in (0, 1, 2, 3)],
    *[("shift", -128), ("shift", 127)],
    *[("flags", checked, aligned) for checked in (False, True) for aligned in (False, True)],
    *[(what, n) for what in ("tensors", "segments") for n in range(3)],
    *[("dims", n) for n in (None, 0, 1, 2, 3)],
    *[("chunks", n) for n in (1, 2)],
    *[(what, yes) for what in ("metadata", "source", "hash", "empty", "exceptions") for yes in (False, True)],
    *[("skipped before segment", True), ("skipped before chunk", True)],
]


@pytest.fixture(scope="module")
def coverage():
    return Coverage()


def test_golden_files_cover_the_format(coverage):
    assert [wanted for wanted in WANTED if wanted not in coverage.found] == []


# -------------------------------------------------------------------------------------------- FORMAT.md's example


def test_example():
    """The example of FORMAT.md is the golden file that it says, and its tensors are those that it says."""
    text = (ROOT / "libptwm" / "FORMAT.md").read_text(encoding="utf-8")
    section = text[text.index("## 10. Example") : text.index("## 11.")]
    data = bytearray()
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| at |"):
            at, hexadecimal, meaning = (cell.strip() for cell in line.strip("|").split("|"))
            assert int(at) == len(data) and meaning
            data += bytes.fromhex(hexadecimal.strip("`"))
    assert bytes(data) == (ROOT / "tests" / "golden" / "files" / "tiny.ptwm").read_bytes()

    expected = {"x": b"abc", "y": bytes.fromhex("803F 003F 80BF C03F")}
    file = second_decoder.File(bytes(data))
    file.check()
    assert {tensor.name: file.decode(tensor) for tensor in file.tensors} == expected
    with ptwm.TensorIndex.from_buffer(bytes(data)) as index:
        index.verify()
        assert {name: index.get_bytes(name) for name in index} == expected
        assert index.get_array("y").astype(float).tolist() == [[1, 0.5], [-1, 1.5]]


def test_status_line():
    text = (ROOT / "libptwm" / "FORMAT.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("Status: ")] == [text.splitlines()[2]]
    assert text.splitlines()[2].startswith(("Status: candidate for 1.0", "Status: frozen"))
