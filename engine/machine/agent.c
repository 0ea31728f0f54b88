/* The program that a machine runs as its init to be asked about files: a static ELF without libc.
 *
 * It mounts the file systems of the tracer, and then takes requests from the ports of
 * engine/machine/mailbox.py, one after the other: engine/machine/agent.py has their layout.
 * Build: make -C engine/machine
 */

typedef unsigned int u32;
typedef unsigned long u64;

enum { DATA = 0x6a0, CONTROL = 0x6a4, PORTS = 8 };
enum { PAUSE, WRITE, READ, SLEEP };
enum { ALWAYS, TAKEN, REFUSED };
enum { NR_read, NR_write, NR_open, NR_close, NR_nanosleep = 35, NR_mkdir = 83, NR_mount = 165 };
enum { NR_ioperm = 173 };
enum { SKIPPED = -10000, TOO_LONG = -7 };

static char path[4096], data[65536];

static long call(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long result;

	__asm__ volatile("syscall" : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
}

static u32 take(void)
{
	u32 value;

	__asm__ volatile("inl %w1, %0" : "=a"(value) : "Nd"(DATA));
	return value;
}

static void give(u32 value)
{
	__asm__ volatile("outl %0, %w1" : : "a"(value), "Nd"(DATA));
}

static void control(u32 value)
{
	__asm__ volatile("outl %0, %w1" : : "a"(value), "Nd"(CONTROL) : "memory");
}

/* Take bytes, whole words of them; what does not fit is lost, and 1 the answer. */
static int take_bytes(char *to, u32 size, u32 room)
{
	u32 at, word;

	for (at = 0; at < size; at += 4) {
		word = take();
		if (at + 4 <= room)
			*(u32 *)(to + at) = word;
	}
	return size > room;
}

static void read_file(void)
{
	long file = call(NR_open, (long)path, 0, 0, 0, 0), got = file, at;

	while (file >= 0 && (got = call(NR_read, file, (long)data, sizeof(data), 0, 0)) > 0) {
		give((u32)got);
		for (at = 0; at < got; at += 4)
			give(*(u32 *)(data + at));
	}
	give((u32)got);
	if (file >= 0)
		call(NR_close, file, 0, 0, 0, 0);
}

static long write_file(u32 flags, u32 size)
{
	long file = call(NR_open, (long)path, flags, 0, 0, 0), result = file;

	if (file < 0)
		return result;
	result = 0;
	if (size)
		result = call(NR_write, file, (long)data, size, 0, 0);
	call(NR_close, file, 0, 0, 0, 0);
	return result;
}

static void serve(void)
{
	long last = 0;
	u32 kind, when, flags, path_size, data_size, lost;

	for (;;) {
		kind = take();
		when = kind >> 8;
		kind &= 0xff;
		if (kind == PAUSE) {
			control(PAUSE);
			continue;
		}
		flags = take();
		path_size = take();
		data_size = take();
		lost = take_bytes(path, path_size, sizeof(path) - 4);
		path[path_size < sizeof(path) - 4 ? path_size : 0] = 0;
		lost |= take_bytes(data, data_size, sizeof(data));
		if ((when == TAKEN && last < 0) || (when == REFUSED && last >= 0)) {
			give(SKIPPED);
		} else if (lost) {
			give(TOO_LONG);
		} else if (kind == WRITE) {
			last = write_file(flags, data_size);
			give((u32)last);
		} else if (kind == READ) {
			read_file();
		} else {
			struct { long seconds, nanoseconds; } time = {
				flags / 1000, flags % 1000 * 1000000L
			};
			give((u32)call(NR_nanosleep, (long)&time, 0, 0, 0, 0));
		}
	}
}

static void mounted(const char *kind, const char *where)
{
	call(NR_mkdir, (long)where, 0755, 0, 0, 0);
	call(NR_mount, (long)kind, (long)where, (long)kind, 0, 0);
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	mounted("proc", "/proc");
	mounted("sysfs", "/sys");
	mounted("debugfs", "/sys/kernel/debug");
	mounted("tracefs", "/sys/kernel/tracing");
	call(NR_ioperm, DATA, PORTS, 1, 0, 0);
	serve();
}
