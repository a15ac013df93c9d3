/* A thread that is stopped after each instruction, by x86's trap flag: SIGTRAP follows each. Other processors leave
   that to a debugger; there such a program goes on without stops. */
#include <ucontext.h>

#ifdef __x86_64__
#define STEPS 1
#define BEGIN_TO_STEP() __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc")
#define END_TO_STEP() __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc")
#define GO_ON(context) (((ucontext_t *)(context))->uc_mcontext.gregs[REG_EFL] &= ~0x100)
#else
#define STEPS 0
#define BEGIN_TO_STEP() ((void)0)
#define END_TO_STEP() ((void)0)
#define GO_ON(context) ((void)(context))
#endif
