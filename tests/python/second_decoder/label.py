"""Section 7: label rANS, its model and its coded chunks."""

from dataclasses import dataclass

import numpy as np

from .chain import LabelStep
from .checksums import crc32c
from .codecs import Words
from .cursor import Cursor
from .errors import Corrupt, require

N_LABELS = 32
TOTAL = 65536
SHARE = TOTAL // N_LABELS  # what each bucket of an alias table holds


@dataclass(frozen=True)
class Table:
    """A class: the symbols of its labels, and their frequencies in columns of phase 0 and 1."""

    symbols: list[int]
    frequencies: list[list[int]]  # of one or two phases


@dataclass(frozen=True)
class Model:
    """What a tail says about a segment's symbols."""

    unit: int
    shifts: np.ndarray  # one a column; empty: none
    phases: np.ndarray | None
    sets: list[list[Table]]


def read_model(cursor: Cursor, bits: int, n_chunks: int) -> Model:
    """The model of a segment whose symbols have so many bits."""
    unit = cursor.varint()
    require(1 <= unit <= 1 << 20, "label: the unit")
    n_columns = cursor.varint()
    require(n_columns <= 1 << 20, "label: the number of columns")
    shifts, phases = np.zeros(0, np.int64), None
    if n_columns > 0:
        base = (cursor.unsigned(1) ^ 128) - 128
        has_phases, width = divmod(cursor.unsigned(1), 128)
        require(1 <= width <= 8, "label: the width of shifts")
        shifts = base + cursor.bit_stream(n_columns, width)
        require(int(shifts.max()) <= 127, "label: a shift beyond 127")
        if has_phases:
            phases = cursor.bit_stream(n_columns, 1)
    n_sets = cursor.varint()
    require(n_sets <= 65536 and n_sets <= n_chunks, "label: the number of sets")
    sets = [_read_set(cursor, bits, phases is not None) for _ in range(n_sets)]
    return Model(unit, shifts, phases, sets)


def _read_set(cursor: Cursor, bits: int, has_phases: bool) -> list[Table]:
    n_classes = cursor.unsigned(1)
    require(1 <= n_classes <= 8, "label: the number of classes")
    return [_read_table(cursor, bits, has_phases) for _ in range(n_classes)]


def _read_table(cursor: Cursor, bits: int, has_phases: bool) -> Table:
    n_labels = cursor.unsigned(1)
    require(2 <= n_labels <= N_LABELS, "label: the number of labels")
    symbols, first = [], []
    symbol = -1
    for _ in range(n_labels):
        eighth, has_gap = divmod(cursor.varint(), 2)
        gap = cursor.varint() if has_gap else 0
        require(gap > 0 or not has_gap, "label: a gap of zero that is written")
        symbol += 1 + gap
        require(symbol < 1 << bits, "label: a symbol of too many bits")
        symbols.append(symbol)
        first.append(8 * eighth)
    frequencies = [first]
    if has_phases:
        frequencies.append([8 * cursor.varint() for _ in range(n_labels)])
    for values in frequencies:
        require(all(8 <= value <= 65528 for value in values), "label: a frequency")
        require(sum(values) == TOTAL, "label: frequencies do not sum to 65536")
    return Table(symbols, frequencies)


def _alias_table(frequencies: list[int]) -> np.ndarray:
    """Rows F, div, ali and adj of one distribution."""
    f = frequencies + [0] * (N_LABELS - len(frequencies))
    rem, ali = list(f), list(range(N_LABELS))
    div, adj = [0] * N_LABELS, [0] * N_LABELS
    small, large = [], []
    for i in reversed(range(N_LABELS)):
        if f[i] < SHARE:
            small.append(i)
        elif f[i] > SHARE:
            large.append(i)
    while small:
        s, top = small.pop(), large[-1]
        d = rem[s]
        div[s], ali[s] = 32 * d, top
        rem[top] -= SHARE - d
        adj[s] = (rem[top] - d) % 65536
        if rem[top] < SHARE:
            small.append(large.pop())
        elif rem[top] == SHARE:
            large.pop()
    return np.array([f, div, ali, adj], np.int64)


def _lane_order(lanes: int, width: int) -> np.ndarray:
    """For each element of a group of 'lanes' elements, its lane."""
    i = np.arange(lanes)
    if lanes == 128 and width == 1:
        j = i % 64
        return 64 * (i // 64 % 2) + 32 * (j % 2) + j // 2
    return i


def _read_exceptions(cursor: Cursor, count: int, n: int, step: LabelStep) -> tuple[list[int], list[int]]:
    positions, symbols = [], []
    position = -1
    for _ in range(count):
        position += 1 + cursor.varint()
        require(position < n, "label: an exception beyond the chunk")
        symbol = cursor.unsigned(step.symbol_nbytes)
        require(symbol < 1 << step.bits, "label: an exception of too many bits")
        positions.append(position)
        symbols.append(symbol)
    return positions, symbols


def decode(stored: bytes, model: Model, step: LabelStep, first_element: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The n symbols of a chunk that begins with element first_element, and a u16 a lane: what the states carry."""
    cursor = Cursor(stored, "label rANS")
    lanes_code = cursor.unsigned(1)
    require(lanes_code <= 2, "label: lanes")
    lanes = (4, 32, 128)[lanes_code]
    require(lanes < 128 or model.unit % 128 == 0, "label: 128 lanes with another unit")
    set_index = cursor.varint()
    require(set_index < len(model.sets), "label: a set that is not there")
    tables = model.sets[set_index]
    n_exceptions = cursor.varint()
    require(n_exceptions <= n, "label: more exceptions than elements")
    classes = cursor.bit_stream(-(-n // model.unit), (len(tables) - 1).bit_length())
    require(int(classes.max()) < len(tables), "label: a class that is not there")
    positions, exceptions = _read_exceptions(cursor, n_exceptions, n, step)
    states = np.frombuffer(cursor.take(4 * lanes), "<u4").astype(np.int64)
    head = stored[: cursor.position]
    if crc32c(head) != cursor.unsigned(4):
        raise Corrupt("label: the head's CRC-32C")
    require(states.min() >= 65536, "label: a state below 65536")
    words = Words(cursor.rest())

    # Which distribution each element has: one for each class and phase.
    elements = np.arange(n)
    kinds = classes[elements // model.unit]
    n_phases = 1
    if model.phases is not None:
        n_phases = 2
        kinds = 2 * kinds + model.phases[(first_element + elements) % len(model.phases)]
    distributions = np.array([_alias_table(f) for table in tables for f in table.frequencies])
    labels = _decode_labels(distributions, kinds, states, words, _lane_order(lanes, step.width))
    words.finish()

    symbols_of = np.array([table.symbols + [0] * (N_LABELS - len(table.symbols)) for table in tables], np.int64)
    symbols = symbols_of[kinds // n_phases, labels]
    symbols[positions] = exceptions
    carried = states - 65536
    require(carried.max() < 65536, "label: a final state beyond 131071")
    return symbols, carried


def _decode_labels(
    distributions: np.ndarray, kinds: np.ndarray, states: np.ndarray, words: Words, lane_order: np.ndarray
) -> np.ndarray:
    """The label of each element. Changes states."""
    n, lanes = len(kinds), len(states)
    labels = np.empty(n, np.int64)
    for first in range(0, n, lanes):
        # The elements of this group by ascending lane; the last group may not have them all.
        group = lane_order[: n - first]
        by_lane = np.argsort(group)
        lane = group[by_lane]
        at = first + by_lane
        kind = kinds[at]
        x = states[lane]
        low, high = x % 65536, x // 65536
        bucket, offset = low % 32, low // 32
        is_alias = low >= distributions[kind, 1, bucket]
        label = np.where(is_alias, distributions[kind, 2, bucket], bucket)
        rank = np.where(is_alias, (offset + distributions[kind, 3, bucket]) % 65536, offset)
        x = distributions[kind, 0, label] * high + rank
        words.refill(x)
        states[lane] = x
        labels[at] = label
    return labels
