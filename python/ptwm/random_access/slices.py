"""Parts of tensors, decoded as far as an index expression needs them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptwm._errors import PtwmError
from ptwm._memory import Memory, numpy_layout, tensor_of_items, torch_layout, whole_bytes
from ptwm.random_access.devices import Device, to_device
from ptwm.random_access.selection import Plan, Selection, n_outer_axes, plan, select

if TYPE_CHECKING:
    import numpy as np
    import torch

    from ptwm.random_access.index import TensorIndex

# Gaps of so many raw bytes are passed over, and smaller ones in files whose chunks are smaller. Chunks that several
# parts touch are decoded once.
_GAP_NBYTES = 64 << 10
# Where arrays of any type may begin.
_ALIGNMENT = 64


class TensorSlice:
    """A tensor that is decoded as far as an index expression asks for it: `part = index.get_slice(name)[10:20]`.

    Integers, slices with any step, Ellipsis and None work as in numpy, and the result is a numpy array of its own (a
    scalar where numpy gives one). Chunks that hold nothing that was asked for are neither read nor decoded.
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
        element, _ = numpy_layout(self._dtype, self._shape)
        selection = select(self._shape, key)
        if self._dtype.is_packed:
            return self._fetch_packed(selection, element)
        return self._fetch(selection, element, self._dtype.bits // 8)

    def _plan(self, selection: Selection, per_item: int = 1) -> Plan:
        """How a selection of items, of so many elements each, is fetched."""

        def n_outer(gap_nbytes: int) -> int:
            return n_outer_axes(selection, max(gap_nbytes * 8 // self._dtype.bits // per_item, 1))

        # The smaller the gaps that are passed over, the more parts there are, and the less memory they take. It matters
        # for what is decoded only where a gap may hold a whole chunk.
        few = n_outer(_GAP_NBYTES)
        if n_outer(1) == few:
            return plan(selection, few)
        return plan(selection, n_outer(min(self._index._chunk_size(self._name), _GAP_NBYTES)))

    def _fetch(self, selection: Selection, element: Any, item_nbytes: int, per_item: int = 1) -> Any:
        """The selected items, of so many bytes and elements each."""
        if selection.is_empty:
            return _empty(selection, element)
        steps = self._plan(selection, per_item)
        block_nbytes = math.prod(steps.block) * item_nbytes
        stride = block_nbytes + -block_nbytes % _ALIGNMENT if len(steps.starts) > 1 else block_nbytes
        self._index._check_memory(self._name, stride * len(steps.starts), self._max_nbytes)
        memory = Memory(stride * len(steps.starts))
        places = range(0, memory.nbytes, stride)
        ranges = [
            (
                (start + steps.first) * per_item,
                (start + steps.end) * per_item,
                memory.pointer + place + steps.first * item_nbytes,
            )
            for start, place in zip(steps.starts, places)
        ]
        self._index._fetch_ranges(self._name, ranges, self._check)
        content = memory.raw()
        return _assemble([content[place : place + block_nbytes].view(element) for place in places], steps, selection)

    def _fetch_packed(self, selection: Selection, element: Any) -> Any:
        """The same for elements that are smaller than a byte: what is decoded begins and ends on whole bytes."""
        if selection.is_empty:
            return _empty(selection, element)
        steps = self._plan(selection)
        n_elements = math.prod(steps.block)
        spans = [whole_bytes(self._dtype, start, start + n_elements) for start in steps.starts]
        # An element takes a byte when it is unpacked.
        self._index._check_memory(self._name, sum(high - low for low, high in spans), self._max_nbytes)
        memories = [Memory((high - low) * self._dtype.bits // 8) for low, high in spans]
        ranges = []
        for start, (low, _), memory in zip(steps.starts, spans, memories):
            first, end = whole_bytes(self._dtype, start + steps.first, start + steps.end)
            ranges.append((first, end, memory.pointer + (first - low) * self._dtype.bits // 8))
        self._index._fetch_ranges(self._name, ranges, self._check)
        blocks = [
            memory.array(self._dtype, (high - low,))[start - low :][:n_elements]
            for start, (low, high), memory in zip(steps.starts, spans, memories)
        ]
        return _assemble(blocks, steps, selection)

    def __repr__(self) -> str:
        return f"<TensorSlice of {self._name!r}: {self._dtype.name}, shape {self._shape}>"


class TorchSlice(TensorSlice):
    """The same with torch tensors as results, on a device. Packed pairs are indexed as torch has them, in twos."""

    _layout: Callable[..., Any] = staticmethod(torch_layout)

    def __init__(self, index: TensorIndex, name: str, device: Device = None) -> None:
        super().__init__(index, name)
        self._device = device
        self._element, self._items = torch_layout(self._dtype, self._shape)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the tensors that indexing gives."""
        return self._element

    @property
    def shape(self) -> torch.Size:
        """The shape of the whole, as torch has it."""
        import torch

        return torch.Size(self._items)

    def is_floating_point(self) -> bool:
        """Whether the tensors that indexing gives are of a floating-point dtype."""
        return self._element.is_floating_point

    def __getitem__(self, key: Any) -> torch.Tensor:
        # numpy does not care what the bytes mean, and unlike torch takes negative steps.
        opaque = f"V{self._element.itemsize}"
        per_item = 2 if self._dtype.torch_pair else 1
        items = self._fetch(select(self._items, key), opaque, self._element.itemsize, per_item)
        return to_device(tensor_of_items(items, self._element), self._device)


def _empty(selection: Selection, element: Any) -> Any:
    import numpy

    try:
        return numpy.empty(tuple(map(len, selection.axes)), element)[selection.key]
    except ValueError as error:
        raise PtwmError(f"shape {selection.shape} is more than numpy can hold: {error}") from error


def _assemble(blocks: list[np.ndarray[Any, Any]], steps: Plan, selection: Selection) -> Any:
    """The selected elements of blocks: a view of all of a lone one, or a copy."""
    import numpy

    lengths = tuple(map(len, selection.axes))
    try:
        # Ellipsis: also what has no axes is an array.
        key: Any = (*steps.inner, ...)
        parts = [block.reshape(steps.block)[key] for block in blocks]
        if len(parts) > 1:
            joined = numpy.empty((len(parts), *parts[0].shape), parts[0].dtype)
            for number, part in enumerate(parts):
                joined[number] = part
            return joined.reshape(lengths)[selection.key]
        part = parts[0].reshape(lengths)[selection.key]
    except ValueError as error:
        raise PtwmError(f"shape {selection.shape} is more than numpy can hold: {error}") from error
    # A small part is not to keep all that was decoded for it.
    return part.copy() if part.size < blocks[0].size else part
