"""Section 6: the codecs that see a plane as bytes."""

import numpy as np
import zstandard

from .chain import Plane
from .cursor import Cursor, bit_stream
from .errors import Malformed, require

IDENTITY, CONSTANT, HUFFMAN, RANS, ZSTD, LABEL_RANS, TRIM, CARRIED = range(8)


def decode(codec: int, stored: bytes, plane: Plane) -> bytes:
    """A plane from its stored form by any codec but label rANS and carried."""
    if codec == IDENTITY:
        require(len(stored) == plane.nbytes, "identity: the length is not the plane's")
        return stored
    if codec == CONSTANT:
        require(len(stored) == plane.element_nbytes, "constant: not one element")
        return stored * (plane.nbytes // plane.element_nbytes)
    if codec == HUFFMAN:
        return _huffman(Cursor(stored, "huffman"), plane.nbytes)
    if codec == RANS:
        return _rans(Cursor(stored, "rans"), plane.nbytes)
    if codec == ZSTD:
        return _zstd(stored, plane.nbytes)
    if codec == TRIM:
        require(plane.kind == "low", "trim is for low planes")
        return _trim(Cursor(stored, "trim"), plane.nbytes // 2)
    raise Malformed(f"unknown codec {codec}")


def carried(stored: bytes, nbytes: int, carried_words: np.ndarray) -> bytes:
    """A rest plane from its stored form and the u16 that the lanes of label rANS carry."""
    plane = carried_words.astype("<u2").tobytes() + stored
    require(len(plane) == nbytes, "carried: the length is not the plane's")
    return plane


def _zstd(stored: bytes, nbytes: int) -> bytes:
    try:
        parameters = zstandard.get_frame_parameters(stored)
        require(parameters.dict_id == 0, "zstd: a dictionary")
        require(parameters.content_size == nbytes, "zstd: the frame declares another size")
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        plane = decompressor.decompress(stored)
    except zstandard.ZstdError as error:
        raise Malformed(f"zstd: {error}") from None
    require(decompressor.eof and not decompressor.unused_data, "zstd: not exactly one frame")
    require(len(plane) == nbytes, "zstd: another size than declared")
    return plane


def _symbol_set(cursor: Cursor) -> list[int]:
    """Section 6.1: the byte values that have a code, ascending."""
    groups = cursor.unsigned(2)
    require(groups > 0, "a symbol set without groups")
    values = []
    for g in range(16):
        if groups >> g & 1:
            members = cursor.unsigned(2)
            require(members > 0, "a group of a symbol set without members")
            values += [16 * g + j for j in range(16) if members >> j & 1]
    return values


def _huffman(cursor: Cursor, n: int) -> bytes:
    values = _symbol_set(cursor)
    if len(values) == 1:
        cursor.finish()
        return bytes(values) * n
    lengths = cursor.bit_stream(len(values), 4).tolist()
    table = _huffman_table(values, lengths)
    stream_nbytes = [cursor.varint() for _ in range(3)]
    streams = [cursor.take(nbytes) for nbytes in stream_nbytes] + [cursor.rest()]
    quarter = -(-n // 4)
    return b"".join(
        _huffman_stream(stream, table, max(0, min((s + 1) * quarter, n) - s * quarter))
        for s, stream in enumerate(streams)
    )


def _huffman_table(values: list[int], lengths: list[int]) -> list[tuple[int, int]]:
    """For each 11 bits, the first one on top: the value whose code they begin with, and its length."""
    require(all(1 <= length <= 11 for length in lengths), "huffman: a code length")
    table = []
    for length, value in sorted(zip(lengths, values)):
        table += [(value, length)] * (1 << 11 - length)
    require(len(table) == 1 << 11, "huffman: the code lengths do not make a whole code")
    return table


def _huffman_stream(stream: bytes, table: list[tuple[int, int]], n: int) -> bytes:
    bits = np.unpackbits(np.frombuffer(stream, np.uint8), bitorder="little")
    padded = np.concatenate([bits, np.zeros(11, np.uint8)]).astype(np.int64)
    # For each position in the stream, the 11 bits from there on.
    windows = np.sum([padded[j : j + len(bits) + 1] << 10 - j for j in range(11)], axis=0).tolist()
    decoded = bytearray()
    position = 0
    for _ in range(n):
        require(position < len(bits), "huffman: a stream ends early")
        value, length = table[windows[position]]
        decoded.append(value)
        position += length
    require(position <= len(bits), "huffman: a stream ends within a code")
    require((position + 7) // 8 == len(stream), "huffman: a stream has bytes without a code")
    require(not bits[position:].any(), "huffman: unused bits of a stream are not zero")
    return bytes(decoded)


def _rans(cursor: Cursor, n: int) -> bytes:
    values = _symbol_set(cursor)
    frequencies = [cursor.varint() + 1 for _ in values[1:]]
    frequencies.append(4096 - sum(frequencies))
    require(frequencies[-1] >= 1, "rans: frequencies of more than 4096")
    slots = np.repeat(np.arange(len(values)), frequencies)
    starts = np.cumsum(frequencies) - frequencies
    lanes = 4 if n < 1024 else 32
    states = np.frombuffer(cursor.take(4 * lanes), "<u4").astype(np.int64)
    require(states.min() >= 65536, "rans: a state below 65536")
    words = Words(cursor.rest())
    frequency = np.array(frequencies, np.int64)
    decoded = np.empty(n, np.int64)
    for first in range(0, n, lanes):
        x = states[: n - first]
        low = x % 4096
        v = slots[low]
        decoded[first : first + lanes] = v
        x[:] = frequency[v] * (x // 4096) + low - starts[v]
        words.refill(x)
    require(bool((states == 65536).all()), "rans: a final state is not 65536")
    words.finish()
    return np.array(values, np.uint8)[decoded].tobytes()


class Words:
    """The words that rANS states are refilled from."""

    def __init__(self, data: bytes) -> None:
        require(len(data) % 2 == 0, "rANS: half a word")
        self.words = np.frombuffer(data, "<u2").astype(np.int64)
        self.position = 0

    def refill(self, states: np.ndarray) -> None:
        """Gives each state below 65536 the next word, in ascending order. Changes states."""
        below = np.flatnonzero(states < 65536)
        end = self.position + len(below)
        require(end <= len(self.words), "rANS: the words end early")
        states[below] = states[below] * 65536 + self.words[self.position : end]
        self.position = end

    def finish(self) -> None:
        """All words have to be used."""
        require(self.position == len(self.words), "rANS: words are left over")


def _trim(cursor: Cursor, n: int) -> bytes:
    unit = cursor.varint()
    require(unit % 128 == 0 and 0 < unit <= 1 << 20, "trim: the unit")
    n_units = -(-n // unit)
    trims: list[int] = []
    before = None
    while len(trims) < n_units:
        length, t = cursor.varint(), cursor.unsigned(1)
        require(1 <= length <= n_units - len(trims), "trim: a run of units")
        require(t <= 16 and t != before, "trim: the bits of a run")
        trims += [t] * length
        before = t
    decoded = []
    for index, t in enumerate(trims):
        m = min(unit, n - index * unit)
        kept = bit_stream(cursor.take((m * (16 - t) + 7) // 8), m, 16 - t, "trim")
        decoded.append(kept << t)
    cursor.finish()
    return np.concatenate(decoded).astype("<u2").tobytes()
