"""ptwm.safe_open: what safetensors.safe_open answers."""

import ml_dtypes
import numpy as np
import pytest
from conftest import same_bits, weights

import ptwm
import ptwm.numpy
from ptwm import PtwmError, safe_open


def test_numpy(saved, arrays):
    for framework in ("np", "numpy"):
        with safe_open(saved, framework=framework) as file:
            assert file.keys() == sorted(arrays)
            assert file.offset_keys() == list(arrays)
            assert file.metadata() == {"made by": "tests"}
            for name in file.keys():
                assert same_bits(file.get_tensor(name), arrays[name])
            part = file.get_slice("large")
            assert part.get_shape() == [700, 1024]
            assert part.get_dtype() == "F32"
            assert same_bits(part[3:5], arrays["large"][3:5])
            assert str(saved) in repr(file)


def test_no_metadata(tmp_path):
    ptwm.numpy.save_file({"x": np.zeros(1)}, tmp_path / "m")
    with safe_open(tmp_path / "m", "np") as file:
        assert file.metadata() is None


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_torch(saved, arrays, torch, backend):
    for framework in ("pt", "torch", "pytorch"):
        with safe_open(saved, framework, device="cpu", backend=backend) as file:
            tensor = file.get_tensor("large.bf16")
            assert tensor.dtype == torch.bfloat16
            assert tensor.view(torch.uint8).numpy().tobytes() == arrays["large.bf16"].tobytes()
            assert file.get_slice("large.bf16").get_dtype() == "BF16"
    with safe_open(saved, "pt", "meta") as file:
        assert file.get_tensor("large").device.type == "meta"
        assert file.get_slice("large")[3].device.type == "meta"


KEYS = [
    np.s_[...], np.s_[0], np.s_[-1], np.s_[3:9], np.s_[9:3], np.s_[::2], np.s_[::-1], np.s_[10:2:-3, 1], np.s_[5, 2, 1],
    np.s_[..., 0], np.s_[None, 4, None, 1:2], np.s_[:0, :], np.s_[()], np.s_[:, 3],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
@pytest.mark.parametrize("name", ["float32", "bfloat16", "uint8", "bool", "complex128", "float8_e4m3fn"])
def test_torch_slices(tmp_path, torch, key, name):
    scalar_type = getattr(np, name, None) or getattr(ml_dtypes, name)
    array = weights((13, 5, 4), scalar_type)
    ptwm.numpy.save_file({"x": array}, tmp_path / "m")
    with safe_open(tmp_path / "m", "pt") as file:
        part = file.get_slice("x")[key]
    expected = np.array(array[key], order="C")
    assert part.dtype == getattr(torch, name)
    assert tuple(part.shape) == expected.shape
    content = part.reshape(-1).view(torch.uint8).numpy().tobytes() if part.numel() else b""
    assert content == expected.tobytes()
    assert part.untyped_storage().nbytes() == expected.nbytes
    part.zero_()


def test_torch_slices_of_pairs(tmp_path, torch):
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no float4_e2m1fn_x2")
    array = weights((7, 3, 8), ml_dtypes.float4_e2m1fn)
    ptwm.numpy.save_file({"x": array}, tmp_path / "m")
    with safe_open(tmp_path / "m", "pt") as file:
        whole = file.get_tensor("x").view(torch.uint8)
        assert whole.shape == (7, 3, 4)
        part = file.get_slice("x")
        assert part.get_shape() == [7, 3, 8]
        for key in (2, (3, slice(1, 3)), (slice(None), 1, -1), (slice(5, 1, -2), slice(None), slice(1, 3))):
            assert part[key].view(torch.uint8).numpy().tolist() == whole.numpy()[key].tolist()


def test_torch_needs_no_ml_dtypes(tmp_path):
    import subprocess
    import sys

    pytest.importorskip("torch", reason="torch cannot be imported")
    ptwm.numpy.save_file({"x": weights((8, 8), ml_dtypes.bfloat16)}, tmp_path / "m")
    program = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "import ptwm, ptwm.torch\n"
        "with ptwm.safe_open(sys.argv[1], 'pt') as file: assert file.get_slice('x')[2:4].shape == (2, 8)\n"
        "ptwm.torch.save(ptwm.torch.load_file(sys.argv[1]))\n"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "m"], check=True)


def test_errors(saved, tmp_path):
    with pytest.raises(FileNotFoundError):
        safe_open(tmp_path / "missing", "np")
    for framework in ("flax", "tf", "", None):
        with pytest.raises(ValueError, match="framework"):
            safe_open(saved, framework)
    with pytest.raises(ValueError, match="CPU"):
        safe_open(saved, "np", device="cuda:0")
    with safe_open(saved, "np") as file:
        with pytest.raises(KeyError, match="missing"):
            file.get_tensor("missing")
        with pytest.raises(KeyError, match="missing"):
            file.get_slice("missing")
    with pytest.raises(ValueError, match="closed"):
        file.keys()
    (tmp_path / "bad").write_bytes(b"bad")
    with pytest.raises(PtwmError):
        safe_open(tmp_path / "bad", "np")


def test_answers_are_those_of_safetensors(arrays, tmp_path):
    theirs = pytest.importorskip("safetensors", reason="safetensors cannot be imported")
    import safetensors.numpy

    known = {name: arrays[name] for name in ("F32", "I8", "large", "scalar", "empty")}
    safetensors.numpy.save_file(known, tmp_path / "m.safetensors", metadata={"k": "v"})
    ptwm.numpy.save_file(known, tmp_path / "m.ptwm", metadata={"k": "v"})
    with theirs.safe_open(tmp_path / "m.safetensors", "np") as left, safe_open(tmp_path / "m.ptwm", "np") as right:
        assert left.keys() == right.keys()
        assert left.metadata() == right.metadata()
        for name in known:
            assert same_bits(left.get_tensor(name), right.get_tensor(name))
            assert left.get_slice(name).get_shape() == right.get_slice(name).get_shape()
            assert left.get_slice(name).get_dtype() == right.get_slice(name).get_dtype()
        for key in (np.s_[3:90], np.s_[:, 5:7], np.s_[3, 4:], np.s_[-3], np.s_[::7], np.s_[..., 2]):
            assert same_bits(left.get_slice("large")[key], right.get_slice("large")[key])
