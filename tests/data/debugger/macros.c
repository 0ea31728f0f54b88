#include <stdio.h>
#define LIMIT 12
#define LIMITED(x) ((x) < LIMIT)
struct queue { int head, tail; struct item { int key; struct item *next; } *first; union { int raw; char bytes[4]; } u; };
enum state { STATE_IDLE, STATE_BUSY, STATE_DONE };
static struct queue queue;
static enum state state;
volatile int counter;
static int queue_push(struct queue *q, int key) { q->head += key; return LIMITED(key) ? q->head : 0; }
int queue_pop(struct queue *q) { q->tail++; return q->tail; }
int main(void) {
  struct queue *q = &queue; int queue_length = 3; 
  queue_push(q, 4); queue_pop(q); state = STATE_BUSY;
  printf("%d %d\n", q->head, queue_length);
  return counter;
}
