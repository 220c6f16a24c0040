/*
 * The kernels of fused decoding in plain C, for any machine: loops over arrays that compilers make vectors of, but for
 * the look-ups and the words, which are one at a time. Included once, by label_fused.c.
 */

static void build_tables_scalar(union ptwm_kernel_tables *tables, const struct ptwm_label_set *set, unsigned n_phases,
                                unsigned position)
{
    for (uint32_t i = 0; i < set->n_classes * n_phases; i++) {
        const struct ptwm_label_table *class = &set->classes[i / n_phases];
        const uint16_t *symbol = class->symbol;
        struct ptwm_kernel_table_scalar *t = &tables->scalar[i];
        struct ptwm_alias_table alias;

        ptwm_alias_build(&alias, ptwm_kernel_frequencies(class, i % n_phases));
        memcpy(t->div, alias.div, sizeof t->div);
        for (unsigned b = 0; b < PTWM_MAX_LABELS; b++) {
            const unsigned other = alias.ali[b];
            t->entry[2 * b].frequency = alias.frequency[b];
            t->entry[2 * b].adj = 0;
            t->entry[2 * b].symbol = (uint16_t)(symbol[b] << position);
            t->entry[2 * b + 1].frequency = alias.frequency[other];
            t->entry[2 * b + 1].adj = alias.adj[b];
            t->entry[2 * b + 1].symbol = (uint16_t)(symbol[other] << position);
        }
    }
}

static bool kernel_is_little_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

/* Lanes in a round of loops that compilers do not unroll by themselves: that saves a tenth of the time, on Zen 5. */
enum { FOUND_AT_ONCE = 16, TAKEN_AT_ONCE = 8 };

/*
 * One step of all lanes, each lane's symbol to symbols; returns the words left. phase: of the lanes, 0 or 1, or NULL if
 * there is no table[1].
 */
PTWM_INLINE const uint8_t *group_of_any_c99(uint16_t *high, uint16_t *low, const struct ptwm_kernel_table_scalar *table,
                                            const uint8_t *phase, const uint8_t *words, uint16_t *symbols)
{
    struct ptwm_kernel_entry found[PTWM_KERNEL_LANES];
    uint16_t takes[PTWM_KERNEL_LANES];

    for (unsigned first = 0; first < PTWM_KERNEL_LANES; first += FOUND_AT_ONCE) {
        PTWM_UNROLL(16) /* FOUND_AT_ONCE */
        for (unsigned l = first; l < first + FOUND_AT_ONCE; l++) {
            const unsigned x = low[l], b = x % PTWM_MAX_LABELS;
            const struct ptwm_kernel_table_scalar *t = phase != NULL ? &table[phase[l]] : table;
            found[l] = t->entry[2 * b + 1 - (x < t->div[b])];
        }
    }
    for (unsigned l = 0; l < PTWM_KERNEL_LANES; l++) {
        const uint16_t r = (uint16_t)(found[l].adj + (low[l] >> 5));
        const uint16_t product_low = (uint16_t)((unsigned)found[l].frequency * high[l]);
        const uint16_t product_high = (uint16_t)((uint32_t)found[l].frequency * high[l] >> 16);
        const uint16_t new_low = (uint16_t)(product_low + r);
        const uint16_t new_high = (uint16_t)(product_high + (new_low < r));
        const uint16_t mask = (uint16_t) - (new_high == 0);
        symbols[l] = found[l].symbol;
        takes[l] = mask;
        high[l] = (uint16_t)(new_high | (new_low & mask));
        low[l] = (uint16_t)(new_low & ~mask);
    }
    for (unsigned first = 0; first < PTWM_KERNEL_LANES; first += TAKEN_AT_ONCE) {
        PTWM_UNROLL(8) /* TAKEN_AT_ONCE */
        for (unsigned l = first; l < first + TAKEN_AT_ONCE; l++) {
            low[l] = (uint16_t)(low[l] | (ptwm_load16(words) & takes[l]));
            words += takes[l] & 2;
        }
    }
    return words;
}

static const uint8_t *group_c99(uint16_t *high, uint16_t *low, const struct ptwm_kernel_table_scalar *table,
                                const uint8_t *words, uint16_t *symbols)
{
    return group_of_any_c99(high, low, table, NULL, words, symbols);
}

/* The same with phases; shifts: of the group's elements. */
static const uint8_t *phased_group_c99(uint16_t *high, uint16_t *low, const struct ptwm_kernel_table_scalar *table,
                                       const uint8_t *shifts, bool is_bytes, const uint8_t *words, uint16_t *symbols)
{
    const uint16_t *wide = (const uint16_t *)(const void *)shifts;
    uint8_t phase[PTWM_KERNEL_LANES];

    for (unsigned l = 0; l < PTWM_KERNEL_LANES; l++)
        phase[l] = is_bytes ? shifts[l / 64 * 64 + l % 32 * 2 + l / 32 % 2] & 1 : (uint8_t)(wide[l] / PTWM_PHASE & 1);
    return group_of_any_c99(high, low, table, phase, words, symbols);
}

/* From the order of lanes to that of elements, of one group of bytes. */
static void order_bytes_c99(uint16_t *symbols, const uint16_t *by_lane)
{
    for (unsigned half = 0; half < PTWM_KERNEL_LANES; half += 64)
        for (unsigned i = 0; i < 32; i++) {
            symbols[half + 2 * i] = by_lane[half + i];
            symbols[half + 2 * i + 1] = by_lane[half + 32 + i];
        }
}

static void store_units_c99(uint8_t *out, const uint16_t *units, const uint8_t *low_plane, size_t width)
{
    uint16_t pairs[2 * PTWM_KERNEL_BLOCK], low[PTWM_KERNEL_BLOCK];

    if (width == 1) {
        for (size_t i = 0; i < PTWM_KERNEL_BLOCK; i++)
            out[i] = (uint8_t)units[i];
    } else if (!kernel_is_little_endian()) {
        for (size_t i = 0; i < PTWM_KERNEL_BLOCK; i++)
            ptwm_store16(out + (i + 1) * width - 2, units[i]);
        for (size_t i = 0; width == 4 && i < PTWM_KERNEL_BLOCK; i++)
            memcpy(out + 4 * i, low_plane + 2 * i, 2);
    } else if (width == 2) {
        memcpy(out, units, 2 * PTWM_KERNEL_BLOCK);
    } else {
        memcpy(low, low_plane, sizeof low);
        for (size_t i = 0; i < PTWM_KERNEL_BLOCK; i++) {
            pairs[2 * i] = low[i];
            pairs[2 * i + 1] = units[i];
        }
        memcpy(out, pairs, sizeof pairs);
    }
}

/* Merges symbols, shifts and rest to units. shift and bits: of the label step. */
PTWM_INLINE void merge_c99(uint16_t *units, const uint16_t *rest, const uint8_t *shifts, size_t shift_nbytes,
                           unsigned shift, unsigned bits)
{
    const unsigned mask = ((1u << bits) - 1) << shift;

    for (size_t i = 0; i < PTWM_KERNEL_BLOCK; i++) {
        const unsigned column = shift_nbytes == 1 ? shifts[i] : ((const uint16_t *)(const void *)shifts)[i];
        units[i] = (uint16_t)(((units[i] + column) & mask) | (unsigned)(rest[i] >> shift) << (shift + bits) |
                              (rest[i] & ((1u << shift) - 1)));
    }
}

PTWM_INLINE size_t decode_c99(struct ptwm_kernel_job *job, size_t n_blocks, enum ptwm_kernel_kind kind, bool has_phases,
                              unsigned shift, unsigned bits)
{
    const struct ptwm_kernel_shape shape = ptwm_kernel_shape(kind);
    uint16_t units[PTWM_KERNEL_BLOCK], rest[PTWM_KERNEL_BLOCK], by_lane[PTWM_KERNEL_LANES];
    size_t done = 0;

    for (; done < n_blocks && job->words <= job->words_limit; done++) {
        const uint8_t *shifts = job->shifts + job->column * shape.shift_nbytes;
        for (unsigned g = 0; g < PTWM_KERNEL_GROUPS; g++) {
            uint16_t *group = units + PTWM_KERNEL_LANES * g, *to = ptwm_kernel_is_bytes(kind) ? by_lane : group;
            if (has_phases)
                job->words = phased_group_c99(job->high, job->low, &job->tables.scalar[2 * job->group_class[g]],
                                              shifts + PTWM_KERNEL_LANES * g * shape.shift_nbytes,
                                              ptwm_kernel_is_bytes(kind), job->words, to);
            else
                job->words = group_c99(job->high, job->low, &job->tables.scalar[job->group_class[g]], job->words, to);
            if (ptwm_kernel_is_bytes(kind))
                order_bytes_c99(group, by_lane);
        }
        ptwm_rest_unpack(rest, job->rest, PTWM_KERNEL_BLOCK, (unsigned)(shape.rest_nbytes / 64));
        merge_c99(units, rest, shifts, shape.shift_nbytes, shift, bits);
        store_units_c99(job->out, units, job->low_plane, shape.out_nbytes / PTWM_KERNEL_BLOCK);
        job->group_class += PTWM_KERNEL_GROUPS;
        job->rest += shape.rest_nbytes;
        job->out += shape.out_nbytes;
        if (shape.has_low)
            job->low_plane += job->low_step;
        job->column = ptwm_kernel_next_column(job, job->column);
    }
    return done;
}

#define INSTANCE(name, kind, has_phases, shift, bits)                                                                  \
    static size_t name(struct ptwm_kernel_job *job, size_t n_blocks)                                                   \
    {                                                                                                                  \
        return decode_c99(job, n_blocks, kind, has_phases, shift, bits);                                               \
    }
INSTANCE(rest7_c99, PTWM_KERNEL_REST7, false, 6, 9)
INSTANCE(rest8_c99, PTWM_KERNEL_REST8, false, 7, 8)
INSTANCE(rest7_low_c99, PTWM_KERNEL_REST7_LOW, false, 6, 9)
INSTANCE(rest8_low_c99, PTWM_KERNEL_REST8_LOW, false, 7, 8)
INSTANCE(rest10_c99, PTWM_KERNEL_REST10, false, 9, 6)
INSTANCE(rest3_c99, PTWM_KERNEL_REST3, false, 2, 5)
INSTANCE(rest2_c99, PTWM_KERNEL_REST2, false, 1, 6)
INSTANCE(int8_c99, PTWM_KERNEL_INT8, false, 3, 5)
INSTANCE(rest7_phased_c99, PTWM_KERNEL_REST7, true, 6, 9)
INSTANCE(rest7_low_phased_c99, PTWM_KERNEL_REST7_LOW, true, 6, 9)
INSTANCE(rest10_phased_c99, PTWM_KERNEL_REST10, true, 9, 6)
INSTANCE(rest3_phased_c99, PTWM_KERNEL_REST3, true, 2, 5)
INSTANCE(rest2_phased_c99, PTWM_KERNEL_REST2, true, 1, 6)
#undef INSTANCE

static const struct ptwm_kernel_set ptwm_kernels_c99 = {
    build_tables_scalar,
    {
        [PTWM_KERNEL_SHIFTS] = {
            { rest7_c99, NULL, NULL },
            { rest8_c99, NULL, NULL },
            { rest7_low_c99, NULL, NULL },
            { rest8_low_c99, NULL, NULL },
            { rest10_c99, NULL, NULL },
            { rest3_c99, NULL, NULL },
            { rest2_c99, NULL, NULL },
            { int8_c99, NULL, NULL },
        },
        [PTWM_KERNEL_PHASES] = {
            [PTWM_KERNEL_REST7] = { rest7_phased_c99, NULL, NULL },
            [PTWM_KERNEL_REST7_LOW] = { rest7_low_phased_c99, NULL, NULL },
            [PTWM_KERNEL_REST10] = { rest10_phased_c99, NULL, NULL },
            [PTWM_KERNEL_REST3] = { rest3_phased_c99, NULL, NULL },
            [PTWM_KERNEL_REST2] = { rest2_phased_c99, NULL, NULL },
        },
    },
};
