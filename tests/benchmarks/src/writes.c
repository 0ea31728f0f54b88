/* Writes to so many MB at random, without end; says now and then that it is there. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned long words = (unsigned long)atol(argv[1]) << 17, x = 88172645463325252UL;
	unsigned long *memory = calloc(words, sizeof *memory);

	for (unsigned long i = 0;; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memory[x % words] += i;
		if (i % 10000000 == 0) {
			printf("%lu\n", i);
			fflush(stdout);
		}
	}
}
