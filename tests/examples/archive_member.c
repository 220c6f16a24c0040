/*
 * Reads a model that lies uncompressed inside another file, as members of tar and zip archives do, and that could as
 * well be on a server: the library asks for ranges of bytes, the program gets them. Its memory comes from an allocator
 * of the program's own, which has a limit.
 *
 * Usage: archive_member FILE OFFSET LENGTH
 */
#include <errno.h>
#include <ptwm.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------------- bytes */

struct member {
    FILE *file;
    uint64_t offset;
};

/* Called by one thread at a time, since the decode options below say so; else it would need a lock. */
static int read_member(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    struct member *member = context;

    if (fseek(member->file, (long)(member->offset + offset), SEEK_SET) != 0 ||
        fread(buffer, 1, nbytes, member->file) != nbytes)
        return EIO;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------ memory */

struct budget {
    size_t used, most, limit;
};

static void *alloc_from(void *context, size_t nbytes)
{
    struct budget *budget = context;
    void *memory = nbytes <= budget->limit - budget->used ? malloc(nbytes) : NULL;

    if (memory != NULL)
        budget->used += nbytes;
    if (budget->used > budget->most)
        budget->most = budget->used;
    return memory;
}

static void release_to(void *context, void *memory, size_t nbytes)
{
    struct budget *budget = context;

    budget->used -= nbytes;
    free(memory);
}

/* -------------------------------------------------------------------------------------------------------- model */

static enum ptwm_status load_tensors(const struct ptwm_reader *reader, struct ptwm_error *error)
{
    struct ptwm_tensor_info tensor = { .struct_nbytes = sizeof tensor };
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;

    options.threads = 1;
    for (uint64_t i = 0; ptwm_reader_get_tensor(reader, i, &tensor) == PTWM_OK; i++) {
        struct ptwm_request request = { i, 0, PTWM_NONE, malloc((size_t)tensor.nbytes + 1), tensor.nbytes };
        enum ptwm_status status = request.buffer != NULL ? PTWM_OK : PTWM_ERR_MEMORY;
        if (status == PTWM_OK)
            status = ptwm_reader_decode(reader, &request, 1, &options, error);
        if (status == PTWM_OK)
            printf("%.*s %s %llu %08lx\n", (int)tensor.name_nbytes, tensor.name, ptwm_dtype_name(tensor.dtype),
                   (unsigned long long)tensor.nbytes, (unsigned long)ptwm_crc32c(0, request.buffer, tensor.nbytes));
        free(request.buffer);
        if (status != PTWM_OK)
            return status;
    }
    return PTWM_OK;
}

int main(int argc, char **argv)
{
    struct budget budget = { 0, 0, 4 << 20 };
    const struct ptwm_allocator allocator = { alloc_from, release_to, &budget };
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *reader;
    struct ptwm_source source;
    struct member member;
    enum ptwm_status status;

    if (argc != 4)
        return 2;
    member.file = fopen(argv[1], "rb");
    member.offset = strtoull(argv[2], NULL, 10);
    if (member.file == NULL)
        return 1;
    source.read = read_member;
    source.context = &member;
    source.total_nbytes = strtoull(argv[3], NULL, 10);
    options.allocator = &allocator;
    status = ptwm_reader_open_source(&source, &options, &reader, &error);
    if (status == PTWM_OK) {
        status = load_tensors(reader, &error);
        ptwm_reader_close(reader);
    }
    fclose(member.file);
    if (status != PTWM_OK)
        fprintf(stderr, "%s: %s: %s\n", argv[1], ptwm_status_string(status), error.detail);
    else
        fprintf(stderr, "%lu bytes of memory at most, %lu left behind\n", (unsigned long)budget.most,
                (unsigned long)budget.used);
    return status != PTWM_OK;
}
