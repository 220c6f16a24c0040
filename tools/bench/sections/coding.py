"""Encoding and decoding in memory, on one core."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.contenders.base import Archive
from bench.contenders.ours import PtwmArchive
from bench.model import Tensor
from bench.timing import Task
from bench.workspace import Workspace, memcpy


def sizes(workspace: Workspace) -> dict[str, Any]:
    """Bytes of each contender's encoding; verified ones only."""
    rows = []
    for contender in workspace.contenders:
        archive = workspace.archive(contender)
        failure = workspace.failures.get(contender.name)
        rows.append({"name": contender.name, "nbytes": archive.nbytes if archive else None, "failure": failure})
    return {"original_nbytes": len(workspace.model.content), "rows": rows}


def encode(workspace: Workspace) -> dict[str, Any]:
    """The whole model, from memory into memory."""
    model = workspace.model
    tasks = [memcpy(model.tensors)]
    for contender, _ in workspace.timed():
        tasks.append(Task(contender.name, contender.encode, partial(contender.input, model)))
    return workspace.run(tasks, model.nbytes)


def decode_fresh(workspace: Workspace) -> dict[str, Any]:
    """The whole model, from memory into memory that each contender allocates."""
    model = workspace.model
    tasks = [memcpy(model.tensors), Task("memcpy into fresh memory", lambda _: _fresh_copies(model.tensors))]
    for contender, archive in workspace.timed():
        tasks.append(Task(contender.name, partial(_decode_all, archive), archive.reset))
    return workspace.run(tasks, model.nbytes, fresh=True, backed=2 * model.nbytes)


def decode_touched(workspace: Workspace) -> dict[str, Any]:
    """The largest tensor into memory that was touched before; with a copy if a contender cannot do without."""
    largest = workspace.model.largest
    buffer = memoryview(np.ones(largest.nbytes, np.uint8))
    tasks = [memcpy([largest])]
    for contender, archive in workspace.timed():
        tasks.append(Task(contender.name, partial(_decode_into, archive, largest.name, buffer), archive.reset))
    table = workspace.run(tasks, largest.nbytes)
    copies = {contender.name for contender, archive in workspace.timed() if archive.into_copies}
    for row in table["rows"]:
        row["copies"] = row["name"] in copies
    return table


def decode_one(workspace: Workspace) -> dict[str, Any]:
    """The largest tensor, to wherever a contender puts it."""
    largest = workspace.model.largest
    tasks = [memcpy([largest])]
    for contender, archive in workspace.timed():
        tasks.append(Task(contender.name, partial(_decode_one, archive, largest.name), archive.reset))
    return workspace.run(tasks, largest.nbytes)


def checks(workspace: Workspace) -> dict[str, Any]:
    """What checking CRCs costs ptwm: the largest tensor into touched memory, with and without."""
    largest = workspace.model.largest
    buffer = memoryview(np.ones(largest.nbytes, np.uint8))
    tasks = [memcpy([largest])]
    for contender, archive in workspace.timed():
        if isinstance(archive, PtwmArchive):
            checked = partial(_decode_into, archive, largest.name, buffer)
            unchecked = partial(_decode_unchecked, archive, largest.name, buffer)
            tasks += [Task(contender.name, checked), Task(f"{contender.name} check=none", unchecked)]
    return workspace.run(tasks, largest.nbytes)


def _fresh_copies(tensors: list[Tensor]) -> list[bytes]:
    return [bytes(tensor.data) for tensor in tensors]


def _decode_all(archive: Archive, _: Any) -> Any:
    return archive.decode_all()


def _decode_one(archive: Archive, name: str, _: Any) -> Any:
    return archive.decode_one(name)


def _decode_into(archive: Archive, name: str, buffer: memoryview, _: Any) -> None:
    archive.decode_into(name, buffer)


def _decode_unchecked(archive: PtwmArchive, name: str, buffer: memoryview, _: Any) -> None:
    archive.decode_into_unchecked(name, buffer)
