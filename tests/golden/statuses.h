/*
 * The names of statuses, as the index of golden files has them.
 */
#ifndef STATUSES_H
#define STATUSES_H

#include "ptwm.h"

static const char *const golden_status_names[] = {
    [PTWM_OK] = "PTWM_OK",
    [PTWM_ERR_ARGUMENT] = "PTWM_ERR_ARGUMENT",
    [PTWM_ERR_MEMORY] = "PTWM_ERR_MEMORY",
    [PTWM_ERR_IO] = "PTWM_ERR_IO",
    [PTWM_ERR_NOT_PTWM] = "PTWM_ERR_NOT_PTWM",
    [PTWM_ERR_FOREIGN] = "PTWM_ERR_FOREIGN",
    [PTWM_ERR_VERSION] = "PTWM_ERR_VERSION",
    [PTWM_ERR_TRUNCATED] = "PTWM_ERR_TRUNCATED",
    [PTWM_ERR_TRAILING] = "PTWM_ERR_TRAILING",
    [PTWM_ERR_FEATURE] = "PTWM_ERR_FEATURE",
    [PTWM_ERR_MANIFEST] = "PTWM_ERR_MANIFEST",
    [PTWM_ERR_DUPLICATE_NAME] = "PTWM_ERR_DUPLICATE_NAME",
    [PTWM_ERR_SEGMENT] = "PTWM_ERR_SEGMENT",
    [PTWM_ERR_CHAIN] = "PTWM_ERR_CHAIN",
    [PTWM_ERR_CODEC] = "PTWM_ERR_CODEC",
    [PTWM_ERR_PLANE] = "PTWM_ERR_PLANE",
    [PTWM_ERR_CHECKSUM] = "PTWM_ERR_CHECKSUM",
    [PTWM_ERR_HASH] = "PTWM_ERR_HASH",
    [PTWM_ERR_PADDING] = "PTWM_ERR_PADDING",
    [PTWM_ERR_ZSTD_UNAVAILABLE] = "PTWM_ERR_ZSTD_UNAVAILABLE",
    [PTWM_ERR_ZSTD] = "PTWM_ERR_ZSTD",
    [PTWM_ERR_NO_TENSOR] = "PTWM_ERR_NO_TENSOR",
    [PTWM_ERR_RANGE] = "PTWM_ERR_RANGE",
    [PTWM_ERR_LIMIT] = "PTWM_ERR_LIMIT",
    [PTWM_ERR_STATE] = "PTWM_ERR_STATE",
    [PTWM_ERR_SIZE_MISMATCH] = "PTWM_ERR_SIZE_MISMATCH",
};

static inline const char *golden_status_name(enum ptwm_status status)
{
    return golden_status_names[status];
}

#endif
