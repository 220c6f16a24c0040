"""The package as it is installed."""

import re
import subprocess
import sys
from pathlib import Path

import ptwm
from ptwm._library import lib

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(ptwm.__file__).parent


def test_import_is_light():
    program = (
        "import sys, ptwm\n"
        "heavy = {'torch', 'numpy', 'ml_dtypes', 'cbor2', 'zstandard', 'safetensors'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from ptwm._dtypes import resolve\n"
        "assert resolve('bfloat16')[0].name == 'BF16'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_version_is_the_projects():
    project = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert ptwm.__version__ == project[1]
    assert ptwm.__version__ == f"{lib.PTWM_VERSION_MAJOR}.{lib.PTWM_VERSION_MINOR}.{lib.PTWM_VERSION_PATCH}"


def test_every_source_file_is_installed():
    source = ROOT / "python" / "ptwm"
    expected = {path.relative_to(source) for suffix in ("py", "pyi", "typed") for path in source.rglob(f"*.{suffix}")}
    assert expected
    assert not [str(path) for path in sorted(expected) if not (INSTALLED / path).exists()]


def test_every_function_of_the_header_is_bound():
    header = (ROOT / "libptwm" / "ptwm.h").read_text(encoding="utf-8")
    functions = set(re.findall(r"PTWM_API [^;#]*?\b(ptwm_\w+)\(", header))
    assert len(functions) > 30
    assert not {name for name in functions if not hasattr(lib, name)}


def test_the_public_names():
    assert set(ptwm.__all__) <= set(dir(ptwm))
    assert issubclass(ptwm.FormatError, ptwm.PtwmError) and issubclass(ptwm.IntegrityError, ptwm.PtwmError)
    assert issubclass(ptwm.PtwmError, ValueError)
