"""The tests of safetensors 0.8 for numpy and torch, run with the import swapped: what ptwm takes and gives as it does.

They come from the source distribution on PyPI, at test time; nothing of them is kept here.
"""

import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree
from pathlib import Path

import pytest

VERSION = "0.8.0"
ARCHIVE = f"safetensors-{VERSION}.tar.gz"

# What importing safetensors gives instead. What ptwm lacks is there for the modules to be importable; the tests that
# call it are listed below. The private helpers by which tests look at a module's tensors are safetensors' own.
SHIM = {
    "__init__.py": """
        from ptwm import SafetensorError, safe_open

        class _Missing:
            def __init__(self, *args, **kwargs):
                raise NotImplementedError("ptwm has nothing of the kind")

        TensorSpec = deserialize = serialize = serialize_file = _safe_open_handle = _Missing
        """,
    "numpy.py": "from ptwm.numpy import *",
    "torch.py": """
        from ptwm.torch import *
        from safetensors._theirs import (
            _end_ptr, _find_shared_tensors, _is_complete, _remove_duplicate_names, storage_ptr, storage_size
        )
        """,
}

BYTES = "asserts the bytes of a .safetensors file, or writes or damages them"
ORDER = "asserts that the file does not depend on the dict's order; ptwm keeps the order"
RAW = "calls serialize or TensorSpec, which take raw pointers; here it is ptwm.Writer"
HANDLE = "calls the private _safe_open_handle; here it is TensorIndex.from_reader"
BY_VALUE = "asserts that such tensors are refused; ptwm stores them by value"
TIES = "asserts that save_model drops tied names; ptwm keeps them, and stores the tensor once"
TYPE = "asserts another exception; ptwm's is a TypeError that names the tensor"
HELPER = "tests private helpers of safetensors.torch"

# The tests that fail, each for a reason that stays.
DIFFERENT = {
    "test_handle.ReadmeTestCase.test_fsspec": HANDLE,
    "test_handle.ReadmeTestCase.test_numpy_example": HANDLE,
    "test_pread_backend.PreadBackendTests.test_truncated_header_is_rejected": BYTES,
    "test_pt_comparison.SliceTestCase.test_cannot_serialize_a_non_contiguous_tensor": BY_VALUE,
    "test_pt_comparison.SliceTestCase.test_cannot_serialize_shared": BY_VALUE,
    "test_pt_comparison.TorchTestCase.test_bogus": TYPE,
    "test_pt_comparison.TorchTestCase.test_complex": BYTES,
    "test_pt_comparison.TorchTestCase.test_in_memory": BYTES,
    "test_pt_comparison.TorchTestCase.test_meta_tensor": TYPE,
    "test_pt_comparison.TorchTestCase.test_serialization": BYTES,
    "test_pt_comparison.TorchTestCase.test_sparse": TYPE,
    "test_pt_model.TorchModelTestCase.test_difference_with_torch": TIES,
    "test_pt_model.TorchModelTestCase.test_failure": BY_VALUE,
    "test_pt_model.TorchModelTestCase.test_save": TIES,
    "test_pt_model.TorchModelTestCase.test_workaround": TIES,
    "test_pt_model.TorchModelTestCase.test_workaround_non_contiguous": BY_VALUE,
    "test_simple.ErrorsTestCase.test_file_not_found": "asserts a message; ptwm's FileNotFoundError is Python's own",
    "test_simple.ReadmeTestCase.test_exception": RAW,
    "test_simple.ReadmeTestCase.test_numpy_slice": "asserts that slices beyond the end are refused; ptwm does as numpy",
    "test_simple.TestCase.test_serialization": BYTES,
    "test_simple.TestCase.test_serialization_forces_alignment": BYTES,
    "test_simple.TestCase.test_serialization_metadata": BYTES,
    "test_simple.TestCase.test_serialization_no_big_endian": BYTES,
    "test_simple.TestCase.test_serialization_order_invariant": ORDER,
    "test_simple.WindowsTestCase.test_get_correctly_dropped": "a closed file is a ValueError, as with Python's files",
    "test_threadable.TestCase.test_serialize_file_releases_gil": RAW,
}
NOT_RUN = {
    "test_pt_model.TorchModelTestCase.test_end_ptr": HELPER,
    "test_pt_model.TorchModelTestCase.test_find_shared_non_shared_tensors": HELPER,
    "test_pt_model.TorchModelTestCase.test_find_shared_tensors": HELPER,
    "test_pt_model.TorchModelTestCase.test_is_complete": HELPER,
    "test_pt_model.TorchModelTestCase.test_remove_duplicate_names": HELPER,
    "test_simple.TestCase.test_pt_sf_save_model_overlapping_storage": HELPER,
}

# Other frameworks than numpy and torch.
LEFT_OUT = {"test_flax_comparison", "test_mlx_comparison", "test_paddle_comparison", "test_tf_comparison"}


@pytest.fixture(scope="module")
def archive():
    """The source distribution: $PTWM_TEST_SAFETENSORS, else in the cache, else downloaded."""
    given = os.environ.get("PTWM_TEST_SAFETENSORS")
    if given:
        assert Path(given).is_file(), f"PTWM_TEST_SAFETENSORS={given}: no such file"
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ptwm-tests"
    if not (cache / ARCHIVE).is_file():
        download(cache)
    return cache / ARCHIVE


def download(cache):
    """With pip, which asks the archive's build backend for metadata: one that copies them saves the Rust compiler."""
    backend = cache / "backend"
    backend.mkdir(parents=True, exist_ok=True)
    (backend / "maturin.py").write_text(
        "import os, shutil\n"
        "def prepare_metadata_for_build_wheel(directory, config_settings=None):\n"
        f"    name = 'safetensors-{VERSION}.dist-info'\n"
        "    os.mkdir(os.path.join(directory, name))\n"
        "    shutil.copy('PKG-INFO', os.path.join(directory, name, 'METADATA'))\n"
        "    return name\n"
    )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--no-binary", "safetensors", "--dest", cache, f"safetensors=={VERSION}"]
    try:
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONPATH": str(backend)},
        )
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or "").strip().splitlines()
        pytest.skip(f"no test-suite of safetensors: pip download failed: {lines[-1:]}")
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"no test-suite of safetensors: {type(error).__name__}: {error}")


@pytest.fixture(scope="module")
def outcomes(archive, tmp_path_factory):
    """For each test its outcome, and the start of what it said."""
    pytest.importorskip("torch", reason="torch cannot be imported")
    directory = tmp_path_factory.mktemp("suite")
    tests = directory / "tests"
    (tests / "data").mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            match = re.fullmatch(r"[^/]+/bindings/python/tests/(test_\w+)\.py", member.name)
            if match and match[1] not in LEFT_OUT:
                source = tar.extractfile(member).read().decode("utf-8")
                # Code that used safetensors changes its import and its files' suffix.
                (tests / f"{match[1]}.py").write_text(source.replace(".safetensors", ".ptwm"), encoding="utf-8")
        package = directory / "shim" / "safetensors"
        package.mkdir(parents=True)
        helpers = tar.extractfile(f"safetensors-{VERSION}/py_src/safetensors/torch.py").read()
        (package / "_theirs.py").write_bytes(helpers)
    for name, content in SHIM.items():
        (package / name).write_text(re.sub("(?m)^        ", "", content))
    left_out = ["--deselect=tests/{}.py::{}::{}".format(*name.split(".")) for name in NOT_RUN]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=result.xml", *left_out, "tests"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package.parent), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (directory / "result.xml").exists(), run.stdout + run.stderr
    results = {}
    for case in xml.etree.ElementTree.parse(directory / "result.xml").iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}".removeprefix("tests.")
        said = [(child.tag, child.get("message", "")) for child in case if child.tag in ("failure", "error", "skipped")]
        results[name] = said[0] if said else ("passed", "")
    return results


def test_everything_else_passes(outcomes):
    failed = {name: said for name, (outcome, said) in outcomes.items() if outcome in ("failure", "error")}
    unexpected = {name: said for name, said in failed.items() if name not in DIFFERENT}
    assert not unexpected
    # A test that passes after all is to be taken off the list.
    assert sorted(failed) == sorted(DIFFERENT)


def test_the_suite_was_run(outcomes):
    passed = [name for name, (outcome, _) in outcomes.items() if outcome == "passed"]
    assert len(passed) >= 34, sorted(outcomes)
    assert not set(outcomes) & set(NOT_RUN)
    skipped = {name: said for name, (outcome, said) in outcomes.items() if outcome == "skipped"}
    # These need a GPU or a server.
    assert all(re.search("Cuda|MPS|HPU|Npu|device|s3", said) for said in skipped.values()), skipped
