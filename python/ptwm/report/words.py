"""What the parts of a file and the ways of decoding are called on the page, and what is said of them."""

from __future__ import annotations

from ptwm.report.segments import COPIED, FUSED

# For each part of a file, in the order of drawing: its name, and what it is.
PARTS = {
    "symbols": ("Symbols", "What is compressed: of floats the exponents, mostly with the top bit of the mantissa."),
    "rest": ("Rest", "What is left of an element's upper bits: sign and mantissa. Noise, packed as it is."),
    "low": ("Low", "The lower halves of 32-bit elements, and those of 64 bits. Noise, or zeros that were dropped."),
    "other": ("Bytes", "Integers, and whatever else is not cut into symbols: compressed byte by byte where that pays."),
    "tails": ("Tables", "What decoding needs to know: frequencies, column shifts, chunks, checksums; and padding."),
    "unknown": ("Unreadable", "Segments whose tables are damaged."),
    "index": ("Index", "Names, shapes, metadata and hashes: all that is read when the file is opened."),
}
PART_NAMES = {part: name for part, (name, _) in PARTS.items()}

WAY_NAMES = {
    FUSED: "vector code",
    COPIED: "copied",
    "label": "label rANS without a kernel",
    "rans": "byte rANS",
    "huffman": "Huffman",
    "zstd": "zstd",
    "unknown": "codecs that are not known",
}
WAYS = {
    FUSED: "Label rANS with a kernel: checksums, symbols and the other planes in one pass.",
    COPIED: "Stored as it is, or one value repeated. Nothing to decode.",
    "label": "Label rANS of a kind, or in units of a size, that the vector code does not do: element by element.",
    "rans": "Planes of bytes in interleaved rANS: byte by byte.",
    "huffman": "Planes of bytes in Huffman codes: byte by byte.",
    "zstd": "Planes that zstd stores, mostly of integers. Reading them needs the zstandard package.",
    "unknown": "This version cannot decode them.",
}

# How much longer the slow ways take than vector code: measured on x86-64, for models of each kind.
SLOWER = (4, 10)
