"""What goes in comes back, for every dtype, shape, chunk size and method, and no method beats the chosen one."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from conftest import PACKED, SCALAR_TYPES, weights
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ptwm._packing import pack
from ptwm.random_access import TensorIndex
from ptwm.sharding import Method, Writer, compress_ptwm_blob

BITS = {name: np.dtype(scalar_type).itemsize * 8 for name, scalar_type in SCALAR_TYPES.items()}
BITS |= {**PACKED, "C32": 32}
FLOATS = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32, "F64": np.float64}
# Stored as bytes for want of chains of their own; the choice among codecs is not tuned to what these bytes are like.
NO_CHAINS = {"I4", "U4", "I2", "U2", "I1", "U1"}
FORCED = [method for method in Method if method != Method.MICROSCALE]

# Chunk sizes, and numbers of elements at the borders of the rest packing's blocks, of lanes and of chunks.
CHUNKS = [4096, 4097, 5000, 8192, 65536, None]
BORDERS = [0, 1, 2, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 16383, 16384, 16385, 20000]


def special_values(name: str) -> bytes:
    """NaNs with payloads, infinities, zeros of both signs, subnormals and extremes of a float type."""
    bits = BITS[name]
    element = f"<u{bits // 8}"
    signs = np.array([0, 1 << (bits - 1)], np.uint64)
    exponents = {"BF16": 8, "F16": 5, "F32": 8, "F64": 11}[name]
    mantissa = bits - 1 - exponents
    infinity = ((1 << exponents) - 1) << mantissa
    magnitudes = [
        0,
        1,
        (1 << mantissa) - 1,
        1 << mantissa,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity + (1 << (mantissa - 1)),
    ]
    magnitudes += [infinity + (1 << mantissa) - 1]
    values = (np.array(magnitudes, np.uint64)[:, None] | signs).reshape(-1)
    return values.astype(element).tobytes()


def content(kind: str, nbytes: int, dtype: str, seed: int) -> bytes:
    """nbytes bytes of a kind."""
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.bytes(nbytes)
    if kind == "constant":
        return bytes([seed % 256]) * nbytes
    if kind == "all bytes":
        return (bytes(range(256)) * (nbytes // 256 + 1))[:nbytes]
    if kind == "sparse":
        return (rng.integers(0, 256, nbytes, np.uint8) * (rng.random(nbytes) < 0.05)).astype(np.uint8).tobytes()
    if kind == "specials" and dtype in FLOATS:
        pool = np.frombuffer(special_values(dtype), f"V{BITS[dtype] // 8}")
        return rng.choice(pool, nbytes // pool.itemsize).tobytes()
    if kind == "repeated":
        row = rng.bytes(96)
        return (row * (nbytes // len(row) + 1))[:nbytes]
    values = rng.standard_normal(nbytes // 2 + 1) * rng.choice([0.01, 1, 30])  # weights, or specials of other types
    weights = values.astype(FLOATS.get(dtype, np.float16))
    return (weights.tobytes() * (nbytes // weights.nbytes + 1))[:nbytes]


KINDS = ["random", "constant", "all bytes", "sparse", "specials", "repeated", "weights"]


@st.composite
def tensors(draw):
    """(raw, dtype, shape) of any dtype, with 0, 1, odd and border-line dimensions."""
    dtype = draw(st.sampled_from(sorted(BITS)))
    count = draw(st.sampled_from(BORDERS) | st.integers(0, 3000))
    count -= count % (8 // np.gcd(8, BITS[dtype]))
    shapes = [(count,), (1, count), (count, 1), (0, count), (count, 0, 3)]
    shapes += [(count // d, d) for d in (3, 7, 64, 128, 384) if count % d == 0 and count]
    shapes += [()] if count == 1 else []
    shape = draw(st.sampled_from(shapes))
    nbytes = int(np.prod(shape)) * BITS[dtype] // 8
    return content(draw(st.sampled_from(KINDS)), nbytes, dtype, draw(st.integers(0, 1000))), dtype, shape


def round_trip(raw: bytes, dtype: str | None, shape: tuple[int, ...] | None, **options) -> int:
    """Sends a tensor through a blob; returns the blob's length."""
    blob = compress_ptwm_blob([("t", raw, dtype, shape)], **options)
    with TensorIndex.from_buffer(blob) as index:
        assert index.get_bytes("t", check="full") == raw
        assert index.entry("t").shape == (None if dtype is None else shape)
        index.verify()
    return len(blob)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tensors(), st.sampled_from(list(Method)), st.sampled_from(CHUNKS), st.booleans(), st.booleans())
def test_any_tensor(tensor, method, chunk, emit_payload_hash, emit_plane_crc):
    raw, dtype, shape = tensor
    round_trip(
        raw, dtype, shape, method_hint=method, streaming_chunk=chunk, emit_payload_hash=emit_payload_hash,
        emit_plane_crc=emit_plane_crc,
    )  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tensors(), st.sampled_from(CHUNKS))
def test_the_chosen_method_is_the_best(tensor, chunk):
    raw, dtype, shape = tensor
    assume(dtype not in NO_CHAINS)
    forced = [round_trip(raw, dtype, shape, method_hint=method, streaming_chunk=chunk) for method in FORCED]
    assert round_trip(raw, dtype, shape, streaming_chunk=chunk) <= min(forced) * 1.001 + 64


@pytest.mark.parametrize("dtype", sorted(FLOATS))
@pytest.mark.parametrize("method", list(Method))
def test_special_values(dtype, method):
    raw = special_values(dtype) * 300
    round_trip(raw, dtype, (len(raw) * 8 // BITS[dtype],), method_hint=method)


@pytest.mark.parametrize("dtype", [None, "U8", "BF16", "F8_E4M3", "F4", "F32", "I64"])
def test_every_length_up_to_600_bytes(dtype):
    rng = np.random.default_rng(7)
    step = 1 if dtype is None else max(1, BITS[dtype] // 8)
    for nbytes in range(0, 601, step):
        raw = rng.bytes(nbytes) if nbytes % 2 else (rng.standard_normal(nbytes) * 20).astype(np.int8).tobytes()
        shape = None if dtype is None else (nbytes * 8 // BITS[dtype],)
        round_trip(raw, dtype, shape)


def test_every_length_with_every_method():
    """All sizes 0 .. 600 in one file for each method: they also share segments."""
    rng = np.random.default_rng(8)
    named = {str(n): rng.integers(0, 1 + n % 60, n, np.uint8).tobytes() for n in range(601)}
    for method in Method:
        blob = compress_ptwm_blob([(name, raw, None, None) for name, raw in named.items()], method_hint=method)
        with TensorIndex.from_buffer(blob) as index:
            assert {name: index.get_bytes(name, check="full") for name in index} == named


def test_random_bytes_do_not_grow(tmp_path):
    raw = np.random.default_rng(9).bytes(4 << 20)
    for dtype, bits in (("U8", 8), ("BF16", 16), ("F32", 32), ("F8_E4M3", 8), ("I64", 64)):
        assert round_trip(raw, dtype, (len(raw) * 8 // bits,)) <= len(raw) * 1.0005, dtype


@pytest.mark.parametrize("shape", [(6_400_003 * 4,), (160_001, 160)])
def test_much_of_what_is_packed_in_three_bytes(shape):
    # Enough that the chain is chosen by pieces, whose lengths have to be whole elements too.
    values = (weights(shape) * 40).astype(ml_dtypes.float6_e3m2fn)
    raw = pack(values.reshape(-1).view(np.uint8), 6).tobytes()
    assert len(raw) >= 4 << 20
    with TensorIndex.from_buffer(compress_ptwm_blob([("t", raw, "F6_E3M2", shape)])) as index:
        assert index.describe("t")["chain"] == "Chain.bytes(3)"
        assert index.get_bytes("t", check="full") == raw


def test_what_repeats_takes_little():
    row = np.random.default_rng(10).standard_normal(1024).astype(ml_dtypes.bfloat16)
    same_rows = np.tile(row, (4096, 1))
    assert round_trip(same_rows.tobytes(), "BF16", same_rows.shape) < same_rows.nbytes * 0.002
    assert round_trip(bytes(8 << 20), "F32", (2 << 20,)) < 2000
    assert round_trip(np.arange(1 << 20).tobytes(), "I64", (1 << 20,)) < (8 << 20) * 0.01


def test_a_chunk_size_bounds_the_encoders_memory(tmp_path):
    """Compressing takes memory for a window of chunks, not for the tensor."""
    raw = tmp_path / "raw"
    np.random.default_rng(11).standard_normal(160 << 20 >> 2, np.float32).tofile(raw)
    program = """
import mmap, sys, threading, time
from ptwm.sharding import Writer
file = open(sys.argv[1], "rb")
raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
def anonymous():
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1]) << 10
before, peak = anonymous(), 0
stop = threading.Event()
def watch():
    global peak
    while not stop.is_set():
        peak = max(peak, anonymous())
        time.sleep(0.002)
thread = threading.Thread(target=watch)
thread.start()
with Writer(sys.argv[2], threads=2, streaming_chunk=int(sys.argv[3])) as writer:
    writer.add("t", raw, "F32", (len(raw) // 4096, 1024))
stop.set()
thread.join()
print(peak - before)
"""
    for chunk in (4096, 1 << 20, 16 << 20):
        command = [sys.executable, "-c", program, str(raw), str(tmp_path / "a.ptwm"), str(chunk)]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        assert result.returncode == 0 and int(result.stdout) < 256 << 20, chunk
    with TensorIndex(tmp_path / "a.ptwm") as index:
        assert index.get_bytes("t") == raw.read_bytes()


def test_writer_and_blob_agree(tmp_path):
    raw = np.random.default_rng(12).standard_normal((200, 640)).astype(np.float32)
    with Writer(tmp_path / "a.ptwm", threads=2) as writer:
        writer.add("t", raw, raw.dtype, raw.shape)
    blob = compress_ptwm_blob([("t", raw, "F32", raw.shape)], threads=1)
    assert (tmp_path / "a.ptwm").read_bytes() == blob


@pytest.mark.parametrize("n", [1100, 2048])
def test_masks_are_small(n):
    """Of one chain there is nothing to choose, but whether zstd is of use is asked all the same: from pieces, if there is much."""
    mask = np.tri(n, dtype=bool)
    blob = compress_ptwm_blob([("mask", mask.tobytes(), "BOOL", mask.shape)])
    assert len(blob) < mask.nbytes // 200
    assert np.array_equal(TensorIndex.from_buffer(blob).get_array("mask"), mask)
