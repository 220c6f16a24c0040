"""Two threads against one, on two cores, next to what memcpy gains from them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from bench.contenders import Contender
from bench.model import Tensor, address
from bench.timing import Task, alternate, copy, pinned, usable_cpus
from bench.workspace import Workspace, table


def threads(workspace: Workspace) -> dict[str, Any]:
    """ptwm encoding the model, and decoding its largest tensor into touched memory, in 1 and 2 threads."""
    cpus = usable_cpus()
    ours = next((contender for contender in workspace.contenders if contender.name == "ptwm"), None)
    archive = workspace.archive(ours) if ours else None
    if ours is None or archive is None:
        return {"failure": "ptwm is out"}
    if len(cpus) < 2:
        return {"failure": "only one CPU"}
    model, options = workspace.model, workspace.options
    with pinned(set(cpus[:2])), ThreadPoolExecutor(2) as pool:
        encoding = [*_copies(model.tensors, pool)]
        encoding += [Task(f"encode {n}", partial(_encode, ours, n), partial(ours.input, model)) for n in (1, 2)]
        encoded = alternate(encoding, options.rounds, options.budget)
        largest = model.largest
        buffer = memoryview(np.ones(largest.nbytes, np.uint8))
        decoding = [*_copies([largest], pool)]
        for n in (1, 2):
            opened = ours.open(archive, n)
            decoding.append(Task(f"decode {n}", lambda _, opened=opened: opened.decode_into(largest.name, buffer)))
        decoded = alternate(decoding, options.rounds, options.budget)
    return {"encode": table(encoded, model.nbytes), "decode": table(decoded, largest.nbytes)}


def _encode(contender: Contender, n: int, source: Any) -> Any:
    return contender.encode(source, threads=n)


def _copies(tensors: list[Tensor], pool: ThreadPoolExecutor) -> list[Task]:
    """memcpy in one thread, and in two that share the bytes."""
    joined = np.frombuffer(b"".join(tensor.data for tensor in tensors), np.uint8)
    target = np.ones(joined.nbytes, np.uint8)
    to, source, nbytes = address(target), address(joined), joined.nbytes
    half = nbytes // 2

    def once(_: Any, _keep: Any = (joined, target)) -> None:
        copy(to, source, nbytes)

    def twice(_: Any, _keep: Any = (joined, target)) -> None:
        jobs = [pool.submit(copy, to, source, half), pool.submit(copy, to + half, source + half, nbytes - half)]
        for job in jobs:
            job.result()

    return [Task("memcpy 1", once), Task("memcpy 2", twice)]
