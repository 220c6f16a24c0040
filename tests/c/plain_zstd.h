/*
 * A zstd that writes the simplest frames there are: blocks of 4 KiB, as they are or, where all bytes are the same, as a
 * run. Any zstd reads them, and their bytes depend on nothing but the data; so tests use it where zstd's own bytes, which
 * change with its version, would not do, and in builds without zstd.
 */
#ifndef PLAIN_ZSTD_H
#define PLAIN_ZSTD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ptwm.h"

enum { PLAIN_ZSTD_BLOCK = 4096, PLAIN_ZSTD_HEAD = 13, PLAIN_ZSTD_RAW = 0, PLAIN_ZSTD_RUN = 1 };

static inline bool plain_zstd_is_run(const uint8_t *p, size_t n)
{
    return n > 1 && memcmp(p, p + 1, n - 1) == 0;
}

static inline int plain_zstd_compress(void *context, void *dst, size_t dst_capacity, size_t *dst_nbytes, const void *src,
                                      size_t src_nbytes, int level)
{
    const uint8_t *from = src, *end = from + src_nbytes;
    uint8_t *to = dst;

    (void)context;
    (void)level;
    if (dst_capacity < PLAIN_ZSTD_HEAD + src_nbytes + 3 * (src_nbytes / PLAIN_ZSTD_BLOCK + 1))
        return 1;
    memcpy(to, "\x28\xB5\x2F\xFD\xE0", 5); /* the magic number; one segment, its content size in eight bytes */
    for (unsigned i = 0; i < 8; i++)
        to[5 + i] = (uint8_t)((uint64_t)src_nbytes >> 8 * i);
    to += PLAIN_ZSTD_HEAD;
    do {
        const size_t left = (size_t)(end - from), n = left < PLAIN_ZSTD_BLOCK ? left : PLAIN_ZSTD_BLOCK;
        const bool is_run = plain_zstd_is_run(from, n);
        const uint32_t head = (uint32_t)n << 3 | (is_run ? PLAIN_ZSTD_RUN : PLAIN_ZSTD_RAW) << 1 | (n == left);
        const size_t stored = is_run ? 1 : n;
        for (unsigned i = 0; i < 3; i++)
            *to++ = (uint8_t)(head >> 8 * i);
        if (stored > 0)
            memcpy(to, from, stored);
        to += stored;
        from += n;
    } while (from < end);
    *dst_nbytes = (size_t)(to - (uint8_t *)dst);
    return 0;
}

/* Reads what the other wrote, and nothing else. */
static inline int plain_zstd_decompress(void *context, void *dst, size_t dst_nbytes, const void *src, size_t src_nbytes)
{
    const uint8_t *from = (const uint8_t *)src + PLAIN_ZSTD_HEAD, *end = (const uint8_t *)src + src_nbytes;
    uint8_t *to = dst;
    bool is_last = false;

    (void)context;
    while (!is_last) {
        uint32_t head, n;
        if (end - from < 3)
            return 1;
        head = from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
        from += 3;
        is_last = head & 1;
        n = head >> 3;
        if (n > dst_nbytes || (size_t)(end - from) < (head >> 1 & 3 ? 1 : n))
            return 1;
        if (head >> 1 & 3)
            memset(to, *from++, n);
        else if (n > 0)
            memcpy(to, from, n);
        from += head >> 1 & 3 ? 0 : n;
        to += n;
        dst_nbytes -= n;
    }
    return dst_nbytes != 0 || from != end;
}

static const struct ptwm_zstd plain_zstd = { plain_zstd_compress, plain_zstd_decompress, NULL };

#endif
