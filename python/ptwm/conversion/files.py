"""One .safetensors file to one .ptwm file, and back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ptwm._errors import PtwmError
from ptwm._files import publish, temporary_beside
from ptwm._safetensors import SafetensorsFile, Tensor, restorable_header, restorable_tensors, write_file
from ptwm.random_access import TensorIndex
from ptwm.sharding.options import Method
from ptwm.sharding.writer import Writer

# Tensors are decoded together up to this size, so that small ones that share a chunk decode it once.
BATCH_NBYTES = 32 << 20

# Is told how many bytes of tensors have been dealt with.
Advance = Callable[[int], object]


class ConversionError(PtwmError):
    """A file or directory cannot be converted, for a reason that is not in the format of one file."""


@dataclass(frozen=True)
class Options:
    """How to compress; the defaults are the library's.

    Attributes
    ----------
    method, chunk, threads, level
        As `method`, `streaming_chunk`, `threads` and `level` of `Writer`.
    verify
        Whether to decode and compare everything before a file appears.
    """

    method: Method = Method.MICROSCALE
    chunk: int | None = None
    threads: int | None = None
    level: int | None = None
    verify: bool = False


def nothing(nbytes: int) -> None:
    """An `Advance` for nobody."""


def file_state(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """What changes when somebody writes to a file or puts another in its place."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def remove_unchanged(path: str | os.PathLike[str], state: tuple[int, ...]) -> None:
    """Removes a file that has been converted. ConversionError if it is not the one any more whose state was taken."""
    if file_state(path) != state:
        raise ConversionError(f"{os.fspath(path)}: was changed meanwhile; nothing was removed")
    os.unlink(path)


def compress_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    options: Options = Options(),
    advance: Advance = nothing,
) -> int:
    """Compresses a .safetensors file and returns its length. The target appears when it is complete.

    `advance` is told all bytes of tensors, and if they are verified told them again.

    SafetensorsError if the source is malformed, ConversionError if verifying finds a difference, OSError.
    """
    with SafetensorsFile(source) as file:
        with verified(target, options, lambda path: check_restores(path, file, options.threads, advance)) as path:
            with file_writer(file, path, options) as writer:
                writer._add_many(tensor_specs(file, file.tensors, options.method), advance)
        return file.nbytes


def file_writer(file: SafetensorsFile, path: str, options: Options) -> Writer:
    """A writer of a .ptwm file that remembers what it takes to restore a .safetensors file."""
    return Writer(path, **writer_options(options), metadata=file.metadata or None, _source=file.source_entry())


def writer_options(options: Options) -> dict[str, Any]:
    return {"threads": options.threads, "level": options.level, "streaming_chunk": options.chunk}


def tensor_specs(file: SafetensorsFile, tensors: list[Tensor], method: Method) -> Iterator[tuple[Any, ...]]:
    """Tensors as `Writer._add_many` takes them."""
    return ((t.name, file.data(t.begin, t.end), t.dtype, t.shape, None, method) for t in tensors)


class verified:
    """The path to write a target to; what is there when the block ends is checked, if that is wanted, and published."""

    def __init__(self, target: str | os.PathLike[str], options: Options, check: Callable[[str], None]) -> None:
        self._target = os.fspath(target)
        self._check = check if options.verify else None
        self._temporary = temporary_beside(self._target)

    def __enter__(self) -> str:
        # The writer itself publishes atomically; it is only in the way of a check before that.
        self._path = self._temporary.__enter__() if self._check else self._target
        return self._path

    def __exit__(self, *exc_info: object) -> bool | None:
        if self._check is None:
            return None
        try:
            if exc_info[0] is None:
                self._check(self._path)
                publish(self._path, self._target)
        except BaseException as error:
            self._temporary.__exit__(type(error), error, error.__traceback__)
            raise
        return self._temporary.__exit__(*exc_info)  # type: ignore[arg-type]


def check_restores(path: str, source: SafetensorsFile, threads: int | None = None, advance: Advance = nothing) -> None:
    """ConversionError unless the .ptwm file at path is intact and restores a .safetensors file byte for byte."""
    with TensorIndex(path, threads=threads) as index:
        index.verify()
        if not restores(index, source, advance):
            raise ConversionError(f"{source.path}: the compressed file does not restore it; nothing was written")


def restores(index: TensorIndex, source: SafetensorsFile, advance: Advance = nothing) -> bool:
    """Whether a .ptwm file's tensors, and what it says about their source, make a .safetensors file byte for byte."""
    header, tensors, blocks = restore(index)
    if header != source.header_bytes or tensors != source.tensors:
        return False
    return same_data(blocks, source, 0, advance)


def same_data(blocks: Iterator[memoryview], file: SafetensorsFile, begin: int, advance: Advance = nothing) -> bool:
    """Whether blocks, one after the other, are what a .safetensors file has from some byte of its data on."""
    for block in blocks:
        if not equal(block, file.data(begin, begin + len(block))):
            return False
        begin += len(block)
        advance(len(block))
    return True


def equal(left: memoryview, right: memoryview) -> bool:
    import numpy as np  # compares at memory speed; memoryviews compare byte by byte

    return np.array_equal(np.frombuffer(left, np.uint8), np.frombuffer(right, np.uint8))


# ------------------------------------------------------------------------------------------------------- restoring


def decompress_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    threads: int | None = None,
    advance: Advance = nothing,
) -> int:
    """Restores a .safetensors file and returns its length.

    The target appears when it is complete and all checks have passed. PtwmErrors as of `TensorIndex`, SafetensorsError
    if the file cannot be written as .safetensors, OSError.
    """
    with TensorIndex(source, threads=threads) as index:
        header, _, blocks = restore(index)
        return write_file(target, header, counted(blocks, advance))


def restore(index: TensorIndex) -> tuple[bytes, list[Tensor], Iterator[memoryview]]:
    """A file's original header, its tensors in the order of their data, and that data, checked, block after block.

    Each block is valid until the next one is asked for.
    """
    header = restorable_header(index)
    tensors = restorable_tensors(index, header)
    return header, tensors, decode_blocks(index, tensors)


def decode_blocks(index: TensorIndex, tensors: list[Tensor]) -> Iterator[memoryview]:
    """The bytes of tensors, one after the other, checked, block after block, valid until the next is asked for."""
    buffer = memoryview(bytearray())
    for batch in _batches(tensors):
        begin, end = batch[0].begin, batch[-1].end
        if len(buffer) < end - begin:
            buffer = memoryview(bytearray(end - begin))
        index.get_many_into({t.name: buffer[t.begin - begin : t.end - begin] for t in batch}, check="full")
        yield buffer[: end - begin]


def _batches(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours that have up to BATCH_NBYTES together, or single tensors that have more. Empty ones are left out."""
    batch: list[Tensor] = []
    for tensor in tensors:
        if batch and tensor.end - batch[0].begin > BATCH_NBYTES:
            yield batch
            batch = []
        if tensor.nbytes:
            batch.append(tensor)
    if batch:
        yield batch


def counted(blocks: Iterator[memoryview], advance: Advance) -> Iterator[memoryview]:
    for block in blocks:
        yield block
        advance(len(block))
