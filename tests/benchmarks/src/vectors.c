/* Loops over instructions with a VEX prefix: vectors KERNEL ROUNDS prints a checksum. */
#pragma GCC target("avx2,fma,bmi,bmi2")
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[4096] __attribute__((aligned(32)));
static float numbers[1024] __attribute__((aligned(32)));

/* Two instructions a round, one of which loads. */
static unsigned long search(long rounds)
{
    __m256i zero = _mm256_setzero_si256();
    unsigned long sum = 0;
    unsigned found;

    for (long round = 0; round < rounds; round++) {
        __asm__ volatile("vpcmpeqb (%2), %1, %%ymm1\n"
                         "vpmovmskb %%ymm1, %0"
                         : "=r"(found)
                         : "x"(zero), "r"(text + (round & 63) * 32)
                         : "xmm1");
        sum += found;
    }
    return sum;
}

/* Two, both of which load. */
static unsigned long product(long rounds)
{
    __m256 sum = _mm256_setzero_ps();

    for (long round = 0; round < rounds; round++)
        __asm__ volatile("vmovups (%1), %%ymm1\n"
                         "vfmadd231ps (%1), %%ymm1, %0"
                         : "+x"(sum)
                         : "r"(numbers + (round & 127) * 8)
                         : "xmm1");
    return (unsigned long)sum[0];
}

/* Three, of general registers; the last sets flags. */
static unsigned long bits(long rounds)
{
    unsigned long value = 12345, mask = 0xf0f0f0f0f0f0f0f0;

    for (long round = 0; round < rounds; round++)
        __asm__ volatile("pext %1, %0, %%rcx\n"
                         "pdep %1, %%rcx, %%rcx\n"
                         "andn %0, %%rcx, %%rdx\n"
                         "lea 1(%%rdx), %0"
                         : "+r"(value)
                         : "r"(mask)
                         : "rcx", "rdx", "cc");
    return value;
}

int main(int count, char **words)
{
    long rounds = count > 2 ? atol(words[2]) : 0;

    for (int at = 0; at < 1024; at++)
        numbers[at] = at & 7;
    text[4000] = 1;
    if (count > 1 && !strcmp(words[1], "search"))
        printf("%lu\n", search(rounds));
    else if (count > 1 && !strcmp(words[1], "product"))
        printf("%lu\n", product(rounds));
    else
        printf("%lu\n", bits(rounds));
    return 0;
}
