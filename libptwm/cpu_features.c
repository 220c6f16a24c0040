#include "cpu_features.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ptwm.h"

static const struct {
    const char *name;
    enum ptwm_cpu_level level;
} names[] = {
    { "c99", PTWM_CPU_C99 },       { "sse42", PTWM_CPU_SSE42 }, { "avx2", PTWM_CPU_AVX2 },
    { "avx512", PTWM_CPU_AVX512 }, { "neon", PTWM_CPU_NEON },
};

unsigned ptwm_cpu_selected;

#if defined(PTWM_X86)
#include <cpuid.h>

/* Which register states the operating system saves (XCR0); 0 if it saves none but the oldest. */
static uint64_t saved_states(void)
{
    unsigned a, b, c, d, low, high;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low | (uint64_t)high << 32;
}

static int has(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

static enum ptwm_cpu_level best_level(void)
{
    /* Bits of CPUID leaf 7, subleaf 0, by their numbers: not all compilers' cpuid.h have names for them. */
    const unsigned avx2 = 1u << 5 | 1u << 3 | 1u << 8;                               /* EBX: AVX2, BMI1, BMI2 */
    const unsigned avx512_b = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;             /* EBX: F, DQ, BW, VL */
    const unsigned avx512_c = 1u << 1 | 1u << 6 | 1u << 10 | 1u << 14;               /* ECX: VBMI, VBMI2, VPCLMULQDQ, VPOPCNTDQ */
    const uint64_t ymm = 6, zmm = 0xE6, states = saved_states();
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, 1u << 20 | 1u << 1)) /* SSE4.2, PCLMULQDQ */
        return PTWM_CPU_C99;
    if (!has(c, 1u << 23 | 1u << 28) || (states & ymm) != ymm || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, avx2))
        return PTWM_CPU_SSE42;
#if defined(_WIN32) && !defined(__clang__) && !defined(PTWM_UNALIGNED_MOVES)
    /*
     * On Windows gcc keeps vectors of 32 and 64 bytes on a stack that is aligned to 16, with moves that need them aligned.
     * meson.build has the assembler make unaligned ones of them, where it can, and says so.
     */
    return PTWM_CPU_SSE42;
#endif
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
    /* Around ThreadSanitizer's calls gcc 12 spills a mask as one byte and counts the bits of the four that are there. */
    return PTWM_CPU_AVX2;
#endif
    return has(b, avx512_b) && has(c, avx512_c) && (states & zmm) == zmm ? PTWM_CPU_AVX512 : PTWM_CPU_AVX2;
}
#elif defined(PTWM_ARM)
#ifdef __linux__
#include <sys/auxv.h>
static enum ptwm_cpu_level best_level(void)
{
    const unsigned long asimd = 1ul << 1, crc32 = 1ul << 7;
    return (getauxval(AT_HWCAP) & (asimd | crc32)) == (asimd | crc32) ? PTWM_CPU_NEON : PTWM_CPU_C99;
}
#else
static enum ptwm_cpu_level best_level(void)
{
    return PTWM_CPU_NEON; /* all 64-bit ARM machines that run macOS or Windows have both */
}
#endif
#else
static enum ptwm_cpu_level best_level(void)
{
    return PTWM_CPU_C99;
}
#endif

/* The level of that name if this machine has it, else 0. "best" is the machine's. */
static enum ptwm_cpu_level level_of(const char *name)
{
    const enum ptwm_cpu_level best = best_level();

    if (strcmp(name, "best") == 0)
        return best;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0) {
            const enum ptwm_cpu_level level = names[i].level;
            if (level == PTWM_CPU_C99 || level == best || (level < best && best != PTWM_CPU_NEON))
                return level;
        }
    return (enum ptwm_cpu_level)0;
}

enum ptwm_cpu_level ptwm_cpu_find_level(void)
{
    const char *wanted = getenv("PTWM_CPU");
    enum ptwm_cpu_level level = wanted != NULL ? level_of(wanted) : (enum ptwm_cpu_level)0;

    if (level == 0)
        level = best_level();
    __atomic_store_n(&ptwm_cpu_selected, (unsigned)level, __ATOMIC_RELAXED);
    return level;
}

enum ptwm_status ptwm_cpu_select(const char *name)
{
    const enum ptwm_cpu_level level = name != NULL ? level_of(name) : (enum ptwm_cpu_level)0;

    if (level == 0)
        return PTWM_ERR_ARGUMENT;
    __atomic_store_n(&ptwm_cpu_selected, (unsigned)level, __ATOMIC_RELAXED);
    return PTWM_OK;
}

const char *ptwm_cpu_name(void)
{
    const enum ptwm_cpu_level level = ptwm_cpu_level();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].level == level)
            return names[i].name;
    return "c99";
}
