/* The life of a process under the recorder: what the environment asks for, and the begin and end of
 * its ring. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "recorder/recorder.h"

#define FACT_MAX 4096

static __thread bool vforked;

enum { LIFE_NONE, LIFE_BEGINNING, LIFE_READY, LIFE_OFF };

/* In a page of its own, which the kernel empties in the child of any fork. */
struct life {
	int state;
};

static struct {
	struct life *life;
	int64_t pid;
	bool off, configured, anonymous;
	bool filtered; /* by seccomp(2) */
	uint64_t hash[2], limit, host;
	char dir[RING_DIR_MAX];
	char variable[6][RING_DIR_MAX + 64];
	const char *variables[7];
	size_t variable_count;
} self;

/* ---- the kernel, the clock, and the functions of the library behind this one ---- */

long kernel6(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "the recorder knows the system calls of x86-64 and aarch64"
#endif
}

long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	return UNLIKELY(process_is_filtered()) ? -ENOSYS : kernel6(nr, a, b, c, d, e, f);
}

void *real_find(void **slot, const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);

	__atomic_store_n(slot, p, __ATOMIC_RELAXED);
	return p;
}

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- /proc/self/io ---- */

/* Returns how many bytes were read, which the counters have from then on. */
static long read_io(struct ring_io *out)
{
	static const char *const names[] = {
		"rchar: ", "wchar: ", "syscr: ", "syscw: ", "read_bytes: ", "\nwrite_bytes: "};
	uint64_t *const to[] = {&out->rchar, &out->wchar,      &out->syscr,
				&out->syscw, &out->read_bytes, &out->write_bytes};
	char text[512];
	long fd = raw(SYS_openat, AT_FDCWD, "/proc/self/io", O_RDONLY | O_CLOEXEC), n;

	*out = (struct ring_io){0};
	if (raw_failed(fd))
		return 0;
	n = raw(SYS_read, fd, text, sizeof(text) - 1);
	raw(SYS_close, fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *p = strstr(text, names[i]);

		if (!p)
			return n;
		for (p += strlen(names[i]); *p >= '0' && *p <= '9'; p++)
			*to[i] = *to[i] * 10 + (uint64_t)(*p - '0');
	}
	out->known = 1;
	return n;
}

static int64_t major_faults(void)
{
	struct rusage u = {0};

	raw(SYS_getrusage, RUSAGE_SELF, &u);
	return u.ru_majflt;
}

/* ---- a process begins ---- */

static const char *variable(const char *name)
{
	size_t n = strlen(name);

	for (char **v = environ; v && *v; v++)
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
			return *v + n + 1;
	return NULL;
}

static bool parse_number(const char *s, uint64_t *out)
{
	*out = 0;
	if (!s || !*s)
		return false;
	for (; *s >= '0' && *s <= '9' && *out < UINT64_MAX / 16; s++)
		*out = *out * 10 + (uint64_t)(*s - '0');
	return *s == '\0';
}

static bool parse_key(const char *s)
{
	for (int i = 0; i < 32; i++) {
		int c = s[i], digit = c >= '0' && c <= '9'   ? c - '0'
				      : c >= 'a' && c <= 'f' ? c - 'a' + 10
							     : -1;

		if (digit < 0)
			return false;
		self.hash[i / 16] = self.hash[i / 16] << 4 | (uint64_t)digit;
	}
	return true;
}

static void keep_variable(const char *name, const char *value, bool named)
{
	char *to = self.variable[self.variable_count];
	size_t n = named ? strlen(name) : 0, m = strlen(value);

	if (n + m + 2 > sizeof(self.variable[0]))
		return;
	memcpy(to, name, n);
	if (named)
		to[n++] = '=';
	memcpy(to + n, value, m + 1);
	self.variables[self.variable_count++] = to;
}

/* What the environment asks for, once: the program may change it later. */
static bool configure(void)
{
	static const char *const names[] = {RING_ENV_DIR, RING_ENV_LIB, RING_ENV_LIMIT,
					    RING_ENV_KEY, RING_ENV_ALL};
	const char *dir = variable(RING_ENV_DIR), *key = variable(RING_ENV_KEY),
		   *lib = variable(RING_ENV_LIB);

	if (self.configured)
		return !self.off;
	self.configured = true;
	self.off = true;
	if (!dir || *dir != '/' || strlen(dir) >= sizeof(self.dir) || !lib ||
	    !parse_number(variable(RING_ENV_LIMIT), &self.limit) || (key && !parse_key(key)))
		return false;
	memcpy(self.dir, dir, strlen(dir) + 1);
	self.anonymous = key != NULL;
	names_begin(variable(RING_ENV_ALL) != NULL, key ? self.hash : NULL);
	keep_variable("", lib, false);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (variable(names[i]))
			keep_variable(names[i], variable(names[i]), true);
	self.off = false;
	return true;
}

size_t process_variables(const char *const **out)
{
	*out = self.variables;
	return self.off ? 0 : self.variable_count;
}

/* Which host this is, as far as its own processes agree on it. */
static uint64_t host_id(void)
{
	unsigned char text[64];
	uint64_t h = 0xcbf29ce484222325u ^ self.hash[0];
	long fd = raw(SYS_openat, AT_FDCWD, "/proc/sys/kernel/random/boot_id",
		      O_RDONLY | O_CLOEXEC),
	     n;

	if (raw_failed(fd))
		return h;
	n = raw(SYS_read, fd, text, sizeof(text));
	raw(SYS_close, fd);
	for (long i = 0; i < n; i++)
		h = (h ^ text[i]) * 0x100000001b3u;
	return h;
}

static int64_t rank_of(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v;

		if (parse_number(variable(names[i]), &v) && v < INT32_MAX)
			return (int64_t)v;
	}
	return -1;
}

static bool make_ring(uint64_t parent)
{
	static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",    "PMI_RANK",
					    "MV2_COMM_WORLD_RANK",  "SLURM_PROCID", "RANK"};
	static const char *const locals[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
					     "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
					     "LOCAL_RANK"};
	struct ring_head *h;
	struct timespec real_time;

	if (!self.host)
		self.host = host_id();
	h = ring_begin(self.dir, self.host, self.limit);
	if (!h)
		return false;
	clock_gettime(CLOCK_REALTIME, &real_time);
	h->parent = parent;
	h->pid = self.pid = raw(SYS_getpid);
	h->ppid = raw(SYS_getppid);
	h->start_ns = now_ns();
	h->start_real_ns = (int64_t)real_time.tv_sec * 1000000000 + real_time.tv_nsec;
	h->rank = rank_of(ranks, sizeof(ranks) / sizeof(ranks[0]));
	h->local_rank = rank_of(locals, sizeof(locals) / sizeof(locals[0]));
	h->ranked = h->rank >= 0;
	h->anonymous = self.anonymous;
	h->all = names_all();
	h->major_faults_start = major_faults();
	(void)guarded_add(&h->own_rchar, (uint64_t)read_io(&h->start));
	h->begin_sum = ring_begin_sum(h);
	memcpy(h->magic, RING_MAGIC, sizeof(h->magic));
	return true;
}

static void note_command(char *text)
{
	long fd = raw(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	long n = raw_failed(fd) ? 0 : raw(SYS_read, fd, text, FACT_MAX - 1);

	if (raw_failed(fd))
		return;
	raw(SYS_close, fd);
	if (n <= 0)
		return;
	(void)guarded_add(&ring_head()->own_rchar, (uint64_t)n);
	while (n > 0 && text[n - 1] == '\0')
		n--;
	text[n] = '\0';
	for (long i = 0; i < n; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	note(RING_FACT, now_ns(), (uint64_t)RING_COMMAND, text);
}

static void note_cwd(char *cwd, char *hashed)
{
	if (raw(SYS_getcwd, cwd, FACT_MAX) <= 0 || cwd[0] != '/')
		return;
	names_cwd(cwd);
	if (self.anonymous)
		hashed[name_hash(cwd, strlen(cwd), hashed, FACT_MAX - 1)] = '\0';
	note(RING_FACT, now_ns(), (uint64_t)RING_CWD, self.anonymous ? hashed : cwd);
}

static __attribute__((noinline)) void note_host(void)
{
	struct utsname u;

	if (!raw_failed(raw(SYS_uname, &u)))
		note(RING_FACT, now_ns(), (uint64_t)RING_HOST, u.nodename);
}

static __attribute__((noinline)) void note_facts(void)
{
	char *room = scratch_take();

	if (!self.anonymous) {
		if (room)
			note_command(room);
		note_host();
	}
	if (room)
		note_cwd(room, room + SCRATCH / 2);
	scratch_give(room);
}

/* The descriptors that the program was given. While the library is loaded: the stack is large. */
static void find_descriptors(void)
{
	long fd = raw(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n;
	char text[2048] __attribute__((aligned(8)));

	if (raw_failed(fd))
		return;
	while ((n = raw(SYS_getdents64, fd, text, sizeof(text))) > 0) {
		for (long at = 0; at < n;) {
			uint16_t length;
			uint64_t k;

			memcpy(&length, text + at + 16, sizeof(length));
			if (parse_number(text + at + 19, &k) && k < INT32_MAX && (long)k != fd)
				(void)fd_word((int)k);
			at += length;
		}
	}
	raw(SYS_close, fd);
}

static void begin_life(void)
{
	int none = LIFE_NONE;
	uint64_t parent;
	bool forked = ring_head() != NULL;

	if (!__atomic_compare_exchange_n(&self.life->state, &none, LIFE_BEGINNING, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	parent = forked ? ring_head()->id : 0;
	if (forked && self.filtered)
		(void)guarded_add(&ring_head()->filtered_children, 1);
	ring_forked();
	if (self.filtered || !configure() || !make_ring(parent)) {
		__atomic_store_n(&self.life->state, LIFE_OFF, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&self.life->state, LIFE_READY, __ATOMIC_RELEASE);
	note_facts();
	if (!forked)
		find_descriptors();
}

static bool make_life(void)
{
	struct life *page, *none = NULL;

	if (!environ)
		return false;
	page = (struct life *)raw(SYS_mmap, 0, RING_PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw_failed((long)page))
		return false;
	raw(SYS_madvise, page, RING_PAGE, MADV_WIPEONFORK);
	if (!__atomic_compare_exchange_n(&self.life, &none, page, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		raw(SYS_munmap, page, RING_PAGE);
	return true;
}

bool recording(void)
{
	if (UNLIKELY(!self.life) && !make_life())
		return false;
	if (UNLIKELY(vforked) && process_is_vforked())
		return false;
	if (UNLIKELY(__atomic_load_n(&self.life->state, __ATOMIC_ACQUIRE) != LIFE_READY)) {
		if (self.life->state == LIFE_NONE)
			begin_life();
		return self.life->state == LIFE_READY;
	}
	return true;
}

bool process_is_vforked(void)
{
	if (!vforked)
		return false;
	if (raw(SYS_getpid) != self.pid)
		return true;
	/* the parent goes on: its child has another program now, or is gone */
	vforked = false;
	return false;
}

void process_vforks(void)
{
	vforked = recording() && !process_is_filtered();
}

bool process_is_filtered(void)
{
	return __atomic_load_n(&self.filtered, __ATOMIC_RELAXED);
}

int64_t process_id(void)
{
	return process_is_filtered() ? self.pid : raw(SYS_getpid);
}

bool process_filtered(bool all)
{
	bool was = self.filtered;

	if (ring_head() && !was) {
		/* for programs that are executed behind it */
		(void)exec_room(32768);
		(void)guarded_add(&ring_head()->filtered, 1);
		if (all)
			process_ends(0);
	}
	if (all && self.life)
		__atomic_store_n(&self.life->state, LIFE_OFF, __ATOMIC_RELEASE);
	__atomic_store_n(&self.filtered, true, __ATOMIC_RELAXED);
	return was;
}

void process_unfiltered(bool was)
{
	__atomic_store_n(&self.filtered, was, __ATOMIC_RELAXED);
	if (!was && ring_head() && self.life && self.life->state == LIFE_OFF)
		__atomic_store_n(&self.life->state, LIFE_READY, __ATOMIC_RELEASE);
	if (!was && recording())
		(void)guarded_add(&ring_head()->filtered, (uint64_t)-1);
}

void process_forked(void)
{
	(void)recording();
}

void process_ends(uint64_t still)
{
	struct ring_head *h = ring_head(), final;
	struct ring_io io;

	/* of an earlier end that was none: a program that could not be executed */
	h->end_ns = 0;
	(void)guarded_add(&h->own_rchar, h->own_last);
	h->own_last = (uint64_t)read_io(&io);
	io.wchar += still;
	h->major_faults_end = major_faults();
	h->last = io;
	/* what is here without an end is none */
	final = *h;
	final.end_ns = now_ns();
	h->end_sum = ring_end_sum(&final);
	__atomic_store_n(&h->end_ns, final.end_ns, __ATOMIC_RELEASE);
	ring_tell_cut();
}

static __attribute__((constructor(101))) void loaded(void)
{
	ring_threads_end();
	(void)recording();
}
