"""Section 3: CBOR with deterministic encoding, as much of it as a manifest may hold."""

from typing import Any

from .cursor import Cursor
from .errors import require

MAX_DEPTH = 8

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)


class Opaque:
    """An item that only unknown keys may have: a tag, a float, a simple value, text that is not UTF-8."""


class Pairs(list[tuple[Any, Any]]):
    """A map as it stands there."""


def decode(data: bytes, what: str) -> Any:
    """The one item that data holds: int, bytes, str, list, `Pairs` or `Opaque`."""
    cursor = Cursor(data, what)
    value = _item(cursor, 0)
    cursor.finish()
    return value


def table(value: Any, what: str) -> dict[int, Any]:
    """A map whose keys are unsigned integers that ascend, as a dict."""
    require(isinstance(value, Pairs), f"{what} is not a map")
    previous = -1
    for key, _ in value:
        require(is_unsigned(key), f"{what} has a key that is not an unsigned integer")
        require(key > previous, f"{what} has keys that do not ascend")
        previous = key
    return dict(value)


def is_unsigned(value: Any) -> bool:
    """Whether it is an unsigned integer."""
    return isinstance(value, int) and value >= 0


def _head(cursor: Cursor) -> tuple[int, int]:
    """An item's major type and its argument, which has to be in its shortest form."""
    first = cursor.unsigned(1)
    major, info = first >> 5, first & 31
    if info < 24:
        return major, info
    require(info < 28, f"{cursor.what}: reserved or indefinite length")
    argument = int.from_bytes(cursor.take(1 << info - 24), "big")
    shortest = {24: 24, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}[info]
    require(major == SIMPLE or argument >= shortest, f"{cursor.what}: a head is not in its shortest form")
    return major, argument


def _item(cursor: Cursor, depth: int) -> Any:
    """The next item, which is in so many arrays, maps and tags."""
    major, argument = _head(cursor)
    if major in (ARRAY, MAP, TAG):
        require(depth < MAX_DEPTH, f"{cursor.what}: nested more than {MAX_DEPTH} deep")
    if major == UNSIGNED:
        return argument
    if major == NEGATIVE:
        return -1 - argument
    if major == BYTES:
        return cursor.take(argument)
    if major == TEXT:
        return _text(cursor.take(argument))
    if major == ARRAY:
        return [_item(cursor, depth + 1) for _ in range(argument)]
    if major == MAP:
        return Pairs((_item(cursor, depth + 1), _item(cursor, depth + 1)) for _ in range(argument))
    if major == TAG:
        _item(cursor, depth + 1)
    return Opaque()


def _text(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return Opaque()
