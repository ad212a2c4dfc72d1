#pragma once
/* Names that people bring from the frameworks: PyTorch's DataLoader, tf.data, DALI, training
 * scripts. A name whose meaning is that of a key, or follows from it, is read as the key, and a
 * note says so. Any other is an error that begins with what to write. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/node.h"

enum foreign_how {
	FOREIGN_SAME,       /* the value as it is */
	FOREIGN_AUTO,       /* the same, and AUTOTUNE is -1 */
	FOREIGN_SHUFFLE,    /* true: seed, false: off */
	FOREIGN_PER_WORKER, /* times reader.read_threads */
	FOREIGN_DROP_LAST,  /* true is what happens in any case, false does not exist: no key */
	FOREIGN_HINT,       /* `note` begins the error; `key` is NULL */
};

struct foreign_name {
	const char *name; /* the last part of what is typed: "num_workers" */
	const char *from; /* "PyTorch" */
	const char *key;  /* what it is read as */
	enum foreign_how how;
	const char *note; /* what else there is to know, or the hint; or NULL */
};

extern const struct foreign_name foreign_names[]; /* ends with name NULL */

/* The row for a key as typed, without "workload.": the bare name, or below a section where such a
 * name is looked for ("reader.num_workers", "dataloader.num_workers"). Keys of this program are
 * never looked up. NULL: there is none. */
const struct foreign_name *foreign_find(const char *key);
/* Whether `section` is one of a framework's configuration ("dataloader"), of which each key is read
 * for itself. */
bool foreign_section(const char *section);
/* The only key of the program whose last part is `name` ("batch_size"), in one of the sections of
 * which a key alone says enough. NULL: there is none; others, or several, are listed in `several`
 * ("reader.access, checkpoint.access"). */
const char *foreign_bare_key(const char *name, char *several, size_t several_size);
/* The key that a misspelt one most likely means, also one of a framework; or NULL. */
const char *foreign_nearest_key(const char *key);
/* The value of `key` that `v` stands for. A new node; NULL: an error that begins with what to
 * write; `typed` is the name as typed. `workers` is reader.read_threads, for FOREIGN_PER_WORKER. */
struct node *foreign_value(const struct foreign_name *f, const struct node *v, int64_t workers,
			   const char *typed, struct err *e);
