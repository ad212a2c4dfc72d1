#pragma once
/* Where a path leads that is to be written. */
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* What follows the links of a path's last component, and so does not stop at one that leads
 * nowhere, which open(2) with O_CREAT would, nor at an open file behind /proc. */
struct place {
	char *path;
	struct stat st;
	bool exists;
	bool magic; /* a link of /proc to an open file: its text is no path to go by */
};

/* Links of this user and of root are followed; others are -EACCES. 0, or negative with a sentence.
 * p->path is to be freed in any case. */
int place_find(const char *path, struct place *p, struct err *e);
/* Whether an owner is this user or root: what others put somewhere is not theirs to choose for us.
 */
bool place_trusted(uid_t owner);
/* -EACCES: "cannot write 'path': WHAT belongs to another user (uid N); TODO". */
int place_foreign(const char *path, const char *what, uid_t owner, const char *todo, struct err *e);
/* The descriptor of this process that a magic link stands for, or -1. */
int place_descriptor(const struct place *p);
/* N when the path is a name of this process's descriptor N (/dev/stdout, /dev/fd/N), else -1. */
int place_named_descriptor(const char *path);
