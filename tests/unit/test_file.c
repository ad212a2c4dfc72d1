/* Whole files, folders and paths. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_out.h"

static char dir[] = "/tmp/stoker-file-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf '%s'", dir);

	(void)state;
	return system(command);
}

static size_t files_in(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += entry->d_name[0] != '.';
	closedir(d);
	return n;
}

static void test_round_trip(void **state)
{
	static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 100000};
	AUTO_FREE char *path = path_join(dir, "round");
	AUTO_FREE char *bytes = xcalloc(1, 100000);

	(void)state;
	for (size_t i = 0; i < 100000; i++)
		bytes[i] = (char)(i * 7);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct buf b = {0};
		struct err e;

		assert_int_equal(file_write(path, bytes, sizes[k], &e), 0);
		assert_int_equal(file_read(path, sizes[k], &b, &e), 0);
		assert_int_equal(b.len, sizes[k]);
		assert_memory_equal(b.data, bytes, sizes[k]);
		assert_int_equal(b.data[b.len], '\0');
		if (sizes[k]) {
			assert_int_equal(file_read(path, sizes[k] - 1, &b, &e), -EFBIG);
			assert_non_null(strstr(e.text, "round"));
			/* what was there stays, nothing is added */
			assert_int_equal(b.len, sizes[k]);
			assert_int_equal(b.data[b.len], '\0');
		}
		buf_release(&b);
	}
}

static void test_read_appends(void **state)
{
	AUTO_FREE char *path = path_join(dir, "append");
	struct buf b = {0};

	(void)state;
	assert_int_equal(file_write(path, "tail", 4, NULL), 0);
	buf_puts(&b, "head ");
	assert_int_equal(file_read(path, 4, &b, NULL), 0);
	assert_string_equal(b.data, "head tail");
	buf_release(&b);
}

static void test_unreadable(void **state)
{
	AUTO_FREE char *path = path_join(dir, "absent");
	struct buf b = {0};
	struct err e;

	(void)state;
	assert_int_equal(file_read(path, 10, &b, &e), -ENOENT);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(file_read(dir, 10, &b, &e), -EISDIR);
	assert_int_equal(b.len, 0);
	buf_release(&b);
}

/* Opening some of these would wait for ever. */
static void test_only_regular_files(void **state)
{
	static const struct {
		mode_t mode;
		const char *said;
	} kinds[] = {{S_IFIFO | 0600, "FIFO"}, {S_IFSOCK | 0600, "socket"}};
	AUTO_FREE char *path = path_join(dir, "kind");
	AUTO_FREE char *link = path_join(dir, "kind-link");
	struct buf b = {0};
	struct err e;
	int ends[2];
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		assert_int_equal(mknod(path, kinds[i].mode, 0), 0);
		assert_int_equal(file_read(path, 10, &b, &e), ERR_KIND);
		assert_non_null(strstr(e.text, kinds[i].said));
		assert_non_null(strstr(e.text, path));
		assert_int_equal(symlink("kind", link), 0);
		assert_int_equal(file_read(link, 10, &b, &e), ERR_KIND);
		assert_int_equal(unlink(link), 0);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(file_read("/dev/zero", 10, &b, &e), ERR_KIND);
	assert_non_null(strstr(e.text, "character device"));
	assert_int_equal(symlink("kind", link), 0);
	assert_int_equal(file_read(link, 10, &b, &e), ERR_KIND);
	assert_non_null(strstr(e.text, "leads to nothing"));
	assert_int_equal(path_look(link, &e), PATH_OTHER);
	assert_int_equal(path_look(path, &e), PATH_ABSENT);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("kind-link", link), 0);
	assert_int_equal(file_read(link, 10, &b, &e), -ELOOP);
	assert_int_equal(unlink(link), 0);
	/* a pipe that somebody handed over is read to its end, in whatever pieces */
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "given", 5), 5);
	close(ends[1]);
	snprintf(name, sizeof(name), "/dev/fd/%d", ends[0]);
	assert_int_equal(file_read(name, 10, &b, &e), 0);
	assert_string_equal(b.data, "given");
	close(ends[0]);
	buf_release(&b);
}

/* The kernel's own files may be regular ones that wait for what never comes. */
static void test_kernel_does_not_wait(void **state)
{
	struct buf b = {0};
	struct err e;

	(void)state;
	if (access("/proc/kmsg", R_OK) != 0 || geteuid() != 0)
		skip();
	alarm(20);
	assert_true(file_read("/proc/kmsg", 16 << 20, &b, &e) < 0);
	assert_non_null(strstr(e.text, "/proc/kmsg"));
	alarm(0);
	buf_release(&b);
	assert_int_equal(file_read("/proc/self/status", 1 << 20, &b, &e), 0);
	assert_non_null(strstr(b.data, "Name:"));
	buf_release(&b);
}

static void test_large_is_refused_unread(void **state)
{
	AUTO_FREE char *path = path_join(dir, "sparse");
	struct buf b = {0};
	struct err e;

	(void)state;
	assert_int_equal(file_write(path, "", 0, NULL), 0);
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	assert_int_equal(file_read(path, 1 << 20, &b, &e), -EFBIG);
	assert_null(b.data);
	assert_int_equal(unlink(path), 0);
}

static void test_failed_write_leaves_nothing(void **state)
{
	AUTO_FREE char *absent = path_join(dir, "absent/file");
	AUTO_FREE char *sub = path_join(dir, "sub");
	struct err e;
	size_t before;

	(void)state;
	assert_int_equal(file_mkdirs(sub, &e), 0);
	before = files_in(dir);
	assert_int_equal(file_write(absent, "x", 1, &e), -ENOENT);
	assert_int_equal(file_write(sub, "x", 1, &e), -EISDIR);
	assert_non_null(strstr(e.text, sub));
	assert_int_equal(files_in(dir), before);
}

static void check_content(const char *path, const char *want)
{
	struct buf b = {0};

	assert_int_equal(file_read(path, 4096, &b, NULL), 0);
	assert_string_equal(b.data, want);
	buf_release(&b);
}

static mode_t kind_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & S_IFMT;
}

static void test_links_are_followed(void **state)
{
	AUTO_FREE char *sub = path_join(dir, "links");
	AUTO_FREE char *target = path_join(sub, "target");
	AUTO_FREE char *link = path_join(sub, "link");
	AUTO_FREE char *dangling = path_join(sub, "dangling");
	AUTO_FREE char *created = path_join(sub, "created");
	AUTO_FREE char *loop = path_join(sub, "loop");
	struct stat st;
	struct err e;

	(void)state;
	assert_int_equal(file_mkdirs(sub, NULL), 0);
	assert_int_equal(file_write(target, "old", 3, NULL), 0);
	assert_int_equal(chmod(target, 0604), 0);
	assert_int_equal(symlink("target", link), 0);
	assert_int_equal(symlink(created, dangling), 0);
	assert_int_equal(symlink("loop", loop), 0);
	assert_int_equal(file_write(link, "new", 3, NULL), 0);
	assert_int_equal(kind_of(link), S_IFLNK);
	check_content(target, "new");
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
	assert_int_equal(file_write(dangling, "first", 5, NULL), 0);
	assert_int_equal(kind_of(dangling), S_IFLNK);
	check_content(created, "first");
	assert_int_equal(file_write(loop, "x", 1, &e), -ELOOP);
	assert_non_null(strstr(e.text, loop));
	assert_int_equal(files_in(sub), 5);
}

static void test_written_through(void **state)
{
	AUTO_FREE char *fifo = path_join(dir, "fifo");
	AUTO_FREE char *path = path_join(dir, "open-already");
	char name[64], got[8] = "";
	int fd;

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDWR); /* its reader: none is waited for */
	assert_true(fd >= 0);
	assert_int_equal(file_write(fifo, "through", 7, NULL), 0);
	assert_int_equal(kind_of(fifo), S_IFIFO);
	assert_int_equal(read(fd, got, sizeof(got)), 7);
	assert_memory_equal(got, "through", 7);
	close(fd);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	assert_int_equal(place_named_descriptor(name), fd);
	assert_int_equal(place_named_descriptor(path), -1);
	assert_int_equal(write(fd, "one", 3), 3);
	assert_int_equal(file_write(name, " two", 4, NULL), 0);
	assert_int_equal(write(fd, " three", 6), 6);
	close(fd);
	check_content(path, "one two three");
	assert_true(file_write(name, "x", 1, NULL) < 0); /* it is closed */
}

static void test_failed_replacement(void **state)
{
	AUTO_FREE char *sub = path_join(dir, "failed");
	AUTO_FREE char *path = path_join(sub, "file");
	struct file_out f;
	struct err e;

	(void)state;
	assert_int_equal(file_mkdirs(sub, NULL), 0);
	assert_int_equal(file_write(path, "old", 3, NULL), 0);
	assert_int_equal(file_out_open(&f, path, FILE_NAMED, NULL), 0);
	assert_int_equal(file_out_write(&f, "new", 3), 0);
	check_content(path, "old"); /* until it is closed */
	assert_int_equal(file_out_close(&f, -ENOSPC, &e), -ENOSPC);
	assert_non_null(strstr(e.text, path));
	check_content(path, "old");
	assert_int_equal(files_in(sub), 1);
}

static void *write_often(void *arg)
{
	const char *path = arg;
	char text[4096];

	memset(text, 'a' + (int)((uintptr_t)pthread_self() / 4096 % 26), sizeof(text));
	for (int i = 0; i < 50; i++)
		if (file_write(path, text, sizeof(text), NULL) != 0)
			return arg;
	return NULL;
}

/* Readers see one writer's content, whole; no temporary file stays. */
static void test_writers_at_once(void **state)
{
	AUTO_FREE char *sub = path_join(dir, "writers");
	AUTO_FREE char *path = path_join(sub, "file");
	pthread_t thread[4];
	void *failed;

	(void)state;
	assert_int_equal(file_mkdirs(sub, NULL), 0);
	assert_null(write_often(path));
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_often, path), 0);
	for (int i = 0; i < 100; i++) {
		struct buf b = {0};

		assert_int_equal(file_read(path, 4096, &b, NULL), 0);
		assert_int_equal(b.len, 4096);
		assert_int_equal(memcmp(b.data, b.data + 1, 4095), 0);
		buf_release(&b);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(files_in(sub), 1);
}

static size_t temporaries_of(const char *folder, const char *name)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += file_temporary_of(entry->d_name) == strlen(name) &&
		     strncmp(entry->d_name + 1, name, strlen(name)) == 0;
	closedir(d);
	return n;
}

/* A path without a name: nothing is written, and nothing that is there is taken for what a killed
 * writer left. */
static void test_no_name(void **state)
{
	AUTO_FREE char *folder = path_join(dir, "kept"), *file = path_join(folder, "file"),
		       *slash = xasprintf("%s/", folder);
	static const enum file_whose kinds[] = {FILE_NAMED, FILE_OURS};
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct file_out out;
	struct err e = {0};

	(void)state;
	assert_int_equal(file_mkdirs(folder, NULL), 0);
	assert_int_equal(file_write(file, "x", 1, NULL), 0);
	assert_int_equal(chdir(folder), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(file_out_open(&out, "", kinds[i], &e), ERR_USAGE);
		assert_non_null(strstr(e.text, "empty"));
		assert_true(file_out_open(&out, slash, kinds[i], &e) < 0);
	}
	file_remove_left("");
	file_remove_left(slash);
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_true(file_exists(file));
}

/* What a killed writer left is removed by the next one; what a live one writes stays, and so does
 * what only looks like it. */
static void test_left_by_killed(void **state)
{
	AUTO_FREE char *folder = path_join(dir, "left"), *path = path_join(folder, "page");
	static const char *const others[] = {
		".page.0123456789abcde.tmp", ".page.tmp", ".page2.0123456789abcdef.tmp",
		"page.0123456789abcdef.tmp", ".page.0123456789abcdeF.tmp"};
	struct file_out killed, live;

	(void)state;
	assert_int_equal(file_mkdirs(folder, NULL), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		AUTO_FREE char *other = path_join(folder, others[i]);

		assert_int_equal(file_write(other, "x", 1, NULL), 0);
	}
	for (int named = 0; named < 2; named++) {
		assert_int_equal(file_out_open(&killed, path, FILE_NAMED, NULL), 0);
		assert_int_equal(file_out_open(&live, path, FILE_NAMED, NULL), 0);
		assert_int_equal(temporaries_of(folder, "page"), 2);
		close(killed.fd); /* as the end of its process does */
		close(killed.held);
		if (named)
			assert_int_equal(file_write(path, "x", 1, NULL), 0);
		else
			file_remove_left(path);
		assert_int_equal(temporaries_of(folder, "page"), 1);
		assert_int_equal(file_out_write(&live, "live", 4), 0);
		assert_int_equal(file_out_close(&live, 0, NULL), 0);
		assert_int_equal(temporaries_of(folder, "page"), 0);
		close(killed.folder);
		free(killed.path);
		free(killed.name);
		free(killed.tmp);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		AUTO_FREE char *other = path_join(folder, others[i]);

		assert_true(file_exists(other));
	}
}

static void test_mkdirs(void **state)
{
	AUTO_FREE char *deep = path_join(dir, "a//b/c/");
	AUTO_FREE char *plain = path_join(dir, "plain");
	AUTO_FREE char *below = path_join(plain, "x/y");
	AUTO_FREE char *link = path_join(dir, "to-deep");
	AUTO_FREE char *behind = path_join(link, "more");
	AUTO_FREE char *loop = path_join(dir, "ring");
	struct err e;

	(void)state;
	assert_int_equal(file_mkdirs(deep, &e), 0);
	assert_true(file_is_dir(deep));
	assert_int_equal(file_mkdirs(deep, &e), 0);
	assert_int_equal(file_mkdirs("/", &e), 0);
	assert_true(file_mkdirs("", &e) < 0);
	assert_int_equal(file_write(plain, "", 0, &e), 0);
	assert_int_equal(file_mkdirs(plain, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, "is not a folder"));
	assert_int_equal(file_mkdirs(below, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, plain));
	assert_int_equal(symlink("behind/deep", link), 0);
	assert_int_equal(file_mkdirs(behind, &e), 0);
	assert_int_equal(kind_of(link), S_IFLNK);
	assert_true(file_is_dir(behind));
	assert_int_equal(symlink("ring", loop), 0);
	assert_int_equal(file_mkdirs(loop, &e), -ELOOP);
	assert_true(file_exists(plain));
	assert_false(file_is_dir(plain));
	assert_false(file_exists(below));
}

static void check_path(char *got, const char *want)
{
	assert_string_equal(got, want);
	free(got);
}

static void test_paths(void **state)
{
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	AUTO_FREE char *here = xasprintf("%s/%s", cwd, "a/b");

	(void)state;
	check_path(path_join("a", "b"), "a/b");
	check_path(path_join("a/", "b"), "a/b");
	check_path(path_join("/", "b"), "/b");
	check_path(path_join("", "b"), "b");
	check_path(path_join("a", "/b"), "/b");
	check_path(path_join("a", ""), "a/");
	check_path(path_dirname("a/b"), "a");
	check_path(path_dirname("/a"), "/");
	check_path(path_dirname("a"), ".");
	check_path(path_dirname("/a/b/c"), "/a/b");
	assert_string_equal(path_basename("/a/b"), "b");
	assert_string_equal(path_basename("b"), "b");
	assert_string_equal(path_basename("a/"), "");
	check_path(path_absolute("/x/../y"), "/x/../y");
	check_path(path_absolute("a/b"), here);
	check_path(path_absolute("./a/b"), here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_read_appends),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_only_regular_files),
		cmocka_unit_test(test_kernel_does_not_wait),
		cmocka_unit_test(test_large_is_refused_unread),
		cmocka_unit_test(test_failed_write_leaves_nothing),
		cmocka_unit_test(test_links_are_followed),
		cmocka_unit_test(test_written_through),
		cmocka_unit_test(test_failed_replacement),
		cmocka_unit_test(test_writers_at_once),
		cmocka_unit_test(test_no_name),
		cmocka_unit_test(test_left_by_killed),
		cmocka_unit_test(test_mkdirs),
		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
