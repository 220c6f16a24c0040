"""The plan that restores a model's directory from a compressed one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptwm._errors import FormatError
from ptwm._files import write_atomically
from ptwm._safetensors import SafetensorsFile, parse_header, restorable_tensors, write_file
from ptwm.conversion.files import Advance, ConversionError, counted, decode_blocks, decompress_file, restores, same_data
from ptwm.conversion.layout import INDEX_SUFFIX, Layout, Model, scan
from ptwm.conversion.steps import Copy, Plan, Step, make_plan
from ptwm.random_access import TensorIndex
from ptwm.random_access.directory import DirectoryIndex, check_file_name
from ptwm.sharding.index import PtwmIndex


@dataclass(frozen=True)
class RestoreFile(Step):
    """A .safetensors file that one .ptwm file restores by itself."""

    source: Path
    target: Path
    nbytes: int
    threads: int | None

    def run(self, advance: Advance) -> None:
        decompress_file(self.source, self.target, self.threads, advance)

    def is_done(self) -> bool:
        with SafetensorsFile(self.target) as target, TensorIndex(self.source, threads=self.threads) as index:
            return restores(index, target)

    def describe(self) -> str:
        return f"restore from {self.source.name}"


@dataclass(frozen=True)
class RestoreFromShards(Step):
    """A .safetensors file whose tensors are in the .ptwm files that an index lists."""

    index: Path
    header: bytes
    target: Path
    nbytes: int
    threads: int | None

    def run(self, advance: Advance) -> None:
        with DirectoryIndex._of_index(self.index, self.threads) as index:
            tensors = restorable_tensors(index, self.header, complete=False)
            write_file(self.target, self.header, counted(decode_blocks(index, tensors), advance))

    def is_done(self) -> bool:
        with SafetensorsFile(self.target) as target, DirectoryIndex._of_index(self.index, self.threads) as index:
            tensors = restorable_tensors(index, self.header, complete=False)
            if target.header_bytes != self.header:
                return False
            return same_data(decode_blocks(index, tensors), target, 0)

    def describe(self) -> str:
        return f"restore from the files of {self.index.name}"


@dataclass(frozen=True)
class WriteText(Step):
    """A file whose content is known."""

    target: Path
    content: bytes
    nbytes: int = 0

    def run(self, advance: Advance) -> None:
        write_atomically(self.target, self.content)

    def is_done(self) -> bool:
        return self.target.read_bytes() == self.content

    def describe(self) -> str:
        return "restore the index"


def plan_restoration(source: Path, target: Path, threads: int | None, verify: bool) -> Plan:
    """How a directory with .ptwm files becomes the one that it was made of."""
    layout = scan(source, ".ptwm")
    if not layout.models:
        raise ConversionError(f"{source}: no .ptwm file in this directory")
    steps: list[Step] = []
    planned: set[str] = set()
    for model in layout.models:
        steps += _steps_of(layout, model, target, threads, planned)
    for path in layout.others:
        steps.append(Copy(source / path, target / path, (source / path).stat().st_size, verify))
    return make_plan(layout, ".ptwm", target, steps)


def _steps_of(layout: Layout, model: Model, target: Path, threads: int | None, planned: set[str]) -> list[Step]:
    if not model.has_index:
        return _restore_files(layout, model, target, threads, planned)
    index_path = layout.root / (model.stem + ".ptwm" + INDEX_SUFFIX)
    index = PtwmIndex.read(index_path)
    source = _Source.read(index_path, index.source)
    steps: list[Step] = []
    if source.headers is None:
        steps += _restore_files(layout, model, target, threads, planned)
    else:
        with DirectoryIndex._of_index(index_path, threads) as opened:
            _check_coverage(index_path, source.headers, len(opened))
            for name, header in source.headers.items():
                tensors = restorable_tensors(opened, header, complete=False)
                nbytes = sum(tensor.nbytes for tensor in tensors)
                path = target / os.path.dirname(model.stem) / name
                steps.append(RestoreFromShards(index_path, header, path, nbytes, threads))
    text = source.index
    if text is None and source.headers is None:
        text = _canonical_index(index)
    if text is not None:
        steps.append(WriteText(target / (model.stem + ".safetensors" + INDEX_SUFFIX), text))
    return steps


def _restore_files(layout: Layout, model: Model, target: Path, threads: int | None, planned: set[str]) -> list[Step]:
    steps: list[Step] = []
    for path in model.files:
        if path in planned:
            continue
        planned.add(path)
        with TensorIndex(layout.root / path) as index:
            nbytes = sum(entry.nbytes or 0 for entry in index.entries())
        name = path.removesuffix(".ptwm") + ".safetensors"
        steps.append(RestoreFile(layout.root / path, target / name, nbytes, threads))
    return steps


@dataclass(frozen=True)
class _Source:
    """What an index says about the files that a model was made of (FORMAT.md, section 9)."""

    index: bytes | None
    headers: dict[str, bytes] | None

    @classmethod
    def read(cls, path: Path, source: dict[str, Any] | None) -> _Source:
        """FormatError if it is malformed."""
        source = source or {}
        index, files = source.get("index"), source.get("files")
        if source.get("format", "safetensors") != "safetensors":
            raise ConversionError(f"{path}: made from files of the format {source['format']!r}, not .safetensors")
        if not isinstance(index, (str, type(None))) or not isinstance(files, (dict, type(None))):
            raise FormatError(f"{path}: the source is malformed")
        headers = None
        if files is not None:
            headers = {}
            for name, header in files.items():
                if not isinstance(header, str) or not name.endswith(".safetensors"):
                    raise FormatError(f"{path}: the source's file {name!r} is malformed")
                headers[check_file_name(path, name)] = _encode(path, header)
        return cls(None if index is None else _encode(path, index), headers)


def _encode(path: Path, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise FormatError(f"{path}: the source holds a lone surrogate") from None


def _check_coverage(path: Path, headers: dict[str, bytes], n_tensors: int) -> None:
    """FormatError unless the files to be restored have as many tensors as there are, each once: none is lost."""
    names = [tensor.name for header in headers.values() for tensor in parse_header(header).tensors]
    if len(names) != n_tensors or len(set(names)) != n_tensors:
        raise FormatError(f"{path}: the source has {len(names)} tensors, the files have {n_tensors}")


def _canonical_index(index: PtwmIndex) -> bytes:
    """The index that the hub's tools write, for a model that came from nowhere."""
    weight_map = {name: file.removesuffix(".ptwm") + ".safetensors" for name, file in index.weight_map.items()}
    content = {"metadata": {"total_size": index.total_size}, "weight_map": weight_map}
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode("ascii")
