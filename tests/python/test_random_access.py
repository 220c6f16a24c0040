"""TensorIndex: listing, fetching, slicing, streaming, closing, and files that are not what they should be."""

import errno
import gc
import os
import sys
import threading
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import PACKED, same_bits, weights

import ptwm
import ptwm.numpy
from ptwm import FormatError, IntegrityError, PtwmError, TensorEntry, TensorIndex
from ptwm.sharding import compress_ptwm_blob


def flip(path, position, mask=0x10):
    """Damages one byte of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= mask
    path.write_bytes(data)


def raw_bytes(array):
    """What get_bytes gives for an array of a whole-byte dtype."""
    return np.asarray(array).tobytes()


# ------------------------------------------------------------------------------------------------------------ entries


def test_entry_compares_by_name():
    assert TensorEntry("a") == TensorEntry("a", "F32", (2,), 8, 5)
    assert TensorEntry("a") != TensorEntry("b")
    assert len({TensorEntry("a"), TensorEntry("a", "F32")}) == 1
    entry = TensorEntry("a")
    assert (entry.dtype, entry.shape, entry.nbytes, entry.compressed_nbytes) == (None, None, None, None)
    with pytest.raises(AttributeError):
        entry.name = "b"


# ------------------------------------------------------------------------------------------------------------ listing


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_listing(saved, arrays, backend):
    with TensorIndex(saved, backend=backend) as index:
        assert index.names() == list(arrays) == list(index)
        assert index.entries() == [TensorEntry(name) for name in arrays]
        assert len(index) == len(arrays)
        assert index.path == saved
        assert str(len(arrays)) in repr(index)
        assert str(saved) in repr(index)
        for name, array in arrays.items():
            assert name in index
            entry = index.entry(name)
            assert (entry.name, entry.shape) == (name, array.shape)
            bits = PACKED.get(entry.dtype, array.dtype.itemsize * 8)
            assert entry.nbytes == array.size * bits // 8
            assert entry.compressed_nbytes >= 0
        assert index.entry("large.bf16").dtype == "BF16"
        assert index.entry("F6_E2M3").dtype == "F6_E2M3"
        assert index.entry("large.bf16").compressed_nbytes < index.entry("large.bf16").nbytes
        assert index.entry("empty").compressed_nbytes == 0


def test_open_is_the_constructor(saved):
    assert TensorIndex.open(saved).names() == TensorIndex(str(saved)).names()
    assert TensorIndex.open(saved, backend="pread").path == saved


def test_missing_names(saved):
    with TensorIndex(saved) as index:
        for name in ("missing", "large\0", "\ud800", "nul"):
            assert name not in index
            for fetch in (index.entry, index.get_bytes, index.get_array, index.get_slice, index.describe):
                with pytest.raises(KeyError):
                    fetch(name)
            with pytest.raises(KeyError):
                index.get_into(name, bytearray(1))
        with pytest.raises(KeyError, match="missing"):
            index.get_bytes("missing")
        assert 5 not in index
        with pytest.raises(TypeError):
            index.get_bytes(5)
        with pytest.raises(TypeError):
            index.get_bytes(b"large")


def test_arguments(saved):
    with pytest.raises(ValueError, match="backend"):
        TensorIndex(saved, backend="carrier pigeon")
    with pytest.raises(ValueError, match="threads"):
        TensorIndex(saved, threads=-1)
    for path in (5, None, b"bytes"):
        with pytest.raises(TypeError):
            TensorIndex(path)
    with pytest.raises(ValueError, match="NUL"):
        TensorIndex("a\0b")
    with TensorIndex(saved) as index, pytest.raises(ValueError, match="check"):
        index.get_bytes("large", check="sometimes")


def test_metadata(saved, tmp_path):
    with TensorIndex(saved) as index:
        assert index.metadata() == {"made by": "tests"}
        assert index._source is None
    nested = {"a": [1, -1, 2.5, None, True, b"\0"], "z": {"deep": {"er": "ü"}}, "": 2**64 - 1}
    with ptwm.Writer(tmp_path / "nested", metadata=nested, _source={"format": "safetensors", "header": b"{}"}):
        pass
    with TensorIndex(tmp_path / "nested") as index:
        assert index.metadata() == nested
        assert index._source == {"format": "safetensors", "header": b"{}"}
        assert index.names() == []
    with TensorIndex.from_buffer(compress_ptwm_blob([])) as index:
        assert index.metadata() == {}


# ----------------------------------------------------------------------------------------------------------- fetching


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("check", ["crc", "full", "none"])
def test_fetching(saved, arrays, backend, check):
    with TensorIndex(saved, backend=backend) as index:
        for name, array in arrays.items():
            fetched = index.get_array(name, check=check)
            assert same_bits(fetched, array), name
            assert fetched.flags.writeable
            raw = index.get_bytes(name, check=check)
            assert type(raw) is bytes
            assert len(raw) == index.entry(name).nbytes
            if index.entry(name).dtype not in PACKED:
                assert raw == raw_bytes(array)
            buffer = bytearray(len(raw))
            index.get_into(name, buffer, check=check)
            assert buffer == raw
        index.verify()
        index.verify(threads=1)


def test_single_bytes_do_not_touch_pythons_own():
    # Python shares the bytes objects of length 1; decoding into one would change it for everybody.
    with TensorIndex.from_buffer(compress_ptwm_blob([(str(n), bytes([n]), "U8", [1]) for n in range(256)])) as index:
        for n in range(256):
            assert index.get_bytes(str(n)) == bytes([n])
    assert [bytes([n])[0] for n in range(256)] == list(range(256))
    assert bytes(1) == b"\0" == b"\x00\x01"[:1]


def test_packed_bytes():
    four = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    six = np.array([0b000001, 0b100000, 0b111111, 0b010101], np.uint8).view(ml_dtypes.float6_e2m3fn)
    with TensorIndex.from_buffer(ptwm.numpy.save({"four": four, "six": six})) as index:
        assert index.get_bytes("four") == bytes(16 * (2 * n + 1) + 2 * n for n in range(8))
        bits = 0b010101_111111_100000_000001
        assert index.get_bytes("six") == bits.to_bytes(3, "little")
        assert index.entry("six").shape == (4,)


def test_fetched_arrays_outlive_the_index(saved, arrays):
    index = TensorIndex(saved)
    first, second = index.get_array("large"), index.get_array("large")
    index.close()
    del index
    saved.unlink()
    gc.collect()
    first[:] = 0
    assert same_bits(second, arrays["large"])


def test_get_into_kinds_of_buffers(saved, arrays):
    with TensorIndex(saved) as index:
        array = np.zeros((1200, 640), ml_dtypes.bfloat16)
        index.get_into("large.bf16", array)
        assert same_bits(array, arrays["large.bf16"])
        index.get_into("large", memoryview(target := bytearray(700 * 1024 * 4)))
        assert target == arrays["large"].tobytes()
        index.get_into("empty", bytearray())
        for bad in (bytearray(23), bytearray(25), b"\0" * 24, memoryview(bytearray(48))[::2], bytearray()):
            with pytest.raises(ValueError):
                index.get_into("F4", bad)
        read_only = np.zeros(24, np.uint8)
        read_only.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            index.get_into("F4", read_only)
        for bad in (5, "text", None, [0] * 24, np.zeros(3, object)):
            with pytest.raises(TypeError):
                index.get_into("F4", bad)


def test_tensors_without_metadata():
    with TensorIndex.from_buffer(compress_ptwm_blob([("raw", b"12345", None, None)])) as index:
        assert index.get_bytes("raw") == b"12345"
        entry = index.entry("raw")
        assert (entry.dtype, entry.shape, entry.nbytes) == (None, None, 5)
        for fetch in (index.get_array, index.get_slice):
            with pytest.raises(TypeError, match="get_bytes"):
                fetch("raw")


def test_dtype_that_numpy_lacks(monkeypatch):
    monkeypatch.setattr("ptwm._memory.numpy_dtype", lambda dtype: None)
    with TensorIndex.from_buffer(compress_ptwm_blob([("c", b"1234", "C32", [1])])) as index:
        assert index.get_bytes("c") == b"1234"
        for fetch in (index.get_array, index.get_slice):
            with pytest.raises(TypeError, match="'c'.*get_bytes"):
                fetch("c")


def test_max_nbytes(saved, arrays):
    nbytes = arrays["large"].nbytes
    with TensorIndex(saved) as index:
        for fetch in (index.get_bytes, index.get_array):
            fetch("large", max_nbytes=nbytes)
            with pytest.raises(PtwmError, match=f"'large'.*{nbytes}"):
                fetch("large", max_nbytes=nbytes - 1)
        # An element of 4 bits takes a byte in numpy.
        index.get_bytes("F4", max_nbytes=24)
        index.get_array("F4", max_nbytes=48)
        with pytest.raises(PtwmError):
            index.get_array("F4", max_nbytes=47)
        rows = index.get_slice("large", max_nbytes=2 * 4096)
        assert same_bits(rows[3:5], arrays["large"][3:5])
        with pytest.raises(PtwmError):
            rows[3:6]
    total = sum(array.nbytes for array in arrays.values())
    ptwm.numpy.load_file(saved, max_nbytes=total)
    with pytest.raises(PtwmError):
        ptwm.numpy.load_file(saved, max_nbytes=total - 1)


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_fetching_reads_only_what_it_needs(tmp_path, backend):
    tensors = {f"t{n}": weights((512, 1024), np.float32, n) for n in range(8)}
    ptwm.numpy.save_file(tensors, tmp_path / "m.ptwm")
    with TensorIndex(tmp_path / "m.ptwm", backend=backend) as index:
        opened = index.bytes_read
        assert opened < 4096
        index.get_bytes("t3")
        stored = index.entry("t3").compressed_nbytes
        assert 0 < index.bytes_read - opened < stored * 1.05 + 65536
        before = index.bytes_read
        index.get_slice("t5")[:10]
        assert 0 < index.bytes_read - before < stored * 0.75


# ---------------------------------------------------------------------------------------------------------- streaming


NO_TORCH = ("F8_E4M3_IEEE", "F8_E3M4", "F8_E4M3B11FNUZ", "BC32", "F8_E5M3FNU")


def test_streaming(saved, arrays, torch, monkeypatch):
    names = [name for name in arrays if name not in PACKED and name not in NO_TORCH]
    monkeypatch.setattr("ptwm.random_access.streaming.BATCH_NBYTES", 100_000)
    with TensorIndex(saved) as index:
        order = [*names[::-1], "large", "large"]
        streamed = list(index.stream_tensors(order))
        assert [name for name, _ in streamed] == order
        for name, tensor in streamed:
            again = index.get_tensor(name)
            assert tensor.dtype == again.dtype and tensor.shape == again.shape
            assert torch.equal(*(part.reshape(-1).view(torch.uint8) for part in (tensor, again)))
        assert streamed[-1][1].data_ptr() != streamed[-2][1].data_ptr()
        assert list(index.stream_tensors([])) == []


def test_streaming_everything(tmp_path, torch):
    tensors = {f"t{n}": weights((40, 40), np.float32, n) for n in range(50)}
    ptwm.numpy.save_file(tensors, tmp_path / "m")
    with TensorIndex(tmp_path / "m") as index:
        streamed = dict(index.stream_tensors())
        assert list(streamed) == list(tensors)
        assert all(same_bits(streamed[name].numpy(), tensors[name]) for name in tensors)


def test_streaming_names_are_checked_at_once(saved):
    with TensorIndex(saved) as index:
        with pytest.raises(KeyError):
            index.stream_tensors(["large", "missing"])
        with pytest.raises(TypeError):
            index.stream_tensors("large")


def test_streaming_fails_at_the_tensor_concerned(tmp_path, torch):
    with ptwm.Writer(tmp_path / "m") as writer:
        writer.add("good", b"1234", "U8", (4,))
        writer.add("raw", b"1234")
        writer.add("never", b"4567", "U8", (4,))
    with TensorIndex(tmp_path / "m") as index:
        stream = index.stream_tensors()
        assert next(stream)[0] == "good"
        with pytest.raises(TypeError, match="raw"):
            next(stream)


def test_streaming_memory_is_bounded(tmp_path, torch, monkeypatch):
    monkeypatch.setattr("ptwm.random_access.streaming.BATCH_NBYTES", 20_000)
    ptwm.numpy.save_file({f"t{n}": weights((50, 50), np.float32, n) for n in range(40)}, tmp_path / "m")
    alive = weakref.WeakSet()
    monkeypatch.setattr(TensorIndex, "_tensors", watching(TensorIndex._tensors, alive))
    most = 0
    with TensorIndex(tmp_path / "m") as index:
        for _, tensor in index.stream_tensors():
            del tensor
            most = max(most, len(alive))
    assert 0 < most <= 6


def watching(method, alive):
    """The method, recording the tensors that it returns."""

    def wrapper(*args):
        tensors = method(*args)
        alive.update(tensors)
        return tensors

    return wrapper


def test_streaming_abandoned(saved, torch):
    with TensorIndex(saved) as index:
        stream = index.stream_tensors(["large"] * 4)
        next(stream)
        stream.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("ptwm-stream")]
        stream = index.stream_tensors(["large"] * 400)
        next(stream)
    with pytest.raises(ValueError, match="closed"):
        for _ in stream:
            pass


# ------------------------------------------------------------------------------------------------------------ closing


def test_after_close(saved):
    index = TensorIndex(saved)
    part = index.get_slice("large")
    index.close()
    index.close()
    calls = [
        index.names,
        index.entries,
        index.metadata,
        index.verify,
        lambda: index.entry("large"),
        lambda: index.get_bytes("large"),
        lambda: index.get_array("large"),
        lambda: index.get_into("F4", bytearray(24)),
        lambda: index.get_slice("large"),
        lambda: index.describe("large"),
        lambda: index.stream_tensors(),
        lambda: "large" in index,
        lambda: list(index),
        lambda: index.__enter__(),
        lambda: part[0],
    ]
    for call in calls:
        with pytest.raises(ValueError, match="closed"):
            call()
    assert "closed" in repr(index)
    assert index.path == saved


def test_close_waits_for_running_calls(tmp_path):
    array = weights((4096, 1024), np.float32)
    ptwm.numpy.save_file({"x": array}, tmp_path / "m")
    expected = array.tobytes()
    for _ in range(5):
        index = TensorIndex(tmp_path / "m", threads=1)
        results = []
        started = threading.Barrier(4)

        def work(index=index, results=results, started=started):
            started.wait()
            try:
                while True:
                    results.append(index.get_bytes("x") == expected)
            except ValueError as error:
                results.append("closed" in str(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        started.wait()
        index.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert all(results)
        assert len(results) >= 3


def test_many_threads_at_once(saved, arrays):
    failures = []
    with TensorIndex(saved) as index:

        def work(seed):
            rng = np.random.default_rng(seed)
            for name in rng.permutation(list(arrays)):
                if not same_bits(index.get_array(str(name)), arrays[str(name)]):
                    failures.append(name)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_dropped_without_closing(saved):
    index = TensorIndex(saved)
    reference = weakref.ref(index)
    del index
    gc.collect()
    assert reference() is None


# ------------------------------------------------------------------------------------------------------------ buffers


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_from_buffer(saved, arrays, kind):
    index = TensorIndex.from_buffer(kind(saved.read_bytes()))
    gc.collect()
    assert index.names() == list(arrays)
    assert same_bits(index.get_array("large"), arrays["large"])
    assert isinstance(index.path, Path)
    index.verify()


def test_from_buffer_holds_the_buffer_until_close(saved):
    data = bytearray(saved.read_bytes())
    index = TensorIndex.from_buffer(data)
    with pytest.raises(BufferError):
        data.append(0)
    index.close()
    data.append(0)


def test_from_buffer_of_something_else():
    for bad in (5, "text", None, [1]):
        with pytest.raises(TypeError):
            TensorIndex.from_buffer(bad)
    with pytest.raises(FormatError):
        TensorIndex.from_buffer(b"")


# ------------------------------------------------------------------------------------------------------------ readers


def test_from_reader(saved, arrays):
    data = saved.read_bytes()
    requests = []

    def read(offset, nbytes):
        requests.append((offset, nbytes))
        return memoryview(data)[offset : offset + nbytes]

    index = TensorIndex.from_reader(read, len(data), threads=1)
    # Header, and the end with footer and manifest, in a few requests.
    assert index.names() == list(arrays)
    assert len(requests) <= 3
    assert same_bits(index.get_array("large"), arrays["large"])
    index.verify()
    assert index.bytes_read == sum(nbytes for _, nbytes in requests)
    index.close()


def test_from_reader_that_fails(saved):
    data = saved.read_bytes()
    failing = []

    def read(offset, nbytes):
        if failing:
            raise failing[0]
        return data[offset : offset + nbytes]

    index = TensorIndex.from_reader(read, len(data))
    for error in (RuntimeError("mine"), ConnectionResetError("theirs"), KeyboardInterrupt()):
        failing[:] = [error]
        with pytest.raises(type(error)) as caught:
            index.get_bytes("large")
        assert caught.value is error
    failing.clear()
    assert len(index.get_bytes("large")) == index.entry("large").nbytes
    for bad, kind in (
        (lambda offset, nbytes: b"short", OSError),
        (lambda offset, nbytes: None, OSError),
        (lambda offset, nbytes: "text", TypeError),
    ):
        with pytest.raises(kind):
            TensorIndex.from_reader(bad, len(data))
    for total_nbytes in (-1, 1 << 63):
        with pytest.raises(ValueError, match="total_nbytes"):
            TensorIndex.from_reader(read, total_nbytes)


# -------------------------------------------------------------------------------------------------------------- paths


def test_paths_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        TensorIndex(tmp_path / "missing.ptwm")
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == str(tmp_path / "missing.ptwm")
    for backend in ("mmap", "pread"):
        with pytest.raises(FileNotFoundError, match=r"model\.ptwm\.index\.json"):
            TensorIndex(tmp_path, backend=backend)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        TensorIndex(tmp_path / "file" / "below")
    if hasattr(os, "geteuid") and os.geteuid() != 0:
        (tmp_path / "file").chmod(0)
        with pytest.raises(PermissionError):
            TensorIndex(tmp_path / "file")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes any bytes as names")
def test_path_that_is_not_utf8(saved, arrays, tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9 \xff.ptwm")
    ptwm.numpy.save_file({"x": arrays["large"]}, path)
    with TensorIndex(path) as index:
        assert same_bits(index.get_array("x"), arrays["large"])
    assert b"caf\xe9 \xff.ptwm" in os.listdir(os.fsencode(tmp_path))
    flip(path, 0)
    with pytest.raises(FormatError):
        TensorIndex(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    outcome = []

    def work():
        try:
            TensorIndex(tmp_path / "pipe")
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    assert outcome, "opening a pipe hangs"
    assert isinstance(outcome[0], (OSError, PtwmError))


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_file_that_is_replaced_while_open(saved, arrays, backend):
    with TensorIndex(saved, backend=backend) as index:
        ptwm.numpy.save_file({"other": np.zeros(3)}, saved)
        assert same_bits(index.get_array("large"), arrays["large"])
    assert TensorIndex(saved).names() == ["other"]


# ------------------------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_truncation_and_trailing_bytes(saved, backend):
    data = saved.read_bytes()
    for length in [*range(0, 64), len(data) // 2, *range(len(data) - 64, len(data))]:
        saved.write_bytes(data[:length])
        with pytest.raises(FormatError) as caught:
            TensorIndex(saved, backend=backend)
        assert str(saved) in str(caught.value)
    for extra in (b"\0", b"x" * 100, data):
        saved.write_bytes(data + extra)
        with pytest.raises(FormatError):
            TensorIndex(saved, backend=backend)


def test_foreign_format_is_refused_by_name(tmp_path):
    path = tmp_path / "foreign.ptwm"
    path.write_bytes(bytes.fromhex("895054574D0D0A1A0A") + bytes(200))
    with pytest.raises(FormatError, match="unrelated|foreign|other project") as caught:
        TensorIndex(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_damaged_plane(tmp_path, backend):
    path = tmp_path / "m"
    ptwm.numpy.save_file({"first": weights((64, 1024), seed=1), "bad": weights((700, 1024), seed=2)}, path)
    with TensorIndex(path) as index:
        expected = index.get_bytes("first")
    flip(path, path.stat().st_size - 500_000)
    with TensorIndex(path, backend=backend) as index:
        assert index.get_bytes("first") == expected
        for fetch in (index.get_bytes, index.get_array):
            with pytest.raises(IntegrityError) as caught:
                fetch("bad")
            message = str(caught.value)
            assert str(path) in message
            assert "'bad'" in message
            assert any(character.isdigit() for character in message.replace(str(path), ""))
        with pytest.raises(IntegrityError, match="bad"):
            index.verify()
        with pytest.raises(IntegrityError):
            index.get_into("bad", bytearray(700 * 1024 * 4))
    with pytest.raises(IntegrityError):
        ptwm.numpy.load_file(path, backend=backend)


def test_full_check_finds_what_crc_cannot(tmp_path):
    # Without CRCs a damaged plane of stored bytes decodes to something else, which only the hash reveals.
    path = tmp_path / "m"
    data = np.random.default_rng(0).bytes(100_000)
    with ptwm.Writer(path, emit_plane_crc=False) as writer:
        writer.add("x", data, "U8", [100_000], method=ptwm.Method.IDENTITY)
    flip(path, 50_000)
    with TensorIndex(path) as index:
        assert index.get_bytes("x") != data
        with pytest.raises(IntegrityError, match="'x'.*hash"):
            index.get_bytes("x", check="full")
        with pytest.raises(IntegrityError, match="hash"):
            index.get_array("x", check="full")
        with pytest.raises(IntegrityError):
            index.verify()
    with pytest.raises(IntegrityError):
        ptwm.numpy.load_file(path, check="full")


def test_check_none_ignores_crcs(tmp_path):
    path = tmp_path / "m"
    data = np.random.default_rng(0).bytes(100_000)
    with ptwm.Writer(path) as writer:
        writer.add("x", data, "U8", [100_000], method=ptwm.Method.IDENTITY)
    flip(path, 50_000)
    with TensorIndex(path) as index:
        with pytest.raises(IntegrityError):
            index.get_bytes("x")
        decoded = index.get_bytes("x", check="none")
        assert sum(a != b for a, b in zip(decoded, data)) == 1


# --------------------------------------------------------------------------------------------------------- describing


def test_describe(saved, arrays):
    with TensorIndex(saved) as index:
        for name in arrays:
            description = index.describe(name)
            entry = index.entry(name)
            assert description["name"] == name
            assert description["dtype"] == entry.dtype
            assert description["shape"] == list(entry.shape)
            assert description["nbytes"] == entry.nbytes
            assert description["compressed_nbytes"] == entry.compressed_nbytes
        large = index.describe("large.bf16")
        assert large["chain"].startswith("Chain.")
        assert large["chunks"] >= 2
        kinds = [plane["kind"] for plane in large["planes"]]
        assert kinds == ["rest", "symbol"]
        assert sum(plane["raw_nbytes"] for plane in large["planes"]) > 0
        assert all(sum(plane["codecs"].values()) == large["chunks"] for plane in large["planes"])
        assert large["planes"][1]["codecs"] == {"label-rans": large["chunks"]}
        assert large["model"]["unit"] % 128 == 0
        assert large["model"]["phases"] in (False, True)
        empty = index.describe("empty")
        assert (empty["segment"], empty["chain"], empty["planes"], empty["chunks"]) == (None, None, [], 0)
