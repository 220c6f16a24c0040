"""FileIndex: one .ptwm file, read by the library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptwm import _cbor
from ptwm._callbacks import Callback
from ptwm._callbacks import source as callback_source
from ptwm._errors import exception, new_error
from ptwm._library import ffi, lib, new_struct, path_to_c, thread_count, to_bytes, zstd_provider
from ptwm._memory import Borrowed
from ptwm.random_access.describe import describe_record, describe_segment
from ptwm.random_access.index import TensorIndex, check_flags
from ptwm.random_access.records import Part, Record

if TYPE_CHECKING:
    from typing_extensions import Self

BACKENDS = {"mmap": lib.PTWM_BACKEND_MMAP, "pread": lib.PTWM_BACKEND_PREAD}


def check_backend(backend: str) -> None:
    """ValueError unless there is such a `backend`."""
    if backend not in BACKENDS:
        raise ValueError(f"backend is 'mmap' or 'pread', not {backend!r}")


class FileIndex(TensorIndex):
    """One .ptwm file; see `TensorIndex`."""

    _callback: Callback | None = None
    _needs: Any = None  # what the reader reads from, if it is not a path
    _n_tensors = 0

    def __init__(self, path: str | os.PathLike[str], *, backend: str = "mmap", threads: int | None = None) -> None:
        check_backend(backend)
        self._start(Path(path), os.fspath(path), threads, lib.ptwm_reader_open_path, path_to_c(path), backend=backend)

    @classmethod
    def _of_buffer(cls, data: Any, threads: int | None) -> Self:
        self = cls.__new__(cls)
        self._needs = source = Borrowed(data)
        self._start(Path("<memory>"), None, threads, lib.ptwm_reader_open_memory, source.pointer, source.nbytes)
        return self

    @classmethod
    def _of_reader(cls, read: Callable[[int, int], Any], total_nbytes: int, threads: int | None) -> Self:
        if not 0 <= total_nbytes < 2**63:
            raise ValueError(f"total_nbytes is 0 .. 2^63 - 1, not {total_nbytes}")
        self = cls.__new__(cls)
        self._callback = Callback(read)
        self._needs = source = callback_source(self._callback, total_nbytes)
        self._start(Path("<reader>"), None, threads, lib.ptwm_reader_open_source, source)
        return self

    def _start(
        self,
        path: Path,
        shown_path: str | None,
        threads: int | None,
        open_reader: Callable[..., int],
        *args: Any,
        backend: str = "mmap",
    ) -> None:
        self._set_up(path, shown_path or str(path), threads)
        self._shown_path = shown_path
        options = new_struct("ptwm_reader_options")
        options.backend = BACKENDS[backend]
        options.zstd = zstd_provider
        handle, error = ffi.new("struct ptwm_reader **"), new_error()
        self._check(open_reader(*args, options, handle, error), error)
        # The destructor holds what the reader needs, for as long as the reader lives.
        needs = (self._needs, self._callback, zstd_provider)
        self._reader = ffi.gc(handle[0], lambda reader, _needs=needs: lib.ptwm_reader_close(reader))
        self._info = new_struct("ptwm_reader_info")
        lib.ptwm_reader_get_info(self._reader, self._info)
        self._n_tensors = int(self._info.n_tensors)

    # ------------------------------------------------------------------------------------------------ the file

    def close(self) -> None:
        if self._gate.close():
            ffi.release(self._reader)
            self._needs = None

    @property
    def bytes_read(self) -> int:
        with self._gate:
            return int(lib.ptwm_reader_bytes_read(self._reader))

    def metadata(self) -> dict[str, Any]:
        with self._gate:
            return self._decode_cbor(self._info.metadata, self._info.metadata_nbytes, "metadata") or {}

    @property
    def _source(self) -> dict[str, Any] | None:
        with self._gate:
            return self._decode_cbor(self._info.source, self._info.source_nbytes, "source")

    def _decode_cbor(self, pointer: Any, nbytes: int, what: str) -> dict[str, Any] | None:
        if pointer == ffi.NULL:
            return None
        return _cbor.decode(to_bytes(pointer, nbytes), f"{self._path}: {what}")

    def verify(self, threads: int | None = None) -> None:
        n_threads = self._threads if threads is None else thread_count(threads)
        error = new_error()
        with self._gate:
            self._check(lib.ptwm_reader_verify(self._reader, n_threads, error), error)

    def describe(self, name: str) -> dict[str, Any]:
        with self._gate:
            record = self._find(name)
            with self._layout(record.segment) as layout:
                return {**describe_record(record), **describe_segment(layout, self._segment(record.segment))}

    def __len__(self) -> int:
        return self._n_tensors

    # --------------------------------------------------------------- inside the gate: the callers have entered it

    def _has(self, name: str) -> bool:
        return self._number(name) is not None

    def _find(self, name: str) -> Record:
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name is a str, not {type(name).__name__}")
        number = self._number(name)
        if number is None:
            raise KeyError(f"{self._path}: no tensor is named {name!r}")
        return self._record(number)

    def _number(self, name: str) -> int | None:
        try:
            encoded = name.encode("utf-8")
        except UnicodeEncodeError:
            return None  # lone surrogates: no name in a file has any
        number = ffi.new("uint64_t *")
        status = lib.ptwm_reader_find(self._reader, encoded, len(encoded), number)
        return int(number[0]) if status == lib.PTWM_OK else None

    def _record(self, number: int, info: Any = None) -> Record:
        info = new_struct("ptwm_tensor_info") if info is None else info
        status = lib.ptwm_reader_get_tensor(self._reader, number, info)
        if status != lib.PTWM_OK:
            raise exception(status, path=self._shown_path)
        return Record.read(number, info)

    def _records(self) -> Iterator[Record]:
        info = new_struct("ptwm_tensor_info")
        return (self._record(number, info) for number in range(self._n_tensors))

    def _decode(self, parts: Sequence[Part], check: str, native: bool = False) -> None:
        options = new_struct("ptwm_decode_options")
        options.flags = check_flags(check) | (lib.PTWM_DECODE_NATIVE_ORDER if native else 0)
        options.threads = self._threads
        requests = ffi.new("struct ptwm_request[]", len(parts))
        for request, part in zip(requests, parts):
            request.tensor = part.record.number
            request.first_element = part.first
            request.n_elements = lib.PTWM_NONE if part.count is None else part.count
            request.buffer = part.pointer
            request.buffer_nbytes = part.nbytes
        error = new_error()
        self._check(lib.ptwm_reader_decode(self._reader, requests, len(parts), options, error), error)

    def _chunk_nbytes(self, record: Record) -> int:
        with self._layout(record.segment) as layout:
            if layout is None:
                return max(record.nbytes, 1)
            info = new_struct("ptwm_layout_info")
            lib.ptwm_layout_get_info(layout, info)
            return int(info.chunk_nbytes)

    def _segment(self, number: int | None) -> Any:
        """A `struct ptwm_segment_info *`, None without a segment."""
        if number is None:
            return None
        info = new_struct("ptwm_segment_info")
        lib.ptwm_reader_get_segment(self._reader, number, info)
        return info

    def _share_bytes(self, one: Record, other: Record) -> bool:
        place = (one.segment, one.segment_offset, one.nbytes)
        return one.segment is not None and place == (other.segment, other.segment_offset, other.nbytes)

    def _file_of(self, name: str) -> FileIndex:
        return self

    def _check(self, status: int, error: Any) -> None:
        if status == lib.PTWM_ERR_IO and self._callback is not None:
            self._callback.reraise()
        if status != lib.PTWM_OK:
            raise exception(status, error, path=self._shown_path, name_of=self._name_of)

    def _name_of(self, number: int) -> str | None:
        return self._record(number).name if number < self._n_tensors else None

    @contextmanager
    def _layout(self, segment: int | None) -> Iterator[Any]:
        """A segment's `struct ptwm_layout *`, which must not outlive the reader; None without a segment."""
        if segment is None:
            yield None
            return
        layout, error = ffi.new("struct ptwm_layout **"), new_error()
        self._check(lib.ptwm_reader_get_layout(self._reader, segment, layout, error), error)
        try:
            yield layout[0]
        finally:
            lib.ptwm_layout_free(layout[0])
