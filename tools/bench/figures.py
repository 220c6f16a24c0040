"""What a result comes down to: ratios within one run, as the best of each side and as the median of rounds."""

from __future__ import annotations

import statistics
from typing import Any

from bench.sections.files import READ
from bench.workspace import MEMCPY

Table = dict[str, Any]
OURS = "ptwm"


def row(table: Table, name: str) -> dict[str, Any] | None:
    """A row that has been timed."""
    return next((row for row in table.get("rows", ()) if row["name"] == name and row.get("seconds")), None)


def speed_ratio(table: Table, name: str, other: str) -> dict[str, float] | None:
    """How many times as fast `name` is as `other`; None if one of them is missing."""
    fast, slow = row(table, name), row(table, other)
    if fast is None or slow is None:
        return None
    return {
        "best": min(slow["seconds"]) / min(fast["seconds"]),
        "median": statistics.median(b / a for a, b in zip(fast["seconds"], slow["seconds"])),
    }


def fastest(table: Table, peers: list[str]) -> dict[str, Any] | None:
    """The row of the peer with the best time."""
    rows = [found for name in peers if (found := row(table, name))]
    return min(rows, key=lambda found: min(found["seconds"]), default=None)


def of_file(sections: dict[str, Any], peers: list[str]) -> list[dict[str, Any]]:
    """The figures of one file's tables; those whose tables are missing are left out."""
    figures: list[dict[str, Any]] = []

    def add(name: str, value: dict[str, float] | None, note: str = "") -> None:
        if value is not None:
            figures.append({"name": name, **value, "note": note})

    def add_versus_peers(name: str, table: Table, others: Table | None = None) -> None:
        """Ours in a table against the fastest peer in the same table, or in another one of the same work."""
        found = fastest(table if others is None else others, peers)
        ours = row(table, OURS)
        if found is not None and ours is not None:
            pair = {"rows": [ours, {**found, "name": "the fastest"}]}
            add(name, speed_ratio(pair, OURS, "the fastest"), f"fastest: {found['name']}")

    if sizes := sections.get("sizes"):
        _add_sizes(add, sizes, peers)
    if encode := sections.get("encode"):
        add("encode, x memcpy", speed_ratio(encode, OURS, MEMCPY))
        add_versus_peers("encode, x fastest peer", encode)
    if fresh := sections.get("decode_fresh"):
        add("decode all into fresh memory, x memcpy into touched", speed_ratio(fresh, OURS, MEMCPY))
        add_versus_peers("decode all into fresh memory, x fastest peer", fresh)
    if touched := sections.get("decode_touched"):
        add("get_into of the largest tensor, x memcpy", speed_ratio(touched, OURS, MEMCPY))
        add_versus_peers("get_into of the largest tensor, x fastest peer, its copy included", touched)
        if anywhere := sections.get("decode_one"):
            add_versus_peers("get_into of the largest tensor, x fastest peer, without a copy", touched, anywhere)
    if checks := sections.get("checks"):
        value = speed_ratio(checks, f"{OURS} check=none", OURS)
        add("time that checking CRCs adds to decoding", {k: v - 1 for k, v in value.items()} if value else None)
    if warm := sections.get("load"):
        _add_loads(add, "warm", warm)
    if again := sections.get("load_again"):
        _add_loads(add, "warm, load after load", again)
    if cold := sections.get("cold"):
        _add_loads(add, "cold", cold)
        add(
            "load_file (mmap), cold, x reading the .safetensors into touched memory",
            speed_ratio(cold, "ptwm mmap", READ),
        )
    threads = sections.get("threads", {})
    for what in ("encode", "decode"):
        if what in threads:
            ours = speed_ratio(threads[what], f"{what} 2", f"{what} 1")
            memory = speed_ratio(threads[what], "memcpy 2", "memcpy 1")
            if ours and memory:
                note = f"x {ours['best']:.2f} where memcpy gains x {memory['best']:.2f}"
                add(f"{what}: gain by a second thread, of memcpy's", {k: ours[k] / memory[k] for k in ours}, note)
    for entry in sections.get("memory", {}).get("rows", ()):
        peak, raw = entry.get("peak_anonymous"), sections["memory"]["raw_nbytes"]
        if peak is not None and entry["name"].startswith("load"):
            share = (peak - raw) / max(raw, 1)
            add(f"{entry['name']}: peak anonymous memory above raw, of raw", {"best": share, "median": share})
        elif peak is not None:
            add(
                f"{entry['name']}: peak anonymous memory, of raw",
                {"best": peak / max(raw, 1), "median": peak / max(raw, 1)},
            )
    return figures


def _add_sizes(add: Any, table: Table, peers: list[str]) -> None:
    nbytes = {row["name"]: row["nbytes"] for row in table["rows"] if row["nbytes"]}
    peer = min((name for name in nbytes if name in peers), key=lambda name: nbytes[name], default=None)
    if OURS not in nbytes:
        return
    share = nbytes[OURS] / table["original_nbytes"]
    add("size, of the .safetensors", {"best": share, "median": share})
    if peer is not None:
        share = nbytes[OURS] / nbytes[peer]
        add("size, of the smallest peer's", {"best": share, "median": share}, f"smallest: {peer}")


def _add_loads(add: Any, state: str, table: Table) -> None:
    for other in ("safetensors pread", "safetensors mmap"):
        for ours in ("ptwm mmap", "ptwm pread"):
            add(f"load_file, {state}: {ours} x {other}", speed_ratio(table, ours, other))


def of_scaling(scaling: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures about many small tensors."""
    figures = []
    if (table := scaling.get("open")) and (value := speed_ratio(table, OURS, "safetensors")):
        name = f"open {table['n_tensors']} tensors and look one up, x safetensors"
        figures.append({"name": name, **value, "note": ""})
    if table := scaling.get("latency"):
        for order in ("random order", "file order"):
            if value := speed_ratio(table, f"{OURS}, {order}", f"safetensors, {order}"):
                figures.append({"name": f"get_tensor of 1 KiB in {order}, x safetensors", **value, "note": ""})
    return figures
