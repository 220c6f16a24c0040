/*
 * What the parts of make_golden share: files with what they have to decode to, saved with their lines of the index.
 *
 *   make_golden.c         the program
 *   make_written.c        files as the library's writer makes them
 *   make_codecs.c         codecs of bytes, chains
 *   make_labels.c         label rANS
 *   make_manifests.c      manifests
 *   make_bad.c            files that must be refused: what is around segments
 *   make_bad_segments.c   the same: tails, planes, labels
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdio.h>

#include "compose.h"
#include "manifest.h"

/* Ends the program if what has to hold does not. */
#define MUST(condition) golden_must(condition, #condition, __FILE__, __LINE__)
void golden_must(bool condition, const char *text, const char *file, int line);

/* The generator of all that is random here (splitmix64). */
uint64_t golden_random(uint64_t *state);

enum { GOLDEN_MAX_TENSORS = 512, GOLDEN_MAX_SEGMENTS = 512, GOLDEN_NO_SHAPE = 255 };

/* A file and its tensors, in order. */
struct golden {
    forge file;
    unsigned n_tensors;
    struct golden_tensor {
        char *name;
        size_t name_nbytes;
        uint32_t dtype;
        unsigned n_dims; /* GOLDEN_NO_SHAPE: none */
        uint64_t shape[32];
        uint8_t *raw;
        size_t nbytes;
    } tensors[GOLDEN_MAX_TENSORS];
    /* Of files made by hand, until golden_seal. */
    forge body, entries;
    uint64_t segments[GOLDEN_MAX_SEGMENTS][4];
    unsigned n_segments;
};

/* Begins a file that has nothing yet; golden_save or golden_bad ends it. */
struct golden *golden_begin(void);
/* A tensor that the file has. All is copied. */
void golden_expect(struct golden *g, const char *name, size_t name_nbytes, uint32_t dtype, unsigned n_dims,
                   const uint64_t *shape, const uint8_t *raw, size_t nbytes);

/* Adds a composed segment; its number. */
unsigned golden_compose(struct golden *g, const struct composition *c, const uint8_t *raw, size_t nbytes);
/* The same, and a tensor that is all of it: bytes without dtype if n_dims is GOLDEN_NO_SHAPE. With a hash. */
void golden_add(struct golden *g, const char *name, uint32_t dtype, unsigned n_dims, const uint64_t *shape,
                const struct composition *c, const uint8_t *raw, size_t nbytes);
/* Puts header, body, a manifest of segments and entries, and the footer together. */
void golden_seal(struct golden *g);

/*
 * Saves a file that has to decode to its tensors, which is tried, and releases it. covers: what it is there for, one line
 * without tabs.
 */
void golden_save(struct golden *g, const char *name, const char *covers);
/*
 * Saves a file that has to fail, which is tried, and releases it. where: "open"; "decode", of tensor number tensor; or
 * "verify", of a file whose tensors can be decoded (without looking at hashes).
 */
void golden_bad(struct golden *g, const char *name, const char *where, unsigned tensor, enum ptwm_status expected,
                const char *covers);

/* Weights of elements of 1, 2, 4 or 8 bytes: floats of that many exponent bits whose scale depends on row and column. */
void golden_floats(uint8_t *raw, size_t n, unsigned width, unsigned exponent_bits, unsigned n_columns, uint64_t seed);
/* Bytes; the more bits, the more of their values occur. 0: all the same. */
void golden_bytes(uint8_t *raw, size_t nbytes, unsigned bits, uint64_t seed);

void make_written(void);
void make_codecs(void);
void make_labels(void);
void make_manifests(void);
void make_bad(void);
void make_bad_segments(void);

/* Where golden files go, and the index that is being written. make_golden.c */
extern const char *golden_directory;
extern FILE *golden_index;

#endif
