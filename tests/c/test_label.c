/*
 * Label rANS: alias tables, and coding against a slow decoder written from FORMAT.md's text. Run under the address sanitizer:
 * buffers have exactly the size that was promised.
 */
#include "label_cases.h"

/* ------------------------------------------------------------------------------------------------ alias tables */

static void check_alias(const struct ptwm_label_table *table)
{
    static uint8_t seen[65536];
    struct ptwm_alias_table alias;
    struct slow_class slow;
    uint32_t first[33] = { 0 };
    bool is_unique = true, is_in_range = true;
    for (uint32_t i = 0; i < 32; i++) {
        slow.F[i] = table->frequency[i];
        first[i + 1] = first[i] + table->frequency[i];
    }
    CHECK_EQ(first[32], 65536);
    slow_alias(slow.F, slow.ali, slow.div, slow.adj);
    ptwm_alias_build(&alias, table->frequency);
    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < 32; i++) {
        CHECK_EQ(alias.div[i], slow.div[i]);
        CHECK_EQ(alias.ali[i], slow.ali[i]);
        CHECK_EQ(alias.adj[i], slow.adj[i]);
        CHECK_EQ(alias.frequency[i], slow.F[i]);
    }
    for (uint32_t S = 0; S < 65536; S++) {
        uint32_t b = S % 32, off = S / 32, label = b, rank = off;
        if (S >= alias.div[b]) {
            label = alias.ali[b];
            rank = (off + alias.adj[b]) % 65536;
        }
        is_in_range = is_in_range && label < 32 && rank < alias.frequency[label];
        if (!is_in_range)
            break;
        is_unique = is_unique && seen[first[label] + rank] == 0;
        seen[first[label] + rank] = 1;
    }
    CHECK(is_in_range);
    CHECK(is_unique);
}

static void alias_tables(void)
{
    struct ptwm_label_table table;
    for (unsigned k = 0; k < 400; k++) {
        random_table(&table, 1 + k % 15);
        check_alias(&table);
    }
    memset(&table, 0, sizeof(table));
    table.n_labels = 32;
    for (unsigned i = 0; i < 32; i++) {
        table.symbol[i] = (uint16_t)i;
        table.frequency[i] = 2048;
    }
    check_alias(&table);
    for (unsigned i = 0; i < 32; i++)
        table.frequency[i] = 8;
    table.frequency[17] = 65536 - 31 * 8;
    check_alias(&table);
    memset(&table, 0, sizeof(table));
    table.n_labels = 2;
    table.symbol[1] = 1;
    for (unsigned f = 8; f < 65536; f += 8 * 37) {
        table.frequency[0] = (uint16_t)f;
        table.frequency[1] = (uint16_t)(65536 - f);
        check_alias(&table);
    }
}

/* ------------------------------------------------------------------------------------------------ round trips */

static void random_round_trip(unsigned bits, unsigned width, uint32_t n_classes, uint32_t unit, size_t n,
                              uint32_t exceptions)
{
    size_t n_units = (n + unit - 1) / unit;
    struct ptwm_label_model model;
    struct ptwm_label_set set;
    uint16_t *symbols = exactly(2 * n);
    uint8_t *classes = exactly(n_units);
    begin_model(&model, bits, width, unit);
    if (n % 2)
        random_phases(&model, 1 + random_below(400));
    for (unsigned s = 0; s < 1 + n % 3; s++) {
        random_set(&set, n_classes, bits);
        if (model.phase != NULL)
            random_second(&set);
        CHECK_EQ(ptwm_label_model_add_set(&model, &set), PTWM_OK);
    }
    for (size_t u = 0; u < n_units; u++)
        classes[u] = (uint8_t)random_below(n_classes);
    random_symbols(symbols, n, &set, classes, unit, bits, exceptions);
    round_trip(&model, model.n_sets - 1, classes, symbols, n);
    ptwm_label_model_release(&model);
    free(symbols);
    free(classes);
}

static void small_round_trips(void)
{
    static const unsigned all_bits[] = { 1, 4, 5, 8, 9, 15 };
    for (unsigned k = 0; k < 6; k++)
        for (size_t n = 1; n <= 600; n++)
            random_round_trip(all_bits[k], all_bits[k] <= 4 ? 0 : all_bits[k] <= 7 ? 1 : 2, 1 + (uint32_t)n % 8, 128, n,
                              (uint32_t)n % 5 * 10);
    CHECK_EQ(account.live_nbytes, 0);
}

static void large_round_trips(void)
{
    for (unsigned bits = 1; bits <= 15; bits++)
        for (unsigned k = 0; k < 12; k++) {
            unsigned width = bits > 7 ? 2 : k % 3;
            size_t n = 1 + random_below(k == 11 && bits % 5 == 0 ? 1000000 : k % 2 ? 3000 : 40000);
            uint32_t n_classes = 1 + random_below(8);
            uint32_t unit = k % 3 == 0 ? 1 + random_below(k % 2 ? 40 : 1000)
                                       : 128 * (1 + random_below(k % 4 == 0 ? 8192 : 12));
            random_round_trip(bits, width, n_classes, unit, n, k % 3 == 0 ? 0 : 1 + random_below(1000));
        }
    /* Around the sizes where the number of lanes changes. */
    for (size_t n = 1020; n < 1030; n++)
        random_round_trip(5, 1, 2, 256, n, 100);
    for (size_t n = 16380; n < 16520; n++)
        random_round_trip(5, 1, 2, 256, n, 100);
    CHECK_EQ(account.live_nbytes, 0);
}

/* Everything is an exception, and every element takes a word nearly always. */
static void worst_cases(void)
{
    struct ptwm_label_model model;
    struct ptwm_label_set set;
    static uint8_t classes[2000];
    for (unsigned bits = 2; bits <= 15; bits++)
        for (size_t n = 1; n < 40000; n = n * 3 / 2 + 1) {
            uint16_t *symbols = exactly(2 * n);
            begin_model(&model, bits, 2, 128);
            memset(&set, 0, sizeof(set));
            set.n_classes = 1;
            set.classes[0].n_labels = 2;
            set.classes[0].symbol[1] = 1;
            set.classes[0].frequency[0] = 8;
            set.classes[0].frequency[1] = 65528;
            CHECK_EQ(ptwm_label_model_add_set(&model, &set), PTWM_OK);
            for (size_t i = 0; i < n; i++)
                symbols[i] = (uint16_t)((1u << bits) - 1);
            round_trip(&model, 0, classes, symbols, n);
            memset(symbols, 0, 2 * n);
            round_trip(&model, 0, classes, symbols, n);
            ptwm_label_model_release(&model);
            free(symbols);
        }
}

int main(void)
{
    RUN(alias_tables);
    RUN(small_round_trips);
    RUN(large_round_trips);
    RUN(worst_cases);
    CHECK_EXIT();
}
