/* Reads folders of datasets and the names in them. */
#include "dataset/listing.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/transfer.h"
#include "dataset/manifest.h"
#include "workload/extension.h"

struct in_folder {
	listing_fn fn;
	void *arg;
	const char *folder;
};

static int one_entry(void *arg, const char *name, bool is_dir)
{
	const struct in_folder *f = arg;

	return f->fn(f->arg, f->folder, name, is_dir);
}

int listing_each(const struct dataset *d, struct store *store, enum dataset_kind kind,
		 listing_fn fn, void *arg, struct err *e)
{
	uint64_t n = d->subfolders[kind] ? d->subfolders[kind] : 1;
	char path[DATASET_PATH_MAX];
	struct in_folder f = {.fn = fn, .arg = arg, .folder = path};

	for (uint64_t i = 0; i < n; i++) {
		int rc = dataset_folder(d, kind, i, path, sizeof(path), e);

		if (rc == 0)
			rc = store_list(store, path, one_entry, &f, e);
		if (rc < 0 && rc != -ENOENT)
			return rc;
	}
	return 0;
}

/* Decimal digits at *s, at most 19, into *v; how many. */
static size_t digits(const char **s, uint64_t *v)
{
	size_t n = 0;

	for (*v = 0; **s >= '0' && **s <= '9' && n < 19; (*s)++, n++)
		*v = *v * 10 + (uint64_t)(**s - '0');
	return n;
}

static bool skip_text(const char **s, const char *text)
{
	size_t n = strlen(text);

	if (strncmp(*s, text, n) != 0)
		return false;
	*s += n;
	return true;
}

/* "shard.00012.mds", as it would be written. */
static bool parse_numbered(const struct dataset *d, const char *name, uint64_t *index)
{
	char want[32];
	const char *at = name;

	if (!skip_text(&name, d->format->is.numbered))
		return false;
	at = name;
	digits(&name, index);
	snprintf(want, sizeof(want), "%0*" PRIu64, d->format->is.digits, *index);
	return (size_t)(name - at) == strlen(want) && strncmp(at, want, strlen(want)) == 0 &&
	       skip_text(&name, ".") && strcmp(name, d->extension) == 0;
}

bool listing_parse(const struct dataset *d, const char *name, uint64_t *index, uint64_t *total)
{
	size_t width, count;

	if (d->format->is.numbered) {
		*total = LISTING_ANY_TOTAL;
		return parse_numbered(d, name, index);
	}
	if (!skip_text(&name, d->prefix) || !skip_text(&name, "_"))
		return false;
	width = digits(&name, index);
	if (!skip_text(&name, "_of_"))
		return false;
	count = *name == '0' ? 0 : digits(&name, total);
	return count > 0 && width == count && *index < *total && skip_text(&name, ".") &&
	       strcmp(name, d->extension) == 0;
}

static int watched(const struct listing_watch *watch)
{
	if (watch->done)
		atomic_fetch_add_explicit(watch->done, 1, memory_order_relaxed);
	if (stop_is_set(watch->stop))
		return ERR_CANCELED;
	return 0;
}

static int tell_canceled(int rc, struct err *e)
{
	return rc == ERR_CANCELED ? err_set(e, rc, "stopped on request") : rc;
}

struct totals_scan {
	const struct dataset *d;
	const struct listing_watch *watch;
	enum dataset_kind kind;
	struct listing_totals *out;
};

static int add_total(void *arg, const char *folder, const char *name, bool is_dir)
{
	struct totals_scan *s = arg;
	struct listing_totals *t = s->out;
	uint64_t index, total;
	unsigned i;

	(void)folder;
	if (watched(s->watch) < 0)
		return ERR_CANCELED;
	t->folders += is_dir;
	if (is_dir || name[0] == '.')
		return 0;
	if (!listing_parse(s->d, name, &index, &total)) {
		t->others += !s->d->format->is.folder_file ||
			     strcmp(name, s->d->format->is.folder_file) != 0;
		return 0;
	}
	if (total == LISTING_ANY_TOTAL)
		total = s->d->files[s->kind];
	for (i = 0; i < t->n && t->of[i].total != total; i++)
		continue;
	if (i == LISTING_TOTALS_MAX)
		return 0;
	if (i == t->n) {
		t->of[t->n].total = total;
		t->of[t->n++].wanted = 0;
	}
	t->of[i].wanted += index < s->d->files[s->kind];
	return 0;
}

int listing_totals(const struct dataset *d, struct store *store, enum dataset_kind kind,
		   const struct listing_watch *watch, struct listing_totals *out, struct err *e)
{
	struct totals_scan s = {.d = d, .watch = watch, .kind = kind, .out = out};

	memset(out, 0, sizeof(*out));
	return tell_canceled(listing_each(d, store, kind, add_total, &s, e), e);
}

struct missing_scan {
	const struct dataset *d;
	const struct listing_watch *watch;
	enum dataset_kind kind;
	unsigned char *seen; /* a bit a file */
};

static int mark_seen(void *arg, const char *folder, const char *name, bool is_dir)
{
	struct missing_scan *s = arg;
	uint64_t index, total;

	(void)folder;
	if (watched(s->watch) < 0)
		return ERR_CANCELED;
	if (!is_dir && listing_parse(s->d, name, &index, &total) &&
	    (total == s->d->name_total[s->kind] || total == LISTING_ANY_TOTAL) &&
	    index < s->d->files[s->kind])
		s->seen[index / 8] |= (unsigned char)(1u << index % 8);
	return 0;
}

int listing_missing(const struct dataset *d, struct store *store, enum dataset_kind kind,
		    const struct listing_watch *watch, uint64_t *found, uint64_t *first_missing,
		    struct err *e)
{
	struct missing_scan s = {.d = d, .watch = watch, .kind = kind};
	uint64_t files = d->files[kind];
	int rc;

	s.seen = try_calloc(files / 8 + 1, 1, "a bit for every file", e);
	if (!s.seen)
		return -ENOMEM;
	rc = tell_canceled(listing_each(d, store, kind, mark_seen, &s, e), e);
	*found = 0;
	*first_missing = files;
	for (uint64_t i = files; rc == 0 && i-- > 0;) {
		if (s.seen[i / 8] >> i % 8 & 1)
			++*found;
		else
			*first_missing = i;
	}
	free(s.seen);
	return rc;
}

#define DEPTH_MAX 16
#define FORMATS_MAX 32
#define SIZES_OF_ALL 4096
#define SIZES_ONE_IN 64

/* What is counted of each format while the folder is listed. */
struct tally {
	uint64_t files, folders, last_folder, sized;
	double mean, m2; /* Welford's sums over the sizes */
	struct found_kind kind[DATASET_KINDS];
	uint64_t last_of_kind[DATASET_KINDS];
	bool named_alike[DATASET_KINDS];
	char example[DATASET_PATH_MAX];
};

struct look {
	struct tally of[FORMATS_MAX];
	uint64_t others, folder; /* number of the folder being listed */
	struct err *e;
};

static int format_of(const char *name)
{
	for (int i = 0; format_facts_table[i] && i < FORMATS_MAX; i++)
		if (format_has_extension(format_facts_table[i], name))
			return i;
	return -1;
}

/* "img_03_of_64.npz": the prefix's length and 64. */
static bool parse_name(const char *name, size_t *prefix, uint64_t *total)
{
	const char *dot = strrchr(name, '.'), *p = dot;

	if (!dot)
		return false;
	while (p > name && isdigit((unsigned char)p[-1]))
		p--;
	if (p == dot || p - name < 4 || strncmp(p - 4, "_of_", 4) != 0)
		return false;
	*total = strtoull(p, NULL, 10);
	p -= 4;
	dot = p;
	while (p > name && isdigit((unsigned char)p[-1]))
		p--;
	if (p == dot || p == name || p[-1] != '_')
		return false;
	*prefix = (size_t)(p - 1 - name);
	return true;
}

static void count_name(struct tally *t, const struct look *l, enum dataset_kind kind,
		       const char *name, int depth)
{
	struct found_kind *k = &t->kind[kind];
	size_t n;
	uint64_t total;

	if (!parse_name(name, &n, &total) || n >= sizeof(k->prefix))
		return;
	if (k->files++ == 0) {
		snprintf(k->prefix, sizeof(k->prefix), "%.*s", (int)n, name);
		k->total = total;
		t->named_alike[kind] = true;
	} else if (k->total != total || strncmp(k->prefix, name, n) != 0 || k->prefix[n]) {
		t->named_alike[kind] = false;
	}
	if (depth > 1 && t->last_of_kind[kind] != l->folder) {
		t->last_of_kind[kind] = l->folder;
		k->subfolders++;
	}
}

static void count_size(struct tally *t, double bytes)
{
	double off = bytes - t->mean;

	t->sized++;
	t->mean += off / (double)t->sized;
	t->m2 += off * (bytes - t->mean);
}

/* Whether the folder has an entry, or one that is called as a file of a format. */
static int has_entry(const char *folder, bool of_format, bool *any, struct err *e)
{
	DIR *d = folder_open(folder);
	struct dirent *entry;
	int more = 0;

	if (!d)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_sys(e, errno, "cannot list '%s'", folder);
	while (!*any && (more = folder_next(d, &entry)) > 0) {
		const char *name = entry->d_name;

		*any = strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		       (!of_format || (entry->d_type != DT_DIR && format_of(name) >= 0));
	}
	closedir(d);
	return more < 0 ? err_sys(e, -more, "cannot list '%s'", folder) : 0;
}

int found_any(const char *folder, bool *any, struct err *e)
{
	AUTO_FREE char *manifest = path_join(folder, MANIFEST_NAME);
	int rc = 0;

	*any = file_exists(manifest);
	for (int kind = 0; rc == 0 && kind < DATASET_KINDS; kind++) {
		AUTO_FREE char *path = path_join(folder, dataset_kind_folder[kind]);

		rc = has_entry(path, false, any, e);
	}
	return rc;
}

int found_loose(const char *folder, bool *any, struct err *e)
{
	*any = false;
	return has_entry(folder, true, any, e);
}

/* `kind`: DATASET_KINDS outside of "train" and "valid". */
static void count_file(struct look *l, int dir, const char *folder, const char *name, int kind,
		       int depth)
{
	int at = format_of(name);
	struct tally *t = &l->of[at < 0 ? 0 : at];
	struct stat st;

	if (at < 0) {
		l->others += name[0] != '.';
		return;
	}
	if (t->files++ == 0)
		snprintf(t->example, sizeof(t->example), "%s/%s", folder, name);
	if (t->last_folder != l->folder) {
		t->last_folder = l->folder;
		t->folders++;
	}
	if ((t->files <= SIZES_OF_ALL || t->files % SIZES_ONE_IN == 0) &&
	    fstatat(dir, name, &st, 0) == 0)
		count_size(t, (double)st.st_size);
	if (kind < DATASET_KINDS)
		count_name(t, l, (enum dataset_kind)kind, name, depth);
}

/* The files first, so that those of a folder are counted together. */
static int list(struct look *l, const char *folder, int kind, int depth)
{
	DIR *d = folder_open(folder);
	struct dirent *entry;
	struct str_list below = {0};
	int rc = 0, more;

	if (!d)
		return err_sys(l->e, errno, "cannot list '%s'", folder);
	l->folder++;
	while ((more = folder_next(d, &entry)) > 0) {
		const char *name = entry->d_name;
		bool is_dir = entry->d_type == DT_DIR;
		struct stat st;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (entry->d_type != DT_DIR && entry->d_type != DT_REG)
			is_dir = fstatat(dirfd(d), name, &st, 0) == 0 && S_ISDIR(st.st_mode);
		/* links deeper down may lead round in a circle */
		if (is_dir && depth < DEPTH_MAX && (depth < 2 || entry->d_type == DT_DIR))
			str_list_add(&below, xstrdup(name));
		else if (!is_dir)
			count_file(l, dirfd(d), folder, name, kind, depth);
	}
	closedir(d);
	if (more < 0)
		rc = err_sys(l->e, -more, "cannot list '%s'", folder);
	for (size_t i = 0; i < below.n && rc == 0; i++) {
		AUTO_FREE char *path = path_join(folder, below.v[i]);
		int of = kind;

		for (int k = 0; depth == 0 && k < DATASET_KINDS; k++)
			if (strcmp(below.v[i], dataset_kind_folder[k]) == 0)
				of = k;
		rc = list(l, path, of, depth + 1);
	}
	str_list_release(&below);
	return rc;
}

int found_look(const char *folder, struct found *out, struct err *e)
{
	AUTO_FREE struct look *l = xcalloc(1, sizeof(*l));
	AUTO_FREE char *manifest = path_join(folder, MANIFEST_NAME);
	const struct tally *most = NULL;
	int rc;

	memset(out, 0, sizeof(*out));
	l->e = e;
	rc = path_look(folder, e);
	if (rc < 0 || rc == PATH_ABSENT)
		return rc < 0 ? rc : 0;
	if (rc != PATH_FOLDER)
		return err_set(e, ERR_USAGE, "'%s' is not a folder", folder);
	out->exists = true;
	rc = path_look(manifest, e);
	out->manifest = rc != PATH_ABSENT;
	if (rc != PATH_ABSENT)
		return rc < 0 ? rc : 0;
	rc = list(l, folder, DATASET_KINDS, 0);
	for (int i = 0; format_facts_table[i] && i < FORMATS_MAX; i++) {
		if (l->of[i].files && (!most || l->of[i].files > most->files)) {
			most = &l->of[i];
			out->format = format_facts_table[i];
		}
		out->others += l->of[i].files;
	}
	out->others += l->others;
	if (!most)
		return rc;
	out->files = most->files;
	out->others -= most->files;
	out->folders = most->folders;
	out->mean_bytes = most->mean;
	out->stdev_bytes = most->sized > 1 ? sqrt(most->m2 / (double)(most->sized - 1)) : 0;
	memcpy(out->example, most->example, sizeof(out->example));
	for (int k = 0; k < DATASET_KINDS; k++) {
		out->kind[k] = most->kind[k];
		if (!most->named_alike[k])
			out->kind[k].total = 0;
	}
	return rc;
}

bool found_is_dataset(const struct found *f)
{
	const struct found_kind *train = &f->kind[DATASET_TRAIN], *eval = &f->kind[DATASET_EVAL];

	return train->total > 0 && train->files == train->total &&
	       (eval->files == 0 || (eval->total > 0 && eval->files == eval->total &&
				     strcmp(eval->prefix, train->prefix) == 0));
}
