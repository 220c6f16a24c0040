"""What is in a model's directory: which files hold weights and belong together, and everything else."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ptwm._files import is_temporary
from ptwm.conversion.files import ConversionError
from ptwm.random_access.directory import check_file_name, read_index

INDEX_SUFFIX = ".index.json"


@dataclass(frozen=True)
class Model:
    """Files of weights that belong together: those that an index lists, or one without an index.

    Attributes
    ----------
    stem
        The path, relative to the directory, of its index or only file, without the suffix: "model", "unet/model".
    files
        The files' paths, relative to the directory, sorted.
    has_index
        Whether there is an index.
    """

    stem: str
    files: tuple[str, ...]
    has_index: bool


@dataclass(frozen=True)
class Layout:
    """A directory's content, as paths relative to it, sorted.

    Attributes
    ----------
    root
        The directory.
    models
        Its files of weights, with their indexes.
    others
        All other files.
    directories
        The directories in it, parents before their content.
    """

    root: Path
    models: tuple[Model, ...]
    others: tuple[str, ...]
    directories: tuple[str, ...]


def scan(root: Path, suffix: str) -> Layout:
    """Looks through a directory for files of weights with the suffix ".safetensors" or ".ptwm".

    Symbolic links count as what they lead to. ConversionError for an index that lists files that are not there and for
    what is neither a file nor a directory, FormatError for a malformed index.
    """
    files: list[str] = []
    directories: list[str] = []
    for path, is_directory in _walk(root, "", ()):
        (directories if is_directory else files).append(path)
    weights = {path for path in files if path.endswith(suffix)}
    indexes = [path for path in files if path.endswith(suffix + INDEX_SUFFIX)]
    models = [_indexed(root, path, suffix, weights) for path in indexes]
    listed = {file for model in models for file in model.files}
    models += [Model(path.removesuffix(suffix), (path,), False) for path in weights - listed]
    return Layout(
        root,
        tuple(sorted(models, key=lambda model: model.stem)),
        tuple(sorted(set(files) - weights - set(indexes))),
        tuple(sorted(directories)),
    )


def _walk(root: Path, directory: str, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, bool]]:
    """Relative paths of everything below a directory, and whether each is a directory."""
    status = os.stat(root / directory)
    here = (status.st_dev, status.st_ino)
    if here in above:
        raise ConversionError(f"{root / directory}: a symbolic link that leads back to a directory above it")
    for name in sorted(os.listdir(root / directory)):
        path = os.path.join(directory, name)
        try:
            mode = os.stat(root / path).st_mode
        except FileNotFoundError:
            raise ConversionError(f"{root / path}: a symbolic link that leads nowhere") from None
        if stat.S_ISDIR(mode):
            yield path, True
            yield from _walk(root, path, (*above, here))
        elif not stat.S_ISREG(mode):
            raise ConversionError(f"{root / path}: neither a file nor a directory")
        elif not is_temporary(name):
            yield path, False


def _indexed(root: Path, index: str, suffix: str, weights: set[str]) -> Model:
    directory = os.path.dirname(index)
    files = set()
    for file_name in read_index(root / index).values():
        path = os.path.normpath(os.path.join(directory, check_file_name(root / index, file_name)))
        if path not in weights:
            problem = "is not there" if path.endswith(suffix) else f"is no {suffix} file"
            raise ConversionError(f"{root / index}: lists {file_name!r}, which {problem}")
        files.add(path)
    return Model(index.removesuffix(suffix + INDEX_SUFFIX), tuple(sorted(files)), True)
