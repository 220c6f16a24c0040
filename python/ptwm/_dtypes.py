"""Data types: one table for all their spellings."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index as to_int
from typing import TYPE_CHECKING, Any

from ptwm._library import lib

if TYPE_CHECKING:
    import numpy as np
    import torch

MAX_DIMENSION = 2**63 - 1


@dataclass(frozen=True)
class Dtype:
    """A data type of the format.

    Attributes
    ----------
    code
        Its number in files.
    name
        Its name in files, such as "BF16": that of .safetensors files where those have the type.
    bits
        Bits per element; fewer than 8 are packed in files.
    numpy_name
        Its name in numpy or ml_dtypes; None if neither has it.
    torch_name
        Its name in torch; None if torch lacks it.
    torch_pair
        Whether an element of the torch type holds two of this one.
    """

    code: int
    name: str
    bits: int
    numpy_name: str | None
    torch_name: str | None
    torch_pair: bool = False

    @property
    def is_packed(self) -> bool:
        """Whether elements are smaller than a byte."""
        return self.bits % 8 != 0


# safetensors, numpy or ml_dtypes, torch. Codes and widths are the library's.
_NAMES: tuple[tuple[str, str | None, str | None], ...] = (
    ("BOOL", "bool", "bool"),
    ("U8", "uint8", "uint8"),
    ("I8", "int8", "int8"),
    ("I16", "int16", "int16"),
    ("U16", "uint16", "uint16"),
    ("I32", "int32", "int32"),
    ("U32", "uint32", "uint32"),
    ("I64", "int64", "int64"),
    ("U64", "uint64", "uint64"),
    ("F16", "float16", "float16"),
    ("BF16", "bfloat16", "bfloat16"),
    ("F32", "float32", "float32"),
    ("F64", "float64", "float64"),
    ("F8_E4M3", "float8_e4m3fn", "float8_e4m3fn"),
    ("F8_E5M2", "float8_e5m2", "float8_e5m2"),
    ("F8_E4M3FNUZ", "float8_e4m3fnuz", "float8_e4m3fnuz"),
    ("F8_E5M2FNUZ", "float8_e5m2fnuz", "float8_e5m2fnuz"),
    ("F8_E8M0", "float8_e8m0fnu", "float8_e8m0fnu"),
    ("F4", "float4_e2m1fn", "float4_e2m1fn_x2"),
    ("F6_E2M3", "float6_e2m3fn", None),
    ("F6_E3M2", "float6_e3m2fn", None),
    ("C32", "complex32", "complex32"),
    ("C64", "complex64", "complex64"),
    ("C128", "complex128", "complex128"),
    # torch's own int4 and its like are names without arithmetic, and not packed: no pendants of these.
    ("I4", "int4", None),
    ("U4", "uint4", None),
    ("I2", "int2", None),
    ("U2", "uint2", None),
    ("I1", "int1", None),
    ("U1", "uint1", None),
    ("F8_E4M3_IEEE", "float8_e4m3", None),
    ("F8_E3M4", "float8_e3m4", None),
    ("F8_E4M3B11FNUZ", "float8_e4m3b11fnuz", None),
    ("BC32", "bcomplex32", "bcomplex32"),
    ("F8_E5M3FNU", "float8_e5m3fnu", None),
)
_PAIRS = {"float4_e2m1fn_x2"}


def _row(name: str, numpy_name: str | None, torch_name: str | None) -> Dtype:
    code = lib.ptwm_dtype_from_name(name.encode())
    return Dtype(code, name, lib.ptwm_dtype_bits(code), numpy_name, torch_name, torch_name in _PAIRS)


DTYPES: tuple[Dtype, ...] = tuple(_row(*names) for names in _NAMES)
BY_CODE: dict[int, Dtype] = {dtype.code: dtype for dtype in DTYPES}
_BY_NAME: dict[str, Dtype] = {
    name: dtype for dtype in DTYPES for name in (dtype.name, dtype.numpy_name, dtype.torch_name) if name is not None
}
_BY_TORCH_NAME: dict[str, Dtype] = {dtype.torch_name: dtype for dtype in DTYPES if dtype.torch_name is not None}


def spelling(code: int) -> str | None:
    """How a dtype's code is shown: its safetensors name, None for no dtype, and something readable for others."""
    if code == lib.PTWM_DTYPE_NONE:
        return None
    return BY_CODE[code].name if code in BY_CODE else f"UNKNOWN_{code}"


def _spelled(spec: Any) -> tuple[str, dict[str, Dtype]]:
    """The name of a dtype that is given as a name, a torch.dtype, a numpy dtype or a numpy scalar type; where it means
    something, for torch's int4 and numpy's, which is ml_dtypes', share a name and nothing else."""
    if isinstance(spec, str):
        return spec.removeprefix("torch."), _BY_NAME
    # Who holds an object of these has imported its module.
    torch_module, numpy_module = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch_module is not None and isinstance(spec, torch_module.dtype):
        return str(spec).removeprefix("torch."), _BY_TORCH_NAME
    if numpy_module is not None:
        if isinstance(spec, type) and issubclass(spec, numpy_module.generic):
            return str(numpy_module.dtype(spec).name), _BY_NAME
        if isinstance(spec, numpy_module.dtype):
            return str(spec.name) if spec.subdtype is None else str(spec), _BY_NAME
    raise TypeError(f"a dtype is a torch.dtype, a numpy dtype or scalar type, or a name, not {type(spec).__name__}")


def resolve(spec: Any) -> tuple[Dtype, int]:
    """The data type that any spelling means, and how many elements of it one of the spelling's elements holds.

    The second is 1 but for torch's packed pairs, as an object or by name. TypeError if spec is nothing that could name
    a dtype, ValueError if it names none that the format has. The byte order of a numpy dtype does not matter here.
    """
    name, dtypes = _spelled(spec)
    dtype = dtypes.get(name)
    if dtype is None:
        raise ValueError(f"unknown dtype {name!r}")
    return dtype, 2 if name in _PAIRS else 1


def logical_shape(shape: Iterable[int], elements_per_item: int = 1) -> tuple[int, ...]:
    """A shape in elements, from one in items of so many elements. ValueError for negative or huge dimensions."""
    if isinstance(shape, (str, bytes)):
        raise TypeError(f"a shape is a sequence of integers, not {type(shape).__name__}")
    dims = [to_int(dim) for dim in shape]
    if elements_per_item != 1:
        if not dims:
            raise ValueError("a packed tensor needs a last dimension, but its shape is ()")
        dims[-1] *= elements_per_item
    for dim in dims:
        if not 0 <= dim <= MAX_DIMENSION:
            raise ValueError(f"dimension {dim} of shape {tuple(dims)} is not in 0 .. 2^63 - 1")
    return tuple(dims)


def is_big_endian(dtype: np.dtype[Any]) -> bool:
    """Whether a numpy dtype's elements are stored with the most significant byte first."""
    return dtype.byteorder == ">" or (dtype.byteorder == "=" and sys.byteorder == "big")


def swapped_nbytes(dtype: Dtype) -> int:
    """The bytes of what is reversed between byte orders: an element, or half of a complex one."""
    return max(dtype.bits // (16 if dtype.name.lstrip("B").startswith("C") else 8), 1)


@functools.cache
def numpy_dtype(dtype: Dtype) -> np.dtype[Any] | None:
    """The numpy dtype, in native byte order, or None if numpy lacks it.

    ImportError if it is one of the ml_dtypes package and that one is missing or too old.
    """
    import numpy

    if dtype.numpy_name is None:
        return None
    if dtype.numpy_name == "bool" or hasattr(numpy, dtype.numpy_name):  # numpy.bool is missing from 1.24 to 1.26
        return numpy.dtype(dtype.numpy_name)
    try:
        import ml_dtypes

        scalar_type: type[np.generic] = getattr(ml_dtypes, dtype.numpy_name)
        return numpy.dtype(scalar_type)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"numpy arrays of dtype {dtype.name} need the ml_dtypes package (with {dtype.numpy_name}): "
            "pip install --upgrade ml_dtypes",
            name="ml_dtypes",
        ) from error


def torch_dtype(dtype: Dtype) -> torch.dtype | None:
    """The torch dtype, or None if the installed torch lacks it."""
    import torch

    found = None if dtype.torch_name is None else getattr(torch, dtype.torch_name, None)
    return found if isinstance(found, torch.dtype) else None
