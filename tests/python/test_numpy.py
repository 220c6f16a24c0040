"""ptwm.numpy: the shape of safetensors.numpy, and what it does better."""

import os

import ml_dtypes
import numpy as np
import pytest
from conftest import PACKED, SCALAR_TYPES, same_bits, weights

import ptwm
import ptwm.numpy
import ptwm.sharding
from ptwm import FormatError, TensorIndex, _dtypes
from ptwm._packing import pack, unpack


def assert_same(loaded, arrays):
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert same_bits(loaded[name], array), name


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_files(saved, arrays, backend):
    assert_same(ptwm.numpy.load_file(saved, backend=backend), arrays)
    assert_same(ptwm.numpy.load_file(str(saved), backend, check="full", threads=1), arrays)


def test_bytes(arrays, saved):
    data = ptwm.numpy.save(arrays, {"made by": "tests"})
    assert type(data) is bytes
    assert data == saved.read_bytes()
    for kind in (bytes, bytearray, memoryview):
        assert_same(ptwm.numpy.load(kind(data)), arrays)


@pytest.mark.parametrize("name", SCALAR_TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (4,), (0, 5), (12, 1), (3, 4, 5, 2), (64, 512)])
def test_every_dtype_and_shape(name, shape):
    array = weights(shape, SCALAR_TYPES[name])
    if array.size * PACKED.get(name, 8) % 8:
        with pytest.raises(ValueError, match="whole bytes"):
            ptwm.numpy.save({"x": array})
        return
    loaded = ptwm.numpy.load(ptwm.numpy.save({"x": array}))["x"]
    assert same_bits(loaded, array)
    assert loaded.flags.writeable and loaded.flags.c_contiguous
    with TensorIndex.from_buffer(ptwm.numpy.save({"x": array})) as index:
        assert index.entry("x").dtype == name


def test_every_bit_pattern():
    patterns = np.arange(65536, dtype=np.uint16)
    arrays = {
        "bf16": patterns.view(ml_dtypes.bfloat16),
        "f16": patterns.view(np.float16),
        "f32": (patterns.astype(np.uint32) * 65537).view(np.float32),
        **{name: np.arange(256, dtype=np.uint8).view(kind) for name, kind in SCALAR_TYPES.items() if name[:2] == "F8"},
    }
    assert_same(ptwm.numpy.load(ptwm.numpy.save(arrays)), arrays)


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_memory_layouts_are_stored_by_value(name):
    array = weights((8, 12), SCALAR_TYPES[name])
    layouts = {
        "c": array,
        "fortran": np.asfortranarray(array),
        "transposed": array.T,
        "strided": array[::2, 1::2],
        "reversed": array[::-1, ::-1],
        "broadcast": np.broadcast_to(array[0], (4, 12)),
    }
    expected = {key: np.ascontiguousarray(value) for key, value in layouts.items()}
    assert_same(ptwm.numpy.load(ptwm.numpy.save(layouts)), expected)


@pytest.mark.parametrize(
    "name", [name for name in SCALAR_TYPES if name not in (*PACKED, "C32", "BC32") and not name.startswith("F8")]
)
def test_byte_orders_are_stored_by_value(name):
    array = weights((5, 6), SCALAR_TYPES[name])
    swapped = array.byteswap().view(array.dtype.newbyteorder("S"))
    for pick in (lambda x: x, lambda x: x.T, lambda x: x[::2, 1], lambda x: x[1:2, 0].reshape(())):
        loaded = ptwm.numpy.load(ptwm.numpy.save({"native": pick(array), "swapped": pick(swapped)}))
        assert same_bits(loaded["native"], np.array(pick(array), order="C"))
        assert same_bits(loaded["swapped"], loaded["native"])


def test_input_is_left_alone():
    array = weights((6, 7)).astype(">f4")
    before = array.tobytes()
    ptwm.numpy.save({"x": array, "y": array.T})
    assert array.tobytes() == before


def test_scalars_and_subclasses():
    matrix = np.arange(6, dtype=np.float32).view(np.ndarray).reshape(2, 3)
    loaded = ptwm.numpy.load(ptwm.numpy.save({"s": np.float32(2.5), "m": matrix.view(np.matrix)}))
    assert loaded["s"].shape == () and loaded["s"] == np.float32(2.5)
    assert type(loaded["m"]) is np.ndarray and same_bits(loaded["m"], matrix)


@pytest.mark.parametrize("bits", [1, 2, 4, 6])
def test_packing(bits):
    per_group = {1: 8, 2: 4, 4: 2, 6: 4}[bits]
    for groups in (0, 1, 2, 7, 300):
        elements = np.random.default_rng(groups).integers(0, 1 << bits, groups * per_group).astype(np.uint8)
        packed = pack(elements, bits)
        assert packed.size == elements.size * bits // 8
        stream = sum(int(value) << (bits * n) for n, value in enumerate(elements))
        assert packed.tobytes() == stream.to_bytes(packed.size, "little")
        assert (unpack(packed, bits) == elements).all()
    for size in (1, 3):
        with pytest.raises(ValueError, match="whole bytes"):
            pack(np.zeros(size, np.uint8), bits)


def test_packed_elements_must_be_whole_bytes():
    for kind in map(SCALAR_TYPES.get, PACKED):
        with pytest.raises(ValueError, match="'x'.*whole bytes"):
            ptwm.numpy.save({"x": np.zeros((3, 1), kind)})
        assert ptwm.numpy.load(ptwm.numpy.save({"x": np.zeros((3, 0), kind)}))["x"].shape == (3, 0)


def test_metadata(tmp_path):
    ptwm.numpy.save_file({}, tmp_path / "m", metadata={"b": "1", "a": "2"})
    with TensorIndex(tmp_path / "m") as index:
        assert list(index.metadata().items()) == [("a", "2"), ("b", "1")]
    assert ptwm.numpy.save({}, {"b": "1", "a": "2"}) == ptwm.numpy.save({}, {"a": "2", "b": "1"})
    assert ptwm.numpy.load(ptwm.numpy.save({})) == {}


def test_equal_arrays_are_stored_once_but_loaded_apart(tmp_path):
    array = weights((512, 512))
    ptwm.numpy.save_file({"a": array}, tmp_path / "one")
    ptwm.numpy.save_file({"a": array, "b": array, "c": array.copy()}, tmp_path / "three")
    assert (tmp_path / "three").stat().st_size < (tmp_path / "one").stat().st_size + 300
    loaded = ptwm.numpy.load_file(tmp_path / "three")
    loaded["a"][:] = 0
    assert same_bits(loaded["b"], array) and same_bits(loaded["c"], array)


@pytest.mark.parametrize("value", [[1.0], 1.0, "text", None, b"bytes", memoryview(b"x")])
def test_what_is_no_array(value, tmp_path):
    with pytest.raises(TypeError, match="'x'"):
        ptwm.numpy.save_file({"a": np.zeros(1), "x": value}, tmp_path / "m")
    with pytest.raises(TypeError):
        ptwm.numpy.save({"x": value})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"]),
        np.array([None]),
        np.array(["2020"], "datetime64[Y]"),
        np.zeros(1, "f4,f4"),
        np.zeros(1, np.longdouble),
    ],
    ids=lambda array: str(array.dtype),
)
def test_dtypes_that_the_format_lacks(array, tmp_path):
    with pytest.raises(ValueError, match="dtype"):
        ptwm.numpy.save_file({"x": array}, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_names(tmp_path):
    with pytest.raises(TypeError):
        ptwm.numpy.save({5: np.zeros(1)})
    with pytest.raises(ValueError):
        ptwm.numpy.save({"\ud800": np.zeros(1)})


def test_dtype_that_numpy_lacks(monkeypatch):
    blob = ptwm.sharding.compress_ptwm_blob([("ok", b"1", "U8", (1,)), ("c", b"1234", "C32", (1,))])
    monkeypatch.setattr("ptwm._memory.numpy_dtype", lambda dtype: None if dtype.name == "C32" else np.dtype(np.uint8))
    with pytest.raises(TypeError, match="'c'.*C32.*get_bytes"):
        ptwm.numpy.load(blob)


def test_dtype_that_needs_a_newer_ml_dtypes(monkeypatch):
    blob = ptwm.sharding.compress_ptwm_blob([("c", b"1234", "BC32", (1,))])
    _dtypes.numpy_dtype.cache_clear()
    monkeypatch.delattr(ml_dtypes, "bcomplex32", raising=False)
    with pytest.raises(ImportError, match="BC32.*bcomplex32.*pip install --upgrade ml_dtypes"):
        ptwm.numpy.load(blob)


def test_shapes_that_numpy_cannot_hold():
    for shape in ((0, 2**62, 2**62), (1,) * 100):
        blob = ptwm.sharding.compress_ptwm_blob([("x", bytes(int(0 not in shape)), "U8", shape)])
        with pytest.raises(ptwm.PtwmError, match="'x'.*numpy"):
            ptwm.numpy.load(blob)


def test_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        ptwm.numpy.load_file(tmp_path / "missing")
    with pytest.raises(FormatError):
        ptwm.numpy.load(b"nothing")
    with pytest.raises(ValueError, match="backend"):
        ptwm.numpy.load_file(tmp_path / "missing", backend="x")


def test_safetensors_gives_the_same(arrays, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors cannot be imported")
    ours_alone = ("F4", "F6_", "F8", "BF16", "C128", "large.bf16", *PACKED, "C32", "BC32")
    known = {name: array for name, array in arrays.items() if not name.startswith(ours_alone)}
    theirs = safetensors.load(safetensors.save(known))
    ours = ptwm.numpy.load(ptwm.numpy.save(known))
    assert theirs.keys() == ours.keys()
    assert all(same_bits(theirs[name], ours[name]) for name in ours)
