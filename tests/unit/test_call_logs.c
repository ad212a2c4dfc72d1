/* Logs of system calls of strace, DFTracer and Recorder: what each line becomes, and that no cut of
 * a log does harm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "put_file.h"
#include "trace/trace_reader.h"

static char folder[256];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/stoker-call-logs-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return remove_tree(folder, NULL) < 0 ? -1 : 0;
}

static const char *at(const char *name)
{
	static char path[2][512];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static void read_one(struct job *job, const char *text)
{
	struct err e = {0};
	const char *path = at("log");

	put_file(folder, "log", text);
	job_init(job);
	if (job_read(job, &path, 1, &e) < 0)
		fail_msg("%s", e.text);
}

/* The events as lines `kind file offset+result @begin-end`, without those of memory and waiting. */
static char *told(const struct job *job)
{
	static const char *const names[JOB_KINDS] = {
		[JOB_OPEN] = "open",     [JOB_CLOSE] = "close",    [JOB_READ] = "read",
		[JOB_WRITE] = "write",   [JOB_SEEK] = "seek",      [JOB_STAT] = "stat",
		[JOB_LIST] = "list",     [JOB_MAP] = "map",        [JOB_UNMAP] = "unmap",
		[JOB_ADVISE] = "advise", [JOB_SYNC] = "sync",      [JOB_RENAME] = "rename",
		[JOB_UNLINK] = "unlink", [JOB_MAKE_DIR] = "mkdir", [JOB_TRUNCATE] = "truncate",
		[JOB_ACCESS] = "access", [JOB_FORK] = "fork",      [JOB_EXEC] = "exec",
		[JOB_EXIT] = "exit",     [JOB_WAIT] = "wait",      [JOB_COMPUTE] = "compute",
		[JOB_MARK] = "mark",
	};
	struct buf out = {0};

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		buf_printf(&out, "%lld %s", (long long)job->thread[v->thread].tid, names[v->kind]);
		if (v->file != JOB_NONE)
			buf_printf(&out, " %s", job->file[v->file].name);
		if (v->kind == JOB_READ || v->kind == JOB_WRITE || v->kind == JOB_SEEK) {
			if (v->offset == JOB_UNKNOWN)
				buf_puts(&out, " ?");
			else
				buf_printf(&out, " %lld", (long long)v->offset);
		}
		if (v->kind == JOB_FORK || (v->kind == JOB_WAIT && v->other != JOB_NONE))
			buf_printf(&out, " %lld", (long long)job->process[v->other].pid);
		if (v->kind == JOB_RENAME)
			buf_printf(&out, " %s", job->file[v->other].name);
		buf_printf(&out, " =%lld\n", (long long)v->result);
	}
	return buf_take(&out);
}

static void expect(const char *log, const char *events)
{
	struct job job;
	char *got;

	read_one(&job, log);
	got = told(&job);
	assert_string_equal(got, events);
	free(got);
	job_release(&job);
}

/* ---- strace ---- */

static void test_positions(void **state)
{
	(void)state;
	expect("7 10.000000 openat(AT_FDCWD</w>, \"a/../b\", O_RDONLY) = 3</w/b> <0.000010>\n"
	       "7 10.000100 read(3</w/b>, \"\"..., 100) = 100 <0.000010>\n"
	       "7 10.000200 pread64(3</w/b>, \"x\\\"), 5) = 7 <\"..., 10, 4096) = 10 <0.000010>\n"
	       "7 10.000300 read(3</w/b>, 0x7ffd, 5) = -1 EAGAIN (Resource temporarily "
	       "unavailable) <0.000010>\n"
	       "7 10.000400 lseek(3</w/b>, -10, SEEK_END) = 990 <0.000010>\n"
	       "7 10.000500 readv(3</w/b>, [{iov_base=\"\"..., iov_len=4}, "
	       "{iov_base=\"\"..., iov_len=6}], 2) = 10 <0.000010>\n"
	       "7 10.000600 preadv2(3</w/b>, [...], 1, -1, 0) = 0 <0.000010>\n"
	       "7 10.000700 preadv2(3</w/b>, [...], 1, 64, RWF_HIPRI) = 2 <0.000010>\n"
	       "7 10.000800 close(3</w/b>)          = 0 <0.000010>\n"
	       "7 10.000900 read(3, \"\", 1) = -1 EBADF (Bad file descriptor) <0.000010>\n",
	       "7 open /w/b =3\n7 read /w/b 0 =100\n7 read /w/b 4096 =10\n"
	       "7 read /w/b 100 =-11\n7 seek /w/b 990 =990\n7 read /w/b 990 =10\n"
	       "7 read /w/b 1000 =0\n7 read /w/b 64 =2\n7 close /w/b =0\n7 read ? =-9\n");
}

/* Without -y, and from the terminal. */
static void test_without_names(void **state)
{
	(void)state;
	expect("23:59:59.500000 execve(\"/bin/sh\", [\"sh\", \"-c\", \"x\"], 0x7 /* 4 vars */) = "
	       "0\n"
	       "23:59:59.600000 chdir(\"/w\") = 0\n"
	       "23:59:59.700000 openat(AT_FDCWD, \"d\", O_RDONLY|O_DIRECTORY) = 3\n"
	       "23:59:59.800000 openat(3, \"./f\\40\\303\\244\", O_RDWR|O_CREAT|O_EXCL, 0600) = 4\n"
	       "23:59:59.900000 write(4, \"abc\", 3)  = 3\n"
	       "00:00:00.000000 clone(child_stack=NULL, flags=SIGCHLDstrace: Process 9 attached\n"
	       " <unfinished ...>\n"
	       "[pid     9] 00:00:00.100000 lseek(4, 0, SEEK_CUR) = 3\n"
	       "[pid     8] 00:00:00.150000 <... clone resumed>) = 9\n"
	       "[pid     9] 00:00:00.200000 dup2(4, 0) = 0\n"
	       "[pid     9] 00:00:00.300000 write(0, \"de\"..., 2) = 2\n"
	       "[pid     9] 00:00:00.400000 +++ exited with 3 +++\n"
	       "00:00:00.500000 write(4, \"f\", 1) = 1\n"
	       "00:00:00.600000 --- SIGTERM {si_signo=SIGTERM} ---\n"
	       "00:00:00.700000 +++ killed by SIGTERM +++\n",
	       "8 exec /bin/sh =0\n8 open /w/d =3\n8 open /w/d/f \303\244 =4\n"
	       "8 write /w/d/f \303\244 0 =3\n8 fork 9 =9\n9 seek /w/d/f \303\244 3 =3\n"
	       "9 write /w/d/f \303\244 3 =2\n9 exit =3\n8 write /w/d/f \303\244 5 =1\n8 exit "
	       "=-15\n");
}

static void test_midnight(void **state)
{
	struct job job;

	(void)state;
	read_one(&job, "5 23:59:59.000000 read(0</a>, \"\", 5) = 5 <0.250000>\n"
		       "5 00:00:01.000000 read(0</a>, \"\", 5) = 0 <1.000000>\n");
	assert_int_equal(job.event[0].begin_ns, 0);
	assert_int_equal(job.event[0].end_ns, 250000000);
	assert_int_equal(job.event[1].begin_ns, 2000000000);
	assert_int_equal(job.wall_ns, 3000000000);
	assert_true(job.start_s == JOB_UNKNOWN && job.sees & JOB_SEES_TIMES);
	job_release(&job);
}

/* Calls in two lines, a child that is seen before its parent's call returns, a close that frees its
 * number before its end is seen. */
static void test_interleaved(void **state)
{
	(void)state;
	expect("5 10.1 openat(AT_FDCWD</w>, \"f\", O_RDONLY) = 3</w/f> <0.01>\n"
	       "5 10.2 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, x=0} <unfinished ...>\n"
	       "6 10.3 read(3</w/f>, <unfinished ...>\n"
	       "5 10.4 <... clone3 resumed> => {parent_tid=[6]}, 88) = 6 <0.2>\n"
	       "6 10.5 <... read resumed>\"\"..., 50) = 50 <0.2>\n"
	       "5 10.6 vfork( <unfinished ...>\n"
	       "8 10.7 lseek(3</w/f>, 7, SEEK_SET) = 7 <0.01>\n"
	       "8 10.8 execve(\"/bin/true\", [\"true\"], 0x1 /* 1 var */) = 0 <0.01>\n"
	       "5 10.9 <... vfork resumed>) = 8 <0.3>\n"
	       "6 11.0 close(3</w/f> <unfinished ...>\n"
	       "5 11.1 openat(AT_FDCWD</w>, \"g\", O_RDONLY) = 3</w/g> <0.01>\n"
	       "6 11.2 <... close resumed>) = 0 <0.2>\n"
	       "5 11.3 read(3</w/g>, \"\"..., 9) = 9 <0.01>\n"
	       "8 11.4 read(3</w/f>, \"\"..., 1) = 1 <0.01>\n"
	       "5 11.5 read(3</w/g>, <unfinished ...>) = ?\n"
	       "5 11.6 exit_group(0) = ?\n"
	       "8 11.7 +++ exited with 0 +++\n"
	       "6 11.8 +++ exited with 0 +++\n"
	       "5 11.9 +++ exited with 0 +++\n",
	       "5 open /w/f =3\n6 read /w/f 0 =50\n5 fork 8 =8\n8 seek /w/f 7 =7\n"
	       "8 exec /bin/true =0\n6 close /w/f =0\n5 open /w/g =3\n5 read /w/g 0 =9\n"
	       "8 read /w/f 7 =1\n8 exit =0\n5 exit =0\n");
}

static void test_streams(void **state)
{
	struct job job;

	(void)state;
	expect("5 10.1 pipe2([3<pipe:[77]>, 4<pipe:[77]>], O_CLOEXEC) = 0 <0.01>\n"
	       "5 10.2 write(4<pipe:[77]>, \"\"..., 9) = 9 <0.01>\n"
	       "5 10.3 read(3<pipe:[77]>, \"\"..., 9) = 9 <0.01>\n"
	       "5 10.4 connect(5<TCP:[10.0.0.1:40->10.0.0.2:80]>, {a=1}, 16) = 0 <0.01>\n"
	       "5 10.5 sendto(5<TCP:[10.0.0.1:40->10.0.0.2:80]>, \"\"..., 3, 0, NULL, 0) = 3 "
	       "<0.01>\n"
	       "5 10.6 read(6</dev/shm/x>(deleted), \"\"..., 2) = 2 <0.01>\n"
	       "5 10.7 recvmsg(7<socket:[5]>, {msg_name=NULL, msg_iov=[{iov_base=\"\"..., "
	       "iov_len=1}], msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, "
	       "cmsg_type=SCM_RIGHTS, cmsg_data=[6</w/passed>]}], msg_flags=0}, 0) = 1 <0.01>\n"
	       "5 10.8 read(6</w/passed>, \"\"..., 2) = 2 <0.01>\n"
	       "5 10.9 sendmmsg(7<socket:[5]>, [{msg_hdr={msg_name=NULL, "
	       "msg_iov=[{iov_base=\"msg_len=9\", iov_len=9}], msg_iovlen=1, msg_flags=0}, "
	       "msg_len=4}, {msg_hdr={msg_iov=[{iov_base=\"\"..., iov_len=8}]}, msg_len=8}, "
	       "{msg_hdr={msg_iov=[{iov_base=\"\"..., iov_len=1}]}}], 3, 0) = 2 <0.01>\n"
	       "5 10.91 recvmmsg(7<socket:[5]>, 0x7f, 3, 0, NULL) = -1 EAGAIN (Resource "
	       "temporarily unavailable) <0.01>\n",
	       "5 write pipe:[77] ? =9\n5 read pipe:[77] ? =9\n"
	       "5 write TCP:[10.0.0.1:40->10.0.0.2:80] ? =3\n5 read /dev/shm/x ? =2\n"
	       "5 read socket:[5] ? =1\n5 read /w/passed ? =2\n"
	       "5 write socket:[5] ? =4\n5 write socket:[5] ? =8\n5 read socket:[5] ? =-11\n");
	read_one(&job, "5 10.1 pipe2([3, 4], 0) = 0\n5 10.2 pipe([5, 6]) = 0\n"
		       "5 10.3 write(4, \"\", 1) = 1\n5 10.4 read(3, \"\", 1) = 1\n"
		       "5 10.5 read(5, \"\", 1) = 1\n5 10.6 io_uring_setup(8, {flags=0}) = 7\n");
	assert_int_equal(job.event[0].file, job.event[1].file);
	assert_int_not_equal(job.event[0].file, job.event[2].file);
	assert_int_equal(job.file[job.event[0].file].kind, JOB_FILE_PIPE);
	assert_int_equal(job.notes.n, 1);
	assert_non_null(strstr(job.notes.v[0], "io_uring"));
	job_release(&job);
}

static void test_copies(void **state)
{
	(void)state;
	expect("5 10.0 openat(AT_FDCWD</w>, \"o\", O_WRONLY|O_CREAT|O_TRUNC|O_APPEND, 0600) = "
	       "4</w/o> <0.01>\n"
	       "5 10.1 openat(AT_FDCWD</w>, \"i\", O_RDONLY) = 3</w/i> <0.01>\n"
	       "5 10.2 sendfile(4</w/o>, 3</w/i>, NULL, 100) = 60 <0.01>\n"
	       "5 10.3 sendfile(4</w/o>, 3</w/i>, [0] => [5], 100) = 5 <0.01>\n"
	       "5 10.4 copy_file_range(3</w/i>, NULL, 4</w/o>, [8] => [9], 1, 0) = 1 <0.01>\n"
	       "5 10.5 splice(3</w/i>, [700], 6<pipe:[1]>, NULL, 9, 0) = 9 <0.01>\n",
	       "5 open /w/o =4\n5 open /w/i =3\n5 read /w/i 0 =60\n5 write /w/o 0 =60\n"
	       "5 read /w/i 0 =5\n5 write /w/o 60 =5\n5 read /w/i 60 =1\n5 write /w/o 65 =1\n"
	       "5 read /w/i 700 =9\n5 write pipe:[1] ? =9\n");
}

static void test_metadata(void **state)
{
	struct job job;

	(void)state;
	read_one(&job,
		 "5 10.0 newfstatat(AT_FDCWD</w>, \"d\", {st_mode=S_IFDIR|0755, st_size=4096, "
		 "...}, 0) = 0 <0.01>\n"
		 "5 10.1 statx(AT_FDCWD</w>, \"f\", 0, STATX_ALL, {stx_mask=0x1, "
		 "stx_mode=S_IFREG|0644, stx_size=321, ...}) = 0 <0.01>\n"
		 "5 10.2 rename(\"f\", \"g\") = 0 <0.01>\n"
		 "5 10.3 openat(AT_FDCWD</w>, \"d\", O_RDONLY) = 3</w/d> <0.01>\n"
		 "5 10.4 getdents64(3</w/d>, 0x5 /* 4 entries */, 32768) = 120 <0.01>\n"
		 "5 10.5 mmap(NULL, 8192, PROT_READ, MAP_SHARED, 4</w/g>, 0x1000) = 0x7f0000 "
		 "<0.01>\n"
		 "5 10.6 madvise(0x7f0000, 8192, MADV_WILLNEED) = 0 <0.01>\n"
		 "5 10.7 munmap(0x7f0000, 8192) = 0 <0.01>\n"
		 "5 10.8 munmap(0x7f0000, 8192) = 0 <0.01>\n"
		 "5 10.9 unlinkat(AT_FDCWD</w>, \"g\", 0) = 0 <0.01>\n");
	assert_int_equal(job.events, 9);
	assert_int_equal(job.file[job.event[0].file].kind, JOB_FILE_FOLDER);
	assert_int_equal(job.event[1].result, 321);
	assert_int_equal(job.event[2].kind, JOB_RENAME);
	assert_int_equal(job.file[job.event[2].other].size, 321);
	assert_string_equal(job.file[job.event[2].file].name, "/w/f");
	assert_int_equal(job.event[4].kind, JOB_LIST);
	assert_int_equal(job.file[job.event[4].file].kind, JOB_FILE_FOLDER);
	assert_int_equal(job.event[5].kind, JOB_MAP);
	assert_int_equal(job.event[5].offset, 4096);
	assert_int_equal(job.event[6].kind, JOB_ADVISE);
	assert_int_equal(job.event[7].kind, JOB_UNMAP);
	assert_int_equal(job.event[7].file, job.event[5].file);
	assert_true(job.file[job.event[8].file].deleted);
	job_release(&job);
}

/* The files of -ff, merged by time. */
static void test_many_files(void **state)
{
	const char *paths[3];
	char name[3][512];
	struct err e = {0};
	struct job job;
	char *got;

	(void)state;
	put_file(folder, "t.100",
		 "10.0 openat(AT_FDCWD, \"/w/f\", O_RDONLY) = 3\n"
		 "10.1 clone(child_stack=NULL, flags=SIGCHLD) = 101\n"
		 "10.4 read(3, \"\"..., 10) = 10\n"
		 "10.6 +++ exited with 0 +++\n");
	put_file(folder, "t.101",
		 "10.2 read(3, \"\"..., 20) = 20\n"
		 "10.5 read(3, \"\"..., 40) = 40\n"
		 "10.55 clone(child_stack=0x1, flags=CLONE_THREAD|CLONE_FILES) = 99\n"
		 "10.7 +++ exited with 1 +++\n");
	put_file(folder, "t.99", "10.57 close(3) = 0\n");
	for (int i = 0; i < 3; i++) {
		snprintf(name[i], sizeof(name[i]), "%s/t.%s", folder,
			 (const char *[]){"99", "101", "100"}[i]);
		paths[i] = name[i];
	}
	job_init(&job);
	if (job_read(&job, paths, 3, &e) < 0)
		fail_msg("%s", e.text);
	got = told(&job);
	assert_string_equal(got, "100 open /w/f =3\n100 fork 101 =101\n101 read /w/f 0 =20\n"
				 "100 read /w/f 20 =10\n101 read /w/f 30 =40\n99 close /w/f =0\n"
				 "100 exit =0\n101 exit =1\n");
	assert_int_equal(job.processes, 2);
	assert_int_equal(job.threads, 3);
	assert_int_equal(job.start_s, 10);
	free(got);
	job_release(&job);
}

/* Lines without end, and strings longer than a line may be. */
static void test_long_lines(void **state)
{
	size_t n = 3 << 20;
	struct buf log = {0};
	struct job job;

	(void)state;
	buf_puts(&log, "5 10.0 write(1</w/o>, \"");
	for (size_t i = 0; i < n; i += 2)
		buf_puts(&log, "\\\"");
	buf_puts(&log,
		 "\", 1572864) = 1572864 <0.01>\n5 10.1 read(0</w/i>, \"\", 1) = 1 <0.01>\n5 10.2 "
		 "foo(");
	for (size_t i = 0; i < n; i++)
		buf_putc(&log, 'x');
	buf_puts(&log, ") = 0\n5 10.3 read(0</w/i>, \"\", 2) = 2 <0.01>\n5 10.4 read(0</w");
	read_one(&job, log.data);
	assert_int_equal(job.events, 3);
	assert_int_equal(job.event[0].result, 1572864);
	assert_int_equal(job.event[2].result, 2);
	assert_true(job.notes.n > 0);
	job_release(&job);
	buf_release(&log);
}

/* ---- DFTracer ---- */

static void test_dftracer(void **state)
{
	static const char log[] =
		"[\n"
		"{\"id\":1,\"name\":\"open64\",\"cat\":\"POSIX\",\"pid\":5,\"tid\":5,\"ts\":1000,"
		"\"dur\":10,\"ph\":\"X\",\"args\":{\"hhash\":1,\"fhash\":\"ab12\",\"flags\":0,"
		"\"ret\":3}}\n"
		"{\"id\":2,\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":5,\"tid\":5,\"ts\":1020,"
		"\"dur\":10,\"ph\":\"X\",\"args\":{\"fhash\":\"ab12\",\"fd\":3,\"ret\":100,"
		"\"count\":4096}}\n"
		"{\"id\":3,\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":5,\"tid\":5,\"ph\":\"M\","
		"\"args\":{\"name\":\"/d/a \\\"b\\u00e4.npz\",\"value\":\"ab12\"}}\n"
		"{\"id\":4,\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":5,\"tid\":5,\"ts\":1040,"
		"\"dur\":10,\"ph\":\"X\",\"args\":{\"fhash\":\"ab12\",\"fd\":3,\"ret\":5,"
		"\"count\":4096}}\n"
		"{\"id\":5,\"name\":\"pread64\",\"cat\":\"POSIX\",\"pid\":5,\"tid\":5,\"ts\":1060,"
		"\"dur\":10,\"ph\":\"X\",\"args\":{\"fhash\":\"ab12\",\"fd\":3,\"ret\":7,"
		"\"count\":7,\"offset\":900}}\n"
		" {\"id\":\"6\",\"name\":\"fopen\",\"cat\":\"STDIO\",\"pid\":\"5\",\"tid\":\"5\","
		"\"ts\":\"1080\",\"dur\":\"10\",\"ph\":\"X\",\"args\":{\"fname\":\"/d/t\","
		"\"mode\":\"r\"}},\n"
		"{\"id\":7,\"name\":\"fread\",\"cat\":\"STDIO\",\"pid\":5,\"tid\":5,\"ts\":1100,"
		"\"dur\":10,\"ph\":\"X\",\"args\":{\"fname\":\"/d/t\",\"size\":8,\"count\":10,"
		"\"ret\":3}}\n"
		"{\"id\":8,\"name\":\"compute\",\"cat\":\"compute\",\"pid\":5,\"tid\":5,\"ts\":"
		"1120,"
		"\"dur\":20,\"ph\":\"X\",\"args\":{\"epoch\":\"1\",\"step\":\"2\"}}\n"
		"{\"id\":9,\"name\":\"epoch.block\",\"cat\":\"pipeline\",\"pid\":5,\"tid\":5,"
		"\"ts\":1140,\"dur\":20,\"ph\":\"X\",\"args\":{}}\n"
		"{\"id\":10,\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":6,\"tid\":6,\"ts\":1160,"
		"\"dur\":20,\"ph\":\"X\"}\n";
	struct job job;
	char *got;

	(void)state;
	read_one(&job, log);
	got = told(&job);
	assert_string_equal(
		got, "5 open /d/a \"b\303\244.npz =3\n5 read /d/a \"b\303\244.npz 0 =100\n"
		     "5 read /d/a \"b\303\244.npz 100 =5\n5 read /d/a \"b\303\244.npz 900 =7\n"
		     "5 open /d/t =1073741825\n5 read /d/t 0 =24\n5 compute compute =0\n"
		     "5 mark epoch.block =0\n6 read ? =0\n");
	assert_int_equal(job.event[6].asked, 1);
	assert_int_equal(job.event[6].offset, 2);
	assert_int_equal(job.event[1].begin_ns, 20000);
	assert_true(job.sees & JOB_SEES_COMPUTE);
	assert_int_equal(job.processes, 2);
	assert_int_equal(job.notes.n, 1); /* no sizes */
	free(got);
	job_release(&job);
}

/* ---- Recorder ---- */

static const char recorder_log[] = "0.0000100 0.0000200 MPI_Init 0 2 ( 0x1 0x2 )\n"
				   "0.0010000 0.0010200 open64 0 0 ( /d/a b.npz 0 )\n"
				   "0.0010500 0.0020400 read 0 0 ( /d/a b.npz 0x123 100 )\n"
				   "0.0020500 0.0030400 lseek64 0 0 ( /d/a b.npz 50 1 )\n"
				   "0.0030500 0.0040400 read 0 0 ( /d/a b.npz 0x123 10 )\n"
				   "0.0040500 0.0050400 pread64 0 0 ( /d/a b.npz 0x123 10 777 )\n"
				   "0.0050500 0.0060400 open 0 0 ( /d/a b.npz 2 438 )\n"
				   "0.0060500 0.0070400 read 0 0 ( /d/a b.npz 0x123 1 )\n"
				   "0.0070500 0.0080400 close 0 0 ( /d/a b.npz )\n"
				   "0.0080500 0.0090400 MPI_Barrier 0 2 ( MPI_COMM_WORLD )\n"
				   "0.0090500 0.0100400 fwrite (0x123 8 10 /d/log)\n";

static void test_recorder(void **state)
{
	static const char events[] =
		"%d open /d/a b.npz =0\n%d read /d/a b.npz 0 =100\n%d seek /d/a b.npz 150 =150\n"
		"%d read /d/a b.npz 150 =10\n%d read /d/a b.npz 777 =10\n%d open /d/a b.npz =0\n"
		"%d read /d/a b.npz ? =1\n%d wait =0\n%d write /d/log ? =80\n";
	char want[2048];
	const char *path = at("rec");
	struct err e = {0};
	struct job job;
	char *got;

	(void)state;
	snprintf(want, sizeof(want), events, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	expect(recorder_log, want);
	put_file(folder, "rec/_text/00.txt", recorder_log);
	put_file(folder, "rec/_text/01.txt", recorder_log);
	job_init(&job);
	if (job_read(&job, &path, 1, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(job.processes, 2);
	assert_int_equal(job.process[1].rank, 1);
	assert_int_equal(job.events, 18);
	got = told(&job);
	assert_non_null(strstr(got, "1 open /d/a b.npz"));
	free(got);
	job_release(&job);
}

/* ---- hostile ---- */

static const char strace_log[] =
	"5 10.1 openat(AT_FDCWD</w>, \"f\\\\\", O_RDONLY) = 3</w/f> <0.01>\n"
	"5 10.2 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, x=0} <unfinished ...>\n"
	"6 10.3 read(3</w/f>, <unfinished ...>\n"
	"5 10.4 <... clone3 resumed> => {parent_tid=[6]}, 88) = 6 <0.2>\n"
	"6 10.5 <... read resumed>\"\"..., 50) = 50 <0.2>\n"
	"5 10.6 recvmsg(7<socket:[5]>, {msg_iov=[{iov_base=\"\"..., iov_len=1}], "
	"msg_control=[{cmsg_type=SCM_RIGHTS, cmsg_data=[6</w/p>]}]}, 0) = 1 <0.01>\n"
	"5 10.7 close(3</w/f>(deleted) <unfinished ...>\n"
	"5 10.8 <... close resumed>) = 0 <0.2>\n"
	"5 10.9 +++ exited with 0 +++\n";

/* Every cut gives what can be read, or one sentence. */
static void cut_everywhere(const char *log)
{
	size_t n = strlen(log);
	char *text = xstrdup(log);
	const char *path = at("log");

	for (size_t i = 0; i <= n; i += 1 + (i > 200) * (i % 3)) {
		struct err e = {0};
		struct job job;
		char saved = text[i];

		text[i] = '\0';
		unlink(path);
		put_file(folder, "log", text);
		text[i] = saved;
		job_init(&job);
		if (job_read(&job, &path, 1, &e) < 0)
			assert_true(e.text[0] && !strchr(e.text, '\n'));
		job_release(&job);
	}
	free(text);
}

static void test_cuts(void **state)
{
	struct err e = {0};
	const char *path = at("log.gz");
	struct job job;
	gzFile f;

	(void)state;
	cut_everywhere(strace_log);
	cut_everywhere(recorder_log);
	cut_everywhere(
		"[\n{\"id\":3,\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":5,\"tid\":5,"
		"\"ph\":\"M\",\"args\":{\"name\":\"/d/a \\\"b\",\"value\":\"ab12\"}}\n"
		"{\"id\":4,\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":5,\"tid\":5,\"ts\":1040,"
		"\"dur\":10,\"ph\":\"X\",\"args\":{\"fhash\":\"ab12\",\"fd\":3,\"ret\":5,"
		"\"count\":4096,\"more\":[1,{\"a\":2}]}}\n]\n");
	/* gzip that is cut */
	f = gzopen(path, "wb");
	assert_non_null(f);
	for (int i = 0; i < 2000; i++)
		gzprintf(f, "5 10.%06d read(3</w/f%d>, \"\"..., 50) = %d <0.000001>\n", i, i * 7919,
			 i);
	gzclose(f);
	assert_int_equal(truncate(path, 6000), 0);
	job_init(&job);
	if (job_read(&job, &path, 1, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(job.events > 10 && job.events < 2000);
	assert_non_null(strstr(job.notes.v[job.notes.n - 1], "gzip"));
	job_release(&job);
}

/* What unpacks to far more than a log, and more requests than the machine has memory for, end in a
 * sentence; empty lines only count. */
static void test_bombs(void **state)
{
	static char lines[1 << 20];
	const char *path = at("bomb.gz");
	struct err e = {0};
	struct job_event event;
	struct job job;
	gzFile f = gzopen(path, "wb9");
	int rc = 0;

	(void)state;
	assert_non_null(f);
	gzputs(f, "5 10.1 read(3</a>, \"\", 9) = 9\n");
	memset(lines, '\n', sizeof(lines));
	for (int i = 0; i < 70; i++)
		assert_int_equal(gzwrite(f, lines, sizeof(lines)), sizeof(lines));
	gzclose(f);
	job_init(&job);
	assert_true(job_read(&job, &path, 1, &e) < 0);
	assert_non_null(strstr(e.text, "unpacks to more than 200 times its size"));
	job_release(&job);

	job_init(&job);
	job.left_most = 1 << 20;
	event = job_event_of(JOB_READ, job_add_thread(&job, job_process(&job, 1, "", JOB_NONE), 1),
			     0, 1);
	while (rc == 0 && job.events < 1 << 22)
		rc = job_add(&job, &event, &e);
	assert_int_equal(rc, -ENOMEM);
	assert_non_null(strstr(e.text, "too large for this machine"));
	job_release(&job);

	read_one(&job,
		 "\n\n5 10.1 read(3</a>, \"\", 9) = 9\n\n\n\n5 10.2 read(3</a>, \"\", 9) = 9\n\n");
	assert_int_equal(job.events, 2);
	assert_int_equal(job.event[0].flags, 3);
	assert_int_equal(job.event[1].flags, 7);
	assert_int_equal(job.notes.n, 0);
	job_release(&job);
}

static void test_hostile(void **state)
{
	struct job job;

	(void)state;
	read_one(
		&job,
		"99999999999999999999 10.1 read(3, 4, 5) = 6\n"
		"5 10.1 read(99999999999999999999, \"\", 99999999999999999999) = "
		"99999999999999999999 <99999999999999999999.1>\n"
		"5 10.2 openat(-99999999999999999999, \"\\777\\x\\\\0f\", O_RDONLY) = 2147483648\n"
		"5 99999999999999.1 lseek(0x7fffffffffffffff, 0, SEEK_SET) = 0xffffffffffffffff\n"
		"5 10.3 clone(flags=CLONE_THREAD) = 5\n"
		"5 10.4 fork() = 6\n6 10.4 fork() = 5\n5 10.5 fork() = 6\n6 10.6 fork() = 5\n"
		"5 10.7 pipe2([3, 3, 3, [], {}], 0) = 0\n5 10.8 pipe2([, ], 0) = 0\n"
		"5 10.9 mmap(0, -1, x, MAP_SHARED, 3, -1) = 0\n5 10.9 dup2(3, -1) = -1\n"
		"5 11.0 read(3</a<b>>, ) = 1\n5 11.1 read() = 1\n5 11.2 close_range(0, -1, 0) = 0\n"
		"5 11.3 +++ exited with 99999999999999999999 +++\n5 11.4 +++ killed by +++\n");
	assert_true(job.events > 0);
	job_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_positions),  cmocka_unit_test(test_without_names),
		cmocka_unit_test(test_midnight),   cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_streams),    cmocka_unit_test(test_copies),
		cmocka_unit_test(test_metadata),   cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_long_lines), cmocka_unit_test(test_dftracer),
		cmocka_unit_test(test_recorder),   cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_hostile),    cmocka_unit_test(test_bombs),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
