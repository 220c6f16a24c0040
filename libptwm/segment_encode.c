#include "segment_encode.h"

#include <string.h>

#include "chain_encode.h"
#include "float_split.h"
#include "status.h"

enum {
    TRY_ALL_NBYTES = 64 << 10, /* below this, trying costs little and estimates are off by the most */
    SAMPLE_NBYTES = 720720,    /* a multiple of all widths up to 16, and so of all granules of one step */
    THOROUGH_LEVEL = 10,       /* of effort: from here on everything is tried on everything */
    MANY_NBYTES = 2 << 20,     /* from here on pieces have to do */
    MIN_PROBED_NBYTES = 8 << 10,
    PIECES = 16,
    MAX_PIECE_NBYTES = 64 << 10,
    PIECE_SHARE = 64,      /* a piece is so small a part at most */
    PIECE_GRANULE = 24,    /* a multiple of 1, 2, 3, 4 and 8 */
    SLOW_WAY_SHARE = 2000, /* what a way that decodes slowly has to gain at least, of the size */
    TABLES_NBYTES = 128,   /* what tables of a few labels save over those of 32 */
    ZSTD_MARGIN =
        32, /* how well its part in small floats is estimated: a fiftieth too high, by one in so many at most */
    ZSTD_SHARE = 1000,   /* what zstd has to gain at least, of the size */
    TRIVIAL_SHARE = 256, /* data that shrinks to so small a part has larger chunks */
    TRIVIAL_CHUNK_NBYTES = 16 << 20
};

/* What encoding with a chain gives: its length, and for small data, if it has been encoded, the result itself. */
struct result {
    uint64_t nbytes;
    struct ptwm_bytes encoded; /* nothing if the result has not been kept */
    struct ptwm_segment_record record;
};

static int discard(void *context, const void *data, size_t nbytes)
{
    (void)context;
    (void)data;
    (void)nbytes;
    return 0;
}

/* Finds out, or estimates, what encoding with a chain gives. */
typedef enum ptwm_status (*measure_fn)(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                       enum ptwm_zstd_use zstd, struct result *result, struct ptwm_error *error);

/* By encoding. */
static enum ptwm_status try_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                  enum ptwm_zstd_use zstd, struct result *result, struct ptwm_error *error)
{
    const bool keeps = spec->nbytes <= TRY_ALL_NBYTES;
    const struct ptwm_allocator *allocator = spec->context->allocator;
    const struct ptwm_sink nowhere = { discard, NULL };
    struct ptwm_output *output;
    enum ptwm_status status = keeps ? ptwm_output_open_bytes(&result->encoded, allocator, &output, error)
                                    : ptwm_output_open_sink(&nowhere, allocator, &output, error);

    if (status != PTWM_OK)
        return status;
    result->encoded.nbytes = 0;
    status = ptwm_chain_encode(spec, chain, zstd, NULL, NULL, output, &result->record, error);
    if (status == PTWM_OK)
        result->nbytes = result->record.stored_nbytes;
    ptwm_output_close(output);
    return status;
}

/* By statistics of the first window. */
static enum ptwm_status estimate_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                       enum ptwm_zstd_use zstd, struct result *result, struct ptwm_error *error)
{
    (void)zstd;
    return ptwm_estimate_chain(spec, chain, &result->nbytes, error);
}

/* A way to encode: a chain, and whether its symbols are left to the codecs of bytes. */
struct way {
    size_t chain;
    bool no_labels;
    struct result result;
};

/*
 * Whether the symbols of a chain may be better off without labels: where there are so few that the tables and the
 * lanes' states of label rANS cost more than it gives. nbytes: of all the data, of which spec may have pieces.
 */
static bool may_go_without_labels(const struct ptwm_encode_spec *spec, uint64_t nbytes,
                                  const struct ptwm_parsed_chain *chain)
{
    return spec->method == PTWM_METHOD_MICROSCALE && chain->label != NULL && chain->label->bits <= 8 &&
           (nbytes <= PTWM_FEW_NBYTES || spec->chunk_nbytes <= PTWM_FEW_NBYTES);
}

/* Whether there is nothing to choose. */
static bool has_one_way(const struct ptwm_encode_spec *spec)
{
    return spec->n_chains == 1 && !may_go_without_labels(spec, spec->nbytes, &spec->chains[0]);
}

/* The width of the elements of a type that has fast ways, or 0. */
static unsigned element_width(const struct ptwm_encode_spec *spec)
{
    return ptwm_float_width(ptwm_float_kind_of(&spec->chains[0]));
}

/* Whether bytes of elements have planes of their own, which codecs of bytes code. */
static bool has_planes_of_bytes(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain, bool no_labels)
{
    return chain->label != NULL ? no_labels : chain->n_steps > 0 || element_width(spec) == 1;
}

/*
 * Whether a chain's labels are those of an earlier chain, which decodes fast, less some of their bits. Without those
 * they say no more; only their tables are shorter.
 */
static bool is_coarser(const struct ptwm_encode_spec *spec, size_t chain)
{
    const struct ptwm_step *label = spec->chains[chain].label;

    if (label == NULL || spec->chains[chain].n_steps != 1 ||
        ptwm_float_kind_of(&spec->chains[chain]) != PTWM_FLOAT_NONE)
        return false;
    for (size_t i = 0; i < chain; i++) {
        const struct ptwm_step *finer = spec->chains[i].label;
        if (ptwm_float_kind_of(&spec->chains[i]) != PTWM_FLOAT_NONE && finer->width == label->width &&
            finer->shift + finer->bits == label->shift + label->bits && finer->bits > label->bits &&
            1u << finer->bits <= PTWM_MAX_LABELS)
            return true;
    }
    return false;
}

/*
 * Finds the way whose result is the smallest, by that measure; nothing if there is only one. nbytes: of all the data, of
 * which spec may have pieces. With PTWM_ZSTD_ON_BYTES best is what there is without zstd, and only ways that this may change
 * are measured.
 */
static enum ptwm_status find_best_way(const struct ptwm_encode_spec *spec, uint64_t nbytes, measure_fn measure,
                                      enum ptwm_zstd_use zstd, struct way *best, struct ptwm_error *error)
{
    struct result result = { 0, { spec->context->allocator, NULL, 0, 0 }, best->result.record };
    enum ptwm_status status = PTWM_OK;

    if (has_one_way(spec))
        return PTWM_OK;
    if (zstd != PTWM_ZSTD_ON_BYTES)
        best->result.nbytes = UINT64_MAX;
    for (size_t i = 0; i < 2 * spec->n_chains && status == PTWM_OK; i++) {
        const struct ptwm_parsed_chain *chain = &spec->chains[i / 2];
        struct ptwm_encode_spec variant = *spec;
        variant.no_labels = i % 2 != 0;
        if (variant.no_labels && !may_go_without_labels(spec, nbytes, chain))
            continue;
        if (spec->method == PTWM_METHOD_MICROSCALE && !spec->chains_are_callers && !ptwm_chain_is_promising(spec, chain))
            continue;
        if (zstd == PTWM_ZSTD_ON_BYTES && !has_planes_of_bytes(spec, chain, variant.no_labels))
            continue;
        if (measure == estimate_chain && nbytes / SLOW_WAY_SHARE >= TABLES_NBYTES && is_coarser(spec, i / 2))
            continue;
        status = measure(&variant, chain, zstd, &result, error);
        /* What decodes several times as slowly has to be better by more than estimates are exact. */
        if (measure == estimate_chain && (variant.no_labels || ptwm_float_kind_of(chain) == PTWM_FLOAT_NONE))
            result.nbytes += result.nbytes / SLOW_WAY_SHARE;
        if (status == PTWM_OK && result.nbytes < best->result.nbytes) {
            const struct result other = best->result;
            best->chain = i / 2;
            best->no_labels = variant.no_labels;
            best->result = result;
            result = other;
        }
    }
    ptwm_bytes_release(&result.encoded);
    return status;
}

/* Writes a segment that has been encoded. */
static enum ptwm_status write_result(const struct result *result, struct ptwm_output *output,
                                     struct ptwm_segment_record *record, struct ptwm_error *error)
{
    enum ptwm_status status = ptwm_segment_pad(output, result->record.flags, error);

    *record = result->record;
    record->offset = ptwm_output_position(output);
    if (status == PTWM_OK)
        status = ptwm_output_write(output, result->encoded.data, result->encoded.nbytes, error);
    return status;
}

/*
 * The same for much data, from pieces of it: the best way if it was no longer than they are, though best->result.nbytes is
 * what all would give. *zstd: whether to try it; then whether it has a part in the best way.
 */
static enum ptwm_status find_way_by_pieces(const struct ptwm_encode_spec *spec, enum ptwm_zstd_use *zstd, struct way *best,
                                           struct ptwm_error *error)
{
    const uint64_t share = spec->nbytes / PIECE_SHARE;
    const uint64_t limit = share < MAX_PIECE_NBYTES ? share : MAX_PIECE_NBYTES;
    /* Whole rows, if they are short, and whole elements of every STANDARD chain. */
    const uint64_t step = spec->row_nbytes > 0 && spec->row_nbytes <= limit / PIECE_GRANULE
                              ? PIECE_GRANULE * spec->row_nbytes
                              : PIECE_GRANULE;
    const size_t piece = (size_t)(limit / step * step);
    struct ptwm_encode_spec pieces = *spec;
    struct result without = { 0, { spec->context->allocator, NULL, 0, 0 }, { 0 } };
    uint8_t *data = ptwm_alloc(spec->context->allocator, PIECES, piece);
    enum ptwm_status status;

    if (data == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a sample");
    for (size_t i = 0; i < PIECES; i++) /* none at the ends, which are often unlike the rest */
        memcpy(data + i * piece, spec->data + (spec->nbytes * (2 * i + 1) / (2 * PIECES) - piece / 2) / step * step, piece);
    pieces.data = data;
    pieces.nbytes = PIECES * piece;
    if (has_one_way(spec))
        status = try_chain(&pieces, &spec->chains[0], *zstd, &best->result, error);
    else
        status = find_best_way(&pieces, spec->nbytes, try_chain, *zstd, best, error);
    if (status == PTWM_OK && *zstd != PTWM_ZSTD_NOWHERE) {
        pieces.no_labels = best->no_labels;
        status = try_chain(&pieces, &spec->chains[best->chain], PTWM_ZSTD_NOWHERE, &without, error);
        if (best->result.nbytes >= without.nbytes - without.nbytes / ZSTD_SHARE)
            *zstd = PTWM_ZSTD_NOWHERE;
    }
    best->result.nbytes *= spec->nbytes / pieces.nbytes;
    ptwm_release(spec->context->allocator, data, PIECES, piece);
    return status;
}

/*
 * Encodes floats with their label chain, if that turns out to be the best by a sample and then by the first window's
 * model: then *is_done. Else finds the way that is the best.
 */
static enum ptwm_status encode_floats(const struct ptwm_encode_spec *spec, struct way *best, bool *is_done,
                                      struct ptwm_output *output, struct ptwm_segment_record *record,
                                      struct ptwm_error *error)
{
    struct ptwm_sampled_choice choice = { 0 };
    const bool is_sampled = ptwm_sample_chains(spec, &choice);
    enum ptwm_status status = PTWM_OK;
    bool is_beaten = true;

    if (is_sampled && !choice.is_hopeless) {
        status = ptwm_chain_encode(spec, &spec->chains[choice.label], PTWM_ZSTD_NOWHERE, &choice, &is_beaten, output, record,
                                   error);
        *is_done = status != PTWM_OK || !is_beaten;
        if (*is_done)
            return status;
    }
    /* Of bytes a sample does not show what the classes of rows gain. */
    if (!is_sampled || spec->nbytes <= PTWM_FEW_NBYTES || element_width(spec) == 1)
        return find_best_way(spec, spec->nbytes, estimate_chain, PTWM_ZSTD_NOWHERE, best, error);
    best->chain = choice.rival;
    return PTWM_OK;
}

/*
 * The best way for few floats. zstd takes longer than all else: it is tried on all planes where it finds something that
 * the frequencies of bytes do not show. Elsewhere chains of bytes, with it or without, are tried where they come near
 * the best chain of labels.
 */
static enum ptwm_status find_way_of_few_floats(const struct ptwm_encode_spec *spec, enum ptwm_zstd_use *zstd, struct way *best,
                                               struct ptwm_error *error)
{
    bool finds_order = ptwm_is_repetitive(spec->data, spec->nbytes, spec->chunk_nbytes);
    struct ptwm_encode_spec of_labels = *spec;
    enum ptwm_status status = PTWM_OK;
    uint64_t of_bytes = 0;

    if (!finds_order)
        status = ptwm_zstd_estimate(spec, element_width(spec), &of_bytes, &finds_order, error);
    if (status == PTWM_OK && finds_order) {
        *zstd = PTWM_ZSTD_EVERYWHERE;
        return find_best_way(spec, spec->nbytes, try_chain, *zstd, best, error);
    }
    *zstd = PTWM_ZSTD_NOWHERE;
    for (of_labels.n_chains = 0; of_labels.n_chains < spec->n_chains; of_labels.n_chains++)
        if (spec->chains[of_labels.n_chains].label == NULL)
            break;
    if (status == PTWM_OK)
        status = find_best_way(&of_labels, spec->nbytes, try_chain, *zstd, best, error);
    if (status == PTWM_OK && of_bytes - of_bytes / ZSTD_MARGIN < best->result.nbytes) {
        *zstd = PTWM_ZSTD_ON_BYTES;
        status = find_best_way(spec, spec->nbytes, try_chain, *zstd, best, error);
    }
    return status;
}

bool ptwm_asks_for_repetition(enum ptwm_method method, uint64_t nbytes, const struct ptwm_parsed_chain *chain)
{
    return method == PTWM_METHOD_MICROSCALE && nbytes > TRY_ALL_NBYTES && chain->label != NULL;
}

static bool is_repetitive(const struct ptwm_encode_spec *spec)
{
    return spec->repetition == PTWM_REPETITION_UNKNOWN
               ? ptwm_is_repetitive(spec->data, spec->nbytes, spec->chunk_nbytes)
               : spec->repetition == PTWM_REPETITION_FOUND;
}

enum ptwm_status ptwm_segment_encode(const struct ptwm_encode_spec *spec, struct ptwm_output *output,
                                     struct ptwm_segment_record *record, struct ptwm_error *error)
{
    const bool chosen = spec->method == PTWM_METHOD_MICROSCALE;
    const bool thorough = chosen && spec->context->level >= THOROUGH_LEVEL;
    /* Types whose first chain has no model are the ones in which zstd finds something: integers, masks, text. */
    const bool suspicious =
        chosen &&
        (thorough || !ptwm_asks_for_repetition(spec->method, spec->nbytes, &spec->chains[0]) || is_repetitive(spec));
    const bool samples = suspicious && !thorough && !spec->chains_are_callers;
    enum ptwm_zstd_use zstd =
        suspicious && ptwm_zstd_is_available(spec->context->zstd) ? PTWM_ZSTD_EVERYWHERE : PTWM_ZSTD_NOWHERE;
    struct ptwm_encode_spec variant = *spec, sample = *spec;
    struct way best = { 0, false, { UINT64_MAX, { spec->context->allocator, NULL, 0, 0 }, { 0 } } };
    enum ptwm_status status = PTWM_OK;
    bool is_done = false;

    if (zstd != PTWM_ZSTD_NOWHERE && samples && spec->chains[0].label == NULL && spec->nbytes > TRY_ALL_NBYTES) {
        bool helps = true;
        status = ptwm_zstd_may_help(spec, &helps, error);
        if (!helps)
            zstd = PTWM_ZSTD_NOWHERE;
    }
    if (status != PTWM_OK)
        return status;
    if (!chosen || suspicious || spec->chains_are_callers) {
        if (samples && spec->nbytes >= MANY_NBYTES)
            status = find_way_by_pieces(spec, &zstd, &best, error);
        else if (samples && zstd != PTWM_ZSTD_NOWHERE && element_width(spec) > 0 && spec->nbytes >= MIN_PROBED_NBYTES &&
                 spec->nbytes <= TRY_ALL_NBYTES)
            status = find_way_of_few_floats(spec, &zstd, &best, error);
        else
            status = find_best_way(spec, spec->nbytes, try_chain, zstd, &best, error);
        /* One row over and over: what each chunk says once would be most of the file. */
        if (status == PTWM_OK && chosen && spec->chunk_nbytes == PTWM_DEFAULT_CHUNK_NBYTES &&
            spec->nbytes > spec->chunk_nbytes && best.result.nbytes < spec->nbytes / TRIVIAL_SHARE)
            variant.chunk_nbytes = TRIVIAL_CHUNK_NBYTES;
    } else if (spec->chunk_nbytes < TRY_ALL_NBYTES) { /* of small chunks estimates know too little */
        sample.nbytes = spec->nbytes < SAMPLE_NBYTES ? spec->nbytes : SAMPLE_NBYTES;
        status = find_best_way(&sample, spec->nbytes, try_chain, PTWM_ZSTD_NOWHERE, &best, error);
    } else {
        status = encode_floats(spec, &best, &is_done, output, record, error);
    }
    variant.no_labels = best.no_labels;
    if (status == PTWM_OK && !is_done)
        status = best.result.encoded.nbytes > 0
                     ? write_result(&best.result, output, record, error)
                     : ptwm_chain_encode(&variant, &spec->chains[best.chain], zstd, NULL, NULL, output, record, error);
    ptwm_bytes_release(&best.result.encoded);
    return status;
}

enum ptwm_status ptwm_segment_pad(struct ptwm_output *output, uint32_t flags, struct ptwm_error *error)
{
    static const uint8_t zeros[PTWM_SEGMENT_ALIGNMENT];
    const uint64_t position = ptwm_output_position(output);
    return ptwm_output_write(output, zeros, (size_t)(ptwm_segment_position(position, flags) - position), error);
}
