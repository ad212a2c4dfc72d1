/* Reads folders of datasets and the names in them. */
#include "dataset/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

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

bool listing_parse(const struct dataset *d, const char *name, uint64_t *index, uint64_t *total)
{
	size_t width, count;

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
		t->others++;
		return 0;
	}
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
	    total == s->d->name_total[s->kind] && index < s->d->files[s->kind])
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
