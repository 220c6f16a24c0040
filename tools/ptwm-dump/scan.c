#include "scan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void scan_init(struct scan *scan, const uint8_t *bytes, size_t nbytes, uint64_t base, enum ptwm_status status,
               struct dump_problems *problems, const struct scan_sink *sink)
{
    const struct scan fresh = { bytes, nbytes, 0, base, false, status, problems, sink, { 0 }, { 0 } };
    *scan = fresh;
}

void scan_group(struct scan *scan, const char *format, ...)
{
    const int n = snprintf(scan->group, sizeof scan->group, "%s%s", scan->place, scan->place[0] ? ", " : "");
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(scan->group + n, sizeof scan->group - (size_t)n, format, arguments);
    va_end(arguments);
}

void scan_problem(struct scan *scan, size_t from, const char *format, ...)
{
    char text[160];
    va_list arguments;

    if (scan->problems == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    problem_add(scan->problems, scan->status, scan->base + from, "%s%s%s", scan->group, scan->group[0] ? ": " : "",
                text);
}

const uint8_t *scan_take(struct scan *scan, uint64_t nbytes, const char *what)
{
    const uint8_t *bytes = scan->bytes + scan->next;

    if (scan->failed)
        return NULL;
    if (nbytes > scan_left(scan)) {
        scan_problem(scan, scan->next, "%s is cut short: %" PRIu64 " bytes, of which %zu are there", what, nbytes,
                     scan_left(scan));
        scan->failed = true;
        return NULL;
    }
    scan->next += (size_t)nbytes;
    return bytes;
}

uint64_t scan_take_uint(struct scan *scan, unsigned nbytes, const char *what)
{
    const uint8_t *bytes = scan_take(scan, nbytes, what);
    return bytes != NULL ? scan_load(bytes, nbytes) : 0;
}

uint64_t scan_take_varint(struct scan *scan, const char *what)
{
    const size_t from = scan->next;
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t *byte = scan_take(scan, 1, what);
        if (byte == NULL)
            return 0;
        if ((shift == 63 && *byte > 1) || (shift > 0 && *byte == 0))
            break;
        value |= (uint64_t)(*byte & 127) << shift;
        if (*byte < 128)
            return value;
    }
    scan_problem(scan, from, "%s is no minimal varint of 64 bits", what);
    scan->failed = true;
    return 0;
}

void scan_field(struct scan *scan, size_t from, const char *name, const char *format, ...)
{
    char value[256];
    struct scan_field field;
    va_list arguments;

    if (scan->sink == NULL || scan->failed)
        return;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    field.offset = scan->base + from;
    field.nbytes = scan->next - from;
    field.group = scan->group;
    field.name = name;
    field.value = value;
    scan->sink->take(scan->sink->context, &field);
}

static uint64_t read_uint(struct scan *scan, unsigned nbytes, const char *name)
{
    const size_t from = scan->next;
    const uint64_t value = scan_take_uint(scan, nbytes, name);

    scan_field(scan, from, name, "%" PRIu64, value);
    return value;
}

uint64_t scan_u8(struct scan *scan, const char *name)
{
    return read_uint(scan, 1, name);
}

uint64_t scan_u32(struct scan *scan, const char *name)
{
    return read_uint(scan, 4, name);
}

uint64_t scan_u64(struct scan *scan, const char *name)
{
    return read_uint(scan, 8, name);
}

uint64_t scan_varint(struct scan *scan, const char *name)
{
    const size_t from = scan->next;
    const uint64_t value = scan_take_varint(scan, name);

    scan_field(scan, from, name, "%" PRIu64, value);
    return value;
}

const uint8_t *scan_bytes(struct scan *scan, uint64_t nbytes, const char *name)
{
    const size_t from = scan->next;
    const uint8_t *bytes = scan_take(scan, nbytes, name);

    if (bytes != NULL && nbytes > 0)
        scan_field(scan, from, name, "%" PRIu64 " bytes", nbytes);
    return bytes;
}

void scan_rest(struct scan *scan, const char *name)
{
    if (!scan->failed && scan_left(scan) > 0)
        scan_bytes(scan, scan_left(scan), name);
}
