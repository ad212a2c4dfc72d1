/* The ring of the process, the chunks of its threads, and what is written into them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "recorder/recorder.h"

#define PREFIX 224       /* bytes of a name that the next one can share */
#define CHUNK_FIRST 8192 /* most processes of a job are small */
#define CHUNK_SECOND 65536
#define CHUNK_MAX 262144
#define RETRY 1000 /* events that are lost before room is looked for again */
#define SPARES 64
#define TRANSFER_ROOM 80
#define FACT_MAX 4096

/* A thread's place to write: the second is of signal handlers that interrupt the first. */
struct lane {
	struct ring_chunk *chunk;
	uint8_t *at, *end;
	int64_t last_ns, last_end;
	uint64_t last_serial;
	uint32_t next_bytes, retry, prefix;
	bool busy;
	char prev[PREFIX];
};

static __thread struct {
	struct lane lane[2];
	uint64_t born; /* the process that the lanes belong to */
	bool vforked, leaving;
} mine;

enum { LIFE_NONE, LIFE_BEGINNING, LIFE_READY, LIFE_OFF };

/* In a page of its own, which the kernel empties in the child of any fork. */
struct life {
	int state;
};

static struct {
	struct life *life;
	struct ring_head *head;
	struct ring_control *control;
	uint64_t born; /* counts the processes from fork to fork */
	int64_t pid;
	uint64_t serial;
	struct ring_chunk *spare[SPARES];
	pthread_key_t key;
	bool has_key, off, all, anonymous, configured;
	uint64_t hash[2], limit, host;
	char ring[4096 + 64], dir[4096];
	char variable[6][4096 + 64];
	const char *variables[7];
	size_t variable_count;
} self;

/* ---- memory of the process ---- */

static bool failed(long r)
{
	return r < 0 && r > -4096;
}

static void *map_private(size_t n)
{
	long p = raw(SYS_mmap, 0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return failed(p) ? NULL : (void *)p;
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
	if (failed(fd))
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

/* ---- chunks ---- */

/* Bytes [at, at + n) of the file exist on the disk: a store into a mapping of what does not would
 * end the process when the disk is full. */
static bool reserve(int fd, uint64_t at, uint64_t n)
{
	static const char zeros[RING_PAGE];
	struct rlimit most;
	long r;

	if (failed(raw(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &most)) || at + n > most.rlim_cur)
		return false;
	r = raw(SYS_fallocate, fd, 0, at, n);
	if (!failed(r))
		return true;
	if (r != -EOPNOTSUPP && r != -ENOSYS && r != -EINTR)
		return false;
	for (uint64_t done = 0; done < n; done += sizeof(zeros)) {
		if (raw(SYS_pwrite64, fd, zeros, sizeof(zeros), at + done) != sizeof(zeros))
			return false;
		__atomic_fetch_add(&self.head->own_wchar, sizeof(zeros), __ATOMIC_RELAXED);
	}
	return true;
}

static bool take_budget(uint64_t n)
{
	if (__atomic_add_fetch(&self.control->used, n, __ATOMIC_RELAXED) <= self.limit)
		return true;
	__atomic_fetch_sub(&self.control->used, n, __ATOMIC_RELAXED);
	__atomic_store_n(&self.head->full, 1, __ATOMIC_RELAXED);
	return false;
}

static struct ring_chunk *new_chunk(uint32_t bytes)
{
	uint64_t at;
	long fd, p;

	if (!take_budget(bytes))
		return NULL;
	fd = raw(SYS_openat, AT_FDCWD, self.ring, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (failed(fd))
		goto refused;
	at = __atomic_fetch_add(&self.head->allocated, bytes, __ATOMIC_RELAXED);
	if (!reserve((int)fd, at, bytes)) {
		raw(SYS_close, fd);
		goto refused;
	}
	p = raw(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	raw(SYS_close, fd);
	if (failed(p))
		goto refused;
	return (struct ring_chunk *)p;
refused:
	__atomic_fetch_sub(&self.control->used, bytes, __ATOMIC_RELAXED);
	return NULL;
}

static void commit(struct lane *l)
{
	__atomic_store_n(&l->chunk->used, (uint32_t)(l->at - (uint8_t *)(l->chunk + 1)),
			 __ATOMIC_RELEASE);
}

static void lane_reset(struct lane *l, struct ring_chunk *c, int64_t base)
{
	l->chunk = c;
	l->last_ns = base;
	l->last_end = 0;
	l->last_serial = 0;
	l->prefix = 0;
}

static uint8_t *put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

/* A chunk that a thread left when it ended. */
static bool adopt(struct lane *l, int64_t tid)
{
	for (size_t i = 0; i < SPARES; i++) {
		struct ring_chunk *c;
		int64_t base;

		if (!__atomic_load_n(&self.spare[i], __ATOMIC_RELAXED))
			continue;
		c = __atomic_exchange_n(&self.spare[i], NULL, __ATOMIC_ACQ_REL);
		if (!c)
			continue;
		base = now_ns();
		lane_reset(l, c, base);
		l->at = (uint8_t *)(c + 1) + c->used;
		l->end = (uint8_t *)c + c->bytes;
		*l->at++ = RING_THREAD;
		*l->at++ = 0;
		*l->at++ = 0;
		l->at = put(put(l->at, zigzag(tid)), zigzag(base));
		commit(l);
		return true;
	}
	return false;
}

static bool renew(struct lane *l)
{
	uint32_t bytes = l->next_bytes;
	struct ring_chunk *c;
	int64_t tid = raw(SYS_gettid);

	if (l->chunk)
		raw(SYS_munmap, l->chunk, l->chunk->bytes);
	else if (adopt(l, tid))
		return true;
	l->chunk = NULL;
	c = new_chunk(bytes);
	if (!c && bytes > CHUNK_FIRST)
		c = new_chunk(bytes = CHUNK_FIRST);
	if (!c) {
		l->retry = RETRY;
		return false;
	}
	*c = (struct ring_chunk){.bytes = bytes, .tid = tid, .base_ns = now_ns()};
	__atomic_store_n(&c->magic, RING_CHUNK_MAGIC, __ATOMIC_RELEASE);
	lane_reset(l, c, c->base_ns);
	l->at = (uint8_t *)(c + 1);
	l->end = (uint8_t *)c + bytes;
	l->next_bytes = bytes < CHUNK_SECOND ? CHUNK_SECOND : CHUNK_MAX;
	return true;
}

/* When a thread ends, another one can go on with its chunk. */
static void thread_ends(void *unused)
{
	(void)unused;
	mine.leaving = true;
	if (mine.born != self.born)
		return;
	for (size_t i = 0; i < 2; i++) {
		struct lane *l = &mine.lane[i];
		struct ring_chunk *c = l->chunk;

		if (!c || l->busy)
			continue;
		l->chunk = NULL;
		for (size_t k = 0; c && l->end - l->at > 1024 && k < SPARES; k++) {
			struct ring_chunk *none = NULL;

			if (__atomic_compare_exchange_n(&self.spare[k], &none, c, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				c = NULL;
		}
		if (c)
			raw(SYS_munmap, c, c->bytes);
	}
}

static void lost(int64_t read, int64_t written)
{
	__atomic_fetch_add(&self.head->lost, 1, __ATOMIC_RELAXED);
	if (read > 0)
		__atomic_fetch_add(&self.head->lost_rchar, (uint64_t)read, __ATOMIC_RELAXED);
	if (written > 0)
		__atomic_fetch_add(&self.head->lost_wchar, (uint64_t)written, __ATOMIC_RELAXED);
}

/* The lane of this thread with room for so many bytes, held; NULL: the event is lost. */
static struct lane *hold(size_t room)
{
	struct lane *l = &mine.lane[0];

	if (UNLIKELY(mine.born != self.born)) {
		/* a new thread, or the only one of a forked process */
		memset(mine.lane, 0, sizeof(mine.lane));
		mine.lane[0].next_bytes = mine.lane[1].next_bytes = CHUNK_FIRST;
		mine.born = self.born;
		if (self.has_key && !mine.leaving)
			pthread_setspecific(self.key, &mine);
	}
	if (UNLIKELY(l->busy))
		l = &mine.lane[1];
	if (UNLIKELY(l->busy))
		return NULL;
	l->busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (LIKELY(l->chunk && (size_t)(l->end - l->at) >= room))
		return l;
	if (!l->chunk && l->retry > 0)
		l->retry--;
	else if (renew(l) && (size_t)(l->end - l->at) >= room)
		return l;
	else if (l->chunk && renew(l) && (size_t)(l->end - l->at) >= room)
		return l;
	l->busy = false;
	return NULL;
}

static void give(struct lane *l)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	l->busy = false;
}

/* ---- events ---- */

static void count(struct lane *l, int64_t read, int64_t written)
{
	if (read > 0)
		l->chunk->counts.rchar += (uint64_t)read;
	if (written > 0)
		l->chunk->counts.wchar += (uint64_t)written;
}

void note_counted(int64_t read, int64_t written)
{
	struct lane *l = hold(TRANSFER_ROOM);

	if (!l) {
		lost(read, written);
		return;
	}
	count(l, read, written);
	give(l);
}

void note_excluded(int64_t read, int64_t written)
{
	struct lane *l = hold(TRANSFER_ROOM);

	if (!l) {
		lost(read, written);
		return;
	}
	count(l, read, written);
	l->chunk->counts.excluded_calls++;
	l->chunk->counts.excluded_read += read > 0 ? (uint64_t)read : 0;
	l->chunk->counts.excluded_written += written > 0 ? (uint64_t)written : 0;
	give(l);
}

static uint8_t *put_times(struct lane *l, uint8_t *p, int64_t begin, int64_t end)
{
	p = put(p, zigzag(begin - l->last_ns));
	p = put(p, end > begin ? (uint64_t)(end - begin) : 0);
	l->last_ns = end > begin ? end : begin;
	return p;
}

static bool is_read(enum ring_kind k)
{
	return k == RING_READ || k == RING_PREAD || k == RING_STDIO_READ;
}

static bool is_written(enum ring_kind k)
{
	return k == RING_WRITE || k == RING_PWRITE || k == RING_STDIO_WRITE;
}

void note_transfer(enum ring_kind kind, uint64_t word, int64_t begin, uint64_t asked, int64_t at,
		   int64_t result)
{
	int64_t end = now_ns(), read = is_read(kind) ? result : 0,
		written = is_written(kind) ? result : 0;
	uint64_t serial = FD_SERIAL(word);
	struct lane *l;
	uint8_t *p, head = (uint8_t)kind;

	if (FD_KIND(word) == RING_EXCLUDED) {
		note_excluded(read, written);
		return;
	}
	l = hold(TRANSFER_ROOM);
	if (UNLIKELY(!l)) {
		lost(read, written);
		return;
	}
	count(l, read, written);
	p = l->at + 1;
	p = put_times(l, p, begin, end);
	if (serial == l->last_serial)
		head |= RING_SAME;
	else
		p = put(p, serial);
	l->last_serial = serial;
	p = put(p, asked);
	if (kind == RING_PREAD || kind == RING_PWRITE || kind == RING_AIO_READ ||
	    kind == RING_AIO_WRITE) {
		p = put(p, zigzag((int64_t)((uint64_t)at - (uint64_t)l->last_end)));
		l->last_end = (int64_t)((uint64_t)at + (uint64_t)(result > 0 ? result : 0));
	}
	if (result >= 0 && (uint64_t)result == asked)
		head |= RING_FULL;
	else
		p = put(p, zigzag(result));
	*l->at = head;
	l->at = p;
	commit(l);
	give(l);
}

static uint8_t *put_name(struct lane *l, uint8_t *p, const char *name, size_t n)
{
	size_t same = 0, most = n < l->prefix ? n : l->prefix, keep = n < PREFIX ? n : PREFIX;

	while (same < most && l->prev[same] == name[same])
		same++;
	p = put(p, same);
	p = put(p, n - same);
	/* not memcpy: a sanitizer of the program follows that, and not the mapping's begin and end
	 */
	for (size_t i = same; i < n; i++) {
		p[i - same] = (uint8_t)name[i];
		__asm__ volatile("" : : : "memory");
	}
	memcpy(l->prev + same, name + same, keep - (same < keep ? same : keep));
	l->prefix = (uint32_t)keep;
	return p + (n - same);
}

static size_t bounded(const char *s)
{
	return s ? strnlen(s, RING_PATH_MAX) : 0;
}

static void note_fields(enum ring_kind kind, int64_t begin, int64_t end, va_list ap)
{
	const char *fields = ring_fields(kind);
	const char *name[2] = {"", ""};
	size_t bytes[2] = {0, 0}, names = 0;
	struct lane *l;
	uint8_t *p, head = (uint8_t)kind;
	va_list again;

	va_copy(again, ap);
	for (const char *f = fields; *f; f++) {
		if (*f == 'p') {
			const char *s = va_arg(again, const char *);

			name[names] = s ? s : "";
			bytes[names] = bounded(s);
			names++;
		} else {
			(void)va_arg(again, int64_t);
		}
	}
	va_end(again);
	l = hold(TRANSFER_ROOM + bytes[0] + bytes[1] + 24);
	if (!l) {
		lost(0, 0);
		return;
	}
	p = l->at + 1;
	p = put_times(l, p, begin, end);
	names = 0;
	for (const char *f = fields; *f; f++) {
		int64_t v;

		if (*f == 'p') {
			(void)va_arg(ap, const char *);
			p = put_name(l, p, name[names], bytes[names]);
			names++;
			continue;
		}
		v = va_arg(ap, int64_t);
		if (*f == 's' && (uint64_t)v == l->last_serial) {
			head |= RING_SAME;
			continue;
		}
		if (*f == 's')
			l->last_serial = (uint64_t)v;
		p = put(p, *f == 'i' || *f == 'r' ? zigzag(v) : (uint64_t)v);
	}
	*l->at = head;
	l->at = p;
	commit(l);
	give(l);
}

/* Names become their hashes; out of line, because that needs a buffer. */
static __attribute__((noinline)) void note_hashed(enum ring_kind kind, int64_t begin, int64_t end,
						  va_list ap);

static void note_at(enum ring_kind kind, int64_t begin, int64_t end, ...)
{
	va_list ap;

	va_start(ap, end);
	note_fields(kind, begin, end, ap);
	va_end(ap);
}

static void note_hashed(enum ring_kind kind, int64_t begin, int64_t end, va_list ap)
{
	char text[2][4096];
	int64_t v[RING_FIELDS_MAX] = {0};
	size_t n = 0, names = 0;

	for (const char *f = ring_fields(kind); *f; f++, n++) {
		if (*f == 'p') {
			const char *s = va_arg(ap, const char *);
			size_t k = name_hash(s ? s : "", bounded(s), text[names], 4095);

			text[names][k] = '\0';
			v[n] = (int64_t)(intptr_t)text[names++];
		} else {
			v[n] = va_arg(ap, int64_t);
		}
	}
	/* a pointer is passed as an integer of its size on both architectures */
	note_at(kind, begin, end, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}

void note(enum ring_kind kind, int64_t begin, ...)
{
	int64_t end = now_ns();
	va_list ap;

	va_start(ap, begin);
	if (self.anonymous && kind != RING_FACT && strchr(ring_fields(kind), 'p'))
		note_hashed(kind, begin, end, ap);
	else
		note_fields(kind, begin, end, ap);
	va_end(ap);
}

uint64_t serial_next(void)
{
	return __atomic_add_fetch(&self.serial, 1, __ATOMIC_RELAXED);
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
	self.all = variable(RING_ENV_ALL) != NULL;
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

static void put_hex(char *to, uint64_t v)
{
	for (int i = 15; i >= 0; i--, v >>= 4)
		to[i] = "0123456789abcdef"[v & 15];
}

static void path_in_dir(char *out, const char *before, uint64_t id, const char *after)
{
	size_t n = strlen(self.dir), m = strlen(before);

	memcpy(out, self.dir, n);
	out[n++] = '/';
	memcpy(out + n, before, m);
	put_hex(out + n + m, id);
	memcpy(out + n + m + 16, after, strlen(after) + 1);
}

/* Which host this is, as far as its own processes agree on it. */
static uint64_t host_id(void)
{
	unsigned char text[64];
	uint64_t h = 0xcbf29ce484222325u ^ self.hash[0];
	long fd = raw(SYS_openat, AT_FDCWD, "/proc/sys/kernel/random/boot_id",
		      O_RDONLY | O_CLOEXEC),
	     n;

	if (failed(fd))
		return h;
	n = raw(SYS_read, fd, text, sizeof(text));
	raw(SYS_close, fd);
	for (long i = 0; i < n; i++)
		h = (h ^ text[i]) * 0x100000001b3u;
	return h;
}

static void *map_file(const char *path, int flags, size_t n)
{
	long fd = raw(SYS_openat, AT_FDCWD, path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600), p;
	struct rlimit most;

	if (failed(fd))
		return NULL;
	p = -1;
	if (!failed(raw(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &most)) && most.rlim_cur >= n) {
		long r = raw(SYS_fallocate, fd, 0, 0, n);

		if (r == -EOPNOTSUPP || r == -ENOSYS)
			r = raw(SYS_ftruncate, fd, n);
		if (!failed(r))
			p = raw(SYS_mmap, 0, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	raw(SYS_close, fd);
	return failed(p) ? NULL : (void *)p;
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
	uint64_t id = 0;
	char path[sizeof(self.ring)];

	if (!self.control) {
		self.host = host_id();
		path_in_dir(path, "control-", self.host, "");
		self.control = map_file(path, O_CREAT, sizeof(*self.control));
		if (!self.control)
			return false;
	}
	if (raw(SYS_getrandom, &id, sizeof(id), 0) != sizeof(id) || !id)
		id = (uint64_t)now_ns() << 20 ^ (uint64_t)raw(SYS_getpid);
	path_in_dir(self.ring, "", id, ".ring");
	h = map_file(self.ring, O_CREAT | O_EXCL, RING_PAGE);
	if (!h)
		return false;
	__atomic_fetch_add(&self.control->used, RING_PAGE, __ATOMIC_RELAXED);
	clock_gettime(CLOCK_REALTIME, &real_time);
	h->head_bytes = RING_PAGE;
	h->id = id;
	h->parent = parent;
	h->host = self.host;
	h->pid = self.pid = raw(SYS_getpid);
	h->ppid = raw(SYS_getppid);
	h->start_ns = now_ns();
	h->start_real_ns = (int64_t)real_time.tv_sec * 1000000000 + real_time.tv_nsec;
	h->first_serial = self.serial + 1;
	h->rank = rank_of(ranks, sizeof(ranks) / sizeof(ranks[0]));
	h->local_rank = rank_of(locals, sizeof(locals) / sizeof(locals[0]));
	h->ranked = h->rank >= 0;
	h->anonymous = self.anonymous;
	h->all = self.all;
	h->limit = self.limit;
	h->allocated = RING_PAGE;
	h->major_faults_start = major_faults();
	self.head = h;
	h->own_rchar = (uint64_t)read_io(&h->start);
	memcpy(h->magic, RING_MAGIC, sizeof(h->magic));
	return true;
}

static void note_command(void)
{
	char text[FACT_MAX];
	long fd = raw(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	long n = failed(fd) ? 0 : raw(SYS_read, fd, text, sizeof(text) - 1);

	if (failed(fd))
		return;
	raw(SYS_close, fd);
	if (n <= 0)
		return;
	__atomic_fetch_add(&self.head->own_rchar, (uint64_t)n, __ATOMIC_RELAXED);
	while (n > 0 && text[n - 1] == '\0')
		n--;
	text[n] = '\0';
	for (long i = 0; i < n; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	note(RING_FACT, now_ns(), (uint64_t)RING_COMMAND, text);
}

static __attribute__((noinline)) void note_facts(void)
{
	char cwd[4096], hashed[4096];
	struct utsname u;
	long n = raw(SYS_getcwd, cwd, sizeof(cwd));

	if (!self.anonymous) {
		note_command();
		if (!failed(raw(SYS_uname, &u)))
			note(RING_FACT, now_ns(), (uint64_t)RING_HOST, u.nodename);
	}
	if (failed(n) || n <= 0 || cwd[0] != '/')
		return;
	names_cwd(cwd);
	if (self.anonymous)
		hashed[name_hash(cwd, strlen(cwd), hashed, sizeof(hashed) - 1)] = '\0';
	note(RING_FACT, now_ns(), (uint64_t)RING_CWD, self.anonymous ? hashed : cwd);
}

/* The descriptors that the program was given. */
static void find_descriptors(void)
{
	long fd = raw(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n;
	char text[2048] __attribute__((aligned(8)));

	if (failed(fd))
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
	bool forked = self.head != NULL;

	if (!__atomic_compare_exchange_n(&self.life->state, &none, LIFE_BEGINNING, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	/* what a fork left of the parent's: its chunks stay mapped where other threads had them */
	parent = forked ? self.head->id : 0;
	if (forked) {
		if (mine.born == self.born)
			for (size_t i = 0; i < 2; i++)
				if (mine.lane[i].chunk)
					raw(SYS_munmap, mine.lane[i].chunk,
					    mine.lane[i].chunk->bytes);
		raw(SYS_munmap, self.head, RING_PAGE);
	}
	self.head = NULL;
	memset(self.spare, 0, sizeof(self.spare));
	self.born++;
	mine.leaving = false;
	if (!configure() || !make_ring(parent)) {
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
	page = map_private(RING_PAGE);
	if (!page)
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
	if (UNLIKELY(mine.vforked) && process_is_vforked())
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
	if (!mine.vforked)
		return false;
	if (raw(SYS_getpid) != self.pid)
		return true;
	/* the parent goes on: its child has another program now, or is gone */
	mine.vforked = false;
	return false;
}

void process_vforks(void)
{
	mine.vforked = recording();
}

void process_forked(void)
{
	(void)recording();
}

bool recording_all(void)
{
	return self.all;
}

bool recording_anonymous(void)
{
	return self.anonymous;
}

uint64_t recording_key(int half)
{
	return self.hash[half];
}

void process_used_uring(void)
{
	__atomic_fetch_add(&self.head->uring, 1, __ATOMIC_RELAXED);
}

void process_ends(void)
{
	struct ring_io io;

	maps_end();
	stdio_end();
	/* of an earlier end that was none: a program that could not be executed */
	__atomic_fetch_add(&self.head->own_rchar, self.head->own_last, __ATOMIC_RELAXED);
	self.head->own_last = (uint64_t)read_io(&io);
	self.head->major_faults_end = major_faults();
	self.head->end_ns = now_ns();
	self.head->last = io;
}

static __attribute__((constructor(101))) void loaded(void)
{
	if (pthread_key_create(&self.key, thread_ends) == 0)
		self.has_key = self.key < 32; /* beyond, setting it allocates */
	(void)recording();
}

static __attribute__((destructor(101))) void unloaded(void)
{
	if (recording() && !process_is_vforked())
		process_ends();
}
