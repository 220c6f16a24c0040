/*
 * Coding a chunk's labels: FORMAT.md, section 7.2.
 *
 * rANS codes backwards: the encoder takes the elements from the last to the first and writes words from the end of
 * their place towards its beginning, so that the decoder takes both in ascending order.
 */
#include "label_encode.h"

#include "cpu_features.h"
#include "float_split.h"
#include "status.h"

enum { STATE_START = 65536, LANES = PTWM_MAX_LANES, NO_LABEL = 255 };

size_t ptwm_label_bound(size_t n)
{
    /*
     * Words take 2 n bytes at most. Exceptions take 3 n: a distance of k bytes passes over at least k elements, its own
     * included, and a symbol takes 2. Classes take 3 bits a unit. Lanes, set, n_exceptions, states and CRC
     * take at most 1 + 3 + 10 + 4 * 128 + 4.
     */
    return 5 * n + n / 2 + 640;
}

uint32_t ptwm_label_n_lanes(size_t n, uint32_t unit)
{
    if (unit % PTWM_UNIT_GRANULE != 0) /* no kernels, and states cost more than such planes, which are small, can bear */
        return n >= 65536 ? 32 : 4;
    return n >= 16384 ? 128 : n >= 1024 ? 32 : 4;
}

size_t ptwm_label_n_carried(const uint8_t *rest, uint64_t rest_nbytes, size_t n, uint32_t unit)
{
    const size_t n_carried = 2 * (size_t)ptwm_label_n_lanes(n, unit);

    return rest_nbytes >= n_carried && memcmp(rest, rest + 1, n_carried - 1) != 0 ? n_carried : 0;
}

/* ------------------------------------------------------------------------------------------------- tables */

/*
 * x >> 3 is a 29-bit integer N, frequency = 8 f with f <= 2^s, s = ceil(log2(f)). With m = ceil(2^(29 + s) / f),
 * floor(N m / 2^(29 + s)) = floor(N / f), as m f - 2^(29 + s) < f <= 2^s (Granlund and Montgomery); N m < 2^60.
 */
static void set_reciprocal(struct ptwm_label_coder *label)
{
    uint32_t f = label->frequency / PTWM_FREQUENCY_GRANULE;
    label->shift = 29 + ptwm_ceil_log2(f);
    label->reciprocal = (uint32_t)ptwm_ceil_div((uint64_t)1 << label->shift, f);
}

/* A part of a bucket: its offsets begin .. begin + n - 1 are label's ranks from rank on. All are multiples of 8. */
struct piece {
    uint32_t label, rank, bucket, begin, n;
};

/* All pieces that are not empty, in ascending order of label and rank; their number, at most 63. */
static uint32_t list_pieces(const uint16_t frequency[PTWM_MAX_LABELS], struct piece *pieces)
{
    const uint32_t bucket_size = PTWM_FREQUENCY_TOTAL / PTWM_MAX_LABELS;
    struct ptwm_alias_table alias;
    uint32_t n = 0;

    ptwm_alias_build(&alias, frequency);
    for (uint32_t b = 0; b < PTWM_MAX_LABELS; b++) {
        /* Below off * 32 + b >= div[b], div a multiple of 32, the bucket is its own label's. */
        const uint32_t own = alias.div[b] / PTWM_MAX_LABELS;
        const struct piece both[2] = { { b, 0, b, 0, own },
                                       { alias.ali[b], (own + alias.adj[b]) & 0xffff, b, own, bucket_size - own } };
        for (unsigned k = 0; k < 2; k++) {
            uint32_t i = n;
            if (both[k].n == 0)
                continue;
            for (; i > 0 && (pieces[i - 1].label > both[k].label ||
                             (pieces[i - 1].label == both[k].label && pieces[i - 1].rank > both[k].rank)); i--)
                pieces[i] = pieces[i - 1];
            pieces[i] = both[k];
            n++;
        }
    }
    return n;
}

static void fill_inverse(struct ptwm_class_encoder *class, const struct piece *pieces, uint32_t n_pieces)
{
    for (uint32_t k = 0; k < n_pieces; k++) {
        const struct piece *piece = &pieces[k];
        uint16_t *slots =
            class->inverse + class->labels[piece->label].first_slot + piece->rank / PTWM_FREQUENCY_GRANULE;
        const uint32_t first = piece->begin * PTWM_MAX_LABELS + piece->bucket, n = piece->n / PTWM_FREQUENCY_GRANULE;

        for (uint32_t i = 0; i < n; i++)
            slots[i] = (uint16_t)(first + i * (PTWM_FREQUENCY_GRANULE * PTWM_MAX_LABELS));
    }
    memset(class->inverse + PTWM_N_SLOTS, 0, sizeof class->inverse - PTWM_N_SLOTS * sizeof class->inverse[0]);
}

/* Fills the cells; pieces are as list_pieces makes them. */
static void fill_cells(struct ptwm_class_encoder *class, const struct piece *pieces, uint32_t n)
{
    struct ptwm_pieces *p = &class->pieces;
    uint32_t next_cell = 0;

    memset(p->limits, 255, sizeof p->limits);
    p->n_limits = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct piece *piece = &pieces[i];
        uint32_t last = (piece->rank + piece->n - 1) / PTWM_PIECE_CELL_RANKS, cell = piece->rank / PTWM_PIECE_CELL_RANKS;

        p->place[i] = (uint16_t)((piece->begin - piece->rank) * PTWM_MAX_LABELS + piece->bucket);
        if (piece->rank == 0) {
            p->first_cell[piece->label] = (uint8_t)next_cell;
            next_cell += (uint32_t)ptwm_ceil_div(class->labels[piece->label].frequency, PTWM_PIECE_CELL_RANKS);
        }
        if (piece->rank % PTWM_PIECE_CELL_RANKS != 0) {
            const uint32_t at = p->first_cell[piece->label] + cell;
            unsigned k = 0;
            while (k < PTWM_PIECE_LIMITS && p->limits[k][at] != 255)
                k++;
            if (k < PTWM_PIECE_LIMITS)
                p->limits[k][at] = (uint8_t)(piece->rank % PTWM_PIECE_CELL_RANKS / 4 - 1);
            p->n_limits = p->n_limits > k + 1 ? p->n_limits : k + 1;
            cell++;
        }
        for (; cell <= last; cell++)
            p->first_piece[p->first_cell[piece->label] + cell] = (uint8_t)i;
    }
}

static void set_divisor(struct ptwm_label_divisors *d, uint32_t label, uint32_t frequency, uint32_t first_slot)
{
    uint32_t shift = 0;

    while ((frequency << shift & 0x8000) == 0)
        shift++;
    d->frequency[label] = (uint16_t)frequency;
    d->shift[label] = (uint16_t)shift;
    d->divisor[label] = (uint16_t)(frequency << shift);
    d->reciprocal[label] = (uint16_t)(UINT32_MAX / (frequency << shift) - 65536);
    d->first_slot[label] = (uint16_t)first_slot;
    for (unsigned b = 0; b < 2; b++) {
        d->bytes[0][b][label] = (uint8_t)(frequency >> (8 * b));
        d->bytes[1][b][label] = (uint8_t)(1u << shift >> (8 * b));
        d->bytes[2][b][label] = (uint8_t)(d->reciprocal[label] >> (8 * b));
        d->bytes[3][b][label] = (uint8_t)(first_slot >> (8 * b));
    }
}

static void build_class(struct ptwm_class_encoder *class, uint32_t n_labels, const uint16_t frequency[PTWM_MAX_LABELS],
                        uint32_t phase, bool has_inverse)
{
    const uint32_t slots_before = phase * (uint32_t)(sizeof *class / sizeof class->inverse[0]);
    struct piece pieces[2 * PTWM_MAX_LABELS];
    uint32_t slot = 0, n;

    memset(class, 0, offsetof(struct ptwm_class_encoder, inverse)); /* that is filled, if at all, from the pieces */
    class->most_frequent = 0;
    for (uint32_t i = 0; i < n_labels; i++) {
        struct ptwm_label_coder *label = &class->labels[i];
        label->frequency = frequency[i];
        label->first_slot = slot;
        set_reciprocal(label);
        slot += frequency[i] / PTWM_FREQUENCY_GRANULE;
        if (frequency[i] > frequency[class->most_frequent])
            class->most_frequent = (uint8_t)i;
        set_divisor(&class->divisors, i, label->frequency, slots_before + label->first_slot);
    }
    n = list_pieces(frequency, pieces);
    fill_cells(class, pieces, n);
    if (has_inverse)
        fill_inverse(class, pieces, n);
}

static uint32_t n_encoders(const struct ptwm_label_encoder *encoder)
{
    return encoder->n_classes * encoder->n_phases;
}

void ptwm_label_encoder_release(struct ptwm_label_encoder *encoder)
{
    if (encoder->by_class != NULL)
        ptwm_release(encoder->allocator, encoder->by_class, n_encoders(encoder), sizeof *encoder->by_class);
    encoder->by_class = NULL;
}

/* ------------------------------------------------------------------------------------------------- words */

static inline uint32_t load_state(const struct ptwm_label_states *states, size_t lane)
{
    return (uint32_t)states->high[lane] << 16 | states->low[lane];
}

static inline void store_state(struct ptwm_label_states *states, size_t lane, uint32_t state)
{
    states->low[lane] = (uint16_t)state;
    states->high[lane] = (uint16_t)(state >> 16);
}

/* The low half of the state for a label's rank, by the pieces. */
static uint32_t invert_by_pieces(const struct ptwm_pieces *p, uint32_t label, uint32_t rank)
{
    const uint32_t cell = p->first_cell[label] + rank / PTWM_PIECE_CELL_RANKS;
    uint32_t piece = p->first_piece[cell];

    for (unsigned l = 0; l < PTWM_PIECE_LIMITS; l++)
        piece += rank % PTWM_PIECE_CELL_RANKS / 4 > p->limits[l][cell];
    return (rank * PTWM_MAX_LABELS + p->place[piece]) & 0xffff;
}

/*
 * Codes one label on a lane, by the class's tables of the label's phase. There is room for a word before words, so that
 * the store that does not count stays inside.
 */
static inline uint8_t *encode_label(const struct ptwm_class_encoder *phases, bool has_inverse, uint32_t label,
                                    uint32_t *state, uint8_t *words)
{
    const struct ptwm_class_encoder *class = &phases[label / PTWM_PHASE % 2];
    const struct ptwm_label_coder *coder = &class->labels[label & PTWM_LABEL_MASK];
    uint32_t x = *state, emits = x >> 16 >= coder->frequency, quotient, rank;

    ptwm_store16(words - 2, (uint16_t)x);
    words -= 2 * emits;
    x >>= 16 * emits;
    quotient = (uint32_t)((uint64_t)(x >> 3) * coder->reciprocal >> coder->shift);
    rank = x - quotient * coder->frequency;
    if (!has_inverse) {
        *state = (quotient << 16) + invert_by_pieces(&class->pieces, label & PTWM_LABEL_MASK, rank);
        return words;
    }
    *state = (quotient << 16) + class->inverse[coder->first_slot + rank / PTWM_FREQUENCY_GRANULE] +
             rank % PTWM_FREQUENCY_GRANULE * PTWM_MAX_LABELS;
    return words;
}

/*
 * Codes labels begin .. end - 1 of those of a unit, m of them: end - begin <= n_lanes of a group that is not whole or
 * has few lanes.
 */
static void encode_group(struct ptwm_label_coding *coding, const struct ptwm_class_encoder *class, uint32_t n_lanes,
                         const uint8_t *labels, size_t m, size_t begin, size_t end)
{
    const uint8_t width = coding->chunk->width;
    uint8_t label[PTWM_MAX_LANES]; /* of each lane, or NO_LABEL */

    memset(label, NO_LABEL, sizeof label);
    for (size_t i = begin; i < end; i++)
        label[ptwm_label_lane((uint32_t)(i - begin), n_lanes, width)] = labels[ptwm_label_place(i, m, width)];
    for (uint32_t lane = n_lanes; lane-- > 0;)
        if (label[lane] != NO_LABEL) {
            uint32_t state = load_state(&coding->states, lane);
            coding->words = encode_label(class, coding->encoder->has_inverses, label[lane], &state, coding->words);
            store_state(&coding->states, lane, state);
        }
}

/*
 * Codes n labels, a multiple of LANES, of one class, which lie in pairs (ptwm_label_place). mask: of the labels' bits
 * that count.
 */
static inline uint8_t *encode_run(const struct ptwm_class_encoder *class, unsigned mask, const uint8_t *labels,
                                  size_t n, struct ptwm_label_states *states, uint8_t *words)
{
    uint32_t whole[LANES];

    for (unsigned i = 0; i < LANES; i++)
        whole[i] = load_state(states, i);
    for (size_t i = n; i > 0; i -= LANES)
        for (unsigned quarter = LANES / 32; quarter-- > 0;) {
            const uint8_t *own = labels + i - LANES + quarter / 2 * PTWM_PAIR_BLOCK + quarter % 2;
            for (unsigned k = 32; k-- > 0;)
                words = encode_label(class, true, own[2 * k] & mask, &whole[32 * quarter + k], words);
        }
    for (unsigned i = 0; i < LANES; i++)
        store_state(states, i, whole[i]);
    return words;
}

static uint8_t *encode_run_c99(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                               struct ptwm_label_states *states, uint8_t *words)
{
    return encode_run(class, PTWM_LABEL_MASK, labels, n, states, words);
}

/* The same with the tables of two phases, which are class[0] and class[1]. */
static uint8_t *encode_phased_run_c99(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                      struct ptwm_label_states *states, uint8_t *words)
{
    return encode_run(class, PTWM_LABEL_MASK + PTWM_PHASE, labels, n, states, words);
}

#if defined(PTWM_X86)
#include "x86/label_encode_impl.h"
#elif defined(PTWM_ARM)
#include "arm/label_encode_impl.h"
#endif

/* Chooses the way to code runs, and whether it takes inverses; if not, classes of many pieces may still need them. */
static void select_encode_run(struct ptwm_label_encoder *encoder)
{
    const bool has_phases = encoder->n_phases == 2;

    encoder->has_inverses = true;
#if defined(PTWM_X86)
    if (ptwm_cpu_level() == PTWM_CPU_AVX512) {
        encoder->has_inverses = false;
        encoder->encode_run = has_phases ? encode_phased_run_avx512 : encode_run_avx512;
        return;
    }
    if (ptwm_cpu_level() == PTWM_CPU_AVX2) {
        encoder->encode_run = has_phases ? encode_phased_run_avx2 : encode_run_avx2;
        return;
    }
#elif defined(PTWM_ARM)
    if (ptwm_cpu_level() == PTWM_CPU_NEON) {
        encoder->encode_run = has_phases ? encode_phased_run_neon : encode_run_neon;
        return;
    }
#endif
    encoder->encode_run = has_phases ? encode_phased_run_c99 : encode_run_c99;
}

/* Builds all classes; returns whether any has more pieces than kernels without inverses can do. */
static bool build_classes(struct ptwm_label_encoder *encoder, const struct ptwm_label_set *set)
{
    bool is_too_much = false;

    for (uint32_t i = 0; i < n_encoders(encoder); i++) {
        const uint32_t phase = i % encoder->n_phases;
        const struct ptwm_label_table *table = &set->classes[i / encoder->n_phases];
        build_class(&encoder->by_class[i], table->n_labels, phase == 0 ? table->frequency : table->second, phase,
                    encoder->has_inverses);
        is_too_much = is_too_much || encoder->by_class[i].pieces.n_limits > PTWM_PIECE_LIMITS;
    }
    return is_too_much;
}

enum ptwm_status ptwm_label_encoder_init(struct ptwm_label_encoder *encoder, const struct ptwm_allocator *allocator,
                                         const struct ptwm_label_set *set, bool has_phases)
{
    encoder->allocator = allocator;
    encoder->n_classes = set->n_classes;
    encoder->n_phases = has_phases ? 2 : 1;
    encoder->by_class = ptwm_alloc(allocator, n_encoders(encoder), sizeof *encoder->by_class);
    if (encoder->by_class == NULL)
        return PTWM_ERR_MEMORY;
    select_encode_run(encoder);
    if (build_classes(encoder, set) && !encoder->has_inverses) { /* rare */
        encoder->has_inverses = true;
        (void)build_classes(encoder, set);
    }
    return PTWM_OK;
}

/* ------------------------------------------------------------------------------------------------- chunks */

void ptwm_label_begin(struct ptwm_label_coding *coding, const struct ptwm_label_encoder *encoder,
                      const struct ptwm_label_chunk *chunk, const uint8_t *carried, uint8_t *room)
{
    coding->encoder = encoder;
    coding->chunk = chunk;
    coding->words = coding->words_end = room + 2 * chunk->n;
    memset(coding->upcoming, 0, sizeof coding->upcoming);
    for (uint32_t i = 0; i < LANES; i++)
        store_state(&coding->states, i, STATE_START);
    for (uint32_t i = 0; carried != NULL && i < ptwm_label_n_lanes(chunk->n, chunk->unit); i++)
        coding->states.low[i] = ptwm_load16(carried + 2 * i);
}

/* Fetches what n labels' share of upcoming memory is into the caches. */
static void fetch(struct ptwm_upcoming *upcoming, size_t n)
{
    const size_t nbytes = upcoming->end != NULL ? n * upcoming->bits / 8 : 0;

#if defined(__GNUC__)
    for (size_t i = 0; i < nbytes; i += 64)
        __builtin_prefetch(upcoming->end - i - 1, 0, 2);
#endif
    if (nbytes > 0)
        upcoming->end -= nbytes;
}

void ptwm_label_code(struct ptwm_label_coding *coding, const uint8_t *labels, size_t begin, size_t end)
{
    const struct ptwm_label_chunk *chunk = coding->chunk;
    const uint32_t n_lanes = ptwm_label_n_lanes(chunk->n, chunk->unit);

    while (end > begin) {
        const size_t unit = (end - 1) / chunk->unit, first = unit * chunk->unit;
        const size_t n = chunk->n - first < chunk->unit ? chunk->n - first : chunk->unit;
        const struct ptwm_class_encoder *class =
            &coding->encoder->by_class[coding->encoder->n_phases * chunk->classes[unit]];
        const size_t m = end % n_lanes != 0 ? end % n_lanes : n_lanes;
        const uint8_t *own = labels + (first - begin);

        if (chunk->unit % n_lanes != 0) { /* element by element: groups of lanes do not fit units */
            while (end-- > first) {
                const uint8_t label = own[ptwm_label_place(end - first, n, chunk->width)];
                uint32_t state = load_state(&coding->states, end % n_lanes);
                coding->words = encode_label(class, coding->encoder->has_inverses, label, &state, coding->words);
                store_state(&coding->states, end % n_lanes, state);
            }
            end++;
        } else if (n_lanes == LANES && m == LANES) {
            fetch(&coding->upcoming[0], end - first);
            fetch(&coding->upcoming[1], end - first);
            coding->words = coding->encoder->encode_run(class, own, end - first, &coding->states, coding->words);
            end = first;
        } else {
            encode_group(coding, class, n_lanes, own, n, end - m - first, end - first);
            end -= m;
        }
    }
}

size_t ptwm_label_end_bound(const struct ptwm_label_coding *coding, size_t exceptions_nbytes)
{
    /* Classes, and the fixed fields as in ptwm_label_bound. */
    return (size_t)(coding->words_end - coding->words) + exceptions_nbytes + coding->chunk->n / coding->chunk->unit / 2 + 640;
}

/* Everything before the states; returns its end. */
static uint8_t *store_head(const struct ptwm_label_coding *coding, size_t n_exceptions, const uint8_t *exceptions,
                           size_t exceptions_nbytes, uint8_t *dst)
{
    const struct ptwm_label_chunk *chunk = coding->chunk;
    const uint32_t n_lanes = ptwm_label_n_lanes(chunk->n, chunk->unit);
    const unsigned class_bits = ptwm_ceil_log2(coding->encoder->n_classes);
    struct ptwm_bit_writer writer = { 0 };

    *dst++ = n_lanes == 4 ? 0 : n_lanes == 32 ? 1 : 2;
    dst += ptwm_store_varint(dst, chunk->set);
    dst += ptwm_store_varint(dst, n_exceptions);
    writer.next = dst;
    for (size_t u = 0; class_bits > 0 && u < ptwm_ceil_div(chunk->n, chunk->unit); u++)
        ptwm_write_bits(&writer, chunk->classes[u], class_bits);
    ptwm_flush_bits(&writer);
    if (exceptions_nbytes > 0)
        memcpy(writer.next, exceptions, exceptions_nbytes);
    return writer.next + exceptions_nbytes;
}

size_t ptwm_label_end(struct ptwm_label_coding *coding, size_t n_exceptions, const uint8_t *exceptions,
                      size_t exceptions_nbytes, uint8_t *dst)
{
    const size_t words_nbytes = (size_t)(coding->words_end - coding->words);
    uint8_t *next = store_head(coding, n_exceptions, exceptions, exceptions_nbytes, dst);

    for (uint32_t lane = 0; lane < ptwm_label_n_lanes(coding->chunk->n, coding->chunk->unit); lane++, next += 4)
        ptwm_store32(next, load_state(&coding->states, lane));
    ptwm_store32(next, ptwm_crc32c(0, dst, (size_t)(next - dst)));
    next += 4;
    memcpy(next, coding->words, words_nbytes);
    return (size_t)(next - dst) + words_nbytes;
}

/* ------------------------------------------------------------------------------------------------- symbols */

/* Labels from symbols: what the general path has. */
struct labeller {
    unsigned bits;
    uint8_t width;
    const uint8_t *map; /* of the class: 2^bits labels */
    struct ptwm_phases phases; /* of the symbols to come */
    size_t n_exceptions, expected;
    uint8_t *exceptions;
};

static void build_map(uint8_t *map, const struct ptwm_label_table *table, uint8_t most_frequent, unsigned bits)
{
    memset(map, PTWM_IS_EXCEPTION | most_frequent, (size_t)1 << bits);
    for (uint32_t i = 0; i < table->n_labels; i++)
        map[table->symbol[i]] = (uint8_t)i;
}

/* Labels of elements begin .. end - 1, a unit. */
static void label_unit(struct labeller *l, const uint16_t *symbols, size_t begin, size_t end, uint8_t *labels)
{
    const uint8_t *phase = NULL;

    for (size_t i = begin; i < end; i++) {
        if ((i - begin) % LANES == 0)
            phase = ptwm_phases_next(&l->phases, (uint32_t)(end - i < LANES ? end - i : LANES));
        labels[begin + ptwm_label_place(i - begin, end - begin, l->width)] =
            l->map[symbols[i]] | phase[(i - begin) % LANES];
        if (l->map[symbols[i]] < PTWM_IS_EXCEPTION)
            continue;
        l->exceptions += ptwm_store_varint(l->exceptions, i - l->expected);
        l->expected = i + 1;
        l->n_exceptions++;
        *l->exceptions++ = (uint8_t)symbols[i];
        if (l->bits > 8)
            *l->exceptions++ = (uint8_t)(symbols[i] >> 8);
    }
}

/* labels has room for n labels, their exceptions and their words. */
static size_t encode_symbols(const struct ptwm_label_model *model, const struct ptwm_label_encoder *encoder,
                             uint8_t *maps, uint8_t *labels, const struct ptwm_label_chunk *chunk,
                             uint64_t first_element, const uint16_t *symbols, const uint8_t *carried, uint8_t *dst)
{
    const struct ptwm_label_set *set = &model->sets[chunk->set];
    uint8_t *exceptions = labels + chunk->n;
    struct labeller l = { model->bits, model->width, NULL, ptwm_label_phases(model, first_element), 0, 0, exceptions };
    struct ptwm_label_coding coding;

    for (uint32_t c = 0; c < set->n_classes; c++)
        build_map(maps + ((size_t)c << model->bits), &set->classes[c],
                  encoder->by_class[encoder->n_phases * c].most_frequent, model->bits);
    for (size_t begin = 0, u = 0; begin < chunk->n; begin += chunk->unit, u++) {
        l.map = maps + ((size_t)chunk->classes[u] << model->bits);
        label_unit(&l, symbols, begin, chunk->n - begin < chunk->unit ? chunk->n : begin + chunk->unit, labels);
    }
    ptwm_label_begin(&coding, encoder, chunk, carried, exceptions + 3 * chunk->n);
    ptwm_label_code(&coding, labels, 0, chunk->n);
    return ptwm_label_end(&coding, l.n_exceptions, exceptions, (size_t)(l.exceptions - exceptions), dst);
}

enum ptwm_status ptwm_label_encode(const struct ptwm_label_model *model, uint32_t set, const uint8_t *classes,
                                   uint64_t first_element, const uint16_t *symbols, size_t n, const uint8_t *carried,
                                   uint8_t *dst, size_t *dst_nbytes, struct ptwm_error *error)
{
    const struct ptwm_label_set *of = &model->sets[set];
    const uint64_t maps_nbytes = (uint64_t)of->n_classes << model->bits, labels_nbytes = 6 * (uint64_t)n;
    struct ptwm_label_encoder encoder = { 0 };
    const struct ptwm_label_chunk chunk = { n, model->width, model->unit, set, classes };
    uint8_t *maps = ptwm_alloc(model->allocator, maps_nbytes, 1);
    uint8_t *labels = ptwm_alloc(model->allocator, labels_nbytes, 1);
    enum ptwm_status status = PTWM_ERR_MEMORY;

    if (maps != NULL && labels != NULL)
        status = ptwm_label_encoder_init(&encoder, model->allocator, of, model->phase != NULL);
    if (status == PTWM_OK)
        *dst_nbytes = encode_symbols(model, &encoder, maps, labels, &chunk, first_element, symbols, carried, dst);
    ptwm_label_encoder_release(&encoder);
    ptwm_release(model->allocator, maps, maps_nbytes, 1);
    ptwm_release(model->allocator, labels, labels_nbytes, 1);
    return status == PTWM_OK ? PTWM_OK : ptwm_fail(error, status, "label encoder");
}
