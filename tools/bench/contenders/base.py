"""What a contender is: something that encodes a model's tensors in memory and decodes them again."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any, ClassVar

from bench.model import Model, Tensor, flat


class Archive:
    """An encoded model. nbytes is what it takes, in memory or on a disk."""

    nbytes: int
    into_copies: ClassVar[bool] = True  # decode_into is decode_one and a copy, for want of anything better

    def reset(self) -> None:
        """Forgets what was decoded, so that the next call decodes. Not timed."""

    def decode_all(self) -> dict[str, Any]:
        """Every tensor's bytes, by name, in memory that was allocated for them."""
        raise NotImplementedError

    def decode_one(self, name: str) -> Any:
        """One tensor's bytes, wherever the contender puts them."""
        raise NotImplementedError

    def decode_into(self, name: str, buffer: memoryview) -> None:
        """One tensor's bytes into the caller's memory."""
        flat(buffer)[:] = flat(self.decode_one(name))

    def close(self) -> None:
        """Removes what is outside Python's memory."""


class Contender:
    """One package in one configuration."""

    name: str  # of the configuration
    package: str  # as pip knows it
    note: str  # the configuration in words
    sizes_only: bool = False  # too slow to be timed
    is_peer: bool = True  # one that is made for model weights, of which the fastest counts

    def start(self) -> None:
        """Imports the package; whatever it raises is why the contender is missing."""
        raise NotImplementedError

    def version(self) -> str:
        return metadata.version(self.package)

    def input(self, model: Model) -> Any:
        """What encode takes, prepared outside of the clock; a new one for each call."""
        return model

    def encode(self, source: Any, threads: int = 1) -> Archive:
        raise NotImplementedError

    def open(self, archive: Archive, threads: int) -> Archive:
        """The same archive, to be decoded by so many threads."""
        if threads != 1:
            raise NotImplementedError
        return archive


class Frames(Archive):
    """One frame for each tensor."""

    def __init__(
        self,
        frames: dict[str, tuple[Tensor, bytes]],
        decode: Callable[[Tensor, bytes], Any],
        decode_into: Callable[[Tensor, bytes, memoryview], None] | None = None,
    ) -> None:
        self._frames = frames
        self._decode = decode
        self._decode_into = decode_into
        self.into_copies = decode_into is None  # type: ignore[misc]
        self.nbytes = sum(len(frame) for _, frame in frames.values())

    def decode_all(self) -> dict[str, Any]:
        return {name: self.decode_one(name) for name in self._frames}

    def decode_one(self, name: str) -> Any:
        tensor, frame = self._frames[name]
        return self._decode(tensor, frame) if tensor.nbytes else b""

    def decode_into(self, name: str, buffer: memoryview) -> None:
        if self._decode_into is None:
            super().decode_into(name, buffer)
        else:
            self._decode_into(*self._frames[name], buffer)


class PerTensor(Contender):
    """A contender without a container: each tensor is a frame of its own, and names and shapes cost it nothing."""

    def encode(self, source: Any, threads: int = 1) -> Archive:
        if threads != 1:
            raise NotImplementedError
        frames = {
            tensor.name: (tensor, self.encode_tensor(tensor) if tensor.nbytes else b"") for tensor in source.tensors
        }
        into = self.decode_tensor_into if type(self).decode_tensor_into is not PerTensor.decode_tensor_into else None
        return Frames(frames, self.decode_tensor, into)

    def encode_tensor(self, tensor: Tensor) -> bytes:
        raise NotImplementedError

    def decode_tensor(self, tensor: Tensor, frame: bytes) -> Any:
        raise NotImplementedError

    def decode_tensor_into(self, tensor: Tensor, frame: bytes, buffer: memoryview) -> None:
        raise NotImplementedError


# Bytes of an element, by the names of safetensors; 1 for types below a byte.
WIDTHS = {
    "BF16": 2, "F16": 2, "I16": 2, "U16": 2, "F32": 4, "I32": 4, "U32": 4, "F64": 8, "I64": 8, "U64": 8, "C64": 8
}  # fmt: skip


def width(tensor: Tensor) -> int:
    return WIDTHS.get(tensor.dtype, 1)
