/*
 * The STANDARD table: which chains the writer considers for a dtype.
 *
 * The first chain is the one that fits trained weights; the others catch what is not: the chain with the bare exponent
 * (whose symbols fit a byte) serves the codecs of bytes, byte planes serve integers held in floats, and the empty chain
 * is for text-like repetition, which zstd finds in the bytes as they are.
 */
#include "chain.h"
#include "status.h"

struct entry {
    uint8_t bytes[6];
    uint8_t nbytes;
};

#define DELTA(width) PTWM_STEP_DELTA, width
#define BYTES(width) PTWM_STEP_BYTES, width
#define LABEL(width, shift, bits) PTWM_STEP_LABEL, width, shift, bits

enum { MAX_CANDIDATES = 4 };
struct candidates {
    size_t n;
    struct entry chains[MAX_CANDIDATES];
};

static const struct candidates plain_bytes = { 1, { { { 0 }, 0 } } };
/*
 * Bytes of quantised weights: the top five bits of a two's complement or offset value are its label. Block scales, which
 * checkpoints keep in bytes too, have few values, and rows that differ.
 */
static const struct candidates int8s = { 2, { { { 0 }, 0 }, { { LABEL(1, 3, 5) }, 4 } } };
static const struct candidates uint8s = { 3, { { { 0 }, 0 }, { { LABEL(1, 3, 5) }, 4 }, { { LABEL(1, 0, 8) }, 4 } } };
static const struct candidates int16s = { 3, { { { BYTES(2) }, 2 }, { { DELTA(2), BYTES(2) }, 4 }, { { 0 }, 0 } } };
static const struct candidates int32s = { 3, { { { BYTES(4) }, 2 }, { { DELTA(4), BYTES(4) }, 4 }, { { 0 }, 0 } } };
static const struct candidates int64s = { 3, { { { BYTES(8) }, 2 }, { { DELTA(8), BYTES(8) }, 4 }, { { 0 }, 0 } } };
static const struct candidates f16s = { 4, { { { LABEL(2, 9, 6) }, 4 }, { { LABEL(2, 10, 5) }, 4 }, { { BYTES(2) }, 2 },
                                             { { 0 }, 0 } } };
static const struct candidates bf16s = { 4, { { { LABEL(2, 6, 9) }, 4 }, { { LABEL(2, 7, 8) }, 4 }, { { BYTES(2) }, 2 },
                                              { { 0 }, 0 } } };
static const struct candidates f32s = { 4, { { { LABEL(4, 6, 9) }, 4 }, { { LABEL(4, 7, 8) }, 4 }, { { BYTES(4) }, 2 },
                                             { { 0 }, 0 } } };
static const struct candidates f64s = { 3, { { { LABEL(8, 4, 11) }, 4 }, { { BYTES(8) }, 2 }, { { 0 }, 0 } } };
static const struct candidates e4m3s = { 4, { { { LABEL(1, 2, 5) }, 4 }, { { LABEL(1, 3, 4) }, 4 }, { { LABEL(1, 0, 8) }, 4 },
                                               { { 0 }, 0 } } };
static const struct candidates e5m2s = { 3, { { { LABEL(1, 1, 6) }, 4 }, { { LABEL(1, 2, 5) }, 4 }, { { 0 }, 0 } } };
/* Unsigned floats, of which block scales are made. */
static const struct candidates scales = { 2, { { { LABEL(1, 0, 8) }, 4 }, { { 0 }, 0 } } };
/* Four packed values are three bytes. */
static const struct candidates f6s = { 2, { { { BYTES(3) }, 2 }, { { 0 }, 0 } } };
static const struct candidates f4s = { 2, { { { 0 }, 0 }, { { LABEL(0, 0, 4) }, 4 } } };

static const struct candidates *candidates_of(uint32_t dtype)
{
    switch (dtype) {
    case PTWM_DTYPE_U8: return &uint8s;
    case PTWM_DTYPE_I8: return &int8s;
    case PTWM_DTYPE_I16:
    case PTWM_DTYPE_U16: return &int16s;
    case PTWM_DTYPE_I32:
    case PTWM_DTYPE_U32: return &int32s;
    case PTWM_DTYPE_I64:
    case PTWM_DTYPE_U64: return &int64s;
    case PTWM_DTYPE_F16:
    case PTWM_DTYPE_C32: return &f16s;
    case PTWM_DTYPE_BF16:
    case PTWM_DTYPE_BC32: return &bf16s;
    case PTWM_DTYPE_F32:
    case PTWM_DTYPE_C64: return &f32s;
    case PTWM_DTYPE_F64:
    case PTWM_DTYPE_C128: return &f64s;
    case PTWM_DTYPE_F8_E4M3:
    case PTWM_DTYPE_F8_E4M3FNUZ:
    case PTWM_DTYPE_F8_E4M3_IEEE:
    case PTWM_DTYPE_F8_E4M3B11FNUZ:
    case PTWM_DTYPE_F8_E3M4: return &e4m3s; /* the top five bits of magnitude in each */
    case PTWM_DTYPE_F8_E5M2:
    case PTWM_DTYPE_F8_E5M2FNUZ: return &e5m2s;
    case PTWM_DTYPE_F8_E8M0:
    case PTWM_DTYPE_F8_E5M3FNU: return &scales;
    case PTWM_DTYPE_F4: return &f4s;
    case PTWM_DTYPE_F6_E2M3:
    case PTWM_DTYPE_F6_E3M2: return &f6s;
    default: return &plain_bytes;
    }
}

enum ptwm_status ptwm_chain_standard(uint32_t dtype, size_t index, const void **chain, size_t *chain_nbytes)
{
    const struct candidates *candidates = candidates_of(dtype);

    if (index >= candidates->n)
        return PTWM_ERR_RANGE;
    *chain = candidates->chains[index].bytes;
    *chain_nbytes = candidates->chains[index].nbytes;
    return PTWM_OK;
}
