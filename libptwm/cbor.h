/*
 * The subset of CBOR (RFC 8949) that manifests use: unsigned integers, byte and text strings, arrays and maps, in
 * deterministic encoding. The reader can also skip any other well-formed item.
 */
#ifndef PTWM_CBOR_H
#define PTWM_CBOR_H

#include <stdbool.h>

#include "bits.h"
#include "memory.h"

enum ptwm_cbor_type { PTWM_CBOR_UINT = 0, PTWM_CBOR_BYTES = 2, PTWM_CBOR_TEXT = 3, PTWM_CBOR_ARRAY = 4, PTWM_CBOR_MAP = 5 };

enum { PTWM_CBOR_MAX_DEPTH = 8 };

/*
 * Reading is through a cursor, whose failed flag they set for whatever is not as expected: another type, a head that is
 * not the shortest, a length beyond the end.
 */
uint64_t ptwm_cbor_read_uint(struct ptwm_cursor *c);
/* The bytes of a string of that type (bytes or text; text is checked to be UTF-8), in place. */
const uint8_t *ptwm_cbor_read_string(struct ptwm_cursor *c, enum ptwm_cbor_type type, size_t *nbytes);
/* The number of items of an array, or of pairs of a map; never more than the bytes that are left. */
uint64_t ptwm_cbor_read_count(struct ptwm_cursor *c, enum ptwm_cbor_type type);
/*
 * The key of a map's pair number pair, counted from 0, where keys are unsigned: it must be above *previous, the one before
 * it; updates *previous.
 */
uint64_t ptwm_cbor_read_key(struct ptwm_cursor *c, uint64_t pair, uint64_t *previous);
/* Skips one item, at most PTWM_CBOR_MAX_DEPTH deep including the depth levels that it is in already. */
void ptwm_cbor_skip(struct ptwm_cursor *c, unsigned depth);

/* Writing appends to bytes; PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_cbor_write_head(struct ptwm_bytes *bytes, enum ptwm_cbor_type type, uint64_t value);
enum ptwm_status ptwm_cbor_write_string(struct ptwm_bytes *bytes, enum ptwm_cbor_type type, const void *data,
                                        size_t nbytes);

/* Whether data is valid UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF. */
bool ptwm_is_utf8(const void *data, size_t nbytes);

#endif
