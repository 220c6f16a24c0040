"""The numbers of a report: those of `ptwm info --json -v`, with each segment looked at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ptwm.random_access import TensorIndex
from ptwm.random_access.describe import describe_segment
from ptwm.random_access.directory import DirectoryIndex
from ptwm.random_access.file import FileIndex
from ptwm.report.errors import without_path
from ptwm.report.histograms import Histogram, sample_exponents
from ptwm.report.segments import PARTS, Segment, damaged_segment, read_segment

# So many segments whose tails are damaged are named.
_MAX_PROBLEMS = 20


@dataclass(slots=True)
class Tensor:
    """A tensor.

    Attributes
    ----------
    raw_nbytes, stored_nbytes
        Its size in memory and its share of its segment, as `info` gives them.
    segment
        None for an empty tensor.
    same_as
        The name of the first tensor that is the same bytes of the file; None if this is the first.
    """

    name: str
    dtype: str | None
    shape: tuple[int, ...] | None
    raw_nbytes: int
    stored_nbytes: int
    segment: Segment | None
    same_as: str | None = None

    @property
    def own_nbytes(self) -> int:
        """What it takes in the file: nothing if it is another one's bytes."""
        return 0 if self.same_as is not None else self.stored_nbytes

    def parts(self) -> dict[str, float]:
        """own_nbytes by PARTS: what its segment is made of, in proportion."""
        if self.segment is None or not self.own_nbytes:
            return {}
        scale = self.own_nbytes / self.segment.stored_nbytes
        return {part: nbytes * scale for part, nbytes in self.segment.parts.items() if nbytes}

    def as_info(self) -> dict[str, Any]:
        """As `ptwm info --json` has it, which is what cli.groups takes."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": None if self.shape is None else list(self.shape),
            "raw_nbytes": self.raw_nbytes,
            "stored_nbytes": self.stored_nbytes,
            "ratio": round(self.stored_nbytes / self.raw_nbytes, 6) if self.raw_nbytes else None,
        }


@dataclass(slots=True)
class Report:
    """All that a page shows.

    Attributes
    ----------
    name
        The last component of the path: the page does not depend on where a file lies.
    files
        Names and sizes.
    versions
        The files' format versions.
    raw_nbytes, file_nbytes
        All tensors together, and all files.
    parts
        file_nbytes by PARTS and "index", which is what is in no segment.
    metadata
        None if it is malformed.
    n_hashed
        How many tensors have a payload hash.
    has_source
        Whether a file has what restores a header that is not the canonical one.
    problems
        What could not be read, as phrases.
    histograms
        Of exponents, one for each data type of floats.
    """

    name: str
    files: list[tuple[str, int]]
    versions: list[int]
    raw_nbytes: int
    file_nbytes: int
    parts: dict[str, int]
    metadata: dict[str, Any] | None
    tensors: list[Tensor]
    segments: list[Segment]
    n_hashed: int
    has_source: bool
    problems: list[str] = field(default_factory=list)
    histograms: list[Histogram] = field(default_factory=list)


def gather(index: TensorIndex) -> Report:
    """The numbers of an open file or directory.

    Reads its index, all segments' tails and a bounded sample of the floats. What is damaged is told in the report; only
    what keeps a file from being listed is raised.
    """
    files = _files(index)
    problems: list[str] = []
    tensors: list[Tensor] = []
    segments: list[Segment] = []
    n_hashed = 0
    for file in files:
        own_segments = list(_read_segments(file, problems))
        n_hashed += _add_tensors(file, own_segments, tensors)
        segments += own_segments
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = [f"and {len(problems) - _MAX_PROBLEMS} more segments whose tails cannot be read"]
    unknown = sorted({tensor.dtype for tensor in tensors if tensor.dtype and tensor.dtype.startswith("UNKNOWN_")})
    if unknown:
        codes = ", ".join(dtype.removeprefix("UNKNOWN_") for dtype in unknown[:_MAX_PROBLEMS])
        problems.append(f"data types that this version does not know: code {codes}")
    sizes = [(file.path.name, int(file._info.file_nbytes)) for file in files]
    file_nbytes = sum(nbytes for _, nbytes in sizes)
    parts = {part: sum(segment.parts[part] for segment in segments) for part in PARTS}
    parts["index"] = file_nbytes - sum(parts.values())
    return Report(
        name=index.path.name or index.path.resolve().name,
        files=sizes,
        versions=sorted({int(file._info.format_version) for file in files}),
        raw_nbytes=sum(tensor.raw_nbytes for tensor in tensors),
        file_nbytes=file_nbytes,
        parts=parts,
        metadata=_metadata(index, problems),
        tensors=tensors,
        segments=segments,
        n_hashed=n_hashed,
        has_source=any(file._info.source_nbytes for file in files),
        problems=problems,
        histograms=sample_exponents(index, tensors, problems),
    )


def _files(index: TensorIndex) -> list[FileIndex]:
    files = index._files if isinstance(index, DirectoryIndex) else [index]
    return [file for file in files if isinstance(file, FileIndex)]


def _metadata(index: TensorIndex, problems: list[str]) -> dict[str, Any] | None:
    try:
        return index.metadata()
    except ValueError as error:
        problems.append(f"the metadata is malformed: {without_path(error, index.files)}")
        return None


def _read_segments(file: FileIndex, problems: list[str]) -> Iterator[Segment]:
    with file._gate:
        for number in range(int(file._info.n_segments)):
            info = file._segment(number)
            checked = bool(info.is_checked)
            try:
                with file._layout(number) as layout:
                    yield read_segment(describe_segment(layout, info), int(info.raw_nbytes), checked)
            except (ValueError, OSError) as error:
                problem = without_path(error, [file.path])
                problems.append(f"{file.path.name}: the tail of segment {number} cannot be read: {problem}")
                yield damaged_segment(int(info.raw_nbytes), int(info.stored_nbytes), checked, problem)


def _add_tensors(file: FileIndex, segments: list[Segment], tensors: list[Tensor]) -> int:
    """Adds a file's tensors; returns how many of them have a payload hash."""
    n_hashed = 0
    owners: dict[tuple[int, int, int], str] = {}
    with file._gate:
        for record in file._records():
            entry = record.entry()
            segment, same_as = None, None
            if record.segment is not None:
                segment = segments[record.segment]
                place = (record.segment, record.segment_offset, record.nbytes)
                owner = owners.setdefault(place, record.name)
                same_as = None if owner == record.name else owner
            n_hashed += record.hash is not None
            tensors.append(
                Tensor(record.name, entry.dtype, entry.shape, record.nbytes, record.stored_nbytes, segment, same_as)
            )
    return n_hashed
