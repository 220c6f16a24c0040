#include "names.h"

#include <string.h>

#include "bits.h"

static uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

struct sip {
    uint64_t v0, v1, v2, v3;
};

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32) + s->v3;
    s->v2 += s->v1;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v2 = rotate(s->v2, 32);
}

/*
 * SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF"), keyed with where the table lies in memory,
 * so that whoever writes a file cannot make its names collide.
 */
static uint64_t name_hash(const struct ptwm_name_index *index, const char *name, size_t name_nbytes)
{
    const uint64_t k0 = (uintptr_t)index->slots, k1 = k0 * 0x9E3779B97F4A7C15u;
    struct sip s = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u };
    uint64_t last = (uint64_t)name_nbytes << 56;
    size_t i = 0;

    for (; i + 8 <= name_nbytes; i += 8) {
        uint64_t m = ptwm_load64(name + i);
        s.v3 ^= m;
        sip_round(&s);
        s.v0 ^= m;
    }
    for (unsigned shift = 0; i < name_nbytes; i++, shift += 8)
        last |= (uint64_t)(uint8_t)name[i] << shift;
    s.v3 ^= last;
    sip_round(&s);
    s.v0 ^= last;
    s.v2 ^= 255;
    for (int i_round = 0; i_round < 3; i_round++)
        sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The slot that holds the name, or the free one where it would go. */
static uint64_t probe(const struct ptwm_name_index *index, const struct ptwm_tensor_record *tensors, const char *name,
                      size_t name_nbytes)
{
    uint64_t slot = name_hash(index, name, name_nbytes) & (index->capacity - 1);

    while (index->slots[slot] != 0) {
        const struct ptwm_tensor_record *t = &tensors[index->slots[slot] - 1];
        if (t->name_nbytes == name_nbytes && (name_nbytes == 0 || memcmp(t->name, name, name_nbytes) == 0))
            break;
        slot = (slot + 1) & (index->capacity - 1);
    }
    return slot;
}

uint64_t ptwm_name_index_find(const struct ptwm_name_index *index, const struct ptwm_tensor_record *tensors,
                              const char *name, size_t name_nbytes)
{
    if (index->capacity == 0)
        return PTWM_NONE;
    return index->slots[probe(index, tensors, name, name_nbytes)] - 1; /* 0 - 1 is PTWM_NONE */
}

enum ptwm_status ptwm_name_index_reserve(struct ptwm_name_index *index, const struct ptwm_tensor_record *tensors,
                                         uint64_t n)
{
    struct ptwm_name_index larger = { index->allocator, NULL, 16, 0 };

    if (n <= index->capacity / 2)
        return PTWM_OK;
    while (larger.capacity / 2 < n)
        larger.capacity *= 2;
    larger.slots = ptwm_calloc(index->allocator, larger.capacity, sizeof *larger.slots);
    if (larger.slots == NULL)
        return PTWM_ERR_MEMORY;
    for (uint64_t s = 0; s < index->capacity; s++)
        if (index->slots[s] != 0)
            (void)ptwm_name_index_add(&larger, tensors, index->slots[s] - 1);
    ptwm_name_index_release(index);
    *index = larger;
    return PTWM_OK;
}

bool ptwm_name_index_add(struct ptwm_name_index *index, const struct ptwm_tensor_record *tensors, uint64_t i)
{
    uint64_t slot = probe(index, tensors, tensors[i].name, tensors[i].name_nbytes);
    if (index->slots[slot] != 0)
        return false;
    index->slots[slot] = i + 1;
    index->n++;
    return true;
}

void ptwm_name_index_release(struct ptwm_name_index *index)
{
    ptwm_release(index->allocator, index->slots, index->capacity, sizeof *index->slots);
    index->slots = NULL;
    index->capacity = index->n = 0;
}
