/* Two stores a round to a page: one to word 3, one to the words 0 to 7 in turn. */
#include <stdio.h>
#include <stdlib.h>

volatile long words[4608] __attribute__((aligned(4096)));

int main(int argc, char **argv)
{
	long rounds = atol(argv[1]);
	for (long i = 0; i < rounds; i++) {
		words[2] += i;
		words[4 + (i & 3)] = i;
		if (rounds <= 10000)
			words[3] = i;
	}
	printf("%ld\n", words[2]);
	return 0;
}
