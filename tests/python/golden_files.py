"""The index of golden files, tests/golden/files/index.tsv; tests/golden/README.md says what its columns are."""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = ROOT / "tests" / "golden" / "files"


@dataclass(frozen=True)
class GoldenTensor:
    """A tensor that a good file has."""

    name: str
    dtype: int
    shape: tuple[int, ...] | None
    nbytes: int
    sha256: str

    def is_like(self, raw: bytes) -> bool:
        """Whether these are its raw bytes."""
        return len(raw) == self.nbytes and hashlib.sha256(raw).hexdigest() == self.sha256


@dataclass(frozen=True)
class GoldenFile:
    """A file that opens and decodes."""

    name: str
    sha256: str
    tensors: list[GoldenTensor] = field(default_factory=list)

    def read(self) -> bytes:
        return _read(self.name, self.sha256)


@dataclass(frozen=True)
class BadFile:
    """A file that fails."""

    name: str
    sha256: str
    where: str  # "open", "decode" or "verify"
    tensor: int  # where decoding fails, 0 for others
    status: str

    def read(self) -> bytes:
        return _read(self.name, self.sha256)


def _read(name: str, sha256: str) -> bytes:
    """A file's bytes, if they are those that were committed."""
    data = (DIRECTORY / name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == sha256, f"{name} has been changed"
    return data


def _unescape(text: str) -> str:
    parts = re.split(r"%([0-9A-F]{2})", text)
    data = b"".join(bytes.fromhex(part) if i % 2 else part.encode() for i, part in enumerate(parts))
    return data.decode("utf-8")


def _shape(text: str) -> tuple[int, ...] | None:
    if text in ("none", "scalar"):
        return None if text == "none" else ()
    return tuple(int(n) for n in text.split(","))


def _load() -> tuple[list[GoldenFile], list[BadFile]]:
    good: list[GoldenFile] = []
    bad: list[BadFile] = []
    lines = (DIRECTORY / "index.tsv").read_text(encoding="utf-8").split("\n")
    assert lines[-2:] == ["end", ""]
    for line in lines[:-2]:
        kind, *columns = line.split("\t")
        if kind == "good":
            good.append(GoldenFile(*columns[:2]))
        elif kind == "tensor":
            name, dtype, shape, nbytes, sha256, _ = columns
            good[-1].tensors.append(GoldenTensor(_unescape(name), int(dtype), _shape(shape), int(nbytes), sha256))
        elif kind == "bad":
            where, _, tensor = columns[2].partition(":")
            bad.append(BadFile(columns[0], columns[1], where, int(tensor or 0), columns[3]))
        else:
            assert line.startswith("#"), line
    return good, bad


GOOD, BAD = _load()
