#pragma once
/* Reading archives of torch.save, anyone's. */
#include <stdint.h>

#include "checkpoint/formats.h"
#include "checkpoint/pickle.h"

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
/* All of the file as the plan has it. */
int torch_read(struct file_reader *r, struct err *e);
/* Checks what the pickle says of a tensor against the plan's. */
int torch_expect(struct file_reader *r, const struct pickle_tensor *t,
		 const struct checkpoint_tensor *want, uint64_t bytes, struct err *e);
