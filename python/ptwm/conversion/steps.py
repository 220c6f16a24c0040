"""The steps of converting a directory: each makes one file, and none is done twice."""

from __future__ import annotations

import errno
import filecmp
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ptwm._errors import PtwmError
from ptwm._files import copy_file, is_temporary
from ptwm.conversion.files import Advance, ConversionError
from ptwm.conversion.layout import INDEX_SUFFIX, Layout


class Progress(Protocol):
    """Who is told how a conversion goes on."""

    def begin(self, total_nbytes: int) -> None:
        """The bytes of all files that are to be dealt with."""

    def start(self, name: str) -> None:
        """Which file is next."""

    def advance(self, nbytes: int) -> None:
        """Bytes that have been dealt with since the last call."""

    def kept(self, name: str) -> None:
        """A file is there already, and complete."""


class Silent:
    """A `Progress` for nobody."""

    def begin(self, total_nbytes: int) -> None:
        pass

    def start(self, name: str) -> None:
        pass

    def advance(self, nbytes: int) -> None:
        pass

    def kept(self, name: str) -> None:
        pass


class Step(ABC):
    """Makes one file, `target`, of others. `nbytes`: how much work that is, in bytes of its sources."""

    target: Path
    nbytes: int

    @abstractmethod
    def run(self, advance: Advance) -> None:
        """Makes the file, atomically, over one that may be there."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the file that is there is what running the step would make, as far as its meaning goes."""

    @abstractmethod
    def describe(self) -> str:
        """What the step does, for people, before its target's path."""


@dataclass(frozen=True)
class Copy(Step):
    """A file that is no business of this package's."""

    source: Path
    target: Path
    nbytes: int
    verify: bool

    def run(self, advance: Advance) -> None:
        copy_file(self.source, self.target)
        if self.verify and not self.is_done():
            raise ConversionError(f"{self.target}: the copy differs from {self.source}, which was changed meanwhile")
        advance(self.nbytes)

    def is_done(self) -> bool:
        return filecmp.cmp(self.source, self.target, shallow=False)

    def describe(self) -> str:
        return "copy"


@dataclass(frozen=True)
class Plan:
    """Everything that is to be done to make a directory of another.

    Attributes
    ----------
    root
        The directory to be.
    directories
        Those to be in it, as paths relative to it, parents before their content.
    steps
        One for each file, in an order in which they can be done.
    sources
        The files that everything is made of, which are not needed any more when everything is done.
    source_directories
        The directories that they are in, parents before their content.
    source_nbytes
        The sizes of all sources together.
    """

    root: Path
    directories: Sequence[str]
    steps: Sequence[Step]
    sources: Sequence[Path]
    source_directories: Sequence[Path]
    source_nbytes: int

    def check(self) -> None:
        """ConversionError if two files would get the same name, or if a file in the directory would be in the way."""
        owners: set[Path] = set()
        for step in self.steps:
            if step.target in owners:
                raise ConversionError(f"{step.target}: would be the result of two files")
            owners.add(step.target)
        expected = owners | {self.root / directory for directory in self.directories}
        for path in _below(self.root):
            if path not in expected:
                raise ConversionError(f"{path}: is there already and no part of the result")

    def run(self, overwrite: bool, progress: Progress) -> None:
        """Does all steps but those that are done; with `overwrite` these too.

        FileExistsError for a file that is there with another content, unless `overwrite`.
        """
        self.check()
        progress.begin(sum(step.nbytes for step in self.steps))
        for directory in ("", *self.directories):
            (self.root / directory).mkdir(exist_ok=True)
        for step in self.steps:
            name = os.path.relpath(step.target, self.root)
            progress.start(name)
            if os.path.lexists(step.target) and not overwrite:
                if not _is_done(step):
                    raise FileExistsError(errno.EEXIST, "already exists, with another content", str(step.target))
                progress.kept(name)
                progress.advance(step.nbytes)
            else:
                step.run(progress.advance)
        self._remove_unfinished()

    def _remove_unfinished(self) -> None:
        """Files that an earlier run had to leave unfinished are of no use to anybody."""
        for directory in ("", *self.directories):
            for name in os.listdir(self.root / directory):
                if is_temporary(name):
                    (self.root / directory / name).unlink(missing_ok=True)

    def remove_sources(self) -> None:
        """Removes the files that everything was made of, and the directories that are empty then."""
        for path in self.sources:
            path.unlink()
        for directory in reversed(self.source_directories):
            if not any(os.scandir(directory)):
                directory.rmdir()


def make_plan(layout: Layout, suffix: str, target: Path, steps: Sequence[Step]) -> Plan:
    """The plan to make a directory of one of that layout, whose files of weights have a suffix, by such steps."""
    indexes = [model.stem + suffix + INDEX_SUFFIX for model in layout.models if model.has_index]
    files = {file for model in layout.models for file in model.files}
    sources = [layout.root / path for path in sorted({*files, *indexes, *layout.others})]
    directories = [layout.root, *(layout.root / path for path in layout.directories)]
    return Plan(target, layout.directories, steps, sources, directories, sum(path.stat().st_size for path in sources))


def _is_done(step: Step) -> bool:
    try:
        return step.is_done()
    except (PtwmError, OSError):
        return False  # whatever is there is no finished file


def _below(directory: Path) -> Iterable[Path]:
    """All paths in a directory, unfinished files left out; none if it is not there."""
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            if not is_temporary(name):
                yield Path(parent, name)
