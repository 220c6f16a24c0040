"""ptwm.torch: the shape of safetensors.torch, and torch tensors from a TensorIndex."""

import gc
import io
import os

import pytest

torch = pytest.importorskip("torch", reason="torch cannot be imported")

import ptwm  # noqa: E402
import ptwm.torch  # noqa: E402
from ptwm import FormatError, PtwmError, TensorIndex  # noqa: E402
from ptwm.sharding import compress_ptwm_blob  # noqa: E402

NAMES = [
    "bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float4_e2m1fn_x2", "complex32", "complex64", "complex128",
]  # fmt: skip
DTYPES = [getattr(torch, name) for name in NAMES if hasattr(torch, name)]


def random_tensor(dtype, shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    count = torch.Size(shape).numel() * dtype.itemsize
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), dtype=torch.uint8, generator=generator)
    return raw.view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)


def same(left, right):
    return left.dtype == right.dtype and left.shape == right.shape and content(left) == content(right)


def content(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


@pytest.fixture
def tensors():
    named = {str(dtype): random_tensor(dtype, (6, 8), seed) for seed, dtype in enumerate(DTYPES)}
    named["large"] = torch.randn(700, 1024) * 0.02
    named["scalar"] = torch.tensor(2.5)
    named["empty"] = torch.zeros(3, 0, 4)
    return named


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_files(tensors, tmp_path, backend):
    ptwm.torch.save_file(tensors, tmp_path / "m.ptwm", metadata={"format": "pt"})
    loaded = ptwm.torch.load_file(tmp_path / "m.ptwm", backend=backend)
    assert list(loaded) == list(tensors)
    assert all(same(loaded[name], tensors[name]) for name in tensors)
    with TensorIndex(tmp_path / "m.ptwm", backend=backend) as index:
        assert index.metadata() == {"format": "pt"}
        assert all(same(index.get_tensor(name), tensors[name]) for name in tensors)
        assert all(same(tensor, tensors[name]) for name, tensor in index.stream_tensors())


def test_bytes(tensors, tmp_path):
    data = ptwm.torch.save(tensors, {"format": "pt"})
    ptwm.torch.save_file(tensors, tmp_path / "m", {"format": "pt"})
    assert data == (tmp_path / "m").read_bytes()
    loaded = ptwm.torch.load(data)
    assert all(same(loaded[name], tensors[name]) for name in tensors)


def test_storages_are_the_tensors_own(tensors):
    loaded = ptwm.torch.load(ptwm.torch.save(tensors))
    for name, tensor in loaded.items():
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size(), name
        assert tensor.is_contiguous()
        assert tensor.data_ptr() % 64 == 0
    pointers = [tensor.data_ptr() for tensor in loaded.values() if tensor.numel()]
    assert len(set(pointers)) == len(pointers)
    file = io.BytesIO()
    torch.save(loaded["scalar"], file)
    assert len(file.getvalue()) < 4096


def test_memory_lives_as_long_as_its_tensors(tensors, tmp_path):
    ptwm.torch.save_file(tensors, tmp_path / "m")
    loaded = ptwm.torch.load_file(tmp_path / "m")
    row = loaded["large"][3]
    del loaded
    os.unlink(tmp_path / "m")
    gc.collect()
    row += 1
    assert torch.equal(row, tensors["large"][3] + 1)


def test_strides_and_views_are_stored_by_value():
    base = torch.randn(8, 12)
    complex_base = torch.randn(4, 4, dtype=torch.complex64)
    views = {
        "transposed": base.T,
        "strided": base[::2, 1::3],
        "expanded": base[0].expand(5, 12),
        "row": base[3],
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "conjugate": complex_base.conj(),
        "negative": complex_base.conj().imag,
        "parameter": torch.nn.Parameter(base),
    }
    loaded = ptwm.torch.load(ptwm.torch.save(views))
    for name, view in views.items():
        assert torch.equal(loaded[name], view.detach()), name
        assert not loaded[name].requires_grad


def test_tied_tensors_are_stored_once(tmp_path):
    weight = torch.randn(512, 512)
    ptwm.torch.save_file({"a": weight}, tmp_path / "one")
    ptwm.torch.save_file({"a": weight, "b": weight, "c": weight.clone(), "view": weight.view(-1)}, tmp_path / "many")
    assert (tmp_path / "many").stat().st_size < (tmp_path / "one").stat().st_size + 400
    loaded = ptwm.torch.load_file(tmp_path / "many")
    loaded["a"].zero_()
    assert torch.equal(loaded["b"], weight) and loaded["view"].shape == (512 * 512,)


def test_pairs():
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no float4_e2m1fn_x2")
    tensor = random_tensor(torch.float4_e2m1fn_x2, (3, 5))
    data = ptwm.torch.save({"x": tensor})
    with TensorIndex.from_buffer(data) as index:
        assert index.entry("x").dtype == "F4"
        assert index.entry("x").shape == (3, 10)
    assert same(ptwm.torch.load(data)["x"], tensor)
    for shape, nbytes in (((2, 3), 3), ((4, 1), 2)):
        blob = compress_ptwm_blob([("odd", bytes(nbytes), "F4", shape)])
        with pytest.raises(TypeError, match="get_bytes"):
            ptwm.torch.load(blob)


def test_dtype_that_torch_lacks():
    with TensorIndex.from_buffer(compress_ptwm_blob([("six", b"123", "F6_E2M3", (4,))])) as index:
        with pytest.raises(TypeError, match="'six'.*F6_E2M3.*get_bytes"):
            index.get_tensor("six")
        with pytest.raises(TypeError, match="get_bytes"):
            list(index.stream_tensors())
        assert index.get_bytes("six") == b"123"


def test_tensor_without_metadata():
    with TensorIndex.from_buffer(compress_ptwm_blob([("raw", b"123", None, None)])) as index:
        with pytest.raises(TypeError, match="'raw'.*get_bytes"):
            index.get_tensor("raw")


def test_devices(tensors, tmp_path):
    ptwm.torch.save_file({"x": tensors["large"], "y": tensors["scalar"]}, tmp_path / "m")
    for device in ("cpu", torch.device("cpu")):
        assert torch.equal(ptwm.torch.load_file(tmp_path / "m", device=device)["x"], tensors["large"])
    for device in ("meta", torch.device("meta")):
        loaded = ptwm.torch.load_file(tmp_path / "m", device)
        assert list(loaded) == ["x", "y"]
        assert loaded["x"].device.type == "meta" and loaded["x"].shape == (700, 1024)
    with TensorIndex(tmp_path / "m") as index:
        assert index.get_tensor("x", "meta").device.type == "meta"
        assert next(index.stream_tensors(device="meta"))[1].device.type == "meta"
    with pytest.raises(PtwmError):
        ptwm.torch.load_file(tmp_path / "m", "meta", max_nbytes=1000)
    with pytest.raises(RuntimeError):
        ptwm.torch.load_file(tmp_path / "m", "no such device")


class Tied(torch.nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = torch.nn.Embedding(300, 64)
        self.norm = torch.nn.BatchNorm1d(64)
        self.head = torch.nn.Linear(64, 300, bias=False)
        self.head.weight = self.embed.weight


def test_models(tmp_path):
    model, other = Tied(0), Tied(1)
    ptwm.torch.save_model(model, tmp_path / "m", {"format": "pt"})
    assert TensorIndex(tmp_path / "m").names() == list(model.state_dict())
    assert (tmp_path / "m").stat().st_size < model.embed.weight.nbytes * 1.1
    assert ptwm.torch.load_model(other, tmp_path / "m") == ([], [])
    assert other.head.weight is other.embed.weight
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
    assert ptwm.torch.load_model(Tied(2), str(tmp_path / "m"), strict=True, device="cpu", backend="pread") == ([], [])


def test_models_that_do_not_fit(tmp_path):
    state = Tied(0).state_dict()
    del state["head.weight"]
    ptwm.torch.save_file(state, tmp_path / "tie left out")
    assert ptwm.torch.load_model(Tied(1), tmp_path / "tie left out") == ([], [])
    del state["norm.bias"]
    ptwm.torch.save_file({**state, "more": torch.zeros(1)}, tmp_path / "other")
    assert ptwm.torch.load_model(Tied(1), tmp_path / "other", strict=False) == (["norm.bias"], ["more"])
    with pytest.raises(RuntimeError, match=r'(?s)Missing.*"norm\.bias".*Unexpected.*"more"'):
        ptwm.torch.load_model(Tied(1), tmp_path / "other")
    ptwm.torch.save_file({**Tied(0).state_dict(), "norm.bias": torch.zeros(3)}, tmp_path / "shape")
    with pytest.raises(RuntimeError):
        ptwm.torch.load_model(Tied(1), tmp_path / "shape", strict=False)


def test_get_into_tensors(tmp_path, tensors):
    ptwm.torch.save_file(tensors, tmp_path / "m")
    with TensorIndex(tmp_path / "m") as index:
        target = torch.zeros(700, 1024)
        index.get_into("large", target)
        assert torch.equal(target, tensors["large"])
        with pytest.raises(ValueError):
            index.get_into("large", torch.zeros(1024, 700).T)
        with pytest.raises(ValueError):
            index.get_into("large", torch.zeros(700, 1023))


def test_what_cannot_be_stored(tmp_path):
    bad = [
        [1.0],
        None,
        __import__("numpy").zeros(1),
        torch.eye(3).to_sparse(),
        torch.zeros(3, device="meta"),
        torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8),
    ]
    for value in bad:
        with pytest.raises(TypeError, match="'x'"):
            ptwm.torch.save_file({"a": torch.zeros(1), "x": value}, tmp_path / "m")
        with pytest.raises(TypeError, match="'x'"):
            ptwm.torch.save({"x": value})
    assert os.listdir(tmp_path) == []


def test_shape_that_torch_cannot_hold():
    blob = compress_ptwm_blob([("x", b"", "U8", (0, 2**62, 2**62))])
    try:
        shape = ptwm.torch.load(blob)["x"].shape
    except PtwmError as error:
        assert "'x'" in str(error)
    else:
        assert shape == (0, 2**62, 2**62)


def test_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        ptwm.torch.load_file(tmp_path / "missing")
    with pytest.raises(FormatError):
        ptwm.torch.load(b"nothing")


def test_safetensors_agrees(tensors, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors cannot be imported")
    loaded = ptwm.torch.load(ptwm.torch.save({"large": tensors["large"], "scalar": tensors["scalar"]}))
    # Storages that are larger than their tensors would be refused.
    safetensors.save_file(loaded, tmp_path / "m.safetensors")
    again = safetensors.load_file(tmp_path / "m.safetensors")
    assert torch.equal(again["large"], tensors["large"])
