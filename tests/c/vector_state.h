/*
 * Whether the upper halves of x86-64's vector registers are clean, as code without AVX needs them to be fast: compilers are to
 * clean them wherever a function with AVX ends.
 */
#ifndef VECTOR_STATE_H
#define VECTOR_STATE_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>

static inline bool vector_state_bit(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1)); /* the parts of the state that are in use */
    return low >> 2 & 1;
}

/* Whether this processor tells; cleans the registers if so. */
static inline bool vector_state_is_known(void)
{
    unsigned a, b, c, d;
    bool clean, dirty;

    if (!__builtin_cpu_supports("avx2") || !__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a >> 2 & 1))
        return false;
    __asm__ volatile("vzeroupper" : : : "memory");
    clean = !vector_state_bit();
    __asm__ volatile("vpcmpeqb %%ymm3, %%ymm3, %%ymm3" : : : "xmm3");
    dirty = vector_state_bit();
    __asm__ volatile("vzeroupper" : : : "memory");
    return clean && dirty && !vector_state_bit();
}

/* To be asked only where it is known. */
static inline bool vector_state_is_clean(void)
{
    return !vector_state_bit();
}

#else

static inline bool vector_state_is_known(void)
{
    return false;
}

static inline bool vector_state_is_clean(void)
{
    return true;
}

#endif

#endif
