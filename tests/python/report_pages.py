"""What the tests of `ptwm report` share: a model, and what holds of every page."""

from __future__ import annotations

import html.parser
import json
import math
import re
from pathlib import Path

import ml_dtypes
import numpy as np
from conftest import weights

import ptwm
import ptwm.numpy
from ptwm.cli import main
from ptwm.report import gather
from ptwm.sharding import Writer

VOID = {"meta", "br", "input", "link", "wbr", "img", "hr"}
NASTY = [
    "<script>alert(1)</script>",
    "\"quoted\" 'single' & <b>",
    "line\nbreak\ttab\0nul\x1b[31m",
    "turned \u202e around \u2066 isolated",
    "--><!-- ]]> </title></style></script>",
    "a" * 5000,
    "ünïcode ☃ 🎈 עברית",
    "",
    "layers." + "9" * 6000 + ".weight",
    "layers." + "8" * 6000 + ".weight",
]


class Page(html.parser.HTMLParser):
    """A page that was read strictly: every element is closed where it must be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open and self._open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


def check_page(text: str) -> Page:
    """What holds of every page."""
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == tags.count("style") == tags.count("h1") == tags.count("main") == 1
    assert {"h1", "h2", "table", "section"} <= set(tags) and not {"img", "link", "iframe", "object", "form"} & set(tags)
    for _, attributes in page.tags:
        assert not {"src", "srcset", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("href", "#").startswith("#")
        assert attributes.get("href", "#x").removeprefix("#") in {*ids, "x"}
    assert not re.search(r"(?i)\b(https?|ftp|data|javascript):|url\(|@import|//[a-z]", text)
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\0\x1b\r")
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    for _, attributes in page.tags:
        for name in {"width", "height", "x", "y", "cx", "cy", "r", "x1", "x2", "y1", "y2"} & set(attributes):
            assert 0 <= float(attributes[name].removesuffix("%")) < math.inf
    return page


def report_of(path: Path | bytes):
    if isinstance(path, bytes):
        with ptwm.TensorIndex.from_buffer(path, threads=1) as index:
            return gather(index)
    with ptwm.TensorIndex(path) as index:
        return gather(index)


def info_of(path: Path, capsys) -> dict:
    assert main(["info", "--json", "-v", str(path)]) == 0
    return json.loads(capsys.readouterr().out)


def write_model(path: Path) -> Path:
    """Layers of several types, tied tensors, integers and an empty tensor."""
    with Writer(path, metadata={"format": "pt", "<i>": "</td>"}) as writer:
        embedding = weights((600, 128), ml_dtypes.bfloat16, 1).tobytes()
        writer.add("embed.weight", embedding, "BF16", (600, 128))
        for layer in (0, 1, 2, 10):
            for part in ("q", "k"):
                data = weights((128, 128), ml_dtypes.bfloat16, layer)
                writer.add(f"layers.{layer}.attn.{part}.weight", data.tobytes(), "BF16", data.shape)
            writer.add(f"layers.{layer}.norm", weights((128,), np.float32, layer).tobytes(), "F32", (128,))
        writer.add("ids", np.arange(4096, dtype="<i8").tobytes(), "I64", (4096,))
        writer.add("empty", b"", "F32", (0, 3))
        writer.add("head.weight", embedding, "BF16", (600, 128))
    return path
