/*
 * Reading the file's parts field by field, after FORMAT.md. Each read names its field; so one and the same reading
 * fills the tool's structs and, with a sink, names every byte for the hex view.
 *
 * Reads past the end say so once, as a problem, set failed, and give 0.
 */
#ifndef DUMP_SCAN_H
#define DUMP_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "printf.h"
#include "problem.h"

struct scan_field {
    uint64_t offset; /* in the file */
    uint64_t nbytes;
    const char *group; /* what it belongs to: "tensor 3" */
    const char *name;
    const char *value; /* for people; may be empty */
};

/* Who wants to see the fields, in the order of the file. */
struct scan_sink {
    void (*take)(void *context, const struct scan_field *field);
    void *context;
};

struct scan {
    const uint8_t *bytes;
    size_t nbytes;
    size_t next;
    uint64_t base; /* file offset of bytes[0] */
    bool failed;
    enum ptwm_status status;        /* what a problem in this part is called */
    struct dump_problems *problems; /* may be NULL */
    const struct scan_sink *sink;   /* may be NULL */
    char place[32];                 /* begins each group, if the part is one of several: "segment 3" */
    char group[96];
};

void scan_init(struct scan *scan, const uint8_t *bytes, size_t nbytes, uint64_t base, enum ptwm_status status,
               struct dump_problems *problems, const struct scan_sink *sink);

static inline size_t scan_left(const struct scan *scan)
{
    return scan->nbytes - scan->next;
}

static inline uint64_t scan_offset(const struct scan *scan)
{
    return scan->base + scan->next;
}

/* Names what the fields from here on belong to. */
DUMP_PRINTF(2, 3)
void scan_group(struct scan *scan, const char *format, ...);

/* A problem at the field that begins at position from; reading can go on. */
DUMP_PRINTF(3, 4)
void scan_problem(struct scan *scan, size_t from, const char *format, ...);

/* Reads without a field; scan_field follows once it is known what they mean. what: for the problem if they are missing.
 */
const uint8_t *scan_take(struct scan *scan, uint64_t nbytes, const char *what);
uint64_t scan_take_uint(struct scan *scan, unsigned nbytes, const char *what);
uint64_t scan_take_varint(struct scan *scan, const char *what);

/* Names the bytes from position from up to here. */
DUMP_PRINTF(4, 5)
void scan_field(struct scan *scan, size_t from, const char *name, const char *format, ...);

/* Read a field and name it, its value in decimal. */
uint64_t scan_u8(struct scan *scan, const char *name);
uint64_t scan_u32(struct scan *scan, const char *name);
uint64_t scan_u64(struct scan *scan, const char *name);
uint64_t scan_varint(struct scan *scan, const char *name);
/* The same for bytes without a value. */
const uint8_t *scan_bytes(struct scan *scan, uint64_t nbytes, const char *name);
/* All that is left, if anything is. */
void scan_rest(struct scan *scan, const char *name);

/* Little-endian. */
static inline uint64_t scan_load(const uint8_t *bytes, unsigned nbytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < nbytes; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* Value number index of a bit stream of values of width bits, width <= 16. The caller knows that it is long enough. */
static inline uint32_t scan_bits(const uint8_t *stream, uint64_t index, unsigned width)
{
    uint32_t value = 0;
    for (unsigned b = 0; b < width; b++) {
        const uint64_t bit = index * width + b;
        value |= (uint32_t)(stream[bit / 8] >> bit % 8 & 1) << b;
    }
    return value;
}

#endif
