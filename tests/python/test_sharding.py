"""Writing: Writer, blobs, shards, plans and indexes."""

import errno
import json
import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from conftest import PACKED, weights
from hypothesis import given
from hypothesis import strategies as st

import ptwm
from ptwm import FormatError, Method, PtwmError, TensorIndex, Writer
from ptwm.sharding import (
    PtwmIndex,
    compress_ptwm_blob,
    plan_shards,
    read_sharded_ptwm,
    shard_filename,
    write_ptwm_shard,
)


def read_all(blob):
    with TensorIndex.from_buffer(blob) as index:
        return {name: index.get_bytes(name) for name in index}


def as_tensors(arrays):
    """Arrays of whole-byte dtypes as compress_ptwm_blob takes tensors."""
    return [(name, array, array.dtype, array.shape) for name, array in arrays.items() if name not in PACKED]


# ------------------------------------------------------------------------------------------------------ blobs, shards


@pytest.mark.parametrize("method", list(Method))
def test_round_trip(arrays, method):
    tensors = as_tensors(arrays)
    blob = compress_ptwm_blob(tensors, method_hint=method)
    assert type(blob) is bytes
    assert read_all(blob) == {name: array.tobytes() for name, array, *_ in tensors}
    with TensorIndex.from_buffer(blob) as index:
        index.verify()
        assert index.names() == [name for name, *_ in tensors]


def test_methods_force_codecs():
    assert {method.name: method.value for method in Method} == {
        "HUFFMAN": 1,
        "ZSTD": 2,
        "MICROSCALE": 3,
        "RANS": 4,
        "IDENTITY": 5,
    }
    data = weights((256, 1024), ml_dtypes.bfloat16)
    codecs = {}
    for method in Method:
        blob = compress_ptwm_blob([("x", data, data.dtype, data.shape)], method_hint=method.value)
        with TensorIndex.from_buffer(blob) as index:
            codecs[method] = {codec for plane in index.describe("x")["planes"] for codec in plane["codecs"]}
    assert "huffman" in codecs[Method.HUFFMAN] <= {"huffman", "identity"}
    assert "zstd" in codecs[Method.ZSTD] <= {"zstd", "identity"}
    assert "label-rans" in codecs[Method.RANS] <= {"label-rans", "rans", "identity", "carried"}
    assert codecs[Method.IDENTITY] == {"identity"}


@pytest.mark.parametrize("hint", [0, 6, -1, 1 << 40])
def test_method_that_does_not_exist(hint):
    with pytest.raises(ValueError):
        compress_ptwm_blob([], method_hint=hint)


@pytest.mark.parametrize("hint", ["3", 3.0, None])
def test_method_of_the_wrong_type(hint):
    with pytest.raises(TypeError):
        compress_ptwm_blob([], method_hint=hint)


def test_shard_is_the_blob(arrays, tmp_path):
    tensors = as_tensors(arrays)
    write_ptwm_shard(tmp_path / "m.ptwm", tensors, metadata={"k": "v"})
    assert (tmp_path / "m.ptwm").read_bytes() == compress_ptwm_blob(tensors, metadata={"k": "v"})
    assert os.listdir(tmp_path) == ["m.ptwm"]


def test_generator_of_tensors(tmp_path):
    write_ptwm_shard(tmp_path / "m", ((str(n), bytes([n]) * 100, "U8", (100,)) for n in range(5)))
    assert TensorIndex(tmp_path / "m").names() == list("01234")


def test_no_tensors():
    assert read_all(compress_ptwm_blob([])) == {}


def test_hash_and_crc_are_optional():
    data = np.random.default_rng(0).bytes(300_000)
    both, no_hash, no_crc = (
        compress_ptwm_blob([("x", data, None, None)], emit_payload_hash=hashed, emit_plane_crc=checked)
        for hashed, checked in ((True, True), (False, True), (True, False))
    )
    assert len(no_hash) < len(both) > len(no_crc)
    with TensorIndex.from_buffer(no_hash) as index:
        assert index.describe("x")["hash"] is None
        assert index.get_bytes("x", check="full") == data
        index.verify()
    with TensorIndex.from_buffer(no_crc) as index:
        assert index.get_bytes("x") == data


def test_payload_hash_is_xxh3():
    xxhash = pytest.importorskip("xxhash", reason="xxhash cannot be imported")
    for data in (b"a", b"hello world" * 50, np.random.default_rng(0).bytes(100_000)):
        with TensorIndex.from_buffer(compress_ptwm_blob([("x", data, None, None)])) as index:
            assert index.describe("x")["hash"] == xxhash.xxh3_64_intdigest(data)


@pytest.mark.parametrize("chunk", [4096, 65536, 64 << 20])
def test_streaming_chunk(chunk):
    data = weights((300, 700))
    blob = compress_ptwm_blob([("x", data, "F32", data.shape)], streaming_chunk=chunk)
    assert read_all(blob) == {"x": data.tobytes()}
    with TensorIndex.from_buffer(blob) as index:
        assert index.describe("x")["chunk_nbytes"] <= max(chunk, 8192)
        assert (index.describe("x")["chunks"] > 1) == (chunk < data.nbytes)


@pytest.mark.parametrize("chunk", [0, -1, 4095, (64 << 20) + 1, 1 << 70])
def test_streaming_chunk_out_of_range(chunk, tmp_path):
    with pytest.raises(ValueError, match="streaming_chunk"):
        compress_ptwm_blob([], streaming_chunk=chunk)
    with pytest.raises(ValueError, match="streaming_chunk"):
        write_ptwm_shard(tmp_path / "m", [], streaming_chunk=chunk)
    assert os.listdir(tmp_path) == []


def test_threads_and_level_arguments():
    for bad in (-1, 1 << 33):
        with pytest.raises(ValueError):
            compress_ptwm_blob([], threads=bad)
    with pytest.raises(ValueError):
        compress_ptwm_blob([], level=1 << 40)
    with pytest.raises(TypeError):
        compress_ptwm_blob([], threads="many")


def test_chains_per_tensor_length():
    with pytest.raises(ValueError, match="chains"):
        compress_ptwm_blob([("x", b"12", None, None)], [])
    with pytest.raises(ValueError, match="chains"):
        compress_ptwm_blob([("x", b"12", None, None)], [[]])
    with pytest.raises(ValueError):
        compress_ptwm_blob([("x", b"12", None, None)], [[b"\xff"]])
    assert read_all(compress_ptwm_blob([("x", b"12", None, None)], [None])) == {"x": b"12"}


# -------------------------------------------------------------------------------------------------------- determinism


def test_same_bytes_whatever_the_threads(arrays):
    tensors = as_tensors(arrays)
    blobs = {compress_ptwm_blob(tensors, threads=threads) for threads in (None, 1, 2, 3, 8)}
    assert len(blobs) == 1


def test_same_bytes_in_another_process(tmp_path):
    program = (
        "import sys, numpy as np, ptwm.numpy\n"
        "values = np.random.default_rng(5).standard_normal((300, 512)).astype(np.float32)\n"
        "ptwm.numpy.save_file({'x': values, 'y': values.astype(np.float16)}, sys.argv[1], {'b': '1', 'a': '2'})\n"
    )
    for number in range(2):
        environment = {**os.environ, "PYTHONHASHSEED": str(number)}
        subprocess.run([sys.executable, "-c", program, tmp_path / str(number)], check=True, env=environment)
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()


def test_metadata_order_does_not_matter():
    def blob(metadata):
        return compress_ptwm_blob([("x", b"1", None, None)], metadata=metadata)

    assert blob({"b": "1", "a": {"y": 1, "x": 2}}) == blob({"a": {"x": 2, "y": 1}, "b": "1"})
    assert blob({}) == blob(None)


# -------------------------------------------------------------------------------------------------- what tensors hold


def test_equal_tensors_are_stored_once(tmp_path):
    data = weights((512, 512))
    once = len(compress_ptwm_blob([("a", data, "F32", data.shape)]))
    write_ptwm_shard(tmp_path / "m", [(name, data, "F32", data.shape) for name in "abcd"])
    assert (tmp_path / "m").stat().st_size < once + 500
    with TensorIndex(tmp_path / "m") as index:
        assert all(index.get_bytes(name) == data.tobytes() for name in "abcd")
        index.verify()


def test_buffers_of_all_kinds():
    data = bytes(range(256)) * 16
    array = np.frombuffer(data, np.float32).reshape(4, 256)
    kinds = [
        data,
        bytearray(data),
        memoryview(data),
        memoryview(data).cast("f"),
        memoryview(data).cast("B", (64, 64)),
        array,
        array.view(np.uint8),
        np.frombuffer(data, ml_dtypes.bfloat16),
        np.frombuffer(data, ml_dtypes.float8_e5m2),
        np.frombuffer(data, np.dtype([("a", "<u2"), ("b", "<u2")])),
    ]
    for kind in kinds:
        assert read_all(compress_ptwm_blob([("x", kind, "F32", (1024,))])) == {"x": data}
    assert read_all(compress_ptwm_blob([("x", np.float32(1.5), "F32", ())])) == {"x": np.float32(1.5).tobytes()}
    for empty in (b"", np.zeros((0, 3), np.float32), memoryview(b"")):
        assert read_all(compress_ptwm_blob([("x", empty, "F32", (0, 3))])) == {"x": b""}


def test_torch_buffers(torch):
    tensor = torch.arange(1024, dtype=torch.float32)
    data = tensor.numpy().tobytes()
    for kind in (
        tensor,
        tensor.reshape(2, 512),
        tensor.untyped_storage(),
        tensor.view(torch.bfloat16),
        tensor.clone().requires_grad_(),
    ):
        assert read_all(compress_ptwm_blob([("x", kind, torch.float32, tensor.shape)])) == {"x": data}
    for bad in (tensor.reshape(2, 512).T, tensor[::2], torch.ones(1024, dtype=torch.complex64).conj()):
        with pytest.raises(ValueError):
            compress_ptwm_blob([("x", bad, None, None)])
    with pytest.raises(ValueError, match="device"):
        compress_ptwm_blob([("x", tensor.to("meta"), None, None)])


def test_non_contiguous_buffers(tmp_path):
    array = np.zeros((8, 8), np.float32)
    for bad in (array.T[:4], array[:, 1:], array[::2], memoryview(array)[::2], np.asfortranarray(weights((3, 4)))):
        with pytest.raises(ValueError, match="contiguous"):
            write_ptwm_shard(tmp_path / "m", [("x", bad, None, None)])
    assert os.listdir(tmp_path) == []


def test_what_is_no_buffer():
    for bad in (5, "text", None, [1, 2], np.array([None]), object()):
        with pytest.raises(TypeError):
            compress_ptwm_blob([("x", bad, None, None)])


def test_big_endian():
    values = np.arange(10, dtype=np.float32)
    swapped = values.astype(">f4")
    # An array knows its byte order: stored under its own dtype, it is stored by value.
    for dtype in (swapped.dtype, "F32", np.float32):
        assert read_all(compress_ptwm_blob([("x", swapped, dtype, (10,))])) == {"x": values.tobytes()}
    # As bytes without a dtype, or of another one, it is just those bytes.
    assert read_all(compress_ptwm_blob([("x", swapped, None, None)])) == {"x": swapped.tobytes()}
    assert read_all(compress_ptwm_blob([("x", swapped, "U8", (40,))])) == {"x": swapped.tobytes()}
    # Bytes do not know theirs.
    for data in (swapped.tobytes(), values.tobytes(), values.view(np.uint8)):
        with pytest.raises(ValueError, match="'x'.*big-endian"):
            compress_ptwm_blob([("x", data, swapped.dtype, (10,))])


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"),
    [
        ("F32", (3,), 11),
        ("F32", (3,), 13),
        ("F32", (0,), 4),
        ("F32", (), 0),
        ("F32", (2**62, 8), 0),
        ("F32", (2**32, 2**32, 2**32), 4),
        ("F4", (3,), 1),
        ("F4", (3,), 2),
        ("F6_E2M3", (3,), 3),
        ("C32", (2,), 4),
    ],
)
def test_length_that_is_not_shape_times_dtype(dtype, shape, nbytes, tmp_path):
    with pytest.raises(ValueError, match="'x'"):
        write_ptwm_shard(tmp_path / "m", [("ok", b"", "F32", (0,)), ("x", bytes(nbytes), dtype, shape)])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"),
    [
        ("F4", (4,), 2),
        ("F6_E2M3", (4,), 3),
        ("F4", (1, 3, 2), 3),
        ("F32", (), 4),
        ("F32", (0, 2**63 - 1, 2**63 - 1), 0),
        ("BOOL", (1,) * 60, 1),
        ("C32", (2,), 8),
        ("C128", (1,), 16),
    ],
)
def test_length_that_is(dtype, shape, nbytes):
    with TensorIndex.from_buffer(compress_ptwm_blob([("x", bytes(nbytes), dtype, shape)])) as index:
        entry = index.entry("x")
        assert (entry.dtype, entry.shape, entry.nbytes) == (dtype, shape, nbytes)
        assert index.get_bytes("x") == bytes(nbytes)


def test_pairs_of_torch(torch):
    for spelling in (torch.float4_e2m1fn_x2, "float4_e2m1fn_x2"):
        with TensorIndex.from_buffer(compress_ptwm_blob([("x", b"123456", spelling, (2, 3))])) as index:
            assert index.entry("x").shape == (2, 6)
            assert index.get_bytes("x") == b"123456"
            assert index.get_tensor("x").shape == (2, 3)
    with pytest.raises(ValueError, match="last dimension"):
        compress_ptwm_blob([("x", b"1", torch.float4_e2m1fn_x2, ())])


def test_bad_tensors(tmp_path):
    good = ("good", b"1234", "F32", (1,))
    bad = [
        ("good", b"5678", "F32", (1,)),
        ("x", b"1234", "F33", (1,)),
        ("x", b"1234", "F32", (-1,)),
        ("x", b"1234", None, (-1,)),
        ("x", b"1234", "F32", None),
        ("x", b"1234", "F32", (2**63,)),
        ("\ud800", b"1234", "F32", (1,)),
        ("x", b"1234"),
    ]
    for tensor in bad:
        with pytest.raises(ValueError):
            write_ptwm_shard(tmp_path / "m", [good, tensor])
        assert os.listdir(tmp_path) == []
    for tensor in [
        (5, b"1234", None, None),
        (b"x", b"1234", None, None),
        ("x", b"1234", 7, (1,)),
        ("x", b"1234", "F32", 1),
        ("x", b"1234", "F32", (1.0,)),
        ("x", b"1234", "F32", "1"),
    ]:
        with pytest.raises(TypeError):
            write_ptwm_shard(tmp_path / "m", [good, tensor])
        assert os.listdir(tmp_path) == []


def test_duplicate_name_is_named():
    with pytest.raises(ValueError, match="'twice'") as caught:
        compress_ptwm_blob([("twice", b"1", None, None), ("twice", b"2", None, None)])
    assert "duplicate" in str(caught.value)


def test_dtype_none_stores_no_metadata():
    with TensorIndex.from_buffer(compress_ptwm_blob([("x", b"1234", None, (4,))])) as index:
        assert index.entry("x").dtype is index.entry("x").shape is None


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.binary(max_size=2000)),
        unique_by=lambda tensor: tensor[0],
        max_size=8,
    )
)
def test_any_names_and_bytes(tensors):
    blob = compress_ptwm_blob([(name, data, None, None) for name, data in tensors])
    assert read_all(blob) == dict(tensors)


@given(st.sampled_from([method.value for method in Method]), st.integers(0, 5000), st.integers(0, 2**32), st.data())
def test_any_floats(method, count, seed, data):
    dtype = data.draw(st.sampled_from(["BF16", "F16", "F8_E4M3", "F8_E5M2", "F32", "F64", "F4"]))
    bits = {"BF16": 16, "F16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F32": 32, "F64": 64, "F4": 4}[dtype]
    rng = np.random.default_rng(seed)
    count += count % 2 if bits == 4 else 0
    raw = rng.bytes(count * bits // 8) if seed % 3 else bytes(count * bits // 8)
    with TensorIndex.from_buffer(compress_ptwm_blob([("x", raw, dtype, (count,))], method_hint=method)) as index:
        assert index.get_bytes("x", check="full") == raw
        index.verify()


# ------------------------------------------------------------------------------------------------------------- Writer


def test_writer(tmp_path):
    path = tmp_path / "m.ptwm"
    with Writer(path, metadata={"k": 1}) as writer:
        writer.add("a", b"1234", "F32", (1,))
        writer.add("b", alias_of="a")
        writer.add("c", None, alias_of="b")
        assert not path.exists()
        assert writer.path == path
    with TensorIndex(path) as index:
        assert index.names() == ["a", "b", "c"]
        assert [index.get_bytes(name) for name in index] == [b"1234"] * 3
        assert index.entry("c").dtype == "F32"
        assert index.metadata() == {"k": 1}
    assert os.listdir(tmp_path) == ["m.ptwm"]
    with pytest.raises(ValueError, match="finished"):
        writer.add("d", b"")
    with pytest.raises(ValueError, match="finished"):
        writer.finish()
    writer.close()


def test_writer_without_with(tmp_path):
    writer = Writer(tmp_path / "m")
    writer.add("a", b"1")
    writer.finish()
    assert TensorIndex(tmp_path / "m").names() == ["a"]


def test_writer_finished_inside_with(tmp_path):
    with Writer(tmp_path / "m") as writer:
        writer.add("a", b"1")
        writer.finish()
    assert TensorIndex(tmp_path / "m").names() == ["a"]


def test_writer_abandons(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="mine"), Writer(path) as writer:
        writer.add("a", weights((500, 500)), "F32", (500, 500))
        raise RuntimeError("mine")
    writer = Writer(path)
    writer.add("a", b"1")
    writer.close()
    writer = Writer(path)
    writer.add("a", b"1")
    del writer
    with Writer(path) as writer:
        writer.close()
    assert os.listdir(tmp_path) == ["m"]
    assert path.read_bytes() == b"old"


def test_writer_goes_on_after_refusing(tmp_path):
    with Writer(tmp_path / "m") as writer:
        writer.add("a", b"1234", "F32", (1,))
        for bad in (("a", b"1"), ("x", b"123", "F32", (1,)), ("x", b"1", "what", ()), ("x", b"1", "U8", (-1,))):
            with pytest.raises(ValueError):
                writer.add(*bad)
        with pytest.raises(ValueError):
            writer.add("x", b"123", chains=[ptwm.Chain.delta(2)])
        with pytest.raises(KeyError, match="nowhere"):
            writer.add("x", alias_of="nowhere")
        with pytest.raises(ValueError, match="alias"):
            writer.add("x", b"1234", alias_of="a")
        with pytest.raises(ValueError):
            writer.add("a", alias_of="a")
        with pytest.raises(TypeError):
            writer.add("x")
        writer.add("x", b"end")
    with TensorIndex(tmp_path / "m") as index:
        assert [index.get_bytes(name) for name in index] == [b"1234", b"end"]
        index.verify()


def test_writer_paths(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        Writer(tmp_path / "missing" / "m")
    assert caught.value.filename == str(tmp_path / "missing" / "m")
    with pytest.raises(OSError):
        with Writer(tmp_path) as writer:
            writer.add("a", b"1")
    for bad in (5, None, b"m"):
        with pytest.raises(TypeError):
            Writer(bad)
    with pytest.raises(ValueError, match="NUL"):
        Writer("a\0b")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_an_os_error(tmp_path):
    # A limit on the size of files stands for a full disk.
    program = (
        "import resource, signal, sys, numpy as np, ptwm\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    with ptwm.Writer(sys.argv[1]) as writer:\n"
        "        for n in range(20):\n"
        "            writer.add(str(n), np.random.default_rng(n).bytes(1 << 20))\n"
        "except OSError as error:\n"
        "    print(error.errno, error.filename)\n"
    )
    path = tmp_path / "m"
    path.write_bytes(b"old")
    result = subprocess.run([sys.executable, "-c", program, path], check=True, capture_output=True, text=True)
    assert result.stdout == f"{errno.EFBIG} {path}\n"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m"]


def test_file_mode_follows_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_ptwm_shard(tmp_path / "m", [])
        PtwmIndex(0, 0).write(tmp_path / "i")
    finally:
        os.umask(old)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "i").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({1: "a"}, TypeError),
        ({"a": {1: 2}}, TypeError),
        ({"a": object()}, TypeError),
        ({"a": {1, 2}}, TypeError),
        ({"a": 2**64}, ValueError),
        ({"a": "\ud800"}, ValueError),
        ("text", TypeError),
        ([("a", "b")], TypeError),
    ],
)
def test_metadata_that_cannot_be_stored(metadata, error, tmp_path):
    with pytest.raises(error):
        Writer(tmp_path / "m", metadata=metadata)
    assert os.listdir(tmp_path) == []


def test_metadata_nested_too_deep(tmp_path):
    nested = {}
    for _ in range(100):
        nested = {"a": nested}
    with pytest.raises(ValueError, match="deep"):
        Writer(tmp_path / "m", metadata=nested)
    cyclic = {}
    cyclic["a"] = cyclic
    with pytest.raises(ValueError, match="deep"):
        Writer(tmp_path / "m", metadata=cyclic)


def test_writer_from_many_threads(tmp_path):
    tensors = {f"t{n}": weights((64, 64), seed=n) for n in range(24)}
    with Writer(tmp_path / "m") as writer:
        threads = [
            threading.Thread(
                target=lambda part: [writer.add(n, tensors[n], "F32", (64, 64)) for n in part],
                args=(list(tensors)[start::4],),
            )
            for start in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with TensorIndex(tmp_path / "m") as index:
        assert sorted(index) == sorted(tensors)
        assert all(index.get_bytes(name) == tensors[name].tobytes() for name in tensors)


def test_writer_to_function():
    pieces = []
    with Writer.to_function(pieces.append, metadata={"k": 1}) as writer:
        writer.add("a", weights((300, 300)), "F32", (300, 300))
        writer.add("b", alias_of="a")
    assert all(type(piece) is bytes for piece in pieces)
    assert read_all(b"".join(pieces)) == {name: weights((300, 300)).tobytes() for name in "ab"}


def test_writer_to_function_that_fails():
    def write(data):
        raise BrokenPipeError("gone")

    with pytest.raises(BrokenPipeError, match="gone"), Writer.to_function(write) as writer:
        writer.add("a", np.random.default_rng(0).bytes(3 << 20))


def test_zstd_that_fails(monkeypatch, capfd):
    data = b"abcdefgh" * 5000
    blob = compress_ptwm_blob([("x", data, None, None)], method_hint=Method.ZSTD)
    with TensorIndex.from_buffer(blob) as index:
        assert index.describe("x")["planes"][0]["codecs"] == {"zstd": 1}

    def fail(*args):
        raise RuntimeError("no zstd today")

    monkeypatch.setattr("ptwm._library._compressor", fail)
    monkeypatch.setattr("ptwm._library._decompressor", fail)
    with pytest.raises(PtwmError, match="zstd"):
        compress_ptwm_blob([("x", data, None, None)], method_hint=Method.ZSTD)
    with TensorIndex.from_buffer(blob) as index, pytest.raises(PtwmError, match="zstd"):
        index.get_bytes("x")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_interrupts_zstd_is_raised(monkeypatch, capfd, error):
    tensors = [("x", b"abc" * 30_000, "U8", [90_000])]
    blob = compress_ptwm_blob(tensors, method_hint=Method.ZSTD)

    def interrupted(*args):
        raise error

    for name in ("_compressor", "_decompressor"):
        monkeypatch.setattr(f"ptwm._library.{name}", interrupted)
    with pytest.raises(error):
        compress_ptwm_blob(tensors, method_hint=Method.ZSTD)
    with TensorIndex.from_buffer(blob) as index:
        with pytest.raises(error):
            index.get_bytes("x")
        monkeypatch.undo()
        assert index.get_bytes("x") == tensors[0][1]
    assert capfd.readouterr().err == ""


def test_zstd_from_many_threads():
    data = (b"the same again and again " * 9000)[: 6 << 15]
    blob = compress_ptwm_blob(
        [("x", data, None, None)], method_hint=Method.ZSTD, streaming_chunk=4096, threads=8, level=19
    )
    with TensorIndex.from_buffer(blob, threads=8) as index:
        assert index.get_bytes("x") == data
        index.verify(threads=8)


# ---------------------------------------------------------------------------------------------------------- copy_from


def test_copying(saved, arrays, tmp_path):
    with TensorIndex(saved) as index:
        original = {name: index.get_bytes(name) for name in index}
        with Writer(tmp_path / "all") as writer:
            writer.copy_from(index)
        with Writer(tmp_path / "some") as writer:
            writer.copy_from(index, ["large", "", "F4"])
            writer.copy_from(index, {"large.bf16": "renamed", "scalar": "s"})
            writer.add("new", b"1234", "F32", (1,))
        entries = {name: index.entry(name) for name in index}
    with TensorIndex(tmp_path / "all") as copy:
        assert {name: copy.get_bytes(name) for name in copy} == original
        assert list(copy) == list(original)
        copy.verify()
        assert all(copy.entry(name).shape == entries[name].shape for name in copy)
        assert all(copy.entry(name).dtype == entries[name].dtype for name in copy)
    with TensorIndex(tmp_path / "some") as copy:
        assert copy.names() == ["large", "", "F4", "renamed", "s", "new"]
        assert copy.get_bytes("renamed") == original["large.bf16"]
        assert copy.get_bytes("F4") == original["F4"]
        copy.verify()


def test_copying_keeps_sharing(tmp_path):
    data = weights((512, 512))
    write_ptwm_shard(tmp_path / "m", [(name, data, "F32", data.shape) for name in "abcd"])
    with TensorIndex(tmp_path / "m") as index, Writer(tmp_path / "copy") as writer:
        writer.copy_from(index)
    assert abs((tmp_path / "copy").stat().st_size - (tmp_path / "m").stat().st_size) < 100


def test_copying_what_cannot_be(saved, tmp_path):
    with TensorIndex(saved) as index, Writer(tmp_path / "m") as writer:
        with pytest.raises(KeyError, match="missing"):
            writer.copy_from(index, ["missing"])
        writer.copy_from(index, ["large"])
        with pytest.raises(ValueError, match="'large'"):
            writer.copy_from(index, ["large"])
        with pytest.raises(ValueError, match="'large'"):
            writer.copy_from(index, {"scalar": "large"})
        with pytest.raises(TypeError):
            writer.copy_from(index, "large")
    index.close()
    with Writer(tmp_path / "n") as writer, pytest.raises(ValueError, match="closed"):
        writer.copy_from(index, ["large"])
    assert TensorIndex(tmp_path / "m").names() == ["large"]


# -------------------------------------------------------------------------------------------------------- plan_shards


def test_plan_shards():
    assert plan_shards([], 10) == []
    assert plan_shards([("a", 4), ("b", 6), ("c", 1)], 10) == [[("a", 4), ("b", 6)], [("c", 1)]]
    assert plan_shards([("big", 11), ("a", 1)], 10) == [[("big", 11)], [("a", 1)]]
    assert plan_shards([("a", 1), ("big", 11), ("b", 1)], 10) == [[("a", 1)], [("big", 11)], [("b", 1)]]
    assert plan_shards([("z", 0), ("big", 11), ("y", 0)], 10) == [[("z", 0)], [("big", 11)], [("y", 0)]]
    assert plan_shards(iter([("a", 10), ("b", 0)]), 10) == [[("a", 10), ("b", 0)]]
    for limit in (0, -1):
        with pytest.raises(ValueError):
            plan_shards([("a", 1)], limit)
        with pytest.raises(ValueError):
            plan_shards([], limit)


@given(st.lists(st.integers(0, 30)), st.integers(1, 20))
def test_plans_are_plans(sizes, limit):
    tensors = [(str(n), size) for n, size in enumerate(sizes)]
    shards = plan_shards(tensors, limit)
    assert [tensor for shard in shards for tensor in shard] == tensors
    assert all(shard for shard in shards)
    assert all(sum(size for _, size in shard) <= limit or len(shard) == 1 for shard in shards)
    # Greedy: no shard's first tensor would have fitted into the one before.
    for left, right in zip(shards, shards[1:]):
        assert sum(size for _, size in left) + right[0][1] > limit


def test_shard_filename():
    assert shard_filename(1, 3, ".ptwm") == "model-00001-of-00003.ptwm"
    assert shard_filename(1, 3, "ptwm") == "model-00001-of-00003.ptwm"
    assert shard_filename(123456, 234567, ".safetensors") == "model-123456-of-234567.safetensors"
    for index, total in ((0, 3), (4, 3), (-1, 3), (1, 0)):
        with pytest.raises(ValueError):
            shard_filename(index, total, ".ptwm")


# ---------------------------------------------------------------------------------------------------------- PtwmIndex


def test_index_round_trip(tmp_path):
    path = tmp_path / "model.ptwm.index.json"
    index = PtwmIndex(100, 60, {"b": "two.ptwm", "ü\0": "one.ptwm"})
    index.write(path)
    assert PtwmIndex.read(path) == PtwmIndex.read(str(path)) == index
    assert json.loads(path.read_text()) == {
        "metadata": {"total_size": 100, "compressed_total_size": 60, "format": "ptwm", "format_version": 1},
        "weight_map": {"b": "two.ptwm", "ü\0": "one.ptwm"},
    }
    assert os.listdir(tmp_path) == [path.name]
    PtwmIndex(100, 60, {"ü\0": "one.ptwm", "b": "two.ptwm"}).write(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert PtwmIndex(1, 2).weight_map == {}
    with pytest.raises(AttributeError):
        index.total_size = 5


def test_index_write_is_atomic(tmp_path, monkeypatch):
    path = tmp_path / "i"
    PtwmIndex(1, 1).write(path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        PtwmIndex(2, 2).write(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["i"]
    with pytest.raises(OSError):
        PtwmIndex(2, 2).write(tmp_path / "missing" / "i")


def index_json(**changes):
    content = {
        "metadata": {"total_size": 1, "compressed_total_size": 1, "format": "ptwm", "format_version": 1},
        "weight_map": {},
    }
    content["metadata"].update(changes)
    return json.dumps(content)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        "{}",
        '{"weight_map": {}}',
        index_json(format="safetensors"),
        index_json(format=None),
        index_json(format_version=2),
        index_json(format_version="1"),
        index_json(format_version=True),
        index_json(total_size=-1),
        index_json(total_size=1.5),
        index_json(compressed_total_size=None),
        index_json().replace("{}", "[]"),
        index_json().replace("{}", '{"a": 1}'),
        index_json().replace("{}", '{"a": "x", "a": "y"}'),
        "[" * 100_000,
        '{"metadata": ' + "9" * 10_000 + "}",
        b"\xff\xfe",
    ],
    ids=range(20),
)
def test_index_that_is_malformed(text, tmp_path):
    path = tmp_path / "i"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FormatError) as caught:
        PtwmIndex.read(path)
    assert str(path) in str(caught.value)


def test_index_that_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        PtwmIndex.read(tmp_path / "missing")


# -------------------------------------------------------------------------------------------------- read_sharded_ptwm


@pytest.fixture
def model_dir(tmp_path):
    write_ptwm_shard(tmp_path / "model-00001-of-00002.ptwm", [("a", b"1", None, None), ("b", b"22", None, None)])
    write_ptwm_shard(tmp_path / "model-00002-of-00002.ptwm", [("c", b"333", None, None)])
    return tmp_path


def write_index(directory, **weight_map):
    PtwmIndex(6, 6, weight_map).write(directory / "model.ptwm.index.json")


ONE, TWO = "model-00001-of-00002.ptwm", "model-00002-of-00002.ptwm"


def test_read_sharded(model_dir):
    write_index(model_dir, a=ONE, b=ONE, c=TWO)
    assert read_sharded_ptwm(model_dir) == read_sharded_ptwm(str(model_dir)) == {"a": b"1", "b": b"22", "c": b"333"}


def test_read_lone_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_sharded_ptwm(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_sharded_ptwm(tmp_path / "missing")
    write_ptwm_shard(tmp_path / "model.ptwm", [("x", b"1", None, None)])
    assert read_sharded_ptwm(tmp_path) == {"x": b"1"}


def test_index_comes_before_a_lone_file(model_dir):
    write_ptwm_shard(model_dir / "model.ptwm", [("x", b"1", None, None)])
    write_index(model_dir, c=TWO)
    assert read_sharded_ptwm(model_dir) == {"c": b"333"}


def test_missing_shard(model_dir):
    write_index(model_dir, a=ONE, z="model-00003-of-00002.ptwm")
    with pytest.raises(FileNotFoundError):
        read_sharded_ptwm(model_dir)


def test_tensor_that_its_shard_lacks(model_dir):
    write_index(model_dir, a=ONE, c=ONE)
    with pytest.raises(ValueError, match="'c'"):
        read_sharded_ptwm(model_dir)


def test_same_name_in_two_shards(model_dir):
    write_ptwm_shard(model_dir / TWO, [("c", b"333", None, None), ("a", b"1", None, None)])
    write_index(model_dir, a=ONE, c=TWO)
    with pytest.raises(ValueError, match="'a'"):
        read_sharded_ptwm(model_dir)


@pytest.mark.parametrize(
    "file_name",
    [
        "../x.ptwm",
        "sub/../../x.ptwm",
        "/etc/passwd",
        "C:\\x.ptwm",
        "C:x.ptwm",
        "\\x",
        "..\\x.ptwm",
        "\\\\host\\share\\x",
        "..",
        ".",
        "",
        "sub/..",
        "a\0b",
    ],
)
def test_file_name_that_leaves_the_directory(model_dir, file_name):
    write_ptwm_shard(model_dir / "x.ptwm", [("a", b"1", None, None)])
    inner = model_dir / "inner"
    inner.mkdir()
    write_index(inner, a=file_name)
    with pytest.raises(ValueError):
        read_sharded_ptwm(inner)


def test_shard_in_a_subdirectory(model_dir):
    (model_dir / "sub").mkdir()
    os.rename(model_dir / TWO, model_dir / "sub" / TWO)
    write_index(model_dir, c="sub/" + TWO)
    assert read_sharded_ptwm(model_dir) == {"c": b"333"}


def test_damaged_shard(model_dir):
    write_index(model_dir, a=ONE, b=ONE, c=TWO)
    data = (model_dir / TWO).read_bytes()
    (model_dir / TWO).write_bytes(data[:-1])
    with pytest.raises(PtwmError, match=TWO):
        read_sharded_ptwm(model_dir)
