/*
 * Expanding words to lanes with a byte shuffle: entry [k] moves the first words, one after the other, to those of eight
 * u16 lanes whose bits are set in k, and zeros to the others (128 is out of range for pshufb and tbl).
 */
#define BITS_BELOW(k, i)                                                                                          \
    (((i) > 0 && ((k) & 1)) + ((i) > 1 && ((k) & 2)) + ((i) > 2 && ((k) & 4)) + ((i) > 3 && ((k) & 8)) +          \
     ((i) > 4 && ((k) & 16)) + ((i) > 5 && ((k) & 32)) + ((i) > 6 && ((k) & 64)))
#define LANE(k, i)                                                                                                \
    ((k) >> (i) & 1 ? 2 * BITS_BELOW(k, i) : 128), ((k) >> (i) & 1 ? 2 * BITS_BELOW(k, i) + 1 : 128)
#define ROW(k)                                                                                                    \
    {                                                                                                             \
        LANE(k, 0), LANE(k, 1), LANE(k, 2), LANE(k, 3), LANE(k, 4), LANE(k, 5), LANE(k, 6), LANE(k, 7)            \
    }
#define ROWS4(k) ROW(k), ROW((k) + 1), ROW((k) + 2), ROW((k) + 3)
#define ROWS16(k) ROWS4(k), ROWS4((k) + 4), ROWS4((k) + 8), ROWS4((k) + 12)
#define ROWS64(k) ROWS16(k), ROWS16((k) + 16), ROWS16((k) + 32), ROWS16((k) + 48)
static const uint8_t kernel_expand[256][16] PTWM_ALIGNED(64) = { ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192) };

#if defined(PTWM_ARM) /* whose population count is slow on its way from and to general registers */
/* How many words that is. */
#define COUNTS4(k)                                                                                                \
    BITS_BELOW(k, 7) + ((k) >> 7), BITS_BELOW((k) + 1, 7) + ((k) >> 7), BITS_BELOW((k) + 2, 7) + ((k) >> 7),       \
        BITS_BELOW((k) + 3, 7) + ((k) >> 7)
#define COUNTS16(k) COUNTS4(k), COUNTS4((k) + 4), COUNTS4((k) + 8), COUNTS4((k) + 12)
#define COUNTS64(k) COUNTS16(k), COUNTS16((k) + 16), COUNTS16((k) + 32), COUNTS16((k) + 48)
static const uint8_t kernel_count[256] = { COUNTS64(0), COUNTS64(64), COUNTS64(128), COUNTS64(192) };
#undef COUNTS4
#undef COUNTS16
#undef COUNTS64
#endif
#undef BITS_BELOW
#undef LANE
#undef ROW
#undef ROWS4
#undef ROWS16
#undef ROWS64

static void build_tables8(union ptwm_kernel_tables *tables, const struct ptwm_label_set *set, unsigned n_phases,
                          unsigned position)
{
    for (uint32_t i = 0; i < set->n_classes * n_phases; i++) {
        const struct ptwm_label_table *class = &set->classes[i / n_phases];
        struct ptwm_kernel_table8 *t = &tables->of8[i];
        struct ptwm_alias_table alias;

        ptwm_alias_build(&alias, ptwm_kernel_frequencies(class, i % n_phases));
        for (unsigned b = 0; b < PTWM_MAX_LABELS; b++) {
            const unsigned symbol = (unsigned)class->symbol[b] << position;
            t->div_high[b] = (uint8_t)(alias.div[b] >> 8);
            t->other[b] = (uint8_t)(alias.ali[b] ^ b);
            t->adj_low[b] = (uint8_t)alias.adj[b];
            t->adj_high[b] = (uint8_t)(alias.adj[b] >> 8);
            t->frequency_low[b] = (uint8_t)alias.frequency[b];
            t->frequency_high[b] = (uint8_t)(alias.frequency[b] >> 8);
            t->symbol_low[b] = (uint8_t)symbol;
            t->symbol_high[b] = (uint8_t)(symbol >> 8);
        }
    }
}
