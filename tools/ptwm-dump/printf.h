/*
 * Has the compiler check the arguments of functions like printf: those from first on against the format, string; both
 * are numbers of arguments.
 */
#ifndef DUMP_PRINTF_H
#define DUMP_PRINTF_H

#if defined(__GNUC__) && defined(_WIN32) && !defined(__clang__)
#define DUMP_PRINTF(string, first) __attribute__((format(gnu_printf, string, first))) /* C99's, not Microsoft's */
#elif defined(__GNUC__)
#define DUMP_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define DUMP_PRINTF(string, first)
#endif

#endif
