/*
 * Whether a text is JSON (RFC 8259), in ASCII, with nothing behind it; and the numbers of its members, in the order of
 * the text.
 */
#ifndef JSON_CHECK_H
#define JSON_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *json_check_value(const char *p, int depth);

static const char *json_check_space(const char *p)
{
    return p == NULL ? NULL : p + strspn(p, " \t\r\n");
}

static const char *json_check_string(const char *p)
{
    if (*p++ != '"')
        return NULL;
    for (; *p != '"'; p++) {
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7E)
            return NULL;
        if (*p != '\\')
            continue;
        p++;
        if (*p == 'u') {
            if (strspn(p + 1, "0123456789abcdefABCDEF") < 4)
                return NULL;
            p += 4;
        } else if (*p == 0 || strchr("\"\\/bfnrt", *p) == NULL) {
            return NULL;
        }
    }
    return p + 1;
}

static const char *json_check_number(const char *p)
{
    size_t n;

    p += *p == '-';
    n = strspn(p, "0123456789");
    if (n == 0 || (n > 1 && *p == '0'))
        return NULL;
    p += n;
    if (*p != '.')
        return p;
    n = strspn(p + 1, "0123456789");
    return n > 0 ? p + 1 + n : NULL;
}

/* The items of an array or the members of an object, behind the opening bracket. */
static const char *json_check_items(const char *p, char close, int depth)
{
    p = json_check_space(p);
    if (*p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            p = json_check_space(json_check_string(p));
            if (p == NULL || *p != ':')
                return NULL;
            p = json_check_space(p + 1);
        }
        p = json_check_space(json_check_value(p, depth));
        if (p == NULL || (*p != ',' && *p != close))
            return NULL;
        if (*p == close)
            return p + 1;
        p = json_check_space(p + 1);
    }
}

static const char *json_check_value(const char *p, int depth)
{
    static const char *const words[] = { "true", "false", "null" };

    if (depth > 32)
        return NULL;
    if (*p == '{' || *p == '[')
        return json_check_items(p + 1, *p == '{' ? '}' : ']', depth + 1);
    if (*p == '"')
        return json_check_string(p);
    for (int i = 0; i < 3; i++)
        if (strncmp(p, words[i], strlen(words[i])) == 0)
            return p + strlen(words[i]);
    return json_check_number(p);
}

static bool json_is_valid(const char *text)
{
    const char *end = json_check_space(json_check_value(json_check_space(text), 0));
    return end != NULL && *end == 0;
}

/* The next member with that key and a number, from *text on, which moves behind it; false if there is none. */
static bool json_next_number(const char **text, const char *key, uint64_t *value)
{
    char member[64];
    const char *found;

    snprintf(member, sizeof member, "\"%s\": ", key);
    found = strstr(*text, member);
    if (found == NULL)
        return false;
    *text = found + strlen(member);
    *value = strtoull(*text, NULL, 10);
    return true;
}

#endif
