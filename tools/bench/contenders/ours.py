"""ptwm itself."""

from __future__ import annotations

from typing import Any

from bench import timing
from bench.contenders.base import Archive, Contender
from bench.model import Model


def release_pages() -> None:
    """Frees the pages that ptwm keeps of tensors that are gone, as it has no public function for that.

    Should this miss them, page faults will tell: see `report`.
    """
    from ptwm import _memory
    from ptwm._library import ffi, lib

    spare = getattr(_memory, "_spare", ())
    while spare:
        nbytes, address = spare.popleft()
        lib.ptwm_memory_free(ffi.cast("void *", address), nbytes)


class PtwmArchive(Archive):
    into_copies = False

    def __init__(self, content: bytes, threads: int) -> None:
        from ptwm import TensorIndex

        self.content = content
        self.threads = threads
        self.nbytes = len(content)
        self.index = TensorIndex.from_buffer(content, threads=threads)

    def decode_all(self) -> dict[str, Any]:
        import ptwm.torch

        return ptwm.torch.load(self.content, threads=self.threads)

    def decode_one(self, name: str) -> Any:
        return self.index.get_tensor(name)

    def decode_into(self, name: str, buffer: memoryview) -> None:
        self.index.get_into(name, buffer)

    def decode_into_unchecked(self, name: str, buffer: memoryview) -> None:
        """Without checking CRCs."""
        self.index.get_into(name, buffer, check="none")


class Ptwm(Contender):
    name = "ptwm"
    package = "ptwm"
    note = "compress_ptwm_blob; ptwm.torch.load, TensorIndex.get_into; checksums written and checked"
    is_peer = False

    def start(self) -> None:
        import ptwm.torch  # noqa: F401
        from ptwm.sharding import compress_ptwm_blob

        self._compress = compress_ptwm_blob
        timing.keepers["ptwm"] = release_pages

    def input(self, model: Model) -> Any:
        return [(tensor.name, tensor.data, tensor.dtype, tensor.shape) for tensor in model.tensors]

    def encode(self, source: Any, threads: int = 1) -> Archive:
        return PtwmArchive(self._compress(source, threads=threads), threads)

    def open(self, archive: Archive, threads: int) -> Archive:
        assert isinstance(archive, PtwmArchive)
        return PtwmArchive(archive.content, threads)
