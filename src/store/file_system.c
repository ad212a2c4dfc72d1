/* Names of file systems by the numbers that statfs(2) gives. */
#include "store/file_system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/alloc.h"
#include "base/file.h"

/* linux/magic.h, and the sources of those that live outside the kernel */
static const struct {
	long magic;
	const char *name;
	bool memory;
} known[] = {
	{0xEF53, "ext4", false},         {0x58465342, "xfs", false},
	{0x9123683E, "btrfs", false},    {0xF2F52010, "f2fs", false},
	{0x2FC12FC1, "zfs", false},      {0xCA451A4E, "bcachefs", false},
	{0x01021994, "tmpfs", true},     {0x858458F6, "ramfs", true},
	{0x958458F6, "hugetlbfs", true}, {0x794C7630, "overlay", false},
	{0x65735546, "fuse", false},     {0x6969, "nfs", false},
	{0xFF534D42, "cifs", false},     {0xFE534D42, "smb", false},
	{0x01021997, "9p", false},       {0x00C36400, "ceph", false},
	{0x0BD00BD0, "lustre", false},   {0x47504653, "gpfs", false},
	{0x19830326, "beegfs", false},   {0x73717368, "squashfs", false},
	{0xE0F5E1E2, "erofs", false},    {0x9660, "iso9660", false},
	{0x4D44, "vfat", false},         {0x9FA0, "proc", false},
	{0x62656572, "sysfs", false},
};

static void describe_statfs(const struct statfs *s, struct file_system *out)
{
	/* the type is signed on some machines and not on others */
	unsigned long magic = (unsigned long)s->f_type & 0xffffffffu;

	*out = (struct file_system){.magic = (long)magic};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].magic != out->magic)
			continue;
		out->memory = known[i].memory;
		snprintf(out->name, sizeof(out->name), "%s", known[i].name);
		return;
	}
	snprintf(out->name, sizeof(out->name), "type 0x%lx", magic);
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
	return true;
}
