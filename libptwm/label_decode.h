/*
 * What the two ways of decoding a chunk's symbols share: label_decode.c, which follows FORMAT.md step by step, and
 * label_fused.c, which goes from stored planes to finished elements in one pass and leaves the odd ends to the former.
 */
#ifndef PTWM_LABEL_DECODE_H
#define PTWM_LABEL_DECODE_H

#include "label.h"

enum { PTWM_STATE_END = 65536 }; /* plus, where a lane carries something, that: below 65536 */

/* A parsed head. The positions are of checked extent; their contents are checked whenever they are read. */
struct ptwm_label_head {
    unsigned n_lanes;
    const struct ptwm_label_set *set;
    uint64_t n_exceptions;
    const uint8_t *classes;
    struct ptwm_cursor exceptions;
    uint32_t states[PTWM_MAX_LANES]; /* copied and checked */
    uint32_t crc;                    /* of the stored plane up to its words */
};

/*
 * Reads the head of a chunk of n elements and leaves src at the words, a whole number of them. PTWM_ERR_PLANE,
 * PTWM_ERR_CHECKSUM.
 */
enum ptwm_status ptwm_label_read_head(struct ptwm_label_head *head, const struct ptwm_label_model *model, size_t n,
                                      struct ptwm_cursor *src, struct ptwm_error *error);

/* The exceptions of a chunk, one after the other. */
struct ptwm_exceptions {
    struct ptwm_cursor src;
    uint64_t left;
    unsigned bits;
    size_t n;        /* elements of the chunk */
    size_t position; /* of the exception read last, plus 1 */
};
struct ptwm_exceptions ptwm_exceptions_begin(const struct ptwm_label_head *head, unsigned bits, size_t n);
/* Reads one of those that are left: *position < n, *symbol < 2^bits. False if it is malformed. */
bool ptwm_exceptions_next(struct ptwm_exceptions *exceptions, size_t *position, uint16_t *symbol);

/* The classes of a chunk's units, one after the other. */
struct ptwm_label_classes {
    struct ptwm_bit_reader reader;
    unsigned bits;
    uint32_t n_classes;
};
struct ptwm_label_classes ptwm_label_classes_begin(const struct ptwm_label_head *head);
/* The next unit's class; false if there is no such class. Called at most as often as there are units. */
static inline bool ptwm_label_classes_next(struct ptwm_label_classes *classes, uint8_t *class)
{
    *class = (uint8_t)ptwm_read_bits(&classes->reader, classes->bits);
    return *class < classes->n_classes;
}

/*
 * Decodes the last m elements of a chunk, 0 <= m < 512, which begin with a group of lanes, and checks its end.
 * first_element: of these, in the segment. states are those of head->n_lanes lanes; group_class has the class of each
 * 128 elements; words .. words_end is what is left of the words; carried and n_carried are as in ptwm_label_decode.
 * PTWM_ERR_PLANE.
 */
enum ptwm_status ptwm_label_decode_end(const struct ptwm_label_head *head, const struct ptwm_label_model *model,
                                       uint64_t first_element, const uint32_t *states, const uint8_t *group_class,
                                       const uint8_t *words, const uint8_t *words_end, uint16_t *symbols, size_t m,
                                       uint8_t *carried, size_t n_carried, struct ptwm_error *error);

#endif
