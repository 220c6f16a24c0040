/*
 * The codecs of bytes by id, and what two of them share.
 */
#include "codec.h"

#include <string.h>

#include "bits.h"
#include "symbol_set.h"

const struct ptwm_byte_codec *ptwm_byte_codec_find(uint32_t id)
{
    switch (id) {
    case PTWM_CODEC_IDENTITY: return &ptwm_codec_identity;
    case PTWM_CODEC_CONSTANT: return &ptwm_codec_constant;
    case PTWM_CODEC_HUFFMAN: return &ptwm_codec_huffman;
    case PTWM_CODEC_RANS: return &ptwm_codec_rans;
    case PTWM_CODEC_ZSTD: return &ptwm_codec_zstd;
    default: return NULL;
    }
}

const char *ptwm_codec_name(uint32_t codec)
{
    switch (codec) {
    case PTWM_CODEC_IDENTITY: return "identity";
    case PTWM_CODEC_CONSTANT: return "constant";
    case PTWM_CODEC_HUFFMAN: return "huffman";
    case PTWM_CODEC_RANS: return "rans";
    case PTWM_CODEC_ZSTD: return "zstd";
    case PTWM_CODEC_LABEL_RANS: return "label-rans";
    case PTWM_CODEC_TRIM: return "trim";
    case PTWM_CODEC_CARRIED: return "carried";
    default: return NULL;
    }
}

/* ----------------------------------------------------------------------------------------------- symbol sets */

/*
 * A counter that is hit twice in a row waits for itself: all quarters at once, each with a table for elements of even and one
 * for those of odd numbers. That is one count a cycle whatever the bytes are.
 */
void ptwm_count_quarters(const uint8_t *src, size_t n, uint32_t histograms[4][256])
{
    const size_t quarter = n / 4 + (n % 4 != 0);
    const size_t last = n >= 3 * quarter ? n - 3 * quarter : 0; /* if it is 0, n is small and others may be short too */
    uint32_t odd[4][256] = { { 0 } };
    size_t i = 0;

    memset(histograms, 0, 4 * sizeof histograms[0]);
    for (; last - i >= 8; i += 8) {
        uint64_t bytes[4];

        for (unsigned j = 0; j < 4; j++)
            bytes[j] = ptwm_load64(src + j * quarter + i);
        for (unsigned k = 0; k < 64; k += 16) {
            for (unsigned j = 0; j < 4; j++) {
                histograms[j][bytes[j] >> k & 255]++;
                odd[j][bytes[j] >> (k + 8) & 255]++;
            }
        }
    }
    for (size_t j = 0; j < 4; j++) {
        for (size_t at = j * quarter + i; at < (j + 1) * quarter && at < n; at++)
            histograms[j][src[at]]++;
        for (unsigned v = 0; v < 256; v++)
            histograms[j][v] += odd[j][v];
    }
}

void ptwm_count_bytes(const uint8_t *src, size_t n, uint32_t histogram[256])
{
    uint32_t quarters[4][256];

    ptwm_count_quarters(src, n, quarters);
    for (unsigned v = 0; v < 256; v++)
        histogram[v] = quarters[0][v] + quarters[1][v] + quarters[2][v] + quarters[3][v];
}

void ptwm_symbol_set_from_histogram(struct ptwm_symbol_set *set, const uint32_t histogram[256])
{
    set->n = 0;
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        if (histogram[symbol] > 0)
            set->symbols[set->n++] = (uint8_t)symbol;
    }
}

size_t ptwm_symbol_set_store(const struct ptwm_symbol_set *set, uint8_t *dst)
{
    uint16_t groups = 0, members[16] = { 0 };
    uint8_t *p = dst + 2;

    for (unsigned i = 0; i < set->n; i++) {
        unsigned group = set->symbols[i] >> 4;

        groups = (uint16_t)(groups | 1u << group);
        members[group] = (uint16_t)(members[group] | 1u << (set->symbols[i] & 15));
    }
    ptwm_store16(dst, groups);
    for (unsigned group = 0; group < 16; group++) {
        if (members[group] != 0) {
            ptwm_store16(p, members[group]);
            p += 2;
        }
    }
    return (size_t)(p - dst);
}

void ptwm_symbol_set_load(struct ptwm_symbol_set *set, struct ptwm_cursor *cursor)
{
    uint16_t groups = ptwm_cursor_u16(cursor);

    set->n = 0;
    if (groups == 0)
        cursor->failed = true;
    for (unsigned group = 0; group < 16; group++) {
        uint16_t members;

        if ((groups >> group & 1) == 0)
            continue;
        members = ptwm_cursor_u16(cursor);
        if (members == 0)
            cursor->failed = true;
        for (unsigned i = 0; i < 16; i++) {
            if (members >> i & 1)
                set->symbols[set->n++] = (uint8_t)(16 * group + i);
        }
    }
}
