"""Directories of models, as the Hugging Face hub has them: compressed, and restored exactly."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ptwm.conversion.compressing import plan_compression
from ptwm.conversion.files import ConversionError, Options, file_state
from ptwm.conversion.restoring import plan_restoration
from ptwm.conversion.steps import Plan, Progress, Silent


def compress_directory(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    options: Options = Options(),
    *,
    max_shard_size: int | None = None,
    overwrite: bool = False,
    remove_source: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Plan:
    """Makes a directory with .ptwm files of one with .safetensors files, at any depth, and copies everything else.

    An index `NAME.safetensors.index.json` becomes `NAME.ptwm.index.json`. What is not .safetensors is copied as it is.
    `decompress_directory` restores the directory exactly, whatever the shards. A run that was interrupted is gone on
    with: files that are there, complete and of the same content are kept. Directories are not locked: one run at a
    time.

    Parameters
    ----------
    source, target
        The directories; `target`'s parent must be there.
    max_shard_size
        The most bytes of tensors, before compression, in a file; None: the shards are kept as they are.
    overwrite
        Whether to make everything anew, over what is there, instead of keeping what is done.
    remove_source
        Whether to remove `source`'s files at the end. Implies `options.verify`: everything has been decoded and
        compared by then.
    dry_run
        Whether to do nothing but to return the plan.

    Returns the plan that was carried out.

    Raises
    ------
    ConversionError
        Something in the directory cannot be converted; files in `target` are no part of the result.
    FileExistsError
        A file in `target` has another content, and not `overwrite`.
    SafetensorsError, OSError
        As from `compress_file`.
    """
    source, target = _check(source, target)
    if remove_source:
        options = Options(options.method, options.chunk, options.threads, options.level, verify=True)
    plan = plan_compression(source, target, options, max_shard_size)
    return _carry_out(plan, overwrite, remove_source, dry_run, progress)


def decompress_directory(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    threads: int | None = None,
    overwrite: bool = False,
    remove_source: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Plan:
    """Restores the directory that `compress_directory` made another of; the parameters and errors are as there.

    Directories with .ptwm files from elsewhere are restored too, with an index as the hub's tools write it. Every
    checksum and hash is checked on the way; with `remove_source` the restored files are read back and compared before.
    """
    source, target = _check(source, target)
    plan = plan_restoration(source, target, threads, verify=remove_source)
    return _carry_out(plan, overwrite, remove_source, dry_run, progress, read_back=True)


def _carry_out(
    plan: Plan,
    overwrite: bool,
    remove_source: bool,
    dry_run: bool,
    progress: Progress | None,
    read_back: bool = False,
) -> Plan:
    if dry_run:
        plan.check()
        return plan
    before = [file_state(path) for path in plan.sources] if remove_source else []
    plan.run(overwrite, progress or Silent())
    if remove_source:
        for step in plan.steps if read_back else ():
            if not step.is_done():
                raise ConversionError(f"{step.target}: differs from what was written; nothing was removed")
        for path, state in zip(plan.sources, before):
            if file_state(path) != state:
                raise ConversionError(f"{path}: was changed meanwhile; nothing was removed")
        plan.remove_sources()
    return plan


def _check(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> tuple[Path, Path]:
    """The paths. OSError or ConversionError unless one is a directory and the other can be one beside it."""
    source, target = Path(source), Path(target)
    if not source.is_dir():
        number = errno.ENOTDIR if os.path.lexists(source) else errno.ENOENT
        raise OSError(number, os.strerror(number), str(source))
    if not target.parent.is_dir():
        raise OSError(errno.ENOENT, "no such directory", str(target.parent))
    if os.path.lexists(target) and not target.is_dir():
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(target))
    inner, outer = os.path.realpath(target), os.path.realpath(source)
    if inner == outer:
        raise ConversionError(f"{target}: is both the source and the target")
    if os.path.commonpath([inner, outer]) in (inner, outer):
        raise ConversionError(f"{target}: neither of {source} and the result may be inside the other")
    return source, target
