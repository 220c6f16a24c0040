/*
 * What fuzz targets share. Each target is one file with LLVMFuzzerTestOneInput, built twice: with libFuzzer where the option
 * "fuzz" is on, and with replay.c, which runs the committed corpus in the ordinary tests.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ptwm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* What must hold for any input at all; prints and aborts, in builds of all kinds. */
#define FUZZ_CHECK(condition)                                    \
    do {                                                         \
        if (!(condition))                                        \
            fuzz_failed(__FILE__, __LINE__, #condition);         \
    } while (0)
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void fuzz_failed(const char *file, int line, const char *condition);

/*
 * nbytes bytes that end where a page begins that nobody may touch, so that even what a sanitizer does not see, vector loads
 * of inline assembly or of zstd, does not go unnoticed. There are FUZZ_SLOTS such places; each is used again by the next
 * call with its number.
 */
enum { FUZZ_SLOTS = 40, FUZZ_SLOT_NBYTES = 1 << 21 };
uint8_t *fuzz_guarded(unsigned slot, size_t nbytes);
/* The same, with a copy of data. */
uint8_t *fuzz_guarded_copy(unsigned slot, const void *data, size_t nbytes);

/* An allocator that counts, and refuses what would go past limit. */
struct fuzz_budget {
    size_t live, peak, limit;
    uint8_t fill;
};
struct ptwm_allocator fuzz_allocator(struct fuzz_budget *budget);

/* Takes parameters from the front of an input; zeros when it is used up. */
struct fuzz_input {
    const uint8_t *next;
    size_t left;
};
uint64_t fuzz_take(struct fuzz_input *input, unsigned nbytes);

/* A generator (splitmix64). */
uint64_t fuzz_random(uint64_t *state);

#endif
