/*
 * What the processor and the operating system allow, as levels: each has what the one before has.
 *
 * A kernel with several versions asks ptwm_cpu_level() each time it is called and takes the best version that it has
 * for the level. The level is one word, found once and kept in a relaxed atomic; finding it twice at the same time
 * gives the same word, so nobody races.
 */
#ifndef PTWM_CPU_FEATURES_H
#define PTWM_CPU_FEATURES_H

#if defined(__x86_64__) && defined(__GNUC__)
#define PTWM_X86 1
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)
#define PTWM_ARM 1
#endif

enum ptwm_cpu_level {
    PTWM_CPU_C99 = 1,
    PTWM_CPU_SSE42 = 2,  /* x86: SSE4.2 and PCLMULQDQ */
    PTWM_CPU_AVX2 = 3,   /* and AVX2, BMI1, BMI2, POPCNT */
    PTWM_CPU_AVX512 = 4, /* and AVX-512 F, BW, VL, DQ, VBMI, VBMI2, VPOPCNTDQ, VPCLMULQDQ */
    PTWM_CPU_NEON = 5    /* aarch64: Advanced SIMD and CRC32 */
};

/* An enum ptwm_cpu_level, or 0 before the first question. */
extern unsigned ptwm_cpu_selected; /* atomic */
/* Finds the level and sets that. */
enum ptwm_cpu_level ptwm_cpu_find_level(void);

/* The level to use: the machine's, or what PTWM_CPU or ptwm_cpu_select lowered it to. */
static inline enum ptwm_cpu_level ptwm_cpu_level(void)
{
    const unsigned level = __atomic_load_n(&ptwm_cpu_selected, __ATOMIC_RELAXED);
    return level != 0 ? (enum ptwm_cpu_level)level : ptwm_cpu_find_level();
}

#endif
