/* What a program does with its pages: protects, loses, maps and copies them. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

volatile long page[1024] __attribute__((aligned(4096)));
static sigjmp_buf out;
static char text[200];

static void caught(int number, siginfo_t *info, void *context)
{
	siglongjmp(out, info->si_addr == (void *)page);
}

static const char *rights(void)
{
	static char found[8];
	char line[400];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	while (fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, found) == 3 && start <= (unsigned long)page && (unsigned long)page < end)
			break;
	fclose(maps);
	return found;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &action, 0);
	strcat(text, rights());
	page[0] = 7;
	mprotect((void *)page, 4096, PROT_READ);
	sprintf(text + strlen(text), " %s", rights());
	if (sigsetjmp(out, 1) == 0)
		page[0] = 1;
	else
		sprintf(text + strlen(text), " fault %ld", page[0]);
	mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
	page[0] = 8;
	mprotect((void *)page, 4096, PROT_NONE);
	if (sigsetjmp(out, 1) == 0)
		page[0] = 1;
	mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
	sprintf(text + strlen(text), " fault %ld", page[0]);
	munmap((void *)page, 4096);
	mmap((void *)page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	page[0] = 9;
	sprintf(text + strlen(text), " moved %ld", page[0]);
	int ends[2];
	long got = 0;
	pipe(ends);
	if (fork() == 0) {
		page[0] = 10;
		got = page[0];
		write(ends[1], &got, sizeof got);
		_exit(0);
	}
	wait(0);
	read(ends[0], &got, sizeof got);
	printf("%s child %ld parent %ld\n", text, got, page[0]);
	return 0;
}
