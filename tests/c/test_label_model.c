/*
 * Models of label rANS as segments' tails have them: written and read again, and malformed.
 */
#include "label_cases.h"

/* ------------------------------------------------------------------------------------------------ models in tails */

static enum ptwm_status read_model(struct ptwm_label_model *model, unsigned bits, const void *bytes, size_t nbytes,
                                   size_t *n_left)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    uint8_t *copy = exactly(nbytes);
    struct ptwm_cursor cursor;
    enum ptwm_status status;
    memcpy(copy, bytes, nbytes);
    cursor = ptwm_cursor_make(copy, nbytes);
    begin_model(model, bits, 2, 128);
    status = ptwm_label_model_read(model, &cursor, &error);
    CHECK_EQ(status, error.status);
    if (n_left != NULL)
        *n_left = ptwm_cursor_left(&cursor);
    free(copy);
    return status;
}

static void check_equal_models(const struct ptwm_label_model *a, const struct ptwm_label_model *b)
{
    CHECK_EQ(a->unit, b->unit);
    CHECK_EQ(a->n_columns, b->n_columns);
    CHECK_EQ(a->n_sets, b->n_sets);
    if (a->n_columns == b->n_columns && a->n_columns > 0) {
        CHECK(memcmp(a->shift, b->shift, a->n_columns * sizeof(*a->shift)) == 0);
        CHECK(memcmp(a->wrapped, b->wrapped, a->n_columns * sizeof(*a->wrapped)) == 0);
        CHECK(memcmp(a->lifted, b->lifted, (a->n_columns + PTWM_SHIFT_MARGIN) * (a->width == 1 ? 1 : 2)) == 0);
        CHECK_EQ(a->phase != NULL, b->phase != NULL);
        if (a->phase != NULL && b->phase != NULL)
            CHECK(memcmp(a->phase, b->phase, a->n_columns + PTWM_SHIFT_MARGIN) == 0);
    }
    for (uint32_t s = 0; s < a->n_sets && a->n_sets == b->n_sets; s++)
        CHECK(memcmp(&a->sets[s], &b->sets[s], sizeof(a->sets[s])) == 0);
}

static void model_round_trips(void)
{
    for (unsigned k = 0; k < 300; k++) {
        unsigned bits = 1 + k % 15;
        struct ptwm_label_model model, back;
        struct ptwm_bytes tail = { &allocator, NULL, 0, 0 };
        struct ptwm_label_set set;
        int16_t shift[300];
        uint32_t n_columns = k % 2 ? random_below(301) : 0;
        int range = 1 + (int)random_below(256), low = -128 + (int)random_below(257 - (uint32_t)range);
        size_t n_left = 1;
        begin_model(&model, bits, 2, 128 * (1 + random_below(8192)));
        for (uint32_t c = 0; c < n_columns; c++)
            shift[c] = (int16_t)(low + (int)random_below((uint32_t)range));
        CHECK_EQ(ptwm_label_model_set_shifts(&model, shift, n_columns), PTWM_OK);
        for (uint32_t c = 0; c < n_columns; c++)
            CHECK_EQ(model.wrapped[c], (uint32_t)(shift[c] + 65536) % (1u << bits));
        if (k % 4 == 1 && n_columns > 0)
            random_phases(&model, n_columns);
        for (unsigned s = random_below(5); s > 0; s--) {
            random_set(&set, 1 + random_below(8), bits);
            if (model.phase != NULL)
                random_second(&set);
            CHECK_EQ(ptwm_label_model_add_set(&model, &set), PTWM_OK);
        }
        CHECK_EQ(ptwm_label_model_write(&model, &tail), PTWM_OK);
        CHECK_EQ(read_model(&back, bits, tail.data, tail.nbytes, &n_left), PTWM_OK);
        CHECK_EQ(n_left, 0);
        check_equal_models(&model, &back);
        ptwm_label_model_release(&back);
        for (size_t n = 0; n < tail.nbytes; n += 1 + n / 50) {
            CHECK_EQ(read_model(&back, bits, tail.data, n, NULL), PTWM_ERR_SEGMENT);
            ptwm_label_model_release(&back);
        }
        for (unsigned flips = 0; flips < 100; flips++) {
            size_t at = random_below((uint32_t)tail.nbytes);
            tail.data[at] ^= (uint8_t)(1 + random_below(255));
            read_model(&back, bits, tail.data, tail.nbytes, NULL);
            ptwm_label_model_release(&back);
        }
        ptwm_label_model_release(&model);
        ptwm_bytes_release(&tail);
    }
    CHECK_EQ(account.live_nbytes, 0);
}

struct model_case {
    enum ptwm_status status;
    size_t nbytes;
    const char *bytes;
};

#define BAD PTWM_ERR_SEGMENT
static const struct model_case model_cases[] = {
    /* unit, columns, sets; bits = 5 */
    { PTWM_OK, 4, "\x80\x01\x00\x00" },
    { BAD, 3, "\x00\x00\x00" },                         /* unit 0 */
    { PTWM_OK, 4, "\x81\x01\x00\x00" },                 /* unit 129 */
    { BAD, 5, "\x81\x80\x40\x00\x00" },                 /* unit 2^20 + 1 */
    { PTWM_OK, 5, "\x80\x80\x40\x00\x00" },             /* unit 2^20 */
    { BAD, 5, "\x80\x81\x00\x00\x00" },                 /* not minimal */
    { PTWM_OK, 7, "\x80\x01\x01\x80\x01\x01\x00" },     /* a column of -127 */
    { BAD, 7, "\x80\x01\x01\x80\x01\x03\x00" },         /* unused bits */
    { BAD, 7, "\x80\x01\x01\x80\x00\x00\x00" },         /* width 0 */
    { BAD, 8, "\x80\x01\x01\x80\x09\x00\x00\x00" },     /* width 9 */
    { PTWM_OK, 7, "\x80\x01\x01\x80\x08\xff\x00" },     /* -128 + 255 */
    { BAD, 7, "\x80\x01\x01\x81\x08\xff\x00" },         /* -127 + 255 */
    { BAD, 7, "\x80\x01\x01\x7f\x01\x01\x00" },         /* 127 + 1 */
    { PTWM_OK, 7, "\x80\x01\x01\x7f\x01\x00\x00" },     /* 127 */
    { BAD, 7, "\x80\x01\x09\x00\x01\x00\x00" },         /* columns cut off (the byte behind is the rest of them) */
    { BAD, 9, "\x80\x01\x81\x80\x40\x00\x01\x00\x00" }, /* 2^20 + 1 columns */
    { BAD, 7, "\x80\x01\x00\x81\x80\x04\x01" },         /* 65537 sets */
    /* one set: classes, then L, v, v ... */
    { PTWM_OK, 10, "\x80\x01\x00\x01\x01\x02\x80\x40\x80\x40" },     /* two halves: v = 8192 */
    { BAD, 10, "\x80\x01\x00\x01\x00\x02\x80\x40\x80\x40" },         /* no class */
    { BAD, 10, "\x80\x01\x00\x01\x09\x02\x80\x40\x80\x40" },         /* nine classes */
    { BAD, 10, "\x80\x01\x00\x01\x02\x02\x80\x40\x80\x40" },         /* second class missing */
    { BAD, 10, "\x80\x01\x00\x01\x01\x01\x80\x80\x01\x00" },         /* one label */
    { BAD, 10, "\x80\x01\x00\x01\x01\x21\x80\x40\x80\x40" },         /* 33 labels */
    { BAD, 10, "\x80\x01\x00\x01\x01\x02\x80\x40\x82\x40" },         /* sum too large */
    { BAD, 10, "\x80\x01\x00\x01\x01\x02\x80\x40\xfe\x3f" },         /* sum too small */
    { BAD, 10, "\x80\x01\x00\x01\x01\x02\x00\x80\x80\x01" },         /* frequencies 0 and 65536 */
    { BAD, 11, "\x80\x01\x00\x01\x01\x03\x00\x80\x40\x80\x40" },     /* frequency 0 */
    { BAD, 11, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\x00" },     /* gap of zero */
    { PTWM_OK, 11, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\x1e" }, /* symbols 0 and 31 */
    { BAD, 11, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\x1f" },     /* symbol 32 */
    { BAD, 11, "\x80\x01\x00\x01\x01\x02\x81\x40\x1f\x80\x40" },     /* symbols 31 and 32 */
    { PTWM_OK, 11, "\x80\x01\x00\x01\x01\x02\x81\x40\x1e\x80\x40" }, /* symbols 30 and 31 */
    /* phases of 1 column, or 9, and second frequencies: v */
    { PTWM_OK, 8, "\x80\x01\x01\x00\x81\x00\x01\x00" },
    { BAD, 8, "\x80\x01\x01\x00\x81\x00\x02\x00" },     /* unused bits */
    { BAD, 6, "\x80\x01\x01\x00\x81\x00" },             /* no phases */
    { BAD, 8, "\x80\x01\x01\x00\x80\x00\x01\x00" },     /* width 0 */
    { BAD, 9, "\x80\x01\x01\x00\x89\x00\x00\x01\x00" }, /* width 9 */
    { BAD, 6, "\x80\x01\x00\x81\x00\x01" },             /* of no column: what follows are sets */
    { PTWM_OK, 10, "\x80\x01\x09\x00\x81\x00\x00\xff\x01\x00" },
    { BAD, 8, "\x80\x01\x09\x00\x81\x00\x00\x00" }, /* cut off */
    { PTWM_OK, 17, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x01\xff\x3f" },
    { BAD, 14, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40" },             /* none */
    { BAD, 15, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x01" },         /* one */
    { BAD, 17, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x01\xfe\x3f" }, /* sum */
    { BAD, 17, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x00\x80\x40" }, /* 0 and 65536 */
    { BAD, 26,
      "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00" },
    { BAD, 19, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\xff\xff\xff\xff\xff\xff\xff\xff\x7f" },
    { BAD, 20, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" },
};

static void malformed_models(void)
{
    struct ptwm_label_model model;
    for (size_t i = 0; i < sizeof(model_cases) / sizeof(model_cases[0]); i++) {
        const struct model_case *c = &model_cases[i];
        enum ptwm_status status = read_model(&model, 5, c->bytes, c->nbytes, NULL);
        if (status != c->status)
            printf("case %u: ", (unsigned)i);
        CHECK_EQ(status, c->status);
        ptwm_label_model_release(&model);
    }
    for (unsigned k = 0; k < 20000; k++) {
        uint8_t noise[64];
        size_t n = random_below(64);
        for (size_t i = 0; i < n; i++)
            noise[i] = (uint8_t)(random_below(2) ? random_below(256) : random_below(4));
        if (n >= 4)
            memcpy(noise, "\x80\x01\x00\x01", k % 3 == 0 ? 4 : k % 3 == 1 ? 2 : 0);
        read_model(&model, 1 + random_below(15), noise, n, NULL);
        ptwm_label_model_release(&model);
    }
    CHECK_EQ(account.live_nbytes, 0);
}

int main(void)
{
    RUN(model_round_trips);
    RUN(malformed_models);
    CHECK_EXIT();
}
