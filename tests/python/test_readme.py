"""README.md's examples, run."""

import re
import shlex
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from conftest import weights

from ptwm import _dtypes
from ptwm.cli import main

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_there_are_blocks():
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_python_blocks(number, tmp_path, monkeypatch, torch):
    import ptwm.torch
    import ptwm.transformers

    monkeypatch.chdir(tmp_path)
    names = {"embed": torch.randn(300, 64), "head": torch.randn(300, 64)}
    ptwm.torch.save_file(names, "model.ptwm")
    asked = []
    if "transformers" in BLOCKS[number]:
        # A model as large as the example's is not at hand; what the function does, test_transformers.py shows.
        fake = types.SimpleNamespace(AutoModelForCausalLM=object())
        monkeypatch.setitem(sys.modules, "transformers", fake)
        monkeypatch.setattr(ptwm.transformers, "from_pretrained", lambda *args, **kwargs: asked.append((args, kwargs)))
    variables = dict(names)
    exec(compile(BLOCKS[number], "README.md", "exec"), variables)
    if "rows" in variables:
        assert np.array_equal(np.asarray(variables["rows"]), variables["head"][100:110].numpy())
    if "weights" in variables:
        assert torch.equal(variables["weights"]["embed"], names["embed"])
    assert ("transformers" in BLOCKS[number]) == (len(asked) == 1)


def test_commands(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    safetensors.numpy.save_file({"lm_head.weight": weights((30, 40))}, "model.safetensors")
    (tmp_path / "Qwen3-8B").mkdir()
    safetensors.numpy.save_file({"lm_head.weight": weights((30, 40))}, "Qwen3-8B/model.safetensors")
    (tmp_path / "Qwen3-8B" / "config.json").write_text("{}")
    commands = re.findall(r"^    ptwm (.*?)(?: *#.*)?$", README, re.MULTILINE)
    run = [
        command
        for command in commands
        if command.split()[0] in ("compress", "decompress", "info", "report", "verify", "cat")
    ]
    assert len(run) == 9
    original = (tmp_path / "Qwen3-8B" / "model.safetensors").read_bytes()
    for command in run:
        words = shlex.split(command.split(" > ")[0])
        if words == ["decompress", "model.ptwm"]:
            (tmp_path / "model.safetensors").unlink()
        assert main(words) == 0, command
    assert (tmp_path / "model.safetensors").read_bytes() == original
    assert (tmp_path / "Qwen3-8B" / "model.safetensors").read_bytes() == original
    assert main(["completion", "bash"]) == 0


def test_the_table_names_every_dtype():
    table = README[README.index("| in files |") : README.index("| none: bytes without")]
    named = set(re.findall(r"\b[A-Z]+\d*(?:_[A-Z0-9]+)*\b", table)) - {"FNUZ"}
    # "U8 to U64" means U16 and U32 too, and so on.
    named |= {f"{sign}{bits}" for sign in "UI" for bits in (16, 32)} | {"F8_E4M3FNUZ", "F8_E5M2FNUZ"}
    assert named == {dtype.name for dtype in _dtypes.DTYPES}
