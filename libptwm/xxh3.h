/*
 * XXH3-64 with seed 0 and the default secret (the public specification of the xxHash project,
 * https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), over memory or over a stream.
 */
#ifndef PTWM_XXH3_H
#define PTWM_XXH3_H

#include <stddef.h>
#include <stdint.h>

struct ptwm_xxh3 {
    uint64_t acc[8];
    uint8_t buffer[256];
    uint32_t buffered;
    uint32_t stripes_in_block; /* consumed since the last scramble */
    uint64_t total_nbytes;
};

/*
 * ptwm_xxh3_64 of ptwm.h, which hashes memory at once; and the same for who has to look at the data too: visit gets all
 * of it, in order, a few KiB at a time, while they are in the first cache. So the processor fetches what comes next
 * meanwhile.
 */
typedef void (*ptwm_xxh3_visit_fn)(void *context, const uint8_t *piece, size_t nbytes);
uint64_t ptwm_xxh3_64_visit(const void *data, size_t nbytes, ptwm_xxh3_visit_fn visit, void *context);

/* Over a stream. */
void ptwm_xxh3_init(struct ptwm_xxh3 *state);
void ptwm_xxh3_update(struct ptwm_xxh3 *state, const void *data, size_t nbytes);
/* The hash of all that was given so far; more may follow. */
uint64_t ptwm_xxh3_digest(const struct ptwm_xxh3 *state);

#endif
