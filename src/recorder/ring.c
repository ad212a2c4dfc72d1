/* The ring of the process, the chunks of its threads, and what is written into them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/recorder.h"

#define PREFIX 224       /* bytes of a name that the next one can share */
#define CHUNK_FIRST 8192 /* most processes of a job are small */
#define CHUNK_SECOND 65536
#define CHUNK_MAX 262144
#define RETRY 1000 /* events that are lost before room is looked for again */
#define SPARES 64
#define TRANSFER_ROOM 80

/* A thread's place to write: the second is of signal handlers that interrupt the first. */
struct lane {
	struct ring_chunk *chunk;
	uint8_t *at, *end, *summed; /* summed: up to where the sum is */
	int64_t last_ns, last_end;
	uint64_t last_serial;
	uint32_t bytes, sum, next_bytes, retry, prefix;
	bool busy;
	char *held; /* in the frame that holds it */
	char prev[PREFIX];
};

static __thread struct {
	struct lane lane[2];
	uint64_t born; /* the process that the lanes belong to */
	bool leaving;
} mine;

static struct {
	struct ring_head *head;
	struct ring_control *control;
	uint64_t born; /* counts the processes from fork to fork */
	uint64_t serial, limit;
	uintptr_t spare[SPARES]; /* chunks; in the lowest bits, which of spare_bytes */
	bool cut, told;          /* another process cut the ring; the control file has it */
	pthread_key_t key;
	bool has_key;
	char path[RING_DIR_MAX + 64];
} self;

static const uint32_t spare_bytes[] = {CHUNK_FIRST, CHUNK_SECOND, CHUNK_MAX};

uint64_t guarded_add(uint64_t *word, uint64_t n)
{
	uint64_t was = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(word, &was, ring_guarded(was + n), true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return was & RING_VALUE;
}

/* ---- pages that are gone ---- */

/* What is stored there from now on is nobody's. */
static bool replace(void *at, size_t n, const void *address)
{
	uintptr_t first = (uintptr_t)at, a = (uintptr_t)address;

	if (!at || a < first || a - first >= n)
		return false;
	return !raw_failed(kernel6(SYS_mmap, (long)at, (long)n, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

bool ring_lost_page(const void *address)
{
	bool ours =
		replace(self.head, RING_PAGE, address) || replace(self.control, RING_PAGE, address);

	for (size_t i = 0; i < 2 && !ours && mine.born == self.born; i++)
		ours = replace(mine.lane[i].chunk, mine.lane[i].bytes, address);
	if (ours)
		self.cut = true;
	return ours;
}

/* ---- chunks ---- */

/* Bytes [at, at + n) of the file exist on the disk: a store into a mapping of what does not would
 * end the process when the disk is full. */
static bool reserve(int fd, uint64_t at, uint64_t n)
{
	static const char zeros[RING_PAGE];
	struct rlimit most;
	long r;

	if (raw_failed(raw(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &most)) || at + n > most.rlim_cur)
		return false;
	r = raw(SYS_fallocate, fd, 0, at, n);
	if (!raw_failed(r))
		return true;
	if (r != -EOPNOTSUPP && r != -ENOSYS && r != -EINTR)
		return false;
	for (uint64_t done = 0; done < n; done += sizeof(zeros)) {
		if (raw(SYS_pwrite64, fd, zeros, sizeof(zeros), at + done) != sizeof(zeros))
			return false;
		(void)guarded_add(&self.head->own_wchar, sizeof(zeros));
	}
	return true;
}

static bool take_budget(uint64_t n)
{
	if (__atomic_add_fetch(&self.control->used, n, __ATOMIC_RELAXED) <= self.limit)
		return true;
	__atomic_fetch_sub(&self.control->used, n, __ATOMIC_RELAXED);
	__atomic_store_n(&self.head->full, ring_guarded(1), __ATOMIC_RELAXED);
	return false;
}

void ring_tell_cut(void)
{
	if (self.cut && !self.told) {
		self.told = true;
		(void)guarded_add(&self.control->cut, 1);
	}
}

/* A ring that another process cut has no place for more. */
static bool is_cut(int fd)
{
	struct stat st;

	if (!self.cut && !raw_failed(raw(SYS_fstat, fd, &st)) && st.st_size < RING_PAGE)
		self.cut = true;
	ring_tell_cut();
	return self.cut;
}

static struct ring_chunk *new_chunk(uint32_t bytes)
{
	uint64_t at;
	long fd, p;

	if (!take_budget(bytes))
		return NULL;
	fd = raw(SYS_openat, AT_FDCWD, self.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (raw_failed(fd))
		goto refused;
	at = RING_PAGE + guarded_add(&self.head->allocated, bytes);
	if (is_cut((int)fd) || !reserve((int)fd, at, bytes)) {
		(void)guarded_add(&self.head->refused, bytes);
		raw(SYS_close, fd);
		goto refused;
	}
	p = raw(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	raw(SYS_close, fd);
	if (raw_failed(p)) {
		(void)guarded_add(&self.head->refused, bytes);
		goto refused;
	}
	return (struct ring_chunk *)p;
refused:
	__atomic_fetch_sub(&self.control->used, bytes, __ATOMIC_RELAXED);
	return NULL;
}

static void commit(struct lane *l)
{
	uint64_t used = (uint64_t)(l->at - (uint8_t *)(l->chunk + 1));

	l->sum = ring_sum(l->sum, l->summed, (size_t)(l->at - l->summed));
	l->summed = l->at;
	__atomic_store_n(&l->chunk->used_and_sum, used | (uint64_t)l->sum << 32, __ATOMIC_RELEASE);
}

static void lane_take(struct lane *l, struct ring_chunk *c, uint32_t bytes)
{
	l->bytes = bytes;
	l->end = (uint8_t *)c + bytes;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	l->chunk = c; /* from here on its pages may go */
}

static void lane_reset(struct lane *l, int64_t base)
{
	uint64_t used = __atomic_load_n(&l->chunk->used_and_sum, __ATOMIC_RELAXED);

	l->at = l->summed = (uint8_t *)(l->chunk + 1) + (uint32_t)used;
	l->sum = (uint32_t)(used >> 32);
	if (l->at > l->end || !l->sum) /* its page is gone */
		l->at = l->summed = (uint8_t *)(l->chunk + 1);
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

/* Goes on with a chunk, from its last complete event: nothing that events refer to is known. */
static void go_on(struct lane *l, int64_t tid)
{
	int64_t base = now_ns();

	lane_reset(l, base);
	*l->at++ = RING_THREAD;
	*l->at++ = 0;
	*l->at++ = 0;
	l->at = put(put(l->at, zigzag(tid)), zigzag(base));
	commit(l);
}

/* A chunk that a thread left when it ended. */
static bool adopt(struct lane *l, int64_t tid)
{
	for (size_t i = 0; i < SPARES; i++) {
		uintptr_t c;

		if (!__atomic_load_n(&self.spare[i], __ATOMIC_RELAXED))
			continue;
		c = __atomic_exchange_n(&self.spare[i], 0, __ATOMIC_ACQ_REL);
		if (!c)
			continue;
		lane_take(l, (struct ring_chunk *)(c & ~(uintptr_t)3), spare_bytes[c & 3]);
		go_on(l, tid);
		return true;
	}
	return false;
}

/* In this order: a handler that never returns may interrupt it. */
static void drop(struct lane *l)
{
	struct ring_chunk *c = l->chunk;

	l->chunk = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	raw(SYS_munmap, c, l->bytes);
}

static bool renew_undisturbed(struct lane *l)
{
	uint32_t bytes = l->next_bytes;
	struct ring_chunk *c;
	int64_t tid = raw(SYS_gettid), base;

	faults_watch();
	if (l->chunk)
		drop(l);
	else if (adopt(l, tid))
		return true;
	c = new_chunk(bytes);
	if (!c && bytes > CHUNK_FIRST)
		c = new_chunk(bytes = CHUNK_FIRST);
	if (!c) {
		l->retry = RETRY;
		return false;
	}
	lane_take(l, c, bytes);
	base = now_ns();
	*c = (struct ring_chunk){.bytes = bytes, .tid = tid, .base_ns = base, .sum = RING_SUM};
	__atomic_store_n(&c->magic, ring_chunk_magic(c), __ATOMIC_RELEASE);
	lane_reset(l, base);
	l->next_bytes = bytes < CHUNK_SECOND ? CHUNK_SECOND : CHUNK_MAX;
	return true;
}

/* A handler that jumps out would leave the room that was just reserved unused. Faults are not held
 * back. Where SIGBUS is, a page that is gone would end the process: it is let through. */
static bool renew(struct lane *l)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	uint64_t held = ~0ull, was;
	bool done, holds;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		held &= ~(1ull << (faults[i] - 1));
	holds = !raw_failed(raw(SYS_rt_sigprocmask, SIG_BLOCK, &held, &was, sizeof(was)));
	done = renew_undisturbed(l);
	if (!holds)
		return done;
	was &= ~(1ull << (SIGBUS - 1));
	kernel6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&was, 0, sizeof(was), 0, 0);
	return done;
}

/* When a thread ends, another one can go on with its chunk. */
static void thread_ends(void *unused)
{
	(void)unused;
	mine.leaving = true;
	rooms_end();
	if (mine.born != self.born)
		return;
	for (size_t i = 0; i < 2; i++) {
		struct lane *l = &mine.lane[i];
		uintptr_t c = (uintptr_t)l->chunk;

		if (!c || l->busy)
			continue;
		l->chunk = NULL;
		for (unsigned k = 0; k < 3; k++)
			if (l->bytes == spare_bytes[k])
				c |= k;
		for (size_t k = 0; c && l->end - l->at > 1024 && k < SPARES; k++) {
			uintptr_t none = 0;

			if (__atomic_compare_exchange_n(&self.spare[k], &none, c, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				c = 0;
		}
		if (c)
			raw(SYS_munmap, c & ~(uintptr_t)3, l->bytes);
	}
}

bool thread_is_leaving(void)
{
	return mine.leaving;
}

static void lost(int64_t read, int64_t written)
{
	(void)guarded_add(&self.head->lost, 1);
	if (read > 0)
		(void)guarded_add(&self.head->lost_rchar, (uint64_t)read);
	if (written > 0)
		(void)guarded_add(&self.head->lost_wchar, (uint64_t)written);
}

/* Of a chunk, into which one thread stores. */
static inline void count_one(uint64_t *word, uint64_t n)
{
	*word = ring_guarded(*word + n);
}

/* Whether the holder of the lane is gone: a signal handler that interrupted it did not return but
 * jumped, and the stack is shorter than it was. What it had begun to write is lost. */
static __attribute__((noinline)) bool taken_back(struct lane *l, const char *frame)
{
	stack_t s;

	if (frame < l->held || raw_failed(raw(SYS_sigaltstack, NULL, &s)) ||
	    s.ss_flags & SS_ONSTACK)
		return false;
	if (l->chunk) {
		count_one(&l->chunk->counts.cut_off, 1);
		if (l->bytes - sizeof(*l->chunk) - l->chunk->used > TRANSFER_ROOM)
			go_on(l, raw(SYS_gettid));
		else
			drop(l);
	}
	l->busy = false;
	return true;
}

/* Threads that load samples have names that tell them from others. */
static __attribute__((noinline)) void note_thread(void)
{
	char name[16] = "";

	if (!names_hashed() && !raw_failed(raw(SYS_prctl, PR_GET_NAME, name)))
		note(RING_FACT, now_ns(), (uint64_t)RING_NAME, name);
}

/* The lane of this thread with room for so many bytes, held; NULL: the event is lost. */
static struct lane *hold(size_t room)
{
	struct lane *l = &mine.lane[0];
	char *frame = __builtin_frame_address(0);

	if (UNLIKELY(mine.born != self.born)) {
		/* a new thread, or the only one of a forked process */
		memset(mine.lane, 0, sizeof(mine.lane));
		mine.lane[0].next_bytes = mine.lane[1].next_bytes = CHUNK_FIRST;
		mine.born = self.born;
		if (self.has_key && !mine.leaving)
			pthread_setspecific(self.key, &mine);
		if (!mine.leaving)
			note_thread();
	}
	if (UNLIKELY(l->busy) && !taken_back(l, frame))
		l = &mine.lane[1];
	if (UNLIKELY(l->busy) && !taken_back(l, frame))
		return NULL;
	l->busy = true;
	l->held = frame;
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
		count_one(&l->chunk->counts.rchar, (uint64_t)read);
	if (written > 0)
		count_one(&l->chunk->counts.wchar, (uint64_t)written);
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
	count_one(&l->chunk->counts.excluded_calls, 1);
	count_one(&l->chunk->counts.excluded_read, read > 0 ? (uint64_t)read : 0);
	count_one(&l->chunk->counts.excluded_written, written > 0 ? (uint64_t)written : 0);
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
	note_ended(kind, word, begin, now_ns(), asked, at, result);
}

void note_ended(enum ring_kind kind, uint64_t word, int64_t begin, int64_t end, uint64_t asked,
		int64_t at, int64_t result)
{
	int64_t read = is_read(kind) ? result : 0, written = is_written(kind) ? result : 0;
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
	memcpy(p, name + same, n - same);
	memcpy(l->prev + same, name + same, keep - (same < keep ? same : keep));
	l->prefix = (uint32_t)keep;
	return p + (n - same);
}

static size_t bounded(const char *s)
{
	return s ? strnlen(s, RING_PATH_MAX) : 0;
}

#define HASHED_MOST 4095 /* bytes of a name whose parts are hashed */

/* At most, of so many bytes: a part of one byte becomes a hash of eleven. */
static size_t hashed_bytes(size_t n)
{
	return n < HASHED_MOST / 12 - 2 ? 12 * n + 24 : HASHED_MOST;
}

/* Names become their hashes where the chunk ends, and go from there into the event: the stack has
 * no room for them. */
static void note_fields(enum ring_kind kind, int64_t begin, int64_t end, va_list ap)
{
	const char *fields = ring_fields(kind);
	const char *name[2] = {"", ""};
	size_t bytes[2] = {0, 0}, names = 0, room = TRANSFER_ROOM + 24, behind = 0;
	bool hashed = names_hashed() && kind != RING_FACT;
	struct lane *l;
	uint8_t *p, head = (uint8_t)kind;
	va_list again;

	va_copy(again, ap);
	for (const char *f = fields; *f; f++) {
		if (*f == 'p') {
			const char *s = va_arg(again, const char *);

			name[names] = s ? s : "";
			bytes[names] = bounded(s);
			if (hashed && behind < hashed_bytes(bytes[names]))
				behind = hashed_bytes(bytes[names]);
			room += hashed ? hashed_bytes(bytes[names]) : bytes[names];
			names++;
		} else {
			(void)va_arg(again, int64_t);
		}
	}
	va_end(again);
	l = hold(room + behind);
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
			const char *text = name[names];
			size_t n = bytes[names++];

			(void)va_arg(ap, const char *);
			if (hashed) {
				char *to = (char *)l->end - behind;

				n = name_hash(text, n, to, HASHED_MOST);
				text = to;
			}
			p = put_name(l, p, text, n);
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

void note(enum ring_kind kind, int64_t begin, ...)
{
	int64_t end = now_ns();
	va_list ap;

	va_start(ap, begin);
	note_fields(kind, begin, end, ap);
	va_end(ap);
}

uint64_t serial_next(void)
{
	return __atomic_add_fetch(&self.serial, 1, __ATOMIC_RELAXED);
}

/* ---- a ring begins ---- */

static void put_hex(char *to, uint64_t v)
{
	for (int i = 15; i >= 0; i--, v >>= 4)
		to[i] = "0123456789abcdef"[v & 15];
}

static void path_in_dir(char *out, const char *dir, const char *before, uint64_t id,
			const char *after)
{
	size_t n = strlen(dir), m = strlen(before);

	memcpy(out, dir, n);
	out[n++] = '/';
	memcpy(out + n, before, m);
	put_hex(out + n + m, id);
	memcpy(out + n + m + 16, after, strlen(after) + 1);
}

static void *map_file(const char *path, int flags, size_t n)
{
	long fd = raw(SYS_openat, AT_FDCWD, path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600), p;
	struct rlimit most;

	if (raw_failed(fd))
		return NULL;
	p = -1;
	if (!raw_failed(raw(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &most)) && most.rlim_cur >= n) {
		long r = raw(SYS_fallocate, fd, 0, 0, n);

		if (r == -EOPNOTSUPP || r == -ENOSYS)
			r = raw(SYS_ftruncate, fd, n);
		if (!raw_failed(r))
			p = raw(SYS_mmap, 0, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	raw(SYS_close, fd);
	return raw_failed(p) ? NULL : (void *)p;
}

struct ring_head *ring_begin(const char *dir, uint64_t host, uint64_t limit)
{
	struct ring_head *h;
	uint64_t id = 0;

	if (!self.control) {
		path_in_dir(self.path, dir, RING_CONTROL_NAME, host, "");
		self.control = map_file(self.path, O_CREAT, sizeof(*self.control));
		if (!self.control)
			return NULL;
	}
	if (raw(SYS_getrandom, &id, sizeof(id), 0) != sizeof(id) || !id)
		id = (uint64_t)now_ns() << 20 ^ (uint64_t)raw(SYS_getpid);
	path_in_dir(self.path, dir, "", id, ".ring");
	h = map_file(self.path, O_CREAT | O_EXCL, RING_PAGE);
	if (!h)
		return NULL;
	self.limit = limit;
	self.head = h;
	faults_watch();
	memcpy(self.control->magic, RING_CONTROL_MAGIC, sizeof(self.control->magic));
	(void)guarded_add(&self.control->rings, 1);
	__atomic_fetch_add(&self.control->used, RING_PAGE, __ATOMIC_RELAXED);
	h->head_bytes = RING_PAGE;
	h->id = id;
	h->host = host;
	h->limit = limit;
	h->first_serial = self.serial + 1;
	return h;
}

struct ring_head *ring_head(void)
{
	return self.head;
}

void ring_forked(void)
{
	/* chunks of the parent's other threads stay mapped */
	if (self.head) {
		if (mine.born == self.born)
			for (size_t i = 0; i < 2; i++)
				if (mine.lane[i].chunk)
					raw(SYS_munmap, mine.lane[i].chunk, mine.lane[i].bytes);
		raw(SYS_munmap, self.head, RING_PAGE);
	}
	self.head = NULL;
	memset(self.spare, 0, sizeof(self.spare));
	self.cut = self.told = false;
	self.born++;
	mine.leaving = false;
}

void ring_threads_end(void)
{
	if (pthread_key_create(&self.key, thread_ends) == 0)
		self.has_key = self.key < 32; /* beyond, setting it allocates */
}

void note_uring_used(void)
{
	(void)guarded_add(&self.head->uring, 1);
}
