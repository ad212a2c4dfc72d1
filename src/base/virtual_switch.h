#pragma once
/* From one stack to another. Private to virtual.c. */
#include <stddef.h>

#if !defined(VIRTUAL_UCONTEXT) && (defined(__x86_64__) || defined(__aarch64__))
struct virtual_context {
	void *sp; /* all else lies there */
};
#else
#include <ucontext.h>
struct virtual_context {
	ucontext_t u;
};
#endif

/* One that begins in `entry`, which never returns, on the stack [stack, stack + bytes). The stack's
 * end is aligned to 16 bytes. */
void virtual_context_make(struct virtual_context *c, void *stack, size_t bytes,
			  void (*entry)(void));
/* Leaves off here, to go on when somebody switches to *from, and goes on with *to. Registers that a
 * function may change are not kept, nor is the mode of floating point arithmetic. */
void virtual_context_switch(struct virtual_context *from, struct virtual_context *to);
