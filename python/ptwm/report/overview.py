"""The page's sections that draw sizes: totals, layers, data types, ratios and the largest tensors."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ptwm.cli.groups import Group
from ptwm.cli.units import human_ratio, human_size, plural
from ptwm.report.drawing import N_COLOURS, Point, bar, scatter
from ptwm.report.gather import Report, Tensor
from ptwm.report.markup import name_html, percent, shape_text, shown, size_cell, table
from ptwm.report.outliers import find_outliers
from ptwm.report.shares import NO_DTYPE, Share, by_dtype, by_layer
from ptwm.report.words import PART_NAMES, PARTS

_N_LARGEST = 12
# Ratios above this are drawn at the edge: those of a few bytes, which their segment's tables outweigh.
_HIGHEST_RATIO = 1.25


def head(report: Report) -> Iterator[str]:
    yield '<header><p class="kicker">ptwm report</p>'
    yield f"<h1>{shown(report.name)}</h1>"
    saved = report.raw_nbytes - report.file_nbytes
    tiles = [
        ("of the size in memory", human_ratio(report.file_nbytes, report.raw_nbytes).replace("-", "–")),
        ("tensors' bytes", human_size(report.raw_nbytes)),
        (
            "stored" if len(report.files) == 1 else f"stored in {plural(len(report.files), 'file')}",
            human_size(report.file_nbytes),
        ),
        ("saved" if saved >= 0 else "added", human_size(abs(saved))),
        ("tensor" if len(report.tensors) == 1 else "tensors", f"{len(report.tensors):,}"),
    ]
    yield (
        '<dl class="tiles">' + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in tiles) + "</dl>"
    )
    if report.problems:
        yield '<div class="notice" role="note"><p>Not all of it can be read:</p><ul>'
        for problem in report.problems:
            yield f"<li>{shown(problem, 400)}</li>"
        yield "</ul></div>"
    yield "</header>"


def parts(report: Report) -> Iterator[str]:
    longest = max(report.raw_nbytes, report.file_nbytes)
    yield f'<div class="whole">{bar(report.parts, longest, longest, PART_NAMES)}</div>'
    if report.raw_nbytes > report.file_nbytes:
        yield '<p class="soft">The bar is as long as the tensors are in memory; what is empty was saved.</p>'
    rows = [
        (
            f"{key(part)}{name}",
            size_cell(report.parts[part]),
            percent(report.parts[part], report.file_nbytes),
            f'<span class="soft">{text}</span>',
        )
        for part, (name, text) in PARTS.items()
        if report.parts[part]
    ]
    yield from table(("part", "bytes", "of the file", "what it is"), rows, "tnnt", kind="legendary")


def key(part: str) -> str:
    """The patch of colour that stands before a name."""
    return (
        f'<svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect class="{part}" width="10" height="10"/></svg>'
    )


def _legend(present: set[str]) -> str:
    items = "".join(f"<li>{key(part)}{name}</li>" for part, name in PART_NAMES.items() if part in present)
    return f'<ul class="legend">{items}<li>{key("track")}saved</li></ul>'


def _share_rows(
    what: str, shares: Sequence[Share], extra: Sequence[tuple[str, Callable[[Share], str]]] = ()
) -> Iterator[str]:
    """A row with a bar for each share, the bars on one scale."""
    longest = max(max(share.raw_nbytes, share.own_nbytes) for share in shares if not share.is_rest)
    titles = "".join(f'<th scope="col" class="n">{title}</th>' for title in ("raw", "stored", "ratio"))
    more = "".join(f'<th scope="col" class="n">{title}</th>' for title, _ in extra)
    yield _legend({part for share in shares for part in share.parts})
    yield f'<table class="rows shares"><thead><tr><th scope="col">{what}</th><td></td>{titles}{more}</tr></thead><tbody>'
    for share in shares:
        numbers = [human_size(share.raw_nbytes), human_size(share.own_nbytes)]
        numbers.append(human_ratio(share.own_nbytes, share.raw_nbytes).replace("-", "–"))
        numbers += [text(share) for _, text in extra]
        cells = "".join(f'<td class="n">{number}</td>' for number in numbers)
        fits = max(share.raw_nbytes, share.own_nbytes) <= longest
        drawn = bar(share.parts, share.raw_nbytes, longest, PART_NAMES) if fits else ""
        yield f'<tr><th scope="row">{name_html(share.label, 60)}</th><td class="draw">{drawn}</td>{cells}</tr>'
    yield "</tbody></table>"
    n_shared = sum(share.n_shared for share in shares)
    if n_shared:
        yield (
            f'<p class="soft">{plural(n_shared, "tensor")} share their bytes with another, which the file holds once; '
            "they are counted where they come first.</p>"
        )


def layers(report: Report) -> Iterator[str]:
    shares = by_layer(report.tensors)
    if any(share.raw_nbytes for share in shares):
        yield (
            '<p class="soft">By the first number in each name, or the module without one. Bars are as long as the '
            "tensors are in memory.</p>"
        )
        yield from _share_rows("layer", shares)


def dtypes(report: Report) -> Iterator[str]:
    shares = by_dtype(report.tensors)
    if any(share.raw_nbytes for share in shares):
        yield from _share_rows("type", shares, [("tensors", lambda share: f"{share.count:,}")])


def ratios(report: Report, groups: Sequence[Group]) -> Iterator[str]:
    drawn = [tensor for tensor in report.tensors if tensor.raw_nbytes]
    if not drawn:
        return
    yield '<p class="soft">Each point is a tensor: what is stored of it, against its size. Lower is better.</p>'
    totals: Counter[str] = Counter()
    for tensor in drawn:
        totals[tensor.dtype or NO_DTYPE] += tensor.raw_nbytes
    names = [name for name, _ in totals.most_common()]
    colours = {name: min(i, N_COLOURS) for i, name in enumerate(names)}
    items = [f"<li>{key(f'c{i}')}{shown(name)}</li>" for i, name in enumerate(names[:N_COLOURS])]
    if len(names) > N_COLOURS:
        items.append(f"<li>{key(f'c{N_COLOURS}')}other types</li>")
    yield f'<ul class="legend">{"".join(items)}</ul>'
    found = find_outliers(groups)
    labels = [
        (outlier.group.first["raw_nbytes"], outlier.ratio, _shortened(outlier.group.pattern)) for outlier in found
    ]
    yield from scatter([_point(tensor, colours) for tensor in drawn], labels, _HIGHEST_RATIO)
    n_above = sum(tensor.stored_nbytes > _HIGHEST_RATIO * tensor.raw_nbytes for tensor in drawn)
    if n_above:
        yield f'<p class="soft">{plural(n_above, "tensor")} of more than 125 % are at the upper edge.</p>'
    if found:
        yield "<h3>Unlike others of their type</h3>"
        rows = [
            (
                name_html(outlier.group.pattern),
                f"{len(outlier.group.names):,}",
                shown(outlier.group.first["dtype"] or "–"),
                shape_text(outlier.group.first["shape"]),
                size_cell(outlier.group.raw_nbytes),
                f"{100 * outlier.ratio:.1f} %",
                f"{100 * outlier.usual:.1f} %",
            )
            for outlier in found
        ]
        yield from table(("tensors", "count", "type", "shape", "raw", "ratio", "of all of the type"), rows, "tntnnnn")


def _point(tensor: Tensor, colours: dict[str, int]) -> Point:
    ratio = tensor.stored_nbytes / tensor.raw_nbytes
    return Point(tensor.raw_nbytes, ratio, colours.get(tensor.dtype or NO_DTYPE, N_COLOURS), tensor.name)


def _shortened(text: str, length: int = 36) -> str:
    """The last parts of a name, which say what a tensor is."""
    if len(text) <= length:
        return text
    end = text[1 - length :]
    return "…" + (end[end.find(".") + 1 :] if "." in end[:-1] else end)


def largest(report: Report) -> Iterator[str]:
    chosen = heapq.nlargest(_N_LARGEST, report.tensors, key=lambda tensor: tensor.raw_nbytes)
    shares = []
    for tensor in chosen:
        if tensor.raw_nbytes:
            share = Share(tensor.name)
            share.add(tensor)
            shares.append(share)
    if shares:
        total = sum(share.raw_nbytes for share in shares)
        if len(shares) < len(report.tensors):
            yield f'<p class="soft">Together {percent(total, report.raw_nbytes)} of all bytes.</p>'
        yield from _share_rows("tensor", shares)
