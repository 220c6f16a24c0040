"""`ptwm info`: what a file holds, and how much room it takes."""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ptwm.cli import common, units
from ptwm.cli.groups import Group, group_tensors
from ptwm.random_access import TensorIndex

# As many tensors are listed one by one; about what a terminal shows.
MAX_LINES = 40

# What --verbose adds from TensorIndex.describe; the rest is in the report under its own names.
_STORAGE = (
    "chain", "planes", "chunks", "chunk_nbytes", "model", "segment", "segment_offset", "segment_stored_nbytes", "tail_nbytes",
    "hash",
)  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "info",
        help="list the tensors of a file or directory",
        description="List tensors with their sizes. Reads indexes only. If there are many, those that differ in "
        "numbers only, as layers do, share a line.",
    )
    parser.add_argument("file", metavar="FILE|DIRECTORY", help="a .ptwm file, or a directory of a model in some")
    parser.add_argument(
        "tensors", metavar="TENSOR", nargs="*", help="only these tensors; patterns such as '*.bias' too"
    )
    parser.add_argument("-a", "--all", action="store_true", help="a line for each tensor, however many there are")
    parser.add_argument("-v", "--verbose", action="store_true", help="also how each tensor is stored; implies --all")
    parser.add_argument("--json", action="store_true", help="print one object, sizes in bytes")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    with TensorIndex(args.file) as index:
        report = describe_file(index, args.verbose, args.tensors)
    if args.json:
        print(json.dumps(report, indent=2, default=str))
    else:
        everything = args.all or args.verbose or bool(args.tensors) or len(report["tensors"]) <= MAX_LINES
        for line in report_lines(report, everything):
            print(line)
    return 0


def describe_file(index: TensorIndex, verbose: bool = False, patterns: Sequence[str] = ()) -> dict[str, Any]:
    """Everything that `info --json` prints, of all tensors or those that are asked for.

    Sizes in bytes; ratio is stored / raw, None for an empty tensor.
    """
    entries = index.entries()
    chosen = _choose(index, entries, patterns) if patterns else entries
    tensors = [_describe_tensor(index, entry, verbose) for entry in chosen]
    return {
        "path": os.fspath(index.path),
        "file_nbytes": sum(os.stat(path).st_size for path in index.files),
        "raw_nbytes": sum(entry.nbytes for entry in entries),
        "n_tensors": len(entries),
        "metadata": index.metadata(),
        "tensors": tensors,
    }


def _choose(index: TensorIndex, entries: Sequence[Any], patterns: Sequence[str]) -> list[Any]:
    """The tensors that names or patterns mean, in the order of the file. A Failure for one that means none."""
    chosen: set[str] = set()
    names = [entry.name for entry in entries]
    for pattern in patterns:
        found = [pattern] if pattern in index else fnmatch.filter(names, pattern)
        if not found:
            raise common.no_such_tensor(os.fspath(index.path), pattern, names)
        chosen.update(found)
    return [entry for entry in entries if entry.name in chosen]


def _describe_tensor(index: TensorIndex, entry: Any, verbose: bool) -> dict[str, Any]:
    raw, stored = entry.nbytes, entry.compressed_nbytes
    report = {
        "name": entry.name,
        "dtype": entry.dtype,
        "shape": None if entry.shape is None else list(entry.shape),
        "raw_nbytes": raw,
        "stored_nbytes": stored,
        "ratio": round(stored / raw, 6) if raw else None,
    }
    if verbose:
        report["storage"] = {key: value for key, value in index.describe(entry.name).items() if key in _STORAGE}
    return report


# ------------------------------------------------------------------------------------------------------- for people


def report_lines(report: dict[str, Any], everything: bool = True) -> Iterator[str]:
    tensors = report["tensors"]
    yield common.on_one_line(report["path"]) + ": " + _totals(report)
    for key, value in (report["metadata"] or {}).items():
        yield common.on_one_line(f"metadata {key} = {_shortened(str(value))}")
    if tensors:
        yield ""
        yield from tensor_table(tensors) if everything else group_table(group_tensors(tensors))
    if any(tensor["dtype"] != tensors[0]["dtype"] for tensor in tensors):
        yield ""
        yield from dtype_table(tensors)
    if not everything:
        yield ""
        yield "-a lists every tensor; `ptwm info FILE NAME` shows one, `ptwm info FILE 'PATTERN*'` several"


def _totals(report: dict[str, Any]) -> str:
    stored, raw = report["file_nbytes"], report["raw_nbytes"]
    return (
        f"{units.plural(report['n_tensors'], 'tensor')}, {units.human_size(raw)} in "
        f"{units.human_size(stored)} ({units.human_ratio(stored, raw)})"
    )


def _shortened(text: str, width: int = 100) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def tensor_table(tensors: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line per tensor, below a line of headings."""
    verbose = "storage" in tensors[0]
    rows = [["tensor", "dtype", "shape", "raw", "stored", "ratio"] + ["how"] * verbose]
    for tensor in tensors:
        row = [tensor["name"] or '""', tensor["dtype"] or "-", _shape(tensor["shape"])]
        row += _sizes(tensor["raw_nbytes"], tensor["stored_nbytes"])
        rows.append([*row, _storage(tensor["storage"])] if verbose else row)
    return units.table(rows, "<<>>>><" if verbose else "<<>>>>")


def group_table(groups: Sequence[Group]) -> Iterator[str]:
    """A line per group of tensors, below a line of headings."""
    rows = [["tensors", "count", "dtype", "shape", "raw", "stored", "ratio"]]
    for group in groups:
        kind = [group.first["dtype"] or "-", _shape(group.first["shape"])]
        sizes = _sizes(group.raw_nbytes, group.stored_nbytes)
        rows.append([group.pattern or '""', f"{len(group.names):,}", *kind, *sizes])
    return units.table(rows, "<><>>>>")


def dtype_table(tensors: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line per data type, in the order of their first appearance, below a line of headings."""
    totals: dict[str, list[int]] = {}
    for tensor in tensors:
        total = totals.setdefault(tensor["dtype"] or "-", [0, 0, 0])
        for i, value in enumerate((1, tensor["raw_nbytes"], tensor["stored_nbytes"])):
            total[i] += value
    rows = [["dtype", "tensors", "raw", "stored", "ratio"]]
    rows += [[dtype, f"{count:,}", *_sizes(raw, stored)] for dtype, (count, raw, stored) in totals.items()]
    return units.table(rows, "<>>>>")


def _sizes(raw: int, stored: int) -> list[str]:
    return [units.human_size(raw), units.human_size(stored), units.human_ratio(stored, raw)]


def _shape(shape: Sequence[int] | None) -> str:
    return "-" if shape is None else " x ".join(map(str, shape)) or "scalar"


def _storage(storage: dict[str, Any]) -> str:
    """A chain, and where the segment's bytes went.

    Such as `label(2, 6, 9): rest carried 516 kB, symbol label-rans 262 kB, tail 2.4 kB with 1536 column shifts`.
    """
    if storage["chain"] is None:
        return "-"
    parts = []
    planes = [(f"{plane['kind']} {' + '.join(plane['codecs'])}", plane["stored_nbytes"]) for plane in storage["planes"]]
    for plane, group in itertools.groupby(planes, key=lambda pair: pair[0]):
        sizes = [size for _, size in group]
        parts.append(f"{len(sizes)} x " * (len(sizes) > 1) + f"{plane} {units.human_size(sum(sizes))}")
    model = storage["model"] or {"sets": 0, "columns": 0}
    holds = [f"{model['columns']} column shifts"] * (model["columns"] > 0)
    if model["sets"] > 0:
        holds.append(f"tables for units of {model['unit']}")
    parts.append(f"tail {units.human_size(storage['tail_nbytes'])}" + " with " * bool(holds) + " and ".join(holds))
    chain = str(storage["chain"]).replace("Chain.", "").replace("Chain()", "as it is")
    return f"{chain}: {', '.join(parts)}"
