"""What a segment's bytes are, and how fast they are decoded."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

# What stored bytes are: planes by their kind, what stands in tails, with the padding, and what could not be read.
PARTS = ("symbols", "rest", "low", "other", "tails", "unknown")
_PART_OF_KIND = {"symbol": "symbols", "rest": "rest", "low": "low"}

# How decoding goes: in one pass of vector code, by copying, or by something slower.
FUSED, COPIED, SLOW = "fused", "copied", "slow"

# The slow ways, by codec or, for label rANS without a kernel, "label".
SLOW_WAYS = ("zstd", "huffman", "rans", "label", "unknown")

# The label steps that fused decoding has kernels for, as label_fused.c lists them, and whether these know phases.
KERNELS = {
    (2, 6, 9): True,
    (2, 7, 8): False,
    (4, 6, 9): True,
    (4, 7, 8): False,
    (2, 9, 6): True,
    (1, 2, 5): True,
    (1, 1, 6): True,
    (1, 3, 5): False,
}
_BLOCK = 512  # elements that a kernel decodes at a time
_GRANULE = 128  # of which a kernel's unit is a multiple

_STEP = re.compile(r"Chain\.(\w+)\(([\d, ]+)\)")


@dataclass(slots=True)
class Segment:
    """A segment of a file.

    Attributes
    ----------
    raw_nbytes, stored_nbytes
        Its sizes; the second is what `parts` adds up to.
    parts
        Bytes for each of PARTS.
    how
        Chain and codecs, for people.
    ways
        For each way of decoding (FUSED, COPIED and those of SLOW_WAYS) the part of the chunks that goes it, 0 to 1.
        Empty if the tail could not be read.
    checked
        Whether its planes have checksums.
    problem
        Why its tail could not be read; None if it could.
    """

    raw_nbytes: int
    stored_nbytes: int
    parts: dict[str, int] = field(default_factory=dict)
    how: str = ""
    ways: dict[str, float] = field(default_factory=dict)
    checked: bool = True
    problem: str | None = None

    @property
    def slow_ways(self) -> dict[str, float]:
        return {way: part for way, part in self.ways.items() if way in SLOW_WAYS}


def read_segment(storage: dict[str, Any], raw_nbytes: int, checked: bool) -> Segment:
    """A segment from what `describe_segment` says about it."""
    stored = storage["segment_stored_nbytes"]
    parts = dict.fromkeys(PARTS, 0)
    for plane in storage["planes"]:
        parts[_PART_OF_KIND.get(plane["kind"], "other")] += plane["stored_nbytes"]
    parts["tails"] = stored - sum(parts.values())  # with the padding
    return Segment(raw_nbytes, stored, parts, _how(storage), _ways(storage), checked)


def damaged_segment(raw_nbytes: int, stored_nbytes: int, checked: bool, problem: str) -> Segment:
    """A segment whose tail cannot be read."""
    parts = {**dict.fromkeys(PARTS, 0), "unknown": stored_nbytes}
    return Segment(raw_nbytes, stored_nbytes, parts, "unreadable", {}, checked, problem)


def _how(storage: dict[str, Any]) -> str:
    """Such as `label(2, 6, 9): rest carried, symbol label-rans`."""
    planes: list[list[Any]] = []
    for plane in storage["planes"]:
        text = f"{plane['kind']} {' + '.join(plane['codecs'])}"
        if planes and planes[-1][1] == text:
            planes[-1][0] += 1
        else:
            planes.append([1, text])
    chain = storage["chain"].replace("Chain.", "").replace("Chain()", "as it is")
    return f"{chain}: " + ", ".join(f"{count} x {text}" if count > 1 else text for count, text in planes)


def _ways(storage: dict[str, Any]) -> dict[str, float]:
    chunks = max(storage["chunks"], 1)
    slow: dict[str, float] = {}
    labelled = 0.0
    for plane in storage["planes"]:
        for codec, count in plane["codecs"].items():
            part = count / chunks
            if codec == "label-rans":
                labelled = part
            elif codec in SLOW_WAYS or codec.startswith("unknown"):
                way = codec if codec in SLOW_WAYS else "unknown"
                slow[way] = max(slow.get(way, 0.0), part)
    if labelled and not _has_kernel(storage):
        slow["label"] = labelled
        labelled = 0.0
    # Chunks are counted by codec, not one by one: those of different planes are taken to coincide as far as they can.
    rest = 1.0 - max(slow.values(), default=0.0)
    fused = min(labelled, rest)
    ways = {**slow, FUSED: fused, COPIED: rest - fused}
    return {way: part for way, part in ways.items() if part > 0}


def _has_kernel(storage: dict[str, Any]) -> bool:
    """Whether fused decoding serves label rANS in this segment, but for a last chunk that is too short."""
    steps = [(name, tuple(map(int, numbers.split(",")))) for name, numbers in _STEP.findall(storage["chain"])]
    model = storage["model"]
    if len(steps) != 1 or steps[0][0] != "label" or model is None:
        return False
    width, shift, bits = steps[0][1]
    symbols = next(plane for plane in storage["planes"] if plane["kind"] == "symbol")
    n_elements = symbols["raw_nbytes"] // (2 if bits > 8 else 1)
    return (
        (width, shift, bits) in KERNELS
        and (KERNELS[width, shift, bits] or not model["phases"])
        and model["unit"] % _GRANULE == 0
        and n_elements >= _BLOCK
    )
