"""The memory of decoded tensors: who shares it, how long it lives, what is kept of it."""

import gc

import numpy as np
import pytest

from ptwm import _memory
from ptwm._memory import Memory


def address(memory):
    return int(_memory.ffi.cast("uintptr_t", memory.pointer))


def test_small_tensors_share_arenas_without_overlap():
    sizes = [0, 1, 63, 64, 65, 3 << 20, 1 << 20, (2 << 20) - 1, (2 << 20) - 1, (2 << 20) - 1, (2 << 20) - 1, 100]
    memories = Memory.for_many(sizes)
    assert [memory.nbytes for memory in memories] == sizes
    blocks = sorted((address(memory), memory.nbytes) for memory in memories if memory.nbytes)
    assert all(begin % 64 == 0 for begin, _ in blocks)
    assert all(begin + nbytes <= following for (begin, nbytes), (following, _) in zip(blocks, blocks[1:]))


def test_an_arena_lives_as_long_as_one_of_its_tensors():
    views = [
        np.frombuffer(_memory.ffi.buffer(memory.pointer, memory.nbytes), np.uint8)
        for memory in Memory.for_many([1 << 20] * 7)
    ]
    for number, view in enumerate(views):
        view[:] = number
    kept = views[3]
    del views, view
    gc.collect()
    others = Memory.for_many([1 << 20] * 7)  # what was freed would be given out again
    for memory in others:
        np.frombuffer(_memory.ffi.buffer(memory.pointer, memory.nbytes), np.uint8)[:] = 99
    assert (kept == 3).all()


def test_freed_pages_are_used_again_up_to_a_limit():
    _memory._spare.clear()  # of other tests; their pages are lost, which is no matter here
    first = Memory(5 << 20)
    place = address(first)
    del first
    assert list(_memory._spare) == [(5 << 20, place)]
    again = Memory(5 << 20)
    assert address(again) == place and not _memory._spare
    many = [Memory((4 << 20) + i) for i in range(40)]
    del many, again
    assert sum(nbytes for nbytes, _ in _memory._spare) <= _memory._SPARE_NBYTES
    large = Memory(_memory._SPARE_NBYTES + 1)
    del large
    assert all(nbytes <= _memory._SPARE_NBYTES for nbytes, _ in _memory._spare)


def test_too_much_is_a_memory_error():
    with pytest.raises(MemoryError):
        Memory(1 << 62)
