/*
 * What is wrong with the file, and where: found by the tool's own reading of it, and by the library's.
 */
#ifndef DUMP_PROBLEM_H
#define DUMP_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "printf.h"
#include "ptwm.h"

struct dump_problem {
    enum ptwm_status status; /* the kind of failure, as the library would call it */
    uint64_t offset;         /* in the file, or PTWM_NONE */
    bool by_library;
    char text[200];
};

/* A damaged file can have as many as it has bytes; the first ones are kept, all are counted. */
enum { DUMP_MAX_PROBLEMS = 64 };

struct dump_problems {
    size_t n_kept;
    uint64_t n_more;
    struct dump_problem kept[DUMP_MAX_PROBLEMS];
};

/* Adds a problem, unless the same is there already: parts may be read more than once. problems may be NULL. */
DUMP_PRINTF(4, 5)
void problem_add(struct dump_problems *problems, enum ptwm_status status, uint64_t offset, const char *format, ...);

/* Adds what the library says; what: what it was doing. */
void problem_add_error(struct dump_problems *problems, const char *what, const struct ptwm_error *error);

static inline bool problem_is_any(const struct dump_problems *problems)
{
    return problems->n_kept > 0;
}

#endif
