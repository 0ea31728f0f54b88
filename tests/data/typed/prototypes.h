/* What headers are made of. */
#ifndef SAMPLE_H
#define SAMPLE_H \
   1
#include <stdio.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct node node_t;   // only named
typedef int (*compare_t)(const void *, const void *);
enum color { RED, GREEN = 5, BLUE, LAST = -1 };
typedef enum { OFF, ON } power;
extern int paint(enum color c, power on, const char *label, double scale, ...)
  __attribute__((nonnull(3), format(printf, 3, 5)));
void nothing(void);
unsigned long long int count(const node_t *restrict first, size_t most[static 4], char **names);
void (*handler(int number, void (*next)(int)))(int);
static inline _Bool truth(unsigned char c, short int s, float f, char buffer[16]);
#ifdef __cplusplus
}
#endif
#endif
