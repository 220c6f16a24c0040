"""DirectoryIndex: a model's tensors in the several files of a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from ptwm._errors import FormatError
from ptwm.random_access.index import TensorIndex
from ptwm.random_access.records import Part, Record

if TYPE_CHECKING:
    from ptwm.random_access.file import FileIndex


_INDEX_SUFFIX = ".index.json"


def find_files(directory: Path, suffix: str, any_name: bool) -> tuple[str, dict[str, list[str]]] | None:
    """The name of a model's index, and its files, for each the tensors that the index says are in it.

    Looks for `model{suffix}.index.json`, then for `model{suffix}`, whose tensors are not listed, and if other names
    will do for the only index or, without one, for the only file. None if there is no model. FormatError for a
    malformed index.
    """
    stem = "model" if _has(directory, "model", suffix) else _only_stem(directory, suffix) if any_name else None
    if stem is None:
        return None
    index_name = f"{stem}{suffix}{_INDEX_SUFFIX}"
    if (directory / index_name).exists():
        return index_name, _listed_files(directory / index_name)
    return index_name, {f"{stem}{suffix}": []}


def _has(directory: Path, stem: str, suffix: str) -> bool:
    return any((directory / f"{stem}{suffix}{end}").exists() for end in (_INDEX_SUFFIX, ""))


def _only_stem(directory: Path, suffix: str) -> str | None:
    for end in (suffix + _INDEX_SUFFIX, suffix):
        names = [name for name in os.listdir(directory) if name.endswith(end)] if directory.is_dir() else []
        if names:
            return names[0].removesuffix(end) if len(names) == 1 else None
    return None


def _listed_files(index_path: Path) -> dict[str, list[str]]:
    """In the order of the files' names, which number the parts of a model; an index may be sorted by tensors."""
    names_of_file: dict[str, list[str]] = {}
    for name, file_name in read_index(index_path).items():
        names_of_file.setdefault(check_file_name(index_path, file_name), []).append(name)
    return dict(sorted(names_of_file.items()))


def read_index(index_path: Path) -> dict[str, str]:
    """The weight map of an index of .ptwm or .safetensors files, as its name says. FormatError if it is malformed."""
    from ptwm.sharding.index import PtwmIndex, read_json, read_weight_map

    if index_path.name.endswith(".ptwm.index.json"):
        return PtwmIndex.read(index_path).weight_map
    return read_json(index_path, read_weight_map)


def check_file_name(index_path: Path, file_name: str) -> str:
    """The name. FormatError if it, read as any system would, means something outside the directory."""
    parts = PureWindowsPath(file_name)  # splits at both kinds of slashes, knows drives
    if not parts.parts or parts.anchor or ".." in parts.parts or "\0" in file_name:
        raise FormatError(f"{index_path}: the file name {file_name!r} leaves the directory")
    return file_name


class DirectoryIndex(TensorIndex):
    """A directory of files; see `TensorIndex`.

    `suffixes`: what the files may be; the first that there is a model of wins. `any_name`: whether a lone model of
    another name than "model" will do.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        backend: str = "mmap",
        threads: int | None = None,
        suffixes: Sequence[str] = (".ptwm",),
        any_name: bool = True,
    ) -> None:
        self._set_up(Path(path), os.fspath(path), threads)
        index_name, files = self._find_files(suffixes, any_name)
        self._open_files(files, index_name, backend)

    @classmethod
    def _of_index(cls, index_path: Path, threads: int | None = None) -> DirectoryIndex:
        """The files that an index of any name lists."""
        self = cls.__new__(cls)
        self._set_up(index_path, os.fspath(index_path), threads)
        self._open_files(_listed_files(index_path), index_path.name, "mmap", index_path.parent)
        return self

    def _open_files(
        self, files: dict[str, list[str]], index_name: str, backend: str, directory: Path | None = None
    ) -> None:
        from ptwm.random_access.file import FileIndex
        from ptwm.random_access.safetensors_file import SafetensorsIndex

        self._files: list[TensorIndex] = []
        self._owners: dict[str, TensorIndex] = {}
        kind = SafetensorsIndex if index_name.endswith(".safetensors.index.json") else FileIndex
        try:
            for file_name, listed in files.items():
                path = (self._path if directory is None else directory) / file_name
                file = kind(path, backend=backend, threads=self._threads)
                self._files.append(file)
                self._add(file, listed, index_name)
        except BaseException:
            self.close()
            raise

    def _find_files(self, suffixes: Sequence[str], any_name: bool) -> tuple[str, dict[str, list[str]]]:
        for suffix in suffixes:
            found = find_files(self._path, suffix, any_name)
            if found is not None:
                return found
        wanted = " or ".join(f"model{suffix}{_INDEX_SUFFIX} or model{suffix}" for suffix in suffixes)
        others = ", or a lone model of another name," if any_name else ""
        raise FileNotFoundError(f"{self._path}: no {wanted}{others} in this directory")

    def _add(self, file: TensorIndex, listed: Sequence[str], index_name: str) -> None:
        for name in listed:
            if name not in file:
                raise FormatError(f"{file.path}: tensor {name!r} is missing, which {index_name} says is here")
        for name in file.names():
            if name in self._owners:
                raise FormatError(f"{file.path}: tensor {name!r} is in {self._owners[name].path.name} too")
            self._owners[name] = file

    def close(self) -> None:
        if self._gate.close():
            for file in self._files:
                file.close()

    @property
    def files(self) -> list[Path]:
        return [file.path for file in self._files]

    @property
    def bytes_read(self) -> int:
        with self._gate:
            return sum(file.bytes_read for file in self._files)

    def metadata(self) -> dict[str, Any]:
        with self._gate:
            merged: dict[str, Any] = {}
            for file in self._files:
                merged = {**file.metadata(), **merged}
            return merged

    @property
    def _source(self) -> dict[str, Any] | None:
        return None

    def verify(self, threads: int | None = None) -> None:
        with self._gate:
            for file in self._files:
                file.verify(threads)

    def describe(self, name: str) -> dict[str, Any]:
        with self._gate:
            return self._owner(name).describe(name)

    def __len__(self) -> int:
        return len(self._owners)

    # --------------------------------------------------------------- inside the gate: the callers have entered it

    def _owner(self, name: str) -> TensorIndex:
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name is a str, not {type(name).__name__}")
        if name not in self._owners:
            raise KeyError(f"{self._path}: no tensor is named {name!r}")
        return self._owners[name]

    def _has(self, name: str) -> bool:
        return name in self._owners

    def _find(self, name: str) -> Record:
        return self._owner(name)._find(name)

    def _records(self) -> Iterator[Record]:
        for file in self._files:
            yield from file._records()

    def _decode(self, parts: Sequence[Part], check: str, native: bool = False) -> None:
        by_file: dict[int, list[Part]] = {}
        for part in parts:
            by_file.setdefault(id(self._owners[part.record.name]), []).append(part)
        for file in self._files:
            if id(file) in by_file:
                file._decode(by_file[id(file)], check, native)

    def _chunk_nbytes(self, record: Record) -> int:
        return self._owners[record.name]._chunk_nbytes(record)

    def _share_bytes(self, one: Record, other: Record) -> bool:
        file = self._owners[one.name]
        return file is self._owners[other.name] and file._share_bytes(one, other)

    def _file_of(self, name: str) -> FileIndex:
        with self._gate:
            return self._owner(name)._file_of(name)
