"""Fixtures that the Python tests share."""

import os

import hypothesis
import ml_dtypes
import numpy as np
import pytest

# The same examples each time, so that a failure is the change's; HYPOTHESIS_PROFILE=default looks for new ones.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# For each dtype of the format: its safetensors name, and its numpy or ml_dtypes scalar type.
SCALAR_TYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "I16": np.int16,
    "U16": np.uint16,
    "I32": np.int32,
    "U32": np.uint32,
    "I64": np.int64,
    "U64": np.uint64,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F32": np.float32,
    "F64": np.float64,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F4": ml_dtypes.float4_e2m1fn,
    "F6_E2M3": ml_dtypes.float6_e2m3fn,
    "F6_E3M2": ml_dtypes.float6_e3m2fn,
    "C64": np.complex64,
    "C128": np.complex128,
    "I4": ml_dtypes.int4,
    "U4": ml_dtypes.uint4,
    "I2": ml_dtypes.int2,
    "U2": ml_dtypes.uint2,
    "I1": ml_dtypes.int1,
    "U1": ml_dtypes.uint1,
    "F8_E4M3_IEEE": ml_dtypes.float8_e4m3,
    "F8_E3M4": ml_dtypes.float8_e3m4,
    "F8_E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    **{
        name: getattr(ml_dtypes, scalar)  # new in ml_dtypes 0.6, the last in 0.7
        for name, scalar in (("C32", "complex32"), ("BC32", "bcomplex32"), ("F8_E5M3FNU", "float8_e5m3fnu"))
        if hasattr(ml_dtypes, scalar)
    },
}
# Those whose elements take less than a byte in files, and how many bits they take.
PACKED = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "I4": 4, "U4": 4, "I2": 2, "U2": 2, "I1": 1, "U1": 1}


def same_bits(left, right):
    """Whether two arrays have the same dtype, shape and bytes; NaNs of equal bits are equal."""
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def weights(shape, scalar_type=np.float32, seed=0):
    """Weight-like values: normal, with a scale for each row. Every bit pattern occurs for types of 8 bits or fewer."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(scalar_type)
    if dtype.name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    packed = next((bits for name, bits in PACKED.items() if np.dtype(SCALAR_TYPES[name]) == dtype), None)
    if packed is not None:
        return rng.integers(0, 1 << packed, shape).astype(np.uint8).view(dtype)
    if dtype.name.startswith(("int", "uint")):
        low, high = (-60, 60) if dtype.kind == "i" else (0, 120)
        return rng.integers(low, high, shape).astype(dtype)
    if dtype.itemsize == 1:
        return rng.integers(0, 256, shape).astype(np.uint8).view(dtype)
    values = rng.standard_normal(shape) * 0.02
    if "complex" in dtype.name:
        values = values + 1j * rng.standard_normal(shape)
    return np.asarray(values).astype(dtype)


@pytest.fixture
def arrays():
    """A small tensor of each dtype that numpy and ml_dtypes have, and tensors of unusual shapes and names."""
    tensors = {
        name: weights((6, 8), scalar_type, seed) for seed, (name, scalar_type) in enumerate(SCALAR_TYPES.items())
    }
    tensors["large"] = weights((700, 1024), np.float32)
    tensors["large.bf16"] = weights((1200, 640), ml_dtypes.bfloat16)
    tensors["scalar"] = np.array(2.5, np.float32)
    tensors["empty"] = np.zeros((3, 0, 4), np.float16)
    tensors[""] = np.arange(5, dtype=np.int64)
    tensors["nul\0inside"] = np.arange(6, dtype=np.uint8)
    tensors["ünïcode ☃ 🎈"] = weights((2, 3, 4, 5))
    return tensors


@pytest.fixture
def torch():
    """The torch module."""
    return pytest.importorskip("torch", reason="torch cannot be imported")


@pytest.fixture
def saved(arrays, tmp_path):
    """The path of a file that holds `arrays`."""
    import ptwm.numpy

    path = tmp_path / "model.ptwm"
    ptwm.numpy.save_file(arrays, path, metadata={"made by": "tests"})
    return path


def errors_on_a_terminal(command, columns):
    """A command's exit status, and what it writes to a standard error that is a terminal."""
    import fcntl
    import pty
    import struct
    import subprocess
    import termios

    terminal, stderr = pty.openpty()
    fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen(command, stderr=stderr, stdout=subprocess.DEVNULL) as process:
        os.close(stderr)
        seen = b""
        while True:
            try:
                block = os.read(terminal, 65536)
            except OSError:  # EIO: nobody has it open any more
                break
            if not block:
                break
            seen += block
    os.close(terminal)
    return process.returncode, seen
