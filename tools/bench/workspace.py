"""One model and its encodings by every contender, verified, for the sections to measure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.contenders import Archive, Contender
from bench.model import Model, Tensor, address, difference, same
from bench.timing import Task, Timing, alternate, copy, describe, pinned

MEMCPY = "memcpy"


@dataclass
class Options:
    """How to measure."""

    rounds: int
    budget: float  # seconds for each contender in each table
    core: int
    directory: Path  # for files
    quick: bool = False  # fewer and smaller things, for the bench's own test


@dataclass
class Workspace:
    model: Model
    contenders: list[Contender]
    options: Options
    failures: dict[str, str] = field(default_factory=dict)  # why a contender is out, by name
    _archives: dict[str, Archive] = field(default_factory=dict)

    def archive(self, contender: Contender) -> Archive | None:
        """A contender's encoding of the model, which decodes to the model, or None: see failures."""
        if contender.name not in self._archives and contender.name not in self.failures:
            with pinned({self.options.core}):
                self._encode(contender)
        return self._archives.get(contender.name)

    def _encode(self, contender: Contender) -> None:
        checksum = self.model.checksum()
        archive = None
        try:
            archive = contender.encode(contender.input(self.model))
            wrong = self._check(archive)
        except Exception as error:  # peers may fail in any way
            wrong = describe(error)
        if self.model.checksum() != checksum:
            wrong = "writes to its input"
            self.model = Model.read(self.model.path)
        if wrong is None and archive is not None:
            self._archives[contender.name] = archive
        else:
            self.failures[contender.name] = wrong or "no archive"
            if archive is not None:
                archive.close()

    def _check(self, archive: Archive) -> str | None:
        archive.reset()
        if wrong := difference(self.model, archive.decode_all()):
            return wrong
        largest = self.model.largest
        archive.reset()
        if not same(largest, archive.decode_one(largest.name)):
            return f"wrong bytes in {largest.name}, decoded alone"
        buffer = bytearray(largest.nbytes)
        archive.reset()
        archive.decode_into(largest.name, memoryview(buffer))
        return None if same(largest, buffer) else f"wrong bytes in {largest.name}, decoded into a buffer"

    def timed(self) -> list[tuple[Contender, Archive]]:
        """Contenders that are worth timing."""
        pairs = ((contender, self.archive(contender)) for contender in self.contenders if not contender.sizes_only)
        return [(contender, archive) for contender, archive in pairs if archive is not None]

    def run(self, tasks: list[Task], nbytes: int, **options: Any) -> dict[str, Any]:
        """Times tasks on one core, and gives the table that a report shows: see `table`."""
        with pinned({self.options.core}):
            return table(alternate(tasks, self.options.rounds, self.options.budget, **options), nbytes)

    def close(self) -> None:
        for archive in self._archives.values():
            archive.close()
        self._archives.clear()


def table(timings: dict[str, Timing], nbytes: int | None) -> dict[str, Any]:
    """Timings as JSON holds them. nbytes: the raw bytes that each run handles, for speeds."""
    return {
        "nbytes": nbytes,
        "rows": [
            {"name": timing.name, "seconds": timing.seconds, "faults": timing.faults, "failure": timing.failure}
            for timing in timings.values()
        ],
    }


def memcpy(tensors: list[Tensor]) -> Task:
    """Copies tensors, one after the other, into memory that was touched before."""
    nbytes = sum(tensor.nbytes for tensor in tensors)
    target = np.ones(max(nbytes, 1), np.uint8)
    base = address(target)
    jobs, offset = [], 0
    for tensor in tensors:
        jobs.append((base + offset, address(tensor.data) if tensor.nbytes else 0, tensor.nbytes))
        offset += tensor.nbytes

    def run(_: Any, _keep: Any = (target, tensors)) -> None:
        for job in jobs:
            copy(*job)

    return Task(MEMCPY, run)
