"""What is known of a tensor, to the public and inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ptwm._dtypes import BY_CODE, Dtype, spelling
from ptwm._library import ffi, lib

_NO_DTYPE, _NO_SEGMENT = lib.PTWM_DTYPE_NONE, lib.PTWM_NONE


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of a file.

    Attributes
    ----------
    name
        Its name. Entries compare by it alone.
    dtype
        Its data type as .safetensors files spell it ("BF16"), None if the file gives none.
    shape
        Its shape in elements, None without a dtype.
    nbytes, compressed_nbytes
        Its size in memory, and its share of the file, in bytes.
    """

    name: str
    dtype: str | None = field(default=None, compare=False)
    shape: tuple[int, ...] | None = field(default=None, compare=False)
    nbytes: int | None = field(default=None, compare=False)
    compressed_nbytes: int | None = field(default=None, compare=False)


class Record(NamedTuple):
    """What the manifest says about a tensor. A tuple, as it is made anew for each access."""

    number: int
    name: str
    code: int
    shape: tuple[int, ...] | None
    nbytes: int
    stored_nbytes: int
    segment: int | None
    segment_offset: int
    hash: int | None

    @classmethod
    def read(cls, number: int, info: Any) -> Record:
        """From a `struct ptwm_tensor_info *` that the library filled."""
        code, segment = info.dtype, info.segment
        has_segment = segment != _NO_SEGMENT
        return cls(
            number,
            ffi.unpack(info.name, info.name_nbytes).decode("utf-8"),
            code,
            None if code == _NO_DTYPE else tuple(ffi.unpack(info.shape, info.n_dims)) if info.n_dims else (),
            info.nbytes,
            info.stored_nbytes,
            segment if has_segment else None,
            info.segment_offset if has_segment else 0,
            info.hash if info.has_hash else None,
        )

    def entry(self) -> TensorEntry:
        return TensorEntry(self.name, spelling(self.code), self.shape, self.nbytes, self.stored_nbytes)

    def typed(self) -> tuple[Dtype, tuple[int, ...]]:
        """Its dtype and shape. TypeError if it has none, or one that this version does not know."""
        if self.shape is None:
            raise TypeError(f"tensor {self.name!r} has no dtype and shape: use get_bytes")
        if self.code not in BY_CODE:
            raise TypeError(f"tensor {self.name!r} has a dtype (code {self.code}) that is not known: use get_bytes")
        return BY_CODE[self.code], self.shape


@dataclass(slots=True)
class Part:
    """Elements first .. first + count - 1 of a tensor (None: all), to be decoded at `pointer`."""

    record: Record
    pointer: Any
    nbytes: int
    first: int = 0
    count: int | None = None
