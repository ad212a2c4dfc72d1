/* Names of file systems by the numbers that statfs(2) gives. */
#include "os/file_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"

#define MOUNTS_MAX (16u << 20)

/* What a mount is looked for by: its own number, or the device number of its file system. */
struct wanted {
	bool by_id;
	uint64_t id, st_dev;
};

/* One line: "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw". */
static bool split_mount_line(char *line, const struct wanted *want, struct mount *out)
{
	char *save = NULL, *field[6];
	unsigned a, b;

	for (int i = 0; i < 6; i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i])
			return false;
	}
	if (sscanf(field[2], "%u:%u", &a, &b) != 2)
		return false;
	if (want->by_id ? strtoull(field[0], NULL, 10) != want->id : makedev(a, b) != want->st_dev)
		return false;
	out->root = field[3];
	out->place = field[4];
	out->options = field[5];
	for (char *f = strtok_r(NULL, " ", &save); f; f = strtok_r(NULL, " ", &save))
		if (strcmp(f, "-") == 0)
			break;
	out->type = strtok_r(NULL, " ", &save);
	out->source = strtok_r(NULL, " ", &save);
	out->super = strtok_r(NULL, " ", &save);
	return out->type && out->source && out->super;
}

static bool find_mount(const char *root, const struct wanted *want, struct mount *out)
{
	AUTO_FREE char *path = xasprintf("%s/proc/self/mountinfo", root);
	struct buf all = {0};
	char *save = NULL;

	*out = (struct mount){0};
	if (file_read(path, MOUNTS_MAX, &all, NULL) < 0) {
		buf_release(&all);
		return false;
	}
	out->text = buf_take(&all);
	for (char *line = strtok_r(out->text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (split_mount_line(line, want, out))
			return true;
	mount_release(out);
	return false;
}

/* The first mount of the file system whose files have `st_dev`. `root` stands before /proc ("" for
 * the machine's own; a folder in tests). False, with *out all zero, when none is known. */
static bool mount_find(const char *root, uint64_t st_dev, struct mount *out)
{
	const struct wanted want = {.st_dev = st_dev};

	return find_mount(root, &want, out);
}

/* The number of the mount is the machine's own: no folder of a test has it. */
static bool mount_number(const char *root, const char *path, uint64_t *id)
{
	struct statx sx;

	if (*root || statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &sx) != 0 ||
	    !(sx.stx_mask & STATX_MNT_ID))
		return false;
	*id = statx_mount_id(&sx);
	return true;
}

bool mount_of_path(const char *root, const char *path, struct mount *out)
{
	struct wanted want = {.by_id = true};
	struct stat st;
	AUTO_FREE char *at = path_nearest(path, &st);

	*out = (struct mount){0};
	if (!at)
		return false;
	if (mount_number(root, at, &want.id) && find_mount(root, &want, out))
		return true;
	return mount_find(root, st.st_dev, out);
}

void mount_release(struct mount *m)
{
	free(m->text);
	*m = (struct mount){0};
}

/* A path of mountinfo without its \040 for a space and the like. Heap string. */
static char *mount_unescape(const char *text)
{
	char *out = xstrdup(text), *to = out;

	for (const char *p = text; *p; to++) {
		if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
		    p[3] >= '0' && p[3] <= '7') {
			*to = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 4;
		} else {
			*to = *p++;
		}
	}
	*to = '\0';
	return out;
}

/* ---- the layers of an overlay ---- */

#define LAYER_DEPTH 4    /* folders below one another that are searched for a file */
#define LAYER_ENTRIES 64 /* entries of each that are looked at */

/* Whether a folder of a layer holds a file, at a depth at which datasets have theirs. */
static bool holds_file(const char *folder, int depth)
{
	DIR *d = WITH_MEMORY(opendir(folder));
	struct dirent *entry;
	bool found = false;

	for (int i = 0; d && !found && i < LAYER_ENTRIES && (entry = readdir(d)); i++) {
		AUTO_FREE char *path = path_join(folder, entry->d_name);
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    lstat(path, &st) != 0)
			continue;
		found = S_ISREG(st.st_mode) ||
			(S_ISDIR(st.st_mode) && depth > 1 && holds_file(path, depth - 1));
	}
	if (d)
		closedir(d);
	return found;
}

/* Takes `layer` + `below` when it is there. A folder without a file is taken only if nothing better
 * comes. */
static bool try_layer(const char *root, const char *layer, const char *below, char **best)
{
	AUTO_FREE char *path = xasprintf("%s%s%s", root, layer, below);
	struct stat st;
	bool good;

	if (stat(path, &st) != 0)
		return false;
	good = !S_ISDIR(st.st_mode) || holds_file(path, LAYER_DEPTH);
	if (good || !*best) {
		free(*best);
		*best = xstrdup(path);
	}
	return good;
}

/* "lower1:lower2", with "\\:" for a colon in a name; "::" stands before layers of data alone. */
static bool try_layers(const char *root, char *layers, const char *below, char **best)
{
	char *from = layers, *to = layers;

	for (char *p = layers;; p++) {
		if (p[0] == '\\' && p[1]) {
			*to++ = *++p;
			continue;
		}
		if (*p && *p != ':') {
			*to++ = *p;
			continue;
		}
		bool last = *p == '\0';

		*to = '\0';
		if (*from && try_layer(root, from, below, best))
			return true;
		if (last)
			return false;
		from = to = p + 1;
	}
}

/* The value of an option such as "upperdir=" from `at` on, or NULL; *at goes behind it. */
static char *next_option(const char **at, const char *names[], size_t count, size_t *which)
{
	while (**at) {
		size_t n = strcspn(*at, ",");
		const char *option = *at;

		*at += n + ((*at)[n] == ',');
		for (size_t i = 0; i < count; i++) {
			size_t name = strlen(names[i]);

			if (n <= name || strncmp(option, names[i], name) != 0)
				continue;
			AUTO_FREE char *value = xstrndup(option + name, n - name);

			*which = i;
			return mount_unescape(value);
		}
	}
	return NULL;
}

static char *search_layers(const char *root, const struct mount *m, const char *below)
{
	static const char *upper[] = {"upperdir="};
	/* what the newer calls for mounting give one by one has a plus */
	static const char *lower[] = {"lowerdir=", "lowerdir+=", "datadir+="};
	char *best = NULL;
	size_t which;
	bool done = false;

	for (int pass = 0; pass < 2 && !done; pass++) {
		const char *at = m->super;
		char *value;

		while (!done && (value = pass == 0 ? next_option(&at, upper, 1, &which)
						   : next_option(&at, lower, 3, &which))) {
			done = pass == 1 && which == 0 ? try_layers(root, value, below, &best)
						       : try_layer(root, value, below, &best);
			free(value);
		}
	}
	return best;
}

char *mount_layer_path(const char *root, const char *path)
{
	struct stat st;
	AUTO_FREE char *at = path_nearest(path, &st);
	char real[PATH_MAX], *found = NULL;
	struct mount m;

	if (!at || !realpath(at, real) || !mount_of_path(root, at, &m))
		return NULL;
	if (strcmp(m.type, "overlay") == 0) {
		AUTO_FREE char *place = mount_unescape(m.place);
		AUTO_FREE char *mounted = mount_unescape(m.root);
		AUTO_FREE char *full = xasprintf("%s%s", root, strcmp(place, "/") ? place : "");
		size_t n = strlen(full);

		if (strncmp(real, full, n) == 0 && (real[n] == '/' || real[n] == '\0')) {
			AUTO_FREE char *below =
				xasprintf("%s%s", strcmp(mounted, "/") ? mounted : "", real + n);

			found = search_layers(root, &m, below);
		}
	}
	mount_release(&m);
	return found;
}

/* linux/magic.h, and the sources of those that live outside the kernel */
static const struct {
	long magic;
	const char *name;
	bool memory, stacked, batches;
} known[] = {
	{0xEF53, "ext4", false, false, true},
	{0x58465342, "xfs", false, false, true},
	{0x9123683E, "btrfs", false, false, true},
	{0xF2F52010, "f2fs", false, false, true},
	{0x2FC12FC1, "zfs", false, false, false},
	{0xCA451A4E, "bcachefs", false, false, false},
	{0x01021994, "tmpfs", true, false, true},
	{0x858458F6, "ramfs", true, false, false},
	{0x958458F6, "hugetlbfs", true, false, false},
	{0x794C7630, "overlay", false, true, false},
	{0xF15F, "ecryptfs", false, true, false},
	{0x65735546, "fuse", false, true, false},
	{0x6969, "nfs", false, false, false},
	{0xFF534D42, "cifs", false, false, false},
	{0xFE534D42, "smb", false, false, false},
	{0x01021997, "9p", false, false, false},
	{0x00C36400, "ceph", false, false, false},
	{0x0BD00BD0, "lustre", false, false, false},
	{0x47504653, "gpfs", false, false, false},
	{0x19830326, "beegfs", false, false, false},
	{0x73717368, "squashfs", false, false, false},
	{0xE0F5E1E2, "erofs", false, false, false},
	{0x9660, "iso9660", false, false, false},
	{0x4D44, "vfat", false, false, false},
	{0x9FA0, "proc", false, false, false},
	{0x62656572, "sysfs", false, false, false},
};

/* Before Linux 5.8 syncfs told nobody of bytes that could not be written back. */
static bool syncfs_reports(void)
{
	struct utsname u;
	int major, minor;

	return uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 8));
}

static void describe_statfs(const struct statfs *s, struct file_system *out)
{
	/* the type is signed on some machines and not on others */
	unsigned long magic = (unsigned long)s->f_type & 0xffffffffu;

	*out = (struct file_system){.magic = (long)magic};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].magic != out->magic)
			continue;
		out->memory = known[i].memory;
		out->stacked = known[i].stacked;
		out->batches = known[i].batches && syncfs_reports();
		snprintf(out->name, sizeof(out->name), "%s", known[i].name);
		return;
	}
	/* who knows what is below it */
	out->stacked = true;
	snprintf(out->name, sizeof(out->name), "type 0x%lx", magic);
}

/* An overlay has its files in layers, which may be overlays. */
#define LAYERS_MAX 4

static void look_below(const char *path, int depth, struct file_system *fs)
{
	AUTO_FREE char *layer = depth < LAYERS_MAX ? mount_layer_path("", path) : NULL;
	struct file_system below;
	struct statfs s;
	size_t n = strlen(fs->name);

	if (!layer || statfs(layer, &s) != 0)
		return;
	describe_statfs(&s, &below);
	if (below.stacked)
		look_below(layer, depth + 1, &below);
	fs->memory = below.memory;
	snprintf(fs->name + n, sizeof(fs->name) - n, " over %.24s", below.name);
}

bool file_system_of_fd(int fd, struct file_system *out)
{
	struct statfs s;

	if (fstatfs(fd, &s) != 0)
		return false;
	describe_statfs(&s, out);
	return true;
}

bool file_system_of_path(const char *path, struct file_system *out)
{
	AUTO_FREE char *at = xstrdup(*path ? path : ".");
	struct statfs s;
	int rc;

	while ((rc = statfs(at, &s)) != 0 && errno == ENOENT && strcmp(at, "/") != 0 &&
	       strcmp(at, ".") != 0) {
		char *up = path_dirname(at);

		free(at);
		at = up;
	}
	if (rc != 0)
		return false;
	describe_statfs(&s, out);
	if (out->stacked)
		look_below(at, 0, out);
	return true;
}

bool file_system_room(const char *path, uint64_t *bytes, uint64_t *files)
{
	struct statvfs v = {0};

	if (statvfs(path, &v) != 0 && errno != ENOSYS && errno != EOPNOTSUPP)
		return false;
	*bytes = v.f_blocks ? (uint64_t)v.f_bavail * v.f_frsize : UINT64_MAX;
	*files = v.f_files ? v.f_favail : UINT64_MAX;
	return true;
}
