"""safe_open: open files that answer as safetensors.safe_open does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ptwm.random_access.devices import Device, check_device, or_none
from ptwm.random_access.opening import open_tensors
from ptwm.random_access.slices import TensorSlice, TorchSlice

if TYPE_CHECKING:
    from typing_extensions import Self

_FRAMEWORKS = {"pt": "pt", "torch": "pt", "pytorch": "pt", "np": "np", "numpy": "np"}


class safe_open:
    """Opens a file to fetch tensors and parts of them one by one. A context manager.

    Parameters
    ----------
    filename
        A .ptwm file, a .safetensors file, or a directory of either: of files that `model.ptwm.index.json` or
        `model.safetensors.index.json` lists, or `model.ptwm` or `model.safetensors`, or a lone one of another name.
    framework
        "pt" for torch tensors, "np" for numpy arrays ("pytorch", "torch" and "numpy" mean the same). ValueError for
        others.
    device
        Where torch tensors go. RuntimeError if torch cannot use it.
    backend
        "mmap" or "pread", as for `TensorIndex`, whose errors the methods raise: KeyError for a name that is not there,
        PtwmError for malformed or damaged files, TypeError for a dtype that the framework lacks, IndexError for an
        index that the tensor lacks.
    """

    def __init__(
        self, filename: str | os.PathLike[str], framework: str, device: Device = "cpu", backend: str = "mmap"
    ) -> None:
        if framework not in _FRAMEWORKS:
            raise ValueError(f"framework is 'pt' or 'np', not {framework!r}")
        self._is_torch = _FRAMEWORKS[framework] == "pt"
        if self._is_torch:
            self._device = or_none(device)
            check_device(self._device)
        elif device not in (None, "cpu"):
            raise ValueError(f"numpy arrays are on the CPU, not on {device!r}")
        self._index = open_tensors(filename, backend=backend)

    def keys(self) -> list[str]:
        """The tensors' names, sorted."""
        return sorted(self._index.names())

    def offset_keys(self) -> list[str]:
        """The tensors' names, in the order in which they are in the file."""
        return self._index.names()

    def metadata(self) -> dict[str, Any] | None:
        """The user metadata; None if the file has none."""
        return self._index.metadata() or None

    def get_tensor(self, name: str) -> Any:
        """A tensor, as the framework has it."""
        if self._is_torch:
            return self._index.get_tensor(name, self._device)
        return self._index.get_array(name)

    def get_tensors(self) -> dict[str, Any]:
        """All tensors, as the framework has them."""
        if self._is_torch:
            return self._index._load_tensors(self._device, "crc", None)
        return self._index._load_arrays("crc", None)

    def get_slice(self, name: str) -> TensorSlice:
        """A tensor to be indexed by integers and slices, which decodes the chunks that it needs."""
        if self._is_torch:
            return TorchSlice(self._index, name, self._device)
        return self._index.get_slice(name)

    def close(self) -> None:
        """Releases the file. Calls that follow raise ValueError."""
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<safe_open {str(self._index.path)!r}>"
