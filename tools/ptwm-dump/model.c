#include "model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UNIT = 1 << 20, MAX_COLUMNS = 1 << 20, MAX_SETS = 65536, MIN_SET_NBYTES = 1 + 1 + 2 * 2 };

static bool read_phases(struct scan *scan, struct dump_model *m)
{
    const size_t from = scan->next;

    m->phases = scan_bytes(scan, (m->n_columns + 7) / 8, "phases of the columns");
    if (m->phases != NULL && m->n_columns % 8 != 0 && m->phases[m->n_columns / 8] >> m->n_columns % 8 != 0)
        scan_problem(scan, from + m->n_columns / 8, "unused bits behind the phases are not zero");
    return m->phases != NULL;
}

static bool read_columns(struct scan *scan, struct dump_model *m)
{
    const size_t begin = scan->next;
    const uint64_t n_columns = scan_varint(scan, "columns");
    const uint8_t *stream;
    size_t from = scan->next;
    uint64_t n_bits;
    unsigned flags;

    if (scan->failed || n_columns == 0)
        return !scan->failed;
    if (n_columns > MAX_COLUMNS) {
        scan_problem(scan, begin, "%" PRIu64 " columns are too many", n_columns);
        return false;
    }
    m->base = (int)scan_take_uint(scan, 1, "base of the column shifts");
    m->base = m->base < 128 ? m->base : m->base - 256;
    scan_field(scan, from, "base of the column shifts", "%d", m->base);
    from = scan->next;
    flags = (unsigned)scan_take_uint(scan, 1, "width of the column shifts");
    m->width = flags & 127;
    scan_field(scan, from, "width of the column shifts", "%u%s", m->width, flags > 127 ? ", and phases" : "");
    if (scan->failed || m->width < 1 || m->width > 8) {
        scan_problem(scan, from, "column shifts of %u bits", m->width);
        return false;
    }
    n_bits = n_columns * m->width;
    from = scan->next;
    stream = scan_bytes(scan, (n_bits + 7) / 8, "column shifts");
    m->shift = stream != NULL ? malloc((size_t)n_columns * sizeof *m->shift) : NULL;
    if (m->shift == NULL)
        return false;
    m->n_columns = (size_t)n_columns;
    for (size_t c = 0; c < m->n_columns; c++) {
        m->shift[c] = (int16_t)(m->base + (int)scan_bits(stream, c, m->width));
        if (m->shift[c] > 127)
            scan_problem(scan, from + (size_t)(c * m->width / 8), "the shift %d of column %zu is out of range",
                         m->shift[c], c);
    }
    if (n_bits % 8 != 0 && stream[n_bits / 8] >> n_bits % 8 != 0)
        scan_problem(scan, from + (size_t)(n_bits / 8), "unused bits behind the column shifts are not zero");
    return flags <= 127 || read_phases(scan, m);
}

static bool read_table(struct scan *scan, unsigned bits, struct dump_table *t)
{
    size_t from = scan->next;
    uint64_t symbol = 0, total = 0;

    memset(t, 0, sizeof *t);
    t->n_labels = (uint32_t)scan_u8(scan, "labels");
    if (scan->failed || t->n_labels < 2 || t->n_labels > DUMP_MAX_LABELS) {
        scan_problem(scan, from, "a table of %" PRIu32 " labels", t->n_labels);
        return false;
    }
    for (uint32_t i = 0; i < t->n_labels; i++) {
        const size_t at = scan->next;
        const uint64_t value = scan_take_varint(scan, "label"), gap = value & 1 ? scan_take_varint(scan, "gap") : 0;

        if (scan->failed)
            return false;
        if (((value & 1) && gap == 0) || value / 2 < 1 || value / 2 > 8191)
            scan_problem(scan, at, "label %" PRIu32 " has frequency 8 * %" PRIu64 " and gap %" PRIu64, i, value / 2,
                         gap);
        if (gap >> bits != 0 || (symbol = symbol + gap) >> bits != 0) {
            scan_problem(scan, at, "the symbol of label %" PRIu32 " has more than %u bits", i, bits);
            return false;
        }
        t->symbol[i] = (uint16_t)symbol;
        t->frequency[i] = value / 2 <= 8191 ? (uint32_t)(value / 2 * 8) : 0;
        total += t->frequency[i];
        scan_field(scan, at, "label", "%" PRIu32 ": symbol %u, frequency %" PRIu32 "/65536", i, t->symbol[i],
                   t->frequency[i]);
        symbol++;
    }
    if (total != 65536)
        scan_problem(scan, from, "the frequencies sum to %" PRIu64 ", not to 65536", total);
    return true;
}

/* The frequencies of a table's labels in columns of phase 1. */
static bool read_second(struct scan *scan, struct dump_table *t)
{
    const size_t from = scan->next;
    uint64_t total = 0;

    for (uint32_t i = 0; i < t->n_labels; i++) {
        const size_t at = scan->next;
        const uint64_t value = scan_take_varint(scan, "second frequency");

        if (scan->failed)
            return false;
        if (value < 1 || value > 8191)
            scan_problem(scan, at, "label %" PRIu32 " has second frequency 8 * %" PRIu64, i, value);
        t->second[i] = value <= 8191 ? (uint32_t)(value * 8) : 0;
        total += t->second[i];
        scan_field(scan, at, "second frequency", "%" PRIu32 ": symbol %u, frequency %" PRIu32 "/65536", i, t->symbol[i],
                   t->second[i]);
    }
    if (total != 65536)
        scan_problem(scan, from, "the second frequencies sum to %" PRIu64 ", not to 65536", total);
    return true;
}

static bool read_set(struct scan *scan, unsigned bits, struct dump_model *m, size_t number, size_t *room)
{
    struct dump_set *set = &m->sets[number];
    const size_t from = scan->next;

    scan_group(scan, "set %zu", number);
    set->n_classes = (uint32_t)scan_u8(scan, "classes");
    set->first_table = m->n_tables;
    if (scan->failed || set->n_classes < 1 || set->n_classes > DUMP_MAX_CLASSES) {
        scan_problem(scan, from, "a set of %" PRIu32 " classes", set->n_classes);
        return false;
    }
    for (uint32_t c = 0; c < set->n_classes; c++) {
        if (m->n_tables == *room) {
            struct dump_table *larger = realloc(m->tables, (2 * *room + 8) * sizeof *larger);
            if (larger == NULL)
                return false;
            m->tables = larger;
            *room = 2 * *room + 8;
        }
        scan_group(scan, "set %zu, class %" PRIu32, number, c);
        if (!read_table(scan, bits, &m->tables[m->n_tables]) ||
            (m->phases != NULL && !read_second(scan, &m->tables[m->n_tables])))
            return false;
        m->n_tables++;
    }
    return true;
}

static bool read_sets(struct scan *scan, unsigned bits, struct dump_model *m)
{
    const size_t from = scan->next;
    size_t room = 0;

    m->n_sets_claimed = scan_varint(scan, "sets");
    if (scan->failed)
        return false;
    if (m->n_sets_claimed > MAX_SETS || m->n_sets_claimed > scan_left(scan) / MIN_SET_NBYTES) {
        scan_problem(scan, from, "%" PRIu64 " sets of tables are too many", m->n_sets_claimed);
        return false;
    }
    m->sets = malloc((size_t)(m->n_sets_claimed + 1) * sizeof *m->sets);
    if (m->sets == NULL)
        return false;
    for (; m->n_sets < m->n_sets_claimed; m->n_sets++)
        if (!read_set(scan, bits, m, m->n_sets, &room))
            return false;
    return true;
}

bool model_read(struct scan *scan, unsigned bits, struct dump_model *m)
{
    size_t from = scan->next;

    memset(m, 0, sizeof *m);
    scan_group(scan, "model");
    m->unit = scan_varint(scan, "unit");
    if (scan->failed)
        return false;
    if (m->unit < 1 || m->unit > MAX_UNIT) {
        scan_problem(scan, from, "a unit of %" PRIu64 " elements", m->unit);
        return false;
    }
    return read_columns(scan, m) && read_sets(scan, bits, m);
}

void model_release(struct dump_model *m)
{
    free(m->shift);
    free(m->sets);
    free(m->tables);
    memset(m, 0, sizeof *m);
}

double model_entropy(const uint32_t *frequencies, uint32_t n)
{
    double bits = 0;

    for (uint32_t i = 0; i < n; i++)
        if (frequencies[i] > 0)
            bits -= frequencies[i] / 65536.0 * log2(frequencies[i] / 65536.0);
    return bits;
}
