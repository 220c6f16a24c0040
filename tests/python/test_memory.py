"""The memory of decoded tensors and of files: who shares it, how long it lives, what is kept of it."""

import gc
import sys

import numpy as np
import pytest

from ptwm import _memory
from ptwm._memory import FreshBytes, GrowingBytes, Memory
from ptwm.sharding import compress_ptwm_blob


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


def fill(place, value, nbytes):
    _memory.ffi.memmove(_memory.ffi.cast("char *", place), bytes([value]) * nbytes, nbytes)


@pytest.mark.parametrize("sizes", [[1], [2, 1], [5, 3], [3000, 5000, 4097], [100, 5 << 20, 40 << 20, 35 << 20]])
def test_bytes_keep_their_content_as_they_grow_and_shrink(sizes):
    growing, expected = GrowingBytes(), b""
    for number, nbytes in enumerate(sizes):
        place = growing.resize(nbytes)
        fill(place + len(expected), number, max(0, nbytes - len(expected)))
        expected = (expected + bytes([number]) * nbytes)[:nbytes] if nbytes > len(expected) else expected[:nbytes]
    content = growing.finish()
    assert type(content) is bytes and content == expected
    assert sys.getrefcount(content) == sys.getrefcount(bytes(bytearray(sizes[-1] + 5)))  # nobody else has it


def test_bytes_that_are_not_finished_are_freed():
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        GrowingBytes().resize(100)
        GrowingBytes()
    assert sys.getallocatedblocks() < before + 500


@pytest.mark.parametrize("nbytes", [sys.maxsize - 100, sys.maxsize + 1, 1 << 63])
def test_too_many_bytes_are_a_memory_error(nbytes):
    growing = GrowingBytes()
    with pytest.raises(MemoryError):
        growing.resize(nbytes)
    growing.resize(10)
    with pytest.raises(MemoryError):
        growing.resize(nbytes)


@pytest.mark.parametrize("nbytes", [0, 1, 2, 5000])
def test_fresh_bytes(nbytes):
    fresh = FreshBytes(nbytes)
    if nbytes:
        fill(int(_memory.ffi.cast("uintptr_t", fresh.pointer)), 7, nbytes)
    assert fresh.finish() == b"\7" * nbytes


@pytest.mark.parametrize("error", [MemoryError("none left"), KeyboardInterrupt()])
@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_what_stops_a_file_from_growing_is_raised(monkeypatch, error, calls):
    resize, left = GrowingBytes.resize, [calls]

    def fail(self, nbytes):
        left[0] -= 1
        if left[0] < 0:
            raise error
        return resize(self, nbytes)

    monkeypatch.setattr(GrowingBytes, "resize", fail)
    noise = np.random.default_rng(5).bytes(3 << 20)
    with pytest.raises(type(error)):
        compress_ptwm_blob([("noise", noise, None, None)])
    assert left == [-1]
