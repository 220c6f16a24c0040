/*
 * Reading CBOR (RFC 8949) as FORMAT.md, section 3, has it: deterministic encoding, no indefinite lengths.
 */
#ifndef DUMP_CBOR_H
#define DUMP_CBOR_H

#include "scan.h"

enum cbor_major { CBOR_UINT = 0, CBOR_BYTES = 2, CBOR_TEXT = 3, CBOR_ARRAY = 4, CBOR_MAP = 5 };

/* Each reads an item of that kind and names it. Another kind, or a head that is not the shortest, fails the scan. */
uint64_t cbor_uint(struct scan *scan, const char *name);
/* The items of an array or the pairs of a map: never more than there can be in what is left. */
uint64_t cbor_count(struct scan *scan, enum cbor_major major, const char *name);
/* A text or byte string, in place; text is checked to be UTF-8. */
const uint8_t *cbor_string(struct scan *scan, enum cbor_major major, size_t *nbytes, const char *name);
/* The next key of a map with ascending unsigned keys; *previous is PTWM_NONE before the first. */
uint64_t cbor_key(struct scan *scan, uint64_t *previous, const char *name);
/* Any item, that lies depth levels deep. */
void cbor_skip(struct scan *scan, unsigned depth, const char *name);

#endif
