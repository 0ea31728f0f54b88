/* Prints what it finds, and leaves all of it dirty: memory, files, signals, a thread, a dead child. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static int initialised = 7;
static char zeros[1 << 16];
static const char text[] = "read only";

static void *forever(void *none)
{
	for (;;)
		pause();
}

static int entries(const char *path)
{
	int found = 0;
	DIR *folder = opendir(path);
	if (!folder)
		return -1;
	while (readdir(folder))
		found++;
	closedir(folder);
	return found;
}

void told(const char *what, long value)
{
	printf("%s %ld\n", what, value);
}

int main(int argc, char **argv)
{
	struct sigaction action;
	sigset_t set;
	struct rlimit limit;
	pthread_t thread;
	char *page, *heap = malloc(5000), here[64];
	int i, child, sum = 0;

	told("initialised", initialised);
	for (i = 0; i < (int)sizeof zeros; i++)
		sum += zeros[i];
	told("zeros", sum);
	for (sum = i = 0; i < 5000; i++)
		sum += heap[i];
	told("heap", sum);
	told("text", text[0]);
	sigaction(SIGUSR1, 0, &action);
	told("handler", (long)action.sa_handler);
	sigprocmask(SIG_SETMASK, 0, &set);
	told("blocked", sigismember(&set, SIGUSR2));
	sigpending(&set);
	told("pending", sigismember(&set, SIGUSR2));
	told("mask", umask(077));
	getrlimit(RLIMIT_NOFILE, &limit);
	told("files", limit.rlim_cur);
	told("nice", getpriority(PRIO_PROCESS, 0));
	told("temporary", entries("/tmp"));
	told("here", entries("."));
	told("shared", entries("/dev/shm"));
	told("processes", entries("/proc"));
	told("threads", entries("/proc/self/task"));
	told("descriptors", entries("/proc/self/fd"));
	told("pid", getpid());
	told("environment", getenv("DIRTY") != 0);
	told("directory", getcwd(here, sizeof here) && !strcmp(here, "/"));

	initialised = 9;
	memset(zeros, 1, sizeof zeros);
	memset(heap, 1, 5000);
	page = (char *)((unsigned long)text & -4096);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	*(char *)text = 'X';
	signal(SIGUSR1, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, 0);
	raise(SIGUSR2);
	limit.rlim_cur = 64;
	setrlimit(RLIMIT_NOFILE, &limit);
	setpriority(PRIO_PROCESS, 0, 5);
	setenv("DIRTY", "1", 1);
	for (i = 0; i < 8; i++)
		open("/dev/null", O_RDONLY);
	close(open("/tmp/left", O_CREAT | O_WRONLY, 0600));
	close(open("left", O_CREAT | O_WRONLY, 0600));
	close(open("/dev/shm/left", O_CREAT | O_WRONLY, 0600));
	mkdir("/tmp/folder", 0700);
	chdir("/");
	pthread_create(&thread, 0, forever, 0);
	child = fork();
	if (!child)
		forever(0);
	kill(child, SIGKILL);
	setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {1000, 0}}, 0);
	fflush(stdout);
	_exit(argc);
}
