"""PtwmIndex: which tensor of a model is in which of its files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ptwm._errors import FormatError
from ptwm._files import write_atomically
from ptwm._library import lib

_FORMAT = "ptwm"
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True)
class PtwmIndex:
    """The index of a model in several .ptwm files, kept as JSON beside them.

    Attributes
    ----------
    total_size, compressed_total_size
        Raw bytes of all tensors, and bytes of all files.
    weight_map
        For each tensor's name the file's.
    source
        What restoring the .safetensors files that a directory was made of needs besides the .ptwm files (FORMAT.md,
        section 9), or None.
    """

    total_size: int
    compressed_total_size: int
    weight_map: dict[str, str] = field(default_factory=dict)
    source: dict[str, Any] | None = None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON, atomically. Equal indexes give equal bytes."""
        write_atomically(path, self._to_json())

    def _to_json(self) -> bytes:
        content: dict[str, Any] = {
            "metadata": {
                "total_size": self.total_size,
                "compressed_total_size": self.compressed_total_size,
                "format": _FORMAT,
                "format_version": lib.PTWM_FORMAT_VERSION,
            },
            "weight_map": self.weight_map,
        }
        if self.source is not None:
            content["source"] = self.source
        return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode("ascii")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PtwmIndex:
        """Reads the JSON. FormatError if it is malformed, or of another format or version."""
        return read_json(path, cls._from_json)

    @classmethod
    def _from_json(cls, content: Any) -> PtwmIndex:
        metadata = _member(content, "metadata", dict)
        if metadata.get("format") != _FORMAT:
            raise ValueError(f"not an index of .ptwm files: its format is {metadata.get('format')!r}")
        version = _member(metadata, "format_version", int)
        if version != lib.PTWM_FORMAT_VERSION:
            raise ValueError(f"unknown format_version {version}")
        sizes = _size(metadata, "total_size"), _size(metadata, "compressed_total_size")
        source = _member(content, "source", dict) if "source" in content else None
        return cls(*sizes, read_weight_map(content), source)


def read_json(path: str | os.PathLike[str], parse: Callable[[Any], _Parsed]) -> _Parsed:
    """What a function makes of a JSON file's content. FormatError if that is no JSON or parse raises ValueError."""
    data = Path(path).read_bytes()
    try:
        return parse(json.loads(data.decode("utf-8"), object_pairs_hook=_unique))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from error


def read_weight_map(content: Any) -> dict[str, str]:
    """The "weight_map" of an index's JSON: for each tensor's name the file's. ValueError if it has none."""
    weight_map: dict[str, str] = _member(content, "weight_map", dict)
    for name, file_name in weight_map.items():
        if not isinstance(file_name, str):
            raise ValueError(f"the file of tensor {name!r} is not a string")
    return weight_map


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object has the same key twice")
    return content


def _member(content: Any, key: str, kind: type) -> Any:
    value = content.get(key) if isinstance(content, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{key} is missing or malformed")
    return value


def _size(metadata: dict[str, Any], key: str) -> int:
    value: int = _member(metadata, key, int)
    if value < 0:
        raise ValueError(f"{key} is negative")
    return value
