#include "base/named_output.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/path.h"
#include "base/place.h"

struct output {
	dev_t dev;
	ino_t ino;  /* of the file; of one that is not there, of its folder */
	char *name; /* in that folder; NULL: it is there */
	char *said; /* as named */
	_Atomic bool read;
};
static struct output output[NAMED_OUTPUTS_MAX];
static unsigned outputs;

/* 1, or 0 of what is no file that could be lost: a pipe, a device, what cannot be looked at. */
static int identify(const char *path, struct output *o)
{
	struct place p;
	struct err e;
	struct stat st;
	int rc = place_find(path, &p, &e);

	if (rc == 0 && p.exists) {
		rc = S_ISREG(p.st.st_mode) && !p.magic;
		o->dev = p.st.st_dev;
		o->ino = p.st.st_ino;
	} else if (rc == 0) {
		AUTO_FREE char *folder = path_dirname(p.path);

		rc = stat(folder, &st) == 0;
		if (rc) {
			const char *slash = strrchr(p.path, '/');

			o->dev = st.st_dev;
			o->ino = st.st_ino;
			o->name = xstrdup(slash ? slash + 1 : p.path);
		}
	}
	free(p.path);
	return rc == 1;
}

static bool same(const struct output *a, const struct output *b)
{
	return a->dev == b->dev && a->ino == b->ino && !a->name == !b->name &&
	       (!a->name || strcmp(a->name, b->name) == 0);
}

int named_output_add(const char *path, struct err *e)
{
	struct output o = {0};

	if (outputs == NAMED_OUTPUTS_MAX || !identify(path, &o))
		return 0;
	for (unsigned i = 0; i < outputs; i++)
		if (same(&output[i], &o)) {
			free(o.name);
			return err_set(e, ERR_USAGE,
				       "two outputs would be written to the same file ('%s' and "
				       "'%s'): name a file for each",
				       output[i].said, path);
		}
	o.said = xstrdup(path);
	output[outputs++] = o;
	return 0;
}

void named_output_read(const struct stat *st)
{
	for (unsigned i = 0; i < outputs; i++)
		if (!output[i].name && output[i].dev == st->st_dev && output[i].ino == st->st_ino)
			atomic_store_explicit(&output[i].read, true, memory_order_relaxed);
}

int named_output_check(const char *path, const struct stat *st, struct err *e)
{
	for (unsigned i = 0; i < outputs; i++)
		if (atomic_load_explicit(&output[i].read, memory_order_relaxed) &&
		    output[i].dev == st->st_dev && output[i].ino == st->st_ino)
			return err_set(e, ERR_USAGE,
				       "cannot write '%s': this command reads it, and its content "
				       "would be lost; name another file",
				       path);
	return 0;
}
