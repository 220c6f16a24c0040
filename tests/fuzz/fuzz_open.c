/*
 * Opening: any file at all, in memory bounded by its manifest's length; and all that can be asked without decoding.
 */
#include "fuzz.h"

static void ask_everything(const struct ptwm_reader *r)
{
    struct ptwm_reader_info info = { .struct_nbytes = sizeof info };

    FUZZ_CHECK(ptwm_reader_get_info(r, &info) == PTWM_OK);
    for (uint64_t i = 0; i < info.n_tensors; i++) {
        struct ptwm_tensor_info t = { .struct_nbytes = sizeof t };
        uint64_t index = PTWM_NONE;

        FUZZ_CHECK(ptwm_reader_get_tensor(r, i, &t) == PTWM_OK);
        FUZZ_CHECK(ptwm_reader_find(r, t.name, t.name_nbytes, &index) == PTWM_OK && index == i);
        FUZZ_CHECK((t.segment == PTWM_NONE) == (t.nbytes == 0));
        FUZZ_CHECK(t.segment == PTWM_NONE || t.segment < info.n_segments);
    }
    for (uint64_t i = 0; i < info.n_segments; i++) {
        struct ptwm_segment_info s = { .struct_nbytes = sizeof s };
        struct ptwm_layout_info l = { .struct_nbytes = sizeof l };
        struct ptwm_layout *layout;

        FUZZ_CHECK(ptwm_reader_get_segment(r, i, &s) == PTWM_OK);
        FUZZ_CHECK(s.file_offset + s.stored_nbytes <= info.manifest_offset && s.tail_nbytes <= s.stored_nbytes);
        if (ptwm_reader_get_layout(r, i, &layout, NULL) != PTWM_OK)
            continue;
        FUZZ_CHECK(ptwm_layout_get_info(layout, &l) == PTWM_OK);
        for (uint64_t chunk = 0; chunk < l.n_chunks; chunk++)
            for (uint32_t p = 0; p < l.n_planes; p++) {
                struct ptwm_stored_plane plane = { .struct_nbytes = sizeof plane };
                FUZZ_CHECK(ptwm_layout_get_plane(layout, chunk, p, &plane) == PTWM_OK);
                FUZZ_CHECK(plane.file_offset >= s.file_offset &&
                           plane.file_offset + plane.stored_nbytes <= s.file_offset + s.stored_nbytes - s.tail_nbytes);
            }
        ptwm_layout_free(layout);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct fuzz_budget budget = { 0, 0, SIZE_MAX, 0 };
    const struct ptwm_allocator allocator = fuzz_allocator(&budget);
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *r = NULL;
    enum ptwm_status status;

    options.allocator = &allocator;
    status = ptwm_reader_open_memory(fuzz_guarded_copy(0, data, nbytes), nbytes, &options, &r, &error);
    /* A tensor of three bytes may take 255 of name and a record, in buffers that double; nothing takes more. */
    FUZZ_CHECK(budget.peak <= 256 * nbytes + 65536);
    FUZZ_CHECK(error.status == status && (status == PTWM_OK) == (r != NULL));
    if (status == PTWM_OK)
        ask_everything(r);
    ptwm_reader_close(r);
    FUZZ_CHECK(budget.live == 0);
    return 0;
}
