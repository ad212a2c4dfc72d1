/* Tables of descriptors as trees of shared nodes. A node with one owner is changed in place, one
 * with several is copied first. Nodes and descriptions are numbers in two pools, so that what is
 * freed is used again and nothing moves under a holder. */
#include "jobtrace/descriptors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "jobtrace/job_log.h"

#define FAN_BITS 5
#define FAN (1U << FAN_BITS)
#define TOP (7 * FAN_BITS) /* bits of the highest tree: 2^31 descriptors fit */
#define RENAMES_FOLLOWED 8

/* The child of an inner node is a node, of a leaf an entry: the description and close-on-exec. 0:
 * none, in both. */
#define ENTRY_CLOEXEC (UINT32_C(1) << 31)
#define ENTRY_OPEN (ENTRY_CLOEXEC - 1)

struct node {
	uint32_t owners, used; /* used: children that are not 0 */
	uint32_t child[FAN];
};

struct description {
	int64_t position;
	uint32_t entries; /* that lead to it */
	uint32_t file;
	unsigned flags;
	uint32_t next_free;
};

struct table {
	uint32_t root; /* 0: empty */
	uint32_t bits; /* that its descriptors have at most; 0 when empty */
	uint32_t owners;
};

struct descriptors {
	struct node *node;
	uint32_t nodes, node_room, node_free; /* freed ones are linked by child[0] */
	struct description *open;
	uint32_t opens, open_room, open_free;
	struct table *table;
	uint32_t tables, table_room, table_free; /* freed ones are linked by root */
	struct {
		int64_t size;
		uint32_t renamed; /* file + 1; 0: never */
	} * file;
	size_t files;
	uint64_t lost;
};

struct descriptors *descriptors_new(void)
{
	struct descriptors *d = xcalloc(1, sizeof(*d));

	d->nodes = d->opens = 1; /* number 0 is none */
	return d;
}

void descriptors_free(struct descriptors *d)
{
	if (!d)
		return;
	free(d->node);
	free(d->open);
	free(d->table);
	free(d->file);
	free(d);
}

uint64_t descriptors_lost(const struct descriptors *d)
{
	return d->lost;
}

/* ---- the pools ---- */

static uint32_t grown(uint32_t room)
{
	return room ? 2 * room : 64;
}

static uint32_t node_new(struct descriptors *d)
{
	uint32_t i = d->node_free;

	if (i) {
		d->node_free = d->node[i].child[0];
	} else {
		if (d->nodes >= DESCRIPTORS_NODES)
			return 0;
		if (d->nodes >= d->node_room) {
			d->node_room = grown(d->node_room);
			d->node = xrealloc(d->node, d->node_room * sizeof(*d->node));
		}
		i = d->nodes++;
	}
	d->node[i] = (struct node){.owners = 1};
	return i;
}

static void entry_drop(struct descriptors *d, uint32_t entry)
{
	uint32_t i = entry & ENTRY_OPEN;

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
	if (d->opens >= DESCRIPTORS_OPEN)
		return 0;
	if (d->opens >= d->open_room) {
		d->open_room = grown(d->open_room);
		d->open = xrealloc(d->open, d->open_room * sizeof(*d->open));
	}
	return d->opens++;
}

/* An owner less of a node whose children differ in `bits` bits. */
static void node_drop(struct descriptors *d, uint32_t node, uint32_t bits)
{
	if (!node || --d->node[node].owners)
		return;
	for (uint32_t i = 0; i < FAN; i++) {
		if (bits > FAN_BITS)
			node_drop(d, d->node[node].child[i], bits - FAN_BITS);
		else
			entry_drop(d, d->node[node].child[i]);
	}
	d->node[node].child[0] = d->node_free;
	d->node_free = node;
}

/* `node` for one owner who changes it: itself or a copy. 0: no room, and nothing has changed. */
static uint32_t node_own(struct descriptors *d, uint32_t node, uint32_t bits)
{
	uint32_t copy;

	if (d->node[node].owners == 1)
		return node;
	copy = node_new(d);
	if (!copy)
		return 0;
	d->node[node].owners--;
	d->node[copy] = d->node[node];
	d->node[copy].owners = 1;
	for (uint32_t i = 0; i < FAN; i++) {
		uint32_t child = d->node[copy].child[i];

		if (child && bits > FAN_BITS)
			d->node[child].owners++;
		else if (child)
			d->open[child & ENTRY_OPEN].entries++;
	}
	return copy;
}

/* ---- the trees ---- */

static struct table *table_of(const struct descriptors *d, uint32_t table)
{
	assert(table < d->tables && d->table[table].owners);
	return &d->table[table];
}

static uint32_t slot(int64_t fd, uint32_t bits)
{
	return (uint32_t)(fd >> (bits - FAN_BITS)) & (FAN - 1);
}

static bool fits(int64_t fd, uint32_t bits)
{
	return fd >= 0 && fd <= DESCRIPTOR_MAX && bits && fd >> bits == 0;
}

static uint32_t entry_of(const struct descriptors *d, uint32_t table, int64_t fd)
{
	const struct table *t = table_of(d, table);
	uint32_t at = t->root;

	if (!fits(fd, t->bits))
		return 0;
	for (uint32_t bits = t->bits; at && bits; bits -= FAN_BITS)
		at = d->node[at].child[slot(fd, bits)];
	return at;
}

static struct description *description_of(const struct descriptors *d, uint32_t table, int64_t fd)
{
	uint32_t entry = entry_of(d, table, fd);

	return entry ? &d->open[entry & ENTRY_OPEN] : NULL;
}

/* Adds levels until `fd` fits. */
static bool table_raise(struct descriptors *d, struct table *t, int64_t fd)
{
	while (!fits(fd, t->bits)) {
		if (t->root) {
			uint32_t above = node_new(d);

			if (!above)
				return false;
			d->node[above].child[0] = t->root;
			d->node[above].used = 1;
			t->root = above;
		}
		t->bits += FAN_BITS;
	}
	return true;
}

/* Puts `entry`, whose reference passes to the tree, in place of what was there; 0 empties. Nodes
 * that hold nothing any more are freed. False: no room; then the entry is dropped. */
static bool entry_put(struct descriptors *d, uint32_t table, int64_t fd, uint32_t entry)
{
	struct table *t = table_of(d, table);
	uint32_t path[TOP / FAN_BITS], depth = 0, *link;

	assert(fd >= 0 && fd <= DESCRIPTOR_MAX);
	if (!entry && !entry_of(d, table, fd))
		return true;
	if (!table_raise(d, t, fd))
		goto full;
	for (uint32_t bits = t->bits; bits; bits -= FAN_BITS) {
		uint32_t above = depth ? path[depth - 1] : 0, at, own;

		at = above ? d->node[above].child[slot(fd, bits + FAN_BITS)] : t->root;
		own = at ? node_own(d, at, bits) : node_new(d);
		if (!own)
			goto full;
		if (above) {
			d->node[above].child[slot(fd, bits + FAN_BITS)] = own;
			d->node[above].used += !at;
		} else {
			t->root = own;
		}
		path[depth++] = own;
	}
	link = &d->node[path[depth - 1]].child[slot(fd, FAN_BITS)];
	d->node[path[depth - 1]].used += !!entry;
	d->node[path[depth - 1]].used -= !!*link;
	entry_drop(d, *link);
	*link = entry;
	for (uint32_t bits = FAN_BITS; depth && !d->node[path[depth - 1]].used; bits += FAN_BITS) {
		node_drop(d, path[--depth], bits);
		if (depth) {
			d->node[path[depth - 1]].child[slot(fd, bits + FAN_BITS)] = 0;
			d->node[path[depth - 1]].used--;
		} else {
			t->root = 0;
			t->bits = 0;
		}
	}
	return true;
full:
	/* without room, what the number meant cannot be replaced: then nothing of the table can be
	 * trusted */
	entry_drop(d, entry);
	node_drop(d, t->root, t->bits);
	t->root = 0;
	t->bits = 0;
	d->lost++;
	return false;
}

/* ---- tables ---- */

uint32_t descriptors_table(struct descriptors *d)
{
	uint32_t i;

	if (d->table_free) {
		i = d->table_free - 1;
		d->table_free = d->table[i].root;
	} else {
		if (d->tables == d->table_room) {
			d->table_room = grown(d->table_room);
			d->table = xrealloc(d->table, d->table_room * sizeof(*d->table));
		}
		i = d->tables++;
	}
	d->table[i] = (struct table){.owners = 1};
	return i;
}

uint32_t descriptors_fork(struct descriptors *d, uint32_t table)
{
	uint32_t child = descriptors_table(d);

	d->table[child].root = table_of(d, table)->root;
	d->table[child].bits = d->table[table].bits;
	if (d->table[child].root)
		d->node[d->table[child].root].owners++;
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
	node_drop(d, t->root, t->bits);
	t->root = d->table_free;
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

/* The least descriptor from `from` on whose entry has all of `with`; -1. */
static int64_t next_entry(const struct descriptors *d, uint32_t node, uint32_t bits, int64_t base,
			  int64_t from, uint32_t with)
{
	uint32_t first = 0;

	if (from > base)
		first = (from - base) >> bits ? FAN : slot(from - base, bits);
	for (uint32_t i = first; i < FAN; i++) {
		uint32_t child = d->node[node].child[i];
		int64_t at = base + ((int64_t)i << (bits - FAN_BITS));

		if (!child)
			continue;
		if (bits > FAN_BITS) {
			at = next_entry(d, child, bits - FAN_BITS, at, from, with);
			if (at >= 0)
				return at;
		} else if ((child & with) == with) {
			return at;
		}
	}
	return -1;
}

static int64_t next_open(const struct descriptors *d, uint32_t table, int64_t from, uint32_t with)
{
	const struct table *t = table_of(d, table);

	return t->root ? next_entry(d, t->root, t->bits, 0, from, with) : -1;
}

uint32_t descriptors_exec(struct descriptors *d, uint32_t table)
{
	table = descriptors_unshare(d, table);
	for (int64_t fd = 0; (fd = next_open(d, table, fd, ENTRY_CLOEXEC)) >= 0; fd++)
		entry_put(d, table, fd, 0);
	return table;
}

void descriptors_close_range(struct descriptors *d, uint32_t table, int64_t first, int64_t last)
{
	for (int64_t fd = first < 0 ? 0 : first;
	     fd <= DESCRIPTOR_MAX && (fd = next_open(d, table, fd, 0)) >= 0 && fd <= last; fd++)
		entry_put(d, table, fd, 0);
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
	if (!i) {
		d->lost++;
		entry_put(d, table, fd, 0);
		return;
	}
	d->open[i] = (struct description){
		.position = flags & DESCRIPTOR_STREAM ? JOB_UNKNOWN : position,
		.entries = 1,
		.file = file,
		.flags = flags & ~DESCRIPTOR_CLOEXEC,
	};
	entry_put(d, table, fd, i | (flags & DESCRIPTOR_CLOEXEC ? ENTRY_CLOEXEC : 0));
}

void descriptors_dup(struct descriptors *d, uint32_t table, int64_t fd, uint32_t to_table,
		     int64_t to, unsigned flags)
{
	uint32_t entry = entry_of(d, table, fd) & ENTRY_OPEN;

	if (!possible(to) || (table == to_table && fd == to))
		return;
	if (entry) {
		d->open[entry].entries++;
		entry |= flags & DESCRIPTOR_CLOEXEC ? ENTRY_CLOEXEC : 0;
	}
	entry_put(d, to_table, to, entry);
}

void descriptors_close(struct descriptors *d, uint32_t table, int64_t fd)
{
	if (possible(fd))
		entry_put(d, table, fd, 0);
}

void descriptors_set_cloexec(struct descriptors *d, uint32_t table, int64_t fd, bool on)
{
	uint32_t entry = entry_of(d, table, fd), now;

	now = (entry & ENTRY_OPEN) | (on ? ENTRY_CLOEXEC : 0);
	if (!entry || now == entry)
		return;
	d->open[entry & ENTRY_OPEN].entries++;
	entry_put(d, table, fd, now);
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
	size_t more;

	if (file < d->files)
		return;
	more = file < 32 ? 64 : 2 * ((size_t)file + 1);
	d->file = xrealloc(d->file, more * sizeof(*d->file));
	for (; d->files < more; d->files++) {
		d->file[d->files].size = JOB_UNKNOWN;
		d->file[d->files].renamed = 0;
	}
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
