/*
 * The packing of rest planes (FORMAT.md, section 5): r bits an element, in blocks of 512 laid out for vector registers.
 */
#ifndef PTWM_REST_H
#define PTWM_REST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of a rest plane of n elements of r bits, 0 <= r <= 15. */
uint64_t ptwm_rest_nbytes(uint64_t n, unsigned r);
/* Packs n rests of r bits (0 <= r <= 15) into packed, which has room for ptwm_rest_nbytes(n, r) bytes. */
void ptwm_rest_pack(uint8_t *packed, const uint16_t *rest, size_t n, unsigned r);
/* The inverse; false if unused bits are not zero. */
bool ptwm_rest_unpack(uint16_t *rest, const uint8_t *packed, size_t n, unsigned r);

#endif
