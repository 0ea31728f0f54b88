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

/* Three: a mask, a gather of eight, their sum. */
static unsigned long gather(long rounds)
{
    __m256i index = _mm256_setr_epi32(0, 9, 18, 27, 36, 45, 54, 63);
    __m256 sum = _mm256_setzero_ps();

    for (long round = 0; round < rounds; round++)
        __asm__ volatile("vpcmpeqd %%ymm2, %%ymm2, %%ymm2\n"
                         "vgatherdps %%ymm2, (%1,%2,4), %%ymm1\n"
                         "vaddps %%ymm1, %0, %0"
                         : "+x"(sum)
                         : "r"(numbers + (round & 127) * 7), "x"(index)
                         : "xmm1", "xmm2");
    return (unsigned long)sum[1];
}

/* Two: a load and a store of five of eight elements. */
static unsigned long masked(long rounds)
{
    __m256i mask = _mm256_setr_epi32(-1, 0, -1, -1, 0, -1, -1, 0);

    for (long round = 0; round < rounds; round++)
        __asm__ volatile("vmaskmovps (%0), %1, %%ymm1\n"
                         "vmaskmovps %%ymm1, %1, 64(%0)"
                         :
                         : "r"(numbers + (round & 127) * 7), "x"(mask)
                         : "xmm1", "memory");
    return (unsigned long)numbers[64];
}

/* Two: rounding is set, and set again. */
static unsigned long control(long rounds)
{
    unsigned words[2] = {0x1f80, 0x5f80};
    unsigned long sum = 0;

    for (long round = 0; round < rounds; round++) {
        __asm__ volatile("vldmxcsr %1\n vstmxcsr %0" : "=m"(words[0]) : "m"(words[round & 1]));
        sum += words[0];
    }
    return sum;
}

static const struct {
    const char *name;
    unsigned long (*run)(long);
} kernels[] = {{"search", search}, {"product", product}, {"bits", bits},
               {"gather", gather}, {"masked", masked}, {"control", control}};

int main(int count, char **words)
{
    long rounds = count > 2 ? atol(words[2]) : 0;

    for (int at = 0; at < 1024; at++)
        numbers[at] = at & 7;
    text[4000] = 1;
    for (unsigned at = 0; at < sizeof kernels / sizeof *kernels; at++)
        if (count > 1 && !strcmp(words[1], kernels[at].name))
            printf("%lu\n", kernels[at].run(rounds));
    return 0;
}
