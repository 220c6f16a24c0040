"""The table of data types: every spelling, and what is refused."""

import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import SCALAR_TYPES

from ptwm import _dtypes
from ptwm._library import ffi, lib

HEADER = Path(__file__).resolve().parents[2] / "libptwm" / "ptwm.h"


def test_table_is_the_librarys():
    enum = HEADER.read_text(encoding="utf-8").split("enum ptwm_dtype {")[1].split("}")[0]
    codes = {name: int(code) for name, code in re.findall(r"PTWM_DTYPE_(\w+) = (\d+)", enum) if code != "0"}
    assert {dtype.name: dtype.code for dtype in _dtypes.DTYPES} == codes
    for dtype in _dtypes.DTYPES:
        assert ffi.string(lib.ptwm_dtype_name(dtype.code)).decode() == dtype.name
        assert lib.ptwm_dtype_bits(dtype.code) == dtype.bits > 0


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_numpy_spellings(name):
    scalar_type = SCALAR_TYPES[name]
    for spelling in (name, scalar_type, np.dtype(scalar_type), np.dtype(scalar_type).name):
        dtype, elements = _dtypes.resolve(spelling)
        assert (dtype.name, elements) == (name, 1)
    assert _dtypes.numpy_dtype(dtype) == np.dtype(scalar_type)


def test_torch_spellings(torch):
    for dtype in _dtypes.DTYPES:
        if dtype.torch_name is None or not hasattr(torch, dtype.torch_name):
            continue
        element = getattr(torch, dtype.torch_name)
        pair = 2 if dtype.name == "F4" else 1
        for spelling in (element, dtype.torch_name, str(element)):
            assert _dtypes.resolve(spelling) == (dtype, pair)
        assert _dtypes.torch_dtype(dtype) == element
        assert dtype.bits * pair == element.itemsize * 8
    assert _dtypes.resolve(torch.half)[0].name == "F16"


def test_every_torch_dtype_of_the_format_is_known(torch):
    refused = set()
    for dtype in {value for value in vars(torch).values() if isinstance(value, torch.dtype)}:
        try:
            _dtypes.resolve(dtype)
        except ValueError:
            refused.add(str(dtype))
    # bits*, quantized types and the integers below a byte are no dtypes of the format.
    assert all(re.match(r"torch\.(bits|q?u?int[1-7]|qint|quint|bit$|bcomplex)", name) for name in refused), refused


@pytest.mark.parametrize("alias", ["longlong", "intc", "ubyte", "single", "double", "half", "csingle"])
def test_numpy_aliases_are_their_sized_types(alias):
    assert _dtypes.resolve(getattr(np, alias))[0].numpy_name == np.dtype(alias).name


def test_byte_order_does_not_name_another_dtype():
    assert _dtypes.resolve(np.dtype(">f4"))[0].name == "F32"
    assert _dtypes.is_big_endian(np.dtype(">f4"))
    assert not _dtypes.is_big_endian(np.dtype("<f4"))
    assert not _dtypes.is_big_endian(np.dtype("u1"))


@pytest.mark.parametrize(
    "spec",
    ["", "float", "f4", "<f4", "bf16", "FLOAT32", "F32 ", "float128", "object", "F32\0", "\ud800", "torch.", "int3"],
)
def test_unknown_names(spec):
    with pytest.raises(ValueError, match="unknown dtype"):
        _dtypes.resolve(spec)


@pytest.mark.parametrize(
    "spec",
    [
        np.dtype(object),
        np.dtype("S4"),
        np.dtype("datetime64[ns]"),
        np.dtype([("a", "f4")]),
        np.dtype(("f4", 2)),
        np.str_,
    ],
)
def test_numpy_dtypes_that_the_format_lacks(spec):
    with pytest.raises(ValueError, match="unknown dtype"):
        _dtypes.resolve(spec)


@pytest.mark.parametrize("spec", [None, 5, 1.5, b"F32", float, int, object(), ["F32"], type])
def test_what_is_no_dtype(spec):
    with pytest.raises(TypeError, match="dtype"):
        _dtypes.resolve(spec)


def test_shapes():
    assert _dtypes.logical_shape([]) == ()
    assert _dtypes.logical_shape((np.int64(3), True, 2**63 - 1)) == (3, 1, 2**63 - 1)
    assert _dtypes.logical_shape((3, 4), 2) == (3, 8)
    for bad in ((-1,), (2**63,), (0, -5)):
        with pytest.raises(ValueError, match="dimension"):
            _dtypes.logical_shape(bad)
    with pytest.raises(ValueError, match="dimension"):
        _dtypes.logical_shape((2**62,), 2)
    with pytest.raises(ValueError, match="last dimension"):
        _dtypes.logical_shape((), 2)
    for bad in ("12", 5, (1.5,), ("3",)):
        with pytest.raises(TypeError):
            _dtypes.logical_shape(bad)


def test_missing_ml_dtypes_is_named(monkeypatch):
    _dtypes.numpy_dtype.cache_clear()
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match="ml_dtypes"):
        _dtypes.numpy_dtype(_dtypes.resolve("BF16")[0])
    _dtypes.numpy_dtype.cache_clear()


def test_old_ml_dtypes_is_named(monkeypatch):
    _dtypes.numpy_dtype.cache_clear()
    monkeypatch.delattr(ml_dtypes, "float4_e2m1fn")
    with pytest.raises(ImportError, match="ml_dtypes.*float4_e2m1fn"):
        _dtypes.numpy_dtype(_dtypes.resolve("F4")[0])
    _dtypes.numpy_dtype.cache_clear()
