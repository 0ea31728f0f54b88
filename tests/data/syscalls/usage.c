/* Memory that a process has and had: its own, not the machine's. */
#include "guest.h"
#include <sys/resource.h>
#include <sys/wait.h>

#define MB 1024L /* of kilobytes */

static long peak(int who) {
    struct rusage usage;
    SHOW(getrusage(who, &usage));
    return usage.ru_maxrss;
}
static long told(const char *name) {
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) value = atol(line + strlen(name) + 1);
    fclose(file);
    return value;
}
static char *touched(long size) {
    char *at = mmap(0, size * 1024, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(at, 1, size * 1024);
    return at;
}

int main(int argc, char **argv) {
    struct rusage usage;
    int status;
    if (argc > 1 && !strcmp(argv[1], "again")) { /* what it had before exec counts */
        TRUE(peak(RUSAGE_SELF) >= 64 * MB);
        TRUE(told("VmHWM") < 16 * MB);
        TRUE(told("VmRSS") < 16 * MB);
        return 0;
    }
    if (fork()) { /* what this one had before its exec is none of the guest's */
        wait(&status);
        return WEXITSTATUS(status);
    }
    TRUE(peak(RUSAGE_SELF) > 0 && peak(RUSAGE_SELF) < 16 * MB);
    TRUE(peak(RUSAGE_CHILDREN) == 0);
    char *untouched = mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TRUE(peak(RUSAGE_SELF) < 16 * MB);
    TRUE(told("VmRSS") < 16 * MB && told("VmSize") >= 64 * MB);
    char *at = touched(32 * MB);
    TRUE(told("VmRSS") >= 32 * MB && told("VmRSS") < 48 * MB);
    SHOW(munmap(at, 32 << 20));
    TRUE(told("VmRSS") < 16 * MB);
    TRUE(told("VmHWM") >= 32 * MB && told("VmHWM") < 48 * MB);
    TRUE(peak(RUSAGE_SELF) >= 32 * MB && peak(RUSAGE_SELF) < 48 * MB);
    TRUE(peak(RUSAGE_THREAD) >= 32 * MB && peak(RUSAGE_THREAD) < 48 * MB);
    at = touched(8 * MB);
    SHOW(madvise(at, 8 << 20, MADV_DONTNEED));
    TRUE(told("VmRSS") < 8 * MB);
    if (!fork()) {
        TRUE(peak(RUSAGE_CHILDREN) == 0);
        if (!fork()) {
            touched(80 * MB);
            _exit(0);
        }
        SHOW(wait4(-1, &status, 0, &usage) > 0);
        TRUE(usage.ru_maxrss >= 80 * MB && usage.ru_maxrss < 96 * MB);
        TRUE(peak(RUSAGE_SELF) < 48 * MB);
        _exit(0);
    }
    SHOW(wait4(-1, &status, 0, &usage) > 0);
    TRUE(usage.ru_maxrss >= 80 * MB && usage.ru_maxrss < 96 * MB);
    TRUE(peak(RUSAGE_SELF) < 48 * MB);
    TRUE(peak(RUSAGE_CHILDREN) >= 80 * MB && peak(RUSAGE_CHILDREN) < 96 * MB);
    touched(64 * MB);
    execl("/proc/self/exe", argv[0], "again", (char *)0);
    return 1;
}
