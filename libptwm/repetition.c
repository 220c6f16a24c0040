/*
 * Whether words of the data come again. Every word would have to be looked up; but it is enough to look up one in about
 * a thousand, chosen by its value, so that a word that comes again is looked up each time, at any distance.
 */
#include "choose.h"
#include "cpu_features.h"

enum {
    BLOCK = 32,          /* words, that are hashed in a row before any is looked up */
    RATE_BITS = 10,      /* one word in 2^RATE_BITS is looked up */
    CHOSEN = 0x155,      /* whose hash has these bits; not 0, which is the hash of 0 */
    TABLE_BITS = 12,
    MIN_WORDS = 16 << RATE_BITS /* for fewer than these the full table of a careful look is cheap enough */
};

#define HASH_FACTOR INT64_C(0x9E3779B1)

/* A hash of a word: 64 bits by a product of 32, so that short vectors can do it too. */
static inline uint64_t hash_word(uint64_t word)
{
    return ((word ^ word >> 31) & 0xffffffffu) * (uint64_t)HASH_FACTOR;
}

static inline bool is_chosen(uint64_t hash)
{
    return (hash >> 32 & ((1u << RATE_BITS) - 1)) == CHOSEN;
}

struct seen {
    uint64_t words[1 << TABLE_BITS];
    size_t n_chosen, n_again, n_zero;
};

static void look_up(struct seen *seen, uint64_t word)
{
    uint64_t *slot = &seen->words[(word * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - TABLE_BITS)];

    seen->n_chosen++;
    seen->n_again += *slot == word;
    *slot = word;
}

/*
 * Looks at n_words words, a multiple of BLOCK. Whether a block has words to look up is found out in a loop that
 * compilers vectorise.
 */
#define DEFINE_LOOK(name, attributes)                                                   \
    attributes static void name(const uint8_t *data, size_t n_words, struct seen *seen) \
    {                                                                                   \
        for (size_t i = 0; i < n_words; i += BLOCK, data += 8 * BLOCK) {                \
            uint64_t n_chosen = 0, n_zero = 0;                                          \
            for (size_t k = 0; k < BLOCK; k++) {                                        \
                const uint64_t word = ptwm_load64(data + 8 * k);                        \
                n_chosen += is_chosen(hash_word(word));                                 \
                n_zero += word == 0;                                                    \
            }                                                                           \
            seen->n_zero += (size_t)n_zero;                                             \
            for (size_t k = 0; n_chosen > 0 && k < BLOCK; k++)                          \
                if (is_chosen(hash_word(ptwm_load64(data + 8 * k))))                    \
                    look_up(seen, ptwm_load64(data + 8 * k));                           \
        }                                                                               \
    }

DEFINE_LOOK(look_c99, )
#if defined(PTWM_X86)
DEFINE_LOOK(look_avx2, __attribute__((target("avx2"))))
#include "x86/repetition_impl.h"
#endif

static void look(const uint8_t *data, size_t n_words, struct seen *seen)
{
#if defined(PTWM_X86)
    if (ptwm_cpu_level() == PTWM_CPU_AVX512) {
        look_avx512(data, n_words, seen);
        return;
    }
    if (ptwm_cpu_level() == PTWM_CPU_AVX2) {
        look_avx2(data, n_words, seen);
        return;
    }
#endif
    look_c99(data, n_words, seen);
}

/*
 * For where the faster way sees too little: as many words as the table holds, all if there are no more. Zeros, of which
 * sparse weights are full, count as if they were looked up at the same rate, and always come again.
 */
static bool is_repetitive_with_care(const uint8_t *data, size_t n_words)
{
    unsigned rate_bits = 0;
    size_t expected;
    struct seen seen;

    while (n_words >> rate_bits > (size_t)1 << TABLE_BITS)
        rate_bits++;
    memset(&seen, 0, sizeof seen);
    for (size_t i = 0; i < n_words; i++) {
        const uint64_t word = ptwm_load64(data + 8 * i);
        if (word == 0)
            seen.n_zero++;
        else if ((word * UINT64_C(0xD6E8FEB86659FD93) >> 32 & (((uint64_t)1 << rate_bits) - 1)) == 0)
            look_up(&seen, word);
    }
    expected = (n_words - seen.n_zero) >> rate_bits;
    if (seen.n_chosen < expected / 4) /* a few different words, which happen not to be chosen */
        return true;
    seen.n_chosen += seen.n_zero >> rate_bits;
    seen.n_again += seen.n_zero >> rate_bits;
    return seen.n_again > seen.n_chosen / 8;
}

static bool chunk_is_repetitive(const uint8_t *data, size_t n_words)
{
    const size_t whole = n_words / BLOCK * BLOCK;
    struct seen seen;
    size_t expected;

    if (n_words < MIN_WORDS)
        return is_repetitive_with_care(data, n_words);
    memset(&seen, 0, sizeof seen);
    look(data, whole, &seen);
    expected = (whole - seen.n_zero) >> RATE_BITS;
    /*
     * A few different words, none of which happens to be chosen, would escape; they make themselves felt in the number.
     */
    if (seen.n_chosen < expected / 2 || expected < 16)
        return is_repetitive_with_care(data, n_words);
    seen.n_chosen += seen.n_zero >> RATE_BITS;
    seen.n_again += seen.n_zero >> RATE_BITS;
    return seen.n_again > seen.n_chosen / 8;
}

bool ptwm_is_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes)
{
    for (uint64_t i = 0; i < nbytes; i += chunk_nbytes)
        if (chunk_is_repetitive(data + i, (size_t)(nbytes - i < chunk_nbytes ? nbytes - i : chunk_nbytes) / 8))
            return true;
    return false;
}
