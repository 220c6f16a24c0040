"""Files that `ptwm compress` cannot take, and what to do with them."""

from __future__ import annotations

import os

from ptwm._safetensors import SafetensorsError, SafetensorsFile
from ptwm.cli.common import Failure

_PICKLE = "load it with torch.load(..., weights_only=True) and save the tensors with ptwm.torch.save_file"
_ARRAYS = "load the arrays and save them with ptwm.numpy.save_file"
_HINTS = {
    "ptwm": "is a .ptwm file already; `ptwm decompress` restores it",
    "pytorch": f"a PyTorch pickle, not .safetensors; {_PICKLE}",
    "gguf": "a GGUF file, not .safetensors; compress the .safetensors files that it was made from",
    "numpy": f"a NumPy file, not .safetensors; {_ARRAYS}",
    "hdf5": f"an HDF5 file, not .safetensors; {_ARRAYS}",
    "onnx": f"an ONNX file, not .safetensors; {_ARRAYS}",
    "index": "an index of shards; compress the directory that it is in",
    "lfs": "a pointer of Git LFS, not the file itself; `git lfs pull` fetches that",
}
_MAGICS = {
    b"\xd7ptwm\r\n\x1a": "ptwm",
    b"GGUF": "gguf",
    b"\x93NUMPY": "numpy",
    b"\x89HDF": "hdf5",
    b"version https://git": "lfs",
}
_SUFFIXES = {
    ".bin": "pytorch", ".pt": "pytorch", ".pth": "pytorch", ".ckpt": "pytorch", ".pkl": "pytorch", ".gguf": "gguf",
    ".npy": "numpy", ".npz": "numpy", ".h5": "hdf5", ".hdf5": "hdf5", ".onnx": "onnx", ".json": "index",
}  # fmt: skip


def check_is_safetensors(path: str) -> None:
    """A Failure that says what to do with a file that is something else than .safetensors."""
    try:
        SafetensorsFile(path).close()
    except SafetensorsError:
        kind = _foreign_kind(path)
        if kind is None:
            raise
        raise Failure(f"{path}: {_HINTS[kind]}") from None


def check_has_safetensors(directory: str) -> None:
    """A Failure for a directory without .safetensors files, which says what to do with the others that it has."""
    others = []
    for parent, _, names in os.walk(directory):
        if any(name.endswith(".safetensors") for name in names):
            return
        others += [os.path.join(parent, name) for name in sorted(names)]
    hints = ((path, _SUFFIXES.get(os.path.splitext(path)[1].lower())) for path in others)
    advice = next((f"; {path}: {_HINTS[kind]}" for path, kind in hints if kind not in (None, "index")), "")
    raise Failure(f"{directory}: no .safetensors file in this directory{advice}")


def _foreign_kind(path: str) -> str | None:
    with open(path, "rb") as file:
        start = file.read(32)
    for magic, kind in _MAGICS.items():
        if start.startswith(magic):
            return kind
    return _SUFFIXES.get(os.path.splitext(path)[1].lower())
