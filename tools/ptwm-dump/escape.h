/*
 * Names and other text of a file that may be hostile, made safe to print: what could control a terminal, hide or
 * reorder text, or is no UTF-8, is shown as an escape.
 */
#ifndef DUMP_ESCAPE_H
#define DUMP_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A character as it stands in the text. */
struct escape_character {
    uint32_t code;
    size_t nbytes;   /* of UTF-8, at least 1 */
    bool is_valid;   /* else it is one byte that is no UTF-8 */
    bool is_printed; /* as it is */
};

/* The first character of nbytes >= 1 bytes. */
struct escape_character escape_next(const uint8_t *text, size_t nbytes);

/* The text for people, NUL-terminated, with \xNN and \u{NNNN} for escapes; cut with "..." where it does not fit. */
void escape_text(char *to, size_t capacity, const void *text, size_t nbytes);

#endif
