#include <stdint.h>
#include <stddef.h>
int LLVMFuzzerTestOneInput(const uint8_t*d,size_t n){if(n>2&&d[0]==72&&d[1]==105)__builtin_trap();return 0;}
