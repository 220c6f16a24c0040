"""Models of transformers from .ptwm: the same models as from .safetensors, without a trace."""

import json
import os
import shutil
import sys
import types

import pytest

torch = pytest.importorskip("torch", reason="torch cannot be imported")
transformers = pytest.importorskip("transformers", minversion="5", reason="transformers 5 cannot be imported")

from real_model import real_model  # noqa: E402, F401 (a fixture)

import ptwm.torch  # noqa: E402
import ptwm.transformers  # noqa: E402
from ptwm.conversion import compress_directory, decompress_directory  # noqa: E402


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def tiny_llama(**changes):
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = transformers.LlamaConfig(
        vocab_size=500,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        **{**sizes, **changes},
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A causal language model in two or more shards, with tied embeddings, and its generation settings."""
    root = tmp_path_factory.mktemp("llama") / "hub"
    model = tiny_llama()
    model.generation_config.temperature = 0.25
    model.generation_config.do_sample = True
    model.save_pretrained(root, max_shard_size="300kB")
    assert len(list(root.glob("model-*.safetensors"))) >= 2
    return root


@pytest.fixture(scope="module")
def packed(hub):
    compress_directory(hub, hub.with_name("hub-ptwm"))
    return hub.with_name("hub-ptwm")


def logits(model, seed=0):
    tokens = torch.randint(0, 500, (2, 12), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return model(input_ids=tokens).logits


def same_parameters(left, right):
    left, right = left.state_dict(), right.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("auto_class", ["AutoModelForCausalLM", "AutoModel", "LlamaForCausalLM"])
def test_the_same_model(hub, packed, auto_class):
    auto_class = getattr(transformers, auto_class)
    theirs, ours = auto_class.from_pretrained(hub), ptwm.transformers.from_pretrained(auto_class, packed)
    assert type(ours) is type(theirs) and not ours.training
    assert same_parameters(ours, theirs)
    assert ours.config.to_diff_dict() == theirs.config.to_diff_dict()
    assert ours.name_or_path == str(packed)
    if hasattr(theirs, "lm_head"):
        assert torch.equal(logits(ours), logits(theirs))
        assert ours.lm_head.weight is ours.model.embed_tokens.weight
        assert ours.generation_config.to_dict() == theirs.generation_config.to_dict()
        assert ours.generation_config.temperature == 0.25


def test_a_real_model_in_two_shards(real_model, tmp_path):  # noqa: F811
    """With its tokenizer's files, through the whole cycle."""
    if not (real_model.parent / "tokenizer.json").exists():
        pytest.skip(f"there is no tokenizer beside {real_model}")
    hub, packed, back = tmp_path / "hub", tmp_path / "hub-ptwm", tmp_path / "back"
    shutil.copytree(real_model.parent, hub)
    model = transformers.AutoModel.from_pretrained(hub).eval()
    (hub / "model.safetensors").unlink()
    model.save_pretrained(hub, max_shard_size="60MB")
    assert len(list(hub.glob("model-*-of-00002.safetensors"))) == 2
    compress_directory(hub, packed)
    assert not list(packed.rglob("*.safetensors*"))
    ours = ptwm.transformers.from_pretrained(transformers.AutoModel, packed)
    texts = ["The same numbers, in less room.", "Der Rest ist Rauschen."]
    for tokenizer in (transformers.AutoTokenizer.from_pretrained(path) for path in (hub, packed)):
        tokens = tokenizer(texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            assert torch.equal(ours(**tokens).last_hidden_state, model(**tokens).last_hidden_state)
    decompress_directory(packed, back)
    assert {path.relative_to(hub): path.read_bytes() for path in hub.rglob("*") if path.is_file()} == {
        path.relative_to(back): path.read_bytes() for path in back.rglob("*") if path.is_file()
    }


SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**SIZES, "vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
VISION = {**SIZES, "image_size": 32, "patch_size": 8}
T5 = {"d_model": 32, "d_ff": 64, "num_layers": 2, "num_heads": 4, "d_kv": 8, "vocab_size": 100}
GROUPED = {**TEXT, "num_key_value_heads": 2}
ARCHITECTURES = {
    # Its experts are merged into one tensor while loading.
    "Mixtral": ("AutoModelForCausalLM", "MixtralForCausalLM", {**GROUPED, "num_local_experts": 4}),
    "T5": ("AutoModelForSeq2SeqLM", "T5ForConditionalGeneration", T5),
    "CLIP": ("AutoModel", "CLIPModel", {"text_config": TEXT, "vision_config": VISION}),
    # A part of a model of several kinds of data, of which the rest is unexpected.
    "CLIP text": ("CLIPTextModel", "CLIPModel", {"text_config": TEXT, "vision_config": VISION}),
    "Gemma 3": (
        "AutoModelForCausalLM",
        "Gemma3ForConditionalGeneration",
        {"text_config": {**GROUPED, "head_dim": 8}, "vision_config": VISION, "mm_tokens_per_image": 4},
    ),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architectures(name, tmp_path):
    auto_class, model_class, settings = ARCHITECTURES[name]
    auto_class, model_class = getattr(transformers, auto_class), getattr(transformers, model_class)
    torch.manual_seed(0)
    model_class(model_class.config_class(**settings)).save_pretrained(tmp_path / "hub")
    compress_directory(tmp_path / "hub", tmp_path / "packed")
    ours, info = ptwm.transformers.from_pretrained(auto_class, tmp_path / "packed", output_loading_info=True)
    theirs, expected = auto_class.from_pretrained(tmp_path / "hub", output_loading_info=True)
    assert type(ours) is type(theirs) and same_parameters(ours, theirs) and info == expected
    assert ours.config.to_diff_dict() == theirs.config.to_diff_dict()


def test_arguments_reach_transformers(hub, packed):
    load = ptwm.transformers.from_pretrained
    auto_class = transformers.AutoModelForCausalLM
    ours = load(auto_class, packed, dtype=torch.bfloat16, attn_implementation="eager", output_attentions=True)
    assert ours.dtype == torch.bfloat16 and ours.config.output_attentions
    assert ours.config._attn_implementation == "eager"
    theirs = auto_class.from_pretrained(hub, dtype=torch.bfloat16)
    assert same_parameters(ours, theirs)
    ours, info = load(auto_class, packed, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    config = transformers.AutoConfig.from_pretrained(packed)
    config.num_hidden_layers = 2
    ours, info = load(auto_class, packed, config=config, output_loading_info=True)
    assert len(ours.model.layers) == 2 and info["unexpected_keys"]
    ours, info = load(transformers.AutoModelForSequenceClassification, packed, num_labels=3, output_loading_info=True)
    assert ours.score.out_features == 3 and set(info["missing_keys"]) == {"score.weight"}


def test_the_dtype_of_the_weights(hub, tmp_path):
    shutil.copytree(hub, tmp_path / "hub")
    config = json.loads((tmp_path / "hub" / "config.json").read_text())
    config.pop("dtype", None)
    (tmp_path / "hub" / "config.json").write_text(json.dumps(config))
    model = tiny_llama().to(torch.bfloat16)
    ptwm.torch.save_file(model.state_dict(), tmp_path / "hub" / "model.ptwm")
    ours = ptwm.transformers.from_pretrained(transformers.AutoModelForCausalLM, tmp_path / "hub")
    assert ours.dtype == torch.bfloat16 and same_parameters(ours, model)


def test_weights_in_a_subfolder(hub, packed, tmp_path):
    shutil.copytree(packed, tmp_path / "root" / "sub")
    ours = ptwm.transformers.from_pretrained(transformers.AutoModelForCausalLM, tmp_path / "root", subfolder="sub")
    assert torch.equal(logits(ours), logits(transformers.AutoModelForCausalLM.from_pretrained(hub)))


def test_nothing_is_written_and_nothing_is_changed(packed, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] in ("transformers", "safetensors")]
    before = {module.__name__: dict(vars(module)) for module in modules if isinstance(module, types.ModuleType)}
    files = sorted(os.listdir(packed))
    written = []

    def hook(event, args):
        if (
            watching
            and event == "open"
            and isinstance(args[2], int)
            and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        ):
            written.append(args[0])

    watching = True
    sys.addaudithook(hook)
    try:
        ptwm.transformers.from_pretrained(transformers.AutoModelForCausalLM, packed)
    finally:
        watching = False
    assert written == [] and os.listdir(tmp_path) == [] and sorted(os.listdir(packed)) == files
    for name, names in before.items():
        now = vars(sys.modules[name])
        changed = {key for key, value in names.items() if key[:2] != "__" and now.get(key, value) is not value}
        assert not changed, (name, changed)


def test_tensors_are_decoded_one_by_one(packed, monkeypatch):
    from ptwm.random_access.file import FileIndex

    sizes = []
    decode = FileIndex._decode
    monkeypatch.setattr(
        FileIndex,
        "_decode",
        lambda self, parts, *args, **options: sizes.append(len(parts)) or decode(self, parts, *args, **options),
    )
    model = ptwm.transformers.from_pretrained(transformers.AutoModelForCausalLM, packed)
    assert set(sizes) == {1} and len(sizes) >= len(list(model.parameters()))


def test_code_in_the_directory(packed, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    root = tmp_path / "custom--ptwm"
    shutil.copytree(packed, root)
    (root / "modeling_custom.py").write_text(
        "from transformers import LlamaForCausalLM\nclass CustomForCausalLM(LlamaForCausalLM):\n    is_custom = True\n"
    )
    config = json.loads((root / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "modeling_custom.CustomForCausalLM"}
    (root / "config.json").write_text(json.dumps(config))
    load, auto_class = ptwm.transformers.from_pretrained, transformers.AutoModelForCausalLM
    assert load(auto_class, root, trust_remote_code=True).is_custom
    assert not hasattr(load(auto_class, root, trust_remote_code=False), "is_custom")


def test_errors(packed, tmp_path, monkeypatch):
    load, auto_class = ptwm.transformers.from_pretrained, transformers.AutoModel
    with pytest.raises(FileNotFoundError, match="downloaded first"):
        load(auto_class, "someone/some-model")
    with pytest.raises(FileNotFoundError, match="model.ptwm"):
        load(auto_class, tmp_path)
    for name, value in (("state_dict", {}), ("variant", "fp16"), ("gguf_file", "x.gguf")):
        with pytest.raises(TypeError, match=name):
            load(auto_class, packed, **{name: value})
    shutil.copytree(packed, tmp_path / "damaged")
    shard = next((tmp_path / "damaged").glob("model-*.ptwm"))
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(Exception, match=shard.name):
        load(auto_class, tmp_path / "damaged")
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "4.57.6")  # the lazy module is replaced at times
    with pytest.raises(ImportError, match="4.57.6"):
        load(auto_class, packed)
