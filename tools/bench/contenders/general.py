"""Compressors that know nothing of weights, and the container that compresses nothing."""

from __future__ import annotations

from typing import Any

from bench.contenders.base import Archive, Contender, PerTensor, width
from bench.model import Model, Tensor


class SafetensorsArchive(Archive):
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.nbytes = len(content)

    def decode_all(self) -> dict[str, Any]:
        import safetensors.torch

        return safetensors.torch.load(self.content)

    def decode_one(self, name: str) -> Any:
        return self.decode_all()[name]


class Safetensors(Contender):
    """For its size; loading is compared in files."""

    name = "safetensors"
    package = "safetensors"
    note = "the file as it is"
    sizes_only = True
    is_peer = False

    def start(self) -> None:
        import safetensors.torch  # noqa: F401

    def encode(self, source: Model, threads: int = 1) -> Archive:
        return SafetensorsArchive(source.content)


class Zstandard(PerTensor):
    package = "zstandard"
    is_peer = False

    def __init__(self, level: int) -> None:
        self.level = level
        self.name = f"zstd-{level}"
        self.note = f"level {level}, each tensor a frame"
        self.sizes_only = level > 9

    def start(self) -> None:
        import zstandard

        self._compressor = zstandard.ZstdCompressor(level=self.level)
        self._decompressor = zstandard.ZstdDecompressor()

    def encode_tensor(self, tensor: Tensor) -> bytes:
        return self._compressor.compress(tensor.data)

    def decode_tensor(self, tensor: Tensor, frame: bytes) -> Any:
        return self._decompressor.decompress(frame)

    def decode_tensor_into(self, tensor: Tensor, frame: bytes, buffer: memoryview) -> None:
        with self._decompressor.stream_reader(frame) as reader:
            if reader.readinto(buffer) != tensor.nbytes:
                raise ValueError("short read")


class Blosc2(PerTensor):
    package = "blosc2"
    is_peer = False

    def __init__(self, name: str, codec: str, level: int, filter: str) -> None:
        self.name = name
        self.note = f"{codec} level {level} after {filter}, each tensor a frame"
        self._options = (codec, level, filter)

    def start(self) -> None:
        import blosc2

        codec, level, filter = self._options
        self._blosc2 = blosc2
        blosc2.set_nthreads(1)
        filters = [blosc2.Filter.NOFILTER] * 5 + [blosc2.Filter[filter]]
        self._parameters = {"codec": blosc2.Codec[codec], "clevel": level, "filters": filters, "nthreads": 1}

    def encode_tensor(self, tensor: Tensor) -> bytes:
        return self._blosc2.compress2(tensor.data, typesize=width(tensor), **self._parameters)

    def decode_tensor(self, tensor: Tensor, frame: bytes) -> Any:
        return self._blosc2.decompress2(frame, nthreads=1)

    def decode_tensor_into(self, tensor: Tensor, frame: bytes, buffer: memoryview) -> None:
        self._blosc2.decompress2(frame, dst=buffer, nthreads=1)


def contenders() -> list[Contender]:
    return [
        Safetensors(),
        Zstandard(3),
        Zstandard(19),
        Blosc2("blosc2-zstd", "ZSTD", 1, "SHUFFLE"),  # on weights smaller than with higher levels, and than BITSHUFFLE
        Blosc2("blosc2-lz4", "LZ4", 5, "BITSHUFFLE"),  # its fastest
    ]
