/* A deterministic program for event probes: system calls with strings, numbers and errors. */
static long call(long n, long a, long b, long c, long d)
{
	long result;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}
static const char *const names[] = { "/nope/red", "/nope/green", "/nope/blue/ultraviolet" };
__attribute__((noinline)) void begin(int id, unsigned long n, const char *name)
{ __asm__ volatile("" :: "r"(id), "r"(n), "r"(name) : "memory"); }
volatile unsigned counter = 7;
void _start(void)
{
	for (int i = 0; i < 6; i++) {
		begin(i, (unsigned long)i * 100 - 200, names[i % 3]);
		call(257, -100, (long)names[i % 3], i * 64, 0600);
		call(3, 1000 + i, 0, 0, 0);
		call(39, 0, 0, 0, 0);
		counter += i;
	}
	call(83, (long)"/nope/red/sub", 0700, 0, 0);
	call(257, -100, 0x10, 0, 0);
	call(231, 3, 0, 0, 0);
}
