/*
 * Whether words of the data come again. Every word would have to be looked up; but it is enough to look up one in about
 * a thousand, chosen by its value, so that a word that comes again is looked up each time, at any distance.
 */
#include "choose.h"
#include "cpu_features.h"
#include "xxh3.h"

enum {
    BLOCK = 32,     /* words: what vector kernels take at a time */
    RATE_BITS = 10, /* one word in 2^RATE_BITS is looked up */
    CHOSEN = 0x155, /* whose hash has these bits; not 0, which is the hash of 0 */
    TABLE_BITS = 12,
    PIECE = 1 << 13,            /* words that are hashed and looked at in turn: 64 KiB */
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

/* Looks at n_words words, a multiple of BLOCK. */
static void look_c99(const uint8_t *data, size_t n_words, struct seen *seen)
{
    for (size_t i = 0; i < n_words; i++) {
        const uint64_t word = ptwm_load64(data + 8 * i);
        seen->n_zero += word == 0;
        if (is_chosen(hash_word(word)))
            look_up(seen, word);
    }
}

#if defined(PTWM_X86)
#include "x86/repetition_impl.h"
#elif defined(PTWM_ARM)
#include "arm/repetition_impl.h"
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
#elif defined(PTWM_ARM)
    if (ptwm_cpu_level() == PTWM_CPU_NEON) {
        look_neon(data, n_words, seen);
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

/* Adds the bytes to the hash too, if there is one, piece by piece, so that memory is read once. */
static bool chunk_is_repetitive(const uint8_t *data, size_t nbytes, struct ptwm_xxh3 *hash)
{
    const size_t n_words = nbytes / 8, whole = n_words / BLOCK * BLOCK;
    struct seen seen;
    size_t expected;

    if (n_words < MIN_WORDS) {
        if (hash != NULL)
            ptwm_xxh3_update(hash, data, nbytes);
        return is_repetitive_with_care(data, n_words);
    }
    memset(&seen, 0, sizeof seen);
    for (size_t i = 0; i < whole; i += PIECE) {
        const size_t n = whole - i < PIECE ? whole - i : PIECE;
        if (hash != NULL)
            ptwm_xxh3_update(hash, data + 8 * i, 8 * n);
        look(data + 8 * i, n, &seen);
    }
    if (hash != NULL)
        ptwm_xxh3_update(hash, data + 8 * whole, nbytes - 8 * whole);
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

static bool any_chunk_is_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes, struct ptwm_xxh3 *hash)
{
    bool is = false;

    for (uint64_t i = 0; i < nbytes && !is; i += chunk_nbytes) {
        const size_t n = (size_t)(nbytes - i < chunk_nbytes ? nbytes - i : chunk_nbytes);
        is = chunk_is_repetitive(data + i, n, hash);
        if (is && hash != NULL)
            ptwm_xxh3_update(hash, data + i + n, (size_t)(nbytes - i) - n);
    }
    return is;
}

bool ptwm_is_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes)
{
    return any_chunk_is_repetitive(data, nbytes, chunk_nbytes, NULL);
}

bool ptwm_hash_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes, uint64_t *hash)
{
    struct ptwm_xxh3 state;
    bool is;

    ptwm_xxh3_init(&state);
    is = any_chunk_is_repetitive(data, nbytes, chunk_nbytes, &state);
    *hash = ptwm_xxh3_digest(&state);
    return is;
}
