#include "pages.h"

#include "os.h"
#include "ptwm.h"

enum {
    ALIGNMENT = 64,
    SPARE_NBYTES = 64 << 20 /* of a file in memory, kept for the next one */
};

/*
 * Pages of a file in memory that has been closed, for the next one: the system clears fresh pages, which takes a tenth of
 * encoding. One block at most, whose first bytes say how large it is.
 */
static size_t *spare; /* atomic */

void *ptwm_pages_take(size_t *nbytes)
{
    size_t *block = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQUIRE);

    if (block == NULL)
        return ptwm_os_map_pages(*nbytes);
    if (*block >= *nbytes) {
        *nbytes = *block;
        return block;
    }
    ptwm_os_unmap_pages(block, *block);
    return ptwm_os_map_pages(*nbytes);
}

void *ptwm_pages_grow(void *pages, size_t old_nbytes, size_t nbytes)
{
    return ptwm_os_grow_pages(pages, old_nbytes, nbytes);
}

void ptwm_pages_give(void *pages, size_t nbytes)
{
    size_t *block = pages;

    if (nbytes <= SPARE_NBYTES) {
        *block = nbytes;
        block = __atomic_exchange_n(&spare, block, __ATOMIC_ACQ_REL);
    }
    if (block != NULL)
        ptwm_os_unmap_pages(block, nbytes <= SPARE_NBYTES ? *block : nbytes);
}

/* --------------------------------------------------------------------------------------- memory for decoded tensors */

enum ptwm_status ptwm_memory_alloc(size_t nbytes, void **memory)
{
    void *p;

    if (nbytes >= PTWM_HUGE_PAGE_NBYTES)
        p = ptwm_os_map_pages(nbytes);
    else
        p = ptwm_os_aligned_alloc(ALIGNMENT, nbytes > 0 ? nbytes : 1);
    if (p == NULL)
        return PTWM_ERR_MEMORY;
    *memory = p;
    return PTWM_OK;
}

void ptwm_memory_free(void *memory, size_t nbytes)
{
    if (memory != NULL && nbytes >= PTWM_HUGE_PAGE_NBYTES)
        ptwm_os_unmap_pages(memory, nbytes);
    else
        ptwm_os_aligned_free(memory);
}

void ptwm_memory_prefer_huge_pages(void *memory, size_t nbytes)
{
    ptwm_os_prefer_huge_pages(memory, nbytes);
}
