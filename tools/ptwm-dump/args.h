/*
 * The command line.
 */
#ifndef DUMP_ARGS_H
#define DUMP_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dump_args {
    const char *path;
    char **tensors; /* names, or # and a number */
    int n_tensors;
    bool all;   /* every segment in detail */
    bool check; /* every checksum, padding, decoding, hashes */
    bool entropy;
    bool json;
    bool full;           /* nothing is shortened */
    const char *part;    /* to be shown in hexadecimal, or NULL */
    uint64_t segment;    /* to be shown in detail, or PTWM_NONE */
    uint64_t max_nbytes; /* to decode; 0: the default */
    bool help, version;
};

extern const char args_usage[];

/* False if they make no sense; errors then has a line that says why. argv may be reordered: it is pointed into. */
bool args_parse(int argc, char **argv, struct dump_args *args, FILE *errors);

/* A decimal number that fits 64 bits and nothing else. */
bool args_number(const char *text, uint64_t *value);

#endif
