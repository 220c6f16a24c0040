"""What an index expression means: which elements of a tensor it needs, and where the result is in them."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Selection:
    """What a basic index means for a tensor of a certain shape.

    Attributes
    ----------
    shape
        The tensor's.
    axes
        For each axis the positions that are selected, in order; one for an integer.
    key
        The numpy index that makes the result of an array of the elements at these positions: it drops the axes of
        integers and adds those of None.
    """

    shape: tuple[int, ...]
    axes: tuple[range, ...]
    key: tuple[Any, ...]

    @property
    def is_empty(self) -> bool:
        return any(not positions for positions in self.axes)


def select(shape: tuple[int, ...], key: Any) -> Selection:
    """Reads an index of integers, slices, Ellipsis and None; as in safetensors, an empty list is an empty slice.

    IndexError for an integer outside its axis or too many indices, TypeError for anything but such an index.
    """
    items = _expand(key if isinstance(key, tuple) else (key,), len(shape))
    axes: list[range] = []
    picks: list[Any] = []
    for item in items:
        if item is None or item is Ellipsis:
            picks.append(item)
            continue
        dim = shape[len(axes)]
        if isinstance(item, slice):
            axes.append(range(dim)[item])
            picks.append(slice(None))
        else:
            position = _position(item, dim, len(axes))
            axes.append(range(position, position + 1))
            picks.append(0)
    return Selection(shape, tuple(axes), tuple(picks))


def _expand(items: tuple[Any, ...], n_dims: int) -> list[Any]:
    """An index with an entry for each axis. Ellipsis stays at the end, where it only means "an array, not a scalar"."""
    items = tuple(slice(0, 0) if isinstance(item, list) and not item else item for item in items)
    for item in items:
        if isinstance(item, bool) or not (item is None or item is Ellipsis or isinstance(item, slice) or _is_int(item)):
            raise TypeError(f"a tensor is sliced by integers, slices, ... and None, not {type(item).__name__}")
    n_ellipses = sum(item is Ellipsis for item in items)
    n_axes = sum(item is not None and item is not Ellipsis for item in items)
    if n_ellipses > 1:
        raise IndexError("an index can have only one ellipsis")
    if n_axes > n_dims:
        raise IndexError(f"too many indices: {n_axes} for a tensor of {n_dims} dimensions")
    fill = [slice(None)] * (n_dims - n_axes)
    if not n_ellipses:
        return [*items, *fill]
    at = next(position for position, item in enumerate(items) if item is Ellipsis)
    return [*items[:at], *fill, *items[at + 1 :], Ellipsis]


def _is_int(item: Any) -> bool:
    return hasattr(type(item), "__index__") and getattr(item, "ndim", 0) == 0


def _position(item: Any, dim: int, axis: int) -> int:
    position = operator.index(item)
    if not -dim <= position < dim:
        raise IndexError(f"index {position} is out of bounds for axis {axis} with size {dim}")
    return position % dim


# --------------------------------------------------------------------------------------------------- what it needs


@dataclass(frozen=True)
class Plan:
    """How the elements that a selection needs are fetched.

    They lie in one block for each combination of positions on the first axes: whole rows of the axis behind those, from
    the first that is needed to the last. Of a block only the part from the first needed element to the last is decoded.

    Attributes
    ----------
    outer
        The axes whose positions have blocks of their own: the first so many.
    starts
        Where the blocks begin: elements of the tensor, in C order.
    block
        The shape of each block.
    first, end
        The elements of a block that are needed: first .. end - 1.
    inner
        The numpy index that picks the selected elements from a block.
    """

    outer: tuple[range, ...]
    starts: tuple[int, ...]
    block: tuple[int, ...]
    first: int
    end: int
    inner: tuple[slice, ...]


def n_outer_axes(selection: Selection, gap: int) -> int:
    """How many axes of a selection get blocks of their own if gaps of `gap` elements and more are to be passed over.

    A gap smaller than a chunk holds no whole one: decoding it, too, touches no chunk more than is needed.
    """
    extent = 1  # from the first needed element to the last, behind the axis that is looked at
    row = 1  # elements from one position of that axis to the next
    for axis in reversed(range(len(selection.axes))):
        positions = selection.axes[axis]
        if len(positions) > 1 and abs(positions.step) * row - extent >= gap:
            return axis + 1
        extent += (max(positions) - min(positions)) * row
        row *= selection.shape[axis]
    return 0


def plan(selection: Selection, n_outer: int) -> Plan:
    """The plan for a selection that is not empty, with blocks for the positions on at least so many axes."""
    shape, axes = selection.shape, selection.axes
    # Axes with one position need no more blocks, and leave smaller ones.
    while n_outer < len(axes) and len(axes[n_outer]) == 1:
        n_outer += 1
    rows = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]  # elements from one position to the next
    outer, inner = axes[:n_outer], axes[n_outer:]
    starts = tuple(_starts(outer, rows[:n_outer]))
    if not inner:
        return Plan(outer, starts, (), 0, 1, ())
    base = min(inner[0])  # the first row that is needed
    starts = tuple(start + base * rows[n_outer] for start in starts)
    block = (max(inner[0]) - base + 1, *shape[n_outer + 1 :])
    picks = (_within(inner[0], base), *(_within(positions, 0) for positions in inner[1:]))
    first = sum(min(positions) * row for positions, row in zip(inner, rows[n_outer:])) - base * rows[n_outer]
    last = sum(max(positions) * row for positions, row in zip(inner, rows[n_outer:])) - base * rows[n_outer]
    return Plan(outer, starts, block, first, last + 1, picks)


def _starts(axes: tuple[range, ...], rows: list[int]) -> Iterator[int]:
    for positions in itertools.product(*axes):
        yield sum(map(operator.mul, positions, rows))


def _within(positions: range, base: int) -> slice:
    """The slice that selects positions of an axis that begins at base."""
    # Descending positions may end with the first of the axis, for which a slice has no stop but None.
    stop = positions[-1] - base + (1 if positions.step > 0 else -1)
    return slice(positions[0] - base, None if stop < 0 else stop, positions.step)
