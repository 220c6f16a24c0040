"""`ptwm demo`: the whole round trip on a made-up checkpoint, with what it costs measured on this machine."""

from __future__ import annotations

import argparse
import filecmp
import os
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ptwm._library import lib
from ptwm._safetensors import SafetensorsFile
from ptwm._version import __version__
from ptwm.cli import common, info, units
from ptwm.conversion import compress_file, decompress_file
from ptwm.random_access import TensorIndex

if TYPE_CHECKING:
    import numpy as np

_FILES = ("model.safetensors", "model.ptwm", "restored.safetensors")
_TENSOR = "layers.0.mlp.up.weight"  # fetched whole; the largest BF16 matrix but the embedding
_SLICED = "head.weight"  # FP32, which numpy has a type for
_ROWS = slice(700, 710)


class Measured(NamedTuple):
    """A step of the demo: what it did, the raw bytes that it dealt with, and the seconds that it took."""

    what: str
    nbytes: int
    seconds: float


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="try everything on an example",
        description="Make an example checkpoint in a temporary directory, compress it, look into it, restore it and "
        "compare. Takes some seconds and 400 MB of disk.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    print(f"ptwm {__version__} on {units.plural(lib.ptwm_usable_cpus(), 'CPU')}")
    print("The example: random numbers shaped like trained weights, every row and column with a scale of its own.")
    with tempfile.TemporaryDirectory(prefix="ptwm-demo-") as directory:
        steps = _round_trip(directory)
    _print_speeds(steps)
    print("\nEvery byte was compared with the original. Real checkpoints differ: try `ptwm compress` on yours.")
    return 0


def _round_trip(directory: str) -> list[Measured]:
    from ptwm.cli.example import write_checkpoint  # needs numpy, which most commands do not load

    original, packed, restored = (os.path.join(directory, name) for name in _FILES)
    raw = write_checkpoint(original)

    _show_command("ptwm compress model.safetensors")
    seconds = _timed(lambda: compress_file(original, packed))
    stored = os.stat(packed).st_size
    steps = [Measured("compress, onto the disk", raw, seconds)]
    print(f"model.ptwm: {units.human_size(raw)} -> {units.human_size(stored)} ({units.human_ratio(stored, raw)})")

    with SafetensorsFile(original) as source, TensorIndex(packed) as index:
        _show_command("ptwm info model.ptwm")
        for line in info.tensor_table(info.describe_file(index)["tensors"]):
            print(line)
        steps += _fetch(index, source)

        _show_command("ptwm verify model.ptwm")
        steps.append(Measured("verify", raw, _timed(index.verify)))
        print("ok")

    _show_command("ptwm decompress model.ptwm -o restored.safetensors && cmp model.safetensors restored.safetensors")
    seconds = _timed(lambda: decompress_file(packed, restored))
    steps.append(Measured("decompress, onto the disk", raw, seconds))
    if not filecmp.cmp(original, restored, shallow=False):
        raise common.Failure("the restored file differs from the original: please report this")
    print("identical")
    return steps


def _fetch(index: TensorIndex, source: SafetensorsFile) -> list[Measured]:
    """Decode one tensor, some rows of another one, and all tensors; compare them with the source."""
    import numpy as np

    originals = {
        tensor.name: np.frombuffer(source.data(tensor.begin, tensor.end), np.uint8) for tensor in source.tensors
    }
    buffers = {name: np.ones_like(data) for name, data in originals.items()}  # touched: no page faults while timing

    print('\n>>> index = ptwm.TensorIndex("model.ptwm")')
    one = _best_of(lambda: index.get_into(_TENSOR, buffers[_TENSOR]))
    print(f'>>> index.get_into("{_TENSOR}", buffer)  # {units.human_size(len(buffers[_TENSOR]))} in {_human_time(one)}')
    some = _best_of(lambda: index.get_slice(_SLICED)[_ROWS])
    rows = index.get_slice(_SLICED)[_ROWS]
    shape = index.entry(_SLICED).shape or ()
    print(
        f'>>> index.get_slice("{_SLICED}")[{_ROWS.start}:{_ROWS.stop}]  '
        f"# {len(rows)} of {shape[0]} rows in {_human_time(some)}"
    )
    _check(_SLICED, rows, originals[_SLICED].view("<f4").reshape(shape)[_ROWS])

    def decode_all() -> None:
        for name, buffer in buffers.items():
            index.get_into(name, buffer)

    def copy_all() -> None:
        for name, buffer in buffers.items():
            buffer[:] = originals[name]

    everything = _best_of(decode_all)
    for name, buffer in buffers.items():
        _check(name, buffer, originals[name])
    total = sum(map(len, buffers.values()))
    return [
        Measured("memcpy, one thread", total, _best_of(copy_all)),
        Measured("decode all tensors", total, everything),
        Measured("decode one tensor", len(buffers[_TENSOR]), one),
    ]


def _check(name: str, decoded: np.ndarray, expected: np.ndarray) -> None:
    if decoded.shape != expected.shape or decoded.tobytes() != expected.tobytes():
        raise common.Failure(f"the tensor {name} differs from the original: please report this")


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _best_of(action: Callable[[], object], runs: int = 5, limit: float = 1.0) -> float:
    """The shortest of several runs, which together take about so many seconds at most."""
    times: list[float] = []
    while len(times) < runs and sum(times) < limit:
        times.append(_timed(action))
    return min(times)


def _human_time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.2g} ms"


def _show_command(command: str) -> None:
    print(f"\n$ {command}", flush=True)


def _print_speeds(steps: list[Measured]) -> None:
    """A table of the steps with their speeds in raw bytes, absolute and relative to memcpy."""
    memcpy = next(step for step in steps if step.what.startswith("memcpy"))
    rows = [["measured just now", "raw", "time", "speed", "x memcpy"]]
    for step in sorted(steps, key=lambda step: step.seconds / step.nbytes):
        ratio = (memcpy.seconds / memcpy.nbytes) / (step.seconds / step.nbytes)
        rows.append(
            [
                step.what,
                units.human_size(step.nbytes),
                _human_time(step.seconds),
                units.human_rate(step.nbytes, step.seconds),
                f"{ratio:.2g}",
            ]
        )
    print()
    for line in units.table(rows, "<>>>>"):
        print(line)
