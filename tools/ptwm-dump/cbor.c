#include "cbor.h"

#include <inttypes.h>

#include "escape.h"

enum { MAX_DEPTH = 8 };

static const char *const major_names[8] = {
    "unsigned integer", "negative integer", "byte string", "text string", "array", "map", "tag", "simple value"
};

/* An item's head. value: the argument; other is what is read instead of the expected kinds' heads. */
static uint64_t take_head(struct scan *scan, unsigned *major, const char *what)
{
    const size_t from = scan->next;
    const unsigned first = (unsigned)scan_take_uint(scan, 1, what), minor = first & 31;
    const uint8_t *bytes;
    uint64_t value = 0;
    unsigned nbytes;

    *major = first >> 5;
    if (scan->failed || minor < 24)
        return minor;
    if (minor > 27) {
        scan_problem(scan, from, "%s is CBOR of indefinite or reserved length", what);
        scan->failed = true;
        return 0;
    }
    nbytes = 1u << (minor - 24);
    bytes = scan_take(scan, nbytes, what);
    for (unsigned i = 0; bytes != NULL && i < nbytes; i++)
        value = value << 8 | bytes[i]; /* big-endian */
    if (bytes != NULL && *major != 7 && value < (nbytes == 1 ? 24u : (uint64_t)1 << 4 * nbytes)) {
        scan_problem(scan, from, "%s is not in the shortest form", what);
        scan->failed = true;
    }
    return value;
}

static uint64_t take_expected(struct scan *scan, enum cbor_major expected, const char *what)
{
    const size_t from = scan->next;
    unsigned major;
    const uint64_t value = take_head(scan, &major, what);

    if (!scan->failed && major != (unsigned)expected) {
        scan_problem(scan, from, "%s is a CBOR %s, not a %s", what, major_names[major], major_names[expected]);
        scan->failed = true;
    }
    return scan->failed ? 0 : value;
}

uint64_t cbor_uint(struct scan *scan, const char *name)
{
    const size_t from = scan->next;
    const uint64_t value = take_expected(scan, CBOR_UINT, name);

    scan_field(scan, from, name, "%" PRIu64, value);
    return value;
}

uint64_t cbor_count(struct scan *scan, enum cbor_major major, const char *name)
{
    const size_t from = scan->next;
    const uint64_t n = take_expected(scan, major, name);

    if (!scan->failed && n > scan_left(scan) / (major == CBOR_MAP ? 2 : 1)) {
        scan_problem(scan, from, "%s claims %" PRIu64 " items in %zu bytes", name, n, scan_left(scan));
        scan->failed = true;
    }
    scan_field(scan, from, name, "%s of %" PRIu64, major_names[major], n);
    return scan->failed ? 0 : n;
}

static bool is_utf8(const uint8_t *text, size_t nbytes)
{
    while (nbytes > 0) {
        const struct escape_character c = escape_next(text, nbytes);
        if (!c.is_valid)
            return false;
        text += c.nbytes;
        nbytes -= c.nbytes;
    }
    return true;
}

const uint8_t *cbor_string(struct scan *scan, enum cbor_major major, size_t *nbytes, const char *name)
{
    const size_t from = scan->next;
    const uint64_t n = take_expected(scan, major, name);
    const uint8_t *bytes = scan_take(scan, n, name);
    char shown[128];

    *nbytes = 0;
    if (bytes == NULL)
        return NULL;
    *nbytes = (size_t)n;
    if (major == CBOR_BYTES) {
        scan_field(scan, from, name, "%" PRIu64 " bytes", n);
        return bytes;
    }
    if (!is_utf8(bytes, *nbytes))
        scan_problem(scan, from, "%s is not UTF-8", name);
    escape_text(shown, sizeof shown, bytes, *nbytes);
    scan_field(scan, from, name, "\"%s\"", shown);
    return bytes;
}

uint64_t cbor_key(struct scan *scan, uint64_t *previous, const char *name)
{
    const size_t from = scan->next;
    const uint64_t key = cbor_uint(scan, name);

    if (!scan->failed && *previous != PTWM_NONE && key <= *previous) {
        scan_problem(scan, from, "%s %" PRIu64 " does not ascend", name, key);
        scan->failed = true;
    }
    *previous = key;
    return key;
}

void cbor_skip(struct scan *scan, unsigned depth, const char *name)
{
    const size_t from = scan->next;
    unsigned major;
    uint64_t value = take_head(scan, &major, name);

    if (scan->failed)
        return;
    if (major == CBOR_BYTES || major == CBOR_TEXT) {
        scan_take(scan, value, name);
        scan_field(scan, from, name, "%s of %" PRIu64 " bytes", major_names[major], value);
        return;
    }
    scan_field(scan, from, name, "%s %" PRIu64, major_names[major], value);
    if (major < CBOR_ARRAY || major > 6)
        return;
    if (depth >= MAX_DEPTH || (major != 6 && value > scan_left(scan))) { /* a tag's value is no count */
        scan_problem(scan, from, "%s is nested too deep or claims too many items", name);
        scan->failed = true;
        return;
    }
    for (uint64_t n = major == 6 ? 1 : major == CBOR_MAP ? 2 * value : value; n > 0 && !scan->failed; n--)
        cbor_skip(scan, depth + 1, name);
}
