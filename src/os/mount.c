#include "os/mount.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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
#ifdef STATX_MNT_ID
	struct statx sx;

	if (*root || statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &sx) != 0 ||
	    !(sx.stx_mask & STATX_MNT_ID))
		return false;
	*id = sx.stx_mnt_id;
	return true;
#else
	(void)root;
	(void)path;
	(void)id;
	return false;
#endif
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
