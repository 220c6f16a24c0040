#include "problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "escape.h"

static void add(struct dump_problems *problems, const struct dump_problem *problem)
{
    for (size_t i = 0; i < problems->n_kept; i++) {
        const struct dump_problem *p = &problems->kept[i];
        if (p->status == problem->status && p->offset == problem->offset && p->by_library == problem->by_library &&
            strcmp(p->text, problem->text) == 0)
            return;
    }
    if (problems->n_kept < DUMP_MAX_PROBLEMS)
        problems->kept[problems->n_kept++] = *problem;
    else
        problems->n_more++;
}

void problem_add(struct dump_problems *problems, enum ptwm_status status, uint64_t offset, const char *format, ...)
{
    struct dump_problem problem = { status, offset, false, { 0 } };
    va_list arguments;

    if (problems == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(problem.text, sizeof problem.text, format, arguments);
    va_end(arguments);
    add(problems, &problem);
}

void problem_add_error(struct dump_problems *problems, const char *what, const struct ptwm_error *error)
{
    struct dump_problem problem = { error->status, error->file_offset, true, { 0 } };
    char detail[160], tensor[32] = "";

    escape_text(detail, sizeof detail, error->detail, strlen(error->detail)); /* it may quote the file */
    if (error->tensor != PTWM_NONE)
        snprintf(tensor, sizeof tensor, "tensor %" PRIu64 ": ", error->tensor);
    snprintf(problem.text, sizeof problem.text, "%.20s: %s%s", what, tensor, detail);
    add(problems, &problem);
}
