"""MiniLM-L6 as published and cast to the other float types: sizes that the format must reach, and the bytes back."""

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from real_model import real_model  # noqa: F401 (a fixture)

from ptwm.cli import main
from ptwm.random_access import TensorIndex
from ptwm.sharding import Method, compress_ptwm_blob


def cast(array, variant):
    """A weight in the variant's type; integers stay as they are."""
    if array.dtype != np.float32 or variant == "fp32":
        return array
    if variant == "bf16":
        return array.astype(ml_dtypes.bfloat16)
    if variant == "fp16":
        return array.astype(np.float16)
    # Rows scaled to the largest value of the type, as quantisers do.
    largest = np.maximum(np.abs(array).max(axis=-1, keepdims=True), 1e-12)
    return (array / largest * 448).astype(ml_dtypes.float8_e4m3fn)


@pytest.fixture(scope="session", params=["fp32", "bf16", "fp16", "fp8"])
def variant(request, real_model, tmp_path_factory):  # noqa: F811
    """(name, path of a .safetensors file)."""
    arrays = {name: cast(array, request.param) for name, array in safetensors.numpy.load_file(real_model).items()}
    path = tmp_path_factory.mktemp("real") / f"{request.param}.safetensors"
    if request.param == "fp32":
        path.write_bytes(real_model.read_bytes())
    else:
        # safetensors' numpy side does not write ml_dtypes.
        header, data, begin = [], [], 0
        names = {"bfloat16": "BF16", "float16": "F16", "float8_e4m3fn": "F8_E4M3", "int64": "I64", "float32": "F32"}
        for name, array in arrays.items():
            shape = ",".join(map(str, array.shape))
            end = begin + array.nbytes
            header.append(
                f'"{name}":{{"dtype":"{names[array.dtype.name]}","shape":[{shape}],"data_offsets":[{begin},{end}]}}'
            )
            data.append(array.tobytes())
            begin = end
        text = ("{" + ",".join(header) + "}").encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data))
    return request.param, path


LIMITS = {"bf16": 0.6590, "fp16": 0.8460, "fp32": 0.8155, "fp8": 0.8165}


def test_it_becomes_small_and_comes_back(variant, tmp_path):
    name, path = variant
    packed, restored = tmp_path / "model.ptwm", tmp_path / "model.safetensors"
    assert main(["compress", str(path), "-o", str(packed)]) == 0
    assert main(["verify", str(packed)]) == 0
    assert main(["decompress", str(packed), "-o", str(restored)]) == 0
    assert restored.read_bytes() == path.read_bytes()
    assert packed.stat().st_size <= LIMITS[name] * path.stat().st_size


def test_methods(variant):
    name, path = variant
    largest = next(t for t in sorted(safetensors_tensors(path), key=lambda t: len(t[1])) if len(t[1]) > 300_000)
    sizes = {method: len(compress_ptwm_blob([largest], method_hint=method)) for method in Method}
    others = [size for method, size in sizes.items() if method != Method.MICROSCALE]
    assert sizes[Method.MICROSCALE] <= min(others) * 1.001 + 64
    with TensorIndex.from_buffer(compress_ptwm_blob([largest], method_hint=Method.HUFFMAN)) as index:
        codecs = {codec for plane in index.describe(largest[0])["planes"] for codec in plane["codecs"]}
        assert "huffman" in codecs and codecs <= {"huffman", "identity"}


def safetensors_tensors(path):
    """(name, raw, dtype, shape) of a .safetensors file."""
    from ptwm._safetensors import SafetensorsFile

    with SafetensorsFile(path) as file:
        return [(t.name, bytes(file.data(t.begin, t.end)), t.dtype, t.shape) for t in file.tensors]
