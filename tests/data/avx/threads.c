// Threads, signals and a child process that use all of AVX's registers.
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int handled;

static void handler(int number) {
    __asm__ volatile("vpcmpeqd %%ymm7, %%ymm7, %%ymm7\n vpxor %%ymm8, %%ymm8, %%ymm8\n"
                     "vpcmpeqd %%ymm9, %%ymm9, %%ymm9\n vzeroupper" ::
                         : "xmm7", "xmm8", "xmm9");
    handled++;
}

static void *work(void *argument) {
    static char said[4][128];
    long id = (long)argument;
    __m256i sum = _mm256_set1_epi64x(id), more = _mm256_set_epi64x(1, 2, 3, 4);
    for (int i = 0; i < 400; i++) {
        sum = _mm256_mullo_epi32(sum, _mm256_set1_epi32(1103515245 + id));
        sum = _mm256_add_epi64(sum, more);
        if (i % 80)
            continue;
        __asm__ volatile("vmovdqa %0, %%ymm9" ::"x"(sum) : "xmm9");
        register long result __asm__("rax") = 24; // sched_yield: no function is called here
        __asm__ volatile("syscall\n vmovdqa %%ymm9, %1"
                         : "+a"(result), "=x"(sum)
                         :
                         : "rcx", "r11", "memory", "xmm9");
        if (id == 1) { // a signal to this thread, in the middle of it
            long self = gettid(), process = getpid();
            __asm__ volatile("vmovdqa %0, %%ymm9" ::"x"(sum) : "xmm9");
            register long kill __asm__("rax") = 234;
            __asm__ volatile("syscall\n vmovdqa %%ymm9, %1"
                             : "+a"(kill), "=x"(sum)
                             : "D"(process), "S"(self), "d"((long)SIGUSR1)
                             : "rcx", "r11", "memory", "xmm9");
        }
    }
    unsigned long long parts[4];
    memcpy(parts, &sum, sizeof parts);
    snprintf(said[id], sizeof said[id], "%ld %llx %llx %llx %llx\n", id, parts[0], parts[1],
             parts[2], parts[3]);
    return said[id];
}

int main(void) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, 0);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *said;
        pthread_join(threads[i], &said);
        fputs(said, stdout);
    }
    printf("%d signals\n", handled);
    fflush(stdout);
    __m256i kept = _mm256_set_epi64x(11, 12, 13, 14);
    long child;
    __asm__ volatile("vmovdqa %2, %%ymm12\n mov $57, %%eax\n syscall\n vmovdqa %%ymm12, %1"
                     : "=&a"(child), "=x"(kept)
                     : "x"(kept)
                     : "rcx", "r11", "memory", "xmm12");
    unsigned long long parts[4];
    memcpy(parts, &kept, sizeof parts);
    if (child)
        waitpid(child, 0, 0);
    printf("%s: %llu %llu %llu %llu\n", child ? "parent" : "child", parts[0], parts[1], parts[2],
           parts[3]);
    return 0;
}
