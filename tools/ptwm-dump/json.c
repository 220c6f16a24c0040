#include "json.h"

#include <inttypes.h>
#include <string.h>

#include "escape.h"
#include "ptwm.h"

struct json json_make(FILE *file)
{
    const struct json json = { file, 0, true, false };
    return json;
}

/* What comes before a value: a comma, a new line, the key. */
static void begin(struct json *json, const char *key)
{
    if (json->is_line) {
        fputs(json->is_first ? "" : ", ", json->file);
    } else if (json->depth > 0) {
        fputs(json->is_first ? "\n" : ",\n", json->file);
        for (int i = 0; i < json->depth; i++)
            fputs("  ", json->file);
    }
    if (key != NULL)
        fprintf(json->file, "\"%s\": ", key);
    json->is_first = false;
}

void json_open(struct json *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->file);
    json->depth++;
    json->is_first = true;
}

void json_open_line(struct json *json, const char *key)
{
    json_open(json, key, '[');
    json->is_line = true;
}

void json_close(struct json *json, char bracket)
{
    json->depth--;
    if (!json->is_first && !json->is_line) {
        fputc('\n', json->file);
        for (int i = 0; i < json->depth; i++)
            fputs("  ", json->file);
    }
    fputc(bracket, json->file);
    json->is_first = json->is_line = false;
    if (json->depth == 0)
        fputc('\n', json->file);
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->file, "%" PRIu64, value);
}

void json_int(struct json *json, const char *key, int64_t value)
{
    begin(json, key);
    fprintf(json->file, "%" PRId64, value);
}

void json_double(struct json *json, const char *key, double value)
{
    begin(json, key);
    fprintf(json->file, "%.1f", value);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->file);
}

void json_null(struct json *json, const char *key)
{
    begin(json, key);
    fputs("null", json->file);
}

void json_maybe(struct json *json, const char *key, uint64_t value)
{
    if (value == PTWM_NONE)
        json_null(json, key);
    else
        json_uint(json, key, value);
}

static void put_character(FILE *file, const uint8_t *text, const struct escape_character *c)
{
    const uint32_t code = c->is_valid ? c->code : 0xFFFD;

    if (c->is_printed && code < 0x80)
        fputc(text[0], file);
    else if (code == '"' || code == '\\')
        fprintf(file, "\\%c", (char)code);
    else if (code < 0x10000)
        fprintf(file, "\\u%04x", (unsigned)code);
    else
        fprintf(file, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((code - 0x10000) >> 10)),
                (unsigned)(0xDC00 + ((code - 0x10000) & 0x3FF)));
}

void json_text(struct json *json, const char *key, const void *text, size_t nbytes)
{
    const uint8_t *next = text;

    begin(json, key);
    fputc('"', json->file);
    while (nbytes > 0) {
        const struct escape_character c = escape_next(next, nbytes);
        put_character(json->file, next, &c);
        next += c.nbytes;
        nbytes -= c.nbytes;
    }
    fputc('"', json->file);
}

void json_string(struct json *json, const char *key, const char *text)
{
    json_text(json, key, text, strlen(text));
}

void json_bytes(struct json *json, const char *key, const uint8_t *bytes, size_t nbytes)
{
    begin(json, key);
    fputc('"', json->file);
    for (size_t i = 0; i < nbytes; i++)
        fprintf(json->file, "%02x", bytes[i]);
    fputc('"', json->file);
}

void json_hex(struct json *json, const char *key, uint64_t value, int n_digits)
{
    begin(json, key);
    fprintf(json->file, "\"%0*" PRIx64 "\"", n_digits, value);
}
