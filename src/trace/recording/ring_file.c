/* Rings are read a chunk at a time; a heap of chunks gives the events in order. */
#include "trace/recording/recording.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/str.h"
#include "base/transfer.h"
#include "base/vector.h"

#define STEP 4096 /* chunks begin at multiples of it */

/* A chunk, and where its reading is. */
struct cursor {
	uint64_t at; /* of its events in the file */
	uint32_t used, next, ring, sum;
	bool begun, ended, checked;
	int64_t tid, last_ns, last_end;
	uint64_t last_serial;
	uint8_t *data;
	char *name; /* the last one, for front coding */
	size_t name_len;
	int64_t key; /* begin of the next event, never less than before */
	struct ring_event event;
};

struct ring_merge {
	char *folder;
	struct cursor *cursor;
	size_t cursors, room;
	uint32_t *heap;
	size_t n;
	char text[2][RING_PATH_MAX + 1];
};

/* ---- the folder ---- */

bool ring_folder(const char *path)
{
	AUTO_FREE char *name = path_join(path, RING_JOB_NAME);
	struct stat st;

	/* one that cannot be looked at: opening it says why */
	return lstat(name, &st) == 0 || errno == EACCES || errno == EIO || errno == EINTR;
}

int ring_folder_check(const char *path, double *processors, struct err *e)
{
	static const char any[] = "stoker recording ", key[] = "\nprocessors ";
	AUTO_FREE char *name = path_join(path, RING_JOB_NAME);
	char text[256] = {0};
	const char *said;
	int fd = file_open(name, NULL, e);
	ssize_t n;

	if (fd < 0)
		return e ? e->code : -EIO;
	n = pread_fully(fd, text, sizeof(text) - 1, 0);
	close(fd);
	if (n < 0)
		return err_sys(e, (int)-n, "%s: cannot be read", name);
	if (n > 0 &&
	    (str_starts(text, RING_JOB_MAGIC) || str_starts(text, RING_JOB_MAGIC_WITHOUT_HTTP) ||
	     str_starts(text, RING_JOB_MAGIC_UNCHECKED))) {
		said = strstr(text, key);
		*processors = said ? strtod(said + strlen(key), NULL) : 0;
		return 0;
	}
	text[strcspn(text, "\n")] = '\0';
	if (n > 0 && str_starts(text, any))
		return err_set(e, ERR_DATA,
			       "%s: a recording of version %s; this program reads version %.1s: "
			       "use the program that made it, or record again",
			       path, text + strlen(any), &RING_JOB_MAGIC[strlen(any)]);
	return err_set(e, ERR_DATA, "%s: its file '" RING_JOB_NAME "' is not that of a recording",
		       path);
}

static int open_ring(const char *folder, const char *name, struct stat *st)
{
	char *path = path_join(folder, name);
	int fd = file_open(path, st, NULL);

	free(path);
	return fd;
}

static bool sane(int64_t ns)
{
	return ns > INT64_MIN / 4 && ns < INT64_MAX / 4;
}

static void harm(struct ring_files *f, const char *name, uint64_t at, const char *why)
{
	char text[160];

	snprintf(text, sizeof(text), "%.40s at byte %" PRIu64 ": %s", name, at, why);
	if (f->harmed.n < RING_HARMED)
		texts_add(&f->harmed, text);
}

/* The same of a file that could not be opened or read: `rc` as file_open gives it. */
static void harm_unread(struct ring_files *f, const char *name, uint64_t at, int rc)
{
	harm(f, name, at, rc == ERR_KIND ? "it is no regular file" : strerror(-rc));
}

/* Takes the guards off so many words; one that does not match is 0. */
static bool take_guards(uint64_t *word, size_t n)
{
	bool sound = true;

	for (size_t i = 0; i < n; i++)
		if (!ring_value(&word[i])) {
			word[i] = 0;
			sound = false;
		}
	return sound;
}

/* The head as it was meant; what does not match its checksum is left out, and told. */
static bool check_head(struct ring_files *f, const char *name, struct ring_head *h)
{
	bool ends = h->end_ns && ring_end_sum(h) == h->end_sum, sound = ends || !h->end_ns;

	if (ring_begin_sum(h) != h->begin_sum)
		return false;
	if (!ends) {
		h->last = (struct ring_io){0};
		h->own_last = 0;
		h->end_ns = 0;
	}
	sound &= take_guards(&h->own_rchar, 2);
	sound &= take_guards(&h->allocated, (offsetof(struct ring_head, begin_sum) -
					     offsetof(struct ring_head, allocated)) /
						    sizeof(uint64_t));
	if (!sound) {
		f->damaged++;
		harm(f, name, 0, "its counts do not match their checksums, and are left out");
	}
	return true;
}

static bool read_head(struct ring_files *f, int fd, const char *name, struct ring_info *r)
{
	struct ring_head *h = &r->head;
	const char *why = "it is cut, had no room, or is no ring";
	ssize_t n = pread_fully(fd, h, sizeof(*h), 0);

	if (n < 0)
		why = strerror((int)-n);
	if (n == (ssize_t)sizeof(*h)) {
		r->checked = memcmp(h->magic, RING_MAGIC, sizeof(h->magic)) == 0;
		if (r->checked && !check_head(f, name, h)) {
			why = "its head does not match its checksum";
		} else if ((r->checked ||
			    memcmp(h->magic, RING_MAGIC_UNCHECKED, sizeof(h->magic)) == 0) &&
			   h->head_bytes == RING_PAGE && sane(h->start_ns) &&
			   sane(h->start_real_ns) && sane(h->end_ns)) {
			if (!r->checked)
				h->filtered = h->filtered_children = 0;
			return true;
		}
	}
	harm(f, name, 0, why);
	return false;
}

static void add_cursor(struct ring_files *f, uint32_t ring, uint64_t at, const struct ring_chunk *c,
		       uint32_t used)
{
	struct ring_merge *m = f->merge;

	VECTOR_PUSH(m->cursor, m->cursors, m->room,
		    {.at = at + sizeof(*c),
		     .used = used,
		     .sum = c->sum,
		     /* of a part, nothing can be told */
		     .checked = f->ring[ring].checked && used == c->used,
		     .ring = ring,
		     .tid = c->tid,
		     .last_ns = c->base_ns});
}

static void add_counts(struct ring_counts *to, const struct ring_counts *c)
{
	to->rchar += c->rchar;
	to->wchar += c->wchar;
	to->excluded_calls += c->excluded_calls;
	to->excluded_read += c->excluded_read;
	to->excluded_written += c->excluded_written;
	to->cut_off += c->cut_off;
}

/* Whether this is the header of a chunk, as far as it says. */
static bool is_chunk(const struct ring_info *r, const struct ring_chunk *c)
{
	return c->magic == (r->checked ? ring_chunk_magic(c) : RING_CHUNK_MAGIC) &&
	       c->bytes >= STEP && c->bytes % STEP == 0 && c->bytes <= RING_CHUNK_MOST &&
	       sane(c->base_ns);
}

/* Where the chunk behind one that is damaged may begin; 0: nowhere. */
static uint64_t behind_damage(int fd, uint64_t at)
{
	off_t data = lseek(fd, (off_t)(at + STEP), SEEK_DATA);

	return data < 0 || (uint64_t)data < at + STEP ? 0 : (uint64_t)data / STEP * STEP;
}

static void take_chunk(struct ring_files *f, uint32_t ring, uint64_t at, struct ring_chunk *c,
		       uint64_t there)
{
	struct ring_info *r = &f->ring[ring];
	uint64_t most = c->bytes - sizeof(*c), used = c->used <= most ? c->used : most;

	if (r->checked && c->used > most) {
		f->damaged++;
		harm(f, r->name, at, "its checksum does not match, and it is left out");
		used = 0;
	} else if (used > there || used < c->used) {
		f->damaged++;
		harm(f, r->name, at, "it is cut");
		used = used < there ? used : there;
	}
	if (r->checked && !take_guards(&c->counts.rchar, sizeof(c->counts) / sizeof(uint64_t))) {
		f->damaged++;
		harm(f, r->name, at, "its counts do not match their checksums, and are left out");
	}
	add_counts(&r->counts, &c->counts);
	f->event_bytes += used;
	if (used > 0)
		add_cursor(f, ring, at, c, (uint32_t)used);
}

static void find_chunks(struct ring_files *f, uint32_t ring, int fd, uint64_t size)
{
	struct ring_info *r = &f->ring[ring];
	uint64_t at = RING_PAGE, end = RING_PAGE + (r->head.allocated - r->head.refused);
	bool bad = false;
	/* a process that ended by itself has begun all that it made */
	const bool begun = r->checked && r->head.end_ns != 0 && r->head.refused == 0;

	while (at && at + sizeof(struct ring_chunk) <= size) {
		struct ring_chunk c;
		ssize_t n = pread_fully(fd, &c, sizeof(c), (off_t)at);

		if (n != (ssize_t)sizeof(c)) {
			f->damaged++;
			harm(f, r->name, at, n < 0 ? strerror((int)-n) : "it is cut");
			return;
		}
		if (!is_chunk(r, &c)) {
			/* one that was made and not begun, or damage: the next is looked for; of
			 * what lies between nothing is known */
			const bool wrong = c.magic != 0 || (begun && at < end);

			if (wrong && !(r->checked && bad)) {
				f->damaged++;
				harm(f, r->name, at,
				     c.magic ? "it is no block of a ring" : "it is empty");
			}
			bad = wrong || bad;
			at = behind_damage(fd, at);
			continue;
		}
		bad = false;
		take_chunk(f, ring, at, &c, size - at - sizeof(c));
		at += c.bytes;
	}
	if (r->checked && at && at < end && size < end && r->head.allocated >= r->head.refused) {
		f->damaged++;
		harm(f, r->name, size, "it is cut");
	}
}

/* What the processes of a host share. */
static void read_control(const char *folder, const char *name, struct ring_files *f)
{
	struct ring_control c = {0};
	struct stat st;
	int fd = open_ring(folder, name, &st);
	ssize_t n = fd < 0 ? fd : pread_fully(fd, &c, sizeof(c), 0);

	if (fd >= 0)
		close(fd);
	if (n == (ssize_t)sizeof(c) && memcmp(c.magic, RING_CONTROL_MAGIC, sizeof(c.magic)) == 0 &&
	    ring_value(&c.rings) && ring_value(&c.cut)) {
		f->begun += c.rings;
		f->cut += c.cut;
	} else if (n != offsetof(struct ring_control, rings)) {
		f->unread++;
		if (n < 0)
			harm_unread(f, name, 0, (int)n);
		else
			harm(f, name, 0, "it is cut or damaged");
	}
}

static bool read_end(const char *folder, const char *name, struct ring_files *f)
{
	struct stat st;
	int fd = open_ring(folder, name, &st);
	struct ring_end e;
	size_t room = f->ends, each = 0;

	if (fd < 0) {
		harm_unread(f, name, 0, fd);
		return false;
	}
	f->bytes += (uint64_t)st.st_blocks * 512;
	for (off_t at = 0; f->ends < RINGS_MAX; at += (off_t)each) {
		ssize_t n = pread_fully(fd, &e, sizeof(e), at);
		bool checked = n == (ssize_t)sizeof(e) &&
			       memcmp(e.magic, RING_END_MAGIC, sizeof(e.magic)) == 0;

		each = checked ? sizeof(e) : offsetof(struct ring_end, sum);
		if (n == 0)
			break;
		if (checked ? ring_sum(RING_SUM, &e, offsetof(struct ring_end, sum)) != e.sum
			    : n < (ssize_t)each || memcmp(e.magic, RING_END_MAGIC_UNCHECKED,
							  sizeof(e.magic)) != 0) {
			f->damaged++;
			harm(f, name, (uint64_t)at,
			     n < 0 ? strerror((int)-n)
				   : "it is cut, or does not match its checksum");
			break;
		}
		VECTOR_PUSH(f->end, f->ends, room, e);
	}
	close(fd);
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct ring_info *x = a, *y = b;
	int64_t p = x->head.start_real_ns, q = y->head.start_real_ns;

	if (x->head.host == y->head.host) {
		p = x->head.start_ns;
		q = y->head.start_ns;
	}
	return p != q ? ORDER(p, q) : strcmp(x->name, y->name);
}

/* Hosts have clocks of their own: each is tied to the time of day once, at its first process. */
static void tie_clocks(struct ring_files *f)
{
	int64_t first = f->rings ? f->ring[0].head.start_real_ns : 0;

	for (size_t i = 0; i < f->rings; i++)
		if (f->ring[i].head.start_real_ns < first)
			first = f->ring[i].head.start_real_ns;
	for (size_t i = 0; i < f->rings; i++) {
		struct ring_info *r = &f->ring[i];

		r->shift_ns = r->head.start_real_ns - first - r->head.start_ns;
		for (size_t k = 0; k < i && k < 64; k++)
			if (f->ring[k].head.host == r->head.host) {
				r->shift_ns = f->ring[k].shift_ns;
				break;
			}
	}
	f->start_s = first / NS_PER_S;
}

static int list_folder(struct ring_files *f, const char *path, struct err *e)
{
	DIR *d = folder_open(path);
	struct dirent *entry;
	size_t room = 0;
	int rc;

	if (!d)
		return err_sys(e, errno, "%s: cannot be read", path);
	while ((rc = folder_next(d, &entry)) > 0) {
		struct ring_info r = {0};
		struct stat st;
		int fd;

		if (str_ends(entry->d_name, ".end")) {
			f->unread += !read_end(path, entry->d_name, f);
			continue;
		}
		if (str_starts(entry->d_name, RING_CONTROL_NAME)) {
			read_control(path, entry->d_name, f);
			continue;
		}
		if (!str_ends(entry->d_name, ".ring") || strlen(entry->d_name) >= sizeof(r.name))
			continue;
		f->found++;
		fd = open_ring(path, entry->d_name, &st);
		if (fd < 0 || !read_head(f, fd, entry->d_name, &r) || f->rings == RINGS_MAX) {
			if (fd < 0)
				harm_unread(f, entry->d_name, 0, fd);
			f->unread++;
			if (fd >= 0)
				close(fd);
			continue;
		}
		close(fd);
		f->bytes += (uint64_t)st.st_blocks * 512;
		memcpy(r.name, entry->d_name, strlen(entry->d_name) + 1); /* it fits: see above */
		VECTOR_PUSH(f->ring, f->rings, room, r);
	}
	closedir(d);
	return rc < 0 ? err_sys(e, -rc, "%s: cannot be read", path) : 0;
}

/* ---- events ---- */

static bool take(const struct cursor *c, uint32_t *at, uint64_t *out)
{
	unsigned shift = 0;

	for (*out = 0; *at < c->used && shift < 64; shift += 7) {
		uint8_t b = c->data[(*at)++];

		*out |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static bool take_signed(const struct cursor *c, uint32_t *at, int64_t *out)
{
	uint64_t v;

	if (!take(c, at, &v))
		return false;
	*out = unzigzag(v);
	return true;
}

static bool take_name(struct cursor *c, uint32_t *at)
{
	uint64_t same, more;

	if (!take(c, at, &same) || !take(c, at, &more) || same > c->name_len ||
	    more > c->used - *at || same + more > RING_PATH_MAX)
		return false;
	if (!c->name)
		c->name = xcalloc(1, RING_PATH_MAX + 1);
	memcpy(c->name + same, c->data + *at, more);
	c->name_len = same + more;
	c->name[c->name_len] = '\0';
	*at += (uint32_t)more;
	return true;
}

static bool take_fields(struct ring_merge *m, struct cursor *c, uint32_t *at, uint8_t head,
			struct ring_event *v, const char *fields)
{
	size_t n = 0, names = 0;

	for (const char *f = fields; *f; f++) {
		uint64_t u = 0;
		int64_t i = 0;

		switch (*f) {
		case 's':
			if (head & RING_SAME)
				v->serial = c->last_serial;
			else if (take(c, at, &u))
				v->serial = u;
			else
				return false;
			break;
		case 'a':
			if (!take(c, at, &u) || u > INT64_MAX)
				return false;
			v->asked = (int64_t)u;
			break;
		case 'r':
			if (head & RING_FULL)
				v->result = v->asked;
			else if (!take_signed(c, at, &v->result))
				return false;
			break;
		case 'o':
			if (!take_signed(c, at, &i))
				return false;
			v->offset = (int64_t)((uint64_t)c->last_end + (uint64_t)i);
			break;
		case 'p':
			if (names == 2 || !take_name(c, at))
				return false;
			memcpy(m->text[names], c->name, c->name_len + 1);
			v->name[names] = m->text[names];
			names++;
			break;
		case 'i':
			if (!take_signed(c, at, &v->v[n++]))
				return false;
			break;
		default:
			if (!take(c, at, &u))
				return false;
			v->v[n++] = (int64_t)u;
			break;
		}
	}
	return true;
}

/* Decodes the event at the cursor into m->text and c->event. */
static bool decode(struct ring_merge *m, struct cursor *c)
{
	struct ring_event v = {.ring = c->ring, .tid = c->tid, .name = {"", ""}};
	uint32_t at = c->next;
	const char *fields;
	uint64_t duration;
	int64_t gap;
	uint8_t head;

	if (at >= c->used)
		return false;
	head = c->data[at++];
	fields = ring_fields(head & RING_KIND);
	if (!fields || !take_signed(c, &at, &gap) || !take(c, &at, &duration) ||
	    duration > INT64_MAX / 4 || !take_fields(m, c, &at, head, &v, fields))
		return false;
	v.kind = head & RING_KIND;
	if (__builtin_add_overflow(c->last_ns, gap, &v.begin_ns) ||
	    __builtin_add_overflow(v.begin_ns, (int64_t)duration, &v.end_ns) || !sane(v.begin_ns) ||
	    !sane(v.end_ns))
		return false;
	c->last_ns = v.end_ns;
	if (v.kind == RING_THREAD) {
		if (!sane(v.v[1]))
			return false;
		c->tid = v.v[0];
		c->last_ns = v.v[1];
		c->last_serial = 0;
		c->last_end = 0;
		c->name_len = 0;
	}
	if (strchr(fields, 's'))
		c->last_serial = v.serial;
	if (strchr(fields, 'o') &&
	    __builtin_add_overflow(v.offset, v.result > 0 ? v.result : 0, &c->last_end))
		return false;
	c->next = at;
	c->event = v;
	return true;
}

static void end_cursor(struct cursor *c)
{
	free(c->data);
	free(c->name);
	c->data = NULL;
	c->name = NULL;
	c->ended = true;
}

static bool load(struct ring_files *f, struct cursor *c)
{
	int fd = open_ring(f->merge->folder, f->ring[c->ring].name, NULL);
	ssize_t n = -1;

	c->begun = true;
	if (fd < 0) {
		f->damaged++;
		harm_unread(f, f->ring[c->ring].name, c->at - sizeof(struct ring_chunk), fd);
		return false;
	}
	c->data = xmalloc(c->used);
	n = pread_fully(fd, c->data, c->used, (off_t)c->at);
	close(fd);
	if (n < 0) {
		harm_unread(f, f->ring[c->ring].name, c->at - sizeof(struct ring_chunk), (int)n);
		n = 0;
	}
	if ((uint32_t)n == c->used && c->checked &&
	    ring_sum(RING_SUM, c->data, c->used) != c->sum) {
		f->damaged++;
		harm(f, f->ring[c->ring].name, c->at - sizeof(struct ring_chunk),
		     "its checksum does not match, and it is left out");
		return false;
	}
	f->damaged += (uint32_t)n < c->used;
	c->used = (uint32_t)n;
	return n > 0;
}

/* ---- the heap: the cursor with the least key is first ---- */

static bool less(const void *a, const void *b, const void *of)
{
	const struct ring_merge *m = of;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	return m->cursor[i].key != m->cursor[k].key ? m->cursor[i].key < m->cursor[k].key : i < k;
}

/* The begin of the event after, without taking it: its key. */
static bool peek(struct ring_files *f, struct cursor *c)
{
	uint32_t at = c->next + 1;
	int64_t gap, key;

	if (c->next >= c->used)
		return false;
	if (!take_signed(c, &at, &gap) || __builtin_add_overflow(c->last_ns, gap, &key) ||
	    __builtin_add_overflow(key, f->ring[c->ring].shift_ns, &key)) {
		f->damaged++;
		return false;
	}
	if (key > c->key)
		c->key = key;
	return true;
}

bool ring_files_next(struct ring_files *f, struct ring_event *out)
{
	struct ring_merge *m = f->merge;

	while (m->n > 0) {
		struct cursor *c = &m->cursor[m->heap[0]];
		bool there = true, given = false;

		if (!c->begun) {
			there = load(f, c) && peek(f, c);
		} else if (!decode(m, c)) {
			f->damaged++;
			there = false;
		} else {
			int64_t shift = f->ring[c->ring].shift_ns;

			*out = c->event;
			out->begin_ns += shift;
			out->end_ns += shift;
			given = true;
			there = peek(f, c);
		}
		if (!there) {
			end_cursor(c);
			m->heap[0] = m->heap[--m->n];
		}
		heap_sink(m->heap, m->n, sizeof(*m->heap), 0, less, m);
		if (given)
			return true;
	}
	return false;
}

int ring_files_open(struct ring_files *f, const char *path, struct err *e)
{
	struct ring_merge *m;
	int rc;

	*f = (struct ring_files){0};
	f->merge = m = xcalloc(1, sizeof(*m));
	m->folder = xstrdup(path);
	rc = list_folder(f, path, e);
	if (rc < 0)
		return rc;
	if (f->rings)
		qsort(f->ring, f->rings, sizeof(*f->ring), by_start);
	tie_clocks(f);
	for (size_t i = 0; i < f->rings; i++) {
		struct stat st;
		int fd = open_ring(path, f->ring[i].name, &st);

		if (fd < 0) {
			f->damaged++;
			harm_unread(f, f->ring[i].name, 0, fd);
			continue;
		}
		find_chunks(f, (uint32_t)i, fd, (uint64_t)st.st_size);
		close(fd);
	}
	m->heap = xcalloc(m->cursors + 1, sizeof(*m->heap));
	for (size_t i = 0; i < m->cursors; i++) {
		m->cursor[i].key = m->cursor[i].last_ns + f->ring[m->cursor[i].ring].shift_ns;
		m->heap[m->n++] = (uint32_t)i;
	}
	heap_make(m->heap, m->n, sizeof(*m->heap), less, m);
	return 0;
}

void ring_files_close(struct ring_files *f)
{
	if (f->merge) {
		for (size_t i = 0; i < f->merge->cursors; i++)
			end_cursor(&f->merge->cursor[i]);
		free(f->merge->cursor);
		free(f->merge->heap);
		free(f->merge->folder);
		free(f->merge);
	}
	texts_release(&f->harmed);
	free(f->ring);
	free(f->end);
	*f = (struct ring_files){0};
}
