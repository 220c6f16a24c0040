"""Torch devices: decoding happens on the CPU, and what it gives is copied from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from ptwm._dtypes import Dtype
from ptwm._library import ffi
from ptwm._memory import Memory, torch_layout

if TYPE_CHECKING:
    import torch

    # None: the CPU, as tensors are decoded.
    Device = Union[str, int, torch.device, None]
else:
    Device = Any


def or_none(device: Device) -> Device:
    """A device, with None for the CPU. RuntimeError for what names no device."""
    import torch

    if device is None:
        return None
    try:
        return None if torch.device(device).type == "cpu" else device
    except RuntimeError as error:
        raise _no_device(device, error) from error


def check_device(device: Device) -> None:
    """RuntimeError, which says why, if torch cannot put tensors on a device. To be called before other work."""
    if device is None:
        return
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise _no_device(device, error) from error


def _no_device(device: Device, error: Exception) -> RuntimeError:
    # Which exception it is, and how much it says, depends on what torch was built with.
    reason = str(error).strip().split("\n")[0]
    return RuntimeError(f"torch cannot use the device {device!r}: {reason}")


def wants_pinned(device: Device) -> bool:
    """Whether copies to a device are faster, and do not wait, from memory that is pinned."""
    if device is None:
        return False
    import torch

    return torch.device(device).type == "cuda" and torch.cuda.is_available()


class PinnedMemory(Memory):
    """Memory for one tensor that is to be copied to a GPU, from torch's own allocator, which pins and reuses it."""

    __slots__ = ("_owner",)

    def __init__(self, nbytes: int) -> None:
        import torch

        self._owner = torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)
        super().__init__(nbytes, ffi.cast("char *", self._owner.data_ptr()))

    @classmethod
    def for_many(cls, sizes: Sequence[int]) -> list[Memory]:
        return [cls(nbytes) if nbytes else Memory(0) for nbytes in sizes]

    def tensor(self, dtype: Dtype, shape: tuple[int, ...]) -> torch.Tensor:
        # A view of the owner, by whose storage torch knows that the memory is pinned and when a copy is done with it.
        element, shape = torch_layout(dtype, shape)
        return self._owner.view(element).reshape(shape)


def to_device(tensor: torch.Tensor, device: Device) -> torch.Tensor:
    """A tensor copied to a device; None: as it is.

    The copy does not wait if the tensor's memory is pinned. torch keeps such memory from being used again until the
    copy is done, and orders it before what the device does next.
    """
    if device is None:
        return tensor
    return tensor.to(device, non_blocking=wants_pinned(device) and tensor.is_pinned())
