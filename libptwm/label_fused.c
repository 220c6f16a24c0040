/*
 * The driver of fused decoding: heads, classes, the words' end, the elements behind the last block of 512, exceptions and
 * CRCs. The kernels do the blocks.
 */
#include "label_fused.h"

#include <string.h>

#include "cpu_features.h"
#include "label_decode.h"
#include "label_kernel.h"
#include "rest.h"

#include "label_kernel_c99.h"
#if defined(PTWM_X86)
#include "x86/label_kernel_impl.h"
#elif defined(PTWM_ARM)
#include "arm/label_kernel_impl.h"
#endif

static const struct ptwm_kernel_set *kernels(void)
{
    switch (ptwm_cpu_level()) {
#if defined(PTWM_X86)
    case PTWM_CPU_AVX512: return &ptwm_kernels_avx512;
    case PTWM_CPU_AVX2: return &ptwm_kernels_avx2;
#elif defined(PTWM_ARM)
    case PTWM_CPU_NEON: return &ptwm_kernels_neon;
#endif
    default: return &ptwm_kernels_c99;
    }
}

static const struct {
    uint8_t width, shift, bits;
} kinds[PTWM_N_KERNEL_KINDS] = {
    { 2, 6, 9 }, { 2, 7, 8 }, { 4, 6, 9 }, { 4, 7, 8 }, { 2, 9, 6 }, { 1, 2, 5 }, { 1, 1, 6 }, { 1, 3, 5 },
};

/* PTWM_N_KERNEL_KINDS if no kernel is for that chain. */
static unsigned kind_of(const struct ptwm_parsed_chain *chain)
{
    unsigned k = 0;

    if (chain->n_steps != 1 || chain->label == NULL)
        return PTWM_N_KERNEL_KINDS;
    while (k < PTWM_N_KERNEL_KINDS && (kinds[k].width != chain->label->width || kinds[k].shift != chain->label->shift ||
                                       kinds[k].bits != chain->label->bits))
        k++;
    return k;
}

bool ptwm_fused_serves(const struct ptwm_parsed_chain *chain, const struct ptwm_label_model *model, size_t raw_nbytes)
{
    const unsigned kind = kind_of(chain);

    return kind < PTWM_N_KERNEL_KINDS &&
           (model->phase == NULL || ptwm_kernel_has_phases((enum ptwm_kernel_kind)kind)) &&
           ptwm_chain_n_elements(chain, raw_nbytes) >= PTWM_KERNEL_BLOCK;
}

/* ------------------------------------------------------------------------------------------------- the decoder */

enum {
    BATCH_BLOCKS = 64,         /* whose classes are read at a time */
    MAX_CARRIED_BLOCKS = 2,    /* whose rests may be among those that are carried: of 2 bits each, two blocks' */
    CARRIED_BLOCK_NBYTES = 640 /* a block's rests, of 10 bits each, or two blocks' of 3 */
};

struct fused {
    const struct ptwm_fused_chunk *chunk;
    struct ptwm_kernel_job job;
    struct ptwm_label_head head;
    struct ptwm_cursor words; /* all of them */
    ptwm_kernel_function decode, decode_unchecked;
    bool driver_computes_crc;
    size_t n; /* elements */
    unsigned rest_bits;
    /* The class of each group of 128, read unit by unit. */
    struct ptwm_label_classes classes;
    size_t groups_of_unit; /* left of the one begun */
    uint8_t class;
    uint8_t group_class[BATCH_BLOCKS * PTWM_KERNEL_GROUPS + 7]; /* and what read_group_classes writes behind them */
    const uint8_t *words_end;
    bool is_last;
    /* The last words, and what a block and a vector may look at behind them: zeros. */
    uint8_t last_words[2 * 2 * PTWM_KERNEL_WORDS];
    /* If some of the rests are carried: how many blocks these are of, their rests, and the classes of their groups. */
    size_t n_carried_blocks;
    uint8_t carried_rest[CARRIED_BLOCK_NBYTES];
    uint8_t carried_class[MAX_CARRIED_BLOCKS * PTWM_KERNEL_GROUPS];
};

/* What stands for the shifts of a model without any. */
static const uint16_t no_shifts[PTWM_SHIFT_MARGIN];

/* At the chunk's beginning. */
static void begin_blocks(struct fused *f)
{
    const struct ptwm_label_model *model = f->chunk->model;
    const struct ptwm_fused_chunk *chunk = f->chunk;
    struct ptwm_kernel_job *job = &f->job;

    for (unsigned l = 0; l < PTWM_KERNEL_LANES; l++) {
        job->high[l] = (uint16_t)(f->head.states[l] >> 16);
        job->low[l] = (uint16_t)f->head.states[l];
    }
    job->out = chunk->raw;
    job->is_streamed = chunk->is_streamed;
    job->rest = chunk->rest.bytes;
    job->low_plane = chunk->low.bytes;
    job->low_step = chunk->is_low_constant ? 0 : 2 * PTWM_KERNEL_BLOCK;
    job->shifts = (const uint8_t *)no_shifts;
    job->column = job->column_step = 0;
    job->n_columns = 1;
    if (model->n_columns > 0) {
        job->shifts = (const uint8_t *)model->lifted;
        job->n_columns = model->n_columns;
        job->column = (size_t)(chunk->first_element % model->n_columns);
        job->column_step = PTWM_KERNEL_BLOCK % model->n_columns;
    }
}

static void begin_words(struct fused *f, const struct ptwm_cursor *words)
{
    f->job.words = words->next;
    f->words_end = words->end;
    f->is_last = false;
}

static void begin_crcs(struct fused *f, const struct ptwm_cursor *words)
{
    struct ptwm_kernel_job *job = &f->job;
    const size_t nbytes = ptwm_cursor_left(words), n_pairs = f->n / PTWM_KERNEL_BLOCK * 8;

    job->rest_crc = job->low_crc = 0xFFFFFFFF;
    job->words_crc = ~f->head.crc;
    job->crc_words = words->next;
    job->crc_words_end = words->end;
    job->crc_rate = nbytes / 8 / n_pairs + 1;
}

/*
 * Makes sure that a block can begin: that it finds all the words that it may look at, be they there or not. False if the
 * words are used up and more.
 */
static bool secure_words(struct fused *f)
{
    struct ptwm_kernel_job *job = &f->job;
    const size_t left = (size_t)(f->words_end - job->words);

    if (job->words > f->words_end)
        return false;
    if (!f->is_last && left < 2 * PTWM_KERNEL_WORDS) {
        memcpy(f->last_words, job->words, left);
        memset(f->last_words + left, 0, sizeof f->last_words - left);
        job->words = f->last_words;
        f->words_end = f->last_words + left;
        f->is_last = true;
    }
    job->words_limit = f->is_last ? f->words_end : f->words_end - 2 * PTWM_KERNEL_WORDS;
    return true;
}

/* Reads the classes of n_groups groups; false if one is not a class. */
static bool read_group_classes(struct fused *f, size_t n_groups)
{
    /* Copies: the compiler can't know that the bytes written are none of f's. */
    struct ptwm_label_classes classes = f->classes;
    const size_t groups_of_unit = f->chunk->model->unit / PTWM_UNIT_GRANULE;
    size_t left = f->groups_of_unit;
    uint8_t class = f->class;
    bool is_class = true;

    for (size_t i = 0; i < n_groups && is_class;) {
        size_t run;
        if (left == 0) {
            left = groups_of_unit;
            is_class = ptwm_label_classes_next(&classes, &class);
        }
        run = left < n_groups - i ? left : n_groups - i;
        if (run <= 8) /* the most of units have no more: one store, for which there is room, not memset's call */
            ptwm_store64(f->group_class + i, UINT64_C(0x0101010101010101) * class);
        else
            memset(f->group_class + i, class, run);
        left -= run;
        i += run;
    }
    f->classes = classes;
    f->groups_of_unit = left;
    f->class = class;
    return is_class;
}

static uint32_t update_crc(uint32_t crc_register, const uint8_t *begin, const uint8_t *end)
{
    return ~ptwm_crc32c(~crc_register, begin, (size_t)(end - begin));
}

/* What a kernel without CRCs has just read is still near: takes the CRCs of that. */
static void follow_with_crc(struct fused *f, const uint8_t *rest, const uint8_t *low_plane)
{
    struct ptwm_kernel_job *job = &f->job;
    const uint8_t *words = f->is_last ? job->crc_words_end : job->words;

    if (f->chunk->rest.crc != NULL)
        job->rest_crc = update_crc(job->rest_crc, rest, job->rest);
    if (f->chunk->low.crc != NULL)
        job->low_crc = update_crc(job->low_crc, low_plane, job->low_plane);
    job->words_crc = update_crc(job->words_crc, job->crc_words, words);
    job->crc_words = words;
}

/* Decodes blocks whose groups' classes begin at job.group_class; false if there are too few words. */
static bool decode_batch(struct fused *f, ptwm_kernel_function decode, size_t n_blocks)
{
    for (size_t done = 0; done < n_blocks;) {
        if (!secure_words(f))
            return false;
        done += decode(&f->job, n_blocks - done);
    }
    return true;
}

/*
 * Some rests of the first blocks are known only in the end. Their symbols are decoded with zeros in place of those, and then
 * once more.
 */
static bool decode_carried_blocks(struct fused *f)
{
    const struct ptwm_fused_chunk *chunk = f->chunk;
    struct ptwm_kernel_job *job = &f->job;
    const size_t stored_nbytes = f->n_carried_blocks * 64 * f->rest_bits - PTWM_FUSED_CARRIED;
    const uint8_t *low_plane = job->low_plane;

    if (f->n_carried_blocks > f->n / PTWM_KERNEL_BLOCK || !read_group_classes(f, PTWM_KERNEL_GROUPS * f->n_carried_blocks))
        return false;
    memcpy(f->carried_class, f->group_class, PTWM_KERNEL_GROUPS * f->n_carried_blocks);
    memset(f->carried_rest, 0, PTWM_FUSED_CARRIED);
    memcpy(f->carried_rest + PTWM_FUSED_CARRIED, chunk->rest.bytes, stored_nbytes);
    job->group_class = f->carried_class;
    job->rest = f->carried_rest;
    if (!decode_batch(f, f->decode_unchecked, f->n_carried_blocks))
        return false;
    job->rest = chunk->rest.bytes + stored_nbytes;
    if (chunk->rest.crc != NULL)
        job->rest_crc = update_crc(job->rest_crc, chunk->rest.bytes, job->rest);
    if (chunk->low.crc != NULL)
        job->low_crc = update_crc(job->low_crc, low_plane, job->low_plane);
    return true;
}

/* The second time, with all rests. Moves the job to where it was then, but for job.rest and job.low_plane. */
static bool redo_carried_blocks(struct fused *f)
{
    struct ptwm_kernel_job *job = &f->job;
    const uint8_t *rest = job->rest, *low_plane = job->low_plane;
    bool done;

    begin_blocks(f);
    begin_words(f, &f->words);
    job->group_class = f->carried_class;
    job->rest = f->carried_rest;
    done = decode_batch(f, f->decode_unchecked, f->n_carried_blocks);
    job->rest = rest;
    job->low_plane = low_plane;
    return done;
}

static bool decode_blocks(struct fused *f)
{
    struct ptwm_kernel_job *job = &f->job;

    for (size_t left = f->n / PTWM_KERNEL_BLOCK - f->n_carried_blocks; left > 0;) {
        const size_t batch = left < BATCH_BLOCKS ? left : BATCH_BLOCKS;
        const uint8_t *rest = job->rest, *low_plane = job->low_plane;

        if (!read_group_classes(f, PTWM_KERNEL_GROUPS * batch))
            return false;
        job->group_class = f->group_class;
        if (!decode_batch(f, f->decode, batch))
            return false;
        if (f->driver_computes_crc)
            follow_with_crc(f, rest, low_plane);
        left -= batch;
    }
    /* The words of the last block are all there too. */
    return job->words <= f->words_end;
}

/* --------------------------------------------------------------------------------------- what follows the blocks */

/*
 * Brings the elements of the next exceptions into the caches: what was stored past these takes as long to come back as some
 * hundred elements take to decode. ahead: the same exceptions as next, further on.
 */
static void prefetch_exceptions(const struct fused *f, struct ptwm_exceptions *ahead, const struct ptwm_exceptions *next)
{
#if defined(__GNUC__)
    enum { AHEAD = 16 };
    size_t i;
    uint16_t symbol;

    while (f->chunk->is_streamed && ahead->left > 0 && next->left - ahead->left < AHEAD &&
           ptwm_exceptions_next(ahead, &i, &symbol))
        __builtin_prefetch(f->chunk->raw + i * f->chunk->chain->label->width, 1);
#else
    (void)f;
    (void)ahead;
    (void)next;
#endif
}

/* Puts exceptions in the place of what the kernels decoded, or in symbols, which begins with element n_done. */
static bool patch_exceptions(const struct fused *f, size_t n_done, uint16_t *symbols)
{
    const struct ptwm_fused_chunk *chunk = f->chunk;
    const struct ptwm_step *step = chunk->chain->label;
    const uint16_t *shifts = chunk->model->wrapped;
    const uint32_t n_columns = chunk->model->n_columns, mask = (1u << step->bits) - 1;
    struct ptwm_exceptions exceptions = ptwm_exceptions_begin(&f->head, step->bits, f->n), ahead = exceptions;

    while (exceptions.left > 0) {
        size_t i;
        uint16_t symbol;

        prefetch_exceptions(f, &ahead, &exceptions);
        if (!ptwm_exceptions_next(&exceptions, &i, &symbol))
            return false;
        if (i < n_done) {
            uint8_t *unit = chunk->raw + i * step->width + (step->width == 4 ? 2 : 0);
            uint32_t shift = n_columns > 0 ? shifts[(chunk->first_element + i) % n_columns] : 0;
            uint32_t bits = ((symbol + shift) & mask) << step->shift, others = ~(mask << step->shift);

            if (step->width == 1)
                *unit = (uint8_t)((*unit & others) | bits);
            else
                ptwm_store16(unit, (uint16_t)((ptwm_load16(unit) & others) | bits));
        } else {
            symbols[i - n_done] = symbol;
        }
    }
    return true;
}

/* Merges the m elements from number n_done on, whose symbols are known, the plain way. */
static enum ptwm_status merge_end(const struct fused *f, size_t n_done, const uint16_t *symbols, size_t m)
{
    const struct ptwm_fused_chunk *chunk = f->chunk;
    const struct ptwm_shifts shifts = { chunk->model->n_columns, chunk->model->wrapped };
    const size_t width = chunk->chain->label->width;
    const bool has_low = width == 4;
    uint8_t symbol_plane[2 * PTWM_KERNEL_BLOCK];
    const uint8_t *planes[3];

    for (size_t i = 0; i < m; i++)
        if (chunk->chain->label->bits > 8)
            ptwm_store16(symbol_plane + 2 * i, symbols[i]);
        else
            symbol_plane[i] = (uint8_t)symbols[i];
    planes[0] = f->job.low_plane;
    planes[has_low] = f->job.rest;
    planes[has_low + 1] = symbol_plane;
    return ptwm_chain_merge(chunk->chain, &shifts, chunk->first_element + n_done, chunk->raw + n_done * width, m * width,
                            planes, NULL);
}

static enum ptwm_status decode_end(struct fused *f)
{
    const size_t n_done = f->n / PTWM_KERNEL_BLOCK * PTWM_KERNEL_BLOCK, m = f->n - n_done;
    uint16_t symbols[PTWM_KERNEL_BLOCK];
    uint32_t states[PTWM_KERNEL_LANES];
    enum ptwm_status status;

    for (unsigned l = 0; l < PTWM_KERNEL_LANES; l++)
        states[l] = (uint32_t)f->job.high[l] << 16 | f->job.low[l];
    if (!read_group_classes(f, (size_t)ptwm_ceil_div(m, PTWM_UNIT_GRANULE)) || f->classes.reader.pool != 0)
        return PTWM_ERR_PLANE;
    status = ptwm_label_decode_end(&f->head, f->chunk->model, f->chunk->first_element + n_done, states, f->group_class,
                                   f->job.words, f->words_end, symbols, m, f->carried_rest,
                                   f->chunk->is_carried ? PTWM_FUSED_CARRIED : 0, NULL);
    if (status == PTWM_OK && f->chunk->is_carried && !redo_carried_blocks(f))
        status = PTWM_ERR_PLANE;
    if (status == PTWM_OK && !patch_exceptions(f, n_done, symbols))
        status = PTWM_ERR_PLANE;
    if (status == PTWM_OK && m > 0)
        status = merge_end(f, n_done, symbols, m);
    return status;
}

/* Takes the CRCs of what the kernels left, and checks them all. */
static bool crcs_are_right(const struct fused *f)
{
    const struct ptwm_fused_chunk *chunk = f->chunk;
    const struct ptwm_kernel_job *job = &f->job;

    if (chunk->rest.crc != NULL &&
        ~update_crc(job->rest_crc, job->rest, chunk->rest.bytes + chunk->rest.nbytes) != *chunk->rest.crc)
        return false;
    if (chunk->low.crc != NULL &&
        ~update_crc(job->low_crc, job->low_plane, chunk->low.bytes + chunk->low.nbytes) != *chunk->low.crc)
        return false;
    return chunk->symbols.crc == NULL ||
           ~update_crc(job->words_crc, job->crc_words, job->crc_words_end) == *chunk->symbols.crc;
}

/* Chooses a kernel that computes at least the CRCs that are wanted. */
static void choose_kernel(struct fused *f, unsigned kind)
{
    const struct ptwm_kernel_set *set = kernels();
    const struct ptwm_fused_chunk *chunk = f->chunk;
    const enum ptwm_kernel_check check = chunk->low.crc != NULL                               ? PTWM_KERNEL_CRC_LOW
                                         : chunk->rest.crc != NULL || chunk->symbols.crc != NULL ? PTWM_KERNEL_CRC
                                                                                                 : PTWM_KERNEL_NO_CRC;
    const bool has_phases = chunk->model->phase != NULL;
    const bool shifts = chunk->model->n_columns > 0 || set->decode[PTWM_KERNEL_NO_SHIFTS][kind][PTWM_KERNEL_NO_CRC] == NULL;
    const ptwm_kernel_function *functions =
        set->decode[has_phases ? PTWM_KERNEL_PHASES : shifts ? PTWM_KERNEL_SHIFTS : PTWM_KERNEL_NO_SHIFTS][kind];

    f->decode = functions[check];
    f->decode_unchecked = functions[PTWM_KERNEL_NO_CRC];
    f->driver_computes_crc = f->decode == NULL;
    if (f->decode == NULL)
        f->decode = f->decode_unchecked;
    set->build_tables(&f->job.tables, f->head.set, has_phases ? 2 : 1, chunk->chain->label->shift);
}

enum ptwm_status ptwm_fused_decode(const struct ptwm_fused_chunk *chunk)
{
    struct ptwm_cursor symbols = ptwm_cursor_make(chunk->symbols.bytes, chunk->symbols.nbytes);
    struct fused f;
    enum ptwm_status status;

    f.chunk = chunk;
    f.n = (size_t)ptwm_chain_n_elements(chunk->chain, chunk->raw_nbytes);
    f.rest_bits = (chunk->chain->label->width == 1 ? 8u : 16u) - chunk->chain->label->bits;
    f.groups_of_unit = 0;
    status = ptwm_label_read_head(&f.head, chunk->model, f.n, &symbols, NULL);
    if (status != PTWM_OK)
        return status;
    if (f.head.n_lanes != PTWM_KERNEL_LANES)
        return PTWM_ERR_PLANE;
    f.classes = ptwm_label_classes_begin(&f.head);
    f.words = symbols;
    begin_blocks(&f);
    begin_words(&f, &f.words);
    begin_crcs(&f, &f.words);
    choose_kernel(&f, kind_of(chunk->chain));
    f.n_carried_blocks = chunk->is_carried ? (PTWM_FUSED_CARRIED + 64 * f.rest_bits - 1) / (64 * f.rest_bits) : 0;
    if ((chunk->is_carried && !decode_carried_blocks(&f)) || !decode_blocks(&f))
        return PTWM_ERR_PLANE;
    status = decode_end(&f);
#if defined(PTWM_X86)
    if (chunk->is_streamed)
        finish_streaming();
#endif
    return status == PTWM_OK && !crcs_are_right(&f) ? PTWM_ERR_CHECKSUM : status;
}
