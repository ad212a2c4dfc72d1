/* Names of file systems by the numbers that statfs(2) gives. */
#include "os/file_system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "base/alloc.h"
#include "base/file.h"
#include "os/mount.h"

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
