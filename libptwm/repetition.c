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

/* Whether a chunk of n_words words is repetitive, of which the first whole ones have been looked at. */
static bool judge(struct seen *seen, const uint8_t *data, size_t n_words, size_t whole)
{
    const size_t expected = (whole - seen->n_zero) >> RATE_BITS;

    /*
     * A few different words, none of which happens to be chosen, would escape; they make themselves felt in the number.
     */
    if (whole == 0 || seen->n_chosen < expected / 2 || expected < 16)
        return is_repetitive_with_care(data, n_words);
    seen->n_chosen += seen->n_zero >> RATE_BITS;
    seen->n_again += seen->n_zero >> RATE_BITS;
    return seen->n_again > seen->n_chosen / 8;
}

/* A walk through the data, chunk by chunk. */
struct walk {
    const uint8_t *data;
    uint64_t nbytes, chunk_nbytes;
    uint64_t chunk;     /* where that begins through which it goes */
    uint64_t looked;    /* how far it has looked */
    bool is_repetitive; /* one chunk was, and the walk is over */
    struct seen seen;
};

/* Goes on until end. */
static void walk_to(struct walk *w, uint64_t end)
{
    while (!w->is_repetitive && w->chunk < end) {
        const size_t n = (size_t)(w->nbytes - w->chunk < w->chunk_nbytes ? w->nbytes - w->chunk : w->chunk_nbytes);
        const size_t n_words = n / 8, whole = n_words < MIN_WORDS ? 0 : n_words / BLOCK * BLOCK;
        const uint64_t last = w->chunk + 8 * (uint64_t)whole < end ? w->chunk + 8 * (uint64_t)whole : end;

        if (w->looked < last) {
            const size_t n_looked = (size_t)((last - w->looked) / (8 * BLOCK) * BLOCK);
            look(w->data + w->looked, n_looked, &w->seen);
            w->looked += 8 * n_looked;
        }
        if (end < w->chunk + n)
            return;
        w->is_repetitive = judge(&w->seen, w->data + w->chunk, n_words, whole);
        w->chunk += n;
        w->looked = w->chunk;
        memset(&w->seen, 0, sizeof w->seen);
    }
}

static void begin_walk(struct walk *w, const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes)
{
    memset(w, 0, sizeof *w);
    w->data = data;
    w->nbytes = nbytes;
    w->chunk_nbytes = chunk_nbytes;
}

static void walk_on(void *context, const uint8_t *piece, size_t nbytes)
{
    struct walk *w = context;
    walk_to(w, (uint64_t)(piece - w->data) + nbytes);
}

bool ptwm_is_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes)
{
    struct walk w;

    begin_walk(&w, data, nbytes, chunk_nbytes);
    walk_to(&w, nbytes);
    return w.is_repetitive;
}

bool ptwm_hash_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes, uint64_t *hash)
{
    struct walk w;

    begin_walk(&w, data, nbytes, chunk_nbytes);
    *hash = ptwm_xxh3_64_visit(data, (size_t)nbytes, walk_on, &w);
    return w.is_repetitive;
}
