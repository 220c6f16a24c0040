/*
 * Logarithms in fixed point. Costs decide what the encoder writes, so they must be the same on every machine: no libm,
 * no floating point.
 */
#ifndef PTWM_LOG2_FIXED_H
#define PTWM_LOG2_FIXED_H

#include <stdint.h>

#define PTWM_LOG2_ONE 65536u /* log2(2) */

/* log2(x) in units of 1 / 65536, for x >= 1; log2_fixed(0) is 0. Off by at most 2 units. */
uint32_t ptwm_log2_fixed(uint64_t x);

/*
 * The order-0 cost of a histogram in units of 1 / 65536 bit: sum of h log2(n / h), n the sum of h. n < 2^43 / bins.
 */
uint64_t ptwm_entropy_fixed(const uint32_t *histogram, uint32_t n_bins);

#endif
