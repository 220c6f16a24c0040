#define _DEFAULT_SOURCE
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "guard.h"

void fuzz_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: FUZZ_CHECK(%s)\n", file, line, condition);
    abort();
}

uint8_t *fuzz_guarded(unsigned slot, size_t nbytes)
{
    static uint8_t *slots[FUZZ_SLOTS];

    FUZZ_CHECK(slot < FUZZ_SLOTS && nbytes <= FUZZ_SLOT_NBYTES);
    if (slots[slot] == NULL)
        slots[slot] = guard_alloc(FUZZ_SLOT_NBYTES);
    FUZZ_CHECK(slots[slot] != NULL);
    return slots[slot] + FUZZ_SLOT_NBYTES - nbytes;
}

uint8_t *fuzz_guarded_copy(unsigned slot, const void *data, size_t nbytes)
{
    uint8_t *copy = fuzz_guarded(slot, nbytes);

    if (nbytes > 0)
        memcpy(copy, data, nbytes);
    return copy;
}

static void *budget_alloc(void *context, size_t nbytes)
{
    struct fuzz_budget *budget = context;
    void *p;

    if (nbytes > budget->limit - budget->live || (p = malloc(nbytes)) == NULL)
        return NULL;
    memset(p, ++budget->fill, nbytes < 65536 ? nbytes : 65536); /* what is not written shows */
    budget->live += nbytes;
    budget->peak = budget->live > budget->peak ? budget->live : budget->peak;
    return p;
}

static void budget_release(void *context, void *pointer, size_t nbytes)
{
    struct fuzz_budget *budget = context;

    FUZZ_CHECK(budget->live >= nbytes);
    budget->live -= nbytes;
    free(pointer);
}

struct ptwm_allocator fuzz_allocator(struct fuzz_budget *budget)
{
    const struct ptwm_allocator allocator = { budget_alloc, budget_release, budget };
    return allocator;
}

uint64_t fuzz_take(struct fuzz_input *input, unsigned nbytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < nbytes && input->left > 0; i++, input->left--)
        value |= (uint64_t)*input->next++ << 8 * i;
    return value;
}

uint64_t fuzz_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
