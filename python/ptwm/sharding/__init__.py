"""Writing .ptwm files, and models of several of them."""

from ptwm.sharding.index import PtwmIndex
from ptwm.sharding.options import Method
from ptwm.sharding.shards import (
    compress_ptwm_blob,
    plan_shards,
    read_sharded_ptwm,
    shard_filename,
    write_ptwm_shard,
)
from ptwm.sharding.writer import Writer

__all__ = [
    "Method",
    "PtwmIndex",
    "Writer",
    "compress_ptwm_blob",
    "plan_shards",
    "read_sharded_ptwm",
    "shard_filename",
    "write_ptwm_shard",
]
