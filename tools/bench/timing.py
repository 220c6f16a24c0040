"""Timing: contenders take turns, on one core, each with the memory state that its task is about."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SHORT = 0.02  # seconds; a shorter run is repeated within its turn and the best counts
MAX_REPEATS = 5


@dataclass
class Task:
    """Something to time: run(setup()), of which only run is timed. Dropping what run returns is not."""

    name: str
    run: Callable[[Any], Any]
    setup: Callable[[], Any] = lambda: None


@dataclass
class Timing:
    """Seconds of each turn, in the order of the rounds; those that ran out of their budget lack the last ones."""

    name: str
    seconds: list[float] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)  # page faults of each turn that the disk had no part in
    failure: str | None = None

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def alternate(
    tasks: Sequence[Task], rounds: int, budget: float, *, fresh: bool = False, cold: bool = False, backed: int = 0
) -> dict[str, Timing]:
    """Times tasks in turns (A B C A B C ...), a round being one turn of each.

    A task that has spent its budget of seconds takes no more turns. One that raises is out.

    fresh: before each turn malloc and the `keepers` give what they hold back to the system, so that whoever allocates
    pays for fresh pages, as a process does that loads a model once. Without it each may live on memory that earlier
    turns touched.
    cold: neither a warm-up nor repeats, as the set-up makes a state that the first run ends.
    backed: so many bytes of memory are used and freed before each turn. The host of a virtual machine may take back what
    the machine has freed, and whoever is the first to touch it again waits for the host, thirty times as long as for the
    clearing of a page; which contender that is, is chance.
    """
    timings = {task.name: Timing(task.name) for task in tasks}
    repeats = {task.name: 1 for task in tasks}
    spent = {task.name: 0.0 for task in tasks}
    with quiet():
        for number in range(rounds if cold else rounds + 1):
            warming_up = number == 0 and not cold
            for task in tasks:
                timing = timings[task.name]
                if timing.failure or (timing.seconds and spent[task.name] > budget) or len(timing.seconds) == rounds:
                    continue
                try:
                    seconds, faults = min(_run(task, fresh, backed) for _ in range(repeats[task.name]))
                except Exception as error:  # a peer may fail in any way; that is a result
                    timing.failure = describe(error)
                    continue
                spent[task.name] += seconds * repeats[task.name]
                if not warming_up or seconds * 3 > budget:  # that slow, even the warm-up counts
                    timing.seconds.append(seconds)
                    timing.faults.append(faults)
                else:
                    repeats[task.name] = max(1, min(MAX_REPEATS, int(SHORT / max(seconds, 1e-9))))
    return timings


def _run(task: Task, fresh: bool, backed: int) -> tuple[float, int]:
    argument = task.setup()
    if fresh:
        release_memory()
    if backed:
        np.ones(backed, np.uint8)  # for which numpy asks for huge pages, and which malloc gives back at once
    faults = _faults()
    begin = time.perf_counter()
    result = task.run(argument)
    seconds = time.perf_counter() - begin
    faults = _faults() - faults
    del result, argument
    return seconds, faults


# Functions that free what packages keep for later allocations, by package.
keepers: dict[str, Callable[[], None]] = {}


def release_memory() -> None:
    """Gives free memory back to the system."""
    for release in keepers.values():
        release()
    if _malloc_trim is not None:
        _malloc_trim(0)


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def describe(error: BaseException) -> str:
    """One line about an exception."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection within."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def pinned(cpus: set[int]) -> Iterator[None]:
    """This thread, and threads that it starts, on these CPUs only; where the system cannot do that, as before."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def usable_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def copy(target: int, source: int, nbytes: int) -> None:
    """memcpy between addresses. Releases the GIL."""
    ctypes.memmove(target, source, nbytes)


try:
    _malloc_trim = ctypes.CDLL(None).malloc_trim
except (AttributeError, OSError, TypeError):
    _malloc_trim = None
