"""TensorIndex: an open .ptwm file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptwm import _cbor
from ptwm._callbacks import Callback
from ptwm._callbacks import source as callback_source
from ptwm._dtypes import Dtype
from ptwm._errors import PtwmError, exception, new_error
from ptwm._gate import Gate
from ptwm._library import ffi, lib, new_struct, path_to_c, thread_count, to_bytes, zstd_provider
from ptwm._memory import Borrowed, FreshBytes, Memory, numpy_layout, to_device, torch_layout
from ptwm.random_access.describe import describe_record, describe_segment
from ptwm.random_access.records import Part, Record, TensorEntry
from ptwm.random_access.slices import TensorSlice
from ptwm.random_access.streaming import decode_ahead

if TYPE_CHECKING:
    import numpy as np
    import torch
    from typing_extensions import Self

_BACKENDS = {"mmap": lib.PTWM_BACKEND_MMAP, "pread": lib.PTWM_BACKEND_PREAD}
_CHECKS = {"none": lib.PTWM_DECODE_SKIP_CRC, "crc": 0, "full": lib.PTWM_DECODE_CHECK_HASH}


def check_flags(check: str) -> int:
    """The library's flags for a `check` argument. ValueError if there is none such."""
    if check not in _CHECKS:
        raise ValueError(f"check is 'crc', 'full' or 'none', not {check!r}")
    return int(_CHECKS[check])


class TensorIndex:
    """An open .ptwm file: lists its tensors and decodes those that are asked for.

    Opening reads the index at the file's end; a tensor's bytes are read when it is fetched. Many threads may use one at
    once. The file may be replaced or deleted while it is open; what was fetched stays valid after `close`.

    Methods that fetch take `check`: "crc" (checksums of what is decoded), "full" (of whole tensors the payload hash
    too) or "none"; and `max_nbytes`, the most bytes of memory that the call may take for tensors, beyond which it is a
    PtwmError. They raise KeyError for an unknown name, IntegrityError for damaged data, other PtwmErrors for malformed
    data, OSError where reading fails, and ValueError after `close`.

    Parameters
    ----------
    path
        The file.
    backend
        "mmap", or "pread" for network file systems and for files that somebody may shorten meanwhile.
    threads
        How many threads decode; None: one for each CPU.
    """

    def __init__(self, path: str | os.PathLike[str], *, backend: str = "mmap", threads: int | None = None) -> None:
        if backend not in _BACKENDS:
            raise ValueError(f"backend is 'mmap' or 'pread', not {backend!r}")
        self._start(Path(path), os.fspath(path), threads, lib.ptwm_reader_open_path, path_to_c(path), backend=backend)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, backend: str = "mmap", threads: int | None = None) -> Self:
        """Opens a file: the same as the constructor."""
        return cls(path, backend=backend, threads=threads)

    @classmethod
    def from_buffer(cls, data: Any, *, threads: int | None = None) -> Self:
        """Opens a file that is in memory, such as what `compress_ptwm_blob` returns.

        `data` is any C-contiguous buffer. It is kept alive, not copied, and must not change until `close`.
        """
        self = cls.__new__(cls)
        self._needs = source = Borrowed(data)
        self._start(Path("<memory>"), None, threads, lib.ptwm_reader_open_memory, source.pointer, source.nbytes)
        return self

    @classmethod
    def from_reader(cls, read: Callable[[int, int], Any], total_nbytes: int, *, threads: int | None = None) -> Self:
        """Opens a file of total_nbytes bytes that a function reads, such as one on a server.

        `read(offset, nbytes)` returns exactly so many bytes; what it raises, the method that needed them raises.
        Several threads call it at once unless `threads` is 1.
        """
        if not 0 <= total_nbytes < 2**63:
            raise ValueError(f"total_nbytes is 0 .. 2^63 - 1, not {total_nbytes}")
        self = cls.__new__(cls)
        self._callback = Callback(read)
        self._needs = source = callback_source(self._callback, total_nbytes)
        self._start(Path("<reader>"), None, threads, lib.ptwm_reader_open_source, source)
        return self

    _callback: Callback | None = None
    _needs: Any = None  # what the reader reads from, if it is not a path

    def _start(
        self,
        path: Path,
        shown_path: str | None,
        threads: int | None,
        open_reader: Callable[..., int],
        *args: Any,
        backend: str = "mmap",
    ) -> None:
        self._path = path
        self._shown_path = shown_path
        self._threads = thread_count(threads)
        options = new_struct("ptwm_reader_options")
        options.backend = _BACKENDS[backend]
        options.zstd = zstd_provider
        self._n_tensors = 0
        handle, error = ffi.new("struct ptwm_reader **"), new_error()
        self._check(open_reader(*args, options, handle, error), error)
        # The destructor holds what the reader needs, for as long as the reader lives.
        needs = (self._needs, self._callback, zstd_provider)
        self._reader = ffi.gc(handle[0], lambda reader, _needs=needs: lib.ptwm_reader_close(reader))
        self._gate = Gate(f"TensorIndex({shown_path or path})")
        self._info = new_struct("ptwm_reader_info")
        lib.ptwm_reader_get_info(self._reader, self._info)
        self._n_tensors = int(self._info.n_tensors)

    # ------------------------------------------------------------------------------------------------ the file

    def close(self) -> None:
        """Releases the file, after waiting for calls in other threads. Calls that follow raise ValueError."""
        if self._gate.close():
            ffi.release(self._reader)
            self._needs = None

    def __enter__(self) -> Self:
        with self._gate:
            return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The file's path as it was given; `<memory>` or `<reader>` without one."""
        return self._path

    @property
    def bytes_read(self) -> int:
        """Bytes read from the file so far (looked at, if it is mapped), opening included."""
        with self._gate:
            return int(lib.ptwm_reader_bytes_read(self._reader))

    def metadata(self) -> dict[str, Any]:
        """The user metadata; empty if the file has none. FormatError if it is malformed."""
        with self._gate:
            return self._decode_cbor(self._info.metadata, self._info.metadata_nbytes, "metadata") or {}

    @property
    def _source(self) -> dict[str, Any] | None:
        """What the file says about the one that its tensors came from (FORMAT.md, section 9)."""
        with self._gate:
            return self._decode_cbor(self._info.source, self._info.source_nbytes, "source")

    def _decode_cbor(self, pointer: Any, nbytes: int, what: str) -> dict[str, Any] | None:
        if pointer == ffi.NULL:
            return None
        return _cbor.decode(to_bytes(pointer, nbytes), f"{self._path}: {what}")

    def verify(self, threads: int | None = None) -> None:
        """Checks the whole file: that everything decodes, padding, checksums and payload hashes.

        IntegrityError if it is damaged, other PtwmErrors if it is malformed.
        """
        n_threads = self._threads if threads is None else thread_count(threads)
        error = new_error()
        with self._gate:
            self._check(lib.ptwm_reader_verify(self._reader, n_threads, error), error)

    def __repr__(self) -> str:
        state = ", closed" if self._gate.closed else ""
        return f"<TensorIndex {str(self._path)!r}: {self._n_tensors} tensors{state}>"

    # ------------------------------------------------------------------------------------------------- listing

    def names(self) -> list[str]:
        """The tensors' names, in the order of writing."""
        with self._gate:
            return [record.name for record in self._records()]

    def entries(self) -> list[TensorEntry]:
        """The tensors, in the order of writing."""
        with self._gate:
            return [record.entry() for record in self._records()]

    def entry(self, name: str) -> TensorEntry:
        """The tensor of that name."""
        with self._gate:
            return self._find(name).entry()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return self._n_tensors

    def __contains__(self, name: object) -> bool:
        with self._gate:
            return isinstance(name, str) and self._number(name) is not None

    def describe(self, name: str) -> dict[str, Any]:
        """How a tensor is stored, as a dict of plain values.

        "chain": its chain's repr; "chunks" and "chunk_nbytes"; "planes": a list of dicts with "kind", "raw_nbytes",
        "stored_nbytes" and "codecs" (how many chunks each codec stores); "model": "unit", "columns", "phases" (whether
        column shifts are in half octaves) and "sets" of label tables. They describe the tensor's whole segment, which it
        may share with others: "segment" is its number ("segment_offset": where the tensor begins in it), None for an
        empty tensor, which has no chain or planes.
        """
        with self._gate:
            record = self._find(name)
            with self._layout(record.segment) as layout:
                return {**describe_record(record), **describe_segment(layout)}

    # ------------------------------------------------------------------------------------------------ fetching

    def get_bytes(self, name: str, *, check: str = "crc", max_nbytes: int | None = None) -> bytes:
        """A tensor's raw bytes: C order, little-endian on every machine, elements below a byte packed."""
        with self._gate:
            record = self._find(name)
            self._check_limit([record], [record.nbytes], max_nbytes)
            content = FreshBytes(record.nbytes)
            self._decode([Part(record, content.pointer, content.nbytes)], check)
            return content.finish()

    def get_into(self, name: str, buffer: Any, *, check: str = "crc") -> None:
        """Decodes a tensor's raw bytes, as `get_bytes` gives them, into memory of the caller's.

        `buffer` is writable, C-contiguous and of exactly the tensor's size in bytes (ValueError if not): a bytearray,
        memoryview, numpy array or torch tensor. If decoding fails its content is undefined.
        """
        target = Borrowed(buffer, writable=True)
        with self._gate:
            record = self._find(name)
            if target.nbytes != record.nbytes:
                raise ValueError(f"tensor {name!r} has {record.nbytes} bytes, the buffer {target.nbytes}")
            self._decode([Part(record, target.pointer, target.nbytes)], check)

    def get_array(self, name: str, *, check: str = "crc", max_nbytes: int | None = None) -> np.ndarray[Any, Any]:
        """A tensor as a numpy array, shape `entry(name).shape`, native byte order, writable.

        TypeError if the file gives no dtype and shape or numpy (with ml_dtypes) lacks the dtype.
        """
        with self._gate:
            return self._arrays([self._find(name)], check, max_nbytes)[0]

    def get_tensor(
        self, name: str, device: Any = None, *, check: str = "crc", max_nbytes: int | None = None
    ) -> torch.Tensor:
        """A tensor as a torch tensor, on the CPU or moved to `device`.

        Its storage is its own, of exactly its size. TypeError if the file gives no dtype and shape, or if torch lacks
        the dtype.
        """
        with self._gate:
            tensor = self._tensors([self._find(name)], check, max_nbytes)[0]
        return to_device(tensor, device)

    def get_slice(self, name: str, *, check: str = "crc", max_nbytes: int | None = None) -> TensorSlice:
        """A tensor to be indexed, as in `get_slice(name)[10:20]`, which decodes only the rows that it needs.

        TypeError as for `get_array`. "full" checks no more than "crc" here unless the whole tensor is decoded.
        """
        check_flags(check)
        return TensorSlice(self, name, check, max_nbytes)

    def stream_tensors(
        self,
        names: Iterable[str] | None = None,
        device: Any = None,
        *,
        check: str = "crc",
        max_nbytes: int | None = None,
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Names and torch tensors one after the other, decoded ahead in a background thread.

        In the order of writing, or that of `names`, which may repeat (each time a tensor of its own). Unknown names are
        a KeyError at once. Besides what the caller keeps, tensors of about 128 MiB at most are in memory, or two if
        they are larger. `max_nbytes` bounds each tensor.
        """
        if isinstance(names, str):
            raise TypeError("names is an iterable of names, not a str")
        check_flags(check)
        with self._gate:
            records = list(self._records()) if names is None else [self._find(name) for name in names]

        def decode(batch: Sequence[Record]) -> list[torch.Tensor]:
            with self._gate:
                for record in batch:
                    self._check_limit([record], [record.nbytes], max_nbytes)
                return self._tensors(batch, check, None)

        return ((record.name, to_device(tensor, device)) for record, tensor in decode_ahead(records, decode))

    # --------------------------------------------------------------- inside the gate: the callers have entered it

    def _check(self, status: int, error: Any) -> None:
        if status == lib.PTWM_ERR_IO and self._callback is not None:
            self._callback.reraise()
        if status != lib.PTWM_OK:
            raise exception(status, error, path=self._shown_path, name_of=self._name_of)

    def _name_of(self, number: int) -> str | None:
        return self._record(number).name if number < self._n_tensors else None

    def _number(self, name: str) -> int | None:
        try:
            encoded = name.encode("utf-8")
        except UnicodeEncodeError:
            return None  # lone surrogates: no name in a file has any
        number = ffi.new("uint64_t *")
        status = lib.ptwm_reader_find(self._reader, encoded, len(encoded), number)
        return int(number[0]) if status == lib.PTWM_OK else None

    def _find(self, name: str) -> Record:
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name is a str, not {type(name).__name__}")
        number = self._number(name)
        if number is None:
            raise KeyError(f"{self._path}: no tensor is named {name!r}")
        return self._record(number)

    def _record(self, number: int, info: Any = None) -> Record:
        info = new_struct("ptwm_tensor_info") if info is None else info
        status = lib.ptwm_reader_get_tensor(self._reader, number, info)
        if status != lib.PTWM_OK:
            raise exception(status, path=self._shown_path)
        return Record.read(number, info)

    def _records(self) -> Iterator[Record]:
        info = new_struct("ptwm_tensor_info")
        return (self._record(number, info) for number in range(self._n_tensors))

    def _check_limit(self, records: Sequence[Record], sizes: Iterable[int], max_nbytes: int | None) -> None:
        """To be called before memory is allocated for what a file only claims to hold."""
        total = sum(sizes)
        if max_nbytes is not None and total > max_nbytes:
            what = f"tensor {records[0].name!r} takes" if len(records) == 1 else "the tensors take"
            raise PtwmError(f"{self._path}: {what} {total} bytes, more than max_nbytes={max_nbytes}")

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

    def _fetch(self, records: Sequence[Record], check: str, max_nbytes: int | None) -> list[Memory]:
        """Whole tensors in native byte order, decoded together, each in its own memory."""
        self._check_limit(records, [record.nbytes for record in records], max_nbytes)
        memories = Memory.for_many([record.nbytes for record in records])
        parts = [Part(record, memory.pointer, memory.nbytes) for record, memory in zip(records, memories)]
        self._decode(parts, check, native=True)
        return memories

    def _arrays(self, records: Sequence[Record], check: str, max_nbytes: int | None) -> list[np.ndarray[Any, Any]]:
        for record in records:
            self._name_errors(record, numpy_layout)
        kinds = [record.typed() for record in records]
        # Packed elements take a byte each once they are unpacked.
        unpacked = [math.prod(shape) if dtype.is_packed else 0 for dtype, shape in kinds]
        self._check_limit(records, map(max, unpacked, [record.nbytes for record in records]), max_nbytes)
        memories = self._fetch(records, check, None)[::-1]
        return [self._name_errors(record, memories.pop().array) for record in records]

    def _tensors(self, records: Sequence[Record], check: str, max_nbytes: int | None) -> list[torch.Tensor]:
        for record in records:
            self._name_errors(record, torch_layout)
        memories = self._fetch(records, check, max_nbytes)
        return [self._name_errors(record, memory.tensor) for record, memory in zip(records, memories)]

    def _name_errors(self, record: Record, function: Callable[[Dtype, tuple[int, ...]], Any]) -> Any:
        """The result of a function of a tensor's dtype and shape, whose errors get to say which tensor it is."""
        dtype, shape = record.typed()
        try:
            return function(dtype, shape)
        except (TypeError, PtwmError) as error:
            raise type(error)(f"{self._path}: tensor {record.name!r}: {error}") from error

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

    def _load_arrays(self, check: str, max_nbytes: int | None) -> dict[str, np.ndarray[Any, Any]]:
        """All tensors at once; see `ptwm.numpy.load_file`."""
        with self._gate:
            records = list(self._records())
            arrays = self._arrays(records, check, max_nbytes)
        return {record.name: array for record, array in zip(records, arrays)}

    def _load_tensors(self, check: str, max_nbytes: int | None) -> dict[str, torch.Tensor]:
        """All tensors at once; see `ptwm.torch.load_file`."""
        with self._gate:
            records = list(self._records())
            tensors = self._tensors(records, check, max_nbytes)
        return {record.name: tensor for record, tensor in zip(records, tensors)}

    def _check_total(self, max_nbytes: int | None) -> None:
        with self._gate:
            self._check_limit([], [self._info.total_raw_nbytes], max_nbytes)

    def _typed(self, name: str, layout: Callable[[Dtype, tuple[int, ...]], Any]) -> tuple[Dtype, tuple[int, ...]]:
        """A tensor's dtype and shape, if a framework's layout function does not refuse them."""
        with self._gate:
            record = self._find(name)
            self._name_errors(record, layout)
            return record.typed()

    def _fetch_range(self, name: str, low: int, high: int, check: str, max_nbytes: int | None) -> Memory:
        """Elements low .. high - 1 of a tensor, which begin and end on whole bytes, in native byte order."""
        with self._gate:
            record = self._find(name)
            dtype, _ = record.typed()
            memory_nbytes = (high - low) * max(dtype.bits, 8) // 8
            self._check_limit([record], [memory_nbytes], max_nbytes)
            memory = Memory((high - low) * dtype.bits // 8)
            if memory.nbytes:
                self._decode([Part(record, memory.pointer, memory.nbytes, low, high - low)], check, native=True)
            return memory
