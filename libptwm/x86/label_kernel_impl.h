/*
 * The x86 kernels of fused decoding: what their bodies share, and their instances.
 */
#include <immintrin.h>

/* ------------------------------------------------------------------------------------------------- CRC in the loop */

#define TARGET_CRC __attribute__((target("sse4.2,pclmul")))

struct crc_context {
    uint64_t rest, words, low, low_half; /* registers: 32 bits each */
    size_t rate;
    const uint8_t *next, *end; /* of the words */
};

#define CRC_X_4063 0xDD7E3B0C /* x^(4096 - 33) modulo the polynomial; see crc_end_of_block */

PTWM_INLINE void crc_begin(struct crc_context *c, const struct ptwm_kernel_job *job)
{
    c->rest = job->rest_crc;
    c->words = job->words_crc;
    c->low = job->low_crc;
    c->low_half = 0;
    c->rate = 8 * job->crc_rate;
    c->next = job->crc_words;
    c->end = job->crc_words_end;
}

PTWM_INLINE void crc_finish(const struct crc_context *c, struct ptwm_kernel_job *job)
{
    job->rest_crc = (uint32_t)c->rest;
    job->words_crc = (uint32_t)c->words;
    job->low_crc = (uint32_t)c->low;
    job->crc_words = c->next;
}

TARGET_CRC PTWM_INLINE uint64_t crc_of_8(uint64_t crc, const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return _mm_crc32_u64(crc, word);
}

/*
 * The CRCs' share of pair number pair of 0 .. 7 of a block: an eighth of the block's rest and low planes. A low plane is as
 * long as the block's 1024 bytes, too much for one chain of crc32: its halves have a chain each.
 */
TARGET_CRC PTWM_INLINE void crc_of_pair(struct crc_context *c, enum ptwm_kernel_check check, unsigned rest_bits,
                                        const uint8_t *rest, const uint8_t *low_plane, size_t pair)
{
    if (check == PTWM_KERNEL_NO_CRC)
        return;
    for (unsigned i = 0; i < rest_bits; i++)
        c->rest = crc_of_8(c->rest, rest + 8 * (rest_bits * pair + i));
    if (check == PTWM_KERNEL_CRC_LOW)
        for (unsigned i = 0; i < 8; i++) {
            c->low = crc_of_8(c->low, low_plane + 64 * pair + 8 * i);
            c->low_half = crc_of_8(c->low_half, low_plane + 512 + 64 * pair + 8 * i);
        }
    if ((size_t)(c->end - c->next) >= c->rate)
        for (const uint8_t *end = c->next + c->rate; c->next != end; c->next += 8)
            c->words = crc_of_8(c->words, c->next);
}

/* Of two pairs: a group. */
TARGET_CRC PTWM_INLINE void crc_of_pairs(struct crc_context *c, enum ptwm_kernel_check check, unsigned rest_bits,
                                         const uint8_t *rest, const uint8_t *low_plane, size_t pair)
{
    crc_of_pair(c, check, rest_bits, rest, low_plane, pair);
    crc_of_pair(c, check, rest_bits, rest, low_plane, pair + 1);
}

/*
 * Joins the halves of the low plane. The register after 512 more bytes of zeros is the product of it and x^4096 modulo the
 * polynomial. In the reflected representation the product of two 32-bit values comes out one bit short of 64, and crc32 of
 * it multiplies by x^32 more: the constant is x^(4096 - 33) modulo the polynomial, and both are put right.
 */
TARGET_CRC PTWM_INLINE void crc_end_of_block(struct crc_context *c, enum ptwm_kernel_check check)
{
    if (check != PTWM_KERNEL_CRC_LOW)
        return;
    c->low = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(
                                  _mm_cvtsi64_si128((long long)c->low), _mm_cvtsi64_si128(CRC_X_4063), 0))) ^
             c->low_half;
    c->low_half = 0;
}

/* ------------------------------------------------------------------------------------------------- tables */

static void build_tables16(union ptwm_kernel_tables *tables, const struct ptwm_label_set *set, unsigned position)
{
    for (uint32_t i = 0; i < set->n_classes; i++) {
        struct ptwm_kernel_table16 *t = &tables->of16[i];
        struct ptwm_alias_table alias;

        ptwm_alias_build(&alias, &set->classes[i]);
        memcpy(t->div, alias.div, sizeof t->div);
        memcpy(t->adj, alias.adj, sizeof t->adj);
        for (unsigned part = 0; part < 2; part++)
            for (unsigned b = 0; b < PTWM_MAX_LABELS; b++) {
                const unsigned label = part == 0 ? b : alias.ali[b];
                t->frequency[part][b] = alias.frequency[label];
                t->symbol[part][b] = (uint16_t)(set->classes[i].symbol[label] << position);
            }
    }
}

/* ------------------------------------------------------------------------------------------------- AVX-512 */

/* Of 32 elements, in which places of low : units the first 16 and the last 16 have their halves. */
#define PAIR(i) (i), 32 + (i)
#define PAIRS(i) PAIR(i), PAIR((i) + 1), PAIR((i) + 2), PAIR((i) + 3)
static const uint16_t interleave_avx512[2][32] PTWM_ALIGNED(64) = {
    { PAIRS(0), PAIRS(4), PAIRS(8), PAIRS(12) },
    { PAIRS(16), PAIRS(20), PAIRS(24), PAIRS(28) },
};
#undef PAIR
#undef PAIRS

#include "label_kernel_avx512_template.h"

#define INSTANCE(target, isa, name, kind, check)                                                                   \
    target static size_t name##_##isa(struct ptwm_kernel_job *job, size_t n_blocks)                               \
    {                                                                                                             \
        return decode_##isa(job, n_blocks, kind, check);                                                          \
    }
#define INSTANCES(target, isa)                                                                                    \
    INSTANCE(target, isa, rest7, PTWM_KERNEL_REST7, PTWM_KERNEL_NO_CRC)                                           \
    INSTANCE(target, isa, rest7_crc, PTWM_KERNEL_REST7, PTWM_KERNEL_CRC)                                          \
    INSTANCE(target, isa, rest8, PTWM_KERNEL_REST8, PTWM_KERNEL_NO_CRC)                                           \
    INSTANCE(target, isa, rest8_crc, PTWM_KERNEL_REST8, PTWM_KERNEL_CRC)                                          \
    INSTANCE(target, isa, rest7_low, PTWM_KERNEL_REST7_LOW, PTWM_KERNEL_NO_CRC)                                   \
    INSTANCE(target, isa, rest7_low_crc, PTWM_KERNEL_REST7_LOW, PTWM_KERNEL_CRC)                                  \
    INSTANCE(target, isa, rest7_low_crc_low, PTWM_KERNEL_REST7_LOW, PTWM_KERNEL_CRC_LOW)                          \
    INSTANCE(target, isa, rest8_low, PTWM_KERNEL_REST8_LOW, PTWM_KERNEL_NO_CRC)                                   \
    INSTANCE(target, isa, rest8_low_crc, PTWM_KERNEL_REST8_LOW, PTWM_KERNEL_CRC)                                  \
    INSTANCE(target, isa, rest8_low_crc_low, PTWM_KERNEL_REST8_LOW, PTWM_KERNEL_CRC_LOW)                          \
    INSTANCE(target, isa, rest10, PTWM_KERNEL_REST10, PTWM_KERNEL_NO_CRC)                                         \
    INSTANCE(target, isa, rest10_crc, PTWM_KERNEL_REST10, PTWM_KERNEL_CRC)                                        \
    INSTANCE(target, isa, rest3, PTWM_KERNEL_REST3, PTWM_KERNEL_NO_CRC)                                           \
    INSTANCE(target, isa, rest3_crc, PTWM_KERNEL_REST3, PTWM_KERNEL_CRC)
#define KERNEL_SET(build_tables, isa)                                                                             \
    {                                                                                                             \
        build_tables,                                                                                             \
        {                                                                                                         \
            { rest7_##isa, rest7_crc_##isa, NULL },                                                               \
            { rest8_##isa, rest8_crc_##isa, NULL },                                                               \
            { rest7_low_##isa, rest7_low_crc_##isa, rest7_low_crc_low_##isa },                                    \
            { rest8_low_##isa, rest8_low_crc_##isa, rest8_low_crc_low_##isa },                                    \
            { rest10_##isa, rest10_crc_##isa, NULL },                                                             \
            { rest3_##isa, rest3_crc_##isa, NULL },                                                               \
        },                                                                                                        \
    }

INSTANCES(TARGET_AVX512, avx512)
static const struct ptwm_kernel_set ptwm_kernels_avx512 = KERNEL_SET(build_tables16, avx512);

/* ------------------------------------------------------------------------------------------------- AVX2 */

#include "../label_kernel_expand.h"

#include "label_kernel_avx2_template.h"

INSTANCES(TARGET_AVX2, avx2)
static const struct ptwm_kernel_set ptwm_kernels_avx2 = KERNEL_SET(build_tables8, avx2);

#undef INSTANCE
#undef INSTANCES
#undef KERNEL_SET
