"""The .safetensors container: a strict reader, the canonical header, and what restores the original file.

A .safetensors file is a little-endian u64, a JSON header of that many bytes, and the tensors' bytes without a gap. This
module knows the container only; it leaves the tensors' contents alone and needs no package but the standard library.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import reprlib
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ptwm._errors import FormatError
from ptwm._files import atomic_output

# Bits per element of the data types that safetensors knows.
DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "I32": 32, "U32": 32, "I64": 64, "U64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F8_E8M0": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip

METADATA_KEY = "__metadata__"
MAX_HEADER_NBYTES = 100_000_000  # the official reader's limit
_MAX_DIMENSION = 2**63

_quote = reprlib.Repr()
_quote.maxstring = 100
quoted = _quote.repr  # a name as it may stand in a message: on one line, not endless, control characters escaped


class SafetensorsError(FormatError):
    """A .safetensors file is malformed, or a .ptwm file cannot be written as one."""


class Tensor(NamedTuple):
    """A header's record of one tensor. begin and end count from the first byte after the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.begin


class Header(NamedTuple):
    """A parsed header: its tensors in the order of their data, and `__metadata__` (None if absent or null)."""

    tensors: list[Tensor]
    metadata: dict[str, str] | None

    @property
    def data_nbytes(self) -> int:
        return self.tensors[-1].end if self.tensors else 0


# ---------------------------------------------------------------------------------------------------- reading a header


def parse_header(raw: bytes) -> Header:
    """Parse a header's bytes and check everything about it that its file's length does not decide.

    Tensors with equal offsets (empty ones) keep the header's order. Raises SafetensorsError.
    """
    try:
        root = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_unique_members,
            parse_int=_parse_int,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise SafetensorsError(f"the header is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise SafetensorsError(f"the header is not JSON: {error.msg} (character {error.pos})") from None
    except RecursionError:
        raise SafetensorsError("the header is nested too deeply") from None
    if not isinstance(root, dict):
        raise SafetensorsError("the header is not a JSON object")
    metadata = _parse_metadata(root.pop(METADATA_KEY, None))
    tensors = [_parse_tensor(name, record) for name, record in root.items()]
    tensors.sort(key=lambda tensor: (tensor.begin, tensor.end))
    _check_coverage(tensors)
    return Header(tensors, metadata)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        duplicate = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise SafetensorsError(f"the header has the key {quoted(duplicate)} twice")
    return members


def _parse_int(text: str) -> int | float:
    # No u64 has a sign or more than 20 digits. As floats such numbers are harmless in fields that are ignored, and
    # refused in all others; int() of a million digits would not be harmless.
    return float(text) if text[0] == "-" or len(text) > 20 else int(text)


def _refuse_constant(text: str) -> None:
    raise SafetensorsError(f"the header is not JSON: {text} is no JSON value")


def _parse_metadata(value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise SafetensorsError(f"{METADATA_KEY} is not an object")
    for key, text in value.items():
        if not isinstance(text, str):
            raise SafetensorsError(f"the metadata entry {quoted(key)} is not a string")
        if not (_is_unicode(key) and _is_unicode(text)):
            raise SafetensorsError(f"the metadata entry {quoted(key)} holds a lone surrogate")
    return value


def _parse_tensor(name: str, record: Any) -> Tensor:
    """Check one member of the header. Unknown fields are ignored, as the official reader does."""
    if not _is_unicode(name):
        raise SafetensorsError(f"the tensor name {quoted(name)} holds a lone surrogate")
    if not isinstance(record, dict):
        raise SafetensorsError(f"tensor {quoted(name)}: not an object")
    dtype, shape, offsets = (record.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise SafetensorsError(f"tensor {quoted(name)}: unknown dtype {quoted(dtype)}")
    if not (isinstance(shape, list) and all(type(n) is int and n < _MAX_DIMENSION for n in shape)):
        raise SafetensorsError(f"tensor {quoted(name)}: the shape is not a list of sizes")
    if not (isinstance(offsets, list) and len(offsets) == 2 and all(type(n) is int for n in offsets)):
        raise SafetensorsError(f"tensor {quoted(name)}: data_offsets is not a pair of integers")
    begin, end = offsets
    nbytes = tensor_nbytes(dtype, shape)
    if nbytes is None or end - begin != nbytes:
        raise SafetensorsError(
            f"tensor {quoted(name)}: data_offsets {quoted(offsets)} do not fit {dtype} {quoted(shape)}"
        )
    return Tensor(name, dtype, tuple(shape), begin, end)


def tensor_nbytes(dtype: str, shape: Iterable[int]) -> int | None:
    """The bytes that shape x dtype takes; None if that is not a whole number of bytes or absurdly large."""
    dims = list(shape)
    if 0 in dims:
        return 0
    nbits = DTYPE_BITS[dtype]
    for n in dims:
        nbits *= n
        if nbits >= 2**66:  # stop here: the product of a million large dimensions takes minutes
            return None
    return None if nbits % 8 else nbits // 8


def _check_coverage(tensors: Iterable[Tensor]) -> None:
    position = 0
    for tensor in tensors:
        if tensor.begin != position:
            problem = "overlaps the tensor before" if tensor.begin < position else "leaves a hole before it"
            raise SafetensorsError(
                f"tensor {quoted(tensor.name)}: its data {problem} (begins at {tensor.begin}, expected {position})"
            )
        position = tensor.end


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


# ---------------------------------------------------------------------------------------------------- reading a file


_TOO_SHORT = "not a .safetensors file: shorter than 8 bytes"


def read_header(read: Callable[[int, int], bytes], file_nbytes: int) -> tuple[bytes, Header]:
    """The header of a file whose bytes read(offset, nbytes) gives: its own bytes, and parsed.

    Checks everything about the file but its tensors' contents. Raises SafetensorsError.
    """
    if file_nbytes < 8:
        raise SafetensorsError(_TOO_SHORT)
    nbytes = int.from_bytes(read(0, 8), "little")
    if nbytes > MAX_HEADER_NBYTES or nbytes > file_nbytes - 8:
        raise SafetensorsError("not a .safetensors file: its first 8 bytes are not the length of a header")
    raw = read(8, nbytes)
    header = parse_header(raw)
    present = file_nbytes - 8 - nbytes
    if present != header.data_nbytes:
        raise SafetensorsError(f"the header describes {header.data_nbytes} bytes of data, the file holds {present}")
    return raw, header


class SafetensorsFile:
    """A .safetensors file, mapped. A context manager.

    The file must not be shortened while it is open: reading a mapped page that is gone kills the process.
    Raises SafetensorsError when the file is malformed, OSError when it cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise self._error("not a regular file")
            if status.st_size < 8:  # what is empty cannot be mapped
                raise self._error(_TOO_SHORT)
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self._parse()
        except BaseException:
            self.close()
            raise

    def _parse(self) -> None:
        try:
            self.header_bytes, self.header = read_header(
                lambda offset, nbytes: self._map[offset : offset + nbytes], len(self._map)
            )
        except SafetensorsError as error:
            raise self._error(str(error)) from None
        self._data_offset = 8 + len(self.header_bytes)

    def _error(self, message: str) -> SafetensorsError:
        return SafetensorsError(f"{self.path}: {message}")

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors in the order of their data."""
        return self.header.tensors

    @property
    def metadata(self) -> dict[str, str] | None:
        return self.header.metadata

    @property
    def nbytes(self) -> int:
        """The file's length."""
        return len(self._map)

    def data(self, begin: int, end: int) -> memoryview:
        """Bytes begin .. end of the data, such as a tensor's, in the mapped file, not copied."""
        return memoryview(self._map)[self._data_offset + begin : self._data_offset + end]

    def source_entry(self) -> dict[str, Any] | None:
        """What a .ptwm has to remember so that this very file can be restored (FORMAT.md, section 9).

        None if its tensors and metadata are enough: then the same tensors make the same .ptwm, wherever they come from.
        """
        records = [(t.name, t.dtype, t.shape, t.nbytes) for t in self.tensors]
        if canonical_header(records, self.metadata) == self.header_bytes:
            return None
        return {"format": "safetensors", "header": self.header_bytes}

    def close(self) -> None:
        # A view that somebody still holds, be it an exception's traceback, keeps the map alive and is no error here.
        with contextlib.suppress(BufferError):
            self._map.close()

    def __enter__(self) -> SafetensorsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --------------------------------------------------------------------------------------------------------- writing


def canonical_header(
    tensors: Iterable[tuple[str, str, Sequence[int], int]], metadata: Mapping[str, str] | None
) -> bytes:
    """The canonical header (FORMAT.md, section 9) of (name, dtype, shape, nbytes) records in write order."""
    root: dict[str, Any] = {METADATA_KEY: dict(sorted(metadata.items()))} if metadata else {}
    position = 0
    for name, dtype, shape, nbytes in tensors:
        root[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, position + nbytes]}
        position += nbytes
    raw = json.dumps(root, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return raw + b" " * (-len(raw) % 8)


def write_file(path: str | os.PathLike[str], header: bytes, blocks: Iterable[bytes | memoryview]) -> int:
    """Write a .safetensors file atomically from its header and the tensors' bytes in order; returns its length."""
    with atomic_output(path) as file:
        nbytes = file.write(len(header).to_bytes(8, "little")) + file.write(header)
        for block in blocks:
            nbytes += file.write(block)
    return nbytes


# ------------------------------------------------------------------------------------------- restoring from a .ptwm


def restorable_header(index: Any) -> bytes:
    """The header of the .safetensors file that a TensorIndex came from; the canonical one if it came from none.

    Raises SafetensorsError when there is no such header: see FORMAT.md, section 9.
    """
    source = index._source or {}
    if source.get("format", "safetensors") != "safetensors":
        raise SafetensorsError(
            f"{index.path}: made from a file of the format {quoted(source['format'])}, not .safetensors"
        )
    if not source:
        return canonical_header(_canonical_records(index), _text_metadata(index))
    header = source.get("header")
    if not isinstance(header, bytes):
        raise SafetensorsError(f"{index.path}: the source's header is not a byte string")
    return header


def restorable_tensors(index: Any, header: bytes, complete: bool = True) -> list[Tensor]:
    """The tensors of a restorable_header in the order of their data, checked to be those of the index.

    If it is not to be `complete`, the index may have more of them.
    """
    try:
        tensors = parse_header(header).tensors
    except SafetensorsError as error:
        raise SafetensorsError(f"{index.path}: the source's header is malformed: {error}") from None
    entries = {entry.name: entry for entry in index.entries()}
    for tensor in tensors:
        entry = entries.pop(tensor.name, None)
        if entry is None:
            raise SafetensorsError(
                f"{index.path}: the source's header names {quoted(tensor.name)}, which the file lacks"
            )
        if (entry.dtype, tuple(entry.shape or ())) != (tensor.dtype, tensor.shape) or entry.nbytes != tensor.nbytes:
            raise SafetensorsError(f"{index.path}: the source's header contradicts the tensor {quoted(tensor.name)}")
    for name in entries if complete else ():
        raise SafetensorsError(f"{index.path}: the source's header lacks the tensor {quoted(name)}")
    return tensors


def _canonical_records(index: Any) -> list[tuple[str, str, Sequence[int], int]]:
    records = [(entry.name, entry.dtype, entry.shape, entry.nbytes) for entry in index.entries()]
    untyped = [quoted(name) for name, dtype, _, _ in records if dtype is None]
    if untyped:
        names = ", ".join(untyped[:3]) + (f" and {len(untyped) - 3} more" if len(untyped) > 3 else "")
        raise SafetensorsError(f"{index.path}: .safetensors cannot hold tensors without a dtype: {names}")
    for name, dtype, _, _ in records:
        if dtype not in DTYPE_BITS:
            raise SafetensorsError(f"{index.path}: .safetensors cannot hold {dtype}, the dtype of {quoted(name)}")
        if name == METADATA_KEY:
            raise SafetensorsError(f"{index.path}: .safetensors cannot hold a tensor with the name {METADATA_KEY}")
    return records


def _text_metadata(index: Any) -> Mapping[str, str] | None:
    metadata: Mapping[str, str] | None = index.metadata()
    for key, value in (metadata or {}).items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise SafetensorsError(f"{index.path}: .safetensors metadata is text; that of {quoted(key)} is not")
    return metadata
