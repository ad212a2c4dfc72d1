/* Loaded before the C library (LD_PRELOAD): refuses allocations of the process, and writes out
 * where it allocates and what is still allocated when it exits.
 *
 * A place is the chain of callers within the program, with the caller of the allocator where that
 * is a library, named by a hash. FAIL_ALLOC says what is refused:
 *   none            nothing
 *   PLACE:N         the N-th allocation of a place
 *   PLACE:N:limit   that one, and from then on what would take more memory than was in use then
 *   every:K:I       of a program of one thread, each allocation I, I + K, ... in a copy of the
 *                   process (fork), which goes on to its end; the process itself is untouched
 *   places:K:I      as `every`, but of each place only the first, middle and last allocation. Of
 *                   places that lines "seen HASH COUNT" of the untouched run's `told` name only the
 *                   last, where there are more than COUNT
 * A new thread is an allocation, too. The file FAIL_ALLOC_TOLD gets, in lines:
 *   failed KIND BYTES ADDRESS...       the allocation that failed, and its callers
 *   place HASH COUNT KIND ADDRESS...   (none) every place with its number of allocations
 *   left HASH ADDRESS...               the place of an allocation that was not released
 *   end                                the process exited by itself
 * and with `every`, where WHERE are addresses with commas between:
 *   finding WHERE KIND BYTES SENTENCE  what is wrong when this allocation is refused
 *   leak WHERE WHERE                   what is left when that one is refused
 *   said COUNT SENTENCE                what copies that failed said, digits as #
 *   tried COUNT SAME ENDED STRAY       allocations refused; copies with the whole answer; that
 *                                      failed; files left under other names
 * What is right is in FAIL_ALLOC_WHOLE, a folder of an untouched run: `stdout`, `told` and the
 * files in `out`. Printed lines that begin with a word of
 * FAIL_ALLOC_VARIES (with blanks between) are not compared. A copy writes
 * its files to `out` in FAIL_ALLOC_FOLDER. With FAIL_ALLOC_CLOCK the time of day stands still, so
 * that answers are the same each time.
 *
 * Programs that this one starts are not touched: LD_PRELOAD leaves the environment. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

enum {
	DEPTH = 12,
	FRAMES = 48,
	SLOTS = 1 << 18,
	PLACES = 1 << 15,
	TRACES = 1 << 15,
	BUCKETS = 1 << 12,
	SAID = 48,
	PRINTED = 1 << 20,
	OWN = 16,
	LEFT = 4096,
	HANGS_S = 20,
};

/* A chain of return addresses and where on the stack they lie, from the frame of the allocator. The
 * unwinder takes 15 us; comparing a chain that was seen takes a few ns. */
struct trace {
	struct trace *next;
	int n, kept;
	intptr_t offset[FRAMES];
	void *ret[FRAMES];
	void *caller[DEPTH]; /* of the program */
	uint64_t hash;
};

struct block {
	void *at;
	unsigned long number;
	const struct trace *by;
	size_t bytes;
};

struct place {
	uint64_t hash;
	unsigned long count;
	const char *kind;
	const struct trace *by;
	unsigned long seen; /* so many in another command: not refused again */
};

static struct trace *trace_room;
static atomic_uint traces;
static _Atomic(struct trace *) bucket[BUCKETS];
static struct place *places; /* open addressing by hash */
static struct block *blocks; /* open addressing by address */
static uint64_t fail_place;
static unsigned long fail_at, every_step, every_first, refused_number;
static bool limits, limited, in_copy, places_only;
static size_t live, live_most;
static unsigned long numbers;
static int told = -1;
static uintptr_t text_begin, text_end, load_base;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside;

/* glibc's own names, which need no look-up: dlsym allocates. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);
extern void __libc_free(void *p);

static void *room(size_t bytes)
{
	return (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
}

static _Noreturn void broken(const char *why)
{
	fprintf(stderr, "fail_alloc: %s\n", why);
	_exit(99);
}

/* ---- who calls ---- */

struct walk {
	struct trace *t;
	char *frame;
};

static _Unwind_Reason_Code walk_frame(struct _Unwind_Context *c, void *arg)
{
	struct walk *w = arg;
	struct trace *t = w->t;
	char *slot = (char *)_Unwind_GetCFA(c) - sizeof(void *);

	if (slot < w->frame)
		return _URC_NO_REASON;
	/* glibc's unwinder has a frame without an address above the first */
	if (t->n == FRAMES || !_Unwind_GetIP(c))
		return _URC_END_OF_STACK;
	t->ret[t->n] = (void *)_Unwind_GetIP(c);
	t->offset[t->n++] = slot - w->frame;
	return _URC_NO_REASON;
}

static bool matches(const struct trace *t, const char *frame)
{
	for (int i = 0; i < t->n; i++)
		if (*(void *const *)(frame + t->offset[i]) != t->ret[i])
			return false;
	return true;
}

/* FNV-1a over what stays the same in another process: places in the program's file, and in a page.
 */
static uint64_t hash_of(const struct trace *t)
{
	uint64_t h = 0xCBF29CE484222325u;

	if (t->n)
		h = (h ^ ((uintptr_t)t->ret[0] & 0xFFF)) * 0x100000001B3u;
	for (int i = 0; i < t->kept; i++)
		h = (h ^ ((uintptr_t)t->caller[i] - load_base)) * 0x100000001B3u;
	return h;
}

static const struct trace *trace_of(char *frame)
{
	uintptr_t key = *(uintptr_t *)(frame + sizeof(void *));
	_Atomic(struct trace *) *head = &bucket[(key ^ key >> 12) & (BUCKETS - 1)];
	struct trace *t = atomic_load_explicit(head, memory_order_acquire);
	struct walk w = {.frame = frame};
	unsigned number;

	for (; t; t = t->next)
		if (matches(t, frame))
			return t;
	number = atomic_fetch_add_explicit(&traces, 1, memory_order_relaxed);
	if (number >= TRACES)
		broken("too many chains of callers");
	t = &trace_room[number];
	w.t = t;
	inside = true;
	_Unwind_Backtrace(walk_frame, &w);
	inside = false;
	for (int i = 0; i < t->n && t->kept < DEPTH; i++)
		if ((uintptr_t)t->ret[i] >= text_begin && (uintptr_t)t->ret[i] < text_end)
			t->caller[t->kept++] = t->ret[i];
	t->hash = hash_of(t);
	if (!t->n || !matches(t, frame))
		return t; /* not found again: it is looked up each time */
	t->next = atomic_load_explicit(head, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(head, &t->next, t, memory_order_release,
						      memory_order_relaxed))
		;
	return t;
}

/* ---- what is allocated ---- */

static size_t slot_of(const void *p)
{
	return ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15u >> 40 & (SLOTS - 1);
}

static void remember(void *p, const struct trace *by, unsigned long number, size_t bytes)
{
	struct block b = {.at = p, .number = number, .by = by, .bytes = bytes};

	if (!p || !number)
		return;
	pthread_mutex_lock(&lock);
	live += bytes;
	for (size_t i = slot_of(p);; i = (i + 1) & (SLOTS - 1)) {
		if (!blocks[i].at || blocks[i].at == (void *)-1 || blocks[i].at == p) {
			blocks[i] = b;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void forget(const void *p)
{
	if (!p || told < 0)
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = slot_of(p); blocks[i].at; i = (i + 1) & (SLOTS - 1)) {
		if (blocks[i].at == p) {
			live -= blocks[i].bytes;
			blocks[i].at = blocks[(i + 1) & (SLOTS - 1)].at ? (void *)-1 : NULL;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void tell(const char *line, size_t n)
{
	if (write(told, line, n) != (ssize_t)n)
		_exit(99);
}

static void write_callers(const char *what, const struct trace *t)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s", what);

	for (int i = 0; t && i < t->kept; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %lx",
			      (unsigned long)((uintptr_t)t->caller[i] - load_base));
	line[n++] = '\n';
	tell(line, (size_t)n);
}

/* Which allocation of its place this is, from 1. */
static unsigned long count_at(const char *kind, const struct trace *t)
{
	size_t i = t->hash & (PLACES - 1);
	unsigned long n;

	pthread_mutex_lock(&lock);
	while (places[i].count && places[i].hash != t->hash)
		i = (i + 1) & (PLACES - 1);
	if (!places[i].count) {
		places[i].hash = t->hash;
		places[i].kind = kind;
		places[i].by = t;
	}
	n = ++places[i].count;
	pthread_mutex_unlock(&lock);
	return n;
}

/* ---- every allocation, in a copy of the process ---- */

static int copy_out, copy_err, whole_out;
static const char *whole, *folder, *varies;
static pid_t original;
static unsigned long tried, same, ended, strays;
static unsigned
	threads; /* but those that are detached: they wait for signals, as long as it lasts */
static struct place *whole_places; /* of an untouched run */
static uint64_t left_whole[LEFT];  /* places that an untouched run does not release */
static unsigned lefts;

static struct said {
	unsigned long count;
	char text[400];
} said[SAID];

static const struct trace *refused; /* in a copy, and while it is judged */

static int put_where(char *to, size_t size, const struct trace *t)
{
	int n = snprintf(to, size, "-");

	for (int i = 0; i < t->kept; i++)
		n += snprintf(to + n, size - (size_t)n, ",%lx",
			      (unsigned long)((uintptr_t)t->caller[i] - load_base));
	return n;
}

static void finding(const char *kind, size_t bytes, const char *format, const char *text)
{
	char line[1200] = "finding ";
	int n = 8;

	n += put_where(line + n, sizeof(line) - 8, refused);
	n += snprintf(line + n, sizeof(line) - (size_t)n, " %s %zu ", kind, bytes);
	n += snprintf(line + n, sizeof(line) - (size_t)n, format, text);
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	for (int i = 0; i < n; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	line[n++] = '\n';
	tell(line, (size_t)n);
}

static bool same_bytes(int a, off_t a_from, int b, off_t b_from)
{
	char x[65536], y[65536];
	ssize_t n, m;

	do {
		n = pread(a, x, sizeof(x), a_from);
		m = pread(b, y, sizeof(y), b_from);
		if (n < 0 || n != m || memcmp(x, y, (size_t)n) != 0)
			return false;
		a_from += n;
		b_from += n;
	} while (n > 0);
	return true;
}

static size_t read_lines(int fd, off_t from, char *to)
{
	ssize_t n = pread(fd, to, PRINTED - 1, from);

	if (n < 0 || n == PRINTED - 1)
		broken("too much is printed to be compared by lines");
	to[n] = '\0';
	return (size_t)n;
}

/* Whether the line begins with one of the words. */
static bool begins(const char *line, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, " ");

		if (n && strncmp(line, words, n) == 0)
			return true;
		words += n + (words[n] == ' ');
	}
	return false;
}

static bool same_lines(int a, off_t a_from, int b, off_t b_from, const char *varies)
{
	static char *x, *y;
	char *p, *q;

	if (!x)
		x = room(PRINTED);
	if (!y)
		y = room(PRINTED);
	read_lines(a, a_from, x);
	read_lines(b, b_from, y);
	for (p = x, q = y; *p && *q;) {
		size_t n = strcspn(p, "\n"), m = strcspn(q, "\n");
		bool both = begins(p, varies) && begins(q, varies);

		if (!both && (n != m || memcmp(p, q, n) != 0))
			return false;
		p += n + (p[n] != 0);
		q += m + (q[m] != 0);
	}
	return *p == *q;
}

/* What the process itself has written by now: copies may replace it, and it stays. */
static char own[OWN][256];
static int owns;

static void find_own(void)
{
	struct dirent *entry;
	char path[512];
	DIR *d;

	snprintf(path, sizeof(path), "%s/out", folder);
	d = opendir(path);
	owns = 0;
	while (d && (entry = readdir(d)))
		if (owns < OWN)
			snprintf(own[owns++], sizeof(own[0]), "%s", entry->d_name);
	if (d)
		closedir(d);
}

static bool is_own(const char *name)
{
	for (int i = 0; i < owns; i++)
		if (strcmp(own[i], name) == 0)
			return true;
	return false;
}

/* Compares the files that the copy left with the whole ones, and removes them. How many are whole;
 * -1: one is not. */
static int compare_files(char *which, size_t size)
{
	char a[512], b[512];
	int whole_files = 0;
	struct dirent *entry;
	DIR *d;

	snprintf(a, sizeof(a), "%s/out", folder);
	d = opendir(a);
	while (d && (entry = readdir(d))) {
		int x, y;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(a, sizeof(a), "%s/out/%s", folder, entry->d_name);
		snprintf(b, sizeof(b), "%s/out/%s", whole, entry->d_name);
		x = open(a, O_RDONLY | O_CLOEXEC);
		y = open(b, O_RDONLY | O_CLOEXEC);
		if (y < 0) {
			strays++;
		} else if (x < 0 || !same_bytes(x, 0, y, 0)) {
			snprintf(which, size, "%s", entry->d_name);
			whole_files = -1000;
		} else {
			whole_files++;
		}
		close(x);
		close(y);
		if (!is_own(entry->d_name))
			unlink(a);
	}
	if (d)
		closedir(d);
	return whole_files < 0 ? -1 : whole_files;
}

static int files_in(const char *of)
{
	char path[512];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/out", of);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return d ? n - 2 : 0;
}

static void count_said(char *text)
{
	for (char *p = text; *p; p++)
		*p = isdigit((unsigned char)*p) ? '#' : *p == '\n' ? ' ' : *p;
	for (size_t i = 0; i < SAID; i++) {
		if (said[i].count && strcmp(said[i].text, text) != 0)
			continue;
		snprintf(said[i].text, sizeof(said[i].text), "%s", text);
		said[i].count++;
		return;
	}
}

static void judge_copy(const char *kind, size_t bytes, int status, off_t printed)
{
	static int expected = -1;
	char err[400] = "", which[300];
	ssize_t n = pread(copy_err, err, sizeof(err) - 1, 0);
	int got;

	if (expected < 0)
		expected = files_in(whole);
	err[n < 0 ? 0 : n] = '\0';
	got = compare_files(which, sizeof(which));
	if (got < 0)
		finding(kind, bytes, "%s is not whole", which);
	if (WIFSIGNALED(status)) {
		snprintf(which, sizeof(which), "killed by signal %d", WTERMSIG(status));
		finding(kind, bytes,
			WTERMSIG(status) == SIGALRM ? "it hangs%.0s: " : "%s: ", which);
		return;
	}
	if (WEXITSTATUS(status) == 0) {
		same++;
		if (varies ? !same_lines(copy_out, 0, whole_out, printed, varies)
			   : !same_bytes(copy_out, 0, whole_out, printed))
			finding(kind, bytes, "status 0, and another answer%s", "");
		else if (got != expected)
			finding(kind, bytes, "status 0, and a file is missing%s", "");
		return;
	}
	ended++;
	if (WEXITSTATUS(status) != 1) {
		snprintf(which, sizeof(which), "status %d", WEXITSTATUS(status));
		finding(kind, bytes, "%s", which);
	}
	if (!strcasestr(err, "memory") && !strcasestr(err, "allocate") &&
	    !strcasestr(err, "cannot start thread"))
		finding(kind, bytes, "no sentence that names memory: '%s'", err);
	count_said(err);
}

/* Whether it is the first, middle or last allocation of its place. */
static bool outstanding(const char *kind, const struct trace *t)
{
	unsigned long n = count_at(kind, t);

	for (size_t i = t->hash & (PLACES - 1); whole_places[i].count; i = (i + 1) & (PLACES - 1))
		if (whole_places[i].hash == t->hash && whole_places[i].seen)
			return n > whole_places[i].seen && n == whole_places[i].count;
		else if (whole_places[i].hash == t->hash)
			return n == 1 || n == whole_places[i].count ||
			       n == (whole_places[i].count + 1) / 2;
	return n == 1;
}

/* Whether this is the copy of the process in which the allocation is refused. */
static bool copied(const char *kind, size_t bytes, const struct trace *by)
{
	off_t printed;
	int status;
	pid_t pid;

	if (numbers < every_first || (numbers - every_first) % every_step || threads ||
	    getpid() != original)
		return false;
	inside = true;
	printed = lseek(STDOUT_FILENO, 0, SEEK_CUR);
	if (ftruncate(copy_out, 0) || ftruncate(copy_err, 0) || lseek(copy_out, 0, SEEK_SET) ||
	    lseek(copy_err, 0, SEEK_SET))
		broken("cannot empty the files of copies");
	find_own();
	tried++;
	refused_number = numbers;
	refused = by;
	/* no other thread holds it where the copy begins */
	pthread_mutex_lock(&lock);
	pid = fork();
	pthread_mutex_unlock(&lock);
	if (pid < 0)
		broken("cannot fork");
	if (pid == 0) {
		in_copy = true;
		dup2(copy_out, STDOUT_FILENO);
		dup2(copy_err, STDERR_FILENO);
		alarm(HANGS_S);
		inside = false;
		return true;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			broken("lost a copy");
	judge_copy(kind, bytes, status, printed);
	inside = false;
	return false;
}

static int open_in(const char *dir, const char *name, int flags)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 200);
}

static void begin_copies(void)
{
	char path[512], line[600];
	unsigned long count;
	uint64_t hash;
	FILE *f;

	whole = getenv("FAIL_ALLOC_WHOLE");
	folder = getenv("FAIL_ALLOC_FOLDER");
	varies = getenv("FAIL_ALLOC_VARIES");
	if (!whole || !folder)
		broken("FAIL_ALLOC_WHOLE and FAIL_ALLOC_FOLDER are not set");
	copy_out = open_in(folder, "copy_out", O_RDWR | O_CREAT | O_TRUNC);
	copy_err = open_in(folder, "copy_err", O_RDWR | O_CREAT | O_TRUNC);
	whole_out = open_in(whole, "stdout", O_RDONLY);
	if (copy_out < 0 || copy_err < 0 || whole_out < 0)
		broken("cannot open the files of copies");
	snprintf(path, sizeof(path), "%s/told", whole);
	f = fopen(path, "re");
	whole_places = room(PLACES * sizeof(*whole_places));
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "left %lx", &hash) == 1 && lefts < LEFT)
			left_whole[lefts++] = hash;
		if (sscanf(line, "place %lx %lu", &hash, &count) == 2) {
			size_t i = hash & (PLACES - 1);

			while (whole_places[i].count)
				i = (i + 1) & (PLACES - 1);
			whole_places[i].hash = hash;
			whole_places[i].count = count;
		}
		if (sscanf(line, "seen %lx %lu", &hash, &count) == 2) {
			size_t i = hash & (PLACES - 1);

			while (whole_places[i].count && whole_places[i].hash != hash)
				i = (i + 1) & (PLACES - 1);
			if (whole_places[i].count)
				whole_places[i].seen = count;
		}
	}
	if (f)
		fclose(f);
	original = getpid();
}

/* ---- the allocator ---- */

static bool over(size_t bytes)
{
	return limited && live + bytes > live_most;
}

/* Whether this allocation is the one that is refused. `*number` becomes its own, `*by` its callers
 * where they are known. */
static bool fails(const char *kind, size_t bytes, char *frame, const struct trace **by,
		  unsigned long *number)
{
	char what[64];

	*by = NULL;
	*number = 0;
	if (told < 0 || inside)
		return false;
	*number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
	*by = trace_of(frame);
	if (in_copy)
		return false;
	if (every_step) {
		if ((places_only && !outstanding(kind, *by)) || !copied(kind, bytes, *by))
			return false;
		errno = ENOMEM;
		return true;
	}
	if (over(bytes)) {
		errno = ENOMEM;
		return true;
	}
	if (count_at(kind, *by) != fail_at || (*by)->hash != fail_place)
		return false;
	inside = true;
	snprintf(what, sizeof(what), "failed %s %zu", kind, bytes);
	write_callers(what, *by);
	inside = false;
	live_most = live;
	limited = limits;
	errno = ENOMEM;
	return true;
}

static void *keep(void *p, const struct trace *by, unsigned long number)
{
	remember(p, by, number, p && number ? malloc_usable_size(p) : 0);
	return p;
}

void *malloc(size_t n)
{
	const struct trace *by;
	unsigned long number;

	if (fails("malloc", n, __builtin_frame_address(0), &by, &number))
		return NULL;
	return keep(__libc_malloc(n), by, number);
}

void *calloc(size_t n, size_t size)
{
	const struct trace *by;
	unsigned long number;

	if (fails("calloc", n * size, __builtin_frame_address(0), &by, &number))
		return NULL;
	return keep(__libc_calloc(n, size), by, number);
}

void *realloc(void *old, size_t n)
{
	const struct trace *by;
	unsigned long number;
	void *p;

	if (fails("realloc", n, __builtin_frame_address(0), &by, &number))
		return NULL;
	forget(old);
	p = __libc_realloc(old, n);
	return p ? keep(p, by, number) : n ? keep(old, by, number) : NULL;
}

void free(void *p)
{
	forget(p);
	__libc_free(p);
}

void *memalign(size_t align, size_t n)
{
	const struct trace *by;
	unsigned long number;

	if (fails("memalign", n, __builtin_frame_address(0), &by, &number))
		return NULL;
	return keep(__libc_memalign(align, n), by, number);
}

void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
	void *p = memalign(align, n);

	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

static void *map(void *at, size_t n, int prot, int flags, int fd, off_t offset, char *frame)
{
	const struct trace *by = NULL;
	unsigned long number = 0;
	void *p;

	if (flags & MAP_ANONYMOUS && fails("mmap", n, frame, &by, &number))
		return MAP_FAILED;
	p = (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
	if (p != MAP_FAILED)
		remember(p, by, number, n);
	return p;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	return map(at, n, prot, flags, fd, offset, __builtin_frame_address(0));
}

/* what the program calls, with files of any size */
void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
	return map(at, n, prot, flags, fd, offset, __builtin_frame_address(0));
}

int munmap(void *p, size_t n)
{
	forget(p);
	return (int)syscall(SYS_munmap, p, n);
}

int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	const struct trace *by;
	unsigned long number;
	bool was = inside;
	int rc;

	if (fails("thread", 0, __builtin_frame_address(0), &by, &number))
		return EAGAIN;
	threads++;
	inside = true; /* what the C library allocates for it is part of it */
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	rc = real(out, attr, start, arg);
	inside = was;
	return rc;
}

int pthread_detach(pthread_t thread)
{
	static int (*real)(pthread_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_detach");
	threads--;
	return real(thread);
}

/* ---- time that stands still ---- */

static bool still;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (still && clock == CLOCK_REALTIME) {
		*t = (struct timespec){.tv_sec = 1700000000};
		return 0;
	}
	return (int)syscall(SYS_clock_gettime, clock, t);
}

time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

/* ---- begin and end ---- */

/* The program is the first object listed. */
static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	load_base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			text_begin = load_base + info->dlpi_phdr[i].p_vaddr;
			text_end = text_begin + info->dlpi_phdr[i].p_memsz;
		}
	}
	return 1;
}

static _Unwind_Reason_Code walk_nothing(struct _Unwind_Context *c, void *arg)
{
	(void)c;
	(void)arg;
	return _URC_END_OF_STACK;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAIL_ALLOC_TOLD"), *which = getenv("FAIL_ALLOC");
	char word[8] = "";

	unsetenv("LD_PRELOAD");
	if (!path || !which)
		return;
	still = getenv("FAIL_ALLOC_CLOCK") != NULL;
	dl_iterate_phdr(find_text, NULL);
	_Unwind_Backtrace(walk_nothing, NULL); /* loads what it needs */
	blocks = room(SLOTS * sizeof(*blocks));
	places = room(PLACES * sizeof(*places));
	trace_room = room(TRACES * sizeof(*trace_room));
	inside = true;
	places_only = strncmp(which, "places", 6) == 0;
	if (sscanf(which, places_only ? "places:%lu:%lu" : "every:%lu:%lu", &every_step,
		   &every_first) == 2)
		begin_copies();
	else if (strcmp(which, "none") != 0 &&
		 sscanf(which, "%lx:%lu:%7s", &fail_place, &fail_at, word) < 2)
		_exit(98);
	inside = false;
	limits = strcmp(word, "limit") == 0;
	told = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	told = fcntl(told, F_DUPFD_CLOEXEC, 100);
}

/* A copy: what was allocated before the refusal, and is left although an untouched run releases it.
 */
static void tell_leaks(void)
{
	char line[1200] = "leak ";

	for (size_t i = 0; i < SLOTS; i++) {
		bool known = !blocks[i].at || blocks[i].at == (void *)-1 ||
			     blocks[i].number >= refused_number;
		int n = 5;

		for (unsigned k = 0; k < lefts && !known; k++)
			known = left_whole[k] == blocks[i].by->hash;
		if (known)
			continue;
		n += put_where(line + n, sizeof(line) - 5, refused);
		line[n++] = ' ';
		n += put_where(line + n, sizeof(line) - (size_t)n, blocks[i].by);
		line[n++] = '\n';
		tell(line, (size_t)n);
		return;
	}
}

__attribute__((destructor)) static void end(void)
{
	char line[512];

	inside = true;
	if (told < 0)
		return;
	if (in_copy) {
		tell_leaks();
		return;
	}
	if (every_step) {
		for (size_t i = 0; i < SAID && said[i].count; i++)
			tell(line, (size_t)snprintf(line, sizeof(line), "said %lu %s\n",
						    said[i].count, said[i].text));
		tell(line, (size_t)snprintf(line, sizeof(line), "tried %lu %lu %lu %lu\nend\n",
					    tried, same, ended, strays));
		return;
	}
	for (size_t i = 0; i < PLACES && !fail_at; i++) {
		if (places[i].count) {
			snprintf(line, sizeof(line), "place %lx %lu %s", places[i].hash,
				 places[i].count, places[i].kind);
			write_callers(line, places[i].by);
		}
	}
	for (size_t i = 0; i < SLOTS; i++) {
		if (!blocks[i].at || blocks[i].at == (void *)-1)
			continue;
		snprintf(line, sizeof(line), "left %lx", blocks[i].by->hash);
		write_callers(line, blocks[i].by);
	}
	tell("end\n", 4);
}
