"""lmz (PyPI: lmzip): archives of files, so the model and the archive are files in memory (/dev/shm)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from bench.contenders.base import Archive, Contender
from bench.model import Model, address


class LmzArchive(Archive):
    def __init__(self, model: Model, path: Path, directory: tempfile.TemporaryDirectory[str]) -> None:
        import lmz

        self._directory = directory  # which is removed with the archive
        self._model = model
        self._path = path
        self._index = lmz.ArchiveIndex(str(path))
        self._chunks = self._index.chunks()
        self._content = memoryview(path.read_bytes())
        self._map: Any = None
        self.nbytes = path.stat().st_size

    def reset(self) -> None:
        import lmz

        if self._map is not None:
            self._map.close()
        self._map = lmz.MappedArchive(str(self._path), workers=1)  # each has a cache of what it decoded

    def decode_all(self) -> dict[str, Any]:
        content = bytearray(len(self._model.content))
        view = memoryview(content)
        start = address(view)
        try:
            for chunk in self._chunks:
                target = view[chunk.dst : chunk.dst + chunk.rlen]
                payload = self._content[chunk.off : chunk.off + chunk.clen]
                plain = self._index.decode(chunk, payload, out=target)
                if not plain or address(plain) != start + chunk.dst:  # some of its codecs ignore out
                    target[:] = plain
        except self._index.NeedsSource:  # chunks that repeat others
            view[:] = self._map.read(0, len(content))
        begin = address(self._model.content)
        return {
            tensor.name: view[offset : offset + tensor.nbytes]
            for tensor in self._model.tensors
            for offset in [address(tensor.data) - begin if tensor.nbytes else 0]
        }

    def decode_one(self, name: str) -> Any:
        return self._map.tensor(name)[2]

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
        self._directory.cleanup()


class Lmz(Contender):
    package = "lmzip"

    def __init__(self, name: str, note: str, **options: Any) -> None:
        self.name = name
        self.note = note
        self._options = options

    def start(self) -> None:
        import lmz

        self._lmz = lmz
        self._kernel = lmz.backends()["kernel"]

    def version(self) -> str:
        return f"{super().version()} ({self._kernel})"

    def input(self, model: Model) -> Any:
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        directory = tempfile.TemporaryDirectory(prefix="bench-lmz-", dir=memory)
        source = Path(directory.name) / "model.safetensors"
        source.write_bytes(model.content)
        return model, source, directory

    def encode(self, source: Any, threads: int = 1) -> Archive:
        model, path, directory = source
        target = path.with_suffix(".lmz")
        self._lmz.compress(str(path), str(target), workers=threads, **self._options)
        return LmzArchive(model, target, directory)


def contenders() -> list[Contender]:
    return [
        Lmz("lmz", "as by default (blocks of 8 MiB), one worker, checksums"),
        Lmz("lmz-mapped", "mapped=True: blocks of 64 KiB, for random access", mapped=True),
    ]
