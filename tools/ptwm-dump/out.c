#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif

#include "out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#include <unistd.h>
#endif

#include "escape.h"
#if defined(_WIN32)
#include "win32.h"
#endif

static bool is_terminal(FILE *file)
{
#if defined(_WIN32)
    return win32_has_colour(file);
#else
    const char *term = getenv("TERM");
    const int descriptor = fileno(file);

    return descriptor >= 0 && isatty(descriptor) && term != NULL && strcmp(term, "dumb") != 0;
#endif
}

static bool wants_colour(FILE *file)
{
    const char *no_colour = getenv("NO_COLOR");

    return (no_colour == NULL || no_colour[0] == 0) && is_terminal(file);
}

struct out out_make(FILE *file, bool full)
{
    const struct out out = { file, wants_colour(file), full };
    return out;
}

static const char *const codes[] = { "1", "36", "32", "1;31", "2" };

void out_styled(const struct out *out, enum out_style style, const char *format, ...)
{
    va_list arguments;

    if (out->has_colour)
        fprintf(out->file, "\033[%sm", codes[style]);
    va_start(arguments, format);
    vfprintf(out->file, format, arguments);
    va_end(arguments);
    if (out->has_colour)
        fputs("\033[0m", out->file);
}

void out_quoted(const struct out *out, enum out_style style, const void *text, size_t nbytes)
{
    char cut[256], *whole = NULL;
    size_t capacity = sizeof cut;

    if (out->full && nbytes < SIZE_MAX / 16) {
        whole = malloc(10 * nbytes + 16); /* the longest escape, of one byte or more, has 10 characters */
        capacity = 10 * nbytes + 16;
    }
    if (whole == NULL)
        capacity = sizeof cut;
    escape_text(whole != NULL ? whole : cut, capacity, text, nbytes);
    out_styled(out, style, "\"%s\"", whole != NULL ? whole : cut);
    free(whole);
}

int out_bar(const struct out *out, double value, double most, int width)
{
    const int n = most > 0 ? (int)(value / most * width + 0.5) : 0;

    for (int i = 0; i < n; i++)
        fputc('#', out->file);
    return n;
}

enum { PLOT_COLUMNS = 64, PLOT_ROWS = 8 };

void out_plot(const struct out *out, const int16_t *values, size_t n)
{
    int low[PLOT_COLUMNS], high[PLOT_COLUMNS], least = INT16_MAX, most = INT16_MIN;
    const size_t n_columns = n < PLOT_COLUMNS ? n : PLOT_COLUMNS;
    int rows, step;

    for (size_t c = 0; c < n_columns; c++) {
        low[c] = INT16_MAX;
        high[c] = INT16_MIN;
        for (size_t i = c * n / n_columns; i < (c + 1) * n / n_columns; i++) {
            low[c] = values[i] < low[c] ? values[i] : low[c];
            high[c] = values[i] > high[c] ? values[i] : high[c];
        }
        least = low[c] < least ? low[c] : least;
        most = high[c] > most ? high[c] : most;
    }
    step = (most - least) / PLOT_ROWS + 1; /* values a row */
    rows = (most - least) / step + 1;
    for (int r = rows - 1; r >= 0; r--) {
        const int bottom = least + r * step, top = bottom + step - 1;
        fprintf(out->file, "    %5d |", bottom);
        for (size_t c = 0; c < n_columns; c++)
            fputc(low[c] <= top && high[c] >= bottom ? '#' : ' ', out->file);
        fputs("|\n", out->file);
    }
}
