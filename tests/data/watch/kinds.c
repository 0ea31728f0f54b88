/* One store to each of some variables. */
#include <fcntl.h>
#include <unistd.h>

struct pair { long x, y; };
volatile int count;
volatile char letter;
long *volatile next;
volatile double ratio;
volatile struct pair spot;
char name[3];
int input;

int main(int argc, char **argv)
{
	count = -5;
	letter = 'a';
	next = (long *)0x1000;
	ratio = 2.5;
	spot.y = 3;
	spot.x = 4;
	((volatile char *)name)[0] = 'a';
	pread(open(argv[0], O_RDONLY), &input, 4, 0);
	return 0;
}
