"""Many small tensors: opening, looking one up, fetching one. Files of made-up values; nothing depends on the model."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import child
from bench.timing import Task, alternate, describe, pinned
from bench.workspace import Options, table

MANY = 10_000
MILLION = 1_000_000
SMALL_NBYTES = 1024
FETCHES = 200  # for each turn of a task; its seconds are for one fetch


def names(n: int) -> Iterator[str]:
    """Names such as a mixture-of-experts model has."""
    parts = ("gate_proj.weight", "up_proj.weight", "down_proj.weight", "gate_proj.weight_scale", "up_proj.weight_scale")
    return (f"model.layers.{i // 500}.mlp.experts.{i // 5 % 100}.{parts[i % 5]}" for i in range(n))


def opening(options: Options) -> dict[str, Any]:
    """Opening a file of 10,000 tensors and looking one up, against safetensors' safe_open."""
    n = MANY // 100 if options.quick else MANY
    paths, failures = _files(options.directory, f"open-{n}", names(n), 128)
    wanted = list(names(n))[n // 2]
    tasks = []
    for kind, path in paths.items():
        tasks.append(Task(kind, partial(_open_and_look_up, _openers()[kind], path, wanted)))
    return {"n_tensors": n, **_run(tasks, options, None, failures)}


def latency(options: Options) -> dict[str, Any]:
    """get_tensor of tensors of 1 KiB (512 bf16 elements) of an open file of 1,000, in random and in file order."""
    n = 100 if options.quick else 1000
    paths, failures = _files(options.directory, f"small-{n}", names(n), SMALL_NBYTES)
    in_order = list(names(n))
    shuffled = random.Random(0).sample(in_order, len(in_order))
    tasks, handles = [], []
    for kind, path in paths.items():
        handle = _openers()[kind](path)
        handles.append(handle)
        for order, all_names in (("random order", shuffled), ("file order", in_order)):
            fetch = partial(_fetch, handle, all_names[: min(FETCHES, n)])
            tasks.append(Task(f"{kind}, {order}", fetch))
    result = _run(tasks, options, SMALL_NBYTES, failures)
    for row in result["rows"]:
        row["seconds"] = [seconds / min(FETCHES, n) for seconds in row["seconds"]]
    for handle in handles:
        handle.__exit__(None, None, None)
    return {"n_tensors": n, **result}


def million(options: Options) -> dict[str, Any]:
    """Opening a file of a million tensors and looking one up, each time in a new process: seconds and memory."""
    n = MILLION // 1000 if options.quick else MILLION
    paths, failures = _files(options.directory, f"million-{n}", (f"t{i}" for i in range(n)), 16)
    wanted = f"t{n // 2}"
    rows = [{"name": kind, **child.measure(f"open {kind}", path, wanted)} for kind, path in paths.items()]
    rows += [{"name": kind, "failure": reason} for kind, reason in failures.items()]
    return {"n_tensors": n, "rows": rows}


def _run(tasks: list[Task], options: Options, nbytes: int | None, failures: dict[str, str]) -> dict[str, Any]:
    with pinned({options.core}):
        result = table(alternate(tasks, options.rounds, options.budget), nbytes)
    result["rows"] += [{"name": kind, "seconds": [], "failure": reason} for kind, reason in failures.items()]
    return result


def _files(directory: Path, stem: str, named: Iterable[str], nbytes: int) -> tuple[dict[str, Path], dict[str, str]]:
    """Files of bf16 tensors of so many bytes, by the way to read them; and which cannot be written, and why."""
    all_names = list(named)
    values = np.random.default_rng(0).standard_normal(len(all_names) * nbytes // 2, np.float32)
    content = memoryview((values.view(np.uint32) >> 16).astype(np.uint16)).cast("B")
    tensors = [(name, content[i * nbytes : (i + 1) * nbytes]) for i, name in enumerate(all_names)]
    paths, failures = {}, {}
    for kind, write in (("ptwm", _write_ptwm), ("safetensors", _write_safetensors)):
        path = directory / f"{stem}.{kind}"
        try:
            write(path, tensors)
            with _openers()[kind](path) as handle:
                handle.get_tensor(tensors[0][0])
        except Exception as error:  # such as safetensors' limit of 100 MB for its header
            failures[kind] = describe(error)
        else:
            paths[kind] = path
    return paths, failures


def _write_ptwm(path: Path, tensors: list[tuple[str, memoryview]]) -> None:
    from ptwm.sharding import write_ptwm_shard

    write_ptwm_shard(path, ((name, data, "BF16", (len(data) // 2,)) for name, data in tensors))


def _write_safetensors(path: Path, tensors: list[tuple[str, memoryview]]) -> None:
    import torch
    from safetensors.torch import save_file

    save_file({name: torch.frombuffer(bytearray(data), dtype=torch.bfloat16) for name, data in tensors}, path)


def _openers() -> dict[str, Callable[[Path], Any]]:
    def open_safetensors(path: Path) -> Any:
        from safetensors import safe_open

        return safe_open(str(path), framework="pt").__enter__()

    def open_ptwm(path: Path) -> Any:
        from ptwm import TensorIndex

        return TensorIndex(path, threads=1).__enter__()

    return {"ptwm": open_ptwm, "safetensors": open_safetensors}


def look_up(handle: Any, name: str) -> Any:
    """One tensor's shape."""
    return handle.entry(name).shape if hasattr(handle, "entry") else tuple(handle.get_slice(name).get_shape())


def _open_and_look_up(opener: Callable[[Path], Any], path: Path, name: str, _: Any = None) -> Any:
    handle = opener(path)
    try:
        return look_up(handle, name)
    finally:
        handle.__exit__(None, None, None)


def open_and_keep(kind: str, path: Path, name: str) -> Any:
    """An open file after a look-up."""
    handle = _openers()[kind](path)
    look_up(handle, name)
    return handle


def _fetch(handle: Any, wanted: list[str], _: Any) -> None:
    for name in wanted:
        handle.get_tensor(name)
