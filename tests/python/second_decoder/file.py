"""Section 2: the file, and what is decoded from it."""

from . import manifest
from .checksums import crc32c, xxh3_64
from .errors import Corrupt, Malformed, NotPtwm, Unsupported, require
from .manifest import Tensor
from .segment import StoredSegment

MAGIC = bytes.fromhex("D770 7477 6D0D 0A1A")
HEADER_NBYTES = 16
FOOTER_NBYTES = 40


def _check_version(field: bytes) -> None:
    version = int.from_bytes(field, "little")
    if version != 1:
        raise Unsupported(f"version {version}")


class File:
    """A .ptwm file whose header, footer and manifest are right."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        offset, nbytes = self._frame()
        self.manifest = manifest.parse(data[offset : offset + nbytes], offset)
        self.tensors = self.manifest.tensors
        self._raw: dict[int, bytes] = {}

    def _frame(self) -> tuple[int, int]:
        """The manifest's offset and length, from header and footer."""
        data = self.data
        if data[:8] != MAGIC:
            raise NotPtwm("no magic number")
        require(len(data) >= HEADER_NBYTES + FOOTER_NBYTES, "shorter than a header and a footer")
        footer = data[-FOOTER_NBYTES:]
        _check_version(data[8:12])
        require(data[12:16] == bytes(4), "the header's last field is not zero")
        require(footer[32:] == MAGIC[::-1], "no closing magic number")
        _check_version(footer[28:32])
        offset, nbytes, file_nbytes = (int.from_bytes(footer[i : i + 8], "little") for i in (0, 8, 16))
        crc = int.from_bytes(footer[24:28], "little")
        require(file_nbytes == len(data), f"a file of {len(data)} bytes says that it has {file_nbytes}")
        require(offset + nbytes + FOOTER_NBYTES == file_nbytes, "the manifest does not end at the footer")
        require(offset >= HEADER_NBYTES, "the manifest begins in the header")
        if crc32c(data[offset : offset + nbytes]) != crc:
            raise Corrupt("the manifest's CRC-32C")
        return offset, nbytes

    def segment(self, index: int) -> StoredSegment:
        """Segment number index, its tail read and checked."""
        place = self.manifest.segments[index]
        return StoredSegment(self.data[place.offset : place.offset + place.stored_nbytes], place)

    def decode(self, tensor: Tensor) -> bytes:
        """The raw bytes of a tensor, checked against its hash if it has one."""
        if tensor.segment is None:
            return b""
        if tensor.segment not in self._raw:
            self._raw[tensor.segment] = self.segment(tensor.segment).decode()
        raw = self._raw[tensor.segment][tensor.offset : tensor.offset + tensor.nbytes]
        if tensor.hash is not None and xxh3_64(raw) != tensor.hash:
            raise Corrupt(f"the hash of {tensor.name!r}")
        return raw

    def find(self, name: str) -> Tensor:
        """The tensor of that name, or a KeyError."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)

    def check(self) -> None:
        """Raises `Refused` unless everything in the file is right: padding, segments and tensors."""
        for index, place in enumerate(self.manifest.segments):
            if any(self.data[place.offset - place.skipped : place.offset]):
                raise Malformed(f"padding before segment {index} is not zero")
            stored = self.segment(index)
            stored.check_padding()
            self._raw[index] = stored.decode()
        for tensor in self.tensors:
            self.decode(tensor)
