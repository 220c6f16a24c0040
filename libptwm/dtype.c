#include <string.h>

#include "ptwm.h"

static const struct {
    const char *name;
    uint32_t bits;
} dtypes[] = {
    [PTWM_DTYPE_NONE] = { NULL, 0 },
    [PTWM_DTYPE_BOOL] = { "BOOL", 8 },
    [PTWM_DTYPE_U8] = { "U8", 8 },
    [PTWM_DTYPE_I8] = { "I8", 8 },
    [PTWM_DTYPE_I16] = { "I16", 16 },
    [PTWM_DTYPE_U16] = { "U16", 16 },
    [PTWM_DTYPE_I32] = { "I32", 32 },
    [PTWM_DTYPE_U32] = { "U32", 32 },
    [PTWM_DTYPE_I64] = { "I64", 64 },
    [PTWM_DTYPE_U64] = { "U64", 64 },
    [PTWM_DTYPE_F16] = { "F16", 16 },
    [PTWM_DTYPE_BF16] = { "BF16", 16 },
    [PTWM_DTYPE_F32] = { "F32", 32 },
    [PTWM_DTYPE_F64] = { "F64", 64 },
    [PTWM_DTYPE_F8_E4M3] = { "F8_E4M3", 8 },
    [PTWM_DTYPE_F8_E5M2] = { "F8_E5M2", 8 },
    [PTWM_DTYPE_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", 8 },
    [PTWM_DTYPE_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", 8 },
    [PTWM_DTYPE_F8_E8M0] = { "F8_E8M0", 8 },
    [PTWM_DTYPE_F4] = { "F4", 4 },
    [PTWM_DTYPE_F6_E2M3] = { "F6_E2M3", 6 },
    [PTWM_DTYPE_F6_E3M2] = { "F6_E3M2", 6 },
    [PTWM_DTYPE_C32] = { "C32", 32 },
    [PTWM_DTYPE_C64] = { "C64", 64 },
    [PTWM_DTYPE_C128] = { "C128", 128 },
    [PTWM_DTYPE_I4] = { "I4", 4 },
    [PTWM_DTYPE_U4] = { "U4", 4 },
    [PTWM_DTYPE_I2] = { "I2", 2 },
    [PTWM_DTYPE_U2] = { "U2", 2 },
    [PTWM_DTYPE_I1] = { "I1", 1 },
    [PTWM_DTYPE_U1] = { "U1", 1 },
    [PTWM_DTYPE_F8_E4M3_IEEE] = { "F8_E4M3_IEEE", 8 },
    [PTWM_DTYPE_F8_E3M4] = { "F8_E3M4", 8 },
    [PTWM_DTYPE_F8_E4M3B11FNUZ] = { "F8_E4M3B11FNUZ", 8 },
    [PTWM_DTYPE_BC32] = { "BC32", 32 },
    [PTWM_DTYPE_F8_E5M3FNU] = { "F8_E5M3FNU", 8 },
};

enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *ptwm_dtype_name(uint32_t dtype)
{
    return dtype < N_DTYPES ? dtypes[dtype].name : NULL;
}

uint32_t ptwm_dtype_bits(uint32_t dtype)
{
    return dtype < N_DTYPES ? dtypes[dtype].bits : 0;
}

uint32_t ptwm_dtype_from_name(const char *name)
{
    for (uint32_t i = 1; i < N_DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return i;
    return PTWM_DTYPE_NONE;
}
