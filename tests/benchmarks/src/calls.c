/* Two calls a round, one of them nested, all traced: `calls ROUNDS`. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sum;

__attribute__((noinline)) void leaf(unsigned n)
{
	sum += n;
}

__attribute__((noinline)) void outer(unsigned n)
{
	leaf(n);
	sum ^= n;
}

int main(int argc, char **argv)
{
	unsigned rounds = atoi(argv[1]);
	for (unsigned n = 0; n < rounds; n++)
		outer(n);
	printf("%u\n", sum);
	return 0;
}
