"""Elements of 1, 2, 4 and 6 bits: one a byte in memory (as ml_dtypes holds them), packed in files.

A file's bytes are a bit stream that fills each byte from its least significant bit, the first element lowest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Elements per group of whole bytes, and the bytes of such a group.
GROUPS = {1: (8, 1), 2: (4, 1), 4: (2, 1), 6: (4, 3)}


def pack(elements: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Packs one element a byte, shape (n,), to shape (n * bits / 8,).

    Bits above an element's are dropped. ValueError if the total is not whole bytes.
    """
    n_elements, n_bytes = GROUPS[bits]
    if elements.size * bits % 8:
        raise ValueError(f"{elements.size} elements of {bits} bits are not whole bytes")
    groups = (elements & ((1 << bits) - 1)).reshape(-1, n_elements).astype(np.uint32)
    words = np.zeros(groups.shape[0], np.uint32)
    for position in range(n_elements):
        words |= groups[:, position] << np.uint32(bits * position)
    packed = np.empty((groups.shape[0], n_bytes), np.uint8)
    for position in range(n_bytes):
        packed[:, position] = words >> np.uint32(8 * position) & np.uint32(255)
    return packed.reshape(-1)


def unpack(packed: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """The inverse of `pack`: shape (m,) to shape (m * 8 / bits,), one element a byte."""
    n_elements, n_bytes = GROUPS[bits]
    groups = packed.reshape(-1, n_bytes)
    elements = np.empty((groups.shape[0], n_elements), np.uint8)
    mask = (1 << bits) - 1
    for position in range(n_elements):
        first, shift = divmod(bits * position, 8)
        value = groups[:, first] >> shift
        if shift + bits > 8:
            value = value | groups[:, first + 1] << (8 - shift)
        elements[:, position] = value & mask
    return elements.reshape(-1)
