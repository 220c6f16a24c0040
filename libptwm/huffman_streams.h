/*
 * Decoding of Huffman's four streams on 64-bit little-endian machines: what codec_huffman.c's decode_together_c99 does,
 * or with look-ups that give two symbols if both codes fit. Included once there.
 *
 * What bounds the loop is the chain of look-ups: an entry begins with the number of bits, so that it is a shift's count
 * as it is. 1 MiB on a Zen 4, at 8 / 5.7 / 3.3 bits a symbol: C99 1.35 / 1.35 / 1.35 GB/s, one a look-up 1.53 / 1.53 /
 * 1.53, up to two 1.26 / 1.94 / 2.48. BMI2 adds nothing to that.
 */

/* Below this many symbols the table of pairs costs more than it saves; likewise if fewer look-ups in 4 give two. */
#define PAIRS_MIN_NBYTES 16384u
#define PAIRS_MIN (TABLE_SIZE / 4)

/*
 * An entry: the bits of its codes, << 8 how many symbols they are (1 or 2), << 16 the symbols, the first one lowest.
 * Returns how many entries have two, which is how often a look-up will give two if the code suits what it codes.
 */
static unsigned make_pairs(uint32_t pairs[TABLE_SIZE], const uint16_t table[TABLE_SIZE])
{
    unsigned n = 0;

    for (unsigned at = 0; at < TABLE_SIZE; at++) {
        const uint32_t first = table[at], second = table[at >> (first & 255)];
        const uint32_t n_bits = (first & 255) + (second & 255);
        const bool both = n_bits <= MAX_BITS;

        pairs[at] = both ? n_bits | 2u << 8 | (first >> 8) << 16 | (second >> 8) << 24
                         : (first & 255) | 1u << 8 | (first >> 8) << 16;
        n += both;
    }
    return n;
}

/* Of n_bits only the low six bits count; an entry is subtracted as it is. */
static inline void refill(struct stream *s)
{
    const unsigned n_bits = s->n_bits & 63;

    s->pool |= ptwm_load64(s->next) << n_bits;
    s->next += (63 - n_bits) >> 3;
    s->n_bits = n_bits | 56;
}

static inline void decode_one(struct stream *s, size_t at, const uint16_t table[TABLE_SIZE])
{
    const unsigned entry = table[s->pool & (TABLE_SIZE - 1)];

    s->pool >>= entry & 63;
    s->n_bits -= entry;
    s->out[at] = (uint8_t)(entry >> 8);
}

/* Stores two bytes, of which one may be none. */
static inline void decode_two(struct stream *s, const uint32_t pairs[TABLE_SIZE])
{
    const uint32_t entry = pairs[s->pool & (TABLE_SIZE - 1)];
    const uint16_t symbols = (uint16_t)(entry >> 16);

    s->pool >>= entry & 63;
    s->n_bits -= entry;
    memcpy(s->out, &symbols, 2);
    s->out += entry >> 8 & 255;
}

/* Rounds of a refill and CODES_PER_REFILL look-ups that surely stay inside the stream and what it decodes to. */
static inline size_t safe_rounds(struct stream *s, const uint8_t **out, size_t most_symbols)
{
    const size_t refills = safe_refills(s);

    s->left -= (size_t)(s->out - *out);
    *out = s->out;
    return s->left / most_symbols < refills ? s->left / most_symbols : refills;
}

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Decodes while all four streams are far from their ends; pairs is NULL or to be used. */
static inline void decode_rounds(struct stream streams[N_STREAMS], const uint16_t table[TABLE_SIZE], const uint32_t *pairs)
{
    struct stream a = streams[0], b = streams[1], c = streams[2], d = streams[3];
    const uint8_t *out[N_STREAMS] = { a.out, b.out, c.out, d.out };
    const size_t most = pairs != NULL ? 2 * CODES_PER_REFILL : CODES_PER_REFILL;

    for (;;) {
        size_t rounds = least(least(safe_rounds(&a, &out[0], most), safe_rounds(&b, &out[1], most)),
                              least(safe_rounds(&c, &out[2], most), safe_rounds(&d, &out[3], most)));
        if (rounds == 0)
            break;
        for (; rounds > 0; rounds--) {
            refill(&a);
            refill(&b);
            refill(&c);
            refill(&d);
            for (unsigned i = 0; pairs != NULL && i < CODES_PER_REFILL; i++) {
                decode_two(&a, pairs);
                decode_two(&b, pairs);
                decode_two(&c, pairs);
                decode_two(&d, pairs);
            }
            for (unsigned i = 0; pairs == NULL && i < CODES_PER_REFILL; i++) {
                decode_one(&a, i, table);
                decode_one(&b, i, table);
                decode_one(&c, i, table);
                decode_one(&d, i, table);
            }
            a.out += pairs == NULL ? CODES_PER_REFILL : 0;
            b.out += pairs == NULL ? CODES_PER_REFILL : 0;
            c.out += pairs == NULL ? CODES_PER_REFILL : 0;
            d.out += pairs == NULL ? CODES_PER_REFILL : 0;
        }
    }
    streams[0] = a;
    streams[1] = b;
    streams[2] = c;
    streams[3] = d;
}

/* The same of one stream: with pairs, streams do not come to their ends together. */
static void decode_rounds_of_one(struct stream *stream, const uint16_t table[TABLE_SIZE])
{
    struct stream s = *stream;
    const uint8_t *out = s.out;

    for (size_t rounds; (rounds = safe_rounds(&s, &out, CODES_PER_REFILL)) > 0;) {
        for (; rounds > 0; rounds--) {
            refill(&s);
            for (unsigned i = 0; i < CODES_PER_REFILL; i++)
                decode_one(&s, i, table);
            s.out += CODES_PER_REFILL;
        }
    }
    *stream = s;
}

static void decode_together_64(struct stream streams[N_STREAMS], const uint16_t table[TABLE_SIZE])
{
    uint32_t pairs[TABLE_SIZE];

    if (streams[0].left >= PAIRS_MIN_NBYTES / N_STREAMS && make_pairs(pairs, table) >= PAIRS_MIN)
        decode_rounds(streams, table, pairs);
    else
        decode_rounds(streams, table, NULL);
    for (unsigned i = 0; i < N_STREAMS; i++) {
        decode_rounds_of_one(&streams[i], table);
        streams[i].n_bits &= 63;
    }
}
