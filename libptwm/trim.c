/*
 * The trim codec: FORMAT.md, section 6.3.
 */
#include "trim.h"

#include "bits.h"
#include "status.h"

enum { UNIT_GRANULE = 128, MAX_UNIT = 1 << 20, ELEMENT_BITS = 16 };

/* How many low bits are zero in all m elements: 16 if all bits are. */
static unsigned zero_bits(const uint8_t *plane, size_t m)
{
    unsigned low = 0, high = 0, t = 0;
    for (size_t i = 0; i < m; i++) {
        low |= plane[2 * i];
        high |= plane[2 * i + 1];
    }
    for (unsigned any = low | high << 8; t < ELEMENT_BITS && !(any >> t & 1); t++)
        ;
    return t;
}

static size_t unit_nbytes(size_t m, unsigned t)
{
    return (m * (ELEMENT_BITS - t) + 7) / 8;
}

/* One run of units with the same t, the first of which begins at element begin; the element behind it. */
static size_t find_run(const uint8_t *plane, size_t n, uint32_t unit, size_t begin, uint64_t *n_units, unsigned *t)
{
    *n_units = 0;
    while (begin < n) {
        size_t m = n - begin < unit ? n - begin : unit;
        unsigned own = zero_bits(plane + 2 * begin, m);
        if (*n_units > 0 && own != *t)
            break;
        *t = own;
        *n_units += 1;
        begin += m;
    }
    return begin;
}

uint64_t ptwm_trim_nbytes(const uint8_t *plane, size_t n, uint32_t unit)
{
    uint64_t nbytes = ptwm_varint_nbytes(unit), n_units;
    unsigned t = 0;
    for (size_t begin = 0; begin < n;) {
        size_t end = find_run(plane, n, unit, begin, &n_units, &t);
        /* Whole units are whole bytes, so the run's bytes are those of one long unit. */
        nbytes += ptwm_varint_nbytes(n_units) + 1 + unit_nbytes(end - begin, t);
        begin = end;
    }
    return nbytes;
}

/* The bits of m elements from bit t on, as a bit stream; returns its end. */
static uint8_t *pack_unit(uint8_t *dst, const uint8_t *plane, size_t m, unsigned t)
{
    struct ptwm_bit_writer writer = { dst, 0, 0 };
    if (t == 0) {
        memcpy(dst, plane, 2 * m);
        return dst + 2 * m;
    }
    if (t == ELEMENT_BITS)
        return dst;
    for (size_t i = 0; i < m; i++)
        ptwm_write_bits(&writer, (uint32_t)ptwm_load16(plane + 2 * i) >> t, ELEMENT_BITS - t);
    ptwm_flush_bits(&writer);
    return writer.next;
}

void ptwm_trim_encode(uint8_t *dst, const uint8_t *plane, size_t n, uint32_t unit)
{
    uint64_t n_units;
    unsigned t = 0;
    dst += ptwm_store_varint(dst, unit);
    for (size_t begin = 0; begin < n;) {
        begin = find_run(plane, n, unit, begin, &n_units, &t);
        dst += ptwm_store_varint(dst, n_units);
        *dst++ = (uint8_t)t;
    }
    for (size_t begin = 0; begin < n;) {
        size_t end = find_run(plane, n, unit, begin, &n_units, &t);
        dst = pack_unit(dst, plane + 2 * begin, end - begin, t);
        begin = end;
    }
}

/*
 * m elements of r = 16 - t bits, 1 <= r <= 15, of which all but the last few are each taken from the 32 bits that begin with
 * the byte where they begin: no element waits for the one before it. Returns how many were taken, a multiple of 8; the next
 * one begins with a byte.
 */
static inline size_t unpack_words(uint8_t *plane, const uint8_t *src, size_t m, unsigned t)
{
    const unsigned r = ELEMENT_BITS - t;
    const uint32_t mask = ((uint32_t)1 << r) - 1;
    size_t n = 0;

    for (; m - n >= 48; n += 8, src += r, plane += 16) /* 6 r bytes are left, of which these look at 7 r / 8 + 4 */
        for (unsigned i = 0; i < 8; i++)
            ptwm_store16(plane + 2 * i, (uint16_t)((ptwm_load32(src + i * r / 8) >> i * r % 8 & mask) << t));
    return n;
}

/* The inverse of pack_unit; false if unused bits are not zero. */
static bool unpack_unit(uint8_t *plane, const uint8_t *src, size_t m, unsigned t)
{
    struct ptwm_bit_reader reader = { src, 0, 0 };
    size_t n;
    if (t == 0) {
        memcpy(plane, src, 2 * m);
        return true;
    }
    if (t == ELEMENT_BITS) {
        memset(plane, 0, 2 * m);
        return true;
    }
    n = t == 13 ? unpack_words(plane, src, m, 13) : unpack_words(plane, src, m, t); /* 13: float16 made float32 */
    reader.next += n / 8 * (ELEMENT_BITS - t);
    for (size_t i = n; i < m; i++)
        ptwm_store16(plane + 2 * i, (uint16_t)(ptwm_read_bits(&reader, ELEMENT_BITS - t) << t));
    return reader.pool == 0;
}

/* Reads one run; false if it is malformed. *t holds the t of the run before, or more than 16. */
static bool read_run(struct ptwm_cursor *runs, uint64_t units_left, uint64_t *n_units, unsigned *t)
{
    unsigned before = *t;
    *n_units = ptwm_cursor_varint(runs);
    *t = ptwm_cursor_u8(runs);
    return !runs->failed && *n_units >= 1 && *n_units <= units_left && *t <= ELEMENT_BITS && *t != before;
}

enum ptwm_status ptwm_trim_decode(uint8_t *plane, size_t n, const uint8_t *src, size_t src_nbytes,
                                  struct ptwm_error *error)
{
    struct ptwm_cursor data = ptwm_cursor_make(src, src_nbytes), runs;
    const enum ptwm_status bad = PTWM_ERR_PLANE;
    uint64_t unit = ptwm_cursor_varint(&data), total, left, n_units;
    unsigned t = ELEMENT_BITS + 1;

    if (data.failed || unit < UNIT_GRANULE || unit > MAX_UNIT || unit % UNIT_GRANULE != 0)
        return ptwm_fail(error, bad, "trim: bad unit");
    total = ptwm_ceil_div(n, unit);
    runs = data;
    for (left = total; left > 0; left -= n_units)
        if (!read_run(&data, left, &n_units, &t))
            return ptwm_fail(error, bad, "trim: bad run");

    /* Everything is checked once more on the way: the bytes may be those of a file that somebody writes to. */
    t = ELEMENT_BITS + 1;
    for (left = total; left > 0; left -= n_units) {
        size_t m;
        const uint8_t *bits;
        if (!read_run(&runs, left, &n_units, &t))
            return ptwm_fail(error, bad, "trim: bad run");
        m = n_units == left ? n : (size_t)(n_units * unit);
        bits = ptwm_cursor_take(&data, unit_nbytes(m, t));
        if (bits == NULL)
            return ptwm_fail(error, bad, "trim: too short");
        if (!unpack_unit(plane, bits, m, t))
            return ptwm_fail(error, bad, "trim: unused bits are not zero");
        plane += 2 * m;
        n -= m;
    }
    if (ptwm_cursor_left(&data) != 0)
        return ptwm_fail(error, bad, "trim: bytes left over");
    return PTWM_OK;
}
