/*
 * The trim codec of low planes (FORMAT.md, section 6.3): drops low bits that are zero in whole units.
 */
#ifndef PTWM_TRIM_H
#define PTWM_TRIM_H

#include <stddef.h>
#include <stdint.h>

#include "ptwm.h"

/* The exact encoded length of a low plane of n >= 1 u16 elements (little-endian bytes) with that unit. */
uint64_t ptwm_trim_nbytes(const uint8_t *plane, size_t n, uint32_t unit);
/* Encodes; dst has room for ptwm_trim_nbytes bytes. */
void ptwm_trim_encode(uint8_t *dst, const uint8_t *plane, size_t n, uint32_t unit);
/* Decodes exactly n elements from exactly src_nbytes untrusted bytes. */
enum ptwm_status ptwm_trim_decode(uint8_t *plane, size_t n, const uint8_t *src, size_t src_nbytes,
                                  struct ptwm_error *error);

#endif
