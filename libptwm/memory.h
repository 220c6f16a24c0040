/*
 * Allocation through the caller's struct ptwm_allocator, and a growable buffer of bytes.
 */
#ifndef PTWM_MEMORY_H
#define PTWM_MEMORY_H

#include "ptwm.h"

/* The allocator to use where the caller gave none. */
extern const struct ptwm_allocator ptwm_default_allocator;

/* n * size bytes, not zeroed; NULL if that overflows or there is no memory. n * size = 0 gives a valid pointer too. */
void *ptwm_alloc(const struct ptwm_allocator *allocator, uint64_t n, size_t size);
/* The same, zeroed. */
void *ptwm_calloc(const struct ptwm_allocator *allocator, uint64_t n, size_t size);
/* Releases what ptwm_alloc or ptwm_calloc gave for n and size. p may be NULL. */
void ptwm_release(const struct ptwm_allocator *allocator, void *p, uint64_t n, size_t size);

/* Bytes that grow. Begin with { allocator }; end with ptwm_bytes_release. */
struct ptwm_bytes {
    const struct ptwm_allocator *allocator;
    uint8_t *data;
    size_t nbytes;
    size_t capacity;
};

/* Makes room for extra more bytes behind nbytes (which stays). PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_bytes_reserve(struct ptwm_bytes *bytes, uint64_t extra);
/* Appends n bytes. PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_bytes_append(struct ptwm_bytes *bytes, const void *data, size_t n);
enum ptwm_status ptwm_bytes_append_u8(struct ptwm_bytes *bytes, uint8_t value);
enum ptwm_status ptwm_bytes_append_u32(struct ptwm_bytes *bytes, uint32_t value);
enum ptwm_status ptwm_bytes_append_varint(struct ptwm_bytes *bytes, uint64_t value);
void ptwm_bytes_release(struct ptwm_bytes *bytes);

/*
 * Scratch memory that is reused: makes *bytes at least nbytes large, without keeping its content, and sets
 * bytes->nbytes to nbytes. NULL if there is no memory, else bytes->data.
 */
uint8_t *ptwm_bytes_scratch(struct ptwm_bytes *bytes, uint64_t nbytes);

#endif
