/* Begins itself again. */
#include <unistd.h>

volatile int passes;

int main(int argc, char **argv)
{
	passes = argc;
	if (argc == 1)
		execl("/proc/self/exe", argv[0], "again", (char *)0);
	return 5 + passes;
}
