"""Those that load models from files: ptwm and safetensors, and the peers with containers of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import timing
from bench.contenders.ours import release_pages
from bench.model import Model


class FileContender:
    """One way to hold a model in a file."""

    name: str
    suffix: str

    def start(self) -> None:
        """Imports the package; whatever it raises is why the contender is missing."""

    def save(self, model: Model, path: Path) -> None:
        raise NotImplementedError

    def load(self, path: Path, threads: int = 1) -> dict[str, Any]:
        """All tensors, as torch tensors or buffers."""
        raise NotImplementedError


class PtwmFile(FileContender):
    suffix = ".ptwm"

    def __init__(self, backend: str) -> None:
        self.name = f"ptwm {backend}"
        self._backend = backend

    def start(self) -> None:
        import ptwm.torch

        self._load = ptwm.torch.load_file
        timing.keepers["ptwm"] = release_pages

    def save(self, model: Model, path: Path) -> None:
        from ptwm.sharding import write_ptwm_shard

        write_ptwm_shard(path, [(tensor.name, tensor.data, tensor.dtype, tensor.shape) for tensor in model.tensors])

    def load(self, path: Path, threads: int = 1) -> dict[str, Any]:
        return self._load(path, backend=self._backend, threads=threads)


class SafetensorsFile(FileContender):
    suffix = ".safetensors"

    def __init__(self, backend: str) -> None:
        self.name = f"safetensors {backend}"
        self._backend = backend

    def start(self) -> None:
        import safetensors.torch

        self._load: Callable[..., dict[str, Any]] = safetensors.torch.load_file
        self._options = {"backend": self._backend}
        if "backend" not in inspect.signature(self._load).parameters:
            if self._backend != "mmap":
                raise NotImplementedError("this safetensors has no backends")
            self._options = {}

    def save(self, model: Model, path: Path) -> None:
        path.write_bytes(model.content)

    def load(self, path: Path, threads: int = 1) -> dict[str, Any]:
        return self._load(path, **self._options)


class Z4aiFile(FileContender):
    name = "z4ai"
    suffix = ".zstn"

    def start(self) -> None:
        import z4ai.integrations
        import z4ai.safetensors

        self._z4ai = z4ai

    def save(self, model: Model, path: Path) -> None:
        path.write_bytes(self._z4ai.safetensors.compress_bytes(model.content))

    def load(self, path: Path, threads: int = 1) -> dict[str, Any]:
        return self._z4ai.integrations.load_file(str(path))


class LmzFile(FileContender):
    name = "lmz"
    suffix = ".lmz"

    def start(self) -> None:
        import lmz

        self._lmz = lmz

    def save(self, model: Model, path: Path) -> None:
        self._names = [tensor.name for tensor in model.tensors]
        path.unlink(missing_ok=True)
        self._lmz.compress(str(model.path), str(path))

    def load(self, path: Path, threads: int = 1) -> dict[str, Any]:
        with self._lmz.MappedArchive(str(path), workers=threads) as archive:
            return {name: archive.tensor(name)[2] for name in self._names}


def all_file_contenders() -> list[FileContender]:
    return [
        PtwmFile("mmap"),
        PtwmFile("pread"),
        SafetensorsFile("mmap"),
        SafetensorsFile("pread"),
        Z4aiFile(),
        LmzFile(),
    ]
