/* Devices in /sys. */
#include "metric/block_device.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "os/file_system.h"
#include "metric/counter.h"
#include "metric/fs_client.h"

#define SECTOR_BYTES 512 /* of the counters, whatever the device's own is */
#define DEPTH_MAX 16     /* levels of stacked devices */

/* A list that would be cut is emptied at the end: its sums would leave devices out. */
static void list_add(struct block_list *l, const char *path)
{
	const char *slash = strrchr(path, '/');

	for (uint32_t i = 0; i < l->n && i < BLOCK_DEVICES_MAX; i++)
		if (strcmp(l->device[i].path, path) == 0)
			return;
	if (l->n < BLOCK_DEVICES_MAX && slash && strlen(path) < sizeof(l->device[0].path) &&
	    strlen(slash + 1) < sizeof(l->device[0].name)) {
		struct block_device *d = &l->device[l->n];

		snprintf(d->name, sizeof(d->name), "%s", slash + 1);
		snprintf(d->path, sizeof(d->path), "%s", path);
		l->n++;
	} else {
		l->n = BLOCK_DEVICES_MAX + 1;
	}
}

static bool has_entry(const char *folder, const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

/* Turns the folder of a partition into that of its disk; true when it was a partition. */
static bool leave_partition(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || !has_entry(path, "partition"))
		return false;
	*slash = '\0';
	return true;
}

/* The file behind a loop device; NULL for any other. A file that was removed has " (deleted)"
 * after its name, and is not found. */
static char *backing_file(const char *device)
{
	AUTO_FREE char *path = xasprintf("%s/loop/backing_file", device);
	struct buf b = {0};
	char *name;

	if (file_read(path, PATH_MAX, &b, NULL) < 0) {
		buf_release(&b);
		return NULL;
	}
	name = buf_take(&b);
	name[strcspn(name, "\n")] = '\0';
	return name;
}

static bool device_of_number(const char *root, uint64_t number, char real[PATH_MAX])
{
	AUTO_FREE char *link =
		xasprintf("%s/sys/dev/block/%u:%u", root, major(number), minor(number));

	return realpath(link, real) != NULL;
}

/* ---- what is no storage ---- */

static bool read_number(const char *device, const char *name, int *out)
{
	AUTO_FREE char *path = xasprintf("%s/%s", device, name);
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	bool known = f && fscanf(f, "%d", out) == 1;

	if (f)
		fclose(f);
	return known;
}

__attribute__((format(printf, 3, 4))) static void note(char *to, size_t size, const char *fmt, ...)
{
	size_t n = strlen(to);
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* one device may lie below several */
	if (!strstr(to, text))
		snprintf(to + n, size - n, "%s%s", n ? ", " : "", text);
}

static bool begins_with_number(const char *name, const char *word)
{
	size_t n = strlen(word);

	return strncmp(name, word, n) == 0 && name[n] >= '0' && name[n] <= '9';
}

/* Devices whose name says what they are made of. */
static const struct {
	const char *word, *what;
	bool memory;
} kinds[] = {
	{"zram", "is compressed memory", true},
	{"ram", "is a disk in memory", true},
	{"nullb", "keeps its data in memory or nowhere", true},
	{"nbd", "is a network block device, whose server is unknown", false},
	{"ublkb", "is served by another program", false},
};

static void note_kind(struct block_tree *t, const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!begins_with_number(name, kinds[i].word))
			continue;
		if (kinds[i].memory)
			note(t->memory, sizeof(t->memory), "%s %s", name, kinds[i].what);
		else
			note(t->unseen, sizeof(t->unseen), "%s %s", name, kinds[i].what);
	}
}

/* A loop device over `file`: whether that is memory, or cached on its way. */
static void note_file(struct block_tree *t, const char *device, const char *path, const char *file)
{
	const char *name = path_basename(device);
	struct file_system fs;
	int direct = 0;

	if (file_system_of_path(path, &fs) && fs.memory)
		note(t->memory, sizeof(t->memory), "%s is a file in memory (%.80s on %s)", name,
		     file, fs.name);
	else if (!read_number(device, "loop/dio", &direct) || !direct)
		note(t->cached, sizeof(t->cached), "%s is the file %.100s", name, file);
}

/* The same over a file of which it is not known where it lies: FUSE. */
static void note_unseen_file(struct block_tree *t, const char *root, const char *device,
			     const char *path, const char *file)
{
	struct file_system fs;
	struct fs_client client;

	if (!file_system_of_path(path, &fs) || fs.memory)
		return;
	fs_client_of(&client, root, path);
	/* servers on the network are storage */
	if (!client.network)
		note(t->unseen, sizeof(t->unseen), "%s is the file %.80s on %s",
		     path_basename(device), file, client.local_server ? client.type : fs.name);
}

/* ---- the way down ---- */

static void walk_down(struct block_tree *t, const char *root, char *device, int depth);
/* Calls `found` for each device below the file system of `path`. False when there is none. */
static bool find_devices(struct block_tree *t, const char *root, const char *path, int depth,
			 void (*found)(struct block_tree *t, const char *root, char *device,
				       int depth));

/* Goes on below each of the devices that `device` is made of. */
static bool walk_members(struct block_tree *t, const char *root, const char *device, int depth)
{
	AUTO_FREE char *folder = xasprintf("%s/slaves", device);
	DIR *d = WITH_MEMORY(opendir(folder));
	struct dirent *entry;
	bool any = false;

	while (d && (entry = readdir(d))) {
		AUTO_FREE char *link = xasprintf("%s/%s", folder, entry->d_name);
		char real[PATH_MAX];

		if (entry->d_name[0] == '.' || !realpath(link, real))
			continue;
		walk_down(t, root, real, depth + 1);
		any = true;
	}
	if (d)
		closedir(d);
	return any;
}

static void walk_down(struct block_tree *t, const char *root, char *device, int depth)
{
	AUTO_FREE char *file = NULL;

	leave_partition(device);
	if (depth < DEPTH_MAX && walk_members(t, root, device, depth))
		return;
	note_kind(t, path_basename(device));
	file = backing_file(device);
	t->loop = t->loop || file;
	if (file && depth < DEPTH_MAX) {
		AUTO_FREE char *path = xasprintf("%s%s", root, file);

		if (access(path, F_OK) == 0) {
			note_file(t, device, path, file);
			if (find_devices(t, root, path, depth + 1, walk_down))
				return;
			note_unseen_file(t, root, device, path, file);
		}
	}
	list_add(&t->lower, device);
}

static void add_disk(struct block_tree *t, const char *root, char *device, int depth)
{
	AUTO_FREE char *own = xstrdup(device);

	if (leave_partition(device))
		list_add(&t->part, own);
	list_add(&t->whole, device);
	walk_down(t, root, device, depth);
}

/* The devices of a btrfs of which `device` is one; false when there is no such btrfs. */
static bool btrfs_devices(struct block_tree *t, const char *root, const char *device, int depth,
			  void (*each)(struct block_tree *, const char *, char *, int))
{
	AUTO_FREE char *folder = xasprintf("%s/sys/fs/btrfs", root);
	DIR *d = WITH_MEMORY(opendir(folder));
	struct dirent *entry;
	bool found = false;

	while (d && !found && (entry = readdir(d))) {
		AUTO_FREE char *members = xasprintf("%s/%s/devices", folder, entry->d_name);
		DIR *m;

		if (entry->d_name[0] == '.' || !has_entry(members, device))
			continue;
		found = true;
		m = WITH_MEMORY(opendir(members));
		while (m && (entry = readdir(m))) {
			AUTO_FREE char *link = xasprintf("%s/%s", members, entry->d_name);
			char real[PATH_MAX];

			if (entry->d_name[0] != '.' && realpath(link, real))
				each(t, root, real, depth);
		}
		if (m)
			closedir(m);
	}
	if (d)
		closedir(d);
	return found;
}

/* A file system with a device number of its own (btrfs) names one of its devices as its source. */
static bool source_devices(struct block_tree *t, const char *root, const char *path, int depth,
			   void (*each)(struct block_tree *, const char *, char *, int))
{
	struct mount m;
	char real[PATH_MAX];
	bool found = false;

	if (!mount_of_path(root, path, &m))
		return false;
	if (strncmp(m.source, "/dev/", 5) == 0) {
		AUTO_FREE char *node = xasprintf("%s%s", root, m.source);
		const char *name = path_basename(realpath(node, real) ? real : m.source);

		found = btrfs_devices(t, root, name, depth, each);
		if (!found) {
			AUTO_FREE char *link = xasprintf("%s/sys/class/block/%s", root, name);

			found = realpath(link, real) != NULL;
			if (found)
				each(t, root, real, depth);
		}
	}
	mount_release(&m);
	return found;
}

static bool find_devices(struct block_tree *t, const char *root, const char *path, int depth,
			 void (*found)(struct block_tree *t, const char *root, char *device,
				       int depth))
{
	AUTO_FREE char *layer = NULL;
	char real[PATH_MAX];
	struct stat st;

	if (stat(path, &st) != 0)
		return false;
	if (device_of_number(root, st.st_dev, real)) {
		found(t, root, real, depth);
		return true;
	}
	if (source_devices(t, root, path, depth, found))
		return true;
	layer = depth < DEPTH_MAX ? mount_layer_path(root, path) : NULL;
	return layer && find_devices(t, root, layer, depth + 1, found);
}

static bool same_devices(const struct block_list *a, const struct block_list *b)
{
	bool all = a->n == b->n && a->n <= BLOCK_DEVICES_MAX;

	for (uint32_t i = 0; all && i < a->n; i++) {
		bool found = false;

		for (uint32_t k = 0; k < b->n && !found; k++)
			found = strcmp(a->device[i].path, b->device[k].path) == 0;
		all = found;
	}
	return all;
}

void block_tree_of(struct block_tree *t, const char *root, const char *path)
{
	struct stat st;
	AUTO_FREE char *at = path_nearest(path, &st);
	struct block_list *lists[3] = {&t->whole, &t->part, &t->lower};

	*t = (struct block_tree){0};
	if (!at)
		return;
	find_devices(t, root, at, 0, add_disk);
	if (same_devices(&t->lower, &t->whole))
		t->lower.n = 0;
	for (int i = 0; i < 3; i++)
		if (lists[i]->n > BLOCK_DEVICES_MAX)
			lists[i]->n = 0;
}

void block_disks_of(struct block_list *l, const char *root)
{
	AUTO_FREE char *folder = xasprintf("%s/sys/block", root);
	DIR *d = WITH_MEMORY(opendir(folder));
	struct dirent *entry;

	*l = (struct block_list){0};
	while (d && (entry = readdir(d))) {
		AUTO_FREE char *link = xasprintf("%s/%s", folder, entry->d_name);
		char real[PATH_MAX];

		if (entry->d_name[0] != '.' && realpath(link, real) && has_entry(real, "device"))
			list_add(l, real);
	}
	if (d)
		closedir(d);
	if (l->n > BLOCK_DEVICES_MAX)
		l->n = 0;
}

const struct block_list *block_tree_own(const struct block_tree *t)
{
	return t->part.n > 0 && t->part.n == t->whole.n ? &t->part : &t->whole;
}

/* Requests, merged, sectors and ms of reads, the same of writes, requests now, ms with any, ms of
 * all. */
enum {
	STAT_READS,
	STAT_READ_SECTORS = 2,
	STAT_WRITES = 4,
	STAT_WRITE_SECTORS = 6,
	STAT_NOW = 8,
	STAT_BUSY_MS,
	STAT_QUEUED_MS,
	STAT_FIELDS
};

static bool read_stat(const char *folder, uint64_t v[STAT_FIELDS])
{
	AUTO_FREE char *path = xasprintf("%s/stat", folder);
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	int n = 0;

	while (f && n < STAT_FIELDS && fscanf(f, "%" SCNu64, &v[n]) == 1)
		n++;
	if (f)
		fclose(f);
	return n == STAT_FIELDS;
}

void block_list_sample(const struct block_list *l, struct block_counters *out)
{
	uint64_t busy = 0;

	assert(l->n <= BLOCK_DEVICES_MAX);
	*out = (struct block_counters){.known = l->n > 0};
	for (uint32_t i = 0; i < l->n; i++) {
		uint64_t v[STAT_FIELDS] = {0};

		out->known = read_stat(l->device[i].path, v) && out->known;
		out->reads += v[STAT_READS];
		out->read_bytes += v[STAT_READ_SECTORS] * SECTOR_BYTES;
		out->writes += v[STAT_WRITES];
		out->written_bytes += v[STAT_WRITE_SECTORS] * SECTOR_BYTES;
		out->under_way += v[STAT_NOW];
		busy += v[STAT_BUSY_MS];
		out->queued_ms += v[STAT_QUEUED_MS];
	}
	out->busy_ms = l->n ? busy / l->n : 0;
}

void block_counters_sub(struct block_counters *a, const struct block_counters *b)
{
	a->known = a->known && b->known;
	counter_sub(&a->reads, b->reads, &a->known);
	counter_sub(&a->read_bytes, b->read_bytes, &a->known);
	counter_sub(&a->writes, b->writes, &a->known);
	counter_sub(&a->written_bytes, b->written_bytes, &a->known);
	/* of times the kernel keeps 32 bits: the queue's is round in 50 days of one request */
	a->busy_ms = a->busy_ms > b->busy_ms ? a->busy_ms - b->busy_ms : 0;
	a->queued_ms = (uint32_t)(a->queued_ms - b->queued_ms);
}

void block_counters_add(struct block_counters *to, const struct block_counters *from)
{
	to->known = to->known && from->known;
	to->reads += from->reads;
	to->read_bytes += from->read_bytes;
	to->writes += from->writes;
	to->written_bytes += from->written_bytes;
	to->queued_ms += from->queued_ms;
	to->under_way += from->under_way;
}

char *block_list_names(const struct block_list *l, char *out, unsigned long out_size)
{
	size_t at = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < l->n && at < out_size; i++) {
		int n = snprintf(out + at, out_size - at, "%s%s", i ? ", " : "", l->device[i].name);

		if (n < 0)
			break;
		at += (size_t)n;
	}
	return out;
}
