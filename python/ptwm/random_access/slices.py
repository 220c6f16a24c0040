"""Parts of tensors: which elements an index expression needs, and how it picks its result from them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptwm._errors import PtwmError
from ptwm._memory import numpy_layout, tensor_of_items, to_device, torch_layout, whole_bytes

if TYPE_CHECKING:
    import numpy as np
    import torch

    from ptwm.random_access.index import TensorIndex


@dataclass(frozen=True)
class Selection:
    """What an index expression means for a tensor of a certain shape.

    Attributes
    ----------
    first, shape
        The contiguous elements, in C order, that hold everything selected: where they begin and their shape.
    key
        The numpy index that picks the result from them.
    """

    first: int
    shape: tuple[int, ...]
    key: tuple[Any, ...]


def select(shape: tuple[int, ...], key: Any) -> Selection:
    """Maps a basic index (integers, slices, Ellipsis, None) to the elements that it needs.

    Leading integers and the first slice narrow what is decoded; what follows is left to numpy. IndexError for an
    integer outside its axis or too many indices, TypeError for anything but a basic index.
    """
    items = _expand(key if isinstance(key, tuple) else (key,), len(shape))
    first, axis = 0, 0
    picks: list[Any] = []
    for position, item in enumerate(items):
        if item is None or item is Ellipsis:
            picks.append(item)
            continue
        inner = math.prod(shape[axis + 1 :])
        if isinstance(item, slice):
            low, high, item = _bound(item, shape[axis])
            kept = (high - low, *shape[axis + 1 :])
            return Selection(first + low * inner, kept, (*picks, item, *items[position + 1 :]))
        first += _position(item, shape[axis], axis) * inner
        axis += 1
    return Selection(first, (), tuple(picks))


def _expand(items: tuple[Any, ...], n_dims: int) -> list[Any]:
    """An index with an entry for each axis. Ellipsis stays at the end, where it only means "an array, not a scalar"."""
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


def _bound(item: slice, dim: int) -> tuple[int, int, slice]:
    """The rows from the first to the last that a slice picks, and the slice that picks them from just these."""
    rows = range(dim)[item]
    if not rows:
        return 0, 0, slice(0, 0)
    low, high = min(rows[0], rows[-1]), max(rows[0], rows[-1]) + 1
    # Descending rows end with the first that is kept, for which a slice has no stop but None.
    return low, high, slice(rows[0] - low, None, rows.step)


class TensorSlice:
    """A tensor that is decoded as far as an index expression asks for it: `part = index.get_slice(name)[10:20]`.

    Integers, slices with any step, Ellipsis and None work as in numpy, and the result is a numpy array of its own (a
    scalar where numpy gives one).
    """

    # Refuses dtypes and shapes that the framework lacks.
    _layout: Callable[..., Any] = staticmethod(numpy_layout)

    def __init__(self, index: TensorIndex, name: str, check: str = "crc", max_nbytes: int | None = None) -> None:
        self._index = index
        self._name = name
        self._dtype, self._shape = index._typed(name, self._layout)
        self._check = check
        self._max_nbytes = max_nbytes

    def get_shape(self) -> list[int]:
        """The tensor's shape, in elements."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """The tensor's dtype, as .safetensors files spell it."""
        return self._dtype.name

    def __getitem__(self, key: Any) -> Any:
        selection = select(self._shape, key)
        first, count = selection.first, math.prod(selection.shape)
        low, high = whole_bytes(self._dtype, first, first + count)
        memory = self._index._fetch_range(self._name, low, high, self._check, self._max_nbytes)
        block = memory.array(self._dtype, (high - low,))[first - low :][:count]
        return _pick(block, selection)

    def __repr__(self) -> str:
        return f"<TensorSlice of {self._name!r}: {self._dtype.name}, shape {self._shape}>"


class TorchSlice(TensorSlice):
    """The same with torch tensors as results, on a device. Packed pairs are indexed as torch has them, in twos."""

    _layout: Callable[..., Any] = staticmethod(torch_layout)

    def __init__(self, index: TensorIndex, name: str, device: Any = None) -> None:
        super().__init__(index, name)
        self._device = device
        self._element, self._items = torch_layout(self._dtype, self._shape)

    def __getitem__(self, key: Any) -> torch.Tensor:
        selection = select(self._items, key)
        per_item = 2 if self._dtype.torch_pair else 1
        first, count = selection.first * per_item, math.prod(selection.shape) * per_item
        memory = self._index._fetch_range(self._name, first, first + count, self._check, self._max_nbytes)
        # Indexed by numpy, which does not care what the bytes mean, and unlike torch takes negative steps.
        return to_device(tensor_of_items(_pick(memory.items(self._element), selection), self._element), self._device)


def _pick(block: np.ndarray[Any, Any], selection: Selection) -> Any:
    """The part of a block that was selected: a view of it all, or a copy of less."""
    try:
        shaped = block.reshape(selection.shape)
    except ValueError as error:
        raise PtwmError(f"shape {selection.shape} is more than numpy can hold: {error}") from error
    part = shaped[selection.key]
    # A small part is not to keep all that was decoded for it.
    return part.copy() if part.size < block.size else part
