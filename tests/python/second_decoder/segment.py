"""Section 4: a segment, its tail and its chunks."""

from dataclasses import dataclass

import numpy as np

from . import codecs, label
from .chain import Chain, Plane
from .checksums import crc32c
from .cursor import Cursor
from .errors import Corrupt, Malformed, require
from .manifest import MAX_CHUNK_NBYTES, Segment


@dataclass(frozen=True)
class StoredPlane:
    """An entry of the chunk table, and where in the segment the plane is."""

    codec: int
    offset: int
    nbytes: int
    crc: int | None


@dataclass(frozen=True)
class Chunk:
    """A chunk: its raw bytes' place in the segment, and its stored planes."""

    raw_offset: int
    raw_nbytes: int
    skipped: int  # bytes of padding before it
    planes: list[StoredPlane]


class StoredSegment:
    """A segment whose tail is right."""

    def __init__(self, data: bytes, place: Segment) -> None:
        self.data = data
        self.place = place
        tail = data[place.stored_nbytes - place.tail_nbytes :]
        require(len(tail) >= 4, "a tail without a CRC")
        if crc32c(tail[:-4]) != int.from_bytes(tail[-4:], "little"):
            raise Corrupt("a tail's CRC-32C")
        cursor = Cursor(tail[:-4], "a segment's tail")
        self.chain = Chain(cursor.take(cursor.varint()))
        self.chunk_nbytes = cursor.varint()
        require(1 <= self.chunk_nbytes <= MAX_CHUNK_NBYTES, "chunk_nbytes")
        self.n_chunks = -(-place.raw_nbytes // self.chunk_nbytes)
        require(self.n_chunks == 1 or self.chunk_nbytes >= 1024, "several chunks of less than 1024 bytes")
        for width in self.chain.widths():
            fits = place.raw_nbytes % width == 0 and self.chunk_nbytes % width == 0
            require(fits, "raw_nbytes or chunk_nbytes is not a multiple of a step's width")
        self.model = None
        if self.chain.label is not None:
            self.model = label.read_model(cursor, self.chain.label.bits, self.n_chunks)
            elements = self.chain.label.n_elements(self.chunk_nbytes)
            require(self.n_chunks == 1 or elements % self.model.unit == 0, "a chunk that is not whole units")
        self.chunks = self._chunk_table(cursor)
        cursor.finish()

    def _chunk_table(self, cursor: Cursor) -> list[Chunk]:
        chunks = []
        position = 0
        for raw_offset in range(0, self.place.raw_nbytes, self.chunk_nbytes):
            raw_nbytes = min(self.chunk_nbytes, self.place.raw_nbytes - raw_offset)
            skipped = -position % 64 if self.place.aligned else 0
            position += skipped
            planes = []
            for plane in self.chain.planes(raw_nbytes):
                codec, nbytes = cursor.unsigned(1), cursor.varint()
                require(nbytes <= 4 * plane.nbytes + 65536, "a stored plane is longer than it may be")
                planes.append(StoredPlane(codec, position, nbytes, cursor.unsigned(4) if self.place.checked else None))
                position += nbytes
            chunks.append(Chunk(raw_offset, raw_nbytes, skipped, planes))
        chunks_nbytes = self.place.stored_nbytes - self.place.tail_nbytes
        require(position == chunks_nbytes, "the stored lengths do not add up to the segment's")
        return chunks

    def check_padding(self) -> None:
        """The bytes before aligned chunks have to be zero."""
        for chunk in self.chunks:
            begin = chunk.planes[0].offset
            require(not any(self.data[begin - chunk.skipped : begin]), "padding before a chunk is not zero")

    def decode(self) -> bytes:
        """All raw bytes of the segment."""
        return b"".join(self._decode_chunk(chunk) for chunk in self.chunks)

    def _stored(self, plane: StoredPlane) -> bytes:
        data = self.data[plane.offset : plane.offset + plane.nbytes]
        if plane.crc is not None and crc32c(data) != plane.crc:
            raise Corrupt("a plane's CRC-32C")
        return data

    def _decode_chunk(self, chunk: Chunk) -> bytes:
        planes = self.chain.planes(chunk.raw_nbytes)
        stored = [self._stored(plane) for plane in chunk.planes]
        decoded: list[bytes] = [b""] * len(planes)
        carried = None
        # The symbol plane, which is the last one, comes first: it may carry bytes of the rest plane.
        for index in reversed(range(len(planes))):
            plane, codec = planes[index], chunk.planes[index].codec
            if codec == codecs.LABEL_RANS:
                decoded[index], carried = self._decode_symbols(chunk, plane, stored[index])
            elif codec == codecs.CARRIED:
                if plane.kind != "rest" or carried is None:
                    raise Malformed("a plane that nothing carries")
                decoded[index] = codecs.carried(stored[index], plane.nbytes, carried)
                carried = None
            else:
                decoded[index] = codecs.decode(codec, stored[index], plane)
        require(carried is None or not np.any(carried), "a final state is not 65536")
        if self.model is not None:
            decoded[-1] = self._add_shifts(chunk, planes[-1], decoded[-1])
        return self.chain.join(decoded, chunk.raw_nbytes)

    def _first_element(self, chunk: Chunk) -> int:
        assert self.chain.label is not None
        return self.chain.label.n_elements(chunk.raw_offset)

    def _decode_symbols(self, chunk: Chunk, plane: Plane, stored: bytes) -> tuple[bytes, np.ndarray]:
        """The symbol plane, and what the final states carry: a u16 a lane."""
        require(plane.kind == "symbol", "label rANS is for symbol planes")
        assert self.chain.label is not None and self.model is not None
        symbols, carried = label.decode(
            stored, self.model, self.chain.label, self._first_element(chunk), plane.nbytes // plane.element_nbytes
        )
        return symbols.astype(f"<u{plane.element_nbytes}").tobytes(), carried

    def _add_shifts(self, chunk: Chunk, plane: Plane, data: bytes) -> bytes:
        """Undoes the subtraction of the columns' shifts from a symbol plane."""
        assert self.chain.label is not None and self.model is not None
        dtype = np.dtype(f"<u{plane.element_nbytes}")
        symbols = np.frombuffer(data, dtype).astype(np.int64)
        limit = 1 << self.chain.label.bits
        require(int(symbols.max()) < limit, "a symbol has too many bits")
        shifts = self.model.shifts
        if len(shifts):
            columns = (self._first_element(chunk) + np.arange(len(symbols))) % len(shifts)
            symbols = (symbols + shifts[columns]) % limit
        return symbols.astype(dtype).tobytes()
