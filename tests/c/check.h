/*
 * A minimal test harness: each test program has one file, runs its cases with RUN and ends with CHECK_EXIT.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures, check_cases, check_failed_cases;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            printf("%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #condition);                  \
            check_failures++;                                                              \
        }                                                                                  \
    } while (0)

#define CHECK_EQ(a, b)                                                                     \
    do {                                                                                   \
        long long check_a = (long long)(a), check_b = (long long)(b);                      \
        if (check_a != check_b) {                                                          \
            printf("%s:%d: %s is %lld, not %s = %lld\n", __FILE__, __LINE__, #a, check_a, #b, check_b); \
            check_failures++;                                                              \
        }                                                                                  \
    } while (0)

#define RUN(test)                                                                          \
    do {                                                                                   \
        int check_before = check_failures;                                                 \
        test();                                                                            \
        check_cases++;                                                                     \
        if (check_failures != check_before) {                                              \
            check_failed_cases++;                                                          \
            printf("FAILED %s\n", #test);                                                  \
        }                                                                                  \
    } while (0)

#define CHECK_EXIT()                                                                       \
    do {                                                                                   \
        printf("%d passed, %d failed\n", check_cases - check_failed_cases, check_failed_cases); \
        return check_failed_cases != 0;                                                    \
    } while (0)

/* A small deterministic generator (splitmix64). */
static inline uint64_t check_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

#endif
