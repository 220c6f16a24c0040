"""TensorIndex: named tensors in files, listed and decoded on demand."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptwm._dtypes import Dtype
from ptwm._errors import PtwmError
from ptwm._gate import Gate
from ptwm._library import lib, thread_count
from ptwm._memory import Borrowed, FreshBytes, Memory, numpy_layout, torch_layout
from ptwm.random_access.devices import Device, PinnedMemory, check_device, to_device, wants_pinned
from ptwm.random_access.records import Part, Record, TensorEntry
from ptwm.random_access.slices import TensorSlice
from ptwm.random_access.streaming import decode_ahead

if TYPE_CHECKING:
    import numpy as np
    import torch
    from typing_extensions import Self

    from ptwm.random_access.file import FileIndex

_CHECKS = {"none": lib.PTWM_DECODE_SKIP_CRC, "crc": 0, "full": lib.PTWM_DECODE_CHECK_HASH}


def check_flags(check: str) -> int:
    """The library's flags for a `check` argument. ValueError if there is none such."""
    if check not in _CHECKS:
        raise ValueError(f"check is 'crc', 'full' or 'none', not {check!r}")
    return int(_CHECKS[check])


class TensorIndex:
    """An open .ptwm file, or a directory of them: lists its tensors and decodes those that are asked for.

    Opening reads the index at the file's end; a tensor's bytes are read when it is fetched. Many threads may use one at
    once. Files may be replaced or deleted while they are open; what was fetched stays valid after `close`.

    Of a directory, the files that `model.ptwm.index.json` lists are opened, or else `model.ptwm`, or else those of the
    only other index or file; tensors are found in whichever has them. FileNotFoundError if there is no such model,
    FormatError if files and index contradict each other.

    Methods that fetch take `check`: "crc" (checksums of what is decoded), "full" (of whole tensors the payload hash
    too) or "none"; and `max_nbytes`, the most bytes of memory that the call may take for tensors, beyond which it is a
    PtwmError. They raise KeyError for an unknown name, IntegrityError for damaged data, other PtwmErrors for malformed
    data, OSError where reading fails, and ValueError after `close`.

    Parameters
    ----------
    path
        The file or directory.
    backend
        "mmap", or "pread" for network file systems and for files that somebody may shorten meanwhile.
    threads
        How many threads decode; None: one for each CPU.
    """

    # This class has what all kinds of files share. What they differ in is in its subclasses: FileIndex (one .ptwm
    # file), DirectoryIndex (several files) and SafetensorsIndex (a .safetensors file, for safe_open and the loads).

    _gate: Gate
    _path: Path
    _threads: int

    def __new__(cls, path: Any = None, **options: Any) -> Self:
        if cls is not TensorIndex:
            return object.__new__(cls)
        from ptwm.random_access.directory import DirectoryIndex
        from ptwm.random_access.file import FileIndex

        is_directory = isinstance(path, (str, os.PathLike)) and os.path.isdir(path)
        kind: type[TensorIndex] = DirectoryIndex if is_directory else FileIndex
        return object.__new__(kind)  # type: ignore[return-value]

    def __init__(self, path: str | os.PathLike[str], *, backend: str = "mmap", threads: int | None = None) -> None:
        raise NotImplementedError

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, backend: str = "mmap", threads: int | None = None) -> Self:
        """Opens a file or a directory: the same as the constructor."""
        return cls(path, backend=backend, threads=threads)

    @classmethod
    def from_buffer(cls, data: Any, *, threads: int | None = None) -> TensorIndex:
        """Opens a file that is in memory, such as what `compress_ptwm_blob` returns.

        `data` is any C-contiguous buffer. It is kept alive, not copied, and must not change until `close`.
        """
        from ptwm.random_access.file import FileIndex

        return FileIndex._of_buffer(data, threads)

    @classmethod
    def from_reader(
        cls, read: Callable[[int, int], Any], total_nbytes: int, *, threads: int | None = None
    ) -> TensorIndex:
        """Opens a file of total_nbytes bytes that a function reads, such as one on a server.

        `read(offset, nbytes)` returns exactly so many bytes; what it raises, the method that needed them raises.
        Several threads call it at once unless `threads` is 1.
        """
        from ptwm.random_access.file import FileIndex

        return FileIndex._of_reader(read, total_nbytes, threads)

    # ------------------------------------------------------------------------------- what the kinds of files implement

    def close(self) -> None:
        """Releases the file, after waiting for calls in other threads. Calls that follow raise ValueError."""
        raise NotImplementedError

    @property
    def bytes_read(self) -> int:
        """Bytes read from the file so far (looked at, if it is mapped), opening included."""
        raise NotImplementedError

    def metadata(self) -> dict[str, Any]:
        """The user metadata; empty if there is none. FormatError if it is malformed.

        Of a directory that of all files together; where they differ, the first file that has a key decides.
        """
        raise NotImplementedError

    def verify(self, threads: int | None = None) -> None:
        """Checks everything: that all tensors decode, padding, checksums and payload hashes.

        IntegrityError if a file is damaged, other PtwmErrors if it is malformed.
        """
        raise NotImplementedError

    def describe(self, name: str) -> dict[str, Any]:
        """How a tensor is stored, as a dict of plain values.

        "chain": its chain's repr; "chunks" and "chunk_nbytes"; "planes": a list of dicts with "kind", "raw_nbytes",
        "stored_nbytes" and "codecs" (how many chunks each codec stores); "model": "unit", "columns", "phases"
        (whether column shifts are in half octaves) and "sets" of label tables. They describe the tensor's whole segment, which it may share with others: "segment" is its number
        ("segment_offset": where the tensor begins in it), None for an empty tensor, which has no chain or planes. Of its
        "segment_stored_nbytes" the tail with chain, model and chunk table takes "tail_nbytes"; what planes and tail
        leave over is padding.
        """
        raise NotImplementedError

    @property
    def _source(self) -> dict[str, Any] | None:
        """What the file says about the one that its tensors came from (FORMAT.md, section 9)."""
        raise NotImplementedError

    # Inside the gate: the callers have entered it.

    def _has(self, name: str) -> bool:
        raise NotImplementedError

    def _find(self, name: str) -> Record:
        """TypeError for what is no name, KeyError for an unknown one."""
        raise NotImplementedError

    def _records(self) -> Iterator[Record]:
        raise NotImplementedError

    def _decode(self, parts: Sequence[Part], check: str, native: bool = False) -> None:
        """Decodes parts of tensors, whose memory the caller has allocated, all at once."""
        raise NotImplementedError

    def _chunk_nbytes(self, record: Record) -> int:
        """How many raw bytes of a tensor are decoded as one piece."""
        raise NotImplementedError

    def _share_bytes(self, one: Record, other: Record) -> bool:
        """Whether two tensors are the same bytes of a file."""
        raise NotImplementedError

    def _file_of(self, name: str) -> FileIndex:
        """The .ptwm file that a tensor is in, from which it can be copied as it is encoded."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- listing

    def __enter__(self) -> Self:
        with self._gate:
            return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The path as it was given; `<memory>` or `<reader>` without one."""
        return self._path

    @property
    def files(self) -> list[Path]:
        """The files that the tensors are in, by name if there are several."""
        return [self._path]

    def __repr__(self) -> str:
        state = ", closed" if self._gate.closed else ""
        return f"<TensorIndex {str(self._path)!r}: {len(self)} tensors{state}>"

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
        raise NotImplementedError

    def __contains__(self, name: object) -> bool:
        with self._gate:
            return isinstance(name, str) and self._has(name)

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
        self.get_many_into({name: buffer}, check=check)

    def get_many_into(self, buffers: Mapping[str, Any], *, check: str = "crc") -> None:
        """Decodes several tensors into memory of the caller's, on all threads at once.

        For each name a buffer, as for `get_into`. Small tensors that share a chunk decode it once.
        """
        targets = {name: Borrowed(buffer, writable=True) for name, buffer in buffers.items()}
        with self._gate:
            parts = []
            for name, target in targets.items():
                record = self._find(name)
                if target.nbytes != record.nbytes:
                    raise ValueError(f"tensor {name!r} has {record.nbytes} bytes, the buffer {target.nbytes}")
                parts.append(Part(record, target.pointer, target.nbytes))
            self._decode(parts, check)

    def get_array(self, name: str, *, check: str = "crc", max_nbytes: int | None = None) -> np.ndarray[Any, Any]:
        """A tensor as a numpy array, shape `entry(name).shape`, native byte order, writable.

        TypeError if the file gives no dtype and shape or numpy (with ml_dtypes) lacks the dtype.
        """
        with self._gate:
            return self._arrays([self._find(name)], check, max_nbytes)[0]

    def get_tensor(
        self, name: str, device: Device = None, *, check: str = "crc", max_nbytes: int | None = None
    ) -> torch.Tensor:
        """A tensor as a torch tensor, on the CPU or moved to `device`.

        Its storage is its own, of exactly its size. TypeError if the file gives no dtype and shape, or if torch lacks
        the dtype; RuntimeError, before anything is read, if torch cannot use the device.
        """
        check_device(device)
        with self._gate:
            tensor = self._tensors([self._find(name)], check, max_nbytes, device)[0]
        return to_device(tensor, device)

    def get_slice(self, name: str, *, check: str = "crc", max_nbytes: int | None = None) -> TensorSlice:
        """A tensor to be indexed, as in `get_slice(name)[10:20]`, which decodes only the chunks that it needs.

        TypeError as for `get_array`. "full" checks no more than "crc" here unless the whole tensor is decoded.
        """
        check_flags(check)
        return TensorSlice(self, name, check, max_nbytes)

    def stream_tensors(
        self,
        names: Iterable[str] | None = None,
        device: Device = None,
        *,
        check: str = "crc",
        max_nbytes: int | None = None,
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Names and torch tensors one after the other, decoded ahead in a background thread.

        In the order of writing, or that of `names`, which may repeat (each time a tensor of its own). Unknown names are
        a KeyError at once, a device that torch cannot use a RuntimeError. Besides what the caller keeps, tensors of
        about 128 MiB at most are in memory, or two if they are larger. `max_nbytes` bounds each tensor.
        """
        if isinstance(names, str):
            raise TypeError("names is an iterable of names, not a str")
        check_flags(check)
        check_device(device)
        with self._gate:
            records = list(self._records()) if names is None else [self._find(name) for name in names]

        def decode(batch: Sequence[Record]) -> list[torch.Tensor]:
            with self._gate:
                for record in batch:
                    self._check_limit([record], [record.nbytes], max_nbytes)
                return self._tensors(batch, check, None, device)

        return ((record.name, to_device(tensor, device)) for record, tensor in decode_ahead(records, decode))

    # --------------------------------------------------------------- inside the gate: the callers have entered it

    def _check_limit(self, records: Sequence[Record], sizes: Iterable[int], max_nbytes: int | None) -> None:
        """To be called before memory is allocated for what a file only claims to hold."""
        total = sum(sizes)
        if max_nbytes is not None and total > max_nbytes:
            what = f"tensor {records[0].name!r} takes" if len(records) == 1 else "the tensors take"
            raise PtwmError(f"{self._path}: {what} {total} bytes, more than max_nbytes={max_nbytes}")

    def _fetch(
        self, records: Sequence[Record], check: str, max_nbytes: int | None, device: Device = None
    ) -> list[Memory]:
        """Whole tensors in native byte order, decoded together, each in its own memory."""
        self._check_limit(records, [record.nbytes for record in records], max_nbytes)
        sizes = [record.nbytes for record in records]
        memories = PinnedMemory.for_many(sizes) if wants_pinned(device) else Memory.for_many(sizes)
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

    def _tensors(
        self, records: Sequence[Record], check: str, max_nbytes: int | None, device: Device = None
    ) -> list[torch.Tensor]:
        """Torch tensors in the CPU's memory, of a kind that is copied to `device` without waiting if there is one."""
        for record in records:
            self._name_errors(record, torch_layout)
        memories = self._fetch(records, check, max_nbytes, device)
        return [self._name_errors(record, memory.tensor) for record, memory in zip(records, memories)]

    def _name_errors(self, record: Record, function: Callable[[Dtype, tuple[int, ...]], Any]) -> Any:
        """The result of a function of a tensor's dtype and shape, whose errors get to say which tensor it is."""
        dtype, shape = record.typed()
        try:
            return function(dtype, shape)
        except (TypeError, PtwmError) as error:
            raise type(error)(f"{self._path}: tensor {record.name!r}: {error}") from error

    # -------------------------------------------------------------------------------- for other modules of the package

    def _set_up(self, path: Path, shown_path: str, threads: int | None) -> None:
        self._path = path
        self._threads = thread_count(threads)
        self._gate = Gate(f"TensorIndex({shown_path})")

    def _load_arrays(self, check: str, max_nbytes: int | None) -> dict[str, np.ndarray[Any, Any]]:
        """All tensors at once; see `ptwm.numpy.load_file`."""
        with self._gate:
            records = list(self._records())
            arrays = self._arrays(records, check, max_nbytes)
        return {record.name: array for record, array in zip(records, arrays)}

    def _load_tensors(self, device: Device, check: str, max_nbytes: int | None) -> dict[str, torch.Tensor]:
        """All tensors at once; see `ptwm.torch.load_file`."""
        check_device(device)
        with self._gate:
            records = list(self._records())
            if device is None:
                tensors = self._tensors(records, check, max_nbytes)
                return {record.name: tensor for record, tensor in zip(records, tensors)}
            self._check_limit([], [record.nbytes for record in records], max_nbytes)
        # Only two batches are in the CPU's memory at a time.
        return dict(self.stream_tensors(device=device, check=check))

    def _typed(self, name: str, layout: Callable[[Dtype, tuple[int, ...]], Any]) -> tuple[Dtype, tuple[int, ...]]:
        """A tensor's dtype and shape, if a framework's layout function does not refuse them."""
        with self._gate:
            record = self._find(name)
            self._name_errors(record, layout)
            return record.typed()

    def _chunk_size(self, name: str) -> int:
        """How many raw bytes of a tensor are decoded as one piece."""
        with self._gate:
            return self._chunk_nbytes(self._find(name))

    def _fetch_ranges(self, name: str, ranges: Sequence[tuple[int, int, Any]], check: str) -> None:
        """Decodes elements low .. high - 1 of a tensor to a C pointer, for each (low, high, pointer), all at once.

        The ranges begin and end on whole bytes. Native byte order.
        """
        with self._gate:
            record = self._find(name)
            bits = record.typed()[0].bits
            self._decode(
                [Part(record, pointer, (high - low) * bits // 8, low, high - low) for low, high, pointer in ranges],
                check,
                native=True,
            )

    def _check_memory(self, name: str, nbytes: int, max_nbytes: int | None) -> None:
        """PtwmError if that much memory for a tensor is more than allowed."""
        if max_nbytes is not None:
            with self._gate:
                self._check_limit([self._find(name)], [nbytes], max_nbytes)
