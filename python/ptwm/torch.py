"""Torch tensors in .ptwm files, with the functions that safetensors.torch has."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import torch

from ptwm._dtypes import resolve
from ptwm._load_model import load_into_model
from ptwm.random_access.devices import or_none
from ptwm.random_access.opening import open_buffer, open_tensors
from ptwm.sharding.options import EncodingOptions, Method
from ptwm.sharding.writer import Writer

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
    """All tensors of a file, a .ptwm or a .safetensors one, or a directory of them, in the order of writing.

    Each has a storage of its own, of exactly its size. `backend`, `threads`, `check` and `max_nbytes` (which bounds the
    sum) are as in `TensorIndex`, and so are the errors. TypeError if a tensor has no dtype or one that torch lacks: use
    `TensorIndex.get_bytes`.
    """
    with open_tensors(filename, backend=backend, threads=threads) as index:
        return index._load_tensors(or_none(device), check, max_nbytes)


def load(
    data: bytes,
    device: str | int | torch.device = "cpu",
    *,
    check: str = "crc",
    max_nbytes: int | None = None,
    threads: int | None = None,
) -> dict[str, torch.Tensor]:
    """The same for a file that is in memory."""
    with open_buffer(data, threads=threads) as index:
        return index._load_tensors(or_none(device), check, max_nbytes)


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
    with Writer._in_memory(metadata, EncodingOptions(threads)) as writer:
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

    Opens what `load_file` opens. Parameters and buffers that are in the CPU's memory and of the file's dtype are
    decoded where they are, without a copy; others are converted, by way of `device`. If an error is raised after
    decoding has begun, the module's content is undefined.

    Returns the module's names that the file lacks and the file's names that the module lacks, sorted. A name is not
    missing if another that is tied to it is in the file, as in files that come from safetensors. If the file has
    tensors that differ for names that the module ties, it gets the first, and the names of the others count as
    unexpected.

    Raises
    ------
    RuntimeError
        Shapes differ, or `strict` and one of the two lists is not empty.
    """
    with open_tensors(filename, backend=backend, threads=threads) as index:
        return load_into_model(index, model, strict, or_none(device), check)


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
