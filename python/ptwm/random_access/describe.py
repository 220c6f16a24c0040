"""How tensors are stored, in plain values: what `ptwm info` shows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ptwm._library import ffi, lib, new_struct, to_bytes
from ptwm.chains import Chain
from ptwm.random_access.records import Record

_KINDS = {
    lib.PTWM_PLANE_BYTES: "bytes",
    lib.PTWM_PLANE_LOW: "low",
    lib.PTWM_PLANE_REST: "rest",
    lib.PTWM_PLANE_SYMBOL: "symbol",
}


def describe_record(record: Record) -> dict[str, Any]:
    """What the manifest says."""
    entry = record.entry()
    return {
        "name": entry.name,
        "dtype": entry.dtype,
        "shape": None if entry.shape is None else list(entry.shape),
        "nbytes": record.nbytes,
        "compressed_nbytes": record.stored_nbytes,
        "hash": record.hash,
        "segment": record.segment,
        "segment_offset": record.segment_offset,
    }


def describe_segment(layout: Any = None, segment: Any = None) -> dict[str, Any]:
    """What a segment's tail says, and how large it is.

    `layout` is a `struct ptwm_layout *` and `segment` a `struct ptwm_segment_info *`; None: there is no segment.
    """
    sizes = {
        "segment_stored_nbytes": segment.stored_nbytes if segment else 0,
        "tail_nbytes": segment.tail_nbytes if segment else 0,
    }
    if layout is None:
        return {**sizes, "chain": None, "chunks": 0, "chunk_nbytes": 0, "planes": [], "model": None}
    info = new_struct("ptwm_layout_info")
    lib.ptwm_layout_get_info(layout, info)
    model = None
    if info.unit:
        model = {
            "unit": info.unit,
            "columns": info.n_columns,
            "phases": bool(info.has_phases),
            "sets": info.n_sets,
        }
    return {
        **sizes,
        "chain": repr(Chain.from_bytes(to_bytes(info.chain, info.chain_nbytes))),
        "chunks": info.n_chunks,
        "chunk_nbytes": info.chunk_nbytes,
        "planes": [_describe_plane(layout, plane, info.n_chunks) for plane in range(info.n_planes)],
        "model": model,
    }


def _describe_plane(layout: Any, plane: int, n_chunks: int) -> dict[str, Any]:
    stored = new_struct("ptwm_stored_plane")
    codecs: Counter[str] = Counter()
    raw_nbytes = stored_nbytes = 0
    for chunk in range(n_chunks):
        lib.ptwm_layout_get_plane(layout, chunk, plane, stored)
        codecs[_codec_name(stored.codec)] += 1
        raw_nbytes += stored.raw_nbytes
        stored_nbytes += stored.stored_nbytes
    return {
        "kind": _KINDS.get(stored.kind, "unknown"),
        "raw_nbytes": raw_nbytes,
        "stored_nbytes": stored_nbytes,
        "codecs": dict(sorted(codecs.items())),
    }


def _codec_name(codec: int) -> str:
    name = lib.ptwm_codec_name(codec)
    return f"unknown-{codec}" if name == ffi.NULL else ffi.string(name).decode("ascii")
