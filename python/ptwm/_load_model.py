"""Loading a file's tensors into a torch module."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from ptwm._dtypes import resolve
from ptwm._memory import torch_layout
from ptwm.random_access.devices import Device
from ptwm.random_access.records import TensorEntry

if TYPE_CHECKING:
    from ptwm.random_access.index import TensorIndex


def load_into_model(
    index: TensorIndex, model: torch.nn.Module, strict: bool, device: Device, check: str
) -> tuple[list[str], list[str]]:
    """See `ptwm.torch.load_model`."""
    state = model.state_dict()
    entries = {entry.name: entry for entry in index.entries()}
    _check_shapes(index, model, state, entries)
    ties = _tied_names(state)
    groups = [names for names in ([name for name in group if name in entries] for group in ties) if names]
    surplus = [name for names in groups for name in _differing(index, names)]
    wanted = [name for name in entries if name not in surplus]

    # What lies in memory as the file has it is decoded right there. For the module to hear of it, its hooks included,
    # it is given to load_state_dict like all the others: copying a tensor onto itself is nothing.
    in_place = {name: state[name] for name in wanted if name in state and _is_like(state[name], entries[name])}
    index.get_many_into(_distinct(in_place), check=check)
    others = dict(index.stream_tensors([name for name in wanted if name not in in_place], device, check=check))
    tensors = {**in_place, **others}
    result = model.load_state_dict(tensors, strict=False)

    loaded = {name for group in ties if any(name in tensors for name in group) for name in group}
    missing = sorted(name for name in result.missing_keys if name not in loaded)
    unexpected = sorted([*result.unexpected_keys, *surplus])
    if strict and (missing or unexpected):
        raise RuntimeError(_complaint(index, model, missing, unexpected))
    return missing, unexpected


def _check_shapes(
    index: TensorIndex, model: torch.nn.Module, state: Mapping[str, Any], entries: Mapping[str, TensorEntry]
) -> None:
    """RuntimeError, before anything is changed, for tensors of other shapes than the module's."""
    wrong = []
    for name, tensor in state.items():
        if name in entries and isinstance(tensor, torch.Tensor) and not torch.nn.parameter.is_lazy(tensor):
            _, shape = torch_layout(*index._typed(name, torch_layout))
            if shape != tuple(tensor.shape):
                wrong.append(f"{name}: {tuple(tensor.shape)} in the module, {shape} in the file")
    if wrong:
        raise RuntimeError(f"{index.path} does not fit {type(model).__name__}: " + "; ".join(wrong))


def _tied_names(state: Mapping[str, Any]) -> list[list[str]]:
    """The names of each tensor that has memory: several for those that are the same memory seen the same way."""
    groups: dict[Any, list[str]] = {}
    for name, tensor in state.items():
        if isinstance(tensor, torch.Tensor):
            groups.setdefault(_place(tensor) if _has_memory(tensor) else name, []).append(name)
    return list(groups.values())


def _has_memory(tensor: torch.Tensor) -> bool:
    return tensor.numel() > 0 and tensor.device.type != "meta" and not torch.nn.parameter.is_lazy(tensor)


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


def _differing(index: TensorIndex, names: list[str]) -> list[str]:
    """Those of several names of one parameter under which the file has something else than under the first."""
    first, *others = names
    return [name for name in others if not _same_content(index, first, name)]


def _same_content(index: TensorIndex, left: str, right: str) -> bool:
    with index._gate:
        one, other = index._find(left), index._find(right)
        if index._share_bytes(one, other):
            return True
    if (one.code, one.shape) != (other.code, other.shape):
        return False
    if one.hash is not None and other.hash is not None and one.hash != other.hash:
        return False
    return index.get_bytes(left) == index.get_bytes(right)


def _is_like(tensor: Any, entry: TensorEntry) -> bool:
    """Whether a tensor's memory can be filled with a file's bytes as they are."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and sys.byteorder == "little"
        and tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and tensor.is_contiguous()
        and not (tensor.is_conj() or tensor.is_neg() or tensor.is_quantized or torch.nn.parameter.is_lazy(tensor))
        and _spelling(tensor.dtype) == entry.dtype
    )


def _spelling(dtype: torch.dtype) -> str | None:
    try:
        return resolve(dtype)[0].name
    except ValueError:
        return None


def _distinct(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tied tensors once."""
    return dict({_place(tensor): (name, tensor) for name, tensor in tensors.items() if tensor.numel()}.values())


def _complaint(index: TensorIndex, model: torch.nn.Module, missing: list[str], unexpected: list[str]) -> str:
    """What torch and safetensors say, and of which file."""
    lines = [f"Error(s) in loading {index.path} into {type(model).__name__}:"]
    for what, names in (("Missing", missing), ("Unexpected", unexpected)):
        if names:
            lines.append(f"    {what} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in names))
    return "\n".join(lines)
