#include "cbor.h"

static void fail(struct ptwm_cursor *c)
{
    c->failed = true;
    c->next = c->end;
}

/* Reads an item's head: its major type and its argument, which must be in the shortest form. */
static uint64_t read_head(struct ptwm_cursor *c, unsigned *major, unsigned *minor)
{
    uint8_t first = ptwm_cursor_u8(c);
    uint64_t value;

    *major = first >> 5;
    *minor = first & 31;
    if (*minor < 24)
        return *minor;
    switch (*minor) {
    case 24:
        value = ptwm_cursor_u8(c);
        break;
    case 25:
    case 26:
    case 27: {
        const unsigned nbytes = 1u << (*minor - 24);
        const uint8_t *p = ptwm_cursor_take(c, nbytes);
        value = 0;
        for (unsigned i = 0; p != NULL && i < nbytes; i++)
            value = value << 8 | p[i]; /* CBOR is big-endian */
        break;
    }
    default: /* indefinite lengths and reserved values */
        fail(c);
        return 0;
    }
    /* Floats (major type 7) have no shorter integer form that would be the same; the others must use it. */
    if (*major != 7 && value < (*minor == 24 ? 24u : (uint64_t)1 << (8u << (*minor - 25))))
        fail(c);
    return value;
}

static uint64_t read_expected(struct ptwm_cursor *c, enum ptwm_cbor_type type)
{
    unsigned major, minor;
    uint64_t value = read_head(c, &major, &minor);
    if (major != (unsigned)type)
        fail(c);
    return c->failed ? 0 : value;
}

uint64_t ptwm_cbor_read_uint(struct ptwm_cursor *c)
{
    return read_expected(c, PTWM_CBOR_UINT);
}

const uint8_t *ptwm_cbor_read_string(struct ptwm_cursor *c, enum ptwm_cbor_type type, size_t *nbytes)
{
    uint64_t length = read_expected(c, type);
    const uint8_t *data;

    *nbytes = 0;
    if (length > ptwm_cursor_left(c))
        fail(c);
    if (c->failed)
        return NULL;
    data = ptwm_cursor_take(c, (size_t)length);
    if (type == PTWM_CBOR_TEXT && !ptwm_is_utf8(data, (size_t)length)) {
        fail(c);
        return NULL;
    }
    *nbytes = (size_t)length;
    return data;
}

uint64_t ptwm_cbor_read_count(struct ptwm_cursor *c, enum ptwm_cbor_type type)
{
    uint64_t n = read_expected(c, type);
    /* An item takes at least one byte and a pair two, so a larger count is false, and believing it would cost memory. */
    if (n > ptwm_cursor_left(c) / (type == PTWM_CBOR_MAP ? 2 : 1))
        fail(c);
    return c->failed ? 0 : n;
}

uint64_t ptwm_cbor_read_key(struct ptwm_cursor *c, uint64_t pair, uint64_t *previous)
{
    uint64_t key = ptwm_cbor_read_uint(c);
    if (pair > 0 && key <= *previous)
        fail(c);
    *previous = key;
    return key;
}

void ptwm_cbor_skip(struct ptwm_cursor *c, unsigned depth)
{
    unsigned major, minor;
    uint64_t value = read_head(c, &major, &minor);

    if (c->failed)
        return;
    switch (major) {
    case 2:
    case 3:
        if (value > ptwm_cursor_left(c))
            fail(c);
        else
            ptwm_cursor_take(c, (size_t)value);
        break;
    case 4:
    case 5:
    case 6: {
        uint64_t n = major == 6 ? 1 : major == 5 ? value * 2 : value;
        /* The value of a tag is no count. */
        if (depth >= PTWM_CBOR_MAX_DEPTH || (major != 6 && value > ptwm_cursor_left(c))) {
            fail(c);
            break;
        }
        while (n-- > 0 && !c->failed)
            ptwm_cbor_skip(c, depth + 1);
        break;
    }
    default: /* integers, simple values and floats are their head */
        break;
    }
}

enum ptwm_status ptwm_cbor_write_head(struct ptwm_bytes *bytes, enum ptwm_cbor_type type, uint64_t value)
{
    uint8_t head[9] = { (uint8_t)(type << 5) };
    unsigned log_nbytes = 0;

    if (value < 24) {
        head[0] |= (uint8_t)value;
        return ptwm_bytes_append(bytes, head, 1);
    }
    while (log_nbytes < 3 && value >> (8u << log_nbytes) != 0)
        log_nbytes++;
    head[0] |= (uint8_t)(24 + log_nbytes);
    for (unsigned i = 0, n = 1u << log_nbytes; i < n; i++)
        head[1 + i] = (uint8_t)(value >> 8 * (n - 1 - i));
    return ptwm_bytes_append(bytes, head, 1 + ((size_t)1 << log_nbytes));
}

enum ptwm_status ptwm_cbor_write_string(struct ptwm_bytes *bytes, enum ptwm_cbor_type type, const void *data,
                                        size_t nbytes)
{
    enum ptwm_status status = ptwm_cbor_write_head(bytes, type, nbytes);
    return status == PTWM_OK ? ptwm_bytes_append(bytes, data, nbytes) : status;
}

bool ptwm_is_utf8(const void *data, size_t nbytes)
{
    const uint8_t *p = data, *end = p + nbytes;

    while (p < end) {
        unsigned n_more = *p < 0x80 ? 0 : *p < 0xC2 ? 4 : *p < 0xE0 ? 1 : *p < 0xF0 ? 2 : *p < 0xF5 ? 3 : 4;
        if (n_more == 0) {
            p++;
            continue;
        }
        if (n_more == 4 || (size_t)(end - p) <= n_more)
            return false;
        /* The second byte rules out overlong forms (E0, F0), surrogates (ED) and what is above U+10FFFF (F4). */
        if (p[1] < (*p == 0xE0 ? 0xA0 : *p == 0xF0 ? 0x90 : 0x80) || p[1] > (*p == 0xED ? 0x9F : *p == 0xF4 ? 0x8F : 0xBF))
            return false;
        for (unsigned i = 2; i <= n_more; i++)
            if ((p[i] & 0xC0) != 0x80)
                return false;
        p += 1 + n_more;
    }
    return true;
}
