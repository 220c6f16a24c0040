"""Models as .ptwm files: writing one at once, planning several, reading them all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from ptwm.chains import Chain
from ptwm.random_access.directory import DirectoryIndex
from ptwm.sharding.options import EncodingOptions, Method, check_method
from ptwm.sharding.writer import Writer

# (name, raw bytes, dtype, shape); see Writer.add.
Tensor = tuple[str, Any, Any, "Sequence[int] | None"]
Chains = Sequence["Sequence[Chain | bytes] | None"]


def compress_ptwm_blob(
    tensors: Iterable[Tensor],
    chains_per_tensor: Chains | None = None,
    method_hint: int = Method.MICROSCALE,
    emit_payload_hash: bool = True,
    emit_plane_crc: bool = True,
    streaming_chunk: int | None = None,
    *,
    threads: int | None = None,
    level: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> bytes:
    """A .ptwm file as bytes, of tensors given as (name, raw_bytes, dtype, shape).

    `raw_bytes`, `dtype` and `shape` are as in `Writer.add`, the options as in `Writer`.

    Parameters
    ----------
    chains_per_tensor
        For each tensor its candidate chains' bytes (`Chain.to_bytes()`), of which the smallest result wins; None, for
        all or for one: the chains of `ptwm.chains.STANDARD`.
    method_hint
        A `Method`, as its number.

    Raises
    ------
    ValueError
        As in `Writer.add`; or not as many lists of chains as tensors.
    """
    options = EncodingOptions(threads, level, emit_payload_hash, emit_plane_crc, streaming_chunk)
    with Writer._in_memory(metadata, options) as writer:
        _add_all(writer, tensors, chains_per_tensor, method_hint)
        return writer._finish_bytes()


def write_ptwm_shard(
    out_path: str | os.PathLike[str],
    tensors: Iterable[Tensor],
    chains_per_tensor: Chains | None = None,
    method_hint: int = Method.MICROSCALE,
    emit_payload_hash: bool = True,
    emit_plane_crc: bool = True,
    streaming_chunk: int | None = None,
    *,
    threads: int | None = None,
    level: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Writes what `compress_ptwm_blob` gives to a file, atomically.

    If anything fails no new file is left behind, and an older one stays as it was. `tensors` may be a generator, whose
    tensors are in memory one at a time.
    """
    with Writer(
        out_path,
        metadata=metadata,
        threads=threads,
        level=level,
        emit_payload_hash=emit_payload_hash,
        emit_plane_crc=emit_plane_crc,
        streaming_chunk=streaming_chunk,
    ) as writer:
        _add_all(writer, tensors, chains_per_tensor, method_hint)


def _add_all(writer: Writer, tensors: Iterable[Tensor], chains_per_tensor: Chains | None, method_hint: int) -> None:
    method = check_method(method_hint)
    chains: Iterable[Any] = repeat(None)
    if chains_per_tensor is not None:
        tensors = list(tensors)
        chains = chains_per_tensor
        if len(tensors) != len(chains_per_tensor):
            raise ValueError(f"{len(tensors)} tensors, but {len(chains_per_tensor)} lists of chains")
    writer._add_many(
        (name, raw_bytes, dtype, shape, candidates, method)
        for (name, raw_bytes, dtype, shape), candidates in zip(tensors, chains)
    )


def plan_shards(sized_tensors: Iterable[tuple[str, int]], max_shard_size: int) -> list[list[tuple[str, int]]]:
    """Groups of (name, nbytes) for shards of at most max_shard_size bytes of tensors, in the given order.

    A tensor that is larger gets a shard of its own. ValueError if max_shard_size or a size is not positive (a tensor's
    may be 0).
    """
    if max_shard_size <= 0:
        raise ValueError(f"max_shard_size must be positive, not {max_shard_size}")
    shards: list[list[tuple[str, int]]] = []
    used = 0
    for name, nbytes in sized_tensors:
        if nbytes < 0:
            raise ValueError(f"tensor {name!r} has a negative size")
        if not shards or used + nbytes > max_shard_size:
            shards.append([])
            used = 0
        shards[-1].append((name, nbytes))
        used += nbytes
    return shards


def shard_filename(idx_one_based: int, total: int, suffix: str) -> str:
    """The name of shard number idx_one_based (from 1) of total: `model-00001-of-00003.ptwm` for suffix ".ptwm".

    The suffix's dot may be left out. ValueError unless 1 <= idx_one_based <= total.
    """
    if not 1 <= idx_one_based <= total:
        raise ValueError(f"shard number {idx_one_based} is not in 1 .. {total}")
    dot = "" if suffix.startswith(".") or not suffix else "."
    return f"model-{idx_one_based:05d}-of-{total:05d}{dot}{suffix}"


def read_sharded_ptwm(model_dir: str | os.PathLike[str]) -> dict[str, bytes]:
    """The raw bytes of all tensors of a model in a directory.

    Reads the shards that model.ptwm.index.json lists; without that file, model.ptwm.

    Raises
    ------
    FileNotFoundError
        Neither is there, or a shard is missing.
    FormatError
        A file is malformed; a tensor is in two shards, or not in the one that the index says; a shard's name leaves the
        directory.
    """
    with DirectoryIndex(model_dir, any_name=False) as index:
        return {name: index.get_bytes(name) for name in index}
