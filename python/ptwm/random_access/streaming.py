"""Decoding ahead of whoever consumes the tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ptwm.random_access.records import Record

if TYPE_CHECKING:
    from concurrent.futures import Future

    import torch

    Decode = Callable[[Sequence[Record]], list[torch.Tensor]]

# Tensors are decoded together up to this size, and while one batch is consumed the next is decoded.
BATCH_NBYTES = 64 << 20


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Groups of consecutive tensors of at most BATCH_NBYTES, or of one that is larger."""
    batch: list[Record] = []
    nbytes = 0
    for record in records:
        if batch and nbytes + record.nbytes > BATCH_NBYTES:
            yield batch
            batch, nbytes = [], 0
        batch.append(record)
        nbytes += record.nbytes
    if batch:
        yield batch


def decode_ahead(records: Sequence[Record], decode: Decode) -> Iterator[tuple[Record, torch.Tensor]]:
    """Each record with its tensor, in order. At most two batches of tensors are alive here."""
    from concurrent.futures import ThreadPoolExecutor  # here, for a light import of ptwm

    with ThreadPoolExecutor(1, thread_name_prefix="ptwm-stream") as executor:
        waiting: tuple[list[Record], Future[list[torch.Tensor]]] | None = None
        for batch in batches(records):
            ready, waiting = waiting, None
            results = _results(*ready, decode) if ready else iter(())
            # Before the next batch is begun, the one that is ready must be; so there are never three.
            first = next(results, None)
            waiting = (batch, executor.submit(decode, batch))
            if first is not None:
                yield first
                del first
                yield from results
        if waiting:
            yield from _results(*waiting, decode)


def _results(
    batch: list[Record], future: Future[list[torch.Tensor]], decode: Decode
) -> Iterator[tuple[Record, torch.Tensor]]:
    """A decoded batch. If it failed, one by one, so that the error comes at the tensor that it is about."""
    try:
        tensors = future.result()
    except Exception:
        for record in batch:
            yield record, decode([record])[0]
        return
    # Popped from the future's own list, so that what the consumer drops is freed.
    tensors.reverse()
    for record in batch:
        yield record, tensors.pop()
