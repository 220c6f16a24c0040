"""Writer: a .ptwm file in the making."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptwm import _cbor
from ptwm._callbacks import Callback
from ptwm._callbacks import buffer as callback_buffer
from ptwm._callbacks import sink as callback_sink
from ptwm._dtypes import logical_shape, resolve
from ptwm._errors import exception, new_error
from ptwm._library import ffi, lib, none_or, path_to_c, zstd_provider
from ptwm._memory import Borrowed, GrowingBytes, is_array, little_endian
from ptwm.chains import Chain
from ptwm.sharding.options import EncodingOptions, Method, check_method

if TYPE_CHECKING:
    from typing_extensions import Self

    from ptwm.random_access import TensorIndex
    from ptwm.random_access.file import FileIndex

# Tensors that are added together: enough for all threads, and not too much to hold for whoever makes them one by one.
BATCH_NBYTES = 64 << 20
BATCH_TENSORS = 256

# What `Writer.add` takes: name, data, dtype, shape, chains, method.
_Tensor = tuple[str, Any, Any, "Iterable[int] | None", "Iterable[Chain | bytes] | None", int]


class Writer:
    """Writes a .ptwm file, tensor by tensor, so that a model need not fit in memory.

    A context manager: leaving it finishes the file, leaving it by an exception abandons it. The file appears at `path`,
    complete, only when it is finished; until then, and if anything fails, an older file there stays as it was.

    Equal tensors are stored once. The same calls give the same bytes, whatever `threads` and the machine. Methods may
    be called from several threads, one call running at a time.

    Parameters
    ----------
    path
        The file to write.
    metadata
        A map of str keys to plain values (None, bool, int, float, str, bytes, lists and maps of them), stored in sorted
        order. TypeError or ValueError for others.
    threads
        How many threads encode; None: one for each CPU.
    level
        The encoder's effort, 1 .. 19; None: the default. From 10 on everything is tried on every tensor, many times as
        slowly. Decoding is the same.
    emit_payload_hash
        Whether to store a 64-bit hash of each tensor's raw bytes.
    emit_plane_crc
        Whether to store a CRC-32C of each stored plane.
    streaming_chunk
        Raw bytes per chunk that can be decoded by itself, 4 KiB to 64 MiB; None: the default (1 MiB).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        metadata: Mapping[str, Any] | None = None,
        threads: int | None = None,
        level: int | None = None,
        emit_payload_hash: bool = True,
        emit_plane_crc: bool = True,
        streaming_chunk: int | None = None,
        _source: Mapping[str, Any] | None = None,
    ) -> None:
        options = EncodingOptions(threads, level, emit_payload_hash, emit_plane_crc, streaming_chunk)
        _check_target(path)
        self._start(os.fspath(path), metadata, _source, lib.ptwm_writer_open_path, path_to_c(path), options.to_c())

    @classmethod
    def to_function(
        cls,
        write: Callable[[bytes], Any],
        *,
        metadata: Mapping[str, Any] | None = None,
        threads: int | None = None,
        level: int | None = None,
        emit_payload_hash: bool = True,
        emit_plane_crc: bool = True,
        streaming_chunk: int | None = None,
    ) -> Self:
        """A writer that gives the file's bytes, in order, to a function, such as a socket's or a pipe's.

        What `write` raises, the method that had bytes to write raises; the file cannot go on then. Equal tensors are
        stored once only where `alias_of` says so, for nothing can be read back.
        """
        options = EncodingOptions(threads, level, emit_payload_hash, emit_plane_crc, streaming_chunk)
        self = cls.__new__(cls)
        self._callback = Callback(write)
        self._start(None, metadata, None, lib.ptwm_writer_open_sink, callback_sink(self._callback), options.to_c())
        return self

    @classmethod
    def _in_memory(cls, metadata: Mapping[str, Any] | None, options: EncodingOptions) -> Self:
        """A writer of a file in memory, which `_finish_bytes` gives."""
        self = cls.__new__(cls)
        self._content = GrowingBytes()
        self._callback = Callback(self._content.resize)
        self._start(None, metadata, None, lib.ptwm_writer_open_buffer, callback_buffer(self._callback), options.to_c())
        return self

    _callback: Callback | None = None
    _content: GrowingBytes

    def _start(
        self,
        path: str | None,
        metadata: Mapping[str, Any] | None,
        source: Mapping[str, Any] | None,
        open_writer: Callable[..., int],
        *args: Any,
    ) -> None:
        entries = _entries(metadata, source)
        self._path = path
        self._lock = threading.Lock()
        self._writer: Any = None
        self._n_tensors = 0
        handle, error = ffi.new("struct ptwm_writer **"), new_error()
        # The destructor holds what the writer needs, for as long as the writer lives.
        close = _Close((self._callback, zstd_provider))
        try:
            self._check(open_writer(*args, handle, error), error)
            self._writer = ffi.gc(handle[0], close)
            for cbor, setter in zip(entries, (lib.ptwm_writer_set_metadata, lib.ptwm_writer_set_source)):
                if cbor is not None:
                    self._check(setter(self._writer, cbor, len(cbor), error), error)
        except BaseException:
            # Between any two steps a signal may come, and the unfinished file is not to stay then either.
            close(handle[0])
            self._writer = None
            raise

    @property
    def path(self) -> Path | None:
        """The file to be; None if it goes elsewhere."""
        return None if self._path is None else Path(self._path)

    def add(
        self,
        name: str,
        data: Any = None,
        dtype: Any = None,
        shape: Iterable[int] | None = None,
        *,
        alias_of: str | None = None,
        chains: Iterable[Chain | bytes] | None = None,
        method: int = Method.MICROSCALE,
    ) -> None:
        """Adds a tensor.

        Parameters
        ----------
        name
            Its name, any str that UTF-8 can encode.
        data
            Its raw bytes: any C-contiguous buffer (bytes, memoryview, numpy array, torch tensor or storage), read in
            place and not kept. Elements are little-endian; those below a byte are packed, the first one lowest. Only a
            big-endian numpy array that is stored under its own dtype is converted.
        dtype
            A torch.dtype, a numpy dtype or scalar type, or a name in any spelling. None: bytes without dtype and shape.
        shape
            Its dimensions, in elements of `dtype` as it was spelled (so in pairs for torch.float4_e2m1fn_x2). Ignored
            without a dtype.
        alias_of
            Instead of all the above but the name: the name of a tensor that is there already, to share everything with.
        chains
            The candidates, of which the smallest result wins; None: those of `ptwm.chains.STANDARD`.
        method
            How planes are coded.

        Raises
        ------
        ValueError
            A name that is there already or that UTF-8 cannot encode; an unknown dtype; a big-endian dtype for bytes
            that do not know their order; a length that is not shape times dtype; a negative dimension; a buffer that
            is not contiguous; an illegal chain or one that does not fit; a method that does not exist; a finished file.
            The file can go on without the tensor.
        KeyError
            No tensor is named `alias_of`.
        OSError, MemoryError, PtwmError
            Writing or encoding failed. The file cannot go on.
        """
        if alias_of is not None:
            if data is not None or dtype is not None or shape is not None:
                raise ValueError("an alias takes its data, dtype and shape from the tensor that it is an alias of")
            self._add_alias(name, alias_of)
            return
        if data is None:
            raise TypeError("a tensor needs data (or alias_of)")
        spec = ffi.new(_SPEC)
        kept = _fill(spec, name, data, dtype, shape, chains, method)
        error = new_error()
        with self._lock:
            self._check(lib.ptwm_writer_add(self._open(), spec, error), error, name)
            self._n_tensors += 1
        del kept

    def _add_many(
        self, tensors: Iterable[_Tensor] | Iterable[tuple[Any, ...]], advance: Callable[[int], Any] | None = None
    ) -> None:
        """Adds tensors, given as what `add` takes: (name, data, dtype, shape, chains, method).

        The result is that of so many calls of `add`, but several are in the making at once, on all threads. Up to
        BATCH_NBYTES of them are held at a time. `advance` is told the bytes that have been added.
        """
        for batch in _batches(tensors):
            error = new_error()
            with self._lock:
                status = lib.ptwm_writer_add_many(self._open(), batch.specs, len(batch.names), error)
                if status != lib.PTWM_OK:
                    # The tensor concerned is counted from the file's first one.
                    number = none_or(error.tensor)
                    in_batch = -1 if number is None else number - self._n_tensors
                    self._check(status, error, batch.names[in_batch] if 0 <= in_batch < len(batch.names) else None)
                self._n_tensors += len(batch.names)
            if advance is not None:
                advance(batch.nbytes)

    def _add_alias(self, name: str, target: str) -> None:
        encoded, encoded_target = _encode_name(name), _encode_name(target)
        error = new_error()
        with self._lock:
            status = lib.ptwm_writer_add_alias(
                self._open(), encoded, len(encoded), encoded_target, len(encoded_target), error
            )
            self._check(status, error, target if status == lib.PTWM_ERR_NO_TENSOR else name)
            self._n_tensors += 1

    def copy_from(self, index: TensorIndex, names: Iterable[str] | Mapping[str, str] | None = None) -> None:
        """Adds tensors of an open file as they are encoded there.

        `names`: which, in this order; a mapping gives each its new name; None: all. KeyError for a name that `index`
        lacks, ValueError for one that is there already, PtwmError if `index`'s file is damaged.
        """
        if isinstance(names, str):
            raise TypeError("names is an iterable or a mapping of names, not a str")
        names = index.names() if names is None else names
        renamed = names if isinstance(names, Mapping) else {}
        for name in names:
            file = index._file_of(name)
            with self._lock, file._gate:
                self._copy(file, name, renamed.get(name, name))

    def finish(self) -> None:
        """Completes the file and publishes it at its path. ValueError if it is finished or closed already."""
        error = new_error()
        with self._lock:
            self._check(lib.ptwm_writer_finish(self._open(), error), error)
            self._release()

    def close(self) -> None:
        """Releases the writer; a file that is not finished is abandoned, without a trace."""
        with self._lock:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *exc_info: object) -> None:
        try:
            if exc_type is None and self._writer is not None:
                self.finish()
        finally:
            self.close()

    def __repr__(self) -> str:
        return f"<Writer {self._path!r}{', closed' if self._writer is None else ''}>"

    def _finish_bytes(self) -> bytes:
        """Completes a file in memory and gives its bytes."""
        self.finish()
        return self._content.finish()

    # ---------------------------------------------------------------------------------------- with the lock held

    def _open(self) -> Any:
        if self._writer is None:
            raise ValueError(f"the writer of {self._path} is finished or closed")
        return self._writer

    def _copy(self, index: FileIndex, name: str, new_name: str) -> None:
        number = index._find(name).number
        encoded, error = _encode_name(new_name), new_error()
        status = lib.ptwm_writer_copy(self._open(), index._reader, number, encoded, len(encoded), error)
        if status == lib.PTWM_ERR_IO and index._callback is not None:
            index._callback.reraise()
        if status in (lib.PTWM_OK, lib.PTWM_ERR_IO, lib.PTWM_ERR_DUPLICATE_NAME, lib.PTWM_ERR_STATE):
            self._check(status, error, new_name)
            self._n_tensors += 1
        else:
            raise exception(status, error, path=index.path, tensor=name)

    def _release(self) -> None:
        if self._writer is not None:
            ffi.release(self._writer)
            self._writer = None

    def _check(self, status: int, error: Any, name: str | None = None) -> None:
        if status in (lib.PTWM_ERR_IO, lib.PTWM_ERR_MEMORY) and self._callback is not None:
            self._callback.reraise()
        if status != lib.PTWM_OK:
            raise exception(status, error, path=self._path, tensor=name, writing=True)


class _Close:
    """Closes a writer, once, however often it is asked to; holds what the writer needs until then."""

    def __init__(self, needs: Any) -> None:
        self._needs = needs

    def __call__(self, writer: Any) -> None:
        needs, self._needs = self._needs, None
        if needs is not None and writer != ffi.NULL:
            lib.ptwm_writer_close(writer)


class _Batch:
    """Tensors that are added together."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.specs = ffi.new("struct ptwm_tensor_spec[]", BATCH_TENSORS)
        self.nbytes = 0
        self._kept: list[Any] = []  # what the specs point to

    def append(self, tensor: _Tensor | tuple[Any, ...]) -> None:
        spec = self.specs + len(self.names)
        self._kept.append(_fill(spec, *tensor))
        self.names.append(tensor[0])
        self.nbytes += spec.nbytes

    def is_full(self) -> bool:
        return self.nbytes >= BATCH_NBYTES or len(self.names) >= BATCH_TENSORS


def _batches(tensors: Iterable[_Tensor] | Iterable[tuple[Any, ...]]) -> Iterator[_Batch]:
    batch = _Batch()
    for tensor in tensors:
        batch.append(tensor)
        if batch.is_full():
            yield batch
            batch = _Batch()
    if batch.names:
        yield batch


def _check_target(path: str | os.PathLike[str]) -> None:
    """OSError that says what to do instead for a path that leads to a pipe or a device."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError, TypeError):  # of which the library knows better what it means for writing
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        message = "not a regular file, which is what a whole file can replace; Writer.to_function writes to pipes"
        raise OSError(errno.EINVAL, message, os.fspath(path))


def _entries(metadata: Mapping[str, Any] | None, source: Mapping[str, Any] | None) -> tuple[bytes | None, bytes | None]:
    for entry in (metadata, source):
        if entry is not None and not isinstance(entry, Mapping):
            raise TypeError(f"metadata is a dict, not {type(entry).__name__}")
    return (
        _cbor.encode(metadata) if metadata else None,
        None if source is None else _cbor.encode(source),
    )


def _encode_name(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"a tensor's name is a str, not {type(name).__name__}")
    try:
        return name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"the name {name!r} cannot be encoded in UTF-8: {error.reason}") from error


_SPEC = ffi.typeof("struct ptwm_tensor_spec *")
_SPEC_NBYTES = ffi.sizeof("struct ptwm_tensor_spec")
_SHAPE = ffi.typeof("uint64_t[]")


def _fill(
    spec: Any,
    name: str,
    data: Any,
    dtype: Any,
    shape: Iterable[int] | None,
    chains: Iterable[Chain | bytes] | None,
    method: int,
) -> Any:
    """Fills a zeroed `struct ptwm_tensor_spec *` and returns what must live as long as it."""
    encoded = ffi.from_buffer(_encode_name(name))
    code, dims = _typed(name, dtype, shape)
    borrowed = Borrowed(_in_file_order(name, data, dtype))
    c_shape = ffi.new(_SHAPE, dims) if dims else ffi.NULL
    spec.struct_nbytes = _SPEC_NBYTES
    spec.name, spec.name_nbytes = encoded, len(encoded)
    spec.dtype, spec.n_dims, spec.shape = code, len(dims), c_shape
    spec.data, spec.nbytes = borrowed.pointer, borrowed.nbytes
    spec.method = check_method(method)
    c_chains = wires = None
    if chains is not None:
        wires = [ffi.from_buffer(_wire(chain)) for chain in chains]
        if not wires:
            raise ValueError(f"tensor {name!r}: an empty list of candidate chains")
        c_chains = ffi.new("struct ptwm_chain[]", len(wires))
        for c_chain, wire in zip(c_chains, wires):
            c_chain.bytes, c_chain.nbytes = wire, len(wire)
        spec.chains, spec.n_chains = c_chains, len(wires)
    return encoded, borrowed, c_shape, wires, c_chains


def _wire(chain: Chain | bytes) -> bytes:
    return chain.to_bytes() if isinstance(chain, Chain) else bytes(memoryview(chain))


def _typed(name: str, dtype: Any, shape: Iterable[int] | None) -> tuple[int, tuple[int, ...]]:
    """The dtype's code and the shape in elements; both nothing without a dtype."""
    try:
        if dtype is None:
            logical_shape(() if shape is None else shape)
            return lib.PTWM_DTYPE_NONE, ()
        kind, elements_per_item = resolve(dtype)
        if shape is None:
            raise ValueError("a dtype needs a shape")
        return kind.code, logical_shape(shape, elements_per_item)
    except (TypeError, ValueError) as error:
        raise type(error)(f"tensor {name!r}: {error}") from error


def _in_file_order(name: str, data: Any, dtype: Any) -> Any:
    """Data as it is, unless it is a big-endian array to be stored under its own dtype: that is converted by value."""
    if is_array(data) and dtype is not None and data.dtype.name == _numpy_name(dtype):
        return little_endian(data) if data.flags.c_contiguous else data
    if getattr(dtype, "byteorder", "=") == ">":
        raise ValueError(
            f"tensor {name!r}: {dtype!r} is big-endian, but raw bytes are little-endian: pass the array itself or its "
            "byteswap()"
        )
    return data


def _numpy_name(dtype: Any) -> str | None:
    return resolve(dtype)[0].numpy_name
