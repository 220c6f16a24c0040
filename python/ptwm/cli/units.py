"""Sizes, rates and tables for people, and the numbers that people write."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ptwm.cli.common import on_one_line

_SIZE = re.compile(r"(\d+)\s*(?:([KMG])(i?B)?|B)?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes from 65536, 64K, 64KiB (binary, as GNU tools have it) or 64kB (decimal). For argparse's type=."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise argparse.ArgumentTypeError(f"not a size: {text!r} (examples: 65536, 64K, 1MiB)")
    number, prefix, unit = match.groups()
    base = 1000 if unit and unit.lower() == "b" else 1024
    power = " KMG".index(prefix.upper()) if prefix else 0
    return int(number) * int(base**power)


def parse_count(text: str) -> int:
    """An integer that is not negative. For argparse's type=."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"not a count: {text!r}")
    return int(text)


def human_size(nbytes: float) -> str:
    """Three digits and a decimal unit: 0 B, 999 B, 1.50 kB, 90.9 MB."""
    if nbytes < 999.5:
        return f"{nbytes:.0f} B"
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        nbytes /= 1000
        if nbytes < 999.5:
            break
    digits = 2 if nbytes < 9.995 else 1 if nbytes < 99.95 else 0
    return f"{nbytes:.{digits}f} {unit}"


def human_ratio(stored: int, raw: int) -> str:
    """stored / raw as a percentage; a dash for nothing at all."""
    return f"{100 * stored / raw:.1f} %" if raw else "-"


def human_rate(nbytes: int, seconds: float) -> str:
    return human_size(nbytes / max(seconds, 1e-9)) + "/s"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def table(rows: Sequence[Sequence[Any]], align: str) -> Iterator[str]:
    """Lines of columns, each as wide as its widest cell; align has one of < and > for each."""
    cells = [[on_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, align, widths)).rstrip()
