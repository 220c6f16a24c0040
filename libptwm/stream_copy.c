#include "stream_copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

enum {
    LINE = 64,
    AHEAD = 4096 /* bytes that are fetched before they are copied: a page, at whose end processors stop doing so */
};

void ptwm_stream_copy(void *dst, const void *src, size_t nbytes)
{
    uint8_t *to = dst;
    const uint8_t *from = src;
    const size_t head = (size_t)(-(uintptr_t)to % LINE);
    size_t i = head;

    if (nbytes < LINE + head) {
        memcpy(dst, src, nbytes);
        return;
    }
    memcpy(to, from, head);
    for (; nbytes - i >= LINE; i += LINE) {
        const __m128i *line = (const __m128i *)(const void *)(from + i);
        __m128i *place = (__m128i *)(void *)(to + i);
        if (nbytes - i > AHEAD)
            _mm_prefetch((const char *)from + i + AHEAD, _MM_HINT_NTA);
        for (unsigned k = 0; k < LINE / sizeof *line; k++)
            _mm_stream_si128(place + k, _mm_loadu_si128(line + k));
    }
    _mm_sfence();
    memcpy(to + i, from + i, nbytes - i);
}

#else

void ptwm_stream_copy(void *dst, const void *src, size_t nbytes)
{
    memcpy(dst, src, nbytes);
}

#endif
