"""Numpy arrays in .ptwm files, with the functions that safetensors.numpy has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ptwm._dtypes import resolve
from ptwm._memory import little_endian
from ptwm._packing import pack
from ptwm.random_access.opening import open_buffer, open_tensors
from ptwm.sharding.options import EncodingOptions, Method
from ptwm.sharding.writer import Writer

__all__ = ["load", "load_file", "save", "save_file"]


def load_file(
    filename: str | os.PathLike[str],
    backend: str = "mmap",
    *,
    check: str = "crc",
    max_nbytes: int | None = None,
    threads: int | None = None,
) -> dict[str, np.ndarray[Any, Any]]:
    """All tensors of a file, a .ptwm or a .safetensors one, or a directory of them, in the order of writing.

    Arrays own their memory and are writable; bf16, fp8, fp6 and fp4 are dtypes of ml_dtypes. `backend`, `threads`,
    `check` and `max_nbytes` (which bounds the sum) are as in `TensorIndex`, and so are the errors. TypeError if a
    tensor has no dtype or one that numpy lacks: use `TensorIndex.get_bytes`.
    """
    with open_tensors(filename, backend=backend, threads=threads) as index:
        return index._load_arrays(check, max_nbytes)


def load(
    data: bytes, *, check: str = "crc", max_nbytes: int | None = None, threads: int | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """The same for a file that is in memory."""
    with open_buffer(data, threads=threads) as index:
        return index._load_arrays(check, max_nbytes)


def save_file(
    tensor_dict: Mapping[str, np.ndarray[Any, Any]],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    *,
    threads: int | None = None,
) -> None:
    """Writes arrays to a file, atomically, in the dict's order.

    Arrays of any memory layout and byte order are stored by value; equal ones are stored once. TypeError for what is no
    array, ValueError for a dtype that the format lacks.
    """
    _check(tensor_dict)
    with Writer(filename, metadata=metadata, threads=threads) as writer:
        _add_all(writer, tensor_dict)


def save(
    tensor_dict: Mapping[str, np.ndarray[Any, Any]],
    metadata: Mapping[str, str] | None = None,
    *,
    threads: int | None = None,
) -> bytes:
    """The file that `save_file` writes, as bytes."""
    _check(tensor_dict)
    with Writer._in_memory(metadata, EncodingOptions(threads)) as writer:
        _add_all(writer, tensor_dict)
        return writer._finish_bytes()


def _check(tensor_dict: Mapping[str, Any]) -> None:
    for name, array in tensor_dict.items():
        if not isinstance(array, (np.ndarray, np.generic)):
            raise TypeError(f"tensor {name!r} is not a numpy array but a {type(array).__name__}")


def _add_all(writer: Writer, tensor_dict: Mapping[str, np.ndarray[Any, Any]]) -> None:
    writer._add_many(_in_file_form(tensor_dict))


def _in_file_form(tensor_dict: Mapping[str, np.ndarray[Any, Any]]) -> Iterator[tuple[Any, ...]]:
    for name, array in tensor_dict.items():
        try:
            dtype, _ = resolve(array.dtype)
            data = little_endian(array)
            if dtype.is_packed:
                data = pack(data.reshape(-1).view(np.uint8), dtype.bits)
        except ValueError as error:
            raise ValueError(f"tensor {name!r}: {error}") from error
        yield name, data, dtype.name, array.shape, None, Method.MICROSCALE
