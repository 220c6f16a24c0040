"""Peak memory of loading and of compressing, each in a process of its own, with all threads."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import child
from bench.contenders.files import PtwmFile, SafetensorsFile, all_file_contenders
from bench.model import Model
from bench.timing import describe
from bench.workspace import Workspace


def memory(workspace: Workspace) -> dict[str, Any]:
    """Peaks in bytes; see `child.measure`. "raw_nbytes" of them are the loaded tensors."""
    model, directory = workspace.model, workspace.options.directory
    rows = []
    for contender in (PtwmFile("mmap"), PtwmFile("pread"), SafetensorsFile("mmap"), SafetensorsFile("pread")):
        path = directory / f"memory{contender.suffix}"
        try:
            contender.start()
            if not path.exists():
                contender.save(model, path)
        except Exception as error:
            rows.append({"name": f"load {contender.name}", "failure": describe(error)})
        else:
            rows.append({"name": f"load {contender.name}", **child.measure(f"load {contender.name}", path)})
    output = str(directory / "memory-output.ptwm")
    for what in ("into a file", "into memory"):
        rows.append({"name": f"compress {what}", **child.measure(f"compress {what}", model.path, output)})
    return {"raw_nbytes": model.nbytes, "rows": rows}


def prepare(verb: str, what: str, path: Path, argument: str) -> Callable[[], Any]:
    """`child`'s operations "load CONTENDER" and "compress into memory" or "into a file"."""
    if verb == "load":
        contender = next(contender for contender in all_file_contenders() if contender.name == what)
        contender.start()
        _warm_up(contender)
        return lambda: contender.load(path, threads=0) if isinstance(contender, PtwmFile) else contender.load(path)
    from ptwm.sharding import compress_ptwm_blob, write_ptwm_shard

    with path.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    model = Model.of(path, view)
    tensors = [(tensor.name, tensor.data, tensor.dtype, tensor.shape) for tensor in model.tensors]
    compress_ptwm_blob([("warm up", bytes(64), "U8", (64,))])
    if what == "into memory":
        return lambda: compress_ptwm_blob(tensors)
    return lambda: write_ptwm_shard(argument, tensors)


def _warm_up(contender: Any) -> None:
    """Loads a tiny file, so that what a process does once is not counted."""
    import tempfile

    import torch
    from safetensors.torch import save

    content = save({"x": torch.zeros(64)})
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"tiny{contender.suffix}"
        contender.save(Model.of(path, content), path)
        contender.load(path)
