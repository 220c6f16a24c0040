"""Sections 3 and 8: the segments and tensors that a manifest lists."""

import math
from dataclasses import dataclass
from typing import Any

from . import cbor
from .cbor import is_unsigned
from .errors import Unsupported, require

MAX_CHUNK_NBYTES = 1 << 26

# Section 8: name and bits of each dtype code.
DTYPES = {
    1: ("BOOL", 8),
    2: ("U8", 8),
    3: ("I8", 8),
    4: ("I16", 16),
    5: ("U16", 16),
    6: ("I32", 32),
    7: ("U32", 32),
    8: ("I64", 64),
    9: ("U64", 64),
    10: ("F16", 16),
    11: ("BF16", 16),
    12: ("F32", 32),
    13: ("F64", 64),
    14: ("F8_E4M3", 8),
    15: ("F8_E5M2", 8),
    16: ("F8_E4M3FNUZ", 8),
    17: ("F8_E5M2FNUZ", 8),
    18: ("F8_E8M0", 8),
    19: ("F4", 4),
    20: ("F6_E2M3", 6),
    21: ("F6_E3M2", 6),
    22: ("C32", 32),
    23: ("C64", 64),
    24: ("C128", 128),
    25: ("I4", 4),
    26: ("U4", 4),
    27: ("I2", 2),
    28: ("U2", 2),
    29: ("I1", 1),
    30: ("U1", 1),
    31: ("F8_E4M3_IEEE", 8),
    32: ("F8_E3M4", 8),
    33: ("F8_E4M3B11FNUZ", 8),
    34: ("BC32", 32),
    35: ("F8_E5M3FNU", 8),
}


@dataclass(frozen=True)
class Segment:
    """A segment: where it is, and what the manifest says about it."""

    offset: int  # in the file
    skipped: int  # bytes of padding before it
    stored_nbytes: int
    tail_nbytes: int
    raw_nbytes: int
    checked: bool
    aligned: bool


@dataclass(frozen=True)
class Tensor:
    """A tensor, with all that its entry leaves to be expected filled in."""

    name: str
    dtype: int  # 0: neither dtype nor shape
    shape: tuple[int, ...] | None
    segment: int | None  # None: an empty tensor
    offset: int
    nbytes: int
    hash: int | None


@dataclass(frozen=True)
class Manifest:
    """What a manifest holds."""

    segments: list[Segment]
    tensors: list[Tensor]
    metadata: bytes | None
    source: bytes | None


def parse(data: bytes, manifest_offset: int) -> Manifest:
    """The manifest whose bytes are data and whose offset in the file is manifest_offset."""
    root = cbor.table(cbor.decode(data, "the manifest"), "the manifest")
    features = root.get(0, [])
    require(isinstance(features, list) and all(isinstance(name, str) for name in features), "required features")
    if features:
        raise Unsupported(f"required features {features!r}")
    require(isinstance(root.get(1), list) and isinstance(root.get(2), list), "no segments or no tensors")
    for key in (4, 5):
        require(isinstance(root.get(key, b""), bytes), f"the manifest's key {key} is not a byte string")
    segments = _segments(root[1], manifest_offset)
    return Manifest(segments, _Tensors(segments).read(root[2]), root.get(4), root.get(5))


def _segments(items: list[Any], manifest_offset: int) -> list[Segment]:
    segments = []
    position = 16
    for item in items:
        require(isinstance(item, list) and len(item) >= 4, "a segment is not an array of four or more")
        require(all(is_unsigned(value) for value in item[:4]), "a segment begins with something else than numbers")
        stored, tail, raw, flags = item[:4]
        require(flags < 4, "unknown flags of a segment")
        require(1 <= raw < 1 << 63 and 0 < tail <= stored, "a segment's lengths")
        require(-(-raw // MAX_CHUNK_NBYTES) <= tail // 2, "a segment has more chunks than its tail has room for")
        aligned = bool(flags & 2)
        skipped = -position % 64 if aligned else 0
        segments.append(Segment(position + skipped, skipped, stored, tail, raw, bool(flags & 1), aligned))
        position += skipped + stored
    require(position == manifest_offset, "the segments do not end where the manifest begins")
    return segments


class _Tensors:
    """Reads the tensors one after the other, with what those so far make one expect."""

    def __init__(self, segments: list[Segment]) -> None:
        self.segments = segments
        self.name = b""
        self.dtype = 0
        self.shape: tuple[int, ...] = ()
        self.furthest = (0, 0)  # segment, offset of the end of the furthest range

    def read(self, items: list[Any]) -> list[Tensor]:
        tensors = [self.tensor(item) for item in items]
        require(len({tensor.name for tensor in tensors}) == len(tensors), "two tensors have the same name")
        return tensors

    def tensor(self, item: Any) -> Tensor:
        item = cbor.table(item, "a tensor")
        for key in (1, 3, 4, 5, 6, 7):
            require(is_unsigned(item.get(key, 0)), f"a tensor's key {key} is not an unsigned integer")
        name = self.read_name(item)
        shape = self.read_type(item)
        nbytes = item.get(7)
        if shape is not None and self.dtype in DTYPES:
            declared = nbytes
            n_bits = math.prod(shape) * DTYPES[self.dtype][1]
            require(n_bits % 8 == 0, f"{name!r} is not a whole number of bytes")
            nbytes = n_bits // 8
            require(declared in (None, nbytes), f"{name!r} has another length than dtype and shape say")
        if nbytes == 0:
            require(not {3, 4, 5} & item.keys(), f"{name!r} is empty but has a place or a hash")
            return Tensor(name, self.dtype, shape, None, 0, 0, None)
        segment, offset = self.read_place(item)
        require(segment < len(self.segments), f"{name!r} is in a segment that is not there")
        raw_nbytes = self.segments[segment].raw_nbytes
        require(offset < raw_nbytes, f"{name!r} begins beyond its segment")
        if nbytes is None:
            nbytes = raw_nbytes - offset
        require(offset + nbytes <= raw_nbytes, f"{name!r} ends beyond its segment")
        self.furthest = max(self.furthest, (segment, offset + nbytes))
        return Tensor(name, self.dtype, shape, segment, offset, nbytes, item.get(5))

    def read_name(self, item: dict[int, Any]) -> str:
        shared = item.get(6, 0)
        require(isinstance(item.get(0), str), "a tensor without a name")
        require(shared <= 255 and shared <= len(self.name), "a tensor shares more of a name than there is")
        at_boundary = shared == len(self.name) or self.name[shared] & 0xC0 != 0x80
        require(at_boundary, "a tensor shares a part of a character")
        self.name = self.name[:shared] + item[0].encode("utf-8")
        return self.name.decode("utf-8")

    def read_type(self, item: dict[int, Any]) -> tuple[int, ...] | None:
        self.dtype = item.get(1, self.dtype)
        require(self.dtype < 1 << 32, "a dtype of more than 32 bits")
        if self.dtype == 0:
            require(2 not in item, "a tensor without a dtype has a shape")
            return None
        shape = item.get(2, self.shape)
        if 2 in item:
            require(isinstance(shape, list), "a shape is not an array")
            require(all(is_unsigned(n) and n < 1 << 63 for n in shape), "a dimension")
        self.shape = tuple(shape)
        return self.shape

    def read_place(self, item: dict[int, Any]) -> tuple[int, int]:
        segment, offset = self.furthest
        if segment < len(self.segments) and offset == self.segments[segment].raw_nbytes:
            segment, offset = segment + 1, 0
        if 3 in item:
            segment, offset = item[3], 0
        return segment, item.get(4, offset)
