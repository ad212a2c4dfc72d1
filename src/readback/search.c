/* The results below the folders that were given, and how they are read: several at a time. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/map.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/transfer.h"
#include "os/sysinfo.h"
#include "readback/configuration.h"
#include "readback/record.h"
#include "readback/result_folder.h"
#include "result/json_room.h"
#include "result/seal.h"

/* What is found below the paths that were given. */
struct search {
	struct str_list folders;
	struct texts seen;
	struct records *out;
};

/* What a folder holds, by names. */
struct names {
	bool summary, result, rank, log, lock;
};

/* Files that sum up runs below them. */
static const char *const sums[] = {"repeat.json", "truth_table.json", "capacity.json"};

static void take_name(struct names *n, const char *name)
{
	uint32_t rank;

	n->summary = n->summary || strcmp(name, "summary.json") == 0;
	n->result = n->result || strcmp(name, "result.json") == 0;
	n->rank = n->rank || seal_rank_file(name, &rank);
	n->log = n->log || strcmp(name, "dlio.log") == 0;
	n->lock = n->lock || strcmp(name, RUN_LOCK_NAME) == 0;
}

static void take_sums(struct search *s, const char *folder, const char *name)
{
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		if (strcmp(name, sums[i]) == 0)
			str_list_add(&s->out->sums, path_join(folder, name));
}

/* Without summary.json: whether what is there is left of one of our results that had one. Runs that
 * only generate leave none, and DLIO's that did not end have no figures of the run. */
static bool lacks_summary(const char *folder, const struct names *n)
{
	struct err why = {0};
	json_t *result = n->result ? result_folder_json(folder, "result.json", &why) : NULL;
	bool lacks;

	if (result)
		lacks = author_of_result(result) && result_has_summary(result);
	else
		lacks = author_is_us(folder);
	json_decref(result);
	return lacks;
}

/* A run that has left no result: told only if it is one of ours. */
static void tell_unfinished(struct search *s, const char *folder, const struct names *n)
{
	char who[FILE_LOCK_WHO_MAX];

	/* the study that renamed it tells why it failed */
	if (str_ends(folder, ".failed") || !(n->lock || (n->log && author_is_us(folder))))
		return;
	str_list_add(
		&s->out->running,
		result_folder_is_used(folder, who)
			? result_folder_used_text(folder, who)
			: xasprintf("the run in '%s' did not end, and left no result", folder));
}

/* A result.json of ours without a summary: of a run that only generated, which is left out without
 * a word, or that ended early in its generation. */
static void tell_generated(struct search *s, const char *folder)
{
	json_t *result = result_folder_json(folder, "result.json", NULL);
	const char *reason = figure_text(part_whole(result), F_RUN_REASON);

	/* one that is complete has none */
	if (author_of_result(result) && reason && !str_ends(folder, ".failed"))
		str_list_add(
			&s->out->running,
			xasprintf("the run in '%s' ended before it trained, and has no figures: %s",
				  folder, reason));
	json_decref(result);
}

static void search_folders(struct search *s, const char *folder, int depth)
{
	struct names n = {0};
	DIR *d = WITH_MEMORY(folder_open(folder));
	int more = d ? 1 : -errno;
	struct dirent *entry;

	if (more == -ENOMEM)
		out_of_memory(); /* not a folder without results */
	while (more > 0 && (more = folder_next(d, &entry)) > 0) {
		AUTO_FREE char *below = NULL;
		struct stat st;

		take_name(&n, entry->d_name);
		take_sums(s, folder, entry->d_name);
		if (entry->d_name[0] == '.' || depth == RECORD_DEPTH_MAX)
			continue;
		below = path_join(folder, entry->d_name);
		/* links are not followed: they could lead round */
		if (lstat(below, &st) == 0 && S_ISDIR(st.st_mode))
			search_folders(s, below, depth + 1);
	}
	if (d)
		closedir(d);
	/* root's own, in the root of a file system */
	if (more < 0 && (d || strcmp(path_basename(folder), "lost+found") != 0))
		str_list_add(&s->out->unread, xasprintf("cannot search the folder '%s': %s", folder,
							strerror(-more)));
	if (n.summary || ((n.result || n.rank) && lacks_summary(folder, &n)))
		str_list_add(&s->folders, xstrdup(folder));
	else if (n.result)
		tell_generated(s, folder);
	else
		tell_unfinished(s, folder, &n);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts those from `first` on, and drops those that are there already. */
static void add_found(struct search *s, size_t first)
{
	struct str_list *out = &s->folders;
	size_t n = first;

	qsort(out->v + first, out->n - first, sizeof(*out->v), by_text);
	for (size_t i = first; i < out->n; i++) {
		size_t known = s->seen.n;

		if (texts_add(&s->seen, out->v[i]) == known)
			out->v[n++] = out->v[i];
		else
			free(out->v[i]);
	}
	out->n = n;
}

static int none_found(const struct search *s, const char *path, size_t running, size_t unread,
		      struct err *e)
{
	if (s->out->running.n > running)
		return err_set(e, ERR_DATA, "%s", s->out->running.v[running]);
	if (s->out->unread.n > unread)
		return err_set(e, ERR_DATA, "%s", s->out->unread.v[unread]);
	return err_set(e, ERR_USAGE,
		       "no result (summary.json) found in '%s' or up to %d levels below it", path,
		       RECORD_DEPTH_MAX);
}

static int record_find(struct search *s, const char *const *path, size_t n, struct err *e)
{
	const struct str_list *out = &s->folders;

	for (size_t i = 0; i < n; i++) {
		size_t before = out->n, len = strlen(path[i]);
		size_t running = s->out->running.n, unread = s->out->unread.n;
		AUTO_FREE char *trimmed = xstrdup(path[i]);

		while (len > 1 && trimmed[len - 1] == '/')
			trimmed[--len] = '\0';
		int kind = path_look(trimmed, e);

		if (kind < 0)
			return kind;
		if (kind != PATH_FOLDER)
			return err_set(e, ERR_USAGE,
				       "'%s' is not a folder: specify the folder of a result, or a "
				       "folder that contains results",
				       path[i]);
		search_folders(s, trimmed, 0);
		if (out->n == before)
			return none_found(s, path[i], running, unread, e);
		add_found(s, before);
	}
	return 0;
}

/* The folders alone; nothing is in the list so far. */
static int records_find(struct records *out, struct str_list *folders, const char *const *path,
			size_t n, struct err *e)
{
	struct search s = {.out = out};
	int rc;

	*out = (struct records){0};
	rc = record_find(&s, path, n, e);
	texts_release(&s.seen);
	*folders = s.folders;
	return rc;
}

int records_load(struct records *out, const char *const *path, size_t n, struct err *e)
{
	struct str_list folders = {0};
	int rc = records_find(out, &folders, path, n, e);

	if (rc == 0)
		out->v = xcalloc(folders.n, sizeof(*out->v));
	for (size_t i = 0; rc == 0 && i < folders.n; i++)
		record_load(&out->v[out->n++], folders.v[i]);
	str_list_release(&folders);
	return rc;
}

void records_release(struct records *r)
{
	for (size_t i = 0; i < r->n; i++)
		record_release(&r->v[i]);
	free(r->v);
	str_list_release(&r->running);
	str_list_release(&r->unread);
	str_list_release(&r->sums);
	*r = (struct records){0};
}

/* ---- read one after another, or several at a time where there are processors ---- */

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
		configuration_keep(configuration, of->texts);
	v->record[i].configuration = configuration;
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

		json_room_use(true);
		record_load(r, v->folders->v[i]);
		json_room_use(false);
		if (of->texts)
			configuration = configuration_find(r);
		if (of->look)
			of->look(of->arg, i, r);
		record_settle(r);
		json_room_clear();
		take_in_turn(v, i, configuration);
	}
	json_room_release();
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
