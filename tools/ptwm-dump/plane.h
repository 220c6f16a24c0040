/*
 * What a stored plane begins with: its codec's tables, lane states and so on (FORMAT.md, sections 6 and 7.2). What is
 * coded behind that is for the library to decode.
 */
#ifndef DUMP_PLANE_H
#define DUMP_PLANE_H

#include "tail.h"

/* What a plane coded by label rANS says of itself. */
struct dump_label_head {
    bool is_there;
    uint32_t n_lanes;
    uint64_t set;
    uint64_t n_exceptions;
    uint64_t n_units;
    unsigned class_bits;
    const uint8_t *classes; /* a bit stream of n_units values; NULL if class_bits is 0 */
    uint64_t units_of_class[DUMP_MAX_CLASSES];
};

/*
 * Reads a stored plane from its record's stored_nbytes bytes. head may be NULL; it is filled for label rANS and points
 * into bytes.
 */
void plane_read(const struct dump_tail *tail, uint64_t chunk, uint32_t plane, const uint8_t *bytes,
                struct dump_label_head *head, struct dump_problems *problems, const struct scan_sink *sink);

#endif
