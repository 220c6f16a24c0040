"""A .safetensors file as the bench sees it: bytes, and where each tensor's are."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Tensor(NamedTuple):
    """A tensor's record and its raw bytes, as a read-only view of the file's."""

    name: str
    dtype: str  # as safetensors names it
    shape: tuple[int, ...]
    data: memoryview

    @property
    def nbytes(self) -> int:
        return len(self.data)


@dataclass
class Model:
    """A whole file in memory."""

    path: Path
    content: Any  # bytes, or a read-only map of the file
    tensors: list[Tensor]

    @classmethod
    def read(cls, path: Path) -> Model:
        """ValueError if it is no .safetensors file, or one without any bytes of tensors."""
        return cls.of(path, path.read_bytes())

    @classmethod
    def of(cls, path: Path, content: Any) -> Model:
        """A file whose content is at hand."""
        view = memoryview(content)
        try:
            begin = 8 + int.from_bytes(content[:8], "little")
            header = json.loads(content[8:begin])
            header.pop("__metadata__", None)
            tensors = [
                Tensor(name, record["dtype"], tuple(record["shape"]), view[begin + low : begin + high])
                for name, record in header.items()
                for low, high in [record["data_offsets"]]
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: not a .safetensors file ({error})") from None
        if not any(tensor.nbytes for tensor in tensors):
            raise ValueError(f"{path}: its tensors hold nothing to measure")
        return cls(path, content, tensors)

    @property
    def nbytes(self) -> int:
        """Of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors)

    @property
    def largest(self) -> Tensor:
        return max(self.tensors, key=lambda tensor: tensor.nbytes)

    @property
    def dtypes(self) -> dict[str, int]:
        """Bytes of each dtype, most first."""
        totals: dict[str, int] = {}
        for tensor in self.tensors:
            totals[tensor.dtype] = totals.get(tensor.dtype, 0) + tensor.nbytes
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    def checksum(self) -> int:
        """Of the content, to notice who writes to it."""
        return zlib.crc32(self.content)


def flat(data: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of whatever a contender returns (a buffer, an array, a torch tensor) as a numpy array, uncopied."""
    if type(data).__module__.partition(".")[0] == "torch":
        import torch

        data = data.contiguous().reshape(-1).view(torch.uint8).numpy()
    if isinstance(data, np.ndarray):
        return data.reshape(-1).view(np.uint8)
    return np.frombuffer(data, np.uint8)


def address(data: Any) -> int:
    """Where a buffer begins in memory."""
    return int(flat(data).ctypes.data)


def difference(model: Model, decoded: dict[str, Any]) -> str | None:
    """What is wrong with decoded tensors, or None if they are the model's, bit for bit."""
    if decoded.keys() != {tensor.name for tensor in model.tensors}:
        return "wrong tensors: the names differ"
    for tensor in model.tensors:
        if not same(tensor, decoded[tensor.name]):
            return f"wrong bytes in {tensor.name}"
    return None


def same(tensor: Tensor, data: Any) -> bool:
    """Whether decoded data is a tensor's, bit for bit."""
    return np.array_equal(flat(data), flat(tensor.data))
