/* The two words of a signal frame that a handler changes to go elsewhere. */
#if defined __x86_64__
#define PC(context) (((u64 *)(context))[5 + 16])
#define SP(context) (((u64 *)(context))[5 + 15])
#define LEAVE(context) (PC(context) = *(u64 *)SP(context), SP(context) += 8)
#elif defined __riscv
#define PC(context) (((u64 *)(context))[22])
#define SP(context) (((u64 *)(context))[22 + 2])
#define LEAVE(context) (PC(context) = ((u64 *)(context))[22 + 1])
#else
#define PC(context) (((u64 *)(context))[22 + 33])
#define SP(context) (((u64 *)(context))[22 + 32])
#define LEAVE(context) (PC(context) = ((u64 *)(context))[22 + 1 + 30])
#endif
