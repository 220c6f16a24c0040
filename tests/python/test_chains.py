"""Chains and the STANDARD table."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptwm
from ptwm import STANDARD, Chain, FormatError, PtwmError
from ptwm.sharding import compress_ptwm_blob

LEGAL = [
    (Chain(), b""),
    (Chain.delta(1), b"\x01\x01"),
    (Chain.delta(8) + Chain.bytes(8), b"\x01\x08\x02\x08"),
    (Chain.bytes(16), b"\x02\x10"),
    (Chain.label(2, 6, 9), b"\x03\x02\x06\x09"),
    (Chain.label(0, 0, 4), b"\x03\x00\x00\x04"),
    (Chain.delta(2) + Chain.delta(2) + Chain.label(8, 4, 11), b"\x01\x02\x01\x02\x03\x08\x04\x0b"),
]


@pytest.mark.parametrize(("chain", "wire"), LEGAL)
def test_wire_bytes(chain, wire):
    assert chain.to_bytes() == wire
    assert Chain.from_bytes(wire) == chain
    assert Chain.from_bytes(memoryview(wire)) == chain
    assert hash(Chain.from_bytes(wire)) == hash(chain)
    assert eval(repr(chain), {"Chain": Chain}) == chain


def test_repr_is_readable():
    assert repr(Chain.delta(2) + Chain.label(2, 6, 9)) == "Chain.delta(2) + Chain.label(2, 6, 9)"
    assert repr(Chain()) == "Chain()"


def test_comparison():
    assert Chain.delta(2) != Chain.delta(4)
    assert Chain.bytes(2) != b"\x02\x02"
    assert len({Chain.bytes(2), Chain.bytes(2), Chain.bytes(4)}) == 2


def test_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Chain.delta(2).steps = ()


def test_adding_something_else():
    with pytest.raises(TypeError):
        Chain.delta(2) + b"\x02\x02"


@pytest.mark.parametrize(
    "build",
    [
        lambda: Chain.delta(3),
        lambda: Chain.delta(0),
        lambda: Chain.delta(-1),
        lambda: Chain.delta(257),
        lambda: Chain.bytes(1),
        lambda: Chain.bytes(17),
        lambda: Chain.label(3, 0, 4),
        lambda: Chain.label(2, 0, 0),
        lambda: Chain.label(2, 0, 16),
        lambda: Chain.label(2, 8, 9),
        lambda: Chain.label(1, 4, 5),
        lambda: Chain.label(0, 1, 4),
        lambda: Chain.bytes(2) + Chain.delta(2),
        lambda: Chain.label(2, 6, 9) + Chain.bytes(2),
        lambda: Chain((("delta", 1),) * 9),
        lambda: Chain((("unknown", 1),)),
        lambda: Chain((("delta", 1, 2),)),
        lambda: Chain((("label", 2, 6),)),
    ],
)
def test_illegal_when_built(build):
    with pytest.raises(ValueError) as caught:
        build()
    assert not isinstance(caught.value, PtwmError)
    assert str(caught.value)


@pytest.mark.parametrize(
    "wire",
    [b"\x01", b"\x01\x03", b"\x00", b"\x04\x01", b"\x03\x02\x06", b"\x02\x02\x02\x02", b"\x01\x01" * 9, b"\xff" * 50],
)
def test_illegal_when_read(wire):
    with pytest.raises(FormatError):
        Chain.from_bytes(wire)


def test_from_bytes_of_something_else():
    with pytest.raises(TypeError):
        Chain.from_bytes("delta")


@given(st.binary(max_size=24))
def test_from_bytes_of_anything(wire):
    try:
        chain = Chain.from_bytes(wire)
    except FormatError:
        return
    assert chain.to_bytes() == wire


def test_standard_table():
    assert len(STANDARD) == len(list(STANDARD)) == 35
    for name, chains in STANDARD.items():
        assert chains, name
        assert all(isinstance(chain, Chain) for chain in chains)
        assert len(set(chains)) == len(chains)
    assert STANDARD["bfloat16"] == STANDARD["BF16"] == STANDARD[ml_dtypes.bfloat16]
    assert Chain.label(2, 6, 9) in STANDARD["BF16"]
    assert STANDARD[None]
    assert "float32" in STANDARD
    assert "nonsense" not in STANDARD
    with pytest.raises(KeyError):
        STANDARD["nonsense"]
    with pytest.raises(TypeError):
        STANDARD["F32"] = ()


def test_standard_chains_are_accepted():
    values = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    for name, dtype in (("float32", np.float32), ("bfloat16", ml_dtypes.bfloat16), ("int8", np.int8)):
        data = values.astype(dtype)
        chains = [chain.to_bytes() for chain in STANDARD[name]]
        blob = compress_ptwm_blob([("x", data, dtype, data.shape)], [chains])
        assert blob == compress_ptwm_blob([("x", data, dtype, data.shape)])
        with ptwm.TensorIndex.from_buffer(blob) as index:
            assert index.get_bytes("x") == data.tobytes()
            assert eval(index.describe("x")["chain"], {"Chain": Chain}) in STANDARD[name]


@pytest.mark.parametrize(("chain", "wire"), LEGAL)
@pytest.mark.parametrize("method", list(ptwm.Method))
def test_every_chain_is_lossless(chain, wire, method):
    rng = np.random.default_rng(len(wire))
    data = (rng.standard_normal(48 * 1024) * 3).astype(np.float16).tobytes()
    blob = compress_ptwm_blob([("x", data, None, None)], [[wire]], method)
    with ptwm.TensorIndex.from_buffer(blob) as index:
        assert index.get_bytes("x") == data
        if method != ptwm.Method.IDENTITY:
            assert index.describe("x")["chain"] == repr(chain)


def test_chain_that_does_not_fit():
    with pytest.raises(ValueError) as caught:
        compress_ptwm_blob([("odd", b"12345", None, None)], [[Chain.delta(2).to_bytes()]])
    assert "odd" in str(caught.value)


def test_smallest_candidate_wins():
    ramp = np.arange(0, 400_000, 7, dtype=np.uint32)
    candidates = [Chain(), Chain.bytes(4), Chain.delta(4) + Chain.bytes(4)]

    def blob(chains):
        return compress_ptwm_blob([("ramp", ramp, "uint32", ramp.shape)], [chains])

    best = blob(candidates)
    assert len(best) == min(len(blob([chain])) for chain in candidates)
    with ptwm.TensorIndex.from_buffer(best) as index:
        assert index.describe("ramp")["chain"] == repr(candidates[2])
