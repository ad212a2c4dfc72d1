/* The registers that a called function must keep, by the System V ABI of each processor. */
#include "base/virtual_switch.h"

#include <stdint.h>
#include <string.h>

#if !defined(VIRTUAL_UCONTEXT) && defined(__x86_64__)

#define SAVED 7 /* rbp, rbx, r12 to r15, where to go on */

__asm__(".text\n"
	".p2align 4\n"
	".type virtual_switch_stacks, @function\n"
	"virtual_switch_stacks:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size virtual_switch_stacks, . - virtual_switch_stacks\n");

/* Where the entry goes on is at the stack's end, as if something had called it: 8 beside 16. */
static void *first_frame(char *end, void (*entry)(void))
{
	uintptr_t *at = (uintptr_t *)(void *)(end - 8) - SAVED;

	memset(at, 0, SAVED * sizeof(*at));
	at[SAVED - 1] = (uintptr_t)entry;
	return at;
}

#elif !defined(VIRTUAL_UCONTEXT) && defined(__aarch64__)

#define SAVED 20 /* x19 to x30, d8 to d15 */

__asm__(".text\n"
	".p2align 4\n"
	".type virtual_switch_stacks, %function\n"
	"virtual_switch_stacks:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size virtual_switch_stacks, . - virtual_switch_stacks\n");

/* The entry is in x30. */
static void *first_frame(char *end, void (*entry)(void))
{
	uintptr_t *at = (uintptr_t *)(void *)end - SAVED;

	memset(at, 0, SAVED * sizeof(*at));
	at[11] = (uintptr_t)entry;
	return at;
}

#endif

#ifdef SAVED
void virtual_switch_stacks(void **from, void *to);

void virtual_context_make(struct virtual_context *c, void *stack, size_t bytes, void (*entry)(void))
{
	c->sp = first_frame((char *)stack + bytes, entry);
}

void virtual_context_switch(struct virtual_context *from, struct virtual_context *to)
{
	virtual_switch_stacks(&from->sp, to->sp);
}
#else
void virtual_context_make(struct virtual_context *c, void *stack, size_t bytes, void (*entry)(void))
{
	getcontext(&c->u);
	c->u.uc_stack.ss_sp = stack;
	c->u.uc_stack.ss_size = bytes;
	c->u.uc_link = NULL;
	makecontext(&c->u, entry, 0);
}

void virtual_context_switch(struct virtual_context *from, struct virtual_context *to)
{
	swapcontext(&from->u, &to->u);
}
#endif
