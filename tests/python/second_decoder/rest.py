"""Section 5: how the rests of elements are packed."""

import numpy as np

from .cursor import bit_stream
from .errors import require

BLOCK = 512


def packed_nbytes(n: int, bits: int) -> int:
    """The length of a plane of n rests of so many bits."""
    return 64 * bits * (n // BLOCK) + (n % BLOCK * bits + 7) // 8


def unpack(data: bytes, n: int, bits: int) -> np.ndarray:
    """The n rests of a plane, as int64."""
    require(len(data) == packed_nbytes(n, bits), "the length of a rest plane")
    n_blocks = n // BLOCK
    whole = 64 * bits * n_blocks
    last = bit_stream(data[whole:], n % BLOCK, bits, "a rest plane")
    unpack_blocks = {2: _unpack2, 3: _unpack3, 7: _unpack7, 8: _unpack8, 10: _unpack10}.get(bits)
    if unpack_blocks is None:
        blocks = bit_stream(data[:whole], n_blocks * BLOCK, bits, "a rest plane")
    else:
        # The last axis is that of a block, the functions fill it.
        packed = np.frombuffer(data, np.uint8, whole).reshape(n_blocks, 64 * bits)
        blocks = np.zeros((n_blocks, BLOCK), np.int64)
        unpack_blocks(packed, blocks)
    return np.concatenate([blocks.reshape(-1), last])


def _words(packed: np.ndarray) -> np.ndarray:
    return packed.view("<u2").astype(np.int64)


def _swap(words: np.ndarray) -> np.ndarray:
    return words >> 8 | (words & 255) << 8


def _bit(values: np.ndarray, index: int) -> np.ndarray:
    return values >> index & 1


def _unpack8(packed: np.ndarray, rests: np.ndarray) -> None:
    words = _words(packed)
    for t in range(8):
        w = words[:, 32 * t : 32 * t + 32]
        for first, half in ((64 * t, w), (64 * t + 32, _swap(w))):
            rests[:, first : first + 32] = half & 127 | _bit(half, 15) << 7


def _unpack7(packed: np.ndarray, rests: np.ndarray) -> None:
    words = _words(packed)
    for t in range(7):
        w = words[:, 32 * t : 32 * t + 32]
        for first, half in ((64 * t, w), (64 * t + 32, _swap(w))):
            rests[:, first : first + 32] = half & 63 | _bit(half, 15) << 6
        rests[:, 448:480] |= _bit(w, 6) << t
        rests[:, 480:512] |= _bit(w, 14) << t


def _unpack10(packed: np.ndarray, rests: np.ndarray) -> None:
    words = _words(packed)
    for g in range(2):
        w = words[:, 32 * g : 32 * g + 32]
        for m in range(8):
            bit9, bit8 = (15 - m, 8 - m) if m < 7 else (0, 1)
            first = 256 * g + 32 * m
            rests[:, first : first + 32] = _bit(w, bit9) << 9 | _bit(w, bit8) << 8
    for t in range(8):
        w = words[:, 64 + 32 * t : 96 + 32 * t]
        rests[:, 64 * t : 64 * t + 32] |= w & 255
        rests[:, 64 * t + 32 : 64 * t + 64] |= w >> 8


def _unpack3(packed: np.ndarray, rests: np.ndarray) -> None:
    values = packed.astype(np.int64)
    for q in range(3):
        b = values[:, 64 * q : 64 * q + 64]
        rests[:, 64 * q : 64 * q + 64] = _bit(b, 7) << 2 | b & 3
        rests[:, 192 + 64 * q : 256 + 64 * q] = _bit(b, 6) << 2 | b >> 2 & 3
    b0, b1, b2 = (values[:, 64 * q : 64 * q + 64] for q in range(3))
    rests[:, 384:448] = _bit(b0, 5) << 2 | _bit(b2, 5) << 1 | _bit(b0, 4)
    rests[:, 448:512] = _bit(b1, 5) << 2 | _bit(b2, 4) << 1 | _bit(b1, 4)


def _unpack2(packed: np.ndarray, rests: np.ndarray) -> None:
    values = packed.astype(np.int64)
    for v in range(8):
        b = values[:, 64 * (v // 4) : 64 * (v // 4) + 64]
        rests[:, 64 * v : 64 * v + 64] = _bit(b, 7 - v % 4) << 1 | _bit(b, v % 4)
