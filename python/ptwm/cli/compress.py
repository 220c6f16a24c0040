"""`ptwm compress`: .safetensors files to .ptwm files."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass

from ptwm._files import publish, temporary_beside
from ptwm._safetensors import SafetensorsError, SafetensorsFile
from ptwm.cli import common
from ptwm.cli.decompress import restore
from ptwm.random_access import TensorIndex
from ptwm.sharding import Method, Writer
from ptwm.sharding.writer import MAX_CHUNK_NBYTES, MIN_CHUNK_NBYTES

METHODS = [method.name.lower() for method in Method]


@dataclass(frozen=True)
class Options:
    """How to compress; the defaults are the library's."""

    method: str = "microscale"
    chunk: int | None = None
    threads: int | None = None
    level: int | None = None
    verify: bool = False


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "compress",
        help="compress .safetensors files",
        description="Compress .safetensors files. `ptwm decompress` gives them back byte for byte.",
    )
    parser.add_argument("sources", metavar="FILE.safetensors", nargs="+")
    parser.add_argument("-o", "--output", metavar="DST", help="file or directory to write; default: beside the source")
    parser.add_argument("-f", "--force", action="store_true", help="replace existing files")
    parser.add_argument("--verify", action="store_true", help="decode and compare everything before the file appears")
    parser.add_argument(
        "--method", choices=METHODS, default="microscale", help="how to code; the default chooses what suits the data"
    )
    parser.add_argument("--chunk", metavar="SIZE", type=_chunk, help="raw bytes decoded as one piece: 4K to 64M")
    parser.add_argument("--threads", metavar="N", type=common.parse_count, help="default: all CPUs")
    parser.add_argument("--level", metavar="N", type=int, help="effort")
    parser.set_defaults(run=run)


def _chunk(text: str) -> int:
    nbytes = common.parse_size(text)
    if not MIN_CHUNK_NBYTES <= nbytes <= MAX_CHUNK_NBYTES:
        raise argparse.ArgumentTypeError(f"{text}: a chunk has 4K to 64M")
    return nbytes


def run(args: argparse.Namespace) -> int:
    options = Options(args.method, args.chunk, args.threads, args.level, args.verify)
    for source, target in common.plan_targets(args.sources, args.output, (".safetensors", ".ptwm"), args.force):
        start = time.perf_counter()
        raw = compress_file(source, target, options)
        seconds = time.perf_counter() - start
        stored = os.stat(target).st_size
        ratio = common.human_ratio(stored, raw)
        common.say(
            f"{target}: {common.human_size(raw)} -> {common.human_size(stored)} ({ratio}), "
            f"{seconds:.1f} s, {common.human_rate(raw, seconds)}" + (", verified" if options.verify else "")
        )
    return 0


def compress_file(source_path: str, target: str, options: Options = Options()) -> int:
    """Compress one .safetensors file and return its length. The target appears when it is complete."""
    with _open_source(source_path) as source:
        if options.verify:
            with temporary_beside(target) as temporary:
                _write(source, temporary, options)
                _compare(source, temporary, options)
                publish(temporary, target)
        else:
            _write(source, target, options)
        return source.nbytes


def _write(source: SafetensorsFile, target: str, options: Options) -> None:
    method = Method[options.method.upper()]
    with (
        common.progress(source.header.data_nbytes, os.path.basename(source.path)) as advance,
        Writer(
            target,
            metadata=source.metadata or None,
            threads=options.threads,
            level=options.level,
            streaming_chunk=options.chunk,
            _source=source.source_entry(),
        ) as writer,
    ):
        writer._add_many(
            ((t.name, source.data(t.begin, t.end), t.dtype, t.shape, None, method) for t in source.tensors), advance
        )


def _compare(source: SafetensorsFile, path: str, options: Options) -> None:
    """Check the file at path, and that it restores the source."""
    with (
        TensorIndex(path, threads=options.threads) as index,
        common.progress(source.header.data_nbytes, "verifying") as advance,
    ):
        index.verify()
        header, tensors, blocks = restore(index)
        same = header == source.header_bytes and tensors == source.tensors
        position = 0
        for block in blocks:
            same = same and _equal(block, source.data(position, position + len(block)))
            position += len(block)
            advance(len(block))
    if not same:
        raise common.Failure(f"{source.path}: the compressed file does not restore it; nothing was written")


def _equal(a: memoryview, b: memoryview) -> bool:
    import numpy as np  # compares at memory speed; memoryviews compare byte by byte

    return np.array_equal(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8))


# ------------------------------------------------------------------------------------------- what is not .safetensors

_PICKLE = "load it with torch.load(..., weights_only=True) and save the tensors with ptwm.torch.save_file"
_ARRAYS = "load the arrays and save them with ptwm.numpy.save_file"
_HINTS = {
    "ptwm": "is a .ptwm file already; `ptwm decompress` restores it",
    "pytorch": f"a PyTorch pickle, not .safetensors; {_PICKLE}",
    "gguf": "a GGUF file, not .safetensors; compress the .safetensors files that it was made from",
    "numpy": f"a NumPy file, not .safetensors; {_ARRAYS}",
    "hdf5": f"an HDF5 file, not .safetensors; {_ARRAYS}",
    "onnx": f"an ONNX file, not .safetensors; {_ARRAYS}",
    "index": "an index of shards; name the .safetensors files that it lists",
}
_MAGICS = {b"\xd7ptwm\r\n\x1a": "ptwm", b"GGUF": "gguf", b"\x93NUMPY": "numpy", b"\x89HDF": "hdf5"}
_SUFFIXES = {
    ".bin": "pytorch", ".pt": "pytorch", ".pth": "pytorch", ".ckpt": "pytorch", ".pkl": "pytorch", ".gguf": "gguf",
    ".npy": "numpy", ".npz": "numpy", ".h5": "hdf5", ".hdf5": "hdf5", ".onnx": "onnx", ".json": "index",
}  # fmt: skip


def _open_source(path: str) -> SafetensorsFile:
    """Open a .safetensors file; if it is something else, say what to do with it."""
    try:
        return SafetensorsFile(path)
    except SafetensorsError:
        kind = _foreign_kind(path)
        if kind is None:
            raise
        raise common.Failure(f"{path}: {_HINTS[kind]}") from None


def _foreign_kind(path: str) -> str | None:
    with open(path, "rb") as file:
        start = file.read(16)
    for magic, kind in _MAGICS.items():
        if start.startswith(magic):
            return kind
    return _SUFFIXES.get(os.path.splitext(path)[1].lower())
