"""The plan that compresses a model's directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ptwm._safetensors import Header, SafetensorsFile, Tensor
from ptwm.conversion.files import (
    Advance,
    ConversionError,
    Options,
    compress_file,
    decode_blocks,
    nothing,
    restores,
    same_data,
    tensor_specs,
    verified,
    writer_options,
)
from ptwm.conversion.layout import INDEX_SUFFIX, Model, scan
from ptwm.conversion.steps import Copy, Plan, Step, make_plan
from ptwm.random_access import TensorIndex
from ptwm.sharding.index import PtwmIndex
from ptwm.sharding.shards import plan_shards, shard_filename
from ptwm.sharding.writer import Writer


@dataclass(frozen=True)
class CompressFile(Step):
    """A .ptwm file that restores one .safetensors file by itself."""

    source: Path
    target: Path
    nbytes: int
    options: Options

    def run(self, advance: Advance) -> None:
        compress_file(self.source, self.target, self.options, advance)

    def is_done(self) -> bool:
        with SafetensorsFile(self.source) as source, TensorIndex(self.target, threads=self.options.threads) as index:
            return index.metadata() == (source.metadata or {}) and restores(index, source)

    def describe(self) -> str:
        return f"compress {self.source.name} to"


@dataclass(frozen=True)
class Reshard(Step):
    """A .ptwm file of some of a model's tensors, wherever they come from."""

    target: Path
    tensors: tuple[tuple[Path, Tensor], ...]  # and the file that each is in
    headers: dict[Path, bytes]  # of these files
    metadata: dict[str, str]
    options: Options

    @cached_property
    def nbytes(self) -> int:  # type: ignore[override]
        return sum(tensor.nbytes for _, tensor in self.tensors) * _passes(self.options)

    def run(self, advance: Advance) -> None:
        with verified(self.target, self.options, lambda path: self._check(path, advance)) as path:
            with Writer(path, **writer_options(self.options), metadata=self.metadata or None) as writer:
                for source, tensors in self._runs():
                    with self._open(source) as file:
                        writer._add_many(tensor_specs(file, tensors, self.options.method), advance)

    def _runs(self) -> list[tuple[Path, list[Tensor]]]:
        """The tensors by file: those of a file follow each other."""
        runs: dict[Path, list[Tensor]] = {}
        for source, tensor in self.tensors:
            runs.setdefault(source, []).append(tensor)
        return list(runs.items())

    def _open(self, path: Path) -> SafetensorsFile:
        """ConversionError if it is not the file any more that the plan was made for."""
        file = SafetensorsFile(path)
        if file.header_bytes != self.headers[path]:
            file.close()
            raise ConversionError(f"{path}: was changed meanwhile")
        return file

    def _check(self, path: str, advance: Advance) -> None:
        if not self._holds(path, advance):
            raise ConversionError(
                f"{self.target}: the compressed file does not restore its tensors; nothing was written"
            )

    def _holds(self, path: str | os.PathLike[str], advance: Advance = nothing) -> bool:
        with TensorIndex(path, threads=self.options.threads) as index:
            wanted = [(tensor.name, tensor.dtype, tensor.shape) for _, tensor in self.tensors]
            if [(entry.name, entry.dtype, entry.shape) for entry in index.entries()] != wanted:
                return False
            if index.metadata() != self.metadata:
                return False
            for source, tensors in self._runs():
                with self._open(source) as file:
                    if not same_data(decode_blocks(index, tensors), file, tensors[0].begin, advance):
                        return False
            return True

    def is_done(self) -> bool:
        return self._holds(self.target)

    def describe(self) -> str:
        return f"compress {len(self.tensors)} tensors to"


def _passes(options: Options) -> int:
    """How many times tensors are gone through."""
    return 2 if options.verify else 1


@dataclass(frozen=True)
class WriteIndex(Step):
    """The index of a model's .ptwm files, when they are there."""

    target: Path
    weight_map: dict[str, str]
    total_nbytes: int
    source: dict[str, Any]
    nbytes: int = 0

    def _index(self) -> PtwmIndex:
        files = {self.target.parent / name for name in self.weight_map.values()}
        stored = sum(file.stat().st_size for file in files)
        return PtwmIndex(self.total_nbytes, stored, self.weight_map, self.source)

    def run(self, advance: Advance) -> None:
        self._index().write(self.target)

    def is_done(self) -> bool:
        return PtwmIndex.read(self.target) == self._index()

    def describe(self) -> str:
        return "write the index"


def plan_compression(source: Path, target: Path, options: Options, max_shard_size: int | None) -> Plan:
    """How a directory with .safetensors files becomes one with .ptwm files.

    Reads all headers and indexes, so that what cannot be converted is refused before anything is written.
    """
    layout = scan(source, ".safetensors")
    for path in layout.others:
        if path.endswith((".ptwm", ".ptwm" + INDEX_SUFFIX)):
            raise ConversionError(f"{source / path}: is compressed already, and would not come back as it is")
    if not layout.models:
        raise ConversionError(f"{source}: no .safetensors file in this directory")
    steps: list[Step] = []
    planned: set[str] = set()  # .safetensors files: two indexes may list one
    for model in layout.models:
        weights = _Weights.read(layout.root, model)
        if max_shard_size is None or (not model.has_index and weights.nbytes <= max_shard_size):
            steps += _keep_files(weights, target, options, planned)
        else:
            steps += _reshard(weights, target, options, max_shard_size, planned)
    for path in layout.others:
        steps.append(Copy(source / path, target / path, (source / path).stat().st_size, options.verify))
    return make_plan(layout, ".safetensors", target, steps)


@dataclass(frozen=True)
class _Weights:
    """A model's .safetensors files, by their paths relative to the root: their headers' bytes, and these parsed."""

    root: Path
    model: Model
    headers: dict[str, tuple[bytes, Header]]

    @classmethod
    def read(cls, root: Path, model: Model) -> _Weights:
        """SafetensorsError for a malformed file, ConversionError if two files have a tensor of the same name."""
        headers = {}
        owners: dict[str, str] = {}
        for path in model.files:
            with SafetensorsFile(root / path) as file:
                headers[path] = (file.header_bytes, file.header)
            for tensor in file.tensors:
                if tensor.name in owners:
                    raise ConversionError(f"{root / path}: the tensor {tensor.name!r} is in {owners[tensor.name]} too")
                owners[tensor.name] = path
        return cls(root, model, headers)

    @property
    def nbytes(self) -> int:
        return sum(header.data_nbytes for _, header in self.headers.values())

    def tensors(self) -> list[tuple[Path, Tensor]]:
        """All tensors, and the file that each is in."""
        return [(self.root / path, tensor) for path, (_, header) in self.headers.items() for tensor in header.tensors]

    def metadata(self) -> dict[str, str]:
        """That of all files; of those that differ the first counts."""
        merged: dict[str, str] = {}
        for _, header in self.headers.values():
            merged = {**(header.metadata or {}), **merged}
        return merged

    def relative(self, path: str) -> str:
        """A path as the model's index has it: relative to the index."""
        return os.path.relpath(path, os.path.dirname(self.model.stem) or ".").replace(os.sep, "/")

    def source(self, with_headers: bool) -> dict[str, Any]:
        """What restoring the files needs besides their tensors (FORMAT.md, section 9)."""
        source: dict[str, Any] = {"format": "safetensors"}
        if self.model.has_index:
            index = self.root / (self.model.stem + ".safetensors" + INDEX_SUFFIX)
            source["index"] = index.read_bytes().decode("utf-8")  # it has been read as JSON
        if with_headers:
            source["files"] = {self.relative(path): raw.decode("utf-8") for path, (raw, _) in self.headers.items()}
        return source


def _keep_files(weights: _Weights, target: Path, options: Options, planned: set[str]) -> list[Step]:
    """A .ptwm file for each .safetensors file, and the index of a model that has one."""
    steps: list[Step] = []
    weight_map: dict[str, str] = {}
    for path, (_, header) in weights.headers.items():
        name = path.removesuffix(".safetensors") + ".ptwm"
        if path not in planned:
            steps.append(
                CompressFile(weights.root / path, target / name, header.data_nbytes * _passes(options), options)
            )
            planned.add(path)
        weight_map |= {tensor.name: weights.relative(name) for tensor in header.tensors}
    if weights.model.has_index:
        steps.append(_index_step(weights, target, weight_map, with_headers=False))
    return steps


def _reshard(weights: _Weights, target: Path, options: Options, max_shard_size: int, planned: set[str]) -> list[Step]:
    """.ptwm files of that size, one after the other, and an index that remembers how it was."""
    root, model = weights.root, weights.model
    if planned & set(model.files):
        raise ConversionError(f"{root / model.stem}: shares files with another index; it cannot be resharded")
    planned.update(model.files)
    tensors = {tensor.name: (path, tensor) for path, tensor in weights.tensors()}
    shards = plan_shards(((name, tensor.nbytes) for name, (_, tensor) in tensors.items()), max_shard_size)
    headers = {root / path: raw for path, (raw, _) in weights.headers.items()}
    directory, stem = os.path.split(model.stem)
    steps: list[Step] = []
    weight_map: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        end = ".ptwm" if len(shards) == 1 else shard_filename(number, len(shards), ".ptwm").removeprefix("model")
        members = tuple(tensors[name] for name, _ in shard)
        steps.append(Reshard(target / directory / (stem + end), members, headers, weights.metadata(), options))
        weight_map |= {name: stem + end for name, _ in shard}
    return [*steps, _index_step(weights, target, weight_map, with_headers=True)]


def _index_step(weights: _Weights, target: Path, weight_map: dict[str, str], with_headers: bool) -> WriteIndex:
    path = target / (weights.model.stem + ".ptwm" + INDEX_SUFFIX)
    return WriteIndex(path, weight_map, weights.nbytes, weights.source(with_headers))
