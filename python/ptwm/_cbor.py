"""User metadata and the source entry: CBOR maps of plain values (RFC 8949), deterministic when written.

Plain values are None, bool, int of 64 bits, float, str, bytes, lists and dicts with str keys. Tags are refused when
reading: some of them make a decoder do costly or surprising things, and a file's content may be hostile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptwm._errors import FormatError

MAX_DEPTH = 64

_MAP, _TEXT, _TAG, _SIMPLE = 5, 3, 6, 7
_SIMPLE_VALUES = (20, 21, 22, 25, 26, 27)  # false, true, null and the three floats


def encode(value: Mapping[str, Any]) -> bytes:
    """The deterministic CBOR of a map. TypeError or ValueError if something in it is not a plain value."""
    import cbor2

    return cbor2.dumps(_plain(value, 0), canonical=True)


def decode(data: bytes, what: str) -> dict[str, Any]:
    """The map that CBOR bytes from a file hold. FormatError, which says what they were for, if they hold none."""
    import cbor2

    try:
        _check_plain(data)
        value = cbor2.loads(data)
    except (cbor2.CBORError, ValueError, EOFError, IndexError) as error:
        raise FormatError(f"{what} is malformed: {error}") from error
    if not isinstance(value, dict):
        raise FormatError(f"{what} is malformed: not a map")
    return value


def _plain(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"metadata is nested more than {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"metadata keys are strings, not {type(key).__name__}")
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, int) and not -(2**64) <= value < 2**64:
        raise ValueError("integers in metadata have at most 64 bits")
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    raise TypeError(f"metadata cannot hold a {type(value).__name__}")


def _head(data: bytes, position: int) -> tuple[int, int, int, int]:
    """Major type, additional information, argument and the position behind the head of the item at position."""
    major, info = data[position] >> 5, data[position] & 31
    position += 1
    if info < 24:
        return major, info, info, position
    if info > 27:
        raise ValueError("an item of indefinite or reserved length")
    end = position + (1 << (info - 24))
    if end > len(data):
        raise ValueError("it ends inside an item")
    return major, info, int.from_bytes(data[position:end], "big"), end


def _check_plain(data: bytes) -> None:
    """Raises ValueError or IndexError unless data is one item of plain values, not nested too deep."""
    position = 0
    open_items = [[1, False]]  # items that are left in each open container, and whether it is a map
    while open_items:
        left, is_map = open_items[-1]
        if left == 0:
            open_items.pop()
            continue
        open_items[-1][0] -= 1
        major, info, argument, position = _head(data, position)
        if is_map and left % 2 == 0 and major != _TEXT:
            raise ValueError("a key that is not text")
        if major == _TAG or (major == _SIMPLE and info not in _SIMPLE_VALUES):
            raise ValueError("a tag or simple value")
        if major in (2, _TEXT):
            position += argument
        elif major in (4, _MAP):
            if len(open_items) > MAX_DEPTH + 1:
                raise ValueError(f"nested more than {MAX_DEPTH} deep")
            open_items.append([argument * (2 if major == _MAP else 1), major == _MAP])
        if position > len(data):
            raise ValueError("it ends inside an item")
    if position != len(data):
        raise ValueError("bytes behind its end")
