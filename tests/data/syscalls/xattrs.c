/* Extended attributes of the user's own files. */
#include "guest.h"
#include <sys/xattr.h>

static char data[70000];

static void list(const char *what, const char *path) {
    char names[1000];
    long size = listxattr(path, names, sizeof names), at = 0;
    printf("%s %ld", what, size);
    const char *all[20];
    int count = 0;
    for (; at < size; at += strlen(names + at) + 1) all[count++] = names + at;
    for (int n = 0; n < count; n++) /* in alphabetical order: file systems have their own */
        for (int m = n + 1; m < count; m++)
            if (strcmp(all[n], all[m]) > 0) {
                const char *other = all[n];
                all[n] = all[m];
                all[m] = other;
            }
    for (int n = 0; n < count; n++) printf(" %s", all[n]);
    printf("\n");
}
static void get(const char *path, const char *name) {
    memset(data, 0, 100);
    errno = 0;
    long size = getxattr(path, name, data, 100);
    printf("%s %s: %ld %s %.50s\n", path, name, size, size < 0 ? strerrorname_np(errno) : "", data);
}

int main(void) {
    char name[400];
    mkdir("xattrs.d", 0755);
    chdir("xattrs.d");
    int fd = open("f", O_CREAT | O_RDWR, 0644);
    mkdir("d", 0755);
    symlink("f", "l");
    symlink("nowhere", "dangling");
    mkfifo("p", 0644);
    SHOW(getxattr("f", "user.a", data, 100));
    SHOW(listxattr("f", data, 100));
    SHOW(setxattr("f", "user.a", "value", 5, 0));
    get("f", "user.a");
    get("l", "user.a");
    SHOW(getxattr("f", "user.a", 0, 0));
    SHOW(getxattr("f", "user.a", data, 4));
    SHOW(getxattr("f", "user.a", data, 5));
    SHOW(getxattr("f", "user.a", (void *)8, 5));
    SHOW(getxattr("f", "user.a", (void *)8, 0));
    SHOW(setxattr("f", "user.a", "other", 5, XATTR_CREATE));
    SHOW(setxattr("f", "user.b", "other", 5, XATTR_REPLACE));
    SHOW(setxattr("f", "user.b", "second", 6, XATTR_CREATE));
    SHOW(setxattr("f", "user.a", "longer value", 12, XATTR_REPLACE));
    SHOW(setxattr("f", "user.a", "x", 1, 4));
    SHOW(setxattr("f", "user.empty", 0, 0, 0));
    get("f", "user.a");
    get("f", "user.b");
    get("f", "user.empty");
    list("f", "f");
    SHOW(listxattr("f", 0, 0));
    SHOW(listxattr("f", data, 5));
    SHOW(listxattr("f", (void *)8, 100));
    SHOW(fgetxattr(fd, "user.b", data, 100));
    SHOW(fsetxattr(fd, "user.c", "third", 5, 0));
    SHOW(flistxattr(fd, data, 100));
    SHOW(fremovexattr(fd, "user.c"));
    SHOW(fremovexattr(fd, "user.c"));
    SHOW(removexattr("f", "user.b"));
    SHOW(removexattr("f", "user.b"));
    SHOW(removexattr("l", "user.empty"));
    list("f", "f");
    puts("-- names");
    SHOW(setxattr("f", "", "x", 1, 0));
    SHOW(setxattr("f", "user.", "x", 1, 0));
    SHOW(setxattr("f", "user", "x", 1, 0));
    SHOW(setxattr("f", "nothing.a", "x", 1, 0));
    SHOW(getxattr("f", "nothing.a", data, 1));
    SHOW(removexattr("f", "nothing.a"));
    SHOW(setxattr("f", "trusted.a", "x", 1, 0));
    SHOW(getxattr("f", "trusted.a", data, 1));
    SHOW(removexattr("f", "trusted.a"));
    SHOW(setxattr("f", "security.a", "x", 1, 0));
    SHOW(getxattr("f", "security.capability", data, 100));
    SHOW(removexattr("f", "security.a"));
    SHOW(setxattr("f", (void *)8, "x", 1, 0));
    SHOW(setxattr("f", "user.p", (void *)8, 1, 0));
    SHOW(setxattr("f", "user.p", data, 65537, 0));
    memset(name, 'n', sizeof name);
    memcpy(name, "user.", 5);
    name[255] = 0;
    SHOW(setxattr("f", name, "x", 1, 0));
    SHOW(getxattr("f", name, data, 100));
    SHOW(removexattr("f", name));
    name[255] = 'n';
    name[256] = 0;
    SHOW(setxattr("f", name, "x", 1, 0));
    SHOW(getxattr("f", name, data, 100));
    puts("-- kinds");
    SHOW(setxattr("d", "user.a", "of a directory", 14, 0));
    get("d", "user.a");
    SHOW(lsetxattr("l", "user.a", "x", 1, 0));
    SHOW(lgetxattr("l", "user.a", data, 100));
    SHOW(lremovexattr("l", "user.a"));
    SHOW(llistxattr("l", data, 100));
    SHOW(lgetxattr("f", "user.a", data, 100));
    SHOW(setxattr("p", "user.a", "x", 1, 0));
    SHOW(getxattr("p", "user.a", data, 100));
    SHOW(setxattr("dangling", "user.a", "x", 1, 0));
    SHOW(getxattr("none", "user.a", data, 100));
    SHOW(listxattr("none", data, 100));
    SHOW(setxattr("f/", "user.a", "x", 1, 0));
    SHOW(fsetxattr(99, "user.a", "x", 1, 0));
    SHOW(fsetxattr(99, "user.a", "x", 1, 9));
    int path = open("f", O_PATH), reading = open("f", O_RDONLY), ends[2];
    SHOW(fgetxattr(path, "user.a", data, 100));
    SHOW(fsetxattr(reading, "user.r", "x", 1, 0));
    pipe(ends);
    SHOW(fsetxattr(ends[0], "user.a", "x", 1, 0));
    SHOW(fgetxattr(ends[0], "user.a", data, 100));
    SHOW(setxattr("/proc/self/status", "user.a", "x", 1, 0));
    puts("-- permissions");
    chmod("f", 0444);
    SHOW(setxattr("f", "user.a", "x", 1, 0));
    SHOW(fsetxattr(fd, "user.a", "x", 1, 0));
    SHOW(removexattr("f", "user.a"));
    get("f", "user.a");
    chmod("f", 0200);
    get("f", "user.a");
    list("f", "f");
    SHOW(setxattr("f", "user.w", "x", 1, 0));
    chmod("f", 0644);
    puts("-- names that change");
    struct stat before, after;
    stat("f", &before);
    usleep(20000);
    setxattr("f", "user.t", "x", 1, 0);
    stat("f", &after);
    TRUE(before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    TRUE(before.st_ctim.tv_sec != after.st_ctim.tv_sec || before.st_ctim.tv_nsec != after.st_ctim.tv_nsec);
    link("f", "hard");
    get("hard", "user.a");
    rename("f", "g");
    get("g", "user.a");
    close(open("f", O_CREAT | O_RDWR, 0644));
    get("f", "user.a");
    list("g", "g");
    unlink("g");
    unlink("hard");
    SHOW(fgetxattr(fd, "user.a", data, 100));
    unlink("f");
    unlink("l");
    unlink("dangling");
    unlink("p");
    rmdir("d");
    chdir("..");
    rmdir("xattrs.d");
    return 0;
}
