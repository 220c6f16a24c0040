"""One call that opens .ptwm files, .safetensors files and directories of either."""

import gc
import os
import shutil
import stat

import numpy as np
import pytest
import safetensors.numpy
from conftest import same_bits, weights

import ptwm
import ptwm.numpy
from ptwm import FormatError, PtwmError, TensorIndex, Writer, safe_open
from ptwm._safetensors import SafetensorsError
from ptwm.random_access.opening import open_tensors
from ptwm.sharding import PtwmIndex, read_sharded_ptwm


@pytest.fixture
def known():
    """Tensors that safetensors' numpy side can write."""
    return {
        "b": weights((30, 500), np.float32),
        "a": weights((7, 3), np.float16),
        "ids": np.arange(12, dtype=np.int64).reshape(3, 4),
        "scalar": np.array(2.5),
        "empty": np.zeros((2, 0), np.float32),
    }


@pytest.fixture
def plain(known, tmp_path):
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file(known, path, {"k": "v"})
    return path


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_safe_open_reads_safetensors(plain, known, backend):
    with safe_open(plain, "np", backend=backend) as file, safetensors.safe_open(plain, "np") as theirs:
        assert file.keys() == theirs.keys()
        assert file.offset_keys() == theirs.offset_keys()
        assert file.metadata() == theirs.metadata() == {"k": "v"}
        for name, array in known.items():
            assert same_bits(file.get_tensor(name), array)
            assert file.get_tensor(name).flags.writeable
            assert file.get_slice(name).get_dtype() == theirs.get_slice(name).get_dtype()
        assert same_bits(file.get_slice("b")[::-7, 3:4], array_of(known["b"][::-7, 3:4]))
        assert {name: value.tobytes() for name, value in file.get_tensors().items()} == {
            name: value.tobytes() for name, value in known.items()
        }
    with pytest.raises(ValueError, match="closed"):
        file.keys()


def array_of(view):
    return np.array(view, order="C")


def test_the_loads_read_safetensors(plain, known, torch):
    import ptwm.torch

    for loaded in (ptwm.numpy.load_file(plain), ptwm.numpy.load(plain.read_bytes())):
        assert set(loaded) == set(known) and all(same_bits(loaded[name], known[name]) for name in known)
    for loaded in (ptwm.torch.load_file(plain), ptwm.torch.load(plain.read_bytes())):
        assert all(same_bits(loaded[name].numpy(), known[name]) for name in known)


def test_names_do_not_decide(plain, saved, tmp_path, arrays):
    shutil.copy(plain, tmp_path / "plain.ptwm")
    shutil.copy(saved, tmp_path / "saved.safetensors")
    assert set(ptwm.numpy.load_file(tmp_path / "plain.ptwm")) == {"a", "b", "ids", "scalar", "empty"}
    assert set(ptwm.numpy.load_file(tmp_path / "saved.safetensors")) == set(arrays)


def test_a_tensor_index_opens_ptwm_only(plain):
    with pytest.raises(FormatError, match="not a .ptwm file"):
        TensorIndex(plain)


def test_broken_safetensors(plain, tmp_path):
    content = plain.read_bytes()
    for name, broken in {
        "short": content[:5],
        "cut": content[:-1],
        "long": content + b"\0",
        "header": content[:8] + b"[" + content[9:],
        "empty": b"",
    }.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(broken)
        with pytest.raises(SafetensorsError, match=f"{name}.safetensors"):
            safe_open(path, "np")
    with pytest.raises(PtwmError):
        ptwm.numpy.load(content[:-1])


def test_a_safetensors_file_that_becomes_shorter(plain):
    for backend in ("mmap", "pread"):
        content = plain.read_bytes()
        with safe_open(plain, "np", backend=backend) as file:
            os.truncate(plain, len(content) - 1000)
            with pytest.raises(OSError, match="too early") as caught:
                file.get_tensors()
            assert caught.value.filename == str(plain)
        plain.write_bytes(content)


def test_a_safetensors_slice_reads_what_it_needs(plain):
    array = weights((64, 100_000), np.float32)
    safetensors.numpy.save_file({"x": array}, plain)
    with open_tensors(plain) as index:
        opened = index.bytes_read
        assert same_bits(index.get_slice("x")[3:60:8, 5], array_of(array[3:60:8, 5]))
        assert index.bytes_read - opened == 8 * 4
        assert index.describe("x")["chain"] is None
        index.verify()


def test_encoded_tensors_cannot_be_copied_from_safetensors(plain, tmp_path):
    with open_tensors(plain) as index, Writer(tmp_path / "out") as writer:
        with pytest.raises(TypeError, match="no encoded tensors"):
            writer.copy_from(index)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.safetensors")
    os.mkfifo(tmp_path / "pipe.ptwm")
    for name in ("pipe.safetensors", "pipe.ptwm"):
        for backend in ("mmap", "pread"):
            with pytest.raises((OSError, PtwmError), match="pipe"):
                safe_open(tmp_path / name, "np", backend=backend)


def test_symbolic_links_and_unusual_names(saved, plain, arrays, tmp_path):
    for target in (saved, plain):
        for name in ("with space", "line\nbreak", os.fsdecode(b"caf\xe9 \xff")):
            link = tmp_path / (name + target.suffix)
            try:
                link.symlink_to(target)
            except OSError as error:
                pytest.skip(f"this file system does not take the name {name!r}: {error}")
            with safe_open(link, "np") as file, safe_open(target, "np") as original:
                assert file.keys() == original.keys()
            assert stat.S_ISLNK(os.lstat(link).st_mode)


def test_who_forgets_to_close_leaks_nothing(plain, saved):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc to count open files")
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for path in (plain, saved):
        for backend in ("mmap", "pread"):
            for _ in range(20):
                file = safe_open(path, "np", backend=backend)
                assert file.keys()
    del file
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


# ------------------------------------------------------------------------------------------------------- directories


@pytest.fixture
def directory(tmp_path, arrays):
    """A directory of two shards, and which tensor is in which."""
    path = tmp_path / "model"
    path.mkdir()
    names = list(arrays)
    shards = {"model-00001-of-00002.ptwm": names[::2], "model-00002-of-00002.ptwm": names[1::2]}
    for number, (file, members) in enumerate(shards.items()):
        metadata = {"same": "1", "number": str(number)}
        ptwm.numpy.save_file({name: arrays[name] for name in members}, path / file, metadata)
    PtwmIndex(1, 1, {name: file for file, members in shards.items() for name in members}).write(
        path / "model.ptwm.index.json"
    )
    return path


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_a_directory_is_one_index(directory, arrays, torch, backend):
    for opened in (TensorIndex.open(directory, backend=backend), TensorIndex(str(directory), backend=backend)):
        with opened as index:
            assert isinstance(index, TensorIndex)
            assert index.names() == [*list(arrays)[::2], *list(arrays)[1::2]]  # as written, file by file
            assert [file.name[6:11] for file in index.files] == ["00001", "00002"]
            assert len(index) == len(arrays)
            assert index.path == directory
            assert str(directory) in repr(index)
            assert "large" in index and "missing" not in index
            for name, array in arrays.items():
                assert index.entry(name).shape == array.shape
                assert same_bits(index.get_array(name), array)
            assert same_bits(index.get_slice("large")[5:9, ::3], array_of(arrays["large"][5:9, ::3]))
            streamed = dict(index.stream_tensors(["large", "scalar", "large.bf16"]))
            assert same_bits(streamed["large"].numpy(), arrays["large"])
            assert index.describe("large")["chunks"] > 0
            assert index.metadata() == {"same": "1", "number": "0"}
            assert index.bytes_read > 0
            index.verify()
            with pytest.raises(KeyError, match="missing"):
                index.get_bytes("missing")
            buffers = {name: bytearray(index.entry(name).nbytes) for name in ("large", "I64", "large.bf16")}
            index.get_many_into(buffers, check="full")
            assert all(buffers[name] == arrays[name].tobytes() for name in buffers)
        with pytest.raises(ValueError, match="closed"):
            index.names()


def test_everything_opens_directories(directory, arrays):
    with safe_open(directory, "np") as file:
        assert file.keys() == sorted(arrays)
        assert same_bits(file.get_tensor("large.bf16"), arrays["large.bf16"])
    loaded = ptwm.numpy.load_file(directory)
    assert all(same_bits(loaded[name], array) for name, array in arrays.items())
    with pytest.raises(PtwmError, match="max_nbytes"):
        ptwm.numpy.load_file(directory, max_nbytes=1000)
    assert read_sharded_ptwm(directory)["large"] == arrays["large"].tobytes()


def test_a_directory_of_safetensors(plain, known, tmp_path):
    directory = tmp_path / "hub"
    directory.mkdir()
    shutil.copy(plain, directory / "model.safetensors")
    with safe_open(directory, "np") as file:
        assert file.keys() == sorted(known)
    with pytest.raises(FileNotFoundError, match="model.ptwm"):
        TensorIndex(directory)
    os.rename(directory / "model.safetensors", directory / "model-00001-of-00001.safetensors")
    weight_map = ",".join(f'"{name}": "model-00001-of-00001.safetensors"' for name in known)
    (directory / "model.safetensors.index.json").write_text('{"metadata": {}, "weight_map": {%s}}' % weight_map)
    with safe_open(directory, "np") as file:
        assert same_bits(file.get_slice("b")[1:3], known["b"][1:3])
    (directory / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../m.safetensors"}}')
    with pytest.raises(FormatError, match="leaves the directory"):
        safe_open(directory, "np")


def test_a_lone_model_of_another_name(directory, arrays, tmp_path):
    # As diffusers and adapters have them.
    os.rename(directory / "model.ptwm.index.json", directory / "diffusion_pytorch_model.ptwm.index.json")
    with TensorIndex(directory) as index:
        assert sorted(index.names()) == sorted(arrays)
    with pytest.raises(FileNotFoundError):
        read_sharded_ptwm(directory)
    (directory / "diffusion_pytorch_model.ptwm.index.json").unlink()
    with pytest.raises(FileNotFoundError, match="model.ptwm"):
        TensorIndex(directory)  # two files: which?
    (directory / "model-00001-of-00002.ptwm").unlink()
    with safe_open(directory, "np") as file:
        assert file.keys() == sorted(list(arrays)[1::2])
    shutil.copy(directory / "model-00002-of-00002.ptwm", directory / "model.ptwm")
    shutil.copy(directory / "model-00002-of-00002.ptwm", directory / "a.ptwm.index.json")
    with TensorIndex(directory) as index:  # whatever else there is
        assert index.files == [directory / "model.ptwm"]


def test_ptwm_comes_first(directory, plain, arrays):
    shutil.copy(plain, directory / "model.safetensors")
    with safe_open(directory, "np") as file:
        assert file.keys() == sorted(arrays)


def test_tensors_are_copied_from_directories(directory, arrays, tmp_path):
    with TensorIndex(directory) as index, Writer(tmp_path / "merged.ptwm") as writer:
        writer.copy_from(index, list(arrays))
        with pytest.raises(KeyError, match="missing"):
            writer.copy_from(index, ["missing"])
    loaded = ptwm.numpy.load_file(tmp_path / "merged.ptwm")
    assert list(loaded) == list(arrays) and all(same_bits(loaded[name], arrays[name]) for name in arrays)


def test_what_a_directory_opened_is_released(directory, arrays):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc to count open files")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with TensorIndex(directory) as index:
            array = index.get_array("large")
    os.remove(directory / "model-00002-of-00002.ptwm")
    with pytest.raises(FileNotFoundError):
        TensorIndex(directory)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
    assert same_bits(array, arrays["large"])
