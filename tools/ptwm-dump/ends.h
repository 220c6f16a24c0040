/*
 * Header and footer (FORMAT.md, section 2), and where the manifest is, also in a file whose footer is lost.
 */
#ifndef DUMP_ENDS_H
#define DUMP_ENDS_H

#include "scan.h"
#include "view.h"

enum { DUMP_HEADER_NBYTES = 16, DUMP_FOOTER_NBYTES = 40 };

struct dump_header {
    bool is_there; /* all of it */
    bool is_foreign;
    bool magic_is_good;
    uint32_t version;
};

struct dump_footer {
    bool is_there;
    uint64_t offset; /* of itself: not at the file's end if there are bytes behind it */
    uint64_t manifest_offset;
    uint64_t manifest_nbytes;
    uint64_t file_nbytes;
    uint32_t manifest_crc;
    uint32_t version;
};

/* Where the manifest is, and how that is known. */
enum dump_found { DUMP_NOT_FOUND, DUMP_BY_FOOTER, DUMP_BY_SEARCH };

struct dump_place {
    enum dump_found found;
    uint64_t offset;
    uint64_t nbytes; /* by search: up to the footer or the file's end at first, then what its map takes */
};

void header_read(const struct dump_view *view, struct dump_header *header, struct dump_problems *problems,
                 const struct scan_sink *sink);
/* Reads the footer at the file's end; if it is not there, looks for one before that. */
void footer_read(const struct dump_view *view, struct dump_footer *footer, struct dump_problems *problems);
/* Names the fields of a footer that is there. */
void footer_scan(const struct dump_view *view, const struct dump_footer *footer, const struct scan_sink *sink);
/* Where the manifest is: where the footer says, or else where a list of segments begins that ends where it begins. */
struct dump_place manifest_find(const struct dump_view *view, const struct dump_footer *footer,
                                struct dump_problems *problems);

#endif
