/*
 * Writing .ptwm files by hand, right and wrong ones: bytes, CBOR, tails, label rANS with any number of lanes, and files
 * around them. Every field is what the caller says, whether or not it makes sense; only checksums are made right.
 */
#ifndef FORGE_H
#define FORGE_H

#include "bits.h"
#include "cbor.h"
#include "label.h"
#include "memory.h"

/* Bytes that grow; programs that run out of memory end. forge_free releases them. */
typedef struct ptwm_bytes forge;
forge forge_new(void);
void forge_free(forge *f);
void forge_put(forge *f, const void *data, size_t nbytes);
void forge_u8(forge *f, unsigned value);
void forge_u16(forge *f, unsigned value);
void forge_u32(forge *f, uint32_t value);
void forge_varint(forge *f, uint64_t value);
void forge_zeros(forge *f, size_t n);

/* CBOR. */
void forge_head(forge *f, enum ptwm_cbor_type type, uint64_t value);
void forge_uint(forge *f, uint64_t value);
void forge_text(forge *f, const char *text); /* NUL-terminated, UTF-8 or not */
/* The beginning of a manifest: map of n_fields, and its segments, n of them with four numbers each. */
void forge_manifest(forge *f, uint64_t n_fields, size_t n_segments, const uint64_t (*segments)[4]);

/* A file: header, body (segments), manifest, footer. */
void forge_file(forge *f, const forge *body, const forge *manifest);

/* The CRC of a tail, over all that f has from begin on. */
void forge_seal(forge *f, size_t begin);

/* A file with one segment, chunks and tail (without CRC) as they are, and one tensor of bytes "x" that is all of it. */
void forge_one(forge *f, const forge *chunks, const forge *tail, uint64_t raw_nbytes, unsigned flags);

/*
 * A plane coded by label rANS as FORMAT.md says, by the book and slowly, with 4, 32 or 128 lanes whatever n is. symbols are
 * such as their classes' tables have, but for those that become exceptions. final: what the states end with, beyond 65536.
 */
void forge_labels(forge *f, const struct ptwm_label_model *model, uint32_t set, const uint8_t *classes,
                  uint64_t first_element, const uint16_t *symbols, size_t n, unsigned n_lanes, const uint16_t *final);

#endif
