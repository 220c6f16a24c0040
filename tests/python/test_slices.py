"""Slices of tensors: what numpy gives, from the chunks that are touched and no others."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from conftest import PACKED, SCALAR_TYPES, same_bits, weights
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ptwm
import ptwm.numpy
from ptwm import Method, TensorIndex, safe_open
from ptwm.random_access.selection import n_outer_axes, plan, select

KEYS = [
    np.s_[...],
    np.s_[:],
    np.s_[0],
    np.s_[-1],
    np.s_[3:9],
    np.s_[9:3],
    np.s_[-5:],
    np.s_[::2],
    np.s_[::-1],
    np.s_[10:2:-3],
    np.s_[2:11:4, 1],
    np.s_[5, 2],
    np.s_[5, 2, 1],
    np.s_[5, 2, 1, ...],
    np.s_[5, 1:3, ::-1],
    np.s_[..., 0],
    np.s_[..., 1:3],
    np.s_[None],
    np.s_[None, 4, None, 1:2],
    np.s_[4, ..., None],
    np.s_[:, 1:, None, 2],
    np.s_[100:],
    np.s_[:0, :],
    np.s_[()],
    np.s_[1:2, ..., -1],
    np.s_[np.int64(3)],
    np.s_[np.array(3)],
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
@pytest.mark.parametrize(
    "scalar_type", [np.float32, np.uint8, ml_dtypes.bfloat16, ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e3m2fn]
)
def test_slices(key, scalar_type):
    array = weights((13, 5, 4), scalar_type)
    with TensorIndex.from_buffer(ptwm.numpy.save({"before": array, "x": array[::-1].copy()})) as index:
        part, expected = index.get_slice("x")[key], array[::-1][key]
    assert type(part) is type(expected)
    assert same_bits(np.asarray(part), np.asarray(expected))


def test_slices_across_chunks(tmp_path):
    array = weights((257, 129), np.float32)
    with ptwm.Writer(tmp_path / "m", streaming_chunk=4096) as writer:
        writer.add("x", array, np.float32, array.shape)
    with TensorIndex(tmp_path / "m") as index:
        part = index.get_slice("x")
        assert part.get_shape() == [257, 129]
        assert part.get_dtype() == "F32"
        assert "F32" in repr(part)
        for first in range(0, 257, 19):
            for last in (first, first + 1, first + 8, 300):
                assert same_bits(part[first:last], array[first:last])
        assert same_bits(part[200:10:-7, 5:9], array[200:10:-7, 5:9].copy())


def test_slices_of_unusual_shapes(saved, arrays):
    with TensorIndex(saved) as index:
        scalar = index.get_slice("scalar")
        assert scalar[()] == arrays["scalar"][()]
        assert scalar[...].shape == ()
        assert scalar[None].shape == (1,)
        empty = index.get_slice("empty")
        assert empty[1:].shape == (2, 0, 4)
        assert empty[0, :, 1].shape == (0,)
        with pytest.raises(IndexError):
            empty[0, 0]


@pytest.mark.parametrize("key", [13, -14, (0, 5), (0, 0, 0, 0), (slice(0, 0), 9), (..., ...)])
def test_slices_out_of_bounds(key):
    array = weights((13, 5, 4))
    with pytest.raises(IndexError):
        array[key]
    with TensorIndex.from_buffer(ptwm.numpy.save({"x": array})) as index, pytest.raises(IndexError):
        index.get_slice("x")[key]


@pytest.mark.parametrize("key", ["a", 1.5, [0, 2], True, np.array([1, 2]), (0, [1]), object()])
def test_slices_of_other_kinds(key):
    with TensorIndex.from_buffer(ptwm.numpy.save({"x": weights((13, 5, 4))})) as index:
        with pytest.raises(TypeError):
            index.get_slice("x")[key]


def test_slices_own_their_memory():
    with TensorIndex.from_buffer(ptwm.numpy.save({"x": weights((64, 64))})) as index:
        column = index.get_slice("x")[:, 3]
        assert column.base is None
        part = index.get_slice("x")[1:3]
        part[:] = 1
        assert part.sum() == 128


def test_an_empty_list_is_an_empty_slice_as_in_safetensors():
    with TensorIndex.from_buffer(ptwm.numpy.save({"x": weights((13, 5, 4))})) as index:
        assert index.get_slice("x")[[]].shape == (0, 5, 4)


# -------------------------------------------------------------------------------------------- compared with numpy

dimensions = st.lists(st.integers(0, 9), max_size=4)
index_items = st.one_of(
    st.integers(-10, 10),
    st.slices(10),
    st.none(),
    st.just(...),
    st.builds(slice, *[st.none() | st.integers(-12, 12)] * 2),
)


@given(dimensions, st.lists(index_items, max_size=6), st.integers(1, 50))
@settings(max_examples=1500, deadline=None)
def test_selections_are_what_numpy_does(dims, items, gap):
    array = np.arange(np.prod(dims, dtype=int)).reshape(dims)
    try:
        expected = array[tuple(items)]
    except IndexError:
        with pytest.raises(IndexError):
            select(tuple(dims), tuple(items))
        return
    chosen = select(tuple(dims), tuple(items))
    assert chosen.is_empty == (expected.size == 0)
    if chosen.is_empty:
        return
    steps = plan(chosen, n_outer_axes(chosen, gap))
    flat = array.reshape(-1)
    parts = []
    decoded = set()
    for start in steps.starts:
        block = np.full(steps.block, -1)
        block.reshape(-1)[steps.first : steps.end] = flat[start + steps.first : start + steps.end]
        decoded |= set(range(start + steps.first, start + steps.end))
        parts.append(block[(*steps.inner, ...)])
    result = np.array(parts).reshape(tuple(map(len, chosen.axes)))[chosen.key]
    assert type(result) is type(expected)
    assert same_bits(np.asarray(result), np.asarray(expected))
    # Nothing that is decoded is farther than a gap from what is needed on both sides.
    needed = sorted(set(np.asarray(expected).reshape(-1).tolist()))
    for low, high in itertools.pairwise(needed):
        if high - low - 1 >= gap:
            assert not decoded & set(range(low + 1 + gap - 1, high - gap + 1))
    assert min(decoded) == needed[0] and max(decoded) == needed[-1]


@st.composite
def tensors_and_keys(draw):
    """A dtype, a shape of up to some 100 chunks, and an index that numpy takes for it."""
    name = draw(st.sampled_from(sorted(SCALAR_TYPES)))
    n_dims = draw(st.integers(1, 3))
    limit = {1: 60_000, 2: 500, 3: 60}[n_dims]
    shape = [draw(st.integers(1, limit)) for _ in range(n_dims)]
    bits = PACKED.get(name, 8)
    shape[-1] += -shape[-1] % (8 // np.gcd(8, bits))
    key = []
    for dim in shape[: draw(st.integers(0, n_dims))]:
        step = st.sampled_from([None, 1, 2, 7, 97, 5000, -1, -3, -1000])
        ends = st.none() | st.integers(-dim - 3, dim + 3)
        key.append(draw(st.one_of(st.integers(-dim, dim - 1), st.builds(slice, ends, ends, step))))
    return name, tuple(shape), tuple(key), draw(st.sampled_from([4096, 5000, 65536]))


def touched_chunks(shape, key, bits, chunk_nbytes):
    """How many chunks hold a selected element, found out the slow way."""
    positions = np.arange(np.prod(shape, dtype=int)).reshape(shape)[key]
    first = np.asarray(positions).reshape(-1) * bits // 8
    last = (np.asarray(positions).reshape(-1) * bits + bits - 1) // 8
    return len(np.union1d(first // chunk_nbytes, last // chunk_nbytes))


@given(tensors_and_keys())
@settings(max_examples=300, deadline=None)
@example(("F32", (8, 5000), (slice(None), 7), 4096))
@example(("BOOL", (33, 35, 57), (slice(None, None, -3),), 4096))  # chunks of two rows, which are less than 4096 bytes
@example(("F4", (31, 9000), (slice(None, None, -3), slice(5, 8)), 4096))
def test_slices_decode_the_touched_chunks_and_no_others(tmp_path_factory, example):
    name, shape, key, chunk = example
    array = weights(shape, SCALAR_TYPES[name], seed=len(key))
    path = tmp_path_factory.getbasetemp() / "slices.ptwm"
    raw = ptwm.numpy.save({"x": array})
    with TensorIndex.from_buffer(raw) as source, ptwm.Writer(path, streaming_chunk=chunk) as writer:
        # Stored as it is: then a chunk takes as much of the file as of the tensor.
        writer.add("x", source.get_bytes("x"), name, shape, method=Method.IDENTITY)
    bits = PACKED.get(name, array.dtype.itemsize * 8)
    with TensorIndex(path, backend="pread", threads=1) as index:
        before = index.bytes_read
        how = index.describe("x")
        tail = index.bytes_read - before
        before = index.bytes_read
        part = index.get_slice("x")[key]
        read = index.bytes_read - before
    assert same_bits(np.asarray(part), np.asarray(array[key]))
    n_chunks = touched_chunks(shape, key, bits, how["chunk_nbytes"])
    # The tail is read to find the chunks, by the plan and by the decoder; a chunk has a short head.
    assert read <= 2 * tail + n_chunks * (how["chunk_nbytes"] + 64)


def test_a_column_of_long_rows_reads_a_chunk_a_row(tmp_path):
    array = weights((16, 300_000), np.float32)
    with ptwm.Writer(tmp_path / "m", streaming_chunk=65536) as writer:
        writer.add("x", array, np.float32, array.shape)
    for backend in ("mmap", "pread"):
        with safe_open(tmp_path / "m", "np", backend=backend) as file:
            opened = file._index.bytes_read
            assert same_bits(file.get_slice("x")[::3, 1000], array[::3, 1000].copy())
            assert file._index.bytes_read - opened < 12 * 65536


@pytest.mark.parametrize("name", ["float32", "bfloat16", "uint8", "complex64"])
def test_torch_slices_of_distant_parts(torch, tmp_path, name):
    array = weights((6, 40, 2000), getattr(np, name, None) or getattr(ml_dtypes, name))
    with ptwm.Writer(tmp_path / "m", streaming_chunk=4096) as writer:
        writer.add("x", array, array.dtype, array.shape)
    with safe_open(tmp_path / "m", "pt") as file:
        for key in (np.s_[::5, 3, 1::999], np.s_[:, ::-13, 5:7], np.s_[1:3, None, ..., -1], np.s_[4], np.s_[...]):
            part = file.get_slice("x")[key]
            expected = np.array(array[key], order="C")
            assert tuple(part.shape) == expected.shape and part.is_contiguous()
            assert part.reshape(-1).view(torch.uint8).numpy().tobytes() == expected.tobytes()


def test_max_nbytes_bounds_what_is_held():
    array = weights((16, 300_000), np.float32)
    data = ptwm.numpy.save({"x": array})
    with TensorIndex.from_buffer(data) as index:
        # 16 distant elements, each with what lies around it, and not the 19 MB between the first and the last.
        part = index.get_slice("x", max_nbytes=4096)[:, 5:7]
        assert same_bits(part, array[:, 5:7].copy())
        with pytest.raises(ptwm.PtwmError, match="max_nbytes"):
            index.get_slice("x", max_nbytes=100)[:, 5:7]
    # Many parts to a chunk, which is decoded once for all of them.
    array = weights((400, 20_000), np.float32)
    with TensorIndex.from_buffer(ptwm.numpy.save({"x": array})) as index:
        opened = index.bytes_read
        assert same_bits(index.get_slice("x", max_nbytes=400 * 64)[:, 5:7], array[:, 5:7].copy())
        assert index.bytes_read - opened < index.entry("x").compressed_nbytes * 1.01
