#include "format/tar/tar_walk.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/saturate.h"

void tar_walk_begin(struct tar_walk *w, tar_take_fn *take, void *arg, unsigned char *extra)
{
	w->take = take;
	w->arg = arg;
	w->extra = extra;
	w->offset = w->skip = 0;
	w->begun = w->bad = false;
	w->key_bytes = w->extensions_bytes = 0;
}

static int at_offset(uint64_t offset, int rc, struct err *e)
{
	if (e)
		err_wrap(e, "the member at offset %" PRIu64, offset);
	return rc;
}

static int cut_short(uint64_t got, uint64_t n, uint64_t from, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the archive ends at offset %" PRIu64 ", within %" PRIu64
		       " bytes at offset %" PRIu64 ": it is truncated",
		       from + got, n, from);
}

/* The next n bytes; ERR_DATA when the archive ends before. */
static int exactly(struct tar_walk *w, unsigned char *out, uint64_t n, struct err *e)
{
	uint64_t from = w->offset;
	ssize_t got = w->take(w->arg, out, n, e);

	if (got < 0)
		return (int)got;
	w->offset += (uint64_t)got;
	return (uint64_t)got == n ? 0 : cut_short((uint64_t)got, n, from, e);
}

/* What is left of the last member, and its padding, is asked for only with the next header. 0: the
 * archive ends in front of it. */
static int next_header(struct tar_walk *w, struct tar_header *h, struct err *e)
{
	unsigned char block[TAR_BLOCK];
	uint64_t from;
	ssize_t got;
	int rc = exactly(w, NULL, w->skip, e);

	w->skip = 0;
	if (rc < 0)
		return rc;
	from = w->offset;
	got = w->take(w->arg, block, sizeof(block), e);
	if (got < 0)
		return (int)got;
	w->offset += (uint64_t)got;
	if (got == 0 && from > 0)
		return 0;
	if ((size_t)got < sizeof(block))
		return cut_short((uint64_t)got, sizeof(block), from, e);
	rc = tar_get_header(block, h, e);
	return rc < 0 ? at_offset(from, rc, e) : 1;
}

static int take_extra(struct tar_walk *w, const struct tar_header *h, struct err *e)
{
	uint64_t at = w->offset - TAR_BLOCK;
	int rc;

	if (h->kind == TAR_LONG_LINK || h->kind == TAR_PAX_ALL) {
		w->skip = tar_padded(h->bytes);
		return 0;
	}
	if (h->bytes > TAR_EXTRA_MAX)
		return err_set(e, ERR_DATA,
			       "the extended header at offset %" PRIu64 " has %" PRIu64
			       " bytes; at most %u are read",
			       at, h->bytes, TAR_EXTRA_MAX);
	rc = exactly(w, w->extra, h->bytes, e);
	w->skip = tar_padded(h->bytes) - h->bytes;
	if (rc == 0)
		rc = tar_member_extra(&w->member, h->kind, w->extra, (size_t)h->bytes, e);
	return rc < 0 ? at_offset(at, rc, e) : 0;
}

int tar_walk_next(struct tar_walk *w, struct err *e)
{
	bool extended = false;
	struct tar_header h;
	int rc;

	tar_member_begin(&w->member);
	for (;;) {
		rc = next_header(w, &h, e);
		if (rc == 0 && extended)
			return cut_short(0, TAR_BLOCK, w->offset, e);
		if (rc <= 0 || h.kind == TAR_END)
			return rc < 0 ? rc : 0;
		if (h.kind != TAR_FILE && h.kind != TAR_OTHER) {
			rc = take_extra(w, &h, e);
			if (rc < 0)
				return rc;
			extended = true;
			continue;
		}
		rc = tar_member_end(&w->member, &h, e);
		if (rc < 0)
			return at_offset(w->offset - TAR_BLOCK, rc, e);
		w->skip = tar_padded(w->member.bytes);
		if (w->member.is_file)
			return 1;
		tar_member_begin(&w->member);
		extended = false;
	}
}

int tar_walk_data(struct tar_walk *w, unsigned char *out, struct err *e)
{
	uint64_t n = w->member.bytes;
	int rc = exactly(w, out, n, e);

	w->skip = tar_padded(n) - n;
	return rc;
}

/* ---- samples ---- */

/* Extensions are compared as the library's lower() leaves them. */
static bool same_extension(const char *a, const char *b)
{
	while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
		a++;
		b++;
	}
	return tolower((unsigned char)*a) == tolower((unsigned char)*b);
}

/* Whether the sample has the extension already; from now on it has. */
static bool was_there(struct tar_walk *w, const char *extension)
{
	size_t n = strlen(extension) + 1;

	/* the library keeps these two beside the members */
	if (same_extension(extension, "__key__") || same_extension(extension, "__url__"))
		return true;
	for (size_t at = 0; at < w->extensions_bytes; at += strlen(w->extensions + at) + 1)
		if (same_extension(w->extensions + at, extension))
			return true;
	if (n <= sizeof(w->extensions) - w->extensions_bytes) {
		memcpy(w->extensions + w->extensions_bytes, extension, n);
		w->extensions_bytes += n;
	}
	return false;
}

int tar_walk_group(struct tar_walk *w, enum tar_belongs *out, const char **extension,
		   bool *bad_before, struct err *e)
{
	const struct tar_member *m = &w->member;
	size_t key;

	*out = TAR_TO_META;
	*bad_before = false;
	if (tar_is_meta(m->name))
		return 0;
	*out = TAR_TO_NOTHING;
	if (!tar_sample_key(m->name, &key, extension))
		return 0;
	*out = TAR_TO_SAMPLE;
	if (!w->begun || key != w->key_bytes || memcmp(w->key, m->name, key) != 0) {
		*bad_before = w->begun && w->bad;
		*out = TAR_TO_NEXT;
		w->begun = true;
		w->bad = false;
		w->key_bytes = key;
		memcpy(w->key, m->name, key);
		w->extensions_bytes = 0;
	}
	if (was_there(w, *extension))
		return err_set(e, ERR_DATA,
			       "the member '%.120s' is there twice, as another one of its sample "
			       "has this extension: WebDataset ends with an error there",
			       m->name);
	if (m->bytes > 0 && same_extension(*extension, "__bad__"))
		w->bad = true;
	return 0;
}

int tar_walk_count(struct tar_walk *w, struct tar_counts *out, struct err *e)
{
	uint64_t bytes = 0;
	int rc;

	*out = (struct tar_counts){0};
	while ((rc = tar_walk_next(w, e)) > 0) {
		uint64_t at = w->offset - TAR_BLOCK;
		enum tar_belongs to;
		const char *extension;
		bool bad, had = w->begun;

		rc = tar_walk_group(w, &to, &extension, &bad, e);
		if (rc < 0)
			return at_offset(at, rc, e);
		out->members++;
		if (to == TAR_TO_NEXT) {
			out->samples += had && !bad;
			out->bytes = u64_sum(out->bytes, bad ? 0 : bytes);
			bytes = 0;
		}
		if (to == TAR_TO_NEXT || to == TAR_TO_SAMPLE)
			bytes = u64_sum(bytes, w->member.bytes);
		if (bytes > out->most_bytes)
			out->most_bytes = bytes;
	}
	if (rc == 0 && w->begun && !w->bad) {
		out->samples++;
		out->bytes = u64_sum(out->bytes, bytes);
	}
	return rc;
}
