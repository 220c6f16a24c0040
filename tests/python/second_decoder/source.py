"""Section 9: the .safetensors file that a .ptwm file was made of."""

import json
from typing import Any

from . import cbor
from .errors import Refused, require
from .file import File
from .manifest import DTYPES

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def safetensors(file: File) -> bytes:
    """The original file, byte for byte. `Refused` if there is none."""
    header = _stored_header(file)
    order = list(file.tensors)
    if header is None:
        header = canonical_header(file)
    else:
        places = _check_header(file, header)
        order.sort(key=lambda tensor: places[tensor.name])
    return len(header).to_bytes(8, "little") + header + b"".join(file.decode(tensor) for tensor in order)


def canonical_header(file: File) -> bytes:
    """The header that needs no source entry."""
    members = []
    metadata = _text_map(file.manifest.metadata, "the user metadata")
    if metadata:
        if not all(isinstance(value, str) for value in metadata.values()):
            raise Refused("user metadata that is not text")
        pairs = sorted(metadata.items(), key=lambda pair: pair[0].encode("utf-8"))
        members.append('"__metadata__":{' + ",".join(f"{_string(k)}:{_string(v)}" for k, v in pairs) + "}")
    end = 0
    for tensor in file.tensors:
        if tensor.name == "__metadata__" or tensor.shape is None or not _is_in_safetensors(tensor.dtype):
            raise Refused(f"{tensor.name!r} can't be in a .safetensors file")
        begin, end = end, end + tensor.nbytes
        shape = ",".join(map(str, tensor.shape))
        members.append(
            f'{_string(tensor.name)}:{{"dtype":"{DTYPES[tensor.dtype][0]}","shape":[{shape}],"data_offsets":[{begin},{end}]}}'
        )
    header = ("{" + ",".join(members) + "}").encode("utf-8")
    return header + b" " * (-len(header) % 8)


def _is_in_safetensors(dtype: int) -> bool:
    return dtype in DTYPES and (dtype <= 21 or dtype == 23)


def _string(text: str) -> str:
    return '"' + "".join(ESCAPES.get(c, f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def _text_map(data: bytes | None, what: str) -> dict[str, Any]:
    """A CBOR map whose keys are text strings; none is an empty one."""
    pairs = cbor.Pairs() if data is None else cbor.decode(data, what)
    require(isinstance(pairs, cbor.Pairs), f"{what} is not a map")
    if not all(isinstance(key, str) for key, _ in pairs):
        raise Refused(f"{what} has keys that are not text")
    return dict(pairs)


def _stored_header(file: File) -> bytes | None:
    """The header of the source entry, or None without one."""
    if file.manifest.source is None:
        return None
    source = _text_map(file.manifest.source, "the source")
    header = source.get("header")
    if source.get("format") != "safetensors" or not isinstance(header, bytes):
        raise Refused("a source of another format")
    return header


def _check_header(file: File, header: bytes) -> dict[str, tuple[int, int]]:
    """Each tensor's data offsets, if the header names exactly the file's tensors."""
    members = json.loads(header)
    members.pop("__metadata__", None)
    require(set(members) == {tensor.name for tensor in file.tensors}, "the source names other tensors")
    for tensor in file.tensors:
        member = members[tensor.name]
        is_same = tensor.shape is not None and member["shape"] == list(tensor.shape)
        require(is_same and member["dtype"] == DTYPES[tensor.dtype][0], f"the source contradicts {tensor.name!r}")
    return {name: (member["data_offsets"][0], member["data_offsets"][1]) for name, member in members.items()}
