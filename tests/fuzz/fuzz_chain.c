/*
 * The chain reader and what it makes of bytes: a byte of the chain's length, the chain, two bytes of the first element's
 * number, one of the number of columns, their shifts, and raw bytes. Splitting and merging gives them back; merging planes
 * that nothing was split into gives a status.
 */
#include "chain.h"
#include "fuzz.h"

enum { MAX_RAW = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct fuzz_input input = { data, nbytes };
    const size_t given = (size_t)fuzz_take(&input, 1), chain_nbytes = given < input.left ? given : input.left;
    const uint8_t *chain_bytes = fuzz_guarded_copy(0, input.next, chain_nbytes);
    struct ptwm_parsed_chain chain;
    struct ptwm_shifts shifts = { 0, NULL };
    struct ptwm_error error = PTWM_ERROR_INIT;
    uint8_t *planes[PTWM_MAX_PLANES], *raw, *back;
    uint16_t columns[255];
    uint64_t first_element, total = 0;
    size_t raw_nbytes;
    enum ptwm_status status = ptwm_chain_check(chain_bytes, chain_nbytes, &error);

    FUZZ_CHECK(error.status == status && (status == PTWM_OK || status == PTWM_ERR_CHAIN));
    if (status != PTWM_OK)
        return 0;
    FUZZ_CHECK(ptwm_chain_parse(chain_bytes, chain_nbytes, &chain, NULL) == PTWM_OK);
    input.next += chain_nbytes;
    input.left -= chain_nbytes;
    first_element = fuzz_take(&input, 2);
    shifts.n_columns = (uint32_t)fuzz_take(&input, 1);
    shifts.value = columns;
    for (uint32_t c = 0; c < shifts.n_columns; c++) /* as a model keeps them: modulo 2^bits */
        columns[c] = (uint16_t)(fuzz_take(&input, 1) & ((1u << (chain.label != NULL ? chain.label->bits : 8)) - 1));
    raw_nbytes = (input.left < MAX_RAW ? input.left : MAX_RAW) / chain.granule_nbytes * chain.granule_nbytes;
    if (raw_nbytes == 0)
        return 0;
    raw = fuzz_guarded_copy(1, input.next, raw_nbytes);
    back = fuzz_guarded(2, raw_nbytes);
    for (uint32_t p = 0; p < chain.n_planes; p++) {
        const size_t n = (size_t)ptwm_plane_nbytes(&chain, p, raw_nbytes);
        planes[p] = fuzz_guarded(4 + p, n);
        total += n;
    }
    FUZZ_CHECK(total <= 4 * (uint64_t)raw_nbytes);
    ptwm_chain_split(&chain, &shifts, first_element, raw, raw_nbytes, planes, fuzz_guarded(3, raw_nbytes));
    status = ptwm_chain_merge(&chain, &shifts, first_element, back, raw_nbytes, (const uint8_t *const *)planes, NULL);
    FUZZ_CHECK(status == PTWM_OK && memcmp(back, raw, raw_nbytes) == 0);
    for (uint32_t p = 0; p < chain.n_planes; p++)
        for (uint64_t i = 0; i < ptwm_plane_nbytes(&chain, p, raw_nbytes); i++)
            planes[p][i] = raw[(i + p) % raw_nbytes];
    status = ptwm_chain_merge(&chain, &shifts, first_element, back, raw_nbytes, (const uint8_t *const *)planes, NULL);
    FUZZ_CHECK(status == PTWM_OK || status == PTWM_ERR_PLANE || status == PTWM_ERR_PADDING);
    return 0;
}
