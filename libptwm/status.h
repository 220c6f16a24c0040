/*
 * Filling in struct ptwm_error. A function that fails says so with
 *     return ptwm_fail(error, PTWM_ERR_PLANE, "class %u of %u", i, n);
 * and its callers, which know more, add the place on the way up with ptwm_fail_at.
 */
#ifndef PTWM_STATUS_H
#define PTWM_STATUS_H

#include "ptwm.h"

/* Has the compiler check the arguments from first on against the format; both are numbers of arguments. */
#if defined(__GNUC__) && defined(_WIN32) && !defined(__clang__)
#define PTWM_PRINTF(string, first) __attribute__((format(gnu_printf, string, first))) /* C99's, not Microsoft's */
#elif defined(__GNUC__)
#define PTWM_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define PTWM_PRINTF(string, first)
#endif

/* Fills error (may be NULL) with status and a printf-formatted detail; returns status. */
PTWM_PRINTF(3, 4)
enum ptwm_status ptwm_fail(struct ptwm_error *error, enum ptwm_status status, const char *format, ...);

/* PTWM_ERR_IO with an errno value and what was being done ("read"). */
enum ptwm_status ptwm_fail_os(struct ptwm_error *error, int os_error, const char *what);

/*
 * Sets the tensor and file offset of an error (may be NULL), each only if it has none yet. Pass PTWM_NONE to leave one
 * out.
 */
void ptwm_fail_at(struct ptwm_error *error, uint64_t tensor, uint64_t file_offset);

#endif
