"""`ptwm decompress`: .ptwm files to the .safetensors files that they came from."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator

from ptwm._safetensors import Tensor, restorable_header, restorable_tensors, write_file
from ptwm.cli import common
from ptwm.random_access import TensorIndex

# Tensors are decoded together up to this size, so that small ones that share a chunk decode it once.
BATCH_NBYTES = 32 << 20


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "decompress",
        help="restore .safetensors files",
        description="Restore .safetensors files byte for byte, checking every checksum and hash on the way.",
    )
    parser.add_argument("sources", metavar="FILE.ptwm", nargs="+")
    parser.add_argument("-o", "--output", metavar="DST", help="file or directory to write; default: beside the source")
    parser.add_argument("-f", "--force", action="store_true", help="replace existing files")
    parser.add_argument("--threads", metavar="N", type=common.parse_count, help="default: all CPUs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    for source, target in common.plan_targets(args.sources, args.output, (".ptwm", ".safetensors"), args.force):
        start = time.perf_counter()
        raw = decompress_file(source, target, args.threads)
        seconds = time.perf_counter() - start
        common.say(f"{target}: {common.human_size(raw)}, {seconds:.1f} s, {common.human_rate(raw, seconds)}")
    return 0


def decompress_file(source: str, target: str, threads: int | None = None) -> int:
    """Restore one file and return its length. The target appears when it is complete and all checks have passed."""
    with TensorIndex(source, threads=threads) as index:
        header, tensors, blocks = restore(index)
        total = sum(tensor.nbytes for tensor in tensors)
        with common.progress(total, os.path.basename(source)) as advance:
            return write_file(target, header, _counted(blocks, advance))


def restore(index: TensorIndex) -> tuple[bytes, list[Tensor], Iterator[memoryview]]:
    """A file's original header, its tensors in the order of their data, and that data, checked, block after block.

    Each block is valid until the next one is asked for.
    """
    header = restorable_header(index)
    tensors = restorable_tensors(index, header)
    return header, tensors, _blocks(index, tensors)


def _blocks(index: TensorIndex, tensors: list[Tensor]) -> Iterator[memoryview]:
    buffer = memoryview(bytearray())
    for batch in _batches(tensors):
        begin, end = batch[0].begin, batch[-1].end
        if len(buffer) < end - begin:
            buffer = memoryview(bytearray(end - begin))
        index.get_many_into({t.name: buffer[t.begin - begin : t.end - begin] for t in batch}, check="full")
        yield buffer[: end - begin]


def _batches(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours that have up to BATCH_NBYTES together, or single tensors that have more. Empty ones are left out."""
    batch: list[Tensor] = []
    for tensor in tensors:
        if batch and tensor.end - batch[0].begin > BATCH_NBYTES:
            yield batch
            batch = []
        if tensor.nbytes:
            batch.append(tensor)
    if batch:
        yield batch


def _counted(blocks: Iterator[memoryview], advance: Callable[[int], object]) -> Iterator[memoryview]:
    for block in blocks:
        yield block
        advance(len(block))
