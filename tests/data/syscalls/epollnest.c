/* How many epoll instances may watch one another in a row, whichever end the row grows at. */
#include "guest.h"
#include <sys/epoll.h>

static int make(void) { return epoll_create1(0); }
static void watch(const char *what, int first, int second) {
    struct epoll_event event = {EPOLLIN};
    errno = 0;
    show(what, epoll_ctl(first, EPOLL_CTL_ADD, second, &event));
}

int main(void) {
    int all[12], left[4], right[4];
    for (int i = 0; i < 12; i++) all[i] = make();
    for (int i = 1; i < 12; i++) watch("at the front", all[i], all[i - 1]);
    for (int i = 0; i < 12; i++) all[i] = make();
    for (int i = 0; i < 11; i++) watch("at the end", all[i], all[i + 1]);
    for (int i = 0; i < 4; i++) left[i] = make(), right[i] = make();
    for (int i = 0; i < 3; i++) watch("left", left[i], left[i + 1]), watch("right", right[i], right[i + 1]);
    watch("both whole", left[3], right[0]);
    watch("parts", left[1], right[2]);
    SHOW(close(left[0]));
    watch("less of them", left[1], right[1]);
    watch("in a circle", right[3], right[0]);
    return 0;
}
