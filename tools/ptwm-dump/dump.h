/*
 * ptwm-dump: what a .ptwm file holds, for those who debug the format, also if it is damaged.
 *
 *   main.c      the program's entry
 *   dump.c      what is read, and which view of it is shown
 *   args.c      the command line
 *   view.c      the file's bytes
 *   scan.c      reading fields, each with its name; cbor.c: those of CBOR
 *   ends.c      header, footer, and finding a manifest whose footer is lost
 *   manifest.c  segments and tensors
 *   tail.c      a segment's tail: chain.c, model.c, and the chunk table
 *   plane.c     what stored planes begin with
 *   check.c     checksums and padding
 *   library.c   what libptwm says of the file; entropies
 *   problem.c   what is wrong, where
 *   text.c      the file for people; text_segment.c: a segment in detail
 *   report.c    the same as JSON; json.c: writing it
 *   hex.c       its bytes, each field with its name
 *   out.c       colours, quoted names, plots; escape.c: what makes names safe to print
 *
 * The tool reads the file's structure by itself, after FORMAT.md, since the library rightly refuses what is damaged;
 * and it asks the library, through its public header alone, what it makes of the file.
 */
#ifndef DUMP_DUMP_H
#define DUMP_DUMP_H

#include "args.h"
#include "json.h"
#include "library.h"
#include "manifest.h"
#include "out.h"
#include "tail.h"

/* A file and what was read of it. */
struct dump {
    struct dump_args args;
    struct dump_view view;
    struct dump_header header;
    struct dump_footer footer;
    struct dump_manifest manifest;
    struct dump_library library;
    struct dump_problems problems;
    bool *is_shown;          /* for each segment: in detail */
    uint64_t decoded_nbytes; /* so far */
};

/* The whole program, but for who its streams are. Returns the exit status. */
int dump_run(int argc, char **argv, FILE *out, FILE *errors);

/* Reads and checks a segment for showing it in detail. End with tail_release. */
void dump_load_segment(struct dump *dump, uint64_t number, struct dump_tail *tail);

/* The views. */
void text_print(struct dump *dump, FILE *file);
void report_print(struct dump *dump, FILE *file);
/* False if there is no such part; errors has a line about it. */
bool hex_print(struct dump *dump, FILE *file, FILE *errors);

/* What is wrong, for the end of a view. */
void text_print_problems(const struct out *out, const struct dump *dump);
void report_put_problems(struct json *json, const struct dump_problems *problems);

/* "good", "bad", "unknown" */
const char *dump_state_name(enum dump_state state);
const char *dump_plane_state_name(enum dump_plane_state state);
/* A dtype's name, or its number if it is unknown. buffer: for the latter. */
const char *dump_dtype_name(uint64_t dtype, char buffer[32]);
/* "codec 77" for those that are unknown. */
const char *dump_codec_name(unsigned codec, char buffer[32]);

#endif
