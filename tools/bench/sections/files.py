"""Loading models from files, from a warm and from a cold page cache."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import make_variants, residency
from bench.contenders.files import FileContender, all_file_contenders
from bench.model import Model, difference, flat
from bench.timing import Task, alternate, describe, pinned
from bench.workspace import Workspace, memcpy, table

PAGE = 4096
COLD_NBYTES = 500_000_000
READ = "reading the .safetensors"


def warm(workspace: Workspace, fresh: bool = True) -> dict[str, Any]:
    """load_file of the model and a touch of every page, on one core, the files in the page cache.

    fresh: as a process's first load; without it as one of many, on memory that the one before may have left.
    """
    contenders, failures = _saved(workspace.model, workspace.options.directory, only=None)
    tasks = [memcpy(workspace.model.tensors)]
    tasks += [Task(contender.name, partial(_load_and_touch, contender, path)) for contender, path in contenders]
    backed = 2 * workspace.model.nbytes if fresh else 0
    result = workspace.run(tasks, workspace.model.nbytes, fresh=fresh, backed=backed)
    _add_failures(result, failures)
    return result


def again(workspace: Workspace) -> dict[str, Any]:
    """`warm`, load after load."""
    return warm(workspace, fresh=False)


def cold(workspace: Workspace) -> dict[str, Any]:
    """The same from the disk, with a file of at least 500 MB: the model, or one made of shuffled copies of it.

    "resident" is the share of its file that was in the page cache when each load began, at worst.
    """
    options, model = workspace.options, workspace.model
    if not hasattr(os, "posix_fadvise"):
        return {"nbytes": model.nbytes, "rows": [], "failure": "this system cannot drop files from its page cache"}
    if not options.quick and model.nbytes < COLD_NBYTES:
        path = options.directory / "large.safetensors"
        make_variants.save_large(model.path, path, COLD_NBYTES)
        model = Model.read(path)
    contenders, failures = _saved(model, options.directory, only=("ptwm", "safetensors"))
    raw = next((path for contender, path in contenders if contender.suffix == ".safetensors"), None)
    buffer = memoryview(np.ones(len(model.content), np.uint8))
    worst = {contender.name: 0.0 for contender, _ in contenders}

    def forget(name: str, path: Path) -> None:
        worst[name] = max(worst.get(name, 0.0), residency.drop(path))

    for _, path in contenders:
        residency.flush(path)
    tasks = [Task(contender.name, partial(_load_and_touch, contender, path), partial(forget, contender.name, path))
             for contender, path in contenders]  # fmt: skip
    if raw is not None:
        tasks.insert(0, Task(READ, lambda _: _read(raw, buffer), partial(forget, READ, raw)))
    tasks.insert(0, memcpy(model.tensors))
    with pinned({options.core}):
        result = table(
            alternate(
                tasks, min(options.rounds, 5), 4 * options.budget, fresh=True, cold=True, backed=2 * model.nbytes
            ),
            model.nbytes,
        )
    for row in result["rows"]:
        row["resident"] = worst.get(row["name"])
    result["file_nbytes"] = {contender.name: path.stat().st_size for contender, path in contenders}
    _add_failures(result, failures)
    return result


def _saved(
    model: Model, directory: Path, only: tuple[str, ...] | None
) -> tuple[list[tuple[FileContender, Path]], dict[str, str]]:
    """The contenders that have saved and restored the model, with their files; and why the others are out."""
    saved: list[tuple[FileContender, Path]] = []
    failures: dict[str, str] = {}
    written: set[Path] = set()
    for contender in all_file_contenders():
        if only is not None and not contender.name.startswith(only):
            continue
        path = directory / f"load{contender.suffix}"
        try:
            contender.start()
            if path not in written:
                contender.save(model, path)
                written.add(path)
            wrong = difference(model, contender.load(path))
        except Exception as error:  # peers may fail in any way
            wrong = describe(error)
        if wrong is None:
            saved.append((contender, path))
        else:
            failures[contender.name] = wrong
    return saved, failures


def _load_and_touch(contender: FileContender, path: Path, _: Any) -> Any:
    tensors = contender.load(path)
    total = 0
    for tensor in tensors.values():
        content = flat(tensor)
        if content.nbytes:
            total += int(content[::PAGE].max()) + int(content[-1])
    return tensors, total


def _read(path: Path, buffer: memoryview) -> None:
    with path.open("rb", buffering=0) as file:
        offset = 0
        while count := file.readinto(buffer[offset : offset + (8 << 20)]):
            offset += count


def _add_failures(result: dict[str, Any], failures: dict[str, str]) -> None:
    result["rows"] += [{"name": name, "seconds": [], "failure": reason} for name, reason in failures.items()]
