#include <dlfcn.h>
#include <stdio.h>

int fill_pot(int n);

int main(int argc, char **argv)
{
    int sum = fill_pot(argc);
    void *late = dlopen("libpending_late.so", RTLD_NOW);
    int (*heat_pot)(int) = late ? (int (*)(int))dlsym(late, "heat_pot") : 0;
    if (heat_pot)
        sum += heat_pot(sum) + heat_pot(7);
    printf("%d\n", sum);
    return argv[0] == 0;
}
