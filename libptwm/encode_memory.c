#include "encode_memory.h"

enum {
    N_SPARES = 2,
    SPARE_NBYTES = 16 << 20, /* kept at most, of each */
    N_BLOCKS = 10
};

/* What writers had that have been closed. */
static struct ptwm_encode_memory *spares[N_SPARES]; /* atomic */

static void list_blocks(struct ptwm_encode_memory *m, struct ptwm_bytes *blocks[N_BLOCKS])
{
    struct ptwm_float_scratch *s = &m->scratch;
    unsigned n = 0;

    blocks[n++] = &s->labels;
    blocks[n++] = &s->words;
    blocks[n++] = &s->exceptions;
    blocks[n++] = &s->listed;
    blocks[n++] = &s->plane;
    blocks[n++] = &m->shift;
    blocks[n++] = &m->histograms;
    blocks[n++] = &m->classes;
    blocks[n++] = &m->stored[0];
    blocks[n++] = &m->stored[1];
}

void ptwm_encode_memory_init(struct ptwm_encode_memory *memory, const struct ptwm_allocator *allocator)
{
    const struct ptwm_bytes empty = { allocator, NULL, 0, 0 };
    struct ptwm_bytes *blocks[N_BLOCKS];

    list_blocks(memory, blocks);
    for (unsigned i = 0; i < N_BLOCKS; i++)
        *blocks[i] = empty;
}

void ptwm_encode_memory_release(struct ptwm_encode_memory *memory)
{
    struct ptwm_bytes *blocks[N_BLOCKS];

    list_blocks(memory, blocks);
    for (unsigned i = 0; i < N_BLOCKS; i++)
        ptwm_bytes_release(blocks[i]);
}

/* ------------------------------------------------------------------------------------------- from writer to writer */

static size_t total_nbytes(struct ptwm_encode_memory *memory)
{
    struct ptwm_bytes *blocks[N_BLOCKS];
    size_t total = 0;

    list_blocks(memory, blocks);
    for (unsigned i = 0; i < N_BLOCKS; i++)
        total += blocks[i]->capacity;
    return total;
}

void ptwm_encode_memory_take(struct ptwm_encode_memory *memory, const struct ptwm_allocator *allocator)
{
    struct ptwm_encode_memory *kept = NULL;

    for (unsigned i = 0; i < N_SPARES && kept == NULL && allocator == &ptwm_default_allocator; i++)
        kept = __atomic_exchange_n(&spares[i], NULL, __ATOMIC_ACQUIRE);
    if (kept == NULL) {
        ptwm_encode_memory_init(memory, allocator);
        return;
    }
    *memory = *kept;
    ptwm_release(allocator, kept, 1, sizeof *kept);
}

void ptwm_encode_memory_give(struct ptwm_encode_memory *memory)
{
    const struct ptwm_allocator *allocator = memory->shift.allocator;
    struct ptwm_encode_memory *kept = NULL;

    if (allocator == &ptwm_default_allocator && total_nbytes(memory) <= SPARE_NBYTES)
        kept = ptwm_alloc(allocator, 1, sizeof *kept);
    if (kept == NULL) {
        ptwm_encode_memory_release(memory);
        return;
    }
    *kept = *memory;
    for (unsigned i = 0; i < N_SPARES && kept != NULL; i++)
        kept = __atomic_exchange_n(&spares[i], kept, __ATOMIC_ACQ_REL);
    if (kept == NULL)
        return;
    ptwm_encode_memory_release(kept);
    ptwm_release(allocator, kept, 1, sizeof *kept);
}
