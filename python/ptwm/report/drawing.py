"""Drawings: bars, a scatter plot and histograms, as SVG that is as wide as there is room.

Positions across are in percent, so that text keeps its size; heights are in pixels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ptwm.cli.units import human_size
from ptwm.report.histograms import Histogram
from ptwm.report.markup import shown

# How many types have colours of their own in the scatter plot.
N_COLOURS = 6
_MAX_POINTS = 4000
_SCATTER_HEIGHT, _HISTOGRAM_HEIGHT = 300, 150
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "−0123456789")


# ---------------------------------------------------------------------------------------------------------------- bars


def bar(parts: Mapping[str, float], whole: float, longest: float, names: Mapping[str, str]) -> str:
    """A bar as long as `whole` is to `longest`, filled with parts in the order of names. No text of a file is in it."""
    if longest <= 0:
        return ""
    rects = [f'<rect class="track" x="0" y="0" width="{_number(1000 * whole / longest)}" height="10"/>']
    position = 0.0
    for part, name in names.items():
        nbytes = parts.get(part, 0)
        if nbytes > 0:
            width = 1000 * nbytes / longest
            title = f"<title>{name}: {human_size(nbytes)}</title>"
            place = f'x="{_number(position)}" y="0" width="{_number(width)}" height="10"'
            rects.append(f'<rect class="{part}" {place}>{title}</rect>')
            position += width
    return (
        '<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
        + "".join(rects)
        + "</svg>"
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


# ------------------------------------------------------------------------------------------------------- scatter plot


class Point(NamedTuple):
    """A tensor: raw bytes, stored / raw, the number of a colour, and its name."""

    nbytes: float
    ratio: float
    colour: int
    name: str


def scatter(points: Sequence[Point], labels: Sequence[tuple[float, float, str]], highest: float) -> Iterator[str]:
    """Ratio against size. Labels: bytes, ratio and text. Ratios above `highest` are drawn at the upper edge."""
    low = math.floor(math.log10(max(min(point.nbytes for point in points), 1)))
    high = math.floor(math.log10(max(point.nbytes for point in points))) + 1

    def across(nbytes: float) -> float:
        return 100 * (math.log10(max(nbytes, 1)) - low) / (high - low)

    def down(ratio: float) -> float:
        return _SCATTER_HEIGHT * (1 - min(ratio, highest) / highest)

    yield (
        f'<svg class="plot" width="100%" height="{_SCATTER_HEIGHT + 40}" role="img" '
        'aria-label="Stored share of each tensor against its size">'
    )
    for step in range(round(highest * 4) + 1):
        kind = "base" if step in (0, 4) else "grid"
        y = _number(down(step / 4))
        yield f'<line class="{kind}" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="0" dx="-8" y="{y}" dy="4" text-anchor="end">{25 * step} %</text>'
    for decade in range(low, high + 1):
        x = _number(across(10**decade))
        minor = " minor" if (decade - low) % 2 else ""
        yield f'<line class="grid" x1="{x}%" x2="{x}%" y1="0" y2="{_SCATTER_HEIGHT}"/>'
        yield (
            f'<text class="tick{minor}" x="{x}%" y="{_SCATTER_HEIGHT + 18}" text-anchor="middle">'
            f"{_decade(decade)}</text>"
        )
    yield f'<text class="axis" x="50%" y="{_SCATTER_HEIGHT + 37}" text-anchor="middle">size before compression</text>'
    obstacles: list[tuple[float, float]] = []
    for (at, height, colour), group in _merge(points, across, down):
        first = group[0]
        title = f"{shown(first.name, 80)}: {human_size(first.nbytes)}, {100 * first.ratio:.1f} %"
        if len(group) > 1:
            title = f"{len(group):,} tensors, such as {title}"
        radius = _number(min(3.5 + math.log2(len(group)) / 2, 8))
        yield (
            f'<circle class="c{colour}" cx="{_number(at)}%" cy="{_number(height)}" r="{radius}">'
            f"<title>{title}</title></circle>"
        )
        obstacles.append((at, height))
    yield from _labels([(across(nbytes), down(ratio), text) for nbytes, ratio, text in labels], obstacles)
    yield "</svg>"


def _decade(power: int) -> str:
    """`10 kB`."""
    return human_size(10**power).replace(".00", "").replace(".0", "")


def _merge(
    points: Sequence[Point], across: Callable[[float], float], down: Callable[[float], float]
) -> Iterable[tuple[tuple[float, float, int], list[Point]]]:
    """Points that would cover each other, together: on a grid that is as coarse as it takes to have few."""
    step = 0.25
    while True:
        merged: dict[tuple[float, float, int], list[Point]] = {}
        for point in points:
            x = round(across(point.nbytes) / step) * step
            y = round(down(point.ratio) / (3 * step)) * 3 * step
            merged.setdefault((x, y, point.colour), []).append(point)
        if len(merged) <= _MAX_POINTS:
            return merged.items()
        step *= 1.5


def _labels(places: Sequence[tuple[float, float, str]], points: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Text beside its point, or near it where it would cover other text or points; none where that does not help."""
    taken: list[tuple[float, float, float]] = []

    def is_free(begin: float, end: float, at: float) -> bool:
        return (
            begin >= 0
            and end <= 100
            and 6 <= at <= _SCATTER_HEIGHT - 6
            and not any(abs(at - other) < 14 and begin < right and left < end for left, right, other in taken)
            and not any(abs(at - other) < 11 and begin < across < end for across, other in points)
        )

    for x, y, text in places:
        width = 1.2 + len(text) * 0.7  # percent of a wide page
        for offset, side in itertools.product((0, -9, 9, -16, 16, -23, 23), (1, -1)):
            begin, end = (x + 0.6, x + width) if side > 0 else (x - width, x - 0.6)
            if is_free(begin, end, y + offset):
                taken.append((begin, end, y + offset))
                anchor = 'dx="9"' if side > 0 else 'dx="-9" text-anchor="end"'
                place = f'x="{_number(x)}%" y="{_number(y + offset)}" dy="4"'
                yield f'<text class="label" {place} {anchor}>{shown(text)}</text>'
                break


# --------------------------------------------------------------------------------------------------------- histograms


class Bins(NamedTuple):
    """The part of a histogram that is drawn: exponent fields first .. end - 1, so many to a bar."""

    first: int
    end: int
    per_bar: int
    outside: float  # the part of the sample that is not drawn


def choose_bins(histogram: Histogram, max_bars: int = 64) -> Bins:
    """Powers of two that occur, without the rarest at either end; zeros and such only where they come next to these."""
    counts = histogram.counts
    first, end = 0, len(counts)
    if end > 32:
        rare = 0.002 * sum(counts)
        first = 1 if histogram.format.mantissa else 0
        end -= histogram.format.has_specials
        if not any(counts[first:end]):
            first, end = 0, len(counts)
        first += _n_rare(counts[first:end], rare)
        end -= _n_rare(counts[first:end][::-1], rare)
        first, end = max(first - 1, 0), min(end + 1, len(counts))
    return Bins(first, end, -(-(end - first) // max_bars), 1 - sum(counts[first:end]) / sum(counts))


def _n_rare(counts: Sequence[int], rare: float) -> int:
    """How many of the first counts are fewer than `rare` together; not all."""
    seen, n = 0, 0
    while n < len(counts) - 1 and seen + counts[n] < rare:
        seen += counts[n]
        n += 1
    return n


def draw_histogram(histogram: Histogram) -> Iterator[str]:
    bins = choose_bins(histogram)
    total = sum(histogram.counts)
    starts = range(bins.first, bins.end, bins.per_bar)
    shares = [sum(histogram.counts[start : min(start + bins.per_bar, bins.end)]) / total for start in starts]
    top = max(shares)
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if top / step <= 4 or step == 0.5)
    yield (
        f'<svg class="plot" width="100%" height="{_HISTOGRAM_HEIGHT + 24}" role="img" '
        f'aria-label="How often each exponent occurs in {histogram.dtype}">'
    )
    for line in range(int(top / step) + 1):
        y = _number(_HISTOGRAM_HEIGHT * (1 - line * step / top))
        yield f'<line class="{"grid" if line else "base"}" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        yield (f'<text class="tick" x="0" dx="-8" y="{y}" dy="4" text-anchor="end">{round(100 * line * step)} %</text>')
    width = 100 / len(shares)
    every = -(-len(shares) // 8)
    for i, (start, share) in enumerate(zip(starts, shares)):
        height = _HISTOGRAM_HEIGHT * share / top
        name = exponent_name(histogram, start)
        if bins.per_bar > 1:
            name += f" to {exponent_name(histogram, min(start + bins.per_bar, bins.end) - 1)}"
        yield (
            f'<rect class="symbols" x="{_number(i * width + width * 0.08)}%" y="{_number(_HISTOGRAM_HEIGHT - height)}" '
            f'width="{_number(width * 0.84)}%" height="{_number(height)}">'
            f"<title>{name}: {100 * share:.2f} %</title></rect>"
        )
        if i % every == every // 2:
            x = _number((i + 0.5) * width)
            yield (
                f'<text class="tick" x="{x}%" y="{_HISTOGRAM_HEIGHT + 18}" text-anchor="middle">'
                f"{_tick(exponent_name(histogram, start))}</text>"
            )
    yield "</svg>"


def _tick(name: str) -> str:
    """A power with a raised exponent, in digits of a font that all have."""
    if not name.startswith("2"):
        return name
    return f'2<tspan dy="-4">{name[1:].translate(_PLAIN)}</tspan>'


def exponent_name(histogram: Histogram, field: int) -> str:
    """What a value of the exponent field stands for: `2⁻⁵`, or what is no power."""
    form = histogram.format
    if field == len(histogram.counts) - 1 and form.has_specials:
        return "∞, NaN" if form.mantissa else "NaN"
    if field == 0 and form.mantissa:
        return "subn."
    return "2" + str(field - form.bias).translate(_SUPERSCRIPTS)
