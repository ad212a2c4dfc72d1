/* Tables of descriptors as arrays, which a fork copies. Descriptions are numbers in a pool, so that
 * what is freed is used again and nothing moves under a holder. */
#include "trace/call_log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vector.h"
#include "trace/job_log.h"

#define RENAMES_FOLLOWED 8

struct entry {
	int32_t fd;
	uint32_t open; /* the description */
	bool cloexec;
};

struct description {
	int64_t position;
	uint32_t entries; /* that lead to it */
	uint32_t file;
	unsigned flags;
	uint32_t next_free;
};

struct table {
	struct entry *v; /* by descriptor */
	uint32_t n, room;
	uint32_t owners;    /* 0: free */
	uint32_t next_free; /* + 1 */
};

struct descriptors {
	struct description *open; /* 0 is none */
	uint32_t opens, open_room, open_free;
	struct table *table;
	uint32_t tables, table_room, table_free; /* free: + 1 */
	uint64_t entries;                        /* of all tables */
	struct {
		int64_t size;
		uint32_t renamed; /* file + 1; 0: never */
	} * file;
	size_t files, file_room;
	uint64_t lost;
};

struct descriptors *descriptors_new(void)
{
	struct descriptors *d = xcalloc(1, sizeof(*d));

	VECTOR_ADD(d->open, d->opens, d->open_room);
	return d;
}

void descriptors_free(struct descriptors *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->tables; i++)
		free(d->table[i].v);
	free(d->open);
	free(d->table);
	free(d->file);
	free(d);
}

uint64_t descriptors_lost(const struct descriptors *d)
{
	return d->lost;
}

/* ---- descriptions ---- */

static void description_drop(struct descriptors *d, uint32_t i)
{
	if (!i || --d->open[i].entries)
		return;
	d->open[i].next_free = d->open_free;
	d->open_free = i;
}

static uint32_t description_new(struct descriptors *d)
{
	uint32_t i = d->open_free;

	if (i) {
		d->open_free = d->open[i].next_free;
		return i;
	}
	VECTOR_ROOM(d->open, d->opens, d->open_room, 1);
	return d->opens++;
}

/* ---- tables ---- */

static struct table *table_of(const struct descriptors *d, uint32_t table)
{
	assert(table < d->tables && d->table[table].owners);
	return &d->table[table];
}

/* Where the first descriptor from `fd` on is, or would be. */
static uint32_t place_of(const struct table *t, int64_t fd)
{
	uint32_t low = 0, high = t->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->v[middle].fd < fd)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct entry *entry_of(const struct descriptors *d, uint32_t table, int64_t fd)
{
	const struct table *t = table_of(d, table);
	uint32_t i = place_of(t, fd);

	return i < t->n && t->v[i].fd == fd ? &t->v[i] : NULL;
}

static struct description *description_of(const struct descriptors *d, uint32_t table, int64_t fd)
{
	const struct entry *entry = entry_of(d, table, fd);

	return entry ? &d->open[entry->open] : NULL;
}

static void table_clear(struct descriptors *d, struct table *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		description_drop(d, t->v[i].open);
	free(t->v);
	d->entries -= t->room;
	t->v = NULL;
	t->n = t->room = 0;
}

/* Room for n entries. False: more than are kept; then nothing of the table can be trusted, and it
 * is empty. */
static bool table_room(struct descriptors *d, struct table *t, uint32_t n)
{
	uint32_t room = t->room;

	if (n <= t->room)
		return true;
	while (room < n)
		room = room ? 2 * room : 16;
	if (n > DESCRIPTORS_OPEN || d->entries - t->room + room > DESCRIPTORS_ENTRIES) {
		table_clear(d, t);
		d->lost++;
		return false;
	}
	t->v = xrealloc(t->v, room * sizeof(*t->v));
	d->entries += room - t->room;
	t->room = room;
	return true;
}

static void entries_drop(struct descriptors *d, struct table *t, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		description_drop(d, t->v[i].open);
	if (to > from)
		memmove(t->v + from, t->v + to, (t->n - to) * sizeof(*t->v));
	t->n -= to - from;
}

/* Puts a descriptor, whose reference to the description passes to the table, in place of what was
 * there. */
static void entry_put(struct descriptors *d, uint32_t table, struct entry entry)
{
	struct table *t = table_of(d, table);
	uint32_t i = place_of(t, entry.fd);

	if (i < t->n && t->v[i].fd == entry.fd) {
		description_drop(d, t->v[i].open);
	} else {
		if (!table_room(d, t, t->n + 1)) {
			description_drop(d, entry.open);
			return;
		}
		memmove(t->v + i + 1, t->v + i, (t->n++ - i) * sizeof(*t->v));
	}
	t->v[i] = entry;
}

uint32_t descriptors_table(struct descriptors *d)
{
	uint32_t i;

	if (d->table_free) {
		i = d->table_free - 1;
		d->table_free = d->table[i].next_free;
	} else {
		VECTOR_ROOM(d->table, d->tables, d->table_room, 1);
		i = d->tables++;
	}
	d->table[i] = (struct table){.owners = 1};
	return i;
}

uint32_t descriptors_fork(struct descriptors *d, uint32_t table)
{
	uint32_t child = descriptors_table(d);
	const struct table *from = table_of(d, table);
	struct table *to = &d->table[child];

	if (from->n == 0 || !table_room(d, to, from->n))
		return child;
	memcpy(to->v, from->v, from->n * sizeof(*to->v));
	to->n = from->n;
	for (uint32_t i = 0; i < to->n; i++)
		d->open[to->v[i].open].entries++;
	return child;
}

uint32_t descriptors_share(struct descriptors *d, uint32_t table)
{
	table_of(d, table)->owners++;
	return table;
}

void descriptors_drop(struct descriptors *d, uint32_t table)
{
	struct table *t = table_of(d, table);

	if (--t->owners)
		return;
	table_clear(d, t);
	t->next_free = d->table_free;
	d->table_free = table + 1;
}

uint32_t descriptors_unshare(struct descriptors *d, uint32_t table)
{
	uint32_t own;

	if (table_of(d, table)->owners == 1)
		return table;
	own = descriptors_fork(d, table);
	descriptors_drop(d, table);
	return own;
}

uint32_t descriptors_exec(struct descriptors *d, uint32_t table)
{
	struct table *t;
	uint32_t kept = 0;

	table = descriptors_unshare(d, table);
	t = table_of(d, table);
	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].cloexec)
			description_drop(d, t->v[i].open);
		else
			t->v[kept++] = t->v[i];
	t->n = kept;
	return table;
}

void descriptors_close_range(struct descriptors *d, uint32_t table, int64_t first, int64_t last)
{
	struct table *t = table_of(d, table);

	if (last >= first)
		entries_drop(d, t, place_of(t, first),
			     last < DESCRIPTOR_MAX ? place_of(t, last + 1) : t->n);
}

/* ---- descriptors ---- */

static bool possible(int64_t fd)
{
	return fd >= 0 && fd <= DESCRIPTOR_MAX;
}

void descriptors_open(struct descriptors *d, uint32_t table, int64_t fd, uint32_t file,
		      int64_t position, unsigned flags)
{
	uint32_t i;

	if (!possible(fd))
		return;
	i = description_new(d);
	d->open[i] = (struct description){
		.position = flags & DESCRIPTOR_STREAM ? JOB_UNKNOWN : position,
		.entries = 1,
		.file = file,
		.flags = flags & ~DESCRIPTOR_CLOEXEC,
	};
	entry_put(d, table, (struct entry){(int32_t)fd, i, flags & DESCRIPTOR_CLOEXEC});
}

void descriptors_dup(struct descriptors *d, uint32_t table, int64_t fd, uint32_t to_table,
		     int64_t to, unsigned flags)
{
	const struct entry *entry = entry_of(d, table, fd);

	if (!possible(to) || (table == to_table && fd == to))
		return;
	if (!entry) {
		descriptors_close(d, to_table, to);
		return;
	}
	d->open[entry->open].entries++;
	entry_put(d, to_table,
		  (struct entry){(int32_t)to, entry->open, flags & DESCRIPTOR_CLOEXEC});
}

void descriptors_close(struct descriptors *d, uint32_t table, int64_t fd)
{
	if (possible(fd))
		descriptors_close_range(d, table, fd, fd);
}

void descriptors_set_cloexec(struct descriptors *d, uint32_t table, int64_t fd, bool on)
{
	struct entry *entry = entry_of(d, table, fd);

	if (entry)
		entry->cloexec = on;
}

void descriptors_set_append(struct descriptors *d, uint32_t table, int64_t fd, bool on)
{
	struct description *o = description_of(d, table, fd);

	if (o)
		o->flags = on ? o->flags | DESCRIPTOR_APPEND : o->flags & ~DESCRIPTOR_APPEND;
}

uint32_t descriptors_file(const struct descriptors *d, uint32_t table, int64_t fd)
{
	const struct description *o = description_of(d, table, fd);

	return o ? o->file : JOB_NONE;
}

/* Whether what was opened as `file` has the name of `named` now. */
static bool called(const struct descriptors *d, uint32_t file, uint32_t named)
{
	for (int i = 0; i < RENAMES_FOLLOWED; i++) {
		if (file == named)
			return true;
		if (file >= d->files || !d->file[file].renamed)
			return false;
		file = d->file[file].renamed - 1;
	}
	return false;
}

uint32_t descriptors_expect(struct descriptors *d, uint32_t table, int64_t fd, uint32_t file,
			    unsigned flags)
{
	const struct description *o = description_of(d, table, fd);

	if (o && called(d, o->file, file))
		return o->file;
	descriptors_open(d, table, fd, file, JOB_UNKNOWN, flags);
	return file;
}

/* ---- requests and files ---- */

static void file_room(struct descriptors *d, uint32_t file)
{
	while (file >= d->files)
		VECTOR_ADD(d->file, d->files, d->file_room)->size = JOB_UNKNOWN;
}

void descriptors_size(struct descriptors *d, uint32_t file, int64_t size)
{
	if (file == JOB_NONE)
		return;
	file_room(d, file);
	d->file[file].size = size < 0 ? JOB_UNKNOWN : size;
}

int64_t descriptors_size_of(const struct descriptors *d, uint32_t file)
{
	return file < d->files ? d->file[file].size : JOB_UNKNOWN;
}

void descriptors_rename(struct descriptors *d, uint32_t from, uint32_t to)
{
	if (from == JOB_NONE || to == JOB_NONE || from == to)
		return;
	file_room(d, from > to ? from : to);
	d->file[from].renamed = to + 1;
	d->file[to].renamed = 0;
	d->file[to].size = d->file[from].size;
}

/* A write of n bytes at `offset` makes the file reach behind them. */
static void reaches(struct descriptors *d, uint32_t file, int64_t offset, int64_t n)
{
	int64_t end;

	if (file >= d->files || d->file[file].size == JOB_UNKNOWN || offset == JOB_UNKNOWN)
		return;
	if (!__builtin_add_overflow(offset, n, &end) && end > d->file[file].size)
		d->file[file].size = end;
}

static int64_t behind(int64_t offset, int64_t n)
{
	int64_t end;

	if (offset == JOB_UNKNOWN || n == JOB_UNKNOWN || __builtin_add_overflow(offset, n, &end))
		return JOB_UNKNOWN;
	return end;
}

int64_t descriptors_transfer(struct descriptors *d, uint32_t table, int64_t fd, int64_t n,
			     bool write)
{
	struct description *o = description_of(d, table, fd);
	int64_t offset;

	if (!o || o->flags & DESCRIPTOR_STREAM)
		return JOB_UNKNOWN;
	offset = write && o->flags & DESCRIPTOR_APPEND ? descriptors_size_of(d, o->file)
						       : o->position;
	if (n < 0 && n != JOB_UNKNOWN)
		return offset;
	o->position = behind(offset, n);
	if (write && n > 0)
		reaches(d, o->file, offset, n);
	return offset;
}

int64_t descriptors_transfer_at(struct descriptors *d, uint32_t table, int64_t fd, int64_t offset,
				int64_t n, bool write)
{
	const struct description *o = description_of(d, table, fd);

	if (!o)
		return offset;
	if (write && o->flags & DESCRIPTOR_APPEND)
		offset = descriptors_size_of(d, o->file);
	if (write && n > 0)
		reaches(d, o->file, offset, n);
	return offset;
}

void descriptors_seek(struct descriptors *d, uint32_t table, int64_t fd, int64_t position)
{
	struct description *o = description_of(d, table, fd);

	if (o && !(o->flags & DESCRIPTOR_STREAM))
		o->position = position < 0 ? JOB_UNKNOWN : position;
}

int64_t descriptors_position(const struct descriptors *d, uint32_t table, int64_t fd)
{
	const struct description *o = description_of(d, table, fd);

	return o ? o->position : JOB_UNKNOWN;
}
