#include <pthread.h>
#include <stdio.h>
pthread_mutex_t savings = PTHREAD_MUTEX_INITIALIZER, current = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t both;
int balance[2] = {100, 100};
void move_money(pthread_mutex_t *from, pthread_mutex_t *to, int sum) {
    pthread_mutex_lock(from);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(to);
    balance[0] -= sum; balance[1] += sum;
    pthread_mutex_unlock(to); pthread_mutex_unlock(from);
}
void *payer(void *arg) { move_money(&savings, &current, 5); return arg; }
void *saver(void *arg) { move_money(&current, &savings, 7); return arg; }
int main(void) {
    pthread_t a, b;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&a, 0, payer, 0); pthread_create(&b, 0, saver, 0);
    pthread_join(a, 0); pthread_join(b, 0);
    printf("%d %d\n", balance[0], balance[1]);
    return 0;
}
