"""Progress bars: on a terminal, with rate and time left; none in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ptwm.cli.common import on_one_line


@contextmanager
def progress(total: int, label: str) -> Iterator[Callable[[int], object]]:
    """A bar on stderr, if that is a terminal. Yields the function that takes the bytes done since the last call."""
    if not sys.stderr.isatty():
        yield lambda nbytes: None
        return
    with _bar(total, label) as bar:
        yield bar.update


class DirectoryProgress:
    """The `ptwm.conversion.steps.Progress` of a directory, as one bar. A context manager; `n_kept` counts files."""

    def __init__(self) -> None:
        self._bar: Any = None
        self.n_kept = 0

    def begin(self, total_nbytes: int) -> None:
        if sys.stderr.isatty():
            self._bar = _bar(total_nbytes, "")

    def start(self, name: str) -> None:
        if self._bar is not None:
            self._bar.set_description(on_one_line(name))

    def advance(self, nbytes: int) -> None:
        if self._bar is not None:
            self._bar.update(nbytes)

    def kept(self, name: str) -> None:
        self.n_kept += 1

    def __enter__(self) -> DirectoryProgress:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _bar(total: int, label: str) -> Any:
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

    return tqdm(total=total, desc=on_one_line(label), unit="B", unit_scale=True, leave=False, dynamic_ncols=True)
