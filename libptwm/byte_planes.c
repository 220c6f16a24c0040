/*
 * Planes of bytes and delta: the plain versions and the choice among versions. A version for vectors does what it can in
 * whole vectors and says how many elements that were; the plain one does the rest.
 */
#include "byte_planes.h"

#include "bits.h"
#include "cpu_features.h"

#if defined(PTWM_X86)
#include "x86/byte_planes_impl.h"
#elif defined(PTWM_ARM)
#include "arm/byte_planes_impl.h"
#endif

/* ----------------------------------------------------------------------------------------------- byte planes */

/* From element number first on. */
static void split_c99(uint8_t *const *planes, const uint8_t *from, size_t first, size_t n, unsigned width)
{
    for (unsigned b = 0; b < width; b++) {
        uint8_t *plane = planes[b] + first;

        for (size_t i = 0; i < n - first; i++)
            plane[i] = from[(first + i) * width + b];
    }
}

static void merge_c99(uint8_t *to, const uint8_t *const *planes, size_t first, size_t n, unsigned width)
{
    for (unsigned b = 0; b < width; b++) {
        const uint8_t *plane = planes[b];
        size_t i = first;

        /* A loop of one byte takes one cycle or two, as its place in memory happens to be. */
        for (; n - i >= 4; i += 4) {
            uint8_t *p = to + i * width + b;

            p[0] = plane[i];
            p[width] = plane[i + 1];
            p[2 * width] = plane[i + 2];
            p[3 * width] = plane[i + 3];
        }
        for (; i < n; i++)
            to[i * width + b] = plane[i];
    }
}

void ptwm_bytes_split(uint8_t *const *planes, const uint8_t *from, size_t n, unsigned width)
{
    size_t done = 0;

    switch (ptwm_cpu_level()) {
#if defined(PTWM_X86)
    case PTWM_CPU_AVX512:
    case PTWM_CPU_AVX2:
    case PTWM_CPU_SSE42: done = split_sse42(planes, from, n, width); break;
#elif defined(PTWM_ARM)
    case PTWM_CPU_NEON: done = split_neon(planes, from, n, width); break;
#endif
    default: break;
    }
    split_c99(planes, from, done, n, width);
}

void ptwm_bytes_merge(uint8_t *to, const uint8_t *const *planes, size_t n, unsigned width)
{
    size_t done = 0;

    switch (ptwm_cpu_level()) {
#if defined(PTWM_X86)
    case PTWM_CPU_AVX512:
    case PTWM_CPU_AVX2:
    case PTWM_CPU_SSE42: done = merge_sse42(to, planes, n, width); break;
#elif defined(PTWM_ARM)
    case PTWM_CPU_NEON: done = merge_neon(to, planes, n, width); break;
#endif
    default: break;
    }
    merge_c99(to, planes, done, n, width);
}

/* ------------------------------------------------------------------------------------------------------ delta */

/* The first n elements, from the last to the first, so that to and from may be the same. */
#define FORWARD(bits, load, store)                                                                                \
    static void forward_##bits(uint8_t *to, const uint8_t *from, size_t n)                                        \
    {                                                                                                             \
        for (size_t i = n; i-- > 1;)                                                                              \
            store(to + i * (bits / 8), (uint##bits##_t)(load(from + i * (bits / 8)) -                             \
                                                        load(from + (i - 1) * (bits / 8))));                      \
        if (n > 0)                                                                                                \
            store(to, load(from));                                                                                \
    }

/* Elements from first on: those before it are done. */
#define BACKWARD(bits, load, store)                                                                               \
    static void backward_##bits(uint8_t *bytes, size_t first, size_t n)                                           \
    {                                                                                                             \
        uint##bits##_t sum = (uint##bits##_t)(first > 0 ? load(bytes + (first - 1) * (bits / 8)) : 0);            \
                                                                                                                  \
        for (size_t i = first; i < n; i++) {                                                                      \
            sum = (uint##bits##_t)(sum + load(bytes + i * (bits / 8)));                                           \
            store(bytes + i * (bits / 8), sum);                                                                   \
        }                                                                                                         \
    }

static inline uint8_t load8(const uint8_t *p)
{
    return *p;
}

static inline void store8(uint8_t *p, uint8_t v)
{
    *p = v;
}

FORWARD(8, load8, store8)
FORWARD(16, ptwm_load16, ptwm_store16)
FORWARD(32, ptwm_load32, ptwm_store32)
FORWARD(64, ptwm_load64, ptwm_store64)
BACKWARD(8, load8, store8)
BACKWARD(16, ptwm_load16, ptwm_store16)
BACKWARD(32, ptwm_load32, ptwm_store32)
BACKWARD(64, ptwm_load64, ptwm_store64)
#undef FORWARD
#undef BACKWARD

void ptwm_delta_forward(uint8_t *to, const uint8_t *from, size_t nbytes, unsigned width)
{
    size_t left = nbytes; /* at the beginning */

#if defined(PTWM_X86)
    if (ptwm_cpu_level() >= PTWM_CPU_SSE42)
        left = forward_sse42(to, from, nbytes, width);
#endif
    switch (width) {
    case 1: forward_8(to, from, left); break;
    case 2: forward_16(to, from, left / 2); break;
    case 4: forward_32(to, from, left / 4); break;
    default: forward_64(to, from, left / 8); break;
    }
}

void ptwm_delta_backward(uint8_t *bytes, size_t nbytes, unsigned width)
{
    size_t done = 0;

#if defined(PTWM_X86)
    if (ptwm_cpu_level() >= PTWM_CPU_SSE42)
        done = backward_sse42(bytes, nbytes, width);
#endif
    switch (width) {
    case 1: backward_8(bytes, done, nbytes); break;
    case 2: backward_16(bytes, done / 2, nbytes / 2); break;
    case 4: backward_32(bytes, done / 4, nbytes / 4); break;
    default: backward_64(bytes, done / 8, nbytes / 8); break;
    }
}
