"""OpenZL: graphs of its standard nodes that take floats apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.contenders.base import Contender, PerTensor, width
from bench.model import Tensor

FLOATS = {"BF16": "BFloat16Deconstruct", "F16": "Float16Deconstruct", "F32": "Float32Deconstruct"}


class OpenZL(PerTensor):
    """Floats: exponents through an entropy coder, the rest stored or, where that is smaller, coded too.

    Other types: the same entropy coder for single bytes, OpenZL's generic graph for wider integers.
    """

    package = "openzl"

    def __init__(self, name: str, coder: str, note: str) -> None:
        self.name = name
        self.note = note
        self._coder = coder

    def start(self) -> None:
        import openzl.ext as zl

        self._zl = zl
        self._cctx = zl.CCtx()
        self._dctx = zl.DCtx()
        self._compressors: dict[str, Any] = {}

    def _graph(self, compressor: Any, dtype: str, nbytes: int) -> Any:
        nodes, graphs = self._zl.nodes, self._zl.graphs
        coder = getattr(graphs, self._coder)
        if self._coder == "Compress" or (dtype not in FLOATS and nbytes > 1):
            return graphs.Compress()(compressor)
        if dtype not in FLOATS:
            # FSE takes bytes, not numbers.
            return coder()(compressor) if self._coder == "Entropy" else graphs.Entropy()(compressor)
        rest = {
            "BF16": lambda: graphs.Store(),
            "F16": lambda: nodes.ConvertStructToNumLE()(compressor, graphs.Bitpack()),
            "F32": lambda: nodes.TransposeSplit()(compressor, graphs.Entropy()),
        }[dtype]()
        return getattr(nodes, FLOATS[dtype])()(compressor, sign_frac=rest, exponent=coder())

    def _compressor(self, tensor: Tensor) -> Any:
        dtype = tensor.dtype if tensor.dtype in FLOATS else f"{8 * width(tensor)} bits"
        if dtype not in self._compressors:
            compressor = self._zl.Compressor()
            compressor.set_parameter(self._zl.CParam.FormatVersion, self._zl.MAX_FORMAT_VERSION)
            compressor.select_starting_graph(self._graph(compressor, dtype, width(tensor)))
            self._compressors[dtype] = compressor
        return self._compressors[dtype]

    def encode_tensor(self, tensor: Tensor) -> bytes:
        values = np.frombuffer(tensor.data, f"u{width(tensor)}")
        self._cctx.ref_compressor(self._compressor(tensor))  # a context forgets it after each frame
        return self._cctx.compress([self._zl.Input(self._zl.Type.Numeric, values)])

    def decode_tensor(self, tensor: Tensor, frame: bytes) -> Any:
        (output,) = self._dctx.decompress(frame)
        return output.content.as_nparray()


class OpenZLGeneric(OpenZL):
    sizes_only = True


def contenders() -> list[Contender]:
    return [
        OpenZL(
            "openzl", "Entropy", "entropy profile: floats taken apart, exponents by Entropy; checksums as by default"
        ),
        OpenZL("openzl-fse", "Fse", "the same with exponents by FSE"),
        OpenZLGeneric("openzl-generic", "Compress", "its generic graph for numbers"),
    ]
