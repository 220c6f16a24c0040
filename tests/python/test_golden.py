"""The golden files of tests/golden, through the package."""

import numpy as np
import pytest
from golden_files import BAD, DIRECTORY, GOOD
from second_decoder.manifest import DTYPES

import ptwm
from ptwm import FormatError, IntegrityError, PtwmError, TensorIndex


def test_index_lists_the_files():
    listed = {file.name for file in GOOD} | {file.name for file in BAD}
    assert len(listed) == len(GOOD) + len(BAD)
    assert listed == {path.name for path in DIRECTORY.iterdir()} - {"index.tsv"}


def test_total_is_small():
    assert sum(path.stat().st_size for path in DIRECTORY.iterdir()) < 1_500_000


@pytest.mark.parametrize("golden", GOOD, ids=lambda golden: golden.name)
@pytest.mark.parametrize("backend", ["mmap", "pread", "buffer"])
def test_good(golden, backend):
    data = golden.read()
    path = DIRECTORY / golden.name
    with TensorIndex.from_buffer(data) if backend == "buffer" else TensorIndex(path, backend=backend) as index:
        assert index.names() == [tensor.name for tensor in golden.tensors]
        index.verify()
        for tensor in golden.tensors:
            assert tensor.is_like(index.get_bytes(tensor.name, check="full"))


@pytest.mark.parametrize("golden", GOOD, ids=lambda golden: golden.name)
def test_entries_and_slices(golden):
    with TensorIndex(DIRECTORY / golden.name) as index:
        for tensor in golden.tensors:
            entry = index.entry(tensor.name)
            assert entry.nbytes == tensor.nbytes
            if tensor.dtype not in DTYPES:
                continue
            assert (entry.dtype, tuple(entry.shape)) == (DTYPES[tensor.dtype][0], tensor.shape)
            if max(tensor.shape, default=0) < 1 << 31 and len(tensor.shape) > 0:
                array = index.get_array(tensor.name)
                n = tensor.shape[0]
                rows = index.get_slice(tensor.name)[n // 3 : n // 3 + n // 2]
                np.testing.assert_array_equal(rows.view(np.uint8), array[n // 3 : n // 3 + n // 2].view(np.uint8))


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_bad(bad, tmp_path):
    expected = IntegrityError if bad.status in ("PTWM_ERR_CHECKSUM", "PTWM_ERR_HASH") else FormatError
    path = DIRECTORY / bad.name
    bad.read()
    if bad.where == "open":
        with pytest.raises(PtwmError) as caught:
            TensorIndex(path)
    else:
        with TensorIndex(path) as index:
            if bad.where == "decode":
                with pytest.raises(expected):
                    index.get_bytes(index.names()[bad.tensor])
            else:
                index.get_bytes(index.names()[0])
            with pytest.raises(PtwmError) as caught:
                index.verify()
    assert type(caught.value) is expected
    assert bad.name in str(caught.value)


def test_extras():
    with TensorIndex(DIRECTORY / "metadata.ptwm") as index:
        assert index.metadata() == {"format": "pt", "licence": "MIT"}
    with ptwm.safe_open(DIRECTORY / "metadata.ptwm", framework="np") as file:
        assert file.metadata() == {"format": "pt", "licence": "MIT"}
