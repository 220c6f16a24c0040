"""Section 1: integers, varints and bit streams, read one after the other."""

import numpy as np

from .errors import Malformed, require


class Cursor:
    """A position in some bytes. Reading past their end is `Malformed`."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.position = 0
        self.what = what

    def left(self) -> int:
        """How many bytes follow."""
        return len(self.data) - self.position

    def take(self, nbytes: int) -> bytes:
        """The next nbytes bytes."""
        require(nbytes <= self.left(), f"{self.what} ends early, at its byte {len(self.data)}")
        self.position += nbytes
        return self.data[self.position - nbytes : self.position]

    def rest(self) -> bytes:
        """All bytes that follow."""
        return self.take(self.left())

    def finish(self) -> None:
        """Nothing may follow."""
        require(self.left() == 0, f"{self.what} has {self.left()} bytes too many")

    def unsigned(self, nbytes: int) -> int:
        """A little-endian unsigned integer of nbytes bytes."""
        return int.from_bytes(self.take(nbytes), "little")

    def varint(self) -> int:
        """An unsigned LEB128 integer below 2^64, minimally encoded."""
        value = 0
        for index in range(10):
            byte = self.unsigned(1)
            value |= (byte & 127) << 7 * index
            if byte < 128:
                require(byte > 0 or index == 0, f"{self.what} has a varint with a trailing zero group")
                require(value < 1 << 64, f"{self.what} has a varint beyond 64 bits")
                return value
        raise Malformed(f"{self.what} has a varint of more than ten bytes")

    def bit_stream(self, n_values: int, width: int) -> np.ndarray:
        """n_values values of width bits each, on whole bytes."""
        return bit_stream(self.take((n_values * width + 7) // 8), n_values, width, self.what)


def bit_stream(data: bytes, n_values: int, width: int, what: str) -> np.ndarray:
    """The n_values values of width bits that fill data, as an int64 array."""
    n_bits = n_values * width
    require(len(data) == (n_bits + 7) // 8, f"{what}: a bit stream of {len(data)} bytes for {n_bits} bits")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    require(not bits[n_bits:].any(), f"{what}: unused bits of a bit stream are not zero")
    powers = np.int64(1) << np.arange(width, dtype=np.int64)
    return bits[:n_bits].reshape(n_values, width).astype(np.int64) @ powers
