"""How tensors are encoded: the options that all writers take."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from operator import index as to_int
from typing import Any

from ptwm._library import lib, new_struct, thread_count, zstd_provider

MIN_CHUNK_NBYTES = 4 << 10
MAX_CHUNK_NBYTES = 64 << 20


class Method(IntEnum):
    """How planes are coded. All but MICROSCALE and IDENTITY force one codec where a chain gives planes to be coded."""

    HUFFMAN = lib.PTWM_METHOD_HUFFMAN
    ZSTD = lib.PTWM_METHOD_ZSTD
    MICROSCALE = lib.PTWM_METHOD_MICROSCALE  # chosen for each plane by the data type and the data
    RANS = lib.PTWM_METHOD_RANS
    IDENTITY = lib.PTWM_METHOD_IDENTITY  # the bytes as they are


def check_method(method: int) -> Method:
    """A method from its number. TypeError for what is no integer, ValueError for a number that is no method."""
    return method if isinstance(method, Method) else Method(to_int(method))


@dataclass(frozen=True)
class EncodingOptions:
    """What `Writer`'s parameters of the same names are."""

    threads: int | None = None
    level: int | None = None
    emit_payload_hash: bool = True
    emit_plane_crc: bool = True
    streaming_chunk: int | None = None

    def to_c(self) -> Any:
        """A `struct ptwm_writer_options *`. TypeError or ValueError for values that are no options."""
        options = new_struct("ptwm_writer_options")
        options.flags = (lib.PTWM_WRITE_PAYLOAD_HASH if self.emit_payload_hash else 0) | (
            lib.PTWM_WRITE_PLANE_CRC if self.emit_plane_crc else 0
        )
        options.threads = thread_count(self.threads)
        if self.streaming_chunk is not None:
            if not MIN_CHUNK_NBYTES <= to_int(self.streaming_chunk) <= MAX_CHUNK_NBYTES:
                raise ValueError(
                    f"streaming_chunk is {MIN_CHUNK_NBYTES} .. {MAX_CHUNK_NBYTES} bytes, not {self.streaming_chunk}"
                )
            options.chunk_nbytes = self.streaming_chunk
        if self.level is not None:
            if not -(2**31) <= to_int(self.level) < 2**31:
                raise ValueError(f"level {self.level} is out of range")
            options.level = self.level
        options.zstd = zstd_provider
        return options
