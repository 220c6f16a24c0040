"""ZipNN: method AUTO on bytes of a stated dtype, in one thread. It has no way for other dtypes, which are stored."""

from __future__ import annotations

from typing import Any

from bench.contenders.base import Contender, PerTensor
from bench.model import Model, Tensor

DTYPES = {
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}


class ZipNN(PerTensor):
    name = "zipnn"
    package = "zipnn"
    note = "method AUTO, one thread, each tensor a frame; what is no float stored; on copies, as it destroys its input"

    def start(self) -> None:
        import zipnn

        self._coders = {
            dtype: zipnn.ZipNN(input_format="byte", bytearray_dtype=name, threads=1) for dtype, name in DTYPES.items()
        }

    def input(self, model: Model) -> Any:
        # ZipNN reorders the bytes of its input in place, be they immutable.
        tensors = [tensor._replace(data=memoryview(bytearray(tensor.data))) for tensor in model.tensors]
        return Model(model.path, model.content, tensors)

    def encode_tensor(self, tensor: Tensor) -> bytes:
        coder = self._coders.get(tensor.dtype)
        return b"\0" + bytes(tensor.data) if coder is None else coder.compress(tensor.data)

    def decode_tensor(self, tensor: Tensor, frame: bytes) -> Any:
        coder = self._coders.get(tensor.dtype)
        return bytes(memoryview(frame)[1:]) if coder is None else coder.decompress(frame)


def contenders() -> list[Contender]:
    return [ZipNN()]
