"""The plan that compresses a model's directory."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ptwm._safetensors import SafetensorsFile, Tensor
from ptwm.conversion.files import (
    Advance,
    ConversionError,
    Options,
    compress_file,
    decode_blocks,
    equal,
    restores,
    tensor_specs,
    verified,
    writer_options,
)
from ptwm.conversion.layout import INDEX_SUFFIX, Layout, Model, scan
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
    metadata: dict[str, str]
    options: Options

    @cached_property
    def nbytes(self) -> int:  # type: ignore[override]
        return sum(tensor.nbytes for _, tensor in self.tensors)

    def run(self, advance: Advance) -> None:
        with verified(self.target, self.options, self._check) as path:
            with Writer(path, **writer_options(self.options), metadata=self.metadata or None) as writer:
                for source, tensors in self._runs():
                    with SafetensorsFile(source) as file:
                        writer._add_many(tensor_specs(file, tensors, self.options.method), advance)

    def _runs(self) -> list[tuple[Path, list[Tensor]]]:
        """The tensors by file: those of a file follow each other."""
        runs: dict[Path, list[Tensor]] = {}
        for source, tensor in self.tensors:
            runs.setdefault(source, []).append(tensor)
        return list(runs.items())

    def _check(self, path: str) -> None:
        if not self._holds(path):
            raise ConversionError(
                f"{self.target}: the compressed file does not restore its tensors; nothing was written"
            )

    def _holds(self, path: str | os.PathLike[str]) -> bool:
        with TensorIndex(path, threads=self.options.threads) as index:
            wanted = [(tensor.name, tensor.dtype, tensor.shape) for _, tensor in self.tensors]
            if [(entry.name, entry.dtype, entry.shape) for entry in index.entries()] != wanted:
                return False
            if index.metadata() != self.metadata:
                return False
            for source, tensors in self._runs():
                with SafetensorsFile(source) as file:
                    position = tensors[0].begin
                    for block in decode_blocks(index, tensors):
                        if not equal(block, file.data(position, position + len(block))):
                            return False
                        position += len(block)
            return True

    def is_done(self) -> bool:
        return self._holds(self.target)

    def describe(self) -> str:
        return f"compress {len(self.tensors)} tensors to"


@dataclass(frozen=True)
class WriteIndex(Step):
    """The index of a model's .ptwm files, when they are there."""

    target: Path
    weight_map: dict[str, str]
    total_nbytes: int
    source: dict[str, Any]
    nbytes: int = field(default=0)

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
        steps += _steps_of(layout, model, target, options, max_shard_size, planned)
    for path in layout.others:
        steps.append(Copy(source / path, target / path, (source / path).stat().st_size, options.verify))
    return make_plan(layout, ".safetensors", target, steps)


def _steps_of(
    layout: Layout, model: Model, target: Path, options: Options, max_shard_size: int | None, planned: set[str]
) -> list[Step]:
    headers = {}
    for path in model.files:
        with SafetensorsFile(layout.root / path) as file:
            headers[path] = (file.header_bytes, file.header)
    total = sum(header.data_nbytes for _, header in headers.values())
    parent = os.path.dirname(model.stem)
    index_text = _index_text(layout.root / (model.stem + ".safetensors" + INDEX_SUFFIX)) if model.has_index else None
    source: dict[str, Any] = (
        {"format": "safetensors"} if index_text is None else {"format": "safetensors", "index": index_text}
    )
    index_path = target / (model.stem + ".ptwm" + INDEX_SUFFIX)
    steps: list[Step] = []
    weight_map: dict[str, str] = {}
    if max_shard_size is None or (not model.has_index and total <= max_shard_size):
        for path, (_, header) in headers.items():
            name = path.removesuffix(".safetensors") + ".ptwm"
            if path not in planned:
                steps.append(CompressFile(layout.root / path, target / name, header.data_nbytes, options))
                planned.add(path)
            weight_map |= {tensor.name: os.path.relpath(name, parent or ".") for tensor in header.tensors}
        if model.has_index:
            _check_names(layout.root, headers)
            steps.append(WriteIndex(index_path, weight_map, total, source))
        return steps

    if planned & set(model.files):
        raise ConversionError(f"{layout.root / model.stem}: shares files with another index; it cannot be resharded")
    planned.update(model.files)
    _check_names(layout.root, headers)
    tensors = [(layout.root / path, tensor) for path, (_, header) in headers.items() for tensor in header.tensors]
    metadata: dict[str, str] = {}
    for _, header in headers.values():
        metadata = {**(header.metadata or {}), **metadata}
    by_name = {tensor.name: (path, tensor) for path, tensor in tensors}
    shards = plan_shards(((tensor.name, tensor.nbytes) for _, tensor in tensors), max_shard_size)
    stem = os.path.basename(model.stem)
    for number, shard in enumerate(shards, 1):
        name = (
            f"{stem}.ptwm" if len(shards) == 1 else stem + shard_filename(number, len(shards), ".ptwm")[len("model") :]
        )
        steps.append(Reshard(target / parent / name, tuple(by_name[tensor] for tensor, _ in shard), metadata, options))
        weight_map |= {tensor: name for tensor, _ in shard}
    source["files"] = {
        os.path.relpath(path, parent or "."): header_bytes.decode("utf-8")
        for path, (header_bytes, _) in headers.items()
    }
    return [*steps, WriteIndex(index_path, weight_map, total, source)]


def _check_names(root: Path, headers: dict[str, Any]) -> None:
    owners: dict[str, str] = {}
    for path, (_, header) in headers.items():
        for tensor in header.tensors:
            if tensor.name in owners:
                raise ConversionError(f"{root / path}: the tensor {tensor.name!r} is in {owners[tensor.name]} too")
            owners[tensor.name] = path


def _index_text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")  # it has been read as JSON
