/* A deterministic program for histograms: three functions that belong together by an id. */
__attribute__((noinline)) void begin(int id, unsigned long n, const char *name)
{ __asm__ volatile("" :: "r"(id), "r"(n), "r"(name) : "memory"); }
__attribute__((noinline)) void step(int id, int delta, unsigned char kind)
{ __asm__ volatile("" :: "r"(id), "r"(delta), "r"((long)kind) : "memory"); }
__attribute__((noinline)) void end(int id, long n, const char *name)
{ __asm__ volatile("" :: "r"(id), "r"(n), "r"(name) : "memory"); }
static const char *const names[] = { "red", "green", "blue", "ultraviolet" };
void _start(void)
{
	unsigned seed = 7;
	for (int i = 0; i < 40; i++) {
		seed = seed * 1103515245u + 12345u;
		unsigned r = seed >> 16;
		int id = r % 6;
		begin(id, r % 100, names[r % 4]);
		for (int j = 0; j < (int)(r % 3); j++)
			step(id, (int)(r % 50) - 25 + j, (unsigned char)(r >> 3));
		if (r % 5)
			end(id, (long)(r % 200) - 60, names[(r >> 2) % 4]);
	}
	__asm__ volatile("syscall" :: "a"(60), "D"(0));
}
