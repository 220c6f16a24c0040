"""Chains: how a tensor's bytes are turned into planes, which are then stored (FORMAT.md, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptwm._dtypes import DTYPES, resolve
from ptwm._errors import exception, new_error
from ptwm._library import ffi, lib, to_bytes

__all__ = ["STANDARD", "Chain"]

# Opcodes of the steps, and how many one-byte parameters follow each.
_STEPS = {1: ("delta", 1), 2: ("bytes", 1), 3: ("label", 3)}
_OPCODES = {name: (opcode, n_parameters) for opcode, (name, n_parameters) in _STEPS.items()}

bytes_ = bytes  # for annotations in Chain, where its own bytes() hides the builtin


@dataclass(frozen=True, repr=False)
class Chain:
    """A chain: at most 8 steps, applied in order. `Chain()` leaves the bytes as they are.

    Chains are built from `Chain.delta`, `Chain.bytes` and `Chain.label`, joined by `+`:
    `Chain.delta(2) + Chain.bytes(2)`. They are immutable, comparable and hashable. An illegal one is a ValueError.

    Attributes
    ----------
    steps
        For each step its name and its parameters, such as `("label", 2, 6, 9)`.
    """

    steps: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(tuple(step) for step in self.steps))
        wire = self.to_bytes()
        error = new_error()
        status = lib.ptwm_chain_check(wire, len(wire), error)
        if status != lib.PTWM_OK:
            raise exception(status, error, writing=True)

    @classmethod
    def delta(cls, width: int) -> Chain:
        """Each unsigned element of 1, 2, 4 or 8 bytes minus the one before it in its chunk, modulo 2^(8 width)."""
        return cls((("delta", width),))

    @classmethod
    def bytes(cls, width: int) -> Chain:
        """A plane for each byte of elements of 2 to 16 bytes. A last step."""
        return cls((("bytes", width),))

    @classmethod
    def label(cls, width: int, shift: int, bits: int) -> Chain:
        """A plane of the `bits` bits from bit `shift` on of each element's top 16 bits, and planes of the others.

        `width` is the element's size in bytes: 1 (its top 8 bits are all), 2, 4, 8, or 0 for two 4-bit elements a byte.
        A last step.
        """
        return cls((("label", width, shift, bits),))

    def __add__(self, other: object) -> Chain:
        if not isinstance(other, Chain):
            return NotImplemented
        return Chain(self.steps + other.steps)

    def to_bytes(self) -> bytes_:
        """The chain as it stands in a file."""
        return b"".join(_step_to_bytes(*step) for step in self.steps)

    @classmethod
    def from_bytes(cls, wire: bytes_) -> Chain:
        """The inverse of `to_bytes`. FormatError if the bytes are no legal chain."""
        wire = bytes(memoryview(wire))
        error = new_error()
        status = lib.ptwm_chain_check(wire, len(wire), error)
        if status != lib.PTWM_OK:
            raise exception(status, error)
        return cls(tuple(_steps_from_bytes(wire)))

    def __repr__(self) -> str:
        if not self.steps:
            return "Chain()"
        return " + ".join(f"Chain.{name}({', '.join(map(str, rest))})" for name, *rest in self.steps)


def _step_to_bytes(name: str, *parameters: int) -> bytes:
    if name not in _OPCODES:
        raise ValueError(f"a chain has no step {name!r}")
    opcode, n_parameters = _OPCODES[name]
    if len(parameters) != n_parameters:
        raise ValueError(f"step {name!r} takes {n_parameters} parameters, not {len(parameters)}")
    if not all(0 <= parameter <= 255 for parameter in parameters):
        raise ValueError(f"parameters {parameters} of step {name!r} are not all in 0 .. 255")
    return bytes((opcode, *parameters))


def _steps_from_bytes(wire: bytes) -> Iterator[tuple[Any, ...]]:
    position = 0
    while position < len(wire):
        name, n_parameters = _STEPS[wire[position]]
        yield (name, *wire[position + 1 : position + 1 + n_parameters])
        position += 1 + n_parameters


class _Standard(Mapping[Any, "tuple[Chain, ...]"]):
    """The library's table, read when asked. Keys are dtypes in any spelling, and None for bytes without a dtype."""

    def __getitem__(self, dtype: Any) -> tuple[Chain, ...]:
        try:
            code = lib.PTWM_DTYPE_NONE if dtype is None else resolve(dtype)[0].code
        except (TypeError, ValueError):
            raise KeyError(dtype) from None
        return tuple(_standard_chains(code))

    def __iter__(self) -> Iterator[str]:
        return (dtype.name for dtype in DTYPES)

    def __len__(self) -> int:
        return len(DTYPES)

    def __repr__(self) -> str:
        return f"STANDARD({dict(self)!r})"


def _standard_chains(code: int) -> Iterator[Chain]:
    chain, chain_nbytes = ffi.new("const void **"), ffi.new("size_t *")
    number = 0
    while lib.ptwm_chain_standard(code, number, chain, chain_nbytes) == lib.PTWM_OK:
        yield Chain.from_bytes(to_bytes(chain[0], chain_nbytes[0]))
        number += 1


# The chains that are considered for each dtype, in order of preference.
STANDARD: Mapping[Any, tuple[Chain, ...]] = _Standard()
