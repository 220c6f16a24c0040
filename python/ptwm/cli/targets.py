"""Where results go, and what cannot work, found out before any work is done."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from ptwm.cli.common import Failure


@dataclass(frozen=True)
class Kind:
    """A command's sources and results: the suffixes of files, and what a directory's name ends with."""

    source_suffix: str
    target_suffix: str
    source_ending: str
    target_ending: str


COMPRESSED = Kind(".safetensors", ".ptwm", "", "-ptwm")
RESTORED = Kind(".ptwm", ".safetensors", "-ptwm", "")


def plan_targets(sources: Sequence[str], target: str | None, kind: Kind, force: bool) -> list[tuple[str, str]]:
    """Pairs each source, a file or a directory, with the path of its result.

    `target`: None for results beside their sources. For one file a file, or a directory to put it into; for one
    directory the directory to be; for several sources a directory to put all into.
    """
    pairs = [(source, target_path(source, target, kind, len(sources) > 1)) for source in sources]
    owners: dict[str, str] = {}
    for source, path in pairs:
        mode = os.stat(source).st_mode
        if not stat.S_ISDIR(mode):
            if not stat.S_ISREG(mode):
                raise Failure(f"{source}: not a regular file")
            check_target(source, path, force)
        real = os.path.realpath(path)
        if real in owners:
            raise Failure(f"{path}: would be the result of both {owners[real]} and {source}")
        owners[real] = source
    return pairs


def target_path(source: str, target: str | None, kind: Kind, into_directory: bool) -> str:
    """Where the result of a source goes. `into_directory`: whether `target` is a directory to put it into."""
    is_directory = os.path.isdir(source)
    if target is not None and is_directory and not into_directory:
        return target
    beside = _renamed_directory(source, kind) if is_directory else _renamed_file(source, kind)
    if target is None:
        return beside
    if os.path.isdir(target):
        return os.path.join(target, os.path.basename(beside))
    if into_directory or target.endswith(os.sep):
        raise Failure(f"{target}: not a directory" if os.path.lexists(target) else f"{target}: no such directory")
    return target


def _renamed_file(source: str, kind: Kind) -> str:
    return source.removesuffix(kind.source_suffix) + kind.target_suffix


def _renamed_directory(source: str, kind: Kind) -> str:
    # The name itself, and not "." or "..", is what the result is called after.
    path = source.rstrip(os.sep) or source
    if os.path.basename(path) in ("", os.curdir, os.pardir):
        path = os.path.realpath(path)
    if kind.source_ending and path.endswith(kind.source_ending):
        return path.removesuffix(kind.source_ending) + kind.target_ending
    return path + (kind.target_ending or "-" + kind.target_suffix.lstrip("."))


def check_target(source: str, path: str, force: bool) -> None:
    """A Failure if path is no place for the result of source, or is taken and not to be replaced."""
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise Failure(f"{path}: no such directory")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise Failure(f"{path}: exists and is not a regular file")
    if os.path.samefile(source, path):
        raise Failure(f"{path}: is both the source and the target")
    if not force:
        raise Failure(f"{path}: already exists; -f replaces it")
