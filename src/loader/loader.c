/* Finds loaders by name; how a worker's time divides. */
#include "loader/loader.h"

#include <string.h>

const struct loader_ops *loader_find(const char *name)
{
	for (size_t i = 0; loader_table[i]; i++)
		if (strcmp(loader_table[i]->is.name, name) == 0)
			return loader_table[i];
	return NULL;
}

static void work_of(const struct worker_stat *s, struct batch_work *w)
{
	int64_t open = s->io.kind[IO_OPEN].busy_ns, meta = s->io.kind[IO_META].busy_ns;
	int64_t data = s->io.kind[IO_DATA].busy_ns;

	*w = (struct batch_work){.ns = {
					 [WORK_OPEN] = open,
					 [WORK_META] = meta,
					 [WORK_DATA] = data,
					 [WORK_DECODE] = s->read_ns - open - meta - data,
					 [WORK_PREPROCESS] = s->preprocess_ns,
					 [WORK_TRANSPORT] = s->transport_ns,
				 }};
}

void worker_work_begin(const struct worker_stat *s, struct batch_work *w)
{
	struct batch_work now;

	work_of(s, &now);
	for (int k = 0; k < WORK_KINDS; k++)
		w->ns[k] -= now.ns[k];
}

void worker_work_end(const struct worker_stat *s, struct batch_work *w)
{
	struct batch_work now;

	work_of(s, &now);
	batch_work_merge(w, &now);
}

void batch_work_merge(struct batch_work *into, const struct batch_work *from)
{
	for (int k = 0; k < WORK_KINDS; k++)
		into->ns[k] += from->ns[k];
}
