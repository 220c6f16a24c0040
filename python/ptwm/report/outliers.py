"""Tensors that compress otherwise than those of their type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptwm.cli.groups import Group

MAX_OUTLIERS = 8
_MIN_DIFFERENCE = 0.03
_MIN_NBYTES = 4096  # below that, a tensor's share of its segment is what the others make of it


@dataclass(frozen=True)
class Outlier:
    """A group of tensors with its ratio, and that of all tensors of its type."""

    group: Group
    ratio: float
    usual: float


def find_outliers(groups: Sequence[Group]) -> list[Outlier]:
    """The groups whose ratios differ most from their types', large ones first among those that differ alike."""
    totals: dict[str | None, list[int]] = {}
    for group in groups:
        total = totals.setdefault(group.first["dtype"], [0, 0])
        total[0] += group.stored_nbytes
        total[1] += group.raw_nbytes
    found = []
    for group in groups:
        stored, raw = totals[group.first["dtype"]]
        if group.first["raw_nbytes"] >= _MIN_NBYTES and raw > group.raw_nbytes:
            ratio = group.stored_nbytes / group.raw_nbytes
            if abs(ratio - stored / raw) >= _MIN_DIFFERENCE:
                found.append(Outlier(group, ratio, stored / raw))
    found.sort(key=lambda outlier: -abs(outlier.ratio - outlier.usual) * outlier.group.raw_nbytes.bit_length())
    return found[:MAX_OUTLIERS]
