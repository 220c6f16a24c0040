"""Results as text for people."""

from __future__ import annotations

import statistics
from typing import Any

from bench import figures
from bench.sections.files import READ
from bench.workspace import MEMCPY

TITLES = {
    "encode": "Encode, memory to memory",
    "decode_fresh": "Decode everything into fresh memory",
    "decode_touched": "Decode the largest tensor into touched memory",
    "decode_one": "Decode the largest tensor to wherever a contender puts it",
    "checks": "Cost of checking CRCs: the largest tensor into touched memory",
    "load": "Load from files as a process's first, page cache warm, every page touched",
    "load_again": "Load from files again and again, page cache warm, every page touched",
    "cold": "Load from files, page cache cold, every page touched",
}


FRESH = ("decode_fresh", "load", "cold")  # tables whose contenders must not live on memory of earlier turns
HUGE_PAGE = 2 << 20


def text(results: dict[str, Any]) -> str:
    """Everything, in order."""
    machine = results["machine"]
    lines = [
        f"$ {machine['command']}",
        f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB; {machine['kernel']}, "
        f"{machine['libc']}; Python {machine['python']}; huge pages: {machine['transparent_hugepages']}",
        f"commit {machine['commit']}; ptwm's kernels: {machine['ptwm_cpu']}; load average {machine['load_average']}",
        "; ".join(f"{name} {version}" for name, version in machine["versions"].items()),
        f"one core ({results['core']}) unless said, {results['rounds']} rounds, contenders in turns; "
        "x memcpy: speed relative to memcpy of the same bytes into touched memory",
        "",
        *_contenders(results["contenders"]),
    ]
    for entry in results["files"]:
        lines += ["", *_file(entry)]
    if results["scaling"]:
        lines += ["", "== Many small tensors", *_scaling(results["scaling"])]
    return "\n".join(lines) + "\n"


def _contenders(contenders: list[dict[str, Any]]) -> list[str]:
    rows = [[entry["name"], entry["version"] or "-", entry["missing"] or entry["note"]] for entry in contenders]
    return grid(["contender", "version", "configuration, or why it is missing"], rows)


def _file(entry: dict[str, Any]) -> list[str]:
    dtypes = ", ".join(f"{name} {nbytes / 1e6:.1f} MB" for name, nbytes in list(entry["dtypes"].items())[:4])
    lines = [
        f"== {entry['path']}: {entry['nbytes'] / 1e6:.1f} MB, {entry['n_tensors']} tensors ({dtypes}); "
        f"the largest {entry['largest']['nbytes'] / 1e6:.1f} MB"
    ]
    lines += [f"   out: {name}: {reason}" for name, reason in entry["failures"].items()]
    sections = entry["sections"]
    if "sizes" in sections:
        lines += ["", "Size, of the .safetensors", *_sizes(sections["sizes"])]
    for key, title in TITLES.items():
        if key in sections:
            lines += ["", title, *_timed(sections[key], fresh=key in FRESH)]
    for what in ("encode", "decode"):
        if what in sections.get("threads", {}):
            lines += ["", f"Threads: {what}, two cores", *_timed(sections["threads"][what], reference="memcpy 1")]
    if "failure" in sections.get("threads", {}):
        lines += ["", f"Threads: {sections['threads']['failure']}"]
    if "memory" in sections:
        lines += ["", "Memory, in processes of their own, all threads", *_memory(sections["memory"])]
    for level, result in sections.get("levels", {}).items():
        lines += ["", f"ptwm with PTWM_CPU={level}", *_level(level, result)]
    if entry["figures"]:
        lines += ["", "Figures", *_figures(entry["figures"])]
    return lines


def _sizes(table: dict[str, Any]) -> list[str]:
    rows = []
    for row in sorted(table["rows"], key=lambda row: row["nbytes"] or float("inf")):
        share = f"{row['nbytes'] / table['original_nbytes']:.4f}" if row["nbytes"] else "-"
        rows.append([row["name"], share, str(row["nbytes"] or "-"), row["failure"] or ""])
    return grid(["contender", "share", "bytes", ""], rows)


def _timed(table: dict[str, Any], reference: str = MEMCPY, fresh: bool = False) -> list[str]:
    if table.get("failure"):
        return [f"  {table['failure']}"]
    rows = []
    has_reference = figures.row(table, reference) is not None
    for row in sorted(table["rows"], key=lambda row: min(row["seconds"], default=float("inf"))):
        notes = [row["failure"]] if row.get("failure") else []
        if not row["seconds"]:
            rows.append([row["name"], *["-"] * (4 + 2 * has_reference), "0", *notes])
            continue
        if fresh and row["name"] not in (MEMCPY, READ) and min(row["faults"]) < table["nbytes"] // HUGE_PAGE // 2:
            notes.append("NOT FRESH: too few page faults")
        if row.get("copies"):
            notes.append("decoded, then copied")
        if row.get("resident") is not None:
            notes.append(f"of its file cached before: {row['resident']:.3f}")
        best, median = min(row["seconds"]), statistics.median(row["seconds"])
        cells = [row["name"], duration(best), duration(median)]
        cells += [f"{table['nbytes'] / seconds / 1e9:.3f}" if table["nbytes"] else "-" for seconds in (best, median)]
        if has_reference:
            ratio = figures.speed_ratio(table, row["name"], reference)
            assert ratio is not None
            cells += [f"{ratio['best']:.3f}", f"{ratio['median']:.3f}"]
        rows.append([*cells, str(len(row["seconds"])), "; ".join(notes)])
    header = ["contender", "best", "median", "GB/s best", "median"]
    header += [f"x {reference} best", "median"] if has_reference else []
    return grid([*header, "rounds", ""], rows)


def _memory(table: dict[str, Any]) -> list[str]:
    rows = []
    for row in table["rows"]:
        peaks = [_mb(row.get(key)) for key in ("peak_anonymous", "kept_anonymous", "peak_rss")]
        rows.append([row["name"], *peaks, row.get("failure", "")])
    return grid(["", f"peak anonymous MB (raw: {_mb(table.get('raw_nbytes'))})", "kept", "peak resident MB", ""], rows)


def _level(level: str, result: dict[str, Any]) -> list[str]:
    if result.get("failure"):
        return [f"  {result['failure']}"]
    lines = [] if result["ran"] == level else [f"  it ran as {result['ran']}"]
    return lines + _figures(result["figures"])


def _figures(found: list[dict[str, Any]]) -> list[str]:
    rows = [[figure["name"], f"{figure['best']:.3f}", f"{figure['median']:.3f}", figure["note"]] for figure in found]
    return grid(["figure", "best", "median", ""], rows)


def _scaling(scaling: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    if "open" in scaling:
        title = f"Open {scaling['open']['n_tensors']} tensors and look one up"
        lines += ["", title, *_timed(scaling["open"], reference="safetensors")]
    if "latency" in scaling:
        title = f"get_tensor of 1 KiB, one of {scaling['latency']['n_tensors']}, the file open and warm"
        lines += ["", title, *_timed(scaling["latency"], reference="safetensors, random order")]
    if "million" in scaling:
        table = scaling["million"]
        rows = [
            [row["name"], duration(row["seconds"]) if "seconds" in row else "-", _mb(row.get("peak_anonymous")),
             _mb(row.get("peak_rss")), row.get("failure", "")]
            for row in table["rows"]
        ]  # fmt: skip
        lines += ["", f"Open {table['n_tensors']} tensors and look one up, each in a new process"]
        lines += grid(["", "time", "peak anonymous MB", "peak resident MB", ""], rows)
    return [*lines, "", "Figures", *_figures(scaling["figures"])]


def duration(seconds: float) -> str:
    """In a unit that suits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _mb(nbytes: int | None) -> str:
    return "-" if nbytes is None else f"{nbytes / 1e6:.1f}"


def grid(header: list[str], rows: list[list[str]]) -> list[str]:
    """Rows in columns, those after the first aligned right except the last."""
    table = [header, *rows]
    widths = [max(len(row[i]) if i < len(row) else 0 for row in table) for i in range(len(header))]

    def line(row: list[str]) -> str:
        cells = [
            cell.ljust(w) if i in (0, len(header) - 1) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths))
        ]
        return ("  " + "  ".join(cells)).rstrip()

    return [line(header), "  " + "-" * (sum(widths) + 2 * (len(widths) - 1)), *(line(row) for row in rows)]
