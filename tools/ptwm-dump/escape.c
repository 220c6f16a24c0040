#include "escape.h"

#include <stdio.h>
#include <string.h>

/* Controls (C0, DEL, C1), line and paragraph separators, marks and overrides of direction, and the byte order mark. */
static bool is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
           (code >= 0xFFF9 && code <= 0xFFFB) || code >= 0xE0000;
}

struct escape_character escape_next(const uint8_t *text, size_t nbytes)
{
    static const uint32_t lowest[4] = { 0, 0x80, 0x800, 0x10000 };
    struct escape_character c = { text[0], 1, text[0] < 0x80, false };
    const unsigned n_more = text[0] < 0xC2 ? 0 : text[0] < 0xE0 ? 1 : text[0] < 0xF0 ? 2 : text[0] < 0xF5 ? 3 : 0;
    uint32_t code = text[0] & (0x3Fu >> n_more);

    if (n_more > 0 && n_more < nbytes) {
        bool is_valid = true;
        for (unsigned i = 1; i <= n_more; i++) {
            is_valid = is_valid && (text[i] & 0xC0) == 0x80;
            code = code << 6 | (text[i] & 0x3F);
        }
        if (is_valid && code >= lowest[n_more] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF)) {
            c.code = code;
            c.nbytes = 1 + n_more;
            c.is_valid = true;
        }
    }
    c.is_printed = c.is_valid && !is_unsafe(c.code) && c.code != '"' && c.code != '\\';
    return c;
}

static size_t escape_character(char piece[16], const uint8_t *text, const struct escape_character *c)
{
    if (c->is_printed) {
        memcpy(piece, text, c->nbytes);
        return c->nbytes;
    }
    if (!c->is_valid)
        return (size_t)snprintf(piece, 16, "\\x%02x", (unsigned)c->code);
    if (c->code == '"' || c->code == '\\')
        return (size_t)snprintf(piece, 16, "\\%c", (char)c->code);
    return (size_t)snprintf(piece, 16, "\\u{%04lx}", (unsigned long)c->code);
}

void escape_text(char *to, size_t capacity, const void *text, size_t nbytes)
{
    const uint8_t *next = text;
    size_t used = 0;

    while (nbytes > 0) {
        const struct escape_character c = escape_next(next, nbytes);
        char piece[16];
        const size_t n = escape_character(piece, next, &c);

        if (used + n + 4 > capacity) { /* room for "..." is always left */
            memcpy(to + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(to + used, piece, n);
        used += n;
        next += c.nbytes;
        nbytes -= c.nbytes;
    }
    to[used] = 0;
}
