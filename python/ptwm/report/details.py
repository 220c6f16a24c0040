"""The page's other sections: exponents, speed, the list of tensors, and the file."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from ptwm.cli.groups import Group
from ptwm.cli.units import human_size, plural
from ptwm.report.drawing import bar, choose_bins, draw_histogram
from ptwm.report.gather import Report, Tensor
from ptwm.report.histograms import Histogram
from ptwm.report.markup import Cell, name_html, percent, ratio_cell, shape_text, shown, size_cell, table
from ptwm.report.overview import key
from ptwm.report.words import SLOWER, WAY_NAMES, WAYS

# As many tensors are listed one by one; of more, groups of those that differ in numbers only, and not more of these.
MAX_ROWS = 3000
_N_SLOW = 10
_MAX_FILES = 200
_MAX_METADATA = 100


# ----------------------------------------------------------------------------------------------------------- exponents


def exponents(report: Report) -> Iterator[str]:
    if not report.histograms:
        return
    yield (
        '<p class="soft">How often each power of two occurs among the floats of a type, from a sample. Few of them do, '
        "which is what makes weights compressible: entropy says how few bits an exponent needs.</p>"
    )
    yield '<div class="cards">'
    for histogram in report.histograms:
        yield f'<div class="card"><h3>{histogram.dtype}</h3>'
        yield from draw_histogram(histogram)
        yield from _bits(histogram)
        yield f'<p class="soft">{_sample_text(histogram)}</p></div>'
    yield "</div>"


def _bits(histogram: Histogram) -> Iterator[str]:
    """Bits of a float: in memory, as the entropy has it, and in the file."""
    form = histogram.format
    longest = max(form.bits, histogram.stored_bits)
    rows = [
        ("in memory", form.bits, "rest"),
        (f"exponents in {histogram.entropy:.2f} bits", histogram.estimate, "low"),
        ("stored", histogram.stored_bits, "symbols"),
    ]
    yield '<table class="rows bits"><tbody>'
    for name, bits, part in rows:
        drawn = bar({part: bits}, longest, longest, {part: name}).replace(f"{human_size(bits)}", f"{bits:.2f} bits")
        yield f'<tr><th scope="row">{name}</th><td class="draw">{drawn}</td><td class="n">{bits:.2f} bits</td></tr>'
    yield "</tbody></table>"


def _sample_text(histogram: Histogram) -> str:
    form, n = histogram.format, histogram.n_sampled
    whole = n == histogram.n_floats
    text = f"{'All' if whole else f'{n:,} of'} {histogram.n_floats:,} {'floats' if n != 1 or not whole else 'float'}"
    if form.mantissa:
        text += f"; {percent(histogram.n_zeros, n) if histogram.n_zeros else 'none'} are zero"
    specials = histogram.counts[-1] if form.has_specials else 0
    if specials:
        text += f"; {percent(specials, n)} are no numbers or infinite"
    outside = choose_bins(histogram).outside
    if outside > 1e-12:
        text += f"; {percent(outside, 1)} lie outside what is drawn"
    kept = form.bits - form.exponent
    text += f". An exponent has {form.exponent} bits and an entropy of {histogram.entropy:.2f}"
    if kept:
        text += f"; with {kept} {'bit' if kept == 1 else 'bits'} for sign and mantissa that is {histogram.estimate:.2f}"
    return text + "."


# --------------------------------------------------------------------------------------------------------------- speed


def speed(report: Report) -> Iterator[str]:
    raw_nbytes = sum(segment.raw_nbytes for segment in report.segments)
    if not raw_nbytes:
        return
    by_way: dict[str, float] = {}
    slow_nbytes = 0.0
    for segment in report.segments:
        for way, part in segment.ways.items():
            by_way[way] = by_way.get(way, 0.0) + part * segment.raw_nbytes
        slow_nbytes += max(segment.slow_ways.values(), default=0.0) * segment.raw_nbytes
    yield f"<p>{_verdict(slow_nbytes / raw_nbytes)}</p>"
    # A chunk may have planes of several slow ways: the bar shows what is not slow first, then these by their bytes.
    longest = max(raw_nbytes, sum(by_way.values()))
    yield f'<div class="whole">{bar(by_way, longest, longest, WAY_NAMES)}</div>'
    rows = [
        (
            f"{key(way)}{name}",
            size_cell(by_way[way]),
            percent(by_way[way], raw_nbytes),
            f'<span class="soft">{WAYS[way]}</span>',
        )
        for way, name in WAY_NAMES.items()
        if way in by_way
    ]
    yield from table(("way", "raw bytes", "of all", "what it is"), rows, "tnnt", kind="legendary")
    yield from _slow_tensors(report)


def _verdict(slow: float) -> str:
    if slow == 0:
        return "All of it is decoded by vector code or copied: nothing is slow."
    low, high = (1 + slow * (factor - 1) for factor in SLOWER)
    if slow < 0.002:
        return (
            f"{percent(slow, 1)} of the bytes, which nobody will notice: the rest is decoded by vector code or copied."
        )
    longer = f"{low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"{low:.2g} to {high:.2g}"
    return (
        f"{percent(slow, 1)} of the bytes take ways that are some {SLOWER[0]} to {SLOWER[1]} times slower than vector code. "
        f"Decoding everything takes about {longer} times as long as if vector code decoded all of it."
    )


def _slow_tensors(report: Report) -> Iterator[str]:
    slow = [tensor for tensor in report.tensors if tensor.segment and tensor.segment.slow_ways and tensor.raw_nbytes]
    if not slow:
        return
    chosen = heapq.nlargest(_N_SLOW, slow, key=lambda tensor: tensor.raw_nbytes)
    yield "<h3>Tensors that go these ways</h3>"
    if len(slow) > len(chosen):
        yield f'<p class="soft">The {len(chosen)} largest of {len(slow):,}.</p>'
    rows = [
        (
            name_html(tensor.name),
            shown(tensor.dtype or "–"),
            size_cell(tensor.raw_nbytes),
            percent(tensor.raw_nbytes, report.raw_nbytes),
            f"<code>{shown(tensor.segment.how if tensor.segment else '')}</code>",
        )
        for tensor in chosen
    ]
    yield from table(("tensor", "type", "raw", "of all", "how it is stored"), rows, "ttnnt")


# ------------------------------------------------------------------------------------------------------------- tensors


def tensors(report: Report, groups: Sequence[Group]) -> Iterator[str]:
    if not report.tensors:
        yield "<p>There are none.</p>"
        return
    if len(report.tensors) <= MAX_ROWS:
        yield from _filter("tensors")
        head = ("tensor", "type", "shape", "raw", "stored", "ratio", "how")
        yield from table(head, map(_tensor_row, report.tensors), "ttnnnnt", sort_id="tensor-list")
        return
    n = len(groups)
    listed = list(groups)
    if n > MAX_ROWS:
        chosen = set(heapq.nlargest(MAX_ROWS, range(n), key=lambda i: groups[i].raw_nbytes))
        listed = [group for i, group in enumerate(groups) if i in chosen]
    text = f"There are {len(report.tensors):,}: those that differ in numbers only share a line."
    if len(listed) < n:
        rest = sum(group.raw_nbytes for group in groups) - sum(group.raw_nbytes for group in listed)
        text += f" Of {n:,} lines these are the {len(listed):,} largest; the others hold {human_size(rest)}."
    yield f'<p class="soft">{text} <code>ptwm info -a</code> lists all.</p>'
    yield from _filter("groups")
    head = ("tensors", "count", "type", "shape", "raw", "stored", "ratio")
    yield from table(head, map(_group_row, listed), "tntnnnn", sort_id="tensor-list")


def _filter(what: str) -> Iterator[str]:
    yield (
        f'<p class="filter" id="filter" hidden><label>Find {what}: <input id="filter-text" type="search" '
        'autocomplete="off" spellcheck="false"></label> <span class="soft" id="filter-count" role="status"></span></p>'
    )


def _n_elements(shape: Sequence[int] | None) -> float:
    product = 1
    for dim in shape or ():
        product = min(product * dim, 1 << 70)
    return product if shape is not None else -1


def _tensor_row(tensor: Tensor) -> Sequence[Cell | str]:
    how = f"<code>{shown(tensor.segment.how)}</code>" if tensor.segment else "–"
    if tensor.same_as is not None:
        how = f"the same bytes as {name_html(tensor.same_as)}"
    return (
        name_html(tensor.name),
        shown(tensor.dtype or "–"),
        Cell(shape_text(tensor.shape), _n_elements(tensor.shape)),
        size_cell(tensor.raw_nbytes),
        size_cell(tensor.stored_nbytes),
        ratio_cell(tensor.stored_nbytes, tensor.raw_nbytes),
        how,
    )


def _group_row(group: Group) -> Sequence[Cell | str]:
    return (
        name_html(group.pattern),
        Cell(f"{len(group.names):,}", len(group.names)),
        shown(group.first["dtype"] or "–"),
        Cell(shape_text(group.first["shape"]), _n_elements(group.first["shape"])),
        size_cell(group.raw_nbytes),
        size_cell(group.stored_nbytes),
        ratio_cell(group.stored_nbytes, group.raw_nbytes),
    )


# ---------------------------------------------------------------------------------------------------------------- file


def file(report: Report) -> Iterator[str]:
    n_checked = sum(segment.checked for segment in report.segments)
    n_hashed, n_full = report.n_hashed, sum(tensor.raw_nbytes > 0 for tensor in report.tensors)
    rows = [
        ("format version", ", ".join(map(str, report.versions))),
        ("segments", f"{len(report.segments):,}"),
        ("checksums (CRC-32C)", _of(n_checked, len(report.segments), "segment")),
        ("hashes (XXH3-64)", _of(n_hashed, n_full, "tensor that is not empty", "tensors that are not empty")),
        ("original header", "kept" if report.has_source else "the canonical one, or none: nothing is kept"),
    ]
    yield from table(("property", ""), rows, "tt")
    if len(report.files) > 1:
        yield "<h3>Files</h3>"
        file_rows = [(name_html(name), size_cell(nbytes)) for name, nbytes in report.files[:_MAX_FILES]]
        yield from table(("file", "size"), file_rows, "tn")
        if len(report.files) > _MAX_FILES:
            yield f'<p class="soft">And {len(report.files) - _MAX_FILES:,} more.</p>'
    if report.metadata:
        yield "<h3>Metadata</h3>"
        items = list(report.metadata.items())
        metadata_rows = [(name_html(str(name)), shown(value, 1000)) for name, value in items[:_MAX_METADATA]]
        yield from table(("key", "value"), metadata_rows, "tt")
        if len(items) > _MAX_METADATA:
            yield f'<p class="soft">And {len(items) - _MAX_METADATA:,} more.</p>'


def _of(part: int, whole: int, noun: str, nouns: str | None = None) -> str:
    if not whole:
        return "–"
    if part == whole:
        return f"on all {nouns or noun + 's'}" if whole > 1 else f"on the {noun}"
    return f"on {part:,} of {plural(whole, noun)}" if nouns is None else f"on {part:,} of {whole:,} {nouns}"
