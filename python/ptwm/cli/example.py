"""A made-up checkpoint with the statistics of a trained one, for `ptwm demo`. Needs numpy alone."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import numpy as np

from ptwm._safetensors import canonical_header, write_file

HIDDEN, FEED_FORWARD, VOCABULARY, POSITIONS, LAYERS = 1024, 2816, 10240, 2048, 3


def write_checkpoint(path: str | os.PathLike[str]) -> int:
    """Write about 100 MB of weights as a .safetensors file; returns its length. The same bytes with each call."""
    tensors = list(_tensors(np.random.default_rng(2026)))
    records = [(name, dtype, shape, data.nbytes) for name, dtype, shape, data in tensors]
    header = canonical_header(records, {"format": "pt", "made_by": "ptwm demo"})
    return write_file(path, header, (data.reshape(-1).view(np.uint8).data for _, _, _, data in tensors if data.nbytes))


def _tensors(rng: np.random.Generator) -> Iterator[tuple[str, str, tuple[int, ...], np.ndarray]]:
    """Yield (name, dtype, shape, little-endian elements)."""
    yield _bf16("embed.weight", _matrix(rng, VOCABULARY, HIDDEN, freedom=6))
    yield _plain("embed.position_ids", "I64", np.arange(POSITIONS, dtype="<i8").reshape(1, -1))
    for layer in range(LAYERS):
        prefix = f"layers.{layer}."
        yield _plain(prefix + "norm.weight", "F32", rng.normal(1, 0.05, HIDDEN).astype("<f4"))
        yield _bf16(prefix + "attn.qkv.weight", _matrix(rng, 3 * HIDDEN, HIDDEN))
        yield _bf16(prefix + "attn.out.weight", _matrix(rng, HIDDEN, HIDDEN))
        yield _bf16(prefix + "mlp.up.weight", _matrix(rng, 2 * FEED_FORWARD, HIDDEN))
        yield _bf16(prefix + "mlp.down.weight", _matrix(rng, HIDDEN, FEED_FORWARD, freedom=8))
    yield _plain("head.weight", "F32", _matrix(rng, POSITIONS, HIDDEN))
    yield _e4m3("experts.weight", _matrix(rng, 2 * HIDDEN, 2 * HIDDEN))
    yield _plain("adapter.weight", "F32", np.empty((0, HIDDEN), "<f4"))
    yield _plain("logit_scale", "F32", np.array(math.log(100), "<f4"))


def _matrix(rng: np.random.Generator, rows: int, columns: int, freedom: int | None = None) -> np.ndarray:
    """Gaussian or (with so many degrees of freedom) Student-t values; rows and columns have scales of their own."""
    if freedom is None:
        values = rng.standard_normal((rows, columns), np.float32)
    else:
        values = rng.standard_t(freedom, (rows, columns)).astype(np.float32)
    values *= rng.lognormal(0, 0.35, (rows, 1)).astype(np.float32)
    values *= rng.lognormal(0, 0.35, columns).astype(np.float32) / np.float32(math.sqrt(columns))
    return values.astype("<f4", copy=False)


def _plain(name: str, dtype: str, values: np.ndarray) -> tuple[str, str, tuple[int, ...], np.ndarray]:
    return name, dtype, values.shape, values


def _bf16(name: str, values: np.ndarray) -> tuple[str, str, tuple[int, ...], np.ndarray]:
    """Round to bfloat16, to nearest and ties to even. For finite values."""
    bits = values.view("<u4")
    return name, "BF16", values.shape, ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def _e4m3(name: str, values: np.ndarray) -> tuple[str, str, tuple[int, ...], np.ndarray]:
    """Scale to the range of float8_e4m3fn and round to nearest."""
    codes = np.arange(127)  # all finite magnitudes; 127 is NaN
    exponent, mantissa = codes >> 3, codes & 7
    magnitudes = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))
    limits = ((magnitudes[1:] + magnitudes[:-1]) / 2).astype(np.float32)
    scaled = np.abs(values) * np.float32(magnitudes[-1] / np.abs(values).max())
    code = np.searchsorted(limits, scaled.ravel()).astype(np.uint8).reshape(values.shape)
    return name, "F8_E4M3", values.shape, code | np.signbit(values).astype(np.uint8) << 7
