"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from ptwm._version import __version__
from ptwm.cli.groups import group_tensors
from ptwm.report import details, overview
from ptwm.report.gather import Report
from ptwm.report.markup import shown
from ptwm.report.style import SCRIPT, STYLE


def render(report: Report) -> str:
    """The page. It depends on the numbers alone: the same file gives the same page."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    policy = (
        f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'; form-action 'none'"
    )
    groups = group_tensors(tensor.as_info() for tensor in report.tensors)
    sections = [
        ("parts", "Where the bytes went", overview.parts(report)),
        ("layers", "By layer", overview.layers(report)),
        ("types", "By data type", overview.dtypes(report)),
        ("ratios", "Ratio of each tensor", overview.ratios(report, groups)),
        ("exponents", "Exponents", details.exponents(report)),
        ("largest", "Largest tensors", overview.largest(report)),
        ("speed", "Decoding speed", details.speed(report)),
        ("tensors", "Tensors", details.tensors(report, groups)),
        ("file", "The file", details.file(report)),
    ]
    made = [(anchor, title, list(lines)) for anchor, title, lines in sections]
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield '<head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{shown(report.name)}: ptwm report</title>"
    yield f"<style>{STYLE}</style></head>"
    yield "<body>"
    yield from overview.head(report)
    links = (f'<a href="#{anchor}">{title}</a>' for anchor, title, lines in made if lines)
    yield f'<nav aria-label="Sections">{" ".join(links)}</nav>'
    yield "<main>"
    for anchor, title, lines in made:
        if lines:
            yield f'<section id="{anchor}"><h2>{title}</h2>'
            yield from lines
            yield "</section>"
    yield "</main>"
    yield f"<footer>Made by ptwm {__version__}. Sizes are decimal: 1 kB is 1,000 bytes.</footer>"
    yield f"<script>{SCRIPT}</script>"
    yield "</body></html>"


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") + "'"
