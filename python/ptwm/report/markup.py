"""Text of a file made safe for a page, and tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ptwm.cli.common import on_one_line
from ptwm.cli.units import human_ratio, human_size

# Characters of a name that are shown; longer ones lose their middle.
NAME_LENGTH = 160
# Where a long name may be broken: behind the dots and slashes between its parts.
_JOINT = re.compile(r"(?<=\w)[./](?=\w)")


def shown(text: object, length: int = NAME_LENGTH) -> str:
    """Any text as HTML, for elements and for attributes in double quotes.

    Control characters, those that turn the direction of writing, and all others that are not printable become escapes;
    what is longer than `length` loses its middle.
    """
    text = str(text)
    if len(text) > length:
        head = length * 2 // 3
        text = f"{text[:head]} … {text[len(text) - (length - head) :]}"
    return html.escape(on_one_line(text))


def name_html(name: str, length: int = NAME_LENGTH) -> str:
    """A tensor's or file's name: code, in a direction of writing of its own."""
    text = _JOINT.sub(r"\g<0><wbr>", shown(name, length))
    return f'<code dir="ltr">{text}</code>' if name else "(no name)"


def shape_text(shape: Sequence[int] | None) -> str:
    """`384 × 384`."""
    return "–" if shape is None else " × ".join(map(str, shape[:12])) + " × …" * (len(shape) > 12) or "scalar"


def percent(part: float, whole: float) -> str:
    """A share with as many digits as it takes to see one."""
    if not whole:
        return "–"
    share = 100 * part / whole
    return f"{share:.1f} %" if share >= 0.1 or share == 0 else "< 0.1 %"


class Cell(NamedTuple):
    """A cell of a table: its HTML, and what it is sorted by, if that is not its text."""

    content: str
    value: float | None = None


def size_cell(nbytes: float) -> Cell:
    return Cell(human_size(nbytes), nbytes)


def ratio_cell(stored: int, raw: int) -> Cell:
    """The share that is stored; sorted below all others if there is nothing."""
    return Cell(human_ratio(stored, raw).replace("-", "–"), round(stored / raw, 6) if raw else -1)


def table(
    head: Sequence[str], rows: Iterable[Sequence[Cell | str]], columns: str, *, kind: str = "", sort_id: str = ""
) -> Iterator[str]:
    """A table.

    `columns`: for each one `t` for text or `n` for numbers. `kind`: a class for the style sheet. `sort_id`: the id of a
    table that can be sorted.
    """
    classes = [' class="n"' if column == "n" else "" for column in columns]
    attributes = f' id="{sort_id}" class="sortable"' if sort_id else f' class="{kind}"' if kind else ""
    titles = "".join(f'<th scope="col"{number}>{title}</th>' for title, number in zip(head, classes))
    yield f'<div class="scroll"><table{attributes}>'
    yield f"<thead><tr>{titles}</tr></thead><tbody>"
    for row in rows:
        cells = []
        for cell, number in zip(row, classes):
            content, value = cell if isinstance(cell, Cell) else (cell, None)
            sort_by = f' data-v="{value}"' if sort_id and value is not None else ""
            cells.append(f"<td{number}{sort_by}>{content}</td>")
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
