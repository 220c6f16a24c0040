/*
 * Coding with label rANS for callers who have labels already: an encoder is made of a set once, and then codes any
 * number of chunks, on any number of threads.
 */
#ifndef PTWM_LABEL_ENCODE_H
#define PTWM_LABEL_ENCODE_H

#include "label.h"

#if defined(__GNUC__)
#define PTWM_ALIGNED(n) __attribute__((aligned(n)))
#else
#define PTWM_ALIGNED(n)
#endif

enum {
    PTWM_LABEL_MASK = 31,    /* PTWM_PHASE, besides, is set for elements in columns of phase 1 */
    PTWM_IS_EXCEPTION = 128, /* in a label: coded as the label in the low bits, and then patched */
    PTWM_N_SLOTS = PTWM_FREQUENCY_TOTAL / PTWM_FREQUENCY_GRANULE
};

/* What coding one label takes. */
struct ptwm_label_coder {
    uint32_t frequency;
    uint32_t reciprocal; /* floor(x / frequency) = (x >> 3) * reciprocal >> shift, for all x < 2^32 */
    uint32_t shift;
    uint32_t first_slot; /* of the label in inverse */
};

/*
 * The same for vector kernels, which divide u16 lanes: a state high * 2^16 + low by a frequency above high. Both are
 * moved up by shift, until the frequency's highest bit is set; that is the divisor, and with reciprocal =
 * floor((2^32 - 1) / divisor) - 2^16 a quotient takes two products and two corrections (Moller and Granlund, "Improved
 * division by invariant integers", 2011). Labels that there are not have the frequency 0.
 */
struct ptwm_label_divisors {
    uint16_t frequency[PTWM_MAX_LABELS], divisor[PTWM_MAX_LABELS], reciprocal[PTWM_MAX_LABELS];
    uint16_t shift[PTWM_MAX_LABELS];
    uint16_t first_slot[PTWM_MAX_LABELS]; /* in the inverse of the class's phase 0, behind which that of phase 1 lies */
    /* Low and high bytes of frequency, 2^shift, reciprocal and first_slot. */
    uint8_t bytes[4][2][PTWM_MAX_LABELS];
};

/*
 * The alias table backwards, without a large table. A label's ranks lie in pieces: one in its own bucket and one in
 * each bucket that it is the alias of, at most 63 pieces for all labels together. Within a piece, the state's low half
 * is 32 rank + a constant (modulo 2^16), the piece's place. Pieces are found by cells of 1024 ranks of a label: the
 * number of the piece at the cell's beginning, plus one for each of the limits that are passed, n_limits at most. Real
 * weights take up to four limits, most of them no more than two; where there are more than PTWM_PIECE_LIMITS, this is
 * of no use.
 *
 * A limit is the piece's first rank in the cell divided by 4, less one, or 255 for none: kernels have a quarter of the
 * rank in the cell in a byte, and ask whether it is above.
 */
enum { PTWM_PIECE_CELLS = 128, PTWM_PIECE_CELL_RANKS = 1024, PTWM_PIECE_LIMITS = 4 };
struct ptwm_pieces {
    unsigned n_limits;
    uint8_t first_cell[64]; /* of each label; padded to a vector's length */
    uint8_t first_piece[PTWM_PIECE_CELLS];
    uint8_t limits[PTWM_PIECE_LIMITS][PTWM_PIECE_CELLS];
    uint16_t place[64]; /* of each piece */
};

struct ptwm_class_encoder {
    struct ptwm_label_coder labels[PTWM_MAX_LABELS];
    struct ptwm_label_divisors divisors;
    struct ptwm_pieces pieces;
    /*
     * The low half of the state from which the decoder gets (label, rank), for each rank that is a multiple of 8.
     * Gathers take 32 bits at a time, hence one more.
     */
    uint16_t inverse[PTWM_N_SLOTS + 2];
    uint8_t most_frequent; /* label, which exceptions are coded as */
};

struct ptwm_label_states;

struct ptwm_label_encoder {
    const struct ptwm_allocator *allocator;
    uint32_t n_classes;
    uint32_t n_phases;                   /* 1 or 2 */
    struct ptwm_class_encoder *by_class; /* n_phases for each class */
    bool has_inverses;                   /* else there are the pieces alone */
    /* Codes n labels of a class, a multiple of PTWM_MAX_LANES; words end at words, where they begin is returned. */
    uint8_t *(*encode_run)(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                           struct ptwm_label_states *states, uint8_t *words);
};

/* Begin with { 0 }; it is for the processor of now. The set is not needed any more afterwards. PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_label_encoder_init(struct ptwm_label_encoder *encoder, const struct ptwm_allocator *allocator,
                                         const struct ptwm_label_set *set, bool has_phases);
void ptwm_label_encoder_release(struct ptwm_label_encoder *encoder);

struct ptwm_label_chunk {
    size_t n;               /* elements, at least 1 */
    uint8_t width;          /* of the label step: width 1 has its own order of lanes */
    uint32_t unit;
    uint32_t set;           /* its number */
    const uint8_t *classes; /* of the units */
};

/* How many lanes a chunk of n elements has. */
uint32_t ptwm_label_n_lanes(size_t n, uint32_t unit);

/* The lanes' states, high * 2^16 + low. In halves, as words are low halves and vector kernels divide by halves. */
struct ptwm_label_states {
    uint16_t low[PTWM_MAX_LANES] PTWM_ALIGNED(64);
    uint16_t high[PTWM_MAX_LANES] PTWM_ALIGNED(64);
};

/* Memory that the caller will go through next, from its end to its beginning: so many bits of it for each label. */
struct ptwm_upcoming {
    const uint8_t *end; /* NULL: nothing */
    size_t bits;
};

/* A chunk that is being coded, from its end. */
struct ptwm_label_coding {
    const struct ptwm_label_encoder *encoder;
    const struct ptwm_label_chunk *chunk;
    struct ptwm_label_states states;
    uint8_t *words, *words_end;
    struct ptwm_upcoming upcoming[2]; /* fetched meanwhile: coding is busy with what is in the caches */
};
/* carried: two bytes a lane, or NULL. room has 2 n bytes, which the coding uses until its end. */
void ptwm_label_begin(struct ptwm_label_coding *coding, const struct ptwm_label_encoder *encoder,
                      const struct ptwm_label_chunk *chunk, const uint8_t *carried, uint8_t *room);
/*
 * Codes elements begin .. end - 1, whose labels these are, each at its ptwm_label_place in its unit. The first
 * call's end is n, each other one's the begin of the one before, the last one's begin 0; each begin is a multiple of
 * the unit.
 */
void ptwm_label_code(struct ptwm_label_coding *coding, const uint8_t *labels, size_t begin, size_t end);
/* What ptwm_label_end needs room for. */
size_t ptwm_label_end_bound(const struct ptwm_label_coding *coding, size_t exceptions_nbytes);
/* Writes the chunk with its exceptions, which are given as they are stored; returns its length. */
size_t ptwm_label_end(struct ptwm_label_coding *coding, size_t n_exceptions, const uint8_t *exceptions,
                      size_t exceptions_nbytes, uint8_t *dst);

#endif
