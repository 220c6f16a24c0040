"""Torch tensors in .ptwm files, with the functions that safetensors.torch has."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import torch

from ptwm._dtypes import resolve
from ptwm.random_access import TensorIndex
from ptwm.sharding.writer import Method, Writer

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]


def load_file(
    filename: str | os.PathLike[str],
    device: str | int | torch.device = "cpu",
    backend: str = "mmap",
    *,
    check: str = "crc",
    max_nbytes: int | None = None,
    threads: int | None = None,
) -> dict[str, torch.Tensor]:
    """All tensors of a file, in the order of writing, on a device.

    Each has a storage of its own, of exactly its size. `backend`, `threads`, `check` and `max_nbytes` (which bounds the
    sum) are as in `TensorIndex`, and so are the errors. TypeError if a tensor has no dtype or one that torch lacks: use
    `TensorIndex.get_bytes`.
    """
    with TensorIndex(filename, backend=backend, threads=threads) as index:
        return _load(index, device, check, max_nbytes)


def load(
    data: bytes,
    device: str | int | torch.device = "cpu",
    *,
    check: str = "crc",
    max_nbytes: int | None = None,
    threads: int | None = None,
) -> dict[str, torch.Tensor]:
    """The same for a file that is in memory."""
    with TensorIndex.from_buffer(data, threads=threads) as index:
        return _load(index, device, check, max_nbytes)


def save_file(
    tensors: Mapping[str, torch.Tensor],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    *,
    threads: int | None = None,
) -> None:
    """Writes tensors to a file, atomically, in the dict's order.

    Tensors of any strides and device are stored by value; equal ones (tied weights among them) are stored once.
    TypeError for what is no dense tensor, ValueError for a dtype that the format lacks.
    """
    _check(tensors)
    with Writer(filename, metadata=metadata, threads=threads) as writer:
        _add_all(writer, tensors)


def save(
    tensors: Mapping[str, torch.Tensor],
    metadata: Mapping[str, str] | None = None,
    *,
    threads: int | None = None,
) -> bytes:
    """The file that `save_file` writes, as bytes."""
    _check(tensors)
    with Writer._in_memory(metadata, threads) as writer:
        _add_all(writer, tensors)
        return writer._finish_bytes()


def save_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    force_contiguous: bool = True,
    *,
    threads: int | None = None,
) -> None:
    """Writes a module's state dict to a file, as `save_file` does.

    Tied parameters keep all their names and are stored once. `force_contiguous` is there for callers of safetensors:
    every memory layout is stored by value.
    """
    save_file(model.state_dict(), filename, metadata, threads=threads)


def load_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: str | int | torch.device = "cpu",
    *,
    backend: str = "mmap",
    check: str = "crc",
    threads: int | None = None,
) -> tuple[list[str], list[str]]:
    """Loads a file into a module's parameters and buffers, which stay tied where they are.

    Returns the module's names that the file lacks and the file's names that the module lacks, sorted. A name is not
    missing if another that is tied to it is in the file, as in files that come from safetensors.

    Raises
    ------
    RuntimeError
        Shapes differ, or `strict` and one of the two lists is not empty.
    """
    tensors = load_file(filename, device, backend, check=check, threads=threads)
    ties = _ties(model.state_dict())
    result = model.load_state_dict(tensors, strict=False)
    loaded = {ties[name] for name in tensors if name in ties}
    missing = sorted(name for name in result.missing_keys if ties.get(name) not in loaded)
    unexpected = sorted(result.unexpected_keys)
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"{os.fspath(filename)} does not fit {type(model).__name__}: missing {missing}, unexpected {unexpected}"
        )
    return missing, unexpected


def _ties(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """For each tensor that has memory something that is equal for those that are the same memory seen the same way."""
    return {
        name: (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        for name, tensor in tensors.items()
        if isinstance(tensor, torch.Tensor) and tensor.numel() and tensor.device.type != "meta"
    }


def _load(
    index: TensorIndex, device: str | int | torch.device, check: str, max_nbytes: int | None
) -> dict[str, torch.Tensor]:
    if torch.device(device).type == "cpu":
        return index._load_tensors(check, max_nbytes)
    # Only two batches are in the CPU's memory at a time.
    index._check_total(max_nbytes)
    return dict(index.stream_tensors(device=device, check=check))


def _check(tensors: Mapping[str, Any]) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"tensor {name!r} is not a torch tensor but a {type(tensor).__name__}")
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
            raise TypeError(f"tensor {name!r} is not dense: {tensor.layout}, {tensor.dtype}, {tensor.device}")


def _add_all(writer: Writer, tensors: Mapping[str, torch.Tensor]) -> None:
    writer._add_many(
        (name, _by_value(tensor), tensor.dtype, tensor.shape, None, Method.MICROSCALE)
        for name, tensor in tensors.items()
    )


def _by_value(tensor: torch.Tensor) -> Any:
    """A tensor's values in C order in the CPU's memory, little-endian; without a copy if they are so already."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if sys.byteorder == "little":
        return tensor
    bits = resolve(tensor.dtype)[0].bits
    width = bits // 16 if tensor.is_complex() else max(bits // 8, 1)
    return tensor.reshape(-1).view(torch.uint8).numpy().view(f"u{width}").byteswap()
