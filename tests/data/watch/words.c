/* Writes to random words in many ways, and says afterwards what it has written where. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS 4096
#define LOG 20000

uint64_t words[WORDS] __attribute__((aligned(4096)));
static struct { unsigned op, word; uint64_t value; } done[LOG];
static unsigned count;
static unsigned state = 7;
static uint64_t sum;

static unsigned random_number(void)
{
	state = state * 1103515245u + 12345u;
	return state >> 8;
}

static void note(unsigned op, unsigned word)
{
	done[count].op = op;
	done[count].word = word;
	done[count].value = words[word];
	count++;
}

/* In one instruction, wherever it is. */
static void store_anywhere(void *at, uint64_t value)
{
#ifdef __riscv
	asm volatile("sd %1, %0" : "=m"(*(char(*)[8])at) : "r"(value));
#else
	*(volatile uint64_t __attribute__((aligned(1))) *)at = value;
#endif
}

/* The same of what is loaded and stored again. */
static void add_anywhere(void *at, uint32_t value)
{
#ifdef __x86_64__
	asm volatile("addl %1, %0" : "+m"(*(char(*)[4])at) : "r"(value) : "cc");
#else
	at = (void *)((uintptr_t)at & -8);
	__atomic_fetch_add((uint32_t *)at, value, __ATOMIC_SEQ_CST);
#endif
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? atoi(argv[1]) : 1000;
	int ends[2];
	if (pipe(ends))
		return 1;
	for (unsigned op = 0; op < rounds; op++) {
		unsigned k = random_number() % (WORDS - 1);
		uint64_t value = random_number() * 0x100000001ull;
		volatile uint64_t *word = &words[k];
		switch (random_number() % 10) {
		case 0:
			*word = value;
			note(op, k);
			break;
		case 1:
			*(volatile uint32_t *)((char *)word + 4) = value;
			note(op, k);
			break;
		case 2:
			((volatile unsigned char *)word)[value % 8] += 1;
			note(op, k);
			break;
		case 3:
			*(volatile uint16_t *)((char *)word + 2) ^= 0x1111;
			note(op, k);
			break;
		case 4:
			__atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
			note(op, k);
			break;
		case 5:
			__atomic_exchange_n((uint32_t *)word, (uint32_t)value | 1, __ATOMIC_SEQ_CST);
			note(op, k);
			break;
		case 6: /* over two words, perhaps over two pages */
			store_anywhere((char *)word + 5, value | 0x0100000000000001);
			note(op, k);
			note(op, k + 1);
			break;
		case 7:
			if (write(ends[1], &value, 8) != 8 || read(ends[0], (void *)word, 8) != 8)
				return 2;
			note(op, k);
			break;
		case 8:
			add_anywhere((char *)word + 2, value);
			note(op, k);
			break;
		default:
			sum += *word;
		}
	}
	for (unsigned i = 0; i < count; i++)
		printf("%u %u %016llx\n", done[i].op, done[i].word, (unsigned long long)done[i].value);
	printf("sum %016llx\n", (unsigned long long)sum);
	return 7;
}
