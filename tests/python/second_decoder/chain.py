"""Section 5: chains of steps, and the planes that they make of a chunk."""

from dataclasses import dataclass

import numpy as np

from . import rest
from .cursor import Cursor
from .errors import Malformed, require

DELTA, BYTES, LABEL = 1, 2, 3


@dataclass(frozen=True)
class Plane:
    """A plane before it is coded."""

    kind: str  # "bytes", "low", "rest" or "symbol"
    nbytes: int
    element_nbytes: int


@dataclass(frozen=True)
class LabelStep:
    """The parameters of a label step."""

    width: int
    shift: int
    bits: int

    @property
    def unit_bits(self) -> int:
        """u: how many of an element's top bits the symbol is taken from."""
        return {0: 4, 1: 8}.get(self.width, 16)

    @property
    def rest_bits(self) -> int:
        """r: what of them is left."""
        return self.unit_bits - self.bits

    @property
    def symbol_nbytes(self) -> int:
        return 1 if self.bits <= 8 else 2

    def n_elements(self, nbytes: int) -> int:
        """How many elements nbytes raw bytes are."""
        return 2 * nbytes if self.width == 0 else nbytes // self.width

    def planes(self, n: int) -> list[Plane]:
        """The planes of n elements."""
        planes = [Plane("low", 2 * n, 2)] * {4: 1, 8: 3}.get(self.width, 0)
        if self.rest_bits > 0:
            planes.append(Plane("rest", rest.packed_nbytes(n, self.rest_bits), 1))
        planes.append(Plane("symbol", n * self.symbol_nbytes, self.symbol_nbytes))
        return planes

    def join(self, planes: list[bytes], n: int) -> bytes:
        """The bytes of n elements."""
        symbols = np.frombuffer(planes[-1], f"<u{self.symbol_nbytes}").astype(np.uint64)
        units = symbols << np.uint64(self.shift)
        if self.rest_bits > 0:
            rests = rest.unpack(planes[-2], n, self.rest_bits).astype(np.uint64)
            below = rests & np.uint64((1 << self.shift) - 1)
            units |= below | rests >> np.uint64(self.shift) << np.uint64(self.shift + self.bits)
        if self.width == 0:
            return (units[0::2] | units[1::2] << np.uint64(4)).astype(np.uint8).tobytes()
        elements = units
        n_low = {4: 1, 8: 3}.get(self.width, 0)
        if n_low:
            elements = units << np.uint64(16 * n_low)
            for j in range(n_low):
                elements |= np.frombuffer(planes[j], "<u2").astype(np.uint64) << np.uint64(16 * j)
        return elements.astype(f"<u{self.width}").tobytes()


class Chain:
    """A legal chain."""

    def __init__(self, data: bytes) -> None:
        cursor = Cursor(data, "a chain")
        self.deltas: list[int] = []
        self.bytes_width: int | None = None
        self.label: LabelStep | None = None
        n_steps = 0
        while cursor.left():
            require(self.bytes_width is None and self.label is None, "a step after one that splits")
            n_steps += 1
            require(n_steps <= 8, "a chain of more than 8 steps")
            self._step(cursor)

    def _step(self, cursor: Cursor) -> None:
        opcode, width = cursor.unsigned(1), cursor.unsigned(1)
        if opcode == DELTA:
            require(width in (1, 2, 4, 8), "the width of a delta step")
            self.deltas.append(width)
        elif opcode == BYTES:
            require(2 <= width <= 16, "the width of a bytes step")
            self.bytes_width = width
        elif opcode == LABEL:
            step = LabelStep(width, cursor.unsigned(1), cursor.unsigned(1))
            require(width in (0, 1, 2, 4, 8), "the width of a label step")
            require(1 <= step.bits <= 15 and step.shift + step.bits <= step.unit_bits, "the symbol of a label step")
            self.label = step
        else:
            raise Malformed(f"unknown step {opcode} of a chain")

    def widths(self) -> list[int]:
        """The width of each step, as far as lengths have to be multiples of it."""
        widths = list(self.deltas)
        if self.bytes_width is not None:
            widths.append(self.bytes_width)
        if self.label is not None and self.label.width > 0:
            widths.append(self.label.width)
        return widths

    def planes(self, nbytes: int) -> list[Plane]:
        """The planes of a chunk of nbytes raw bytes."""
        if self.label is not None:
            return self.label.planes(self.label.n_elements(nbytes))
        if self.bytes_width is not None:
            return [Plane("bytes", nbytes // self.bytes_width, 1)] * self.bytes_width
        return [Plane("bytes", nbytes, 1)]

    def join(self, planes: list[bytes], nbytes: int) -> bytes:
        """A chunk's raw bytes from its planes."""
        if self.label is not None:
            data = self.label.join(planes, self.label.n_elements(nbytes))
        elif self.bytes_width is not None:
            data = np.stack([np.frombuffer(plane, np.uint8) for plane in planes], axis=1).tobytes()
        else:
            data = planes[0]
        for width in reversed(self.deltas):
            dtype = np.dtype(f"<u{width}")
            data = np.cumsum(np.frombuffer(data, dtype), dtype=dtype).astype(dtype).tobytes()
        return data
