/*
 * The CBOR reader and the manifest: four bytes of the manifest's offset, then its bytes. What can be read can be written,
 * and reads as the same again.
 */
#include "cbor.h"
#include "fuzz.h"
#include "manifest.h"

static void check_same(const struct ptwm_manifest *a, const struct ptwm_manifest *b)
{
    FUZZ_CHECK(a->n_segments == b->n_segments && a->n_tensors == b->n_tensors);
    for (uint64_t i = 0; i < a->n_segments; i++)
        FUZZ_CHECK(memcmp(&a->segments[i], &b->segments[i], sizeof a->segments[i]) == 0);
    for (uint64_t i = 0; i < a->n_tensors; i++) {
        const struct ptwm_tensor_record *x = &a->tensors[i], *y = &b->tensors[i];
        FUZZ_CHECK(x->name_nbytes == y->name_nbytes && memcmp(x->name, y->name, x->name_nbytes) == 0);
        FUZZ_CHECK(ptwm_is_utf8(x->name, x->name_nbytes));
        FUZZ_CHECK(x->dtype == y->dtype && x->n_dims == y->n_dims && x->segment == y->segment);
        FUZZ_CHECK(x->n_dims == 0 || memcmp(a->dims + x->first_dim, b->dims + y->first_dim, 8 * x->n_dims) == 0);
        FUZZ_CHECK(x->nbytes == y->nbytes && (x->nbytes == 0 || x->offset == y->offset));
        FUZZ_CHECK(x->has_hash == y->has_hash && x->hash == y->hash);
    }
    FUZZ_CHECK((a->metadata == NULL) == (b->metadata == NULL) && a->metadata_nbytes == b->metadata_nbytes);
    FUZZ_CHECK((a->source == NULL) == (b->source == NULL) && a->source_nbytes == b->source_nbytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct fuzz_input input = { data, nbytes };
    const uint64_t offset = fuzz_take(&input, 4);
    const uint8_t *bytes = fuzz_guarded_copy(0, input.next, input.left);
    struct ptwm_cursor cursor = ptwm_cursor_make(bytes, input.left);
    struct ptwm_bytes written = { &ptwm_default_allocator, NULL, 0, 0 };
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_manifest manifest, again;
    enum ptwm_status status;

    ptwm_cbor_skip(&cursor, 1);
    FUZZ_CHECK(cursor.next <= cursor.end);
    status = ptwm_manifest_read(bytes, input.left, offset, &ptwm_default_allocator, &manifest, &error);
    FUZZ_CHECK(error.status == status);
    if (status != PTWM_OK) {
        FUZZ_CHECK(status == PTWM_ERR_MANIFEST || status == PTWM_ERR_FEATURE);
        return 0;
    }
    FUZZ_CHECK(ptwm_manifest_write(&manifest, &written) == PTWM_OK);
    FUZZ_CHECK(ptwm_manifest_read(written.data, written.nbytes, offset, &ptwm_default_allocator, &again, NULL) == PTWM_OK);
    check_same(&manifest, &again);
    ptwm_bytes_release(&written);
    ptwm_manifest_release(&again);
    ptwm_manifest_release(&manifest);
    return 0;
}
