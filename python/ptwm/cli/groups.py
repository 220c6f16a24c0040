"""Tensors grouped by what repeats from layer to layer, so that a thousand of them are read at a glance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

_NUMBER = re.compile(r"(?<![^._\[/-])\d{1,18}(?![^._\]/-])")  # numbers that are parts of a name, as in h.11.attn


@dataclass
class Group:
    """Tensors whose names differ in numbers only and that have one dtype and shape.

    Attributes
    ----------
    names
        Their names.
    first
        The report of the first, which has the dtype and shape.
    raw_nbytes, stored_nbytes
        Their sizes together.
    """

    first: dict[str, Any]
    names: list[str] = field(default_factory=list)
    raw_nbytes: int = 0
    stored_nbytes: int = 0

    def add(self, tensor: dict[str, Any]) -> None:
        self.names.append(tensor["name"])
        self.raw_nbytes += tensor["raw_nbytes"]
        self.stored_nbytes += tensor["stored_nbytes"]

    @property
    def pattern(self) -> str:
        """The names in one: `layers.[0-31].mlp.weight`; as it is for a lone name."""
        if len(self.names) == 1:
            return self.names[0]
        numbers = zip(*(map(int, _NUMBER.findall(name)) for name in self.names))
        ranges = iter([_range(set(column)) for column in numbers])
        return _NUMBER.sub(lambda match: next(ranges), self.names[0])


def _range(numbers: set[int]) -> str:
    """`3`, `[0-31]` if all between are there, else `[0,2,5]` or, if these are many, `[0..31]`."""
    low, high = min(numbers), max(numbers)
    if low == high:
        return str(low)
    if len(numbers) == high - low + 1:
        return f"[{low}-{high}]"
    if len(numbers) <= 4:
        return "[" + ",".join(map(str, sorted(numbers))) + "]"
    return f"[{low}..{high}]"


def group_tensors(tensors: Iterable[dict[str, Any]]) -> Sequence[Group]:
    """Groups tensors, as `info` reports them, in the order of their first appearance."""
    groups: dict[Any, Group] = {}
    for tensor in tensors:
        shape = None if tensor["shape"] is None else tuple(tensor["shape"])
        key = (_NUMBER.sub("#", tensor["name"]), _NUMBER.findall(tensor["name"]) == [], tensor["dtype"], shape)
        groups.setdefault(key, Group(tensor)).add(tensor)
    return list(groups.values())
