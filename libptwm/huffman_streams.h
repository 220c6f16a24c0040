/*
 * Decoding of Huffman's four streams for compilers with __builtin_clzll: codec_huffman.c's decode_together, with fewer
 * instructions a symbol. Included once there; the bodies are instanced for each instruction set.
 *
 * A pool has a set bit above its bits, the marker, which moves with them: the zeros above it count the bits taken since
 * the last refill, so that a look-up does not have to. A look-up takes its low bits as the shift: entries begin with the
 * length. What bounds the loop is the chain of look-ups; one that gives two symbols makes it half as long.
 */
#define INLINE static inline __attribute__((always_inline))
#define MARKER ((uint64_t)1 << 63)

/* An entry: the bits of the codes, << 8 how many symbols they are (1 or 2), << 16 the symbols, the first one lowest. */
static void make_pairs(uint32_t pairs[TABLE_SIZE], const uint16_t table[TABLE_SIZE])
{
    for (unsigned at = 0; at < TABLE_SIZE; at++) {
        const unsigned first = table[at], second = table[at >> (first & 255)];
        const unsigned n_bits = (first & 255) + (second & 255);

        pairs[at] = n_bits <= MAX_BITS ? n_bits | 2u << 8 | (first >> 8) << 16 | (second >> 8) << 24
                                       : (first & 255) | 1u << 8 | (first >> 8) << 16;
    }
}

struct marked_stream {
    const uint8_t *next; /* where the last refill was */
    uint64_t pool;
    uint8_t *out;
};

INLINE void refill(struct marked_stream *s)
{
    const int taken = __builtin_clzll(s->pool);

    s->next += taken >> 3;
    s->pool = (ptwm_load64(s->next) | MARKER) >> (taken & 7);
}

INLINE void decode_one(struct marked_stream *s, size_t at, const uint16_t table[TABLE_SIZE])
{
    const unsigned entry = table[s->pool & (TABLE_SIZE - 1)];

    s->pool >>= entry & 63;
    s->out[at] = (uint8_t)(entry >> 8);
}

INLINE void decode_two(struct marked_stream *s, const uint32_t pairs[TABLE_SIZE])
{
    const uint32_t entry = pairs[s->pool & (TABLE_SIZE - 1)];

    s->pool >>= entry & 63;
    ptwm_store16(s->out, (uint16_t)(entry >> 16));
    s->out += entry >> 8 & 255;
}

/* A refill passes at most 7 bytes and then looks at 8. */
INLINE size_t safe_rounds(const struct marked_stream *s, const struct stream *begin, size_t per_round)
{
    const size_t nbytes = (size_t)(begin->end - s->next), left = begin->left - (size_t)(s->out - begin->out);
    const size_t refills = nbytes < 15 ? 0 : (nbytes - 8) / 7;

    return left / per_round < refills ? left / per_round : refills;
}

INLINE struct marked_stream begin_stream(const struct stream *s)
{
    return (struct marked_stream){ s->next, MARKER, s->out };
}

static void end_stream(struct stream *to, const struct marked_stream *s)
{
    const unsigned taken = (unsigned)__builtin_clzll(s->pool);

    to->next = s->next + taken / 8;
    to->pool = 0;
    to->n_bits = 0;
    if (taken % 8 != 0) {
        to->pool = *to->next++ >> taken % 8;
        to->n_bits = 8 - taken % 8;
    }
    to->left -= (size_t)(s->out - to->out);
    to->out = s->out;
}

INLINE size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

INLINE void decode_ones(struct stream streams[N_STREAMS], const uint16_t table[TABLE_SIZE])
{
    struct marked_stream a = begin_stream(&streams[0]), b = begin_stream(&streams[1]);
    struct marked_stream c = begin_stream(&streams[2]), d = begin_stream(&streams[3]);

    for (;;) {
        size_t rounds = least(least(safe_rounds(&a, &streams[0], CODES_PER_REFILL),
                                    safe_rounds(&b, &streams[1], CODES_PER_REFILL)),
                              least(safe_rounds(&c, &streams[2], CODES_PER_REFILL),
                                    safe_rounds(&d, &streams[3], CODES_PER_REFILL)));
        if (rounds == 0)
            break;
        for (; rounds > 0; rounds--) {
            refill(&a);
            refill(&b);
            refill(&c);
            refill(&d);
            for (unsigned i = 0; i < CODES_PER_REFILL; i++) {
                decode_one(&a, i, table);
                decode_one(&b, i, table);
                decode_one(&c, i, table);
                decode_one(&d, i, table);
            }
            a.out += CODES_PER_REFILL;
            b.out += CODES_PER_REFILL;
            c.out += CODES_PER_REFILL;
            d.out += CODES_PER_REFILL;
        }
    }
    end_stream(&streams[0], &a);
    end_stream(&streams[1], &b);
    end_stream(&streams[2], &c);
    end_stream(&streams[3], &d);
}

INLINE void decode_twos(struct stream streams[N_STREAMS], const uint32_t pairs[TABLE_SIZE])
{
    struct marked_stream a = begin_stream(&streams[0]), b = begin_stream(&streams[1]);
    struct marked_stream c = begin_stream(&streams[2]), d = begin_stream(&streams[3]);

    for (;;) {
        size_t rounds = least(least(safe_rounds(&a, &streams[0], 2 * CODES_PER_REFILL),
                                    safe_rounds(&b, &streams[1], 2 * CODES_PER_REFILL)),
                              least(safe_rounds(&c, &streams[2], 2 * CODES_PER_REFILL),
                                    safe_rounds(&d, &streams[3], 2 * CODES_PER_REFILL)));
        if (rounds == 0)
            break;
        for (; rounds > 0; rounds--) {
            refill(&a);
            refill(&b);
            refill(&c);
            refill(&d);
            for (unsigned i = 0; i < CODES_PER_REFILL; i++) {
                decode_two(&a, pairs);
                decode_two(&b, pairs);
                decode_two(&c, pairs);
                decode_two(&d, pairs);
            }
        }
    }
    end_stream(&streams[0], &a);
    end_stream(&streams[1], &b);
    end_stream(&streams[2], &c);
    end_stream(&streams[3], &d);
}
