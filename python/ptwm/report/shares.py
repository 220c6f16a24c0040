"""Tensors put together by layer and by data type, for the rows of bars."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ptwm.report.gather import Tensor

# As many rows of bars are shown; about four screens.
MAX_ROWS = 160
NO_DTYPE = "no type"

# The first number that is a part of a name, and what is before it. Longer ones are no layers' numbers.
_LAYER = re.compile(r"(?<![^._\[/-])\d{1,9}(?![^._\]/-])")
_SEPARATOR = re.compile(r"[./]")
# How many layers share a row where there are too many.
_STEPS = [factor * 10**power for power in range(7) for factor in (1, 2, 5)]


@dataclass(slots=True)
class Share:
    """Some tensors together.

    Attributes
    ----------
    own_nbytes, parts
        What they take in the file; bytes that several share are counted with the first.
    n_shared
        How many are the bytes of another.
    is_rest
        Whether it is what was left over when the larger shares were chosen.
    """

    label: str
    count: int = 0
    raw_nbytes: int = 0
    own_nbytes: int = 0
    n_shared: int = 0
    parts: dict[str, float] = field(default_factory=dict)
    is_rest: bool = False

    def add(self, tensor: Tensor) -> None:
        self.count += 1
        self.raw_nbytes += tensor.raw_nbytes
        self.own_nbytes += tensor.own_nbytes
        self.n_shared += tensor.same_as is not None
        for part, nbytes in tensor.parts().items():
            self.parts[part] = self.parts.get(part, 0.0) + nbytes

    def merge(self, other: Share) -> None:
        self.count += other.count
        self.raw_nbytes += other.raw_nbytes
        self.own_nbytes += other.own_nbytes
        self.n_shared += other.n_shared
        for part, nbytes in other.parts.items():
            self.parts[part] = self.parts.get(part, 0.0) + nbytes


def layer_of(name: str) -> str:
    """What a tensor belongs to: `h.11` of `h.11.attn.weight`; without a number, the module that has it."""
    match = _LAYER.search(name)
    if match:
        return name[: match.end()]
    ends = [match.start() for match in _SEPARATOR.finditer(name)]
    return name[: ends[-1]] if ends and ends[-1] > 0 else name


def shares_by(tensors: Iterable[Tensor], key: Callable[[Tensor], str]) -> list[Share]:
    """In the order of first appearance."""
    shares: dict[str, Share] = {}
    for tensor in tensors:
        label = key(tensor)
        if label not in shares:
            shares[label] = Share(label)
        shares[label].add(tensor)
    return list(shares.values())


def by_dtype(tensors: Iterable[Tensor]) -> list[Share]:
    return fold(shares_by(tensors, lambda tensor: tensor.dtype or NO_DTYPE), MAX_ROWS)


def by_layer(tensors: Iterable[Tensor], max_rows: int = MAX_ROWS) -> list[Share]:
    """In the order of first appearance, but layers by their numbers, and names that begin alike together.

    Where there are more than max_rows, consecutive layers are put together, and at last the smallest shares.
    """
    shares = shares_by(tensors, lambda tensor: layer_of(tensor.name))
    tops: dict[str, int] = {}  # where names that begin so came first, and where a series of layers did
    series: dict[str, int] = {}
    keys = []
    for i, share in enumerate(shares):
        top = tops.setdefault(_SEPARATOR.split(share.label)[0], i)
        match = _LAYER.search(share.label)
        if match:
            keys.append((top, series.setdefault(share.label[: match.start()], i), int(match[0]), i))
        else:
            keys.append((top, i, 0, i))
    keys.sort()
    runs = [
        ([number for _, _, number, _ in run], [shares[i] for *_, i in run])
        for run in (list(group) for _, group in itertools.groupby(keys, key=lambda key: key[:2]))
    ]
    room = max(max_rows - sum(len(run) == 1 for _, run in runs), max_rows // 2)

    def n_rows(step: int) -> int:
        return sum(-(-len(run) // step) for _, run in runs if len(run) > 1)

    step = next((step for step in _STEPS if n_rows(step) <= room), _STEPS[-1])
    rows = [row for numbers, run in runs for row in _join(numbers, run, step)]
    return fold(rows, max_rows)


def _join(numbers: Sequence[int], run: Sequence[Share], step: int) -> Iterator[Share]:
    """A series of layers, so many in one."""
    for at in range(0, len(run), step):
        some = run[at : at + step]
        if len(some) == 1:
            yield some[0]
            continue
        label = some[0].label
        stem = label[: len(label) - len(_LAYER.findall(label)[0])]
        joined = Share(f"{stem}[{numbers[at]}-{numbers[at + len(some) - 1]}]")
        for share in some:
            joined.merge(share)
        yield joined


def fold(shares: list[Share], max_rows: int) -> list[Share]:
    """At most so many, in their order: if there are more, the smaller ones become one at the end."""
    if len(shares) <= max_rows:
        return shares
    kept = set(sorted(range(len(shares)), key=lambda i: (-shares[i].raw_nbytes, i))[: max_rows - 1])
    rest = Share(f"{len(shares) - len(kept):,} others, all smaller", is_rest=True)
    for i, share in enumerate(shares):
        if i not in kept:
            rest.merge(share)
    return [share for i, share in enumerate(shares) if i in kept] + [rest]
