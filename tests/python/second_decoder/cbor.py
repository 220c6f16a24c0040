"""Section 3: CBOR with deterministic encoding, as much of it as a manifest may hold."""

from typing import Any

from .cursor import Cursor
from .errors import Malformed, require

MAX_DEPTH = 8

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)


class Opaque:
    """An item that only unknown keys may have: a tag, a float or a simple value."""


def decode(data: bytes, what: str) -> Any:
    """The one item that data holds: int, bytes, str, list, dict or `Opaque`."""
    cursor = Cursor(data, what)
    value = _item(cursor, 1)
    cursor.finish()
    return value


def _head(cursor: Cursor) -> tuple[int, int, int]:
    """An item's major type, its additional information and its argument, which has to be in its shortest form."""
    first = cursor.unsigned(1)
    major, info = first >> 5, first & 31
    if info < 24:
        return major, info, info
    require(info < 28, f"{cursor.what}: reserved or indefinite length")
    argument = int.from_bytes(cursor.take(1 << info - 24), "big")
    if major != SIMPLE:
        shortest = {24: 24, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}[info]
        require(argument >= shortest, f"{cursor.what}: a head is not in its shortest form")
    return major, info, argument


def _item(cursor: Cursor, depth: int) -> Any:
    require(depth <= MAX_DEPTH, f"{cursor.what}: nested more than {MAX_DEPTH} deep")
    major, info, argument = _head(cursor)
    if major == UNSIGNED:
        return argument
    if major == NEGATIVE:
        return -1 - argument
    if major == BYTES:
        return cursor.take(argument)
    if major == TEXT:
        return _text(cursor, argument)
    if major == ARRAY:
        return [_item(cursor, depth + 1) for _ in range(argument)]
    if major == MAP:
        return _map(cursor, argument, depth)
    if major == TAG:
        _item(cursor, depth + 1)
    elif info == 24:
        require(argument >= 32, f"{cursor.what}: a simple value is not in its shortest form")
    return Opaque()


def _text(cursor: Cursor, nbytes: int) -> str:
    try:
        return cursor.take(nbytes).decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed(f"{cursor.what}: text that is not UTF-8") from None


def _map(cursor: Cursor, n_entries: int, depth: int) -> dict[Any, Any]:
    """A map whose keys' encodings ascend, so that none occurs twice."""
    entries = {}
    before = b""
    for _ in range(n_entries):
        begin = cursor.position
        key = _item(cursor, depth + 1)
        encoded = cursor.data[begin : cursor.position]
        require(encoded > before, f"{cursor.what}: map keys are not in bytewise order")
        before = encoded
        value = _item(cursor, depth + 1)
        entries[key if isinstance(key, (int, str, bytes)) else encoded] = value
    return entries
