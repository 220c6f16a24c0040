/*
 * The x86 kernels of fused decoding: what their bodies share, and their instances.
 */
#include <immintrin.h>

#include "crc32c_fold.h"

/* ------------------------------------------------------------------------------------------------- prefetching */

/* How far ahead. 64 bytes of a plane take 4 to 10 ns; memory and page table answer after some 100 to 200 ns. */
enum { PREFETCH_REST = 2048, PREFETCH_WORDS = 1024, PREFETCH_LOW = 4096, PREFETCH_OUT = 2048 };

/* Beyond the end of a plane this asks for what is not needed, which is harmless: a prefetch never faults. */
PTWM_INLINE void prefetch(const uint8_t *p, size_t ahead)
{
    _mm_prefetch((const char *)((uintptr_t)p + ahead), _MM_HINT_T0);
}

/*
 * The share of pair number pair of a block. Processors guess what comes next, but only within a page, and a mapped file lies
 * in pages of 4 KiB: without this, decoding from those is 10 to 20 % slower than from huge pages.
 */
PTWM_INLINE void prefetch_pair(const uint8_t *words, const uint8_t *rest, const uint8_t *low_plane, unsigned rest_bits,
                               bool has_low, size_t pair)
{
    if (pair < rest_bits)
        prefetch(rest + 64 * pair, PREFETCH_REST);
    if (pair + 8 < rest_bits)
        prefetch(rest + 64 * (pair + 8), PREFETCH_REST);
    if (pair % 2 == 0)
        prefetch(words, PREFETCH_WORDS);
    if (has_low) {
        prefetch(low_plane + 128 * pair, PREFETCH_LOW);
        prefetch(low_plane + 128 * pair + 64, PREFETCH_LOW);
    }
}

/*
 * Before a block of out_nbytes bytes is stored to out: if it is the first one of a page, makes the processor look up the page
 * after the next one. In pages of 4 KiB the stores would wait for that: they go past the caches, which nothing foresees
 * (measured with AVX-512: 10 %).
 */
PTWM_INLINE void prefetch_page(const uint8_t *out, size_t out_nbytes)
{
    enum { PAGE = 4096 };

    if ((uintptr_t)out % PAGE < out_nbytes)
        prefetch(out, 2 * PAGE);
}

/*
 * nbytes bytes will be stored to out, in the caches: brings the lines that come PREFETCH_OUT bytes later there, for which the
 * stores would have to wait (measured with AVX-512: 10 %). Processors with AVX2 that do not know prefetchw pass over it.
 */
__attribute__((target("prfchw"))) PTWM_INLINE void prefetch_stores(const uint8_t *out, size_t nbytes)
{
    PTWM_UNROLL(8)
    for (size_t i = 0; i < nbytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)out + i + PREFETCH_OUT), 1);
}

/* After this other threads find what was stored past the caches. It waits for all of that, so it comes once a chunk. */
__attribute__((target("sse"))) static void finish_streaming(void)
{
    _mm_sfence();
}

/* ------------------------------------------------------------------------------------------------- CRC in the loop */

#define TARGET_CRC __attribute__((target("sse4.2,pclmul")))

struct crc_context {
    uint64_t rest[2], low[2], words; /* registers: 32 bits each; [0] and [1]: of the halves of a block's part */
    size_t rate;
    const uint8_t *next, *end; /* of the words */
};

PTWM_INLINE void crc_begin(struct crc_context *c, const struct ptwm_kernel_job *job)
{
    c->rest[0] = job->rest_crc;
    c->rest[1] = c->low[1] = 0;
    c->words = job->words_crc;
    c->low[0] = job->low_crc;
    c->rate = 8 * job->crc_rate;
    c->next = job->crc_words;
    c->end = job->crc_words_end;
}

PTWM_INLINE void crc_finish(const struct crc_context *c, struct ptwm_kernel_job *job)
{
    job->rest_crc = (uint32_t)c->rest[0];
    job->words_crc = (uint32_t)c->words;
    job->low_crc = (uint32_t)c->low[0];
    job->crc_words = c->next;
}

TARGET_CRC PTWM_INLINE uint64_t crc_of_8(uint64_t crc, const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return _mm_crc32_u64(crc, word);
}

/*
 * The CRCs' share of pair number pair of 0 .. 7 of a block: an eighth of the block's rest plane, and of its low plane if that
 * is not NULL. One chain of crc32 would take about as long as decoding does (three cycles for 8 bytes), and would hold it up
 * whenever memory is late: the halves have a chain each. is_odd: pair % 2, as a constant.
 */
TARGET_CRC PTWM_INLINE void crc_of_pair(struct crc_context *c, enum ptwm_kernel_check check, unsigned rest_bits,
                                        const uint8_t *rest, const uint8_t *low_plane, size_t pair, bool is_odd)
{
    const unsigned n = is_odd ? rest_bits - rest_bits / 2 : rest_bits / 2;
    const uint8_t *first = rest + 8 * (pair / 2 * rest_bits + (is_odd ? rest_bits / 2 : 0));

    if (check == PTWM_KERNEL_NO_CRC)
        return;
    PTWM_UNROLL(5)
    for (unsigned i = 0; i < n; i++) {
        c->rest[0] = crc_of_8(c->rest[0], first + 8 * i);
        c->rest[1] = crc_of_8(c->rest[1], first + 32 * rest_bits + 8 * i);
    }
    if (low_plane != NULL) {
        PTWM_UNROLL(8)
        for (unsigned i = 0; i < 8; i++) {
            c->low[0] = crc_of_8(c->low[0], low_plane + 64 * pair + 8 * i);
            c->low[1] = crc_of_8(c->low[1], low_plane + 512 + 64 * pair + 8 * i);
        }
    }
    if ((size_t)(c->end - c->next) >= c->rate)
        for (const uint8_t *end = c->next + c->rate; c->next != end; c->next += 8)
            c->words = crc_of_8(c->words, c->next);
}

/*
 * Joins the chains of two halves of n bytes. The register after n more bytes of zeros is the product of it and x^(8 n) modulo
 * the polynomial. The product of two bit-reversed values of 32 bits comes out one bit short of 64, and crc32 of it multiplies
 * by x^32 more, so that power is x^(8 n - 33).
 */
TARGET_CRC PTWM_INLINE void crc_join(uint64_t halves[2], uint32_t power)
{
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)halves[0]), _mm_cvtsi64_si128(power), 0);

    halves[0] = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product)) ^ halves[1];
    halves[1] = 0;
}

/* The end of a block. has_low: of whose low plane crc_of_pair took the CRC. */
TARGET_CRC PTWM_INLINE void crc_end_of_block(struct crc_context *c, enum ptwm_kernel_check check, unsigned rest_bits,
                                             bool has_low)
{
    if (check == PTWM_KERNEL_NO_CRC)
        return;
    /* n is half of 64 rest_bits bytes, and of 1024. */
    crc_join(c->rest, rest_bits == 7 ? 0x83348832 : rest_bits == 8 ? 0xB9E02B86 : rest_bits == 10 ? 0xBAC2FD7B
                       : rest_bits == 3                           ? 0x0715CE53
                                                                  : 0x9E4ADDF8);
    if (has_low)
        crc_join(c->low, 0xDD7E3B0C);
}

/* ------------------------------------------------------------------------------------------------- tables */

static void build_tables16(union ptwm_kernel_tables *tables, const struct ptwm_label_set *set, unsigned n_phases,
                           unsigned position)
{
    for (uint32_t i = 0; i < set->n_classes * n_phases; i++) {
        const struct ptwm_label_table *class = &set->classes[i / n_phases];
        struct ptwm_kernel_table16 *t = &tables->of16[i];
        struct ptwm_alias_table alias;

        ptwm_alias_build(&alias, ptwm_kernel_frequencies(class, i % n_phases));
        memcpy(t->div, alias.div, sizeof t->div);
        memcpy(t->adj, alias.adj, sizeof t->adj);
        memcpy(t->ali, alias.ali, sizeof t->ali);
        for (unsigned part = 0; part < 2; part++)
            for (unsigned b = 0; b < PTWM_MAX_LABELS; b++) {
                const unsigned label = part == 0 ? b : alias.ali[b];
                t->frequency[part][b] = alias.frequency[label];
                t->symbol[part][b] = (uint16_t)(class->symbol[label] << position);
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

/* The instances of a body: without CRCs, with them, and of elements with a low plane also with that plane's. */
#define NAME(kind, columns, check, isa) kind##_##columns##_##check##_##isa
#define INSTANCE(target, isa, kind, columns, check)                                                               \
    target static size_t NAME(kind, columns, check, isa)(struct ptwm_kernel_job * job, size_t n_blocks)           \
    {                                                                                                             \
        return decode_##isa(job, n_blocks, PTWM_KERNEL_##kind, PTWM_KERNEL_##check, PTWM_KERNEL_##columns);       \
    }
#define BOTH(target, isa, kind, columns)                                                                          \
    INSTANCE(target, isa, kind, columns, NO_CRC)                                                                  \
    INSTANCE(target, isa, kind, columns, CRC)
#define THREE(target, isa, kind, columns)                                                                         \
    BOTH(target, isa, kind, columns)                                                                              \
    INSTANCE(target, isa, kind, columns, CRC_LOW)
#define INSTANCES(target, isa)                                                                                    \
    BOTH(target, isa, REST7, NO_SHIFTS)                                                                           \
    THREE(target, isa, REST7_LOW, NO_SHIFTS)                                                                      \
    BOTH(target, isa, REST10, NO_SHIFTS)                                                                          \
    BOTH(target, isa, REST7, SHIFTS)                                                                              \
    BOTH(target, isa, REST8, SHIFTS)                                                                              \
    THREE(target, isa, REST7_LOW, SHIFTS)                                                                         \
    THREE(target, isa, REST8_LOW, SHIFTS)                                                                         \
    BOTH(target, isa, REST10, SHIFTS)                                                                             \
    BOTH(target, isa, REST3, SHIFTS)                                                                              \
    BOTH(target, isa, REST2, SHIFTS)                                                                              \
    BOTH(target, isa, INT8, SHIFTS)                                                                               \
    BOTH(target, isa, REST7, PHASES)                                                                              \
    THREE(target, isa, REST7_LOW, PHASES)                                                                         \
    BOTH(target, isa, REST10, PHASES)                                                                             \
    BOTH(target, isa, REST3, PHASES)                                                                              \
    BOTH(target, isa, REST2, PHASES)
#define NAMES_OF_BOTH(isa, kind, columns)                                                                         \
    [PTWM_KERNEL_##kind] = { NAME(kind, columns, NO_CRC, isa), NAME(kind, columns, CRC, isa), NULL }
#define NAMES_OF_THREE(isa, kind, columns)                                                                        \
    [PTWM_KERNEL_##kind] = { NAME(kind, columns, NO_CRC, isa), NAME(kind, columns, CRC, isa),                     \
                             NAME(kind, columns, CRC_LOW, isa) }
/* A step of bytes adds one vector of shifts for four of states: those need no instances without. */
#define KERNEL_SET(build_tables, isa)                                                                             \
    {                                                                                                             \
        build_tables,                                                                                             \
        {                                                                                                         \
            [PTWM_KERNEL_NO_SHIFTS] = {                                                                           \
                NAMES_OF_BOTH(isa, REST7, NO_SHIFTS),                                                             \
                NAMES_OF_THREE(isa, REST7_LOW, NO_SHIFTS),                                                        \
                NAMES_OF_BOTH(isa, REST10, NO_SHIFTS),                                                            \
            },                                                                                                    \
            [PTWM_KERNEL_SHIFTS] = {                                                                              \
                NAMES_OF_BOTH(isa, REST7, SHIFTS),                                                                \
                NAMES_OF_BOTH(isa, REST8, SHIFTS),                                                                \
                NAMES_OF_THREE(isa, REST7_LOW, SHIFTS),                                                           \
                NAMES_OF_THREE(isa, REST8_LOW, SHIFTS),                                                           \
                NAMES_OF_BOTH(isa, REST10, SHIFTS),                                                               \
                NAMES_OF_BOTH(isa, REST3, SHIFTS),                                                                \
                NAMES_OF_BOTH(isa, REST2, SHIFTS),                                                                \
                NAMES_OF_BOTH(isa, INT8, SHIFTS),                                                                 \
            },                                                                                                    \
            [PTWM_KERNEL_PHASES] = {                                                                              \
                NAMES_OF_BOTH(isa, REST7, PHASES),                                                                \
                NAMES_OF_THREE(isa, REST7_LOW, PHASES),                                                           \
                NAMES_OF_BOTH(isa, REST10, PHASES),                                                               \
                NAMES_OF_BOTH(isa, REST3, PHASES),                                                                \
                NAMES_OF_BOTH(isa, REST2, PHASES),                                                                \
            },                                                                                                    \
        },                                                                                                        \
    }

INSTANCES(TARGET_AVX512, avx512)
static const struct ptwm_kernel_set ptwm_kernels_avx512 = KERNEL_SET(build_tables16, avx512);

/* ------------------------------------------------------------------------------------------------- AVX2 */

#include "../label_kernel_expand.h"

#include "label_kernel_avx2_template.h"

INSTANCES(TARGET_AVX2, avx2)
static const struct ptwm_kernel_set ptwm_kernels_avx2 = KERNEL_SET(build_tables8, avx2);

#undef NAME
#undef INSTANCE
#undef BOTH
#undef THREE
#undef NAMES_OF_BOTH
#undef NAMES_OF_THREE
#undef INSTANCES
#undef KERNEL_SET
