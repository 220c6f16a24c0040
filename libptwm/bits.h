/*
 * Little-endian loads and stores, and a bounds-checked cursor for reading untrusted bytes.
 */
#ifndef PTWM_BITS_H
#define PTWM_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t ptwm_load16(const void *p)
{
    const uint8_t *b = p;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t ptwm_load32(const void *p)
{
    const uint8_t *b = p;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t ptwm_load64(const void *p)
{
    return ptwm_load32(p) | (uint64_t)ptwm_load32((const uint8_t *)p + 4) << 32;
}

static inline void ptwm_store16(void *p, uint16_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
}

static inline void ptwm_store32(void *p, uint32_t v)
{
    ptwm_store16(p, (uint16_t)v);
    ptwm_store16((uint8_t *)p + 2, (uint16_t)(v >> 16));
}

static inline void ptwm_store64(void *p, uint64_t v)
{
    ptwm_store32(p, (uint32_t)v);
    ptwm_store32((uint8_t *)p + 4, (uint32_t)(v >> 32));
}

/* *sum = a + b and *product = a * b; false if the result does not fit. */
static inline bool ptwm_add_u64(uint64_t a, uint64_t b, uint64_t *sum)
{
    *sum = a + b;
    return *sum >= a;
}

static inline bool ptwm_mul_u64(uint64_t a, uint64_t b, uint64_t *product)
{
    *product = a * b;
    return a == 0 || *product / a == b;
}

static inline uint64_t ptwm_ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* The greatest common divisor; that of 0 and b is b. */
static inline uint64_t ptwm_gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ceil(log2(n)) for n >= 1: the bits that a value below n takes. */
static inline unsigned ptwm_ceil_log2(uint32_t n)
{
    unsigned bits = 0;
    while (bits < 32 && ((uint64_t)1 << bits) < n)
        bits++;
    return bits;
}

/* --------------------------------------------------------------------------------------------------- cursor */

/*
 * A position in untrusted bytes. Reads past the end set failed, return 0 and leave the position at the end; so a parser
 * can read a group of fields and check failed once, before it uses any of them.
 */
struct ptwm_cursor {
    const uint8_t *next;
    const uint8_t *end;
    bool failed;
};

static inline struct ptwm_cursor ptwm_cursor_make(const void *data, size_t nbytes)
{
    struct ptwm_cursor c = { data, data, false };
    if (nbytes > 0) /* data may be NULL otherwise, to which not even 0 may be added */
        c.end += nbytes;
    return c;
}

static inline size_t ptwm_cursor_left(const struct ptwm_cursor *c)
{
    return (size_t)(c->end - c->next);
}

/* The next nbytes bytes, or NULL (and failed) if there are fewer. */
static inline const uint8_t *ptwm_cursor_take(struct ptwm_cursor *c, size_t nbytes)
{
    const uint8_t *p = c->next;
    if (c->failed || nbytes > ptwm_cursor_left(c)) {
        c->failed = true;
        c->next = c->end;
        return NULL;
    }
    c->next += nbytes;
    return p;
}

static inline uint8_t ptwm_cursor_u8(struct ptwm_cursor *c)
{
    const uint8_t *p = ptwm_cursor_take(c, 1);
    return p ? *p : 0;
}

static inline uint16_t ptwm_cursor_u16(struct ptwm_cursor *c)
{
    const uint8_t *p = ptwm_cursor_take(c, 2);
    return p ? ptwm_load16(p) : 0;
}

static inline uint32_t ptwm_cursor_u32(struct ptwm_cursor *c)
{
    const uint8_t *p = ptwm_cursor_take(c, 4);
    return p ? ptwm_load32(p) : 0;
}

static inline uint64_t ptwm_cursor_u64(struct ptwm_cursor *c)
{
    const uint8_t *p = ptwm_cursor_take(c, 8);
    return p ? ptwm_load64(p) : 0;
}

/* A varint (FORMAT.md, section 1); fails on one that is not minimal or does not fit 64 bits. */
static inline uint64_t ptwm_cursor_varint(struct ptwm_cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = ptwm_cursor_u8(c);
        if (c->failed)
            return 0;
        if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0))
            break;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    c->failed = true;
    c->next = c->end;
    return 0;
}

/* Writes a varint to p (room for 10 bytes); returns its length. */
static inline size_t ptwm_store_varint(uint8_t *p, uint64_t value)
{
    size_t n = 0;
    while (value >= 128) {
        p[n++] = (uint8_t)(value | 128);
        value >>= 7;
    }
    p[n++] = (uint8_t)value;
    return n;
}

static inline size_t ptwm_varint_nbytes(uint64_t value)
{
    size_t n = 1;
    while (value >= 128) {
        value >>= 7;
        n++;
    }
    return n;
}

/* ----------------------------------------------------------------------------------------------- bit streams */

/* Reads bits from a bit stream that the caller knows to be long enough. */
struct ptwm_bit_reader {
    const uint8_t *next;
    uint64_t pool;
    unsigned n_bits;
};

static inline uint32_t ptwm_read_bits(struct ptwm_bit_reader *r, unsigned n_bits) /* n_bits <= 32 */
{
    uint32_t value;
    while (r->n_bits < n_bits) {
        r->pool |= (uint64_t)*r->next++ << r->n_bits;
        r->n_bits += 8;
    }
    value = (uint32_t)(r->pool & (((uint64_t)1 << n_bits) - 1));
    r->pool >>= n_bits;
    r->n_bits -= n_bits;
    return value;
}

/* Writes bits to memory that the caller knows to be large enough; ptwm_flush_bits ends the last byte with zeros. */
struct ptwm_bit_writer {
    uint8_t *next;
    uint64_t pool;
    unsigned n_bits;
};

static inline void ptwm_write_bits(struct ptwm_bit_writer *w, uint32_t value, unsigned n_bits) /* n_bits <= 32 */
{
    w->pool |= (uint64_t)value << w->n_bits;
    w->n_bits += n_bits;
    while (w->n_bits >= 8) {
        *w->next++ = (uint8_t)w->pool;
        w->pool >>= 8;
        w->n_bits -= 8;
    }
}

static inline void ptwm_flush_bits(struct ptwm_bit_writer *w)
{
    if (w->n_bits > 0) {
        *w->next++ = (uint8_t)w->pool;
        w->pool = 0;
        w->n_bits = 0;
    }
}

#endif
