"""Which exponents a model's floats have, from a bounded sample of them."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ptwm._dtypes import resolve
from ptwm._library import ffi
from ptwm.random_access.records import Part
from ptwm.report.errors import without_path

if TYPE_CHECKING:
    import numpy as np

    from ptwm.random_access.index import TensorIndex
    from ptwm.report.gather import Tensor

# Bounds of the work: elements in all and of one type, places that these are taken from, and raw bytes of the chunks
# that are decoded for a type.
MAX_ELEMENTS = 4 << 20
MAX_ELEMENTS_OF_TYPE = 1 << 20
_MAX_PLACES = 256
_MAX_DECODED_NBYTES = 256 << 20
_ALIGNMENT = 8  # elements: whole bytes, whatever the type


class FloatFormat(NamedTuple):
    """How a type's bits are divided; what exponent and mantissa leave over is the sign."""

    bits: int
    exponent: int
    mantissa: int
    bias: int
    has_specials: bool  # the highest exponent is infinity's and NaNs'
    parts: int = 1  # floats in an element
    has_negative_zero: bool = True  # if not, its bits are NaN's


FORMATS = {
    "F64": FloatFormat(64, 11, 52, 1023, True),
    "F32": FloatFormat(32, 8, 23, 127, True),
    "F16": FloatFormat(16, 5, 10, 15, True),
    "BF16": FloatFormat(16, 8, 7, 127, True),
    "C128": FloatFormat(64, 11, 52, 1023, True, 2),
    "C64": FloatFormat(32, 8, 23, 127, True, 2),
    "C32": FloatFormat(16, 5, 10, 15, True, 2),
    "BC32": FloatFormat(16, 8, 7, 127, True, 2),
    "F8_E4M3": FloatFormat(8, 4, 3, 7, False),
    "F8_E5M2": FloatFormat(8, 5, 2, 15, True),
    "F8_E4M3FNUZ": FloatFormat(8, 4, 3, 8, False, has_negative_zero=False),
    "F8_E5M2FNUZ": FloatFormat(8, 5, 2, 16, False, has_negative_zero=False),
    "F8_E8M0": FloatFormat(8, 8, 0, 127, True),
    "F8_E5M3FNU": FloatFormat(8, 5, 3, 15, False),
    "F8_E4M3_IEEE": FloatFormat(8, 4, 3, 7, True),
    "F8_E3M4": FloatFormat(8, 3, 4, 3, True),
    "F8_E4M3B11FNUZ": FloatFormat(8, 4, 3, 11, False, has_negative_zero=False),
    "F6_E2M3": FloatFormat(6, 2, 3, 1, False),
    "F6_E3M2": FloatFormat(6, 3, 2, 3, False),
    "F4": FloatFormat(4, 2, 1, 1, False),
}


@dataclass(slots=True)
class Histogram:
    """The exponents of a type's floats.

    Attributes
    ----------
    counts
        How often each exponent field occurs in the sample.
    n_zeros
        How many floats of the sample are zero.
    n_sampled, n_floats
        Floats in the sample, and in all tensors of the type. Complex numbers are two each.
    own_nbytes
        What those tensors take in the file.
    """

    dtype: str
    format: FloatFormat
    counts: list[int]
    n_zeros: int
    n_sampled: int
    n_floats: int
    own_nbytes: int

    @property
    def entropy(self) -> float:
        """Of the exponent, in bits: what it takes if it is coded on its own with one table for all."""
        total = sum(self.counts)
        return 0.0 - sum(n / total * math.log2(n / total) for n in self.counts if n) if total else 0.0

    @property
    def estimate(self) -> float:
        """Bits of a float if the exponent takes its entropy, and sign and mantissa all of theirs."""
        return self.entropy + self.format.bits - self.format.exponent

    @property
    def stored_bits(self) -> float:
        """Bits of a float in the file."""
        return 8 * self.own_nbytes / self.n_floats if self.n_floats else 0.0


def sample_exponents(index: TensorIndex, tensors: Sequence[Tensor], problems: list[str]) -> list[Histogram]:
    """A histogram for each type of floats, in the order of first appearance. What does not decode goes to problems."""
    of_type: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        if tensor.dtype in FORMATS and tensor.raw_nbytes and tensor.same_as is None:
            of_type.setdefault(tensor.dtype, []).append(tensor)
    budget = min(MAX_ELEMENTS_OF_TYPE, MAX_ELEMENTS // max(len(of_type), 1))
    histograms = (_sample_type(index, dtype, group, budget, problems) for dtype, group in of_type.items())
    return [histogram for histogram in histograms if histogram.n_sampled]


def _sample_type(
    index: TensorIndex, dtype: str, tensors: Sequence[Tensor], budget: int, problems: list[str]
) -> Histogram:
    import numpy as np

    form = FORMATS[dtype]
    counts = np.zeros(1 << form.exponent, np.int64)
    n_zeros = n_failed = 0
    failure = ""
    places = list(_places(index, dtype, tensors, budget))
    for data in _decode(index, places):
        if isinstance(data, Exception):
            n_failed, failure = n_failed + 1, failure or without_path(data, index.files)
            continue
        values = _floats(data, form)
        magnitudes = values & values.dtype.type((1 << (form.exponent + form.mantissa)) - 1)
        exponents = magnitudes >> values.dtype.type(form.mantissa)
        counts += np.bincount(exponents.astype(np.intp), minlength=len(counts))
        if form.mantissa:
            n_zeros += int(np.count_nonzero((magnitudes if form.has_negative_zero else values) == 0))
    if n_failed:
        problems.append(f"{n_failed} of {len(places)} samples of {dtype} do not decode: {failure}")
    n_floats = sum(tensor.raw_nbytes * 8 // form.bits for tensor in tensors)
    own_nbytes = sum(tensor.own_nbytes for tensor in tensors)
    return Histogram(dtype, form, counts.tolist(), n_zeros, int(counts.sum()), n_floats, own_nbytes)


def _places(
    index: TensorIndex, dtype: str, tensors: Sequence[Tensor], budget: int
) -> Iterator[tuple[Tensor, int, int]]:
    """Tensors with the elements first .. end - 1 of each that belong to the sample, at even distances of each other."""
    bits = resolve(dtype)[0].bits
    ends = list(itertools.accumulate(tensor.raw_nbytes * 8 // bits for tensor in tensors))
    starts = [0, *ends[:-1]]
    total = ends[-1]
    if total <= budget and len(tensors) <= _MAX_PLACES:
        yield from ((tensor, 0, end - start) for tensor, start, end in zip(tensors, starts, ends))
        return
    largest = max(range(len(tensors)), key=lambda i: tensors[i].raw_nbytes)
    chunk_nbytes = _chunk_nbytes(index, tensors[largest])
    n_places = max(min(_MAX_PLACES, _MAX_DECODED_NBYTES // chunk_nbytes), 1)
    length = max(budget // n_places // _ALIGNMENT, 1) * _ALIGNMENT
    last = (-1, 0)  # the tensor that was used last, and up to which element
    for number in range(n_places):
        position = (2 * number + 1) * total // (2 * n_places)
        at = bisect.bisect_right(ends, position)
        n = ends[at] - starts[at]
        first = max(min(position - starts[at], n - length), 0) // _ALIGNMENT * _ALIGNMENT
        if last[0] == at:
            first = max(first, last[1])
        end = min(first + length, n)
        if first < end:
            last = (at, end)
            yield tensors[at], first, end


def _chunk_nbytes(index: TensorIndex, tensor: Tensor) -> int:
    try:
        return max(index._chunk_size(tensor.name), 1)
    except (ValueError, OSError):  # its tail is damaged, and it will not decode either
        return _MAX_DECODED_NBYTES // _MAX_PLACES


def _decode(index: TensorIndex, places: Sequence[tuple[Tensor, int, int]]) -> Iterator[Any]:
    """The places' raw bytes, in turn; an exception for a place that does not decode."""
    parts, buffers = [], []
    with index._gate:
        for tensor, first, end in places:
            record = index._find(tensor.name)
            nbytes = (end - first) * record.typed()[0].bits // 8
            buffers.append(ffi.new("char[]", nbytes))
            parts.append(Part(record, buffers[-1], nbytes, first, end - first))
        try:
            index._decode(parts, "crc")
        except (ValueError, OSError):
            yield from _decode_one_by_one(index, parts)
            return
    yield from (ffi.buffer(buffer) for buffer in buffers)


def _decode_one_by_one(index: TensorIndex, parts: Sequence[Part]) -> Iterator[Any]:
    for part in parts:
        try:
            index._decode([part], "crc")
        except (ValueError, OSError) as error:
            yield error
        else:
            yield ffi.buffer(part.pointer)


def _floats(data: Any, form: FloatFormat) -> np.ndarray[Any, Any]:
    """The bits of little-endian floats, each in an unsigned integer."""
    import numpy as np

    if form.bits < 8:
        from ptwm._packing import unpack

        return unpack(np.frombuffer(data, np.uint8), form.bits)
    return np.frombuffer(data, f"<u{form.bits // 8}")
