"""ptwm.torch.load_model: what lands where, and what does not fit."""

import pytest

torch = pytest.importorskip("torch", reason="torch cannot be imported")

import ptwm.torch  # noqa: E402
from ptwm import IntegrityError, TensorIndex  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self, seed=0, tied=True, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = torch.nn.Embedding(300, 64, dtype=dtype)
        self.norm = torch.nn.BatchNorm1d(64, dtype=dtype)
        self.head = torch.nn.Linear(64, 300, bias=False, dtype=dtype)
        if tied:
            self.head.weight = self.embed.weight


def same_state(left, right):
    left, right = left.state_dict(), right.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name].to(left[name])) for name in left)


@pytest.fixture
def path(tmp_path):
    ptwm.torch.save_model(Net(0), tmp_path / "m.ptwm")
    return tmp_path / "m.ptwm"


def test_parameters_are_decoded_where_they_are(path, monkeypatch):
    model = Net(1)
    pointers = {name: tensor.data_ptr() for name, tensor in model.state_dict().items()}
    versions = {name: parameter._version for name, parameter in model.named_parameters()}
    fetched = []
    stream = TensorIndex.stream_tensors
    monkeypatch.setattr(
        TensorIndex,
        "stream_tensors",
        lambda self, names, *a, **k: stream(self, fetched.extend(names) or names, *a, **k),
    )
    assert ptwm.torch.load_model(model, path) == ([], [])
    assert fetched == []  # nothing was decoded to memory of its own
    assert {name: tensor.data_ptr() for name, tensor in model.state_dict().items()} == pointers
    assert same_state(model, Net(0))
    assert model.head.weight is model.embed.weight
    # autograd hears of it, as from load_state_dict
    assert all(parameter._version > versions[name] for name, parameter in model.named_parameters())


def test_other_dtypes_and_layouts_are_converted(path):
    model = Net(1, dtype=torch.float64)
    assert ptwm.torch.load_model(model, path) == ([], [])
    assert model.embed.weight.dtype == torch.float64 and same_state(model, Net(0))
    model = Net(1, tied=False)
    model.embed.weight = torch.nn.Parameter(torch.zeros(64, 300).T)
    assert ptwm.torch.load_model(model, path) == ([], [])
    assert not model.embed.weight.is_contiguous()
    assert torch.equal(model.embed.weight, Net(0).embed.weight)


def test_a_model_without_memory_stays_so(path):
    with torch.device("meta"):
        model = Net(1)
    with pytest.warns(UserWarning, match="meta"):
        ptwm.torch.load_model(model, path)
    assert model.embed.weight.is_meta


def test_a_default_device_does_not_matter(path):
    with torch.device("meta"):
        loaded = ptwm.torch.load_file(path)
        empty = ptwm.torch.load(ptwm.torch.save({"x": torch.zeros(0, 3, device="cpu")}))
        with ptwm.safe_open(path, "pt") as file:
            part = file.get_slice("norm.weight")[3:3]
    assert {tensor.device.type for tensor in (*loaded.values(), *empty.values(), part)} == {"cpu"}


def test_loading_runs_the_modules_hooks(path):
    model, calls = Net(1), []
    model.register_load_state_dict_pre_hook(lambda module, state, *args: calls.append(sorted(state)))
    ptwm.torch.load_model(model, path)
    assert calls == [sorted(model.state_dict())]


def test_tied_names_with_different_content(tmp_path, path):
    ptwm.torch.save_model(Net(0, tied=False), tmp_path / "untied")
    model = Net(1)
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "head.weight"'):
        ptwm.torch.load_model(model, tmp_path / "untied")
    assert ptwm.torch.load_model(model, tmp_path / "untied", strict=False) == ([], ["head.weight"])
    assert torch.equal(model.head.weight, Net(0, tied=False).embed.weight)
    # The other way round, a module that does not tie gets what the file has under both names.
    model = Net(1, tied=False)
    assert ptwm.torch.load_model(model, path) == ([], [])
    assert torch.equal(model.head.weight, Net(0).embed.weight)
    assert model.head.weight.data_ptr() != model.embed.weight.data_ptr()


def test_tied_names_that_a_file_stores_twice(tmp_path):
    # A writer that cannot read back stores equal tensors as often as they come.
    content = bytearray()
    state = Net(0).state_dict()
    with ptwm.Writer.to_function(content.extend) as writer:
        for name, tensor in state.items():
            writer.add(name, tensor, tensor.dtype, tensor.shape)
    (tmp_path / "twice").write_bytes(content)
    with TensorIndex(tmp_path / "twice") as index:
        places = [index.describe(name)["segment"] for name in ("embed.weight", "head.weight")]
        assert places[0] != places[1]
    assert ptwm.torch.load_model(Net(1), tmp_path / "twice") == ([], [])


def test_safetensors_files_and_directories(tmp_path, path):
    theirs = pytest.importorskip("safetensors.torch", reason="safetensors cannot be imported")
    theirs.save_model(Net(0), tmp_path / "m.safetensors")
    model = Net(1)
    assert ptwm.torch.load_model(model, tmp_path / "m.safetensors") == ([], [])
    assert same_state(model, Net(0))
    (tmp_path / "dir").mkdir()
    path.rename(tmp_path / "dir" / "model.ptwm")
    model = Net(2)
    assert ptwm.torch.load_model(model, tmp_path / "dir", backend="pread") == ([], [])
    assert same_state(model, Net(0))


def test_nothing_changes_if_a_shape_does_not_fit(tmp_path):
    ptwm.torch.save_file({**Net(0).state_dict(), "norm.bias": torch.zeros(3)}, tmp_path / "m")
    model = Net(1)
    with pytest.raises(RuntimeError, match=r"norm\.bias: \(64,\) in the module, \(3,\) in the file"):
        ptwm.torch.load_model(model, tmp_path / "m", strict=False)
    assert same_state(model, Net(1))


def test_damage_is_noticed(path):
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(IntegrityError, match="m.ptwm"):
        ptwm.torch.load_model(Net(1), path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(path):
    for device in ("cuda", "cuda:0", torch.device("cuda", 1), "xpu", 0, "no such device"):
        for load in (
            lambda: ptwm.torch.load_file(path, device),
            lambda: ptwm.torch.load(path.read_bytes(), device),
            lambda: ptwm.torch.load_model(Net(1), path, device=device),
            lambda: ptwm.safe_open(path, "pt", device),
            lambda: TensorIndex(path).get_tensor("embed.weight", device),
            lambda: TensorIndex(path).stream_tensors(device=device),
        ):
            with pytest.raises(RuntimeError, match="cannot use the device"):
                load()


def test_what_is_copied_to_a_gpu_is_decoded_into_pinned_memory(path, monkeypatch):
    if torch.cuda.is_available():
        tensor = ptwm.torch.load_file(path, "cuda")["embed.weight"]
        assert tensor.is_cuda and torch.equal(tensor.cpu(), Net(0).embed.weight)
        return
    # Without a GPU: which memory is asked for, and how the copy is made.
    from ptwm.random_access import devices, index

    asked, copies = [], []
    empty, to = torch.empty, torch.Tensor.to

    def fake_empty(*args, pin_memory=False, **options):
        asked.append(pin_memory)
        return empty(*args, **options)

    def fake_to(tensor, device, non_blocking=False):
        copies.append(non_blocking)
        return to(tensor, "meta")

    for module in (devices, index):
        monkeypatch.setattr(module, "wants_pinned", lambda device: device is not None)
        monkeypatch.setattr(module, "check_device", lambda device: None)
    monkeypatch.setattr(torch, "empty", fake_empty)
    monkeypatch.setattr(torch.Tensor, "to", fake_to)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: True)
    with TensorIndex(path) as opened:
        tensors = dict(opened.stream_tensors(device="cuda"))
    assert asked == [True] * len(tensors) and copies == [True] * len(tensors)
    assert all(tensor.is_meta for tensor in tensors.values())
