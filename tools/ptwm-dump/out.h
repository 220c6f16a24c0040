/*
 * Text for people, with colours where it goes to a terminal.
 */
#ifndef DUMP_OUT_H
#define DUMP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "printf.h"

struct out {
    FILE *file;
    bool has_colour;
    bool full; /* nothing is shortened */
};

/* Colours if file is a terminal and the environment does not object (NO_COLOR, TERM=dumb). */
struct out out_make(FILE *file, bool full);

enum out_style { OUT_HEADING, OUT_NAME, OUT_GOOD, OUT_BAD, OUT_FAINT };

/* printf in a style. */
DUMP_PRINTF(3, 4)
void out_styled(const struct out *out, enum out_style style, const char *format, ...);

/* A text of the file in quotes, escaped, cut unless full. */
void out_quoted(const struct out *out, enum out_style style, const void *text, size_t nbytes);

/* A horizontal bar of at most width characters, for value in 0 .. most. Returns its length. */
int out_bar(const struct out *out, double value, double most, int width);

/*
 * values[0 .. n) as a plot of at most 64 columns and 8 rows: each column shows the range that its share of the values
 * has.
 */
void out_plot(const struct out *out, const int16_t *values, size_t n);

#endif
