#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "bits.h"

/* Blocks of this size and more take huge pages where there are any: page faults are what fresh memory costs most. */
enum { LARGE_NBYTES = 2 << 20 };

static void *default_alloc(void *context, size_t nbytes)
{
    void *p = NULL;

    (void)context;
    if (nbytes < LARGE_NBYTES)
        return malloc(nbytes);
    return ptwm_memory_alloc(nbytes, &p) == PTWM_OK ? p : NULL;
}

static void default_release(void *context, void *pointer, size_t nbytes)
{
    (void)context;
    if (nbytes < LARGE_NBYTES)
        free(pointer);
    else
        ptwm_memory_free(pointer, nbytes);
}

const struct ptwm_allocator ptwm_default_allocator = { default_alloc, default_release, NULL };

/* The size to pass to the allocator for n * size bytes (at least 1), or 0 if it does not fit. */
static size_t product_nbytes(uint64_t n, size_t size)
{
    uint64_t nbytes;
    if (!ptwm_mul_u64(n, size, &nbytes) || nbytes > SIZE_MAX / 2)
        return 0;
    return nbytes > 0 ? (size_t)nbytes : 1;
}

void *ptwm_alloc(const struct ptwm_allocator *allocator, uint64_t n, size_t size)
{
    size_t nbytes = product_nbytes(n, size);
    return nbytes > 0 ? allocator->alloc(allocator->context, nbytes) : NULL;
}

void *ptwm_calloc(const struct ptwm_allocator *allocator, uint64_t n, size_t size)
{
    void *p = ptwm_alloc(allocator, n, size);
    if (p != NULL)
        memset(p, 0, product_nbytes(n, size));
    return p;
}

void ptwm_release(const struct ptwm_allocator *allocator, void *p, uint64_t n, size_t size)
{
    if (p != NULL)
        allocator->release(allocator->context, p, product_nbytes(n, size));
}

enum ptwm_status ptwm_bytes_reserve(struct ptwm_bytes *bytes, uint64_t extra)
{
    uint64_t needed, capacity;
    uint8_t *data;

    if (!ptwm_add_u64(bytes->nbytes, extra, &needed))
        return PTWM_ERR_MEMORY;
    if (needed <= bytes->capacity)
        return PTWM_OK;
    capacity = bytes->capacity + bytes->capacity / 2;
    if (capacity < needed)
        capacity = needed;
    data = ptwm_alloc(bytes->allocator, capacity, 1);
    if (data == NULL)
        return PTWM_ERR_MEMORY;
    if (bytes->nbytes > 0)
        memcpy(data, bytes->data, bytes->nbytes);
    ptwm_release(bytes->allocator, bytes->data, bytes->capacity, 1);
    bytes->data = data;
    bytes->capacity = (size_t)capacity;
    return PTWM_OK;
}

enum ptwm_status ptwm_bytes_append(struct ptwm_bytes *bytes, const void *data, size_t n)
{
    if (n == 0)
        return PTWM_OK;
    if (ptwm_bytes_reserve(bytes, n) != PTWM_OK)
        return PTWM_ERR_MEMORY;
    memcpy(bytes->data + bytes->nbytes, data, n);
    bytes->nbytes += n;
    return PTWM_OK;
}

enum ptwm_status ptwm_bytes_append_u8(struct ptwm_bytes *bytes, uint8_t value)
{
    return ptwm_bytes_append(bytes, &value, 1);
}

enum ptwm_status ptwm_bytes_append_u32(struct ptwm_bytes *bytes, uint32_t value)
{
    uint8_t stored[4];
    ptwm_store32(stored, value);
    return ptwm_bytes_append(bytes, stored, sizeof stored);
}

enum ptwm_status ptwm_bytes_append_varint(struct ptwm_bytes *bytes, uint64_t value)
{
    uint8_t stored[10];
    return ptwm_bytes_append(bytes, stored, ptwm_store_varint(stored, value));
}

void ptwm_bytes_release(struct ptwm_bytes *bytes)
{
    ptwm_release(bytes->allocator, bytes->data, bytes->capacity, 1);
    bytes->data = NULL;
    bytes->nbytes = bytes->capacity = 0;
}

uint8_t *ptwm_bytes_scratch(struct ptwm_bytes *bytes, uint64_t nbytes)
{
    bytes->nbytes = 0; /* nothing to keep when it grows */
    if (ptwm_bytes_reserve(bytes, nbytes > 0 ? nbytes : 1) != PTWM_OK)
        return NULL;
    bytes->nbytes = (size_t)nbytes;
    return bytes->data;
}
