"""Files that were damaged or made to do damage: whatever they hold, there is an error of the promised kind, or data."""

import math
import struct

import cbor2
import ml_dtypes
import numpy as np
import pytest
from conftest import weights
from hypothesis import given, settings
from hypothesis import strategies as st

import ptwm
import ptwm.numpy
from ptwm import FormatError, PtwmError, TensorIndex
from ptwm._dtypes import BY_CODE
from ptwm._library import lib
from ptwm.sharding import compress_ptwm_blob

FOOTER = struct.Struct("<QQQII8s")  # FORMAT.md, section 2


def small_file():
    """A file with all kinds of planes."""
    tensors = {
        "bf16": weights((30, 128), ml_dtypes.bfloat16),
        "f32": weights((16, 40)),
        "i16": np.arange(900, dtype=np.int16),
        "text": np.frombuffer(b"abcab" * 300, np.uint8),
    }
    return ptwm.numpy.save(tensors, metadata={"key": "value"})


SMALL = small_file()


def exercise(data):
    """Does everything that reads. True if nothing is wrong with the file; only promised errors may come out."""
    is_good = True
    try:
        with TensorIndex.from_buffer(data, threads=2) as index:
            for name in index:
                for fetch in (index.get_bytes, index.get_array):
                    try:
                        fetch(name, max_nbytes=1 << 24)
                    except (PtwmError, TypeError, MemoryError):
                        is_good = False
                try:
                    index.describe(name)
                    if index.entry(name).shape:
                        index.get_slice(name, max_nbytes=1 << 24)[-1:]
                except (PtwmError, TypeError):
                    is_good = False
            index.metadata()
            index.verify()
    except PtwmError as error:
        assert str(error)
        is_good = False
    return is_good


def rebuild(body, manifest):
    """A file of segments and a manifest, with a footer that fits."""
    n_body, n_manifest = len(body), len(manifest)
    crc = lib.ptwm_crc32c(0, manifest, n_manifest)
    footer = FOOTER.pack(n_body, n_manifest, n_body + n_manifest + FOOTER.size, crc, 1, b"\x1a\n\rmwtp\xd7")
    return body + manifest + footer


def take_apart(data):
    """The segments with the header, and the manifest."""
    offset, nbytes, *_ = FOOTER.unpack(data[-FOOTER.size :])
    return data[:offset], data[offset : offset + nbytes]


def test_parts_make_the_whole():
    assert rebuild(*take_apart(SMALL)) == SMALL
    assert exercise(SMALL)


def test_manifest_is_the_cbor_that_cbor2_writes():
    manifest = take_apart(SMALL)[1]
    content = cbor2.loads(manifest)
    assert cbor2.dumps(content, canonical=True) == manifest
    assert [tensor[0] for tensor in content[2]] == ["bf16", "f32", "i16", "text"]
    assert cbor2.loads(content[4]) == {"key": "value"}


def expand(content):
    """What FORMAT.md, section 3, says that a manifest's tensors are: name, dtype, shape, segment, offset, length, hash."""
    name, dtype, shape, place = b"", 0, (), (0, 0)
    for tensor in content[2]:
        name = name[: tensor.get(6, 0)] + tensor[0].encode()
        dtype, shape = tensor.get(1, dtype), tuple(tensor.get(2, shape))
        segment = tensor.get(3, place[0])
        offset = tensor.get(4, 0 if 3 in tensor else place[1])
        length = tensor.get(7, math.prod(shape) * BY_CODE[dtype].bits // 8 if dtype else None)
        if length is None:
            length = content[1][segment][2] - offset
        if length > 0:
            end = (segment, offset + length)
            end = (segment + 1, 0) if end[1] == content[1][segment][2] else end
            place = max(place, end)
        where = (segment, offset) if length else (None, None)
        yield (
            name.decode(),
            BY_CODE[dtype].name if dtype else None,
            shape if dtype else None,
            *where,
            length,
            tensor.get(5),
        )


def test_manifest_says_what_the_entries_are():
    data = bytes(range(256)) * 600
    tensors = [
        ("blocks.0.weight", data[:4096], "F32", (32, 32)),
        ("blocks.0.bias", data[:128], "F32", (32,)),
        ("blocks.1.weight", data[4:4100], "F32", (32, 32)),
        ("blocks.1.weight again", data[4:4100], "F32", (32, 32)),
        ("blocks.1.w\N{LATIN SMALL LETTER E WITH ACUTE}", data[8:72], "F16", (32,)),
        ("blocks.1.w\N{LATIN SMALL LETTER E WITH GRAVE}", data[9:73], "F16", (32,)),
        ("", b"", "F16", (32, 0)),
        ("raw", data[:7], None, None),
        ("raw and empty", b"", None, None),
        ("n" * 300, data[5:21], "I64", (2,)),
        ("n" * 301, data[6:22], "I64", (2,)),
        ("large", data, "U8", (len(data),)),
        ("nothing", b"", "U8", (0,)),
        ("scalar", data[:8], "I64", ()),
    ]
    for emit in (True, False):
        blob = compress_ptwm_blob(tensors, emit_payload_hash=emit)
        found = list(expand(cbor2.loads(take_apart(blob)[1])))
        with TensorIndex.from_buffer(blob) as index:
            for name, dtype, shape, segment, offset, length, payload_hash in found:
                described = index.describe(name)
                assert described["name"] == name and described["dtype"] == dtype and described["nbytes"] == length
                assert described["shape"] == (None if shape is None else list(shape))
                assert described["segment"] == segment and (segment is None or described["segment_offset"] == offset)
                assert described["hash"] == payload_hash
            assert [f[:3] for f in found] == [(name, dtype, shape) for name, _, dtype, shape in tensors]
            for name, raw, _, _ in tensors:
                assert index.get_bytes(name) == raw


def test_manifest_takes_little():
    blob = compress_ptwm_blob([(f"model.layers.{i}.norm.weight", bytes(64), "F32", (16,)) for i in range(1000)])
    assert len(take_apart(blob)[1]) < 1000 * (9 + 24)
    blob = compress_ptwm_blob(
        [(f"layer.{i:04}", bytes(64), "F32", (16,)) for i in range(1000)], emit_payload_hash=False
    )
    assert len(take_apart(blob)[1]) < 1000 * 9


def test_any_single_damage_is_noticed():
    for position in range(len(SMALL)):
        damaged = bytearray(SMALL)
        damaged[position] ^= 1 << position % 8
        assert not exercise(bytes(damaged)), position


def draw_damage(source, data):
    """Data with a few short stretches replaced by others, perhaps of other lengths."""
    data = bytearray(data)
    for _ in range(source.draw(st.integers(1, 3))):
        first = source.draw(st.integers(0, len(data)))
        last = source.draw(st.integers(first, min(len(data), first + 8)))
        data[first:last] = source.draw(st.binary(max_size=8))
    return bytes(data)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_files(source):
    exercise(draw_damage(source, SMALL))


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_damaged_manifests_with_a_good_checksum(source):
    body, manifest = take_apart(SMALL)
    exercise(rebuild(body, draw_damage(source, manifest)))


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_manifests_with_other_numbers(source):
    body, manifest = take_apart(SMALL)
    content = cbor2.loads(manifest)
    number = st.sampled_from([0, 1, 2, 255, 256, 65535, 2**20, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
    for _ in range(source.draw(st.integers(1, 3))):
        change = source.draw(st.sampled_from(["segment", "tensor"]))
        if change == "segment":
            segment = source.draw(st.sampled_from(content[1]))
            segment[source.draw(st.integers(0, 3))] = source.draw(number)
        else:
            tensor = source.draw(st.sampled_from(content[2]))
            key = source.draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 9]))
            tensor[key] = source.draw(st.one_of(number, st.lists(number, max_size=4), st.none(), st.text(max_size=3)))
    exercise(rebuild(body, cbor2.dumps(content, canonical=True)))


def tails():
    """Where each segment's tail is in SMALL."""
    position = 16
    found = []
    for stored, tail, _, flags in cbor2.loads(take_apart(SMALL)[1])[1]:
        position = -(-position // 64) * 64 if flags & 2 else position
        found.append((position + stored - tail, position + stored))
        position += stored
    return found


@given(st.data())
@settings(max_examples=600, deadline=None)
def test_damaged_tails_with_a_good_checksum(source):
    body, manifest = take_apart(SMALL)
    first, last = source.draw(st.sampled_from(tails()))
    tail = bytearray(body[first : last - 4])
    for _ in range(source.draw(st.integers(1, 3))):
        tail[source.draw(st.integers(0, len(tail) - 1))] = source.draw(st.integers(0, 255))
    crc = struct.pack("<I", lib.ptwm_crc32c(0, bytes(tail), len(tail)))
    exercise(rebuild(body[:first] + bytes(tail) + crc + body[last:], manifest))


@pytest.mark.parametrize("method", list(ptwm.Method))
def test_damaged_planes_without_checksums(method):
    rng = np.random.default_rng(method)
    data = (rng.standard_normal(6000) * 0.02).astype(ml_dtypes.bfloat16)
    blob = compress_ptwm_blob(
        [("x", data, data.dtype, data.shape)], method_hint=method, emit_plane_crc=False, emit_payload_hash=False
    )
    for _ in range(1500):
        damaged = bytearray(blob)
        for position in rng.integers(16, len(blob) - 300, rng.integers(1, 5)):
            damaged[position] = rng.integers(0, 256)
        exercise(bytes(damaged))


@given(st.binary(max_size=300))
def test_any_bytes(data):
    with pytest.raises(FormatError):
        TensorIndex.from_buffer(data)


def file_of(segments, tensors, body=b"", **others):
    header = bytes.fromhex("d77074776d0d0a1a") + struct.pack("<II", 1, 0)
    content = {1: segments, 2: tensors, **{int(key[1:]): value for key, value in others.items()}}
    return rebuild(header + body, cbor2.dumps(content, canonical=True))


@pytest.mark.parametrize("nbytes", [2**40, 2**50, 2**62, 2**63 - 1])
def test_sizes_that_no_machine_has(nbytes):
    data = file_of([[60, 20, nbytes, 0]], [{0: "x", 1: 2, 2: [nbytes], 3: 0}], bytes(60))
    try:
        index = TensorIndex.from_buffer(data)
    except FormatError:
        return
    assert index.entry("x").nbytes == nbytes
    for fetch in (index.get_bytes, index.get_array, lambda name: index.get_slice(name)[:-1]):
        with pytest.raises((PtwmError, MemoryError)):
            fetch("x")
    for fetch in (index.get_bytes, index.get_array):
        with pytest.raises(PtwmError, match="max_nbytes"):
            fetch("x", max_nbytes=1 << 30)
    with pytest.raises(ptwm.PtwmError):
        index.verify()


@pytest.mark.parametrize(
    "tensors",
    [
        [{0: "a", 7: 0}, {0: "a", 7: 0}],
        [{0: "a", 7: 0}, {0: "", 6: 1, 7: 0}],
        [{0: "a", 6: 1, 7: 0}],
        [{0: "ab", 7: 0}, {0: "", 6: 3, 7: 0}],
        [{0: "\u00e9", 7: 0}, {0: "", 6: 1, 7: 0}],
        [{0: "n" * 300, 7: 0}, {0: "", 6: 256, 7: 0}],
        [{0: "x"}],
        [{0: "x", 7: 1}],
        [{0: "x", 4: 0, 7: 0}],
        [{0: "x", 5: 1, 7: 0}],
        [{0: "x", 1: 2, 2: [0], 7: 1}],
        [{0: b"bytes"}],
        [{}],
        [{0: "x", 1: 2}],
        [{0: "x", 2: [0]}],
        [{0: "x", 3: 0}],
        [{0: "x", 1: 2, 2: [1]}],
        [{0: "x", 1: 2, 2: [2**63, 0]}],
        [{0: "x", 1: 2, 2: [-1]}],
    ],
    ids=repr,
)
def test_tensors_that_make_no_sense(tensors):
    with pytest.raises(FormatError):
        TensorIndex.from_buffer(file_of([], tensors))


def test_required_feature_is_named():
    with pytest.raises(FormatError, match="time-travel"):
        TensorIndex.from_buffer(file_of([], [], _0=["time-travel"]))


def test_unknown_keys_are_skipped():
    with TensorIndex.from_buffer(file_of([], [{0: "x", 7: 0, 77: [1, {2: 3}]}], _99="ignored")) as index:
        assert index.get_bytes("x") == b""


def test_unknown_dtype_still_gives_bytes():
    with TensorIndex.from_buffer(compress_ptwm_blob([("x", b"12345678", "F32", (2,))])) as good:
        good.verify()
    body, manifest = take_apart(compress_ptwm_blob([("x", b"12345678", "F32", (2,))]))
    content = cbor2.loads(manifest)
    content[2][0][1] = 200
    with TensorIndex.from_buffer(rebuild(body, cbor2.dumps(content, canonical=True))) as index:
        assert index.get_bytes("x") == b"12345678"
        assert index.entry("x").shape == (2,)
        assert "200" in index.entry("x").dtype
        for fetch in (index.get_array, index.get_slice):
            with pytest.raises(TypeError, match=r"200.*get_bytes"):
                fetch("x")


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\xff",
        cbor2.dumps([1]),
        cbor2.dumps("text"),
        cbor2.dumps({1: 2}),
        cbor2.dumps({"a": {1: 2}}),
        cbor2.dumps({"a": 2**64}),
        b"\xa1\x61a\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xa1\x61a\x7b\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\xbf\xff",
        b"\xa1\x61a\xd8\x23\x61(",
        b"\xa1\x61a" + b"\x81" * 100_000,
        b"\xa1\x61a\xf7",
        b"\xa1\x61\xff\x00",
        b"\xa0\x00",
        b"\xa1\x61a",
    ],
    ids=lambda metadata: metadata[:12].hex(),
)
def test_metadata_that_is_malformed(metadata):
    try:
        index = TensorIndex.from_buffer(file_of([], [], _4=metadata, _5=metadata))
    except FormatError:
        return
    with pytest.raises(FormatError, match="metadata"):
        index.metadata()
    with pytest.raises(FormatError, match="source"):
        _ = index._source


@given(st.binary(max_size=60))
def test_metadata_of_any_bytes(metadata):
    try:
        content = TensorIndex.from_buffer(file_of([], [], _4=metadata)).metadata()
    except FormatError:
        return
    assert isinstance(content, dict)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), plain))
def test_metadata_round_trip(metadata):
    with TensorIndex.from_buffer(compress_ptwm_blob([], metadata=metadata)) as index:
        assert index.metadata() == metadata
