/*
 * The steps of chains on whole bytes: splitting elements into planes of bytes and back, and delta (FORMAT.md, section
 * 5).
 */
#ifndef PTWM_BYTE_PLANES_H
#define PTWM_BYTE_PLANES_H

#include <stddef.h>
#include <stdint.h>

/* Byte b of each of n elements of width bytes goes to planes[b]. Nothing overlaps. */
void ptwm_bytes_split(uint8_t *const *planes, const uint8_t *from, size_t n, unsigned width);
void ptwm_bytes_merge(uint8_t *to, const uint8_t *const *planes, size_t n, unsigned width);

/* Elements of width 1, 2, 4 or 8 bytes, nbytes in all: each minus the one before it. to and from may be the same. */
void ptwm_delta_forward(uint8_t *to, const uint8_t *from, size_t nbytes, unsigned width);
/* The inverse, in place. */
void ptwm_delta_backward(uint8_t *bytes, size_t nbytes, unsigned width);

#endif
