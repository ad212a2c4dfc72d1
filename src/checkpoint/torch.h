#pragma once
/* Archives of torch.save: written for tensors of the plan, and read back, anyone's. */
#include <stdint.h>

#include "checkpoint/formats.h"
#include "checkpoint/pickle.h"

/* A whole archive with these tensors: the first `tensors` of w's file beginning at `first`, or one
 * tensor by itself when `single`. What pickles, torch.load gives back. */
void torch_archive(struct file_writer *w, uint64_t first, uint64_t tensors, bool single);
/* 0..n-1 in the order of their decimal names: the number after x, n after the last. */
uint64_t torch_next_name(uint64_t x, uint64_t n);

/* Larger directories and pickles are refused. */
#define TORCH_META_MAX (256u << 20)

/* Calls fn for each tensor with the place of its storage's bytes in the file. `place` and `bytes`
 * are those of the whole storage. */
typedef int (*torch_tensor_fn)(void *arg, const struct pickle_tensor *t, uint64_t place,
			       uint64_t bytes, struct pybuffer *py, struct err *e);

/* The archive in [begin, end) of the open file, with the requests that torch.load makes over a file
 * object, whose buffer has `buffer` bytes (READ_FRAMEWORK), or with few larger ones. */
int torch_read_archive(struct file_reader *r, uint64_t begin, uint64_t end, size_t buffer,
		       torch_tensor_fn fn, void *arg, struct err *e);
/* Checks what the pickle says of a tensor against the plan's. */
int torch_expect(struct file_reader *r, const struct pickle_tensor *t,
		 const struct checkpoint_tensor *want, uint64_t bytes, struct err *e);
