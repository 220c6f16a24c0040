"""What code that comes from safetensors relies on, from one end to the other, and paths of every kind."""

import gc
import hashlib
import itertools
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from conftest import PACKED, SCALAR_TYPES, same_bits, weights

import ptwm
import ptwm.numpy
from ptwm import PtwmError, TensorIndex, Writer, safe_open
from ptwm.cli import main

sanitizer_is_different = pytest.mark.skipif(
    bool(os.environ.get("PTWM_TEST_SANITIZED")), reason="the sanitizer keeps freed memory and takes much of its own"
)

# ------------------------------------------------------------------------------------------- every array that there is

# Scalar types that are no numbers of a size that is the same on all machines.
NOT_STORED = {"longdouble", "clongdouble", "datetime64", "timedelta64", "str", "bytes", "object", "void"}


def every_scalar_type():
    """All that numpy and ml_dtypes have, so that a new one is missed by this test and not by a user."""
    types = {kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in "biufcmMSUOV"}
    types |= {
        kind
        for kind in vars(ml_dtypes).values()
        if isinstance(kind, type) and kind not in (ml_dtypes.finfo, ml_dtypes.iinfo)
    }
    return sorted(types, key=lambda kind: np.dtype(kind).name)


def test_every_scalar_type_is_known():
    stored = {np.dtype(kind) for kind in SCALAR_TYPES.values()}
    others = {kind.__name__.rstrip("_") for kind in every_scalar_type() if np.dtype(kind) not in stored}
    # longdouble is float64's equal on some machines.
    assert others <= NOT_STORED, others
    assert {"str", "bytes", "object", "void"} <= others


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_every_memory_order_byte_order_and_dtype(name, tmp_path):
    array = weights((8, 24, 8), SCALAR_TYPES[name])
    whole_bytes = name not in PACKED and array.dtype.itemsize > 1
    orders = {
        "C": lambda a: a,
        "F": np.asfortranarray,
        "transposed": lambda a: a.transpose(1, 2, 0),
        "strided": lambda a: a[::2, ::-3, 1:],
        "broadcast": lambda a: np.broadcast_to(a[:, :1], (8, 16, 8)),
        "offset": lambda a: a[3:5],
        "0-d": lambda a: a[1, 2, 3:4].reshape(()),
        "empty": lambda a: a[:, 3:3],
    }
    ends = {"native": lambda a: a}
    if whole_bytes and array.dtype.newbyteorder("S") != array.dtype:
        if name not in ("C32", "BC32"):  # whose byteswap() and other byte order disagree, in ml_dtypes 0.6
            ends["swapped"] = lambda a: a.byteswap().view(a.dtype.newbyteorder("S"))
        ends["little"] = lambda a: a.astype(a.dtype.newbyteorder("<"))
        ends["big"] = lambda a: a.astype(a.dtype.newbyteorder(">"))
    given, expected = {}, {}
    for (order, arrange), (end, turn) in itertools.product(orders.items(), ends.items()):
        value = arrange(turn(array))
        if value.size * PACKED.get(name, 8) % 8:
            continue  # a total that is no whole bytes is refused: test_numpy.py
        given[f"{order} {end}"] = value
        expected[f"{order} {end}"] = np.array(arrange(array), order="C")
    assert len(given) >= 7
    ptwm.numpy.save_file(given, tmp_path / "m.ptwm")
    for loaded in (ptwm.numpy.load_file(tmp_path / "m.ptwm"), ptwm.numpy.load(ptwm.numpy.save(given))):
        assert list(loaded) == list(given)
        assert all(same_bits(loaded[key], expected[key]) for key in given)


def test_eight_processes_write_one_file(tmp_path):
    program = (
        "import sys, numpy as np, ml_dtypes, ptwm.numpy\n"
        "rng = np.random.default_rng(7)\n"
        "tensors = {f't{n}': rng.standard_normal((300, 40 + n)).astype(ml_dtypes.bfloat16) for n in range(9)}\n"
        "metadata = {f'key {n}': 'x' * n for n in {*range(16)}}\n"
        "keys = sorted(metadata, key=hash)\n"  # in another order in each process
        "ptwm.numpy.save_file(tensors, sys.argv[1], {key: metadata[key] for key in keys})\n"
    )
    hashes = set()
    for number in range(8):
        path = tmp_path / str(number)
        environment = {**os.environ, "PYTHONHASHSEED": str(number)}
        subprocess.run([sys.executable, "-c", program, path], check=True, env=environment)
        hashes.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(hashes) == 1
    with TensorIndex(tmp_path / "0") as index:
        assert len(index.metadata()) == 16


# ------------------------------------------------------------------------------------------------- how long things live


@pytest.mark.parametrize("suffix", [".ptwm", ".safetensors"])
@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("framework", ["np", "pt"])
def test_results_survive_everything(tmp_path, framework, backend, suffix, request):
    if framework == "pt":
        request.getfixturevalue("torch")
    array = weights((500, 700))
    path = save(tmp_path / f"m{suffix}", {"x": array, "small": array[:2, :2].copy()})
    file = safe_open(path, framework, backend=backend)
    results = [file.get_tensor("x"), file.get_slice("x")[:], file.get_slice("x")[3:400], file.get_tensors()["x"]]
    small = file.get_tensor("small")
    os.replace(save(tmp_path / f"other{suffix}", {"x": np.zeros((500, 700), np.float32)}), path)
    assert (np.asarray(file.get_tensor("x")) == array).all()  # the file that was opened, not its successor
    path.unlink()
    file.close()
    del file
    gc.collect()
    for result in results:
        rows = slice(3, 400) if len(result) < 500 else slice(None)
        assert (np.asarray(result) == array[rows]).all()
        result[:] = 0
    assert (np.asarray(small) == array[:2, :2]).all()


def save(path, arrays):
    if path.suffix == ".safetensors":
        import safetensors.numpy

        safetensors.numpy.save_file(arrays, path)
    else:
        ptwm.numpy.save_file(arrays, path)
    return path


def test_saving_over_the_file_that_was_loaded(tmp_path, torch):
    import ptwm.torch

    path = tmp_path / "m.ptwm"
    array = weights((300, 300))
    ptwm.numpy.save_file({"x": array}, path)
    for backend in ("mmap", "pread"):
        loaded = ptwm.numpy.load_file(path, backend=backend)
        loaded["x"] += 1
        ptwm.numpy.save_file(loaded, path)
        array += 1
        assert same_bits(ptwm.numpy.load_file(path)["x"], array)
        with safe_open(path, "pt", backend=backend) as file:
            tensor = file.get_tensor("x")
            ptwm.torch.save_file({"x": tensor + 1, "y": file.get_tensor("x")}, path)  # while it is open
            assert torch.equal(file.get_tensor("x"), tensor)
        array += 1
        assert same_bits(ptwm.numpy.load_file(path)["x"], array)
    model = torch.nn.Linear(20, 30)
    ptwm.torch.save_model(model, path)
    ptwm.torch.load_model(model, path)
    ptwm.torch.save_model(model, path)
    assert torch.equal(ptwm.torch.load_file(path)["weight"], model.weight)


@sanitizer_is_different
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc to measure memory")
@pytest.mark.parametrize("suffix", [".ptwm", ".safetensors", ""])
def test_memory_is_flat_over_ten_thousand_files(tmp_path, suffix):
    if suffix:
        path = save(tmp_path / f"m{suffix}", {"x": weights((40, 50)), "y": weights((30,))})
    else:
        path = tmp_path
        save(tmp_path / "model.ptwm", {"x": weights((40, 50)), "y": weights((30,))})

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def rounds(count):
        for _ in range(count):
            with safe_open(path, "np") as file:
                file.get_tensor("x")
                file.get_slice("x")[3:5, ::2]

    rounds(1500)
    before = resident()
    rounds(10_000)
    assert resident() - before < 3 << 20
    assert len(os.listdir("/proc/self/fd")) < 200


# ------------------------------------------------------------------------------------------------- paths of every kind


@pytest.mark.parametrize(
    "name",
    ["with space", "line\nbreak", "tab\t'quotes\"", "ünï ☃", os.fsdecode(b"latin \xe9 \xff"), "-dash", "*"],
    ids=ascii,
)
def test_names_of_every_kind(tmp_path, name, torch, capsys):
    import safetensors.numpy

    import ptwm.torch

    directory = tmp_path / name
    try:
        directory.mkdir()
    except OSError as error:
        pytest.skip(f"this file system does not take the name {name!r}: {error}")
    array = weights((20, 30))
    for path in (directory / f"{name}.ptwm", str(directory / f"{name}.ptwm")):
        ptwm.numpy.save_file({"x": array}, path)
        assert same_bits(ptwm.numpy.load_file(path)["x"], array)
        ptwm.torch.save_file({"x": torch.from_numpy(array)}, path)
        assert torch.equal(ptwm.torch.load_file(path, backend="pread")["x"], torch.from_numpy(array))
        with safe_open(path, "np") as file:
            assert same_bits(file.get_slice("x")[3], array[3])
    content = safetensors.numpy.save({"x": array})
    (directory / f"{name}.safetensors").write_bytes(content)
    assert main(["compress", "-f", "--", str(directory / f"{name}.safetensors")]) == 0
    (directory / f"{name}.safetensors").unlink()
    assert main(["decompress", "--", str(directory / f"{name}.ptwm")]) == 0
    assert (directory / f"{name}.safetensors").read_bytes() == content
    (directory / f"{name}.ptwm").unlink()
    assert main(["compress", "--", str(directory)]) == 0
    assert main(["info", "--", str(tmp_path / f"{name}-ptwm" / f"{name}.ptwm")]) == 0
    output = capsys.readouterr().out
    assert all(line.isprintable() for line in output.splitlines())


def test_links(tmp_path):
    array = weights((20, 30))
    ptwm.numpy.save_file({"x": array}, tmp_path / "real.ptwm")
    (tmp_path / "link.ptwm").symlink_to("real.ptwm")
    (tmp_path / "directory").symlink_to(tmp_path)
    assert same_bits(ptwm.numpy.load_file(tmp_path / "directory" / "link.ptwm")["x"], array)
    ptwm.numpy.save_file({"x": array + 1}, tmp_path / "link.ptwm")
    assert (tmp_path / "link.ptwm").is_symlink()  # what it leads to was replaced
    assert same_bits(ptwm.numpy.load_file(tmp_path / "real.ptwm")["x"], array + 1)
    (tmp_path / "restored").write_bytes(b"old")
    (tmp_path / "to restored").symlink_to("restored")
    assert main(["decompress", str(tmp_path / "link.ptwm"), "-f", "-o", str(tmp_path / "to restored")]) == 0
    assert (tmp_path / "to restored").is_symlink()
    assert same_bits(ptwm.numpy.load_file(tmp_path / "restored")["x"], array + 1)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"not a regular file.*Writer\.to_function") as caught:
        ptwm.numpy.save_file({"x": np.ones(3)}, tmp_path / "pipe")
    assert caught.value.filename == str(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular file"):
        Writer("/dev/null")
    assert not os.path.isfile("/dev/null")
    with pytest.raises((OSError, PtwmError), match="pipe"):
        ptwm.numpy.load_file(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_read_only_directory(tmp_path):
    array = weights((20, 30))
    path = tmp_path / "closed" / "m.ptwm"
    path.parent.mkdir()
    ptwm.numpy.save_file({"x": array}, path)
    path.parent.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if not os.stat(parent).st_mode & 0o001:
            try:
                parent.chmod(os.stat(parent).st_mode | 0o011)
            except OSError as error:
                pytest.skip(f"others cannot be let into {parent}: {error}")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.geteuid() == 0:  # whom permissions do not bind
                os.setuid(65534)
            assert same_bits(ptwm.numpy.load_file(path)["x"], array)
            for target in (path, path.parent / "new.ptwm"):
                with pytest.raises(PermissionError) as caught:
                    ptwm.numpy.save_file({"x": array}, target, threads=1)
                assert caught.value.filename == str(target)
            status = main(["decompress", str(path)]) - 1  # fails with one line
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    path.parent.chmod(0o755)
    assert os.waitstatus_to_exitcode(status) == 0
    assert os.listdir(path.parent) == ["m.ptwm"]


@sanitizer_is_different
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limit of private memory")
def test_a_file_larger_than_memory(tmp_path):
    """Everything that need not hold a whole file works in less memory than it takes; loading it whole is an error."""
    n_tensors, nbytes = 24, 32 << 20
    block = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8).tobytes()
    names = [f"t{n:02}" for n in range(n_tensors)]
    header, begin = "{", 0
    for name in names:
        header += f'"{name}":{{"dtype":"U8","shape":[32,1048576],"data_offsets":[{begin},{begin + nbytes}]}},'
        begin += nbytes
    header = header[:-1] + "}"
    header += " " * (-len(header) % 8)
    path = tmp_path / "m.safetensors"
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header.encode())
        for n in range(n_tensors):
            for row in range(32):
                file.write(block[n + row :] + block[: n + row])
    limited = (
        "import resource, sys\n"
        "import numpy as np, ptwm, ptwm.numpy, ptwm.cli\n"
        "with open('/proc/self/status') as status:\n"
        "    used = next(int(line.split()[1]) << 10 for line in status if line.startswith('VmData'))\n"
        f"limit = used + {300 << 20}\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))\n"
        "plain, packed, restored = sys.argv[1:]\n"
        "threads = ['--threads', '2']\n"
        "assert ptwm.cli.main(['compress', plain, '-o', packed, '--method', 'identity', *threads]) == 0\n"
        "assert ptwm.cli.main(['verify', packed, *threads]) == 0\n"
        "assert ptwm.cli.main(['decompress', packed, '-o', restored, *threads]) == 0\n"
        "for path in (plain, packed):\n"
        "    for backend in ('mmap', 'pread'):\n"
        "        with ptwm.safe_open(path, 'np', backend=backend) as file:\n"
        "            for name in file.keys():\n"
        "                assert file.get_slice(name)[::9, 5].shape == (4,)\n"
        "            assert file.get_tensor('t05').nbytes == 32 << 20\n"
        "try:\n"
        "    ptwm.numpy.load_file(packed)\n"
        "except MemoryError:\n"
        "    print('too large')\n"
    )
    packed, restored = tmp_path / "m.ptwm", tmp_path / "restored"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", limited, path, packed, restored], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "too large"
    assert restored.stat().st_size == path.stat().st_size
    subprocess.run(["cmp", path, restored], check=True)
