/*
 * Writing JSON (RFC 8259). Everything is ASCII: whatever a name holds, no terminal is controlled by it.
 */
#ifndef DUMP_JSON_H
#define DUMP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *file;
    int depth;
    bool is_first; /* in the object or array at hand */
    bool is_line;  /* an array on one line, of numbers or strings */
};

struct json json_make(FILE *file);

/* key: of an object's member, a C string without special characters; NULL in arrays and for the outermost value. */
void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);                 /* '}' or ']' */
/* An array on one line. */
void json_open_line(struct json *json, const char *key);
void json_uint(struct json *json, const char *key, uint64_t value);
void json_int(struct json *json, const char *key, int64_t value);
void json_double(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/* PTWM_NONE is null. */
void json_maybe(struct json *json, const char *key, uint64_t value);
/* What is no UTF-8 becomes U+FFFD. */
void json_text(struct json *json, const char *key, const void *text, size_t nbytes);
void json_string(struct json *json, const char *key, const char *text);
/* A string of hexadecimal digits: bytes in their order; numbers with n_digits digits. */
void json_bytes(struct json *json, const char *key, const uint8_t *bytes, size_t nbytes);
void json_hex(struct json *json, const char *key, uint64_t value, int n_digits);

#endif
