/*
 * Making segments of bytes, and of small tensors that have waited for each other.
 */
#include "writer.h"

#include <string.h>

#include "codec.h"
#include "status.h"

/* ----------------------------------------------------------------------------------------------------- encoding */

/* Encodes raw bytes as a segment at the end of output. */
enum ptwm_status ptwm_writer_encode_bytes(const struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                          uint64_t nbytes, uint64_t row_nbytes, unsigned threads,
                                          struct ptwm_encode_memory *memory, struct ptwm_output *output,
                                          struct ptwm_segment_record *record, struct ptwm_error *error)
{
    const struct ptwm_codec_context context = { w->allocator, w->zstd, w->level };
    const struct ptwm_encode_spec spec = { data,
                                           nbytes,
                                           row_nbytes,
                                           recipe->method,
                                           recipe->chains,
                                           recipe->n_chains,
                                           recipe->chains_are_callers,
                                           false,
                                           false,
                                           (w->flags & PTWM_WRITE_PLANE_CRC) != 0,
                                           w->chunk_nbytes,
                                           threads,
                                           &context,
                                           memory,
                                           recipe->repetition };
    return ptwm_segment_encode(&spec, output, record, error);
}

/* Encodes raw bytes as a new segment; *segment is its number. With one thread it takes the calling thread's memory
 * alone. */
enum ptwm_status ptwm_writer_encode_segment(struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                            uint64_t nbytes, uint64_t row_nbytes, unsigned threads, uint64_t *segment,
                                            struct ptwm_error *error)
{
    struct ptwm_segment_record record;
    enum ptwm_status status =
        ptwm_writer_encode_bytes(w, recipe, data, nbytes, row_nbytes, threads, w->memory, w->output, &record, error);

    if (status == PTWM_OK && ptwm_writer_add_segment(w, &record, segment) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another segment");
    return status;
}

/* Writes a segment that has been encoded elsewhere. */
enum ptwm_status ptwm_writer_write_segment(struct ptwm_writer *w, const struct ptwm_segment_record *encoded,
                                           const struct ptwm_bytes *bytes, uint64_t *segment, struct ptwm_error *error)
{
    struct ptwm_segment_record record = *encoded;
    enum ptwm_status status = ptwm_segment_pad(w->output, record.flags, error);

    record.offset = ptwm_output_position(w->output);
    if (status == PTWM_OK)
        status = ptwm_output_write(w->output, bytes->data, bytes->nbytes, error);
    if (status == PTWM_OK && ptwm_writer_add_segment(w, &record, segment) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another segment");
    return status;
}

void ptwm_writer_release_group(struct ptwm_writer *w, uint32_t index)
{
    struct group *group = w->groups[index];

    w->groups[index] = NULL;
    if (group == NULL)
        return;
    ptwm_bytes_release(&group->raw);
    ptwm_bytes_release(&group->members);
    ptwm_release(w->allocator, group, 1, sizeof *group);
}

static bool same_recipe(const struct recipe *a, const struct recipe *b)
{
    if (a->row_nbytes != b->row_nbytes || a->dtype != b->dtype || a->method != b->method || a->chains_are_callers != b->chains_are_callers ||
        a->n_chains != b->n_chains)
        return false;
    for (size_t i = 0; i < a->n_chains; i++)
        if (a->chains[i].nbytes != b->chains[i].nbytes ||
            memcmp(a->chains[i].bytes, b->chains[i].bytes, a->chains[i].nbytes) != 0)
            return false;
    return true;
}

static void copy_recipe(struct recipe *to, const struct recipe *from)
{
    to->dtype = from->dtype;
    to->row_nbytes = from->row_nbytes;
    to->method = from->method;
    to->chains_are_callers = from->chains_are_callers;
    to->n_chains = from->n_chains;
    to->repetition = PTWM_REPETITION_UNKNOWN;
    for (size_t i = 0; i < from->n_chains; i++)
        ptwm_chain_copy(&to->chains[i], &from->chains[i]);
}

/* Turns a group into a segment. */
enum ptwm_status ptwm_writer_flush_group(struct ptwm_writer *w, uint32_t index, struct ptwm_error *error)
{
    struct group *group = w->groups[index];
    uint64_t segment = PTWM_NONE, tensor;
    enum ptwm_status status =
        ptwm_writer_encode_segment(w, &group->recipe, group->raw.data, group->raw.nbytes, group->recipe.row_nbytes,
                                   1, &segment, error);

    for (size_t i = 0; status == PTWM_OK && i < group->members.nbytes; i += sizeof tensor) {
        memcpy(&tensor, group->members.data + i, sizeof tensor);
        w->manifest.tensors[tensor].segment = segment;
        w->group_of[tensor] = PTWM_NO_GROUP;
    }
    if (status == PTWM_OK)
        ptwm_writer_release_group(w, index);
    return status;
}

static enum ptwm_status new_group(struct ptwm_writer *w, const struct recipe *recipe, uint32_t *index)
{
    const struct ptwm_bytes empty = { w->allocator, NULL, 0, 0 };
    struct group *group;
    uint32_t i = 0;

    while (i < w->n_groups && w->groups[i] != NULL)
        i++;
    if (i == w->groups_capacity) {
        void *groups = w->groups;
        if (ptwm_writer_grow(w->allocator, &groups, w->n_groups, w->groups_capacity, w->groups_capacity * 2 + 8,
                             sizeof *w->groups) != PTWM_OK)
            return PTWM_ERR_MEMORY;
        w->groups = groups;
        w->groups_capacity = w->groups_capacity * 2 + 8;
    }
    group = ptwm_alloc(w->allocator, 1, sizeof *group);
    if (group == NULL)
        return PTWM_ERR_MEMORY;
    copy_recipe(&group->recipe, recipe);
    group->raw = group->members = empty;
    w->groups[i] = group;
    if (i == w->n_groups)
        w->n_groups++;
    *index = i;
    return PTWM_OK;
}

/* Puts a small tensor into the group of its recipe. */
enum ptwm_status ptwm_writer_add_to_group(struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                          uint64_t nbytes, uint64_t tensor, struct ptwm_error *error)
{
    enum ptwm_status status = PTWM_OK;
    struct group *group;
    uint32_t i = 0;

    while (i < w->n_groups && (w->groups[i] == NULL || !same_recipe(&w->groups[i]->recipe, recipe)))
        i++;
    if (i < w->n_groups && w->groups[i]->raw.nbytes + nbytes > PTWM_GROUP_NBYTES) {
        status = ptwm_writer_flush_group(w, i, error);
        i = w->n_groups;
    }
    if (status == PTWM_OK && i == w->n_groups && new_group(w, recipe, &i) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "a group of tensors");
    if (status != PTWM_OK)
        return status;
    group = w->groups[i];
    w->manifest.tensors[tensor].offset = group->raw.nbytes;
    w->group_of[tensor] = i;
    if (ptwm_bytes_append(&group->raw, data, (size_t)nbytes) != PTWM_OK ||
        ptwm_bytes_append(&group->members, &tensor, sizeof tensor) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a group of tensors");
    return PTWM_OK;
}
