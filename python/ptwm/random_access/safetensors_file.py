"""SafetensorsIndex: a .safetensors file, read as a .ptwm file is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ptwm._dtypes import resolve, swapped_nbytes
from ptwm._files import ReadableFile
from ptwm._library import ffi
from ptwm._memory import Borrowed
from ptwm._safetensors import SafetensorsError, read_header
from ptwm.random_access.describe import describe_record, describe_segment
from ptwm.random_access.file import check_backend
from ptwm.random_access.index import TensorIndex, check_flags
from ptwm.random_access.records import Part, Record

if TYPE_CHECKING:
    from typing_extensions import Self

    from ptwm.random_access.file import FileIndex

# Parts of a tensor that lie closer together are read at once: about what a disk reads ahead anyway.
_READ_NBYTES = 64 << 10


class _Source(Protocol):
    nbytes: int

    def read_into(self, pointer: Any, offset: int, nbytes: int) -> None: ...

    def close(self) -> None: ...


class _Buffer:
    """A file that is in memory."""

    def __init__(self, data: Any) -> None:
        self._data = Borrowed(data)
        self.nbytes = self._data.nbytes

    def read_into(self, pointer: Any, offset: int, nbytes: int) -> None:
        ffi.memmove(pointer, self._data.pointer + offset, nbytes)

    def close(self) -> None:
        del self._data


class SafetensorsIndex(TensorIndex):
    """A .safetensors file; see `TensorIndex`.

    Both backends read the file piece by piece, so that a file that is shortened meanwhile is an error in both. There
    are no checksums to check. SafetensorsError if the file is malformed.
    """

    def __init__(self, path: str | os.PathLike[str], *, backend: str = "mmap", threads: int | None = None) -> None:
        check_backend(backend)
        self._start(ReadableFile(path), Path(path), threads)

    @classmethod
    def _of_buffer(cls, data: Any, threads: int | None) -> Self:
        self = cls.__new__(cls)
        self._start(_Buffer(data), Path("<memory>"), threads)
        return self

    def _start(self, file: _Source, path: Path, threads: int | None) -> None:
        self._set_up(path, os.fspath(path), threads)
        self._file = file
        self._bytes_read = 0
        try:
            raw, header = read_header(self._read, file.nbytes)
        except SafetensorsError as error:
            file.close()
            raise SafetensorsError(f"{path}: {error}") from None
        except BaseException:
            file.close()
            raise
        data_offset = 8 + len(raw)
        self._metadata = header.metadata or {}
        self._by_name = {
            tensor.name: Record(
                number=number,
                name=tensor.name,
                code=resolve(tensor.dtype)[0].code,
                shape=tensor.shape,
                nbytes=tensor.nbytes,
                stored_nbytes=tensor.nbytes,
                segment=None,
                segment_offset=data_offset + tensor.begin,
                hash=None,
            )
            for number, tensor in enumerate(header.tensors)
        }

    def _read(self, offset: int, nbytes: int) -> bytes:
        content = ffi.new("char[]", nbytes)
        self._read_into(content, offset, nbytes)
        return bytes(ffi.buffer(content, nbytes))

    def _read_into(self, pointer: Any, offset: int, nbytes: int) -> None:
        self._file.read_into(pointer, offset, nbytes)
        self._bytes_read += nbytes

    def close(self) -> None:
        if self._gate.close():
            self._file.close()

    @property
    def bytes_read(self) -> int:
        with self._gate:
            return self._bytes_read

    def metadata(self) -> dict[str, Any]:
        with self._gate:
            return dict(self._metadata)

    @property
    def _source(self) -> dict[str, Any] | None:
        return None

    def verify(self, threads: int | None = None) -> None:
        """Does nothing: what can be wrong with such a file was checked when it was opened."""
        with self._gate:
            pass

    def describe(self, name: str) -> dict[str, Any]:
        with self._gate:
            return {**describe_record(self._find(name)), **describe_segment(), "segment_offset": None}

    def __len__(self) -> int:
        return len(self._by_name)

    # --------------------------------------------------------------- inside the gate: the callers have entered it

    def _has(self, name: str) -> bool:
        return name in self._by_name

    def _find(self, name: str) -> Record:
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name is a str, not {type(name).__name__}")
        if name not in self._by_name:
            raise KeyError(f"{self._path}: no tensor is named {name!r}")
        return self._by_name[name]

    def _records(self) -> Iterator[Record]:
        return iter(self._by_name.values())

    def _decode(self, parts: Sequence[Part], check: str, native: bool = False) -> None:
        check_flags(check)
        for part in parts:
            if part.nbytes == 0:
                continue
            dtype, _ = part.record.typed()
            self._read_into(part.pointer, part.record.segment_offset + part.first * dtype.bits // 8, part.nbytes)
            width = swapped_nbytes(dtype)
            if native and sys.byteorder == "big" and width > 1:
                import numpy

                numpy.frombuffer(ffi.buffer(part.pointer, part.nbytes), f"u{width}").byteswap(inplace=True)

    def _chunk_nbytes(self, record: Record) -> int:
        return _READ_NBYTES

    def _share_bytes(self, one: Record, other: Record) -> bool:
        return False

    def _file_of(self, name: str) -> FileIndex:
        raise TypeError(f"{self._path}: a .safetensors file has no encoded tensors to copy: add them instead")
