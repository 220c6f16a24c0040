"""z4ai: its container for .safetensors files, and its two faster ways for single tensors."""

from __future__ import annotations

from typing import Any

from bench.contenders.base import Archive, Contender, PerTensor
from bench.model import Model, Tensor, address

DTYPES = {
    "BF16": "bf16",
    "F16": "fp16",
    "F32": "fp32",
    "F64": "fp64",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "I8": "int8",
    "U8": "uint8",
    "F8_E4M3": "fp8_e4m3",
    "F8_E5M2": "fp8_e5m2",
}


class ZstnArchive(Archive):
    def __init__(self, model: Model, frame: bytes) -> None:
        import z4ai.safetensors

        self._model = model
        self._frame = frame
        self._z4ai = z4ai.safetensors
        self._reader = z4ai.safetensors.ZstnReader.from_bytes(frame)
        self.nbytes = len(frame)

    def decode_all(self) -> dict[str, Any]:
        view = memoryview(self._z4ai.decompress_bytes(self._frame, workers=1))
        begin = address(self._model.content)
        return {
            tensor.name: view[offset : offset + tensor.nbytes]
            for tensor in self._model.tensors
            for offset in [address(tensor.data) - begin if tensor.nbytes else 0]
        }

    def decode_one(self, name: str) -> Any:
        return self._reader.read_raw(name)


class Zstn(Contender):
    name = "z4ai"
    package = "z4ai"
    note = "z4ai.safetensors: its container, default effort, one worker"

    def start(self) -> None:
        import z4ai.safetensors

        self._z4ai = z4ai.safetensors

    def encode(self, source: Model, threads: int = 1) -> Archive:
        return ZstnArchive(source, self._z4ai.compress_bytes(source.content, threads=threads, workers=threads))


class Z4aiFast(PerTensor):
    name = "z4ai-fast"
    package = "z4ai"
    note = 'compress(effort="fast"), each tensor a frame'

    def start(self) -> None:
        import z4ai

        self._z4ai = z4ai

    def encode_tensor(self, tensor: Tensor) -> bytes:
        return self._z4ai.compress(tensor.data, dtype=DTYPES.get(tensor.dtype), threads=1, effort="fast")

    def decode_tensor(self, tensor: Tensor, frame: bytes) -> Any:
        return self._z4ai.decompress(frame)


class Z4aiChunked(PerTensor):
    name = "z4ai-chunked"
    package = "z4ai"
    note = "z4ai.chunked, its way for throughput, each tensor a frame"

    def start(self) -> None:
        from z4ai import chunked

        self._chunked = chunked

    def encode_tensor(self, tensor: Tensor) -> bytes:
        return self._chunked.compress(bytes(tensor.data), dtype=DTYPES.get(tensor.dtype), threads=1)

    def decode_tensor(self, tensor: Tensor, frame: bytes) -> Any:
        return self._chunked.decompress(frame, threads=1)


def contenders() -> list[Contender]:
    return [Zstn(), Z4aiFast(), Z4aiChunked()]
