#include "encode_memory.h"

static void init_scratch(struct ptwm_float_scratch *scratch, const struct ptwm_allocator *allocator)
{
    const struct ptwm_bytes empty = { allocator, NULL, 0, 0 };
    scratch->labels = scratch->words = scratch->exceptions = scratch->listed = scratch->plane = empty;
}

static void release_scratch(struct ptwm_float_scratch *scratch)
{
    ptwm_bytes_release(&scratch->labels);
    ptwm_bytes_release(&scratch->words);
    ptwm_bytes_release(&scratch->exceptions);
    ptwm_bytes_release(&scratch->listed);
    ptwm_bytes_release(&scratch->plane);
}

void ptwm_encode_memory_init(struct ptwm_encode_memory *memory, const struct ptwm_allocator *allocator)
{
    const struct ptwm_bytes empty = { allocator, NULL, 0, 0 };

    init_scratch(&memory->scratch, allocator);
    memory->shift = memory->histograms = memory->classes = empty;
    memory->stored[0] = memory->stored[1] = empty;
}

void ptwm_encode_memory_release(struct ptwm_encode_memory *memory)
{
    release_scratch(&memory->scratch);
    ptwm_bytes_release(&memory->shift);
    ptwm_bytes_release(&memory->histograms);
    ptwm_bytes_release(&memory->classes);
    ptwm_bytes_release(&memory->stored[0]);
    ptwm_bytes_release(&memory->stored[1]);
}
