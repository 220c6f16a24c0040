"""Directories of models: compressed, resharded, gone on with, restored exactly, and never lost."""

import filecmp
import json
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from conftest import same_bits, weights
from real_model import real_model  # noqa: F401 (a fixture)

import ptwm.numpy
from ptwm import FormatError, Method, TensorIndex, safe_open
from ptwm._safetensors import SafetensorsError
from ptwm.cli import main
from ptwm.conversion import ConversionError, Options, compress_directory, decompress_directory
from ptwm.conversion import files as conversion_files
from ptwm.conversion.compressing import CompressFile, Reshard
from ptwm.sharding import PtwmIndex, plan_shards, read_sharded_ptwm

SHARDS = "model-00001-of-00002", "model-00002-of-00002"


@pytest.fixture
def tensors():
    return {
        **{f"layers.{n}.weight": weights((64, 100), np.float32, n) for n in range(6)},
        "embed": weights((300, 64), np.float16),
        "head": weights((300, 64), np.float16),  # equal to embed
        "ids": np.arange(20, dtype=np.int64),
        "empty": np.zeros((0, 3), np.float32),
    }


@pytest.fixture
def hub(tmp_path, tensors):
    """A directory as it comes from a hub: two shards, an index, and what else there is."""
    root = tmp_path / "hub"
    (root / "1_Pooling").mkdir(parents=True)
    (root / "nothing").mkdir()
    names = list(tensors)
    index = {"metadata": {"total_size": sum(array.nbytes for array in tensors.values())}, "weight_map": {}}
    for shard, members in zip(SHARDS, (names[:5], names[5:])):
        safetensors.numpy.save_file(
            {name: tensors[name] for name in members}, root / f"{shard}.safetensors", {"format": "pt"}
        )
        index["weight_map"] |= {name: f"{shard}.safetensors" for name in members}
    # Not as the hub's tools write it: it must come back as it was.
    (root / "model.safetensors.index.json").write_text(json.dumps(index, ensure_ascii=False, indent=1) + "\n\n")
    (root / "config.json").write_text("{}")
    (root / "tokenizer.json").write_bytes(bytes(range(256)) * 100)
    (root / "1_Pooling" / "config.json").write_text('{"pooling": true}')
    (root / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    return root


def content(root):
    """Everything below a directory: files' bytes, None for directories."""
    paths = [Path(parent, name) for parent, *both in os.walk(root) for names in both for name in names]
    return {str(path.relative_to(root)): None if path.is_dir() else path.read_bytes() for path in paths}


def assert_same_directory(left, right):
    assert content(left) == content(right)


def runs_of(monkeypatch, *kinds):
    """The targets of the steps that are really run from now on."""
    done = []
    for kind in kinds:

        def run(self, advance, original=kind.run):
            original(self, advance)
            done.append(self.target.name)

        monkeypatch.setattr(kind, "run", run)
    return done


# ----------------------------------------------------------------------------------------------------- there and back


def test_there_and_back(hub, tmp_path, tensors):
    packed, back = tmp_path / "packed", tmp_path / "back"
    compress_directory(hub, packed)
    assert sorted(content(packed)) == sorted(name.replace(".safetensors", ".ptwm") for name in content(hub))
    assert stat.S_IMODE((packed / "run.sh").stat().st_mode) == 0o755
    index = PtwmIndex.read(packed / "model.ptwm.index.json")
    assert index.weight_map == {
        name: f"{shard}.ptwm"
        for shard, members in zip(SHARDS, (list(tensors)[:5], list(tensors)[5:]))
        for name in members
    }
    assert index.total_size == sum(array.nbytes for array in tensors.values())
    assert index.compressed_total_size == sum((packed / f"{shard}.ptwm").stat().st_size for shard in SHARDS)
    with safe_open(packed, "np") as file:
        assert all(same_bits(file.get_tensor(name), array) for name, array in tensors.items())
    assert read_sharded_ptwm(packed)["embed"] == tensors["embed"].tobytes()

    decompress_directory(packed, back)
    assert_same_directory(hub, back)
    assert stat.S_IMODE((back / "run.sh").stat().st_mode) == 0o755
    # Each shard restores its file by itself too.
    conversion_files.decompress_file(packed / f"{SHARDS[0]}.ptwm", tmp_path / "one")
    assert filecmp.cmp(tmp_path / "one", hub / f"{SHARDS[0]}.safetensors", shallow=False)


@pytest.mark.parametrize("limit", [1, 20_000, 60_000, 10**9])
def test_resharding_is_undone(hub, tmp_path, tensors, limit):
    packed, back = tmp_path / "packed", tmp_path / "back"
    compress_directory(hub, packed, Options(verify=True), max_shard_size=limit)
    shards = sorted(path.name for path in packed.glob("*.ptwm"))
    sizes = [(name, tensors[name].nbytes) for shard in SHARDS for name in names_in(hub / f"{shard}.safetensors")]
    planned = plan_shards(sizes, limit)
    if limit == 10**9:
        assert shards == ["model.ptwm"]
    else:
        assert shards == [f"model-{n:05d}-of-{len(planned):05d}.ptwm" for n in range(1, len(planned) + 1)]
    for shard, members in zip(shards, planned):
        with TensorIndex(packed / shard) as index:
            assert index.names() == [name for name, _ in members]
            assert index.metadata() == {"format": "pt"}
    loaded = ptwm.numpy.load_file(packed)
    assert all(same_bits(loaded[name], array) for name, array in tensors.items())
    decompress_directory(packed, back)
    assert_same_directory(hub, back)
    again = tmp_path / "again"
    compress_directory(back, again, max_shard_size=limit)
    assert_same_directory(packed, again)


def names_in(path):
    """A .safetensors file's tensors in the order of their data."""
    with safetensors.safe_open(path, "np") as file:
        return file.offset_keys()


def test_a_lone_file(tmp_path, tensors):
    root = tmp_path / "hub"
    root.mkdir()
    safetensors.numpy.save_file(tensors, root / "model.safetensors", {"format": "np"})
    compress_directory(root, tmp_path / "whole")
    assert sorted(content(tmp_path / "whole")) == ["model.ptwm"]
    compress_directory(root, tmp_path / "whole too", max_shard_size=10**9)
    assert_same_directory(tmp_path / "whole", tmp_path / "whole too")
    compress_directory(root, tmp_path / "split", max_shard_size=50_000)
    assert len(list((tmp_path / "split").glob("model-*.ptwm"))) > 2
    for packed in ("whole", "split"):
        decompress_directory(tmp_path / packed, tmp_path / f"{packed} back")
        assert_same_directory(root, tmp_path / f"{packed} back")


def test_files_at_any_depth_and_of_any_name(tmp_path, tensors):
    root = tmp_path / "diffusers"
    for name in ("unet/model", "vae/diffusion_pytorch_model", "text_encoder/model.fp16", "line\nbreak and space"):
        path = root / f"{name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        safetensors.numpy.save_file({"w": tensors["embed"]}, path)
    if os.name == "posix":
        source = root / os.fsdecode(b"latin \xe9.safetensors")
        shutil.copy(root / "unet" / "model.safetensors", source)
    (root / "vae" / "config.json").write_text("{}")
    compress_directory(root, tmp_path / "packed", max_shard_size=1000)
    decompress_directory(tmp_path / "packed", tmp_path / "back")
    assert_same_directory(root, tmp_path / "back")
    assert not list((tmp_path / "packed").rglob("*.safetensors"))


def test_links_count_as_what_they_lead_to(hub, tmp_path):
    # As in the hub's cache, whose snapshots are links to blobs.
    snapshot, blobs = tmp_path / "snapshot", tmp_path / "blobs"
    shutil.copytree(hub, blobs)
    for path in sorted(blobs.rglob("*")):
        link = snapshot / path.relative_to(blobs)
        link.mkdir(parents=True) if path.is_dir() else (link.parent.mkdir(exist_ok=True), link.symlink_to(path))
    compress_directory(snapshot, tmp_path / "packed", remove_source=True)
    assert not snapshot.exists() or not content(snapshot)
    assert_same_directory(blobs, hub)  # only links were removed
    decompress_directory(tmp_path / "packed", tmp_path / "back")
    assert_same_directory(hub, tmp_path / "back")


def test_headers_of_any_kind_come_back(hub, tmp_path, tensors):
    header = b'{  "w" :{"shape":[2], "dtype":"U8","data_offsets":[ 0,2]} , "__metadata__":{"\xc3\xa9":"\\u0000"}}  \n'
    header = header.replace(b"\n", b" ")
    (hub / "odd.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\1\2")
    for limit in (None, 1):
        compress_directory(hub, tmp_path / f"packed {limit}", max_shard_size=limit)
        decompress_directory(tmp_path / f"packed {limit}", tmp_path / f"back {limit}")
        assert_same_directory(hub, tmp_path / f"back {limit}")


def test_a_directory_that_came_from_nowhere(tmp_path, tensors):
    packed = tmp_path / "packed"
    packed.mkdir()
    names = list(tensors)
    for shard, members in zip(SHARDS, (names[:5], names[5:])):
        ptwm.numpy.save_file({name: tensors[name] for name in members}, packed / f"{shard}.ptwm")
    weight_map = {name: f"{SHARDS[names.index(name) >= 5]}.ptwm" for name in names}
    PtwmIndex(1234, 1, weight_map).write(packed / "model.ptwm.index.json")
    decompress_directory(packed, tmp_path / "back")
    index = json.loads((tmp_path / "back" / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 1234}
    assert index["weight_map"] == {name: file.replace(".ptwm", ".safetensors") for name, file in weight_map.items()}
    with safe_open(tmp_path / "back", "np") as file:
        assert all(same_bits(file.get_tensor(name), array) for name, array in tensors.items())


def test_a_real_model(real_model, tmp_path):  # noqa: F811
    packed, back = tmp_path / "packed", tmp_path / "back"
    names = [path.name for path in real_model.parent.iterdir()]
    assert {"config.json", "tokenizer.json"} <= set(names) or names == [real_model.name]
    compress_directory(real_model.parent, packed, max_shard_size=30_000_000)
    assert len(list(packed.glob("model-*.ptwm"))) >= 3
    decompress_directory(packed, back)
    assert_same_directory(real_model.parent, back)


# ------------------------------------------------------------------------------------------------------- interruptions


@pytest.mark.parametrize("limit", [None, 40_000])
def test_what_is_finished_is_not_done_again(hub, tmp_path, monkeypatch, limit):
    packed, clean = tmp_path / "packed", tmp_path / "clean"
    compress_directory(hub, clean, max_shard_size=limit)
    done = runs_of(monkeypatch, CompressFile, Reshard)
    add_many, calls = ptwm.Writer._add_many, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return add_many(self, *args)

    monkeypatch.setattr(ptwm.Writer, "_add_many", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compress_directory(hub, packed, max_shard_size=limit)
    first = list(done)
    assert len(first) == 1
    assert sorted(content(packed)) == sorted([first[0], "1_Pooling", "nothing"])  # no unfinished file
    (packed / ".ptwm-0123456789abcdef.tmp").write_bytes(b"as a power cut leaves them")
    (packed / f"{SHARDS[0]}.ptwm.123.0.tmp").write_bytes(b"as a power cut leaves them")
    compress_directory(hub, packed, max_shard_size=limit)
    assert done.count(first[0]) == 1 and len(done) == len(set(done)) == len(list(packed.glob("*.ptwm")))
    assert_same_directory(packed, clean)

    before = list(done)
    compress_directory(hub, packed, max_shard_size=limit)
    assert done == before
    compress_directory(hub, packed, Options(level=1), max_shard_size=limit, overwrite=True)
    assert len(done) == 2 * len(before)


def test_restoring_is_gone_on_with(hub, tmp_path, monkeypatch):
    packed, back = tmp_path / "packed", tmp_path / "back"
    compress_directory(hub, packed)
    shutil.copytree(hub, back)
    (back / f"{SHARDS[1]}.safetensors").unlink()
    (back / "config.json").unlink()
    written = []
    write_file = conversion_files.write_file
    monkeypatch.setattr(
        conversion_files, "write_file", lambda path, *args: written.append(path.name) or write_file(path, *args)
    )
    decompress_directory(packed, back)
    assert written == [f"{SHARDS[1]}.safetensors"]
    assert_same_directory(hub, back)


def test_other_content_is_replaced_only_if_wanted(hub, tmp_path):
    packed = tmp_path / "packed"
    compress_directory(hub, packed)
    clean = content(packed)
    changed = {
        f"{SHARDS[0]}.ptwm": (packed / f"{SHARDS[1]}.ptwm").read_bytes(),
        f"{SHARDS[1]}.ptwm": clean[f"{SHARDS[1]}.ptwm"][:-1],
        "model.ptwm.index.json": clean["model.ptwm.index.json"].replace(b"total_size", b"total_sise"),
        "tokenizer.json": b"{}",
    }
    for name, other in changed.items():
        (packed / name).write_bytes(other)
        with pytest.raises(FileExistsError) as caught:
            compress_directory(hub, packed)
        assert caught.value.filename == str(packed / name)
        assert (packed / name).read_bytes() == other
        compress_directory(hub, packed, overwrite=True)
        assert content(packed) == clean


def test_a_shard_with_one_other_value_is_noticed(hub, tmp_path, tensors):
    packed = tmp_path / "packed"
    compress_directory(hub, packed)
    path = hub / f"{SHARDS[0]}.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileExistsError):
        compress_directory(hub, packed)


def test_files_in_the_way(hub, tmp_path):
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "model.ptwm").write_bytes(b"of another model")
    with pytest.raises(ConversionError, match="model.ptwm: is there already"):
        compress_directory(hub, packed, overwrite=True)
    assert content(packed) == {"model.ptwm": b"of another model"}


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("limit", [None, 40_000])
def test_progress_adds_up(hub, tmp_path, verify, limit):
    class Counting:
        def __init__(self):
            self.total, self.done, self.names, self.n_kept = None, 0, [], 0

        def begin(self, total_nbytes):
            self.total = total_nbytes

        def start(self, name):
            self.names.append(name)

        def advance(self, nbytes):
            self.done += nbytes

        def kept(self, name):
            self.n_kept += 1

    for n_kept in (0, None):
        progress = Counting()
        compress_directory(hub, tmp_path / "packed", Options(verify=verify), max_shard_size=limit, progress=progress)
        assert progress.done == progress.total > 0
        assert progress.n_kept == (len(progress.names) if n_kept is None else 0)
        assert sorted(progress.names) == sorted(
            name for name, data in content(tmp_path / "packed").items() if data is not None
        )
    progress = Counting()
    decompress_directory(tmp_path / "packed", tmp_path / "back", progress=progress)
    assert progress.done == progress.total > 0


# ------------------------------------------------------------------------------------------------ removing the source


@pytest.mark.parametrize("limit", [None, 40_000])
def test_the_source_is_removed_after_verifying(hub, tmp_path, limit):
    packed, back = tmp_path / "packed", tmp_path / "back"
    original = content(hub)
    compress_directory(hub, packed, max_shard_size=limit, remove_source=True)
    assert not hub.exists()
    decompress_directory(packed, back, remove_source=True)
    assert not packed.exists()
    assert content(back) == original


@pytest.mark.parametrize("limit", [None, 40_000])
def test_nothing_is_removed_if_something_is_wrong(hub, tmp_path, monkeypatch, limit):
    original = content(hub)
    right = ptwm.Writer._add_many

    def wrong(self, tensors, *args):
        def changed(name, data, *others):
            return (name, bytes(len(data)) if name == "embed" else data, *others)

        right(self, (changed(*tensor) for tensor in tensors), *args)

    monkeypatch.setattr(ptwm.Writer, "_add_many", wrong)
    with pytest.raises(ConversionError, match="nothing was written"):
        compress_directory(hub, tmp_path / "packed", max_shard_size=limit, remove_source=True)
    assert content(hub) == original
    monkeypatch.undo()

    # Somebody writes to a file of the source while it is compressed.
    write = PtwmIndex.write
    monkeypatch.setattr(
        PtwmIndex, "write", lambda self, path: (hub / "config.json").write_text("{1}") and write(self, path)
    )
    with pytest.raises(ConversionError, match="config.json: was changed meanwhile; nothing was removed"):
        compress_directory(hub, tmp_path / "packed 2", max_shard_size=limit, remove_source=True)
    assert content(hub) == {**original, "config.json": b"{1}"}


def test_a_file_that_changes_after_planning(hub, tmp_path, monkeypatch):
    add_many = ptwm.Writer._add_many

    def meanwhile(self, *args):
        safetensors.numpy.save_file({"other": np.ones(3)}, hub / f"{SHARDS[1]}.safetensors")
        return add_many(self, *args)

    monkeypatch.setattr(ptwm.Writer, "_add_many", meanwhile)
    with pytest.raises(ConversionError, match=f"{SHARDS[1]}.safetensors: was changed meanwhile"):
        compress_directory(hub, tmp_path / "packed", max_shard_size=40_000)


def test_restored_files_are_read_back_before_the_source_is_removed(hub, tmp_path, monkeypatch):
    packed, back = tmp_path / "packed", tmp_path / "back"
    compress_directory(hub, packed)
    before = content(packed)
    write_file = conversion_files.write_file

    def damaged(path, header, blocks):
        nbytes = write_file(path, header, blocks)
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\xff")
        return nbytes

    monkeypatch.setattr(conversion_files, "write_file", damaged)
    with pytest.raises(ConversionError, match="nothing was removed"):
        decompress_directory(packed, back, remove_source=True)
    assert content(packed) == before


# --------------------------------------------------------------------------------------------- what cannot be converted


@pytest.mark.parametrize(
    "name, break_it, error, message",
    [
        ("no shard", lambda hub: (hub / f"{SHARDS[1]}.safetensors").unlink(), ConversionError, "is not there"),
        ("index", lambda hub: (hub / "model.safetensors.index.json").write_text("{"), FormatError, "index.json"),
        ("ptwm", lambda hub: (hub / "x.ptwm").write_text("x"), ConversionError, "compressed already"),
        ("bin", lambda hub: rewrite_index(hub, "pytorch_model.bin"), ConversionError, "no .safetensors file"),
        ("outside", lambda hub: rewrite_index(hub, "../x.safetensors"), FormatError, "leaves the directory"),
        ("broken", lambda hub: os.truncate(hub / f"{SHARDS[1]}.safetensors", 99), SafetensorsError, SHARDS[1]),
        ("twice", lambda hub: duplicate(hub), ConversionError, "is in .* too"),
        ("nowhere", lambda hub: (hub / "link").symlink_to("missing"), ConversionError, "leads nowhere"),
        ("round", lambda hub: (hub / "1_Pooling" / "link").symlink_to(hub), ConversionError, "leads back"),
        ("pipe", lambda hub: os.mkfifo(hub / "pipe"), ConversionError, "neither a file nor a directory"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_refused_first(hub, tmp_path, name, break_it, error, message):
    break_it(hub)
    with pytest.raises(error, match=message):
        compress_directory(hub, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def rewrite_index(hub, file_name):
    (hub / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": file_name}}))


def duplicate(hub):
    shutil.copy(hub / f"{SHARDS[0]}.safetensors", hub / f"{SHARDS[1]}.safetensors")


def test_directories_inside_each_other(hub, tmp_path):
    for target, message in ((hub, "both"), (hub / "inside", "inside the other"), (tmp_path, "inside the other")):
        with pytest.raises(ConversionError, match=message):
            compress_directory(hub, target)
    with pytest.raises(FileNotFoundError):
        compress_directory(tmp_path / "missing", tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        compress_directory(hub, tmp_path / "missing" / "x")
    with pytest.raises(NotADirectoryError):
        compress_directory(hub, hub / "config.json")


@pytest.mark.parametrize(
    "source, message",
    [
        ({"format": "gguf"}, "gguf"),
        ({"index": 5}, "malformed"),
        ({"files": []}, "malformed"),
        ({"files": {"../x.safetensors": "{}"}}, "leaves the directory"),
        ({"files": {"x": "{}"}}, "malformed"),
        ({"files": {"x.safetensors": 1}}, "malformed"),
        ({"files": {"x.safetensors": "\ud800"}}, "surrogate"),
        ({"files": {"x.safetensors": "{}"}}, "0 tensors"),
        ({"files": {"x.safetensors": "["}}, "JSON"),
        ({"files": {"x.safetensors": '{"w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}'}}, "tensors"),
    ],
)  # fmt: skip
def test_a_hostile_index(hub, tmp_path, source, message):
    packed = tmp_path / "packed"
    compress_directory(hub, packed, max_shard_size=40_000)
    content = json.loads((packed / "model.ptwm.index.json").read_text())
    content["source"] = source
    (packed / "model.ptwm.index.json").write_text(json.dumps(content))
    with pytest.raises(FormatError if source.get("format") is None else ConversionError, match=message):
        decompress_directory(packed, tmp_path / "back")
    assert not (tmp_path / "back").exists()


# --------------------------------------------------------------------------------------------------------- the command


def test_the_command(hub, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    original = content(hub)
    assert main(["compress", "hub/", "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert f"would compress {SHARDS[0]}.safetensors to hub-ptwm/{SHARDS[0]}.ptwm\n" in output
    assert os.listdir(tmp_path) == ["hub"]
    assert main(["compress", "hub"]) == 0
    assert capsys.readouterr().out.startswith("hub-ptwm: ")
    assert main(["compress", "hub"]) == 0
    assert "8 files of which 8 were there already" in capsys.readouterr().out
    assert main(["verify", "hub-ptwm"]) == 0
    assert main(["info", "hub-ptwm"]) == 0
    assert "10 tensors" in capsys.readouterr().out
    assert main(["decompress", "hub-ptwm"]) == 0  # over what is there, and the same
    assert content(hub) == original
    assert main(["compress", "hub", "-o", "small", "--max-shard-size", "40kB", "--remove-source", "--json"]) == 0
    capsys.readouterr()
    assert not hub.exists()
    assert main(["decompress", "small", "-o", "hub", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["source"] == "small" and report["target"] == "hub" and report["files"] == 8 and report["kept"] == 0
    assert content(hub) == original
    (hub / "config.json").write_text("{2}")
    assert main(["compress", "hub", "-o", "small", "--max-shard-size", "40kB"]) == 1
    assert capsys.readouterr().err == "ptwm: small/config.json: already exists, with another content; -f replaces it\n"
    assert main(["compress", "hub", "-o", "small", "--max-shard-size", "40kB", "-f"]) == 0


def test_several_sources(hub, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(hub, tmp_path / "other")
    safetensors.numpy.save_file({"x": np.ones(3)}, tmp_path / "lone.safetensors")
    (tmp_path / "out").mkdir()
    assert main(["compress", "hub", "other", "lone.safetensors", "-o", "out", "--threads", "1"]) == 0
    assert sorted(os.listdir("out")) == ["hub-ptwm", "lone.ptwm", "other-ptwm"]
    assert main(["decompress", "out/hub-ptwm", "out/lone.ptwm"]) == 0
    assert_same_directory(tmp_path / "out" / "hub", hub)
    assert filecmp.cmp("out/lone.safetensors", "lone.safetensors", shallow=False)


def test_advice(tmp_path, capsys):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    assert main(["compress", str(tmp_path / "m")]) == 1
    assert capsys.readouterr().err == f"ptwm: {tmp_path / 'm'}: no .safetensors file in this directory\n"
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"PK")
    assert main(["compress", str(tmp_path / "m")]) == 1
    assert "torch.load" in capsys.readouterr().err
    (tmp_path / "m" / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert main(["compress", str(tmp_path / "m" / "model.safetensors")]) == 1
    assert "git lfs pull" in capsys.readouterr().err
    assert main(["compress", str(tmp_path / "m" / "model.safetensors"), "--max-shard-size", "1M"]) == 1


def test_the_options_reach_the_writer(hub, tmp_path):
    compress_directory(hub, tmp_path / "packed", Options(method=Method.IDENTITY, chunk=4096, threads=1))
    with TensorIndex(tmp_path / "packed") as index:
        how = index.describe("layers.1.weight")
    assert how["chunk_nbytes"] <= 4096 and {codec for plane in how["planes"] for codec in plane["codecs"]} == {
        "identity"
    }
