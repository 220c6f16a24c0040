"""Memory: what C owns and Python looks at, and what Python owns and C looks at."""

from __future__ import annotations

import functools
import math
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptwm._dtypes import Dtype, is_big_endian, numpy_dtype, torch_dtype
from ptwm._errors import PtwmError, exception
from ptwm._library import ffi, lib

if TYPE_CHECKING:
    import numpy as np
    import torch

# ------------------------------------------------------------------------------------------- memory that C owns


class Memory:
    """Memory for one decoded tensor, of undefined content, aligned to 64 bytes at least, freed with its last view.

    MemoryError if there is none. `pointer` and `nbytes` are for C, the views for everybody else; they are writable and
    keep the memory alive by themselves. All memory for decoded tensors comes from here.
    """

    __slots__ = ("nbytes", "pointer")

    def __init__(self, nbytes: int, pointer: Any = None) -> None:
        self.nbytes = nbytes
        self.pointer = pointer if pointer is not None else _allocate(nbytes) if nbytes else ffi.NULL

    @classmethod
    def for_many(cls, sizes: Sequence[int]) -> list[Memory]:
        """Memory for several tensors that are decoded together.

        Small ones share arenas, which have huge pages where the system offers them; an arena lives as long as one of
        its tensors does.
        """
        plans: list[list[tuple[int, int]]] = [[]]  # for each arena: which tensor lies where
        end = 0
        for number, nbytes in enumerate(sizes):
            if not 0 < nbytes < _SMALL_NBYTES:
                continue
            if end + nbytes > _ARENA_NBYTES:
                plans.append([])
                end = 0
            plans[-1].append((number, end))
            end += nbytes + -nbytes % _ALIGNMENT
        shared: dict[int, Any] = {}
        for plan in plans:
            if len(plan) > 1:
                last, offset = plan[-1]
                arena = _allocate(offset + sizes[last])
                shared |= {number: _part(arena, offset) for number, offset in plan}
        return [cls(nbytes, shared.get(number)) for number, nbytes in enumerate(sizes)]

    def array(self, dtype: Dtype, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """A numpy array over the memory; elements smaller than a byte are unpacked, hence copied.

        TypeError if numpy lacks the dtype, ImportError if ml_dtypes is needed and missing, PtwmError if the shape is
        more than numpy can hold.
        """
        import numpy

        from ptwm._packing import unpack

        element, shape = numpy_layout(dtype, shape)
        try:
            if self.nbytes == 0:
                return numpy.empty(shape, element)
            flat = self.raw()
            if dtype.is_packed:
                flat = unpack(flat, dtype.bits)
            return flat.view(element).reshape(shape)
        except ValueError as error:
            raise PtwmError(f"shape {shape} is more than numpy can hold: {error}") from error

    def tensor(self, dtype: Dtype, shape: tuple[int, ...]) -> torch.Tensor:
        """A torch tensor over the memory, with a storage of exactly its size.

        TypeError if torch lacks the dtype or cannot pack the shape, PtwmError if it cannot hold the shape.
        """
        import torch

        element, shape = torch_layout(dtype, shape)
        try:
            if self.nbytes == 0:
                return torch.empty(shape, dtype=element, device="cpu")
            flat = torch.frombuffer(ffi.buffer(self.pointer, self.nbytes), dtype=element)
            return flat if len(shape) == 1 else flat.reshape(shape)
        except (RuntimeError, OverflowError) as error:
            raise PtwmError(f"shape {shape} is more than torch can hold: {error}") from error

    def raw(self) -> np.ndarray[Any, Any]:
        """A flat numpy array of bytes over the memory."""
        import numpy

        if self.nbytes == 0:
            return numpy.empty(0, numpy.uint8)
        return numpy.frombuffer(ffi.buffer(self.pointer, self.nbytes), numpy.uint8)


def tensor_of_items(items: Any, element: torch.dtype) -> torch.Tensor:
    """A torch tensor of an array of items as large as its own; over its memory if it is contiguous."""
    import numpy
    import torch

    items = numpy.asarray(items, order="C")
    if items.size == 0:
        return torch.empty(items.shape, dtype=element, device="cpu")
    return torch.frombuffer(items.reshape(-1).view(numpy.uint8), dtype=element).reshape(items.shape)


# Tensors below this size share arenas: the library gives larger ones pages of their own. An arena is what one tensor
# that is kept can keep alive of others.
_SMALL_NBYTES = 2 << 20
_ARENA_NBYTES = 8 << 20
_ALIGNMENT = 64


def _part(arena: Any, offset: int) -> Any:
    """A place in an arena, which it keeps alive."""
    return ffi.gc(arena + offset, lambda _, arena=arena: None)


# Freed blocks of pages, (size, address), oldest first. Who loads models in turn gets pages that the system need not
# clear again, which takes longer than decoding. Destructors run at any time in any thread, so there is no lock: each
# operation on the deque is atomic.
_spare: deque[tuple[int, int]] = deque()
_SPARE_NBYTES = 64 << 20


def _allocate(nbytes: int) -> Any:
    address = _take_spare(nbytes)
    if address is None:
        pointer = ffi.new("void **")
        status = lib.ptwm_memory_alloc(nbytes, pointer)
        if status != lib.PTWM_OK:
            raise exception(status)
        address = int(ffi.cast("uintptr_t", pointer[0]))
    return ffi.gc(ffi.cast("char *", address), lambda _: _give_back(nbytes, address), nbytes)


def _take_spare(nbytes: int) -> int | None:
    for block in tuple(_spare) if nbytes >= _SMALL_NBYTES else ():
        if block[0] == nbytes:
            try:
                _spare.remove(block)
            except ValueError:  # another thread was faster
                continue
            return block[1]
    return None


def _give_back(nbytes: int, address: int) -> None:
    if not _SMALL_NBYTES <= nbytes <= _SPARE_NBYTES:
        lib.ptwm_memory_free(ffi.cast("void *", address), nbytes)
        return
    _spare.append((nbytes, address))
    while sum(size for size, _ in tuple(_spare)) > _SPARE_NBYTES:
        try:
            size, oldest = _spare.popleft()
        except IndexError:
            break
        lib.ptwm_memory_free(ffi.cast("void *", oldest), size)


def numpy_layout(dtype: Dtype, shape: tuple[int, ...]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The numpy dtype and shape of a tensor.

    TypeError, which names get_bytes, if numpy has no such dtype; ImportError if ml_dtypes is needed and missing.
    """
    element = numpy_dtype(dtype)
    if element is None:
        raise TypeError(f"numpy has no dtype for {dtype.name}: use get_bytes")
    return element, shape


def torch_layout(dtype: Dtype, shape: tuple[int, ...]) -> tuple[torch.dtype, tuple[int, ...]]:
    """The torch dtype and shape of a tensor. TypeError, which names get_bytes, if torch has none."""
    element = torch_dtype(dtype)
    if element is None:
        raise TypeError(f"torch has no dtype for {dtype.name}: use get_bytes")
    if not dtype.torch_pair:
        return element, shape
    if not shape or shape[-1] % 2:
        raise TypeError(f"torch packs pairs of {dtype.name}, which shape {shape} does not allow: use get_bytes")
    return element, (*shape[:-1], shape[-1] // 2)


def whole_bytes(dtype: Dtype, first: int, end: int) -> tuple[int, int]:
    """The smallest range of elements around first .. end - 1 that begins and ends on whole bytes."""
    if first == end or not dtype.is_packed:
        return first, end
    n_elements = 8 // math.gcd(8, dtype.bits)
    return first - first % n_elements, end + -end % n_elements


class FreshBytes:
    """A bytes object of a given length that C fills before anybody else sees it; `pointer` and `nbytes` are for C.

    MemoryError if there is no memory for it.
    """

    __slots__ = ("_content", "nbytes", "pointer")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._content = GrowingBytes()
        self.pointer = ffi.cast("char *", self._content.resize(nbytes)) if nbytes else ffi.NULL

    def finish(self) -> bytes:
        """The filled object."""
        return self._content.finish() if self.nbytes else b""


class GrowingBytes:
    """A bytes object that C fills, and makes longer and shorter, before anybody else sees it."""

    __slots__ = ("_object",)

    def __init__(self) -> None:
        import ctypes

        self._object = ctypes.c_void_p()  # the only reference there is, which Python does not count among its own

    def resize(self, nbytes: int) -> int:
        """Makes the object nbytes >= 1 long and returns where its content is, of which as much as fits is kept.

        MemoryError if there is no memory; then nothing is left of it.
        """
        import ctypes

        python = _python_bytes()
        if nbytes > sys.maxsize:  # which ctypes would cut off
            raise MemoryError(f"cannot allocate {nbytes} bytes")
        _let_keep(nbytes)
        if self._object:
            python.resize(ctypes.byref(self._object), nbytes)
        else:
            self._object.value = python.make(None, nbytes)
        address = python.address(self._object)
        lib.ptwm_memory_prefer_huge_pages(ffi.cast("void *", address), nbytes)
        return int(address)

    def finish(self) -> bytes:
        """The filled object."""
        import ctypes

        content: bytes = ctypes.cast(self._object, ctypes.py_object).value
        self._release()
        return content

    def _release(self) -> None:
        if self._object:
            _python_bytes().release(self._object)
            self._object.value = None

    def __del__(self) -> None:
        self._release()


# glibc maps large blocks anew each time, up to this size until one as large has been freed: from then on it keeps freed
# ones for the next. An object that is made larger than it will be is not that large any more when it is freed.
_KEPT_NBYTES = 32 << 20
_largest_freed = 0


def _let_keep(nbytes: int) -> None:
    """Has the C library keep objects of up to that length when they are freed, if it can."""
    global _largest_freed
    if _largest_freed < nbytes < _KEPT_NBYTES:
        python = _python_bytes()
        python.release(python.make(None, nbytes))
        _largest_freed = nbytes


class _PythonBytes(NamedTuple):
    """Python's own functions for bytes objects; objects are references without an owner."""

    make: Callable[..., int]
    resize: Callable[..., int]
    address: Callable[..., int]
    release: Callable[..., None]


@functools.cache
def _python_bytes() -> _PythonBytes:
    from ctypes import POINTER, PYFUNCTYPE, c_char_p, c_int, c_ssize_t, c_void_p, pythonapi

    return _PythonBytes(
        PYFUNCTYPE(c_void_p, c_char_p, c_ssize_t)(("PyBytes_FromStringAndSize", pythonapi)),
        PYFUNCTYPE(c_int, POINTER(c_void_p), c_ssize_t)(("_PyBytes_Resize", pythonapi)),
        PYFUNCTYPE(c_void_p, c_void_p)(("PyBytes_AsString", pythonapi)),
        PYFUNCTYPE(None, c_void_p)(("Py_DecRef", pythonapi)),
    )


# -------------------------------------------------------------------------------------- memory that Python owns


class Borrowed:
    """A C-contiguous buffer of the caller's, for the time that this object lives.

    Takes bytes-like objects, numpy arrays (those of ml_dtypes too) and torch tensors and storages in the CPU's memory,
    without copying. TypeError for anything else, ValueError for memory that is not contiguous, not the CPU's or, if
    `writable` is asked for, read-only.
    """

    __slots__ = ("_owner", "nbytes", "pointer")

    def __init__(self, data: Any, writable: bool = False) -> None:
        self._owner = data
        if type(data) not in (bytes, memoryview):
            if _is_torch(data):
                self.nbytes, self.pointer = _borrow_torch(data)
                return
            if is_array(data):
                data = _bytes_of_array(data)
        view = memoryview(data)
        if view.format is not None and "O" in view.format:
            raise TypeError("a buffer of Python objects has no raw bytes")
        if not view.c_contiguous:
            raise ValueError("the buffer is not C-contiguous")
        if writable and view.readonly:
            raise ValueError("the buffer is read-only")
        self.nbytes = view.nbytes
        self.pointer = ffi.from_buffer(view) if view.nbytes else ffi.NULL


def is_array(data: Any) -> bool:
    numpy_module = sys.modules.get("numpy")
    return numpy_module is not None and isinstance(data, (numpy_module.ndarray, numpy_module.generic))


def _bytes_of_array(array: Any) -> Any:
    """The bytes of a contiguous array; most ml_dtypes arrays refuse to give them themselves."""
    import numpy

    array = numpy.asarray(array)
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects has no raw bytes")
    if not array.flags.c_contiguous:
        raise ValueError("the array is not C-contiguous")
    return array.reshape(-1).view(numpy.uint8)


def _is_torch(data: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(data, (torch.Tensor, torch.UntypedStorage, torch.storage.TypedStorage))


def _borrow_torch(data: Any) -> tuple[int, Any]:
    import torch

    if isinstance(data, torch.storage.TypedStorage):
        data = data._untyped_storage
    if data.device.type != "cpu":
        raise ValueError(f"the data is on device {data.device}, not in the CPU's memory")
    if isinstance(data, torch.Tensor):
        if data.layout != torch.strided or not data.is_contiguous() or data.is_conj() or data.is_neg():
            raise ValueError("the tensor is not contiguous (or sparse, or a lazy conjugate or negation)")
        nbytes = data.numel() * data.element_size()
    else:
        nbytes = data.nbytes()
    return nbytes, ffi.cast("char *", data.data_ptr()) if nbytes else ffi.NULL


def little_endian(array: Any) -> Any:
    """A numpy array's values in C order, little-endian; the array itself if it is so already."""
    import numpy

    array = numpy.asarray(array, order="C")
    if not is_big_endian(array.dtype):
        return array
    # Not byteswap(), which for complex32 of ml_dtypes 0.6 is not what its other byte order means.
    return array.astype(array.dtype.newbyteorder("<"))
