/*
 * Looking tensors up by name.
 */
#ifndef PTWM_NAMES_H
#define PTWM_NAMES_H

#include <stdbool.h>

#include "manifest.h"

/* A hash table from names to indices of tensors; does not own them. */
struct ptwm_name_index {
    const struct ptwm_allocator *allocator;
    uint64_t *slots; /* index + 1, or 0 */
    uint64_t capacity; /* a power of 2, or 0 */
    uint64_t n;
};

/* Finds a name among tensors; its index, or PTWM_NONE. */
uint64_t ptwm_name_index_find(const struct ptwm_name_index *index, const struct ptwm_tensor_record *tensors,
                              const char *name, size_t name_nbytes);
/* Makes room for n names in all. tensors are those that are in it. */
enum ptwm_status ptwm_name_index_reserve(struct ptwm_name_index *index, const struct ptwm_tensor_record *tensors,
                                         uint64_t n);
/* Adds tensors[i]; there is room. False if its name is there already (then nothing changes). */
bool ptwm_name_index_add(struct ptwm_name_index *index, const struct ptwm_tensor_record *tensors, uint64_t i);
void ptwm_name_index_release(struct ptwm_name_index *index);

#endif
