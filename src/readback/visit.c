/* Results read one after another, or several at a time where there are processors. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "os/sysinfo.h"
#include "base/thread.h"
#include "readback/configuration.h"
#include "readback/record.h"

/* For fewer results, threads are not worth starting. */
#define RESULTS_FOR_THREADS 32
#define THREADS_MAX 8
/* A file may nest its values 2,048 deep (jansson's limit). */
#define VISITOR_STACK ((size_t)8 << 20)

struct visiting {
	const struct record_visit *visit;
	const struct str_list *folders;
	struct run_record *record;
	atomic_size_t next; /* to be read */
	pthread_mutex_t lock;
	pthread_cond_t moved;
	size_t turn; /* to be taken; guarded */
};

/* In the order of the results. */
static void take_in_turn(struct visiting *v, size_t i, struct configuration *configuration)
{
	const struct record_visit *of = v->visit;

	pthread_mutex_lock(&v->lock);
	while (v->turn != i)
		pthread_cond_wait(&v->moved, &v->lock);
	if (configuration)
		v->record[i].configuration = configuration_keep(configuration, of->texts);
	if (of->take)
		of->take(of->arg, i, &v->record[i]);
	v->turn++;
	pthread_cond_broadcast(&v->moved);
	pthread_mutex_unlock(&v->lock);
}

static void *visit_all(void *arg)
{
	struct visiting *v = arg;
	const struct record_visit *of = v->visit;
	size_t i;

	while ((i = atomic_fetch_add_explicit(&v->next, 1, memory_order_relaxed)) < v->folders->n) {
		struct run_record *r = &v->record[i];
		struct configuration *configuration = NULL;

		record_load(r, v->folders->v[i]);
		if (of->texts)
			configuration = configuration_find(r);
		if (of->look)
			of->look(of->arg, i, r);
		record_settle(r);
		take_in_turn(v, i, configuration);
	}
	return NULL;
}

static void visit_with_threads(struct visiting *v, size_t threads)
{
	pthread_t id[THREADS_MAX];
	struct err ignored = {0};
	size_t n = 0;

	while (n + 1 < threads &&
	       thread_start(&id[n], visit_all, v, VISITOR_STACK, "read", &ignored) == 0)
		n++;
	visit_all(v); /* without other threads everything */
	while (n)
		pthread_join(id[--n], NULL);
}

int records_visit(struct records *out, const char *const *path, size_t n,
		  const struct record_visit *visit, struct err *e)
{
	struct visiting v = {.visit = visit};
	struct str_list folders = {0};
	size_t threads = 1, usable = (size_t)fmax(1, host_usable_cpus());
	int rc = records_find(out, &folders, path, n, e);

	if (rc == 0) {
		out->v = xcalloc(folders.n, sizeof(*out->v));
		out->n = folders.n;
		v.folders = &folders;
		v.record = out->v;
		pthread_mutex_init(&v.lock, NULL);
		pthread_cond_init(&v.moved, NULL);
		if (visit->begin)
			visit->begin(visit->arg, folders.n);
		if (folders.n >= RESULTS_FOR_THREADS)
			threads = usable < THREADS_MAX ? usable : THREADS_MAX;
		visit_with_threads(&v, threads);
		pthread_mutex_destroy(&v.lock);
		pthread_cond_destroy(&v.moved);
	}
	str_list_release(&folders);
	return rc;
}
