/* The file of recorded sizes and orders. */
#include "workload/recorded_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_out.h"
#include "codec/crc.h"

#define MAGIC "stoker recorded\n"
#define MAGIC_BYTES 16u
#define VERSION 3u
#define VERSION_IDLE 2u    /* without work */
#define VERSION_WITHOUT 1u /* requests */
#define HEAD_BYTES 32u     /* up to the first part */
#define COVERED_FROM 24u   /* by the checksum */
#define PART_BYTES 32u     /* before its sizes */
#define SAMPLES_MAX UINT32_MAX

static const char *const part_names[RECORDED_PARTS] = {"training", "evaluation"};

/* ---- writing ---- */

struct writer {
	struct out_file *file; /* NULL: only the checksum is made */
	uint32_t crc;
};

static void put(struct writer *w, const void *bytes, size_t n)
{
	if (w->file)
		out_file_put(w->file, bytes, n);
	else
		w->crc = crc32c_update(w->crc, bytes, n);
}

static void put_u32(struct writer *w, uint32_t v)
{
	v = htole32(v);
	put(w, &v, sizeof(v));
}

static void put_u64(struct writer *w, uint64_t v)
{
	v = htole64(v);
	put(w, &v, sizeof(v));
}

static bool has_requests(const struct recorded *r)
{
	return r->part[RECORDED_TRAIN].requests || r->part[RECORDED_EVAL].requests;
}

static bool has_work(const struct recorded *r)
{
	return r->part[RECORDED_TRAIN].work || r->part[RECORDED_EVAL].work;
}

static uint64_t request_lists(const struct recorded_part *p)
{
	return p->files * (p->samples_per_file + 1);
}

static void put_body(struct writer *w, const struct recorded *r)
{
	put_u32(w, r->ranks);
	put_u32(w, 0);
	for (int k = 0; k < RECORDED_PARTS; k++) {
		const struct recorded_part *p = &r->part[k];

		put_u64(w, p->files);
		put_u64(w, p->samples_per_file);
		put_u64(w, p->bytes != NULL);
		put_u64(w, p->epochs);
		for (uint64_t i = 0; p->bytes && i < p->files; i++)
			put_u64(w, p->bytes[i]);
		for (uint64_t i = 0; i < p->epochs * r->ranks; i++) {
			put_u64(w, p->visits[i].n);
			for (uint64_t j = 0; j < p->visits[i].n; j++)
				put_u32(w, p->visits[i].sample[j]);
		}
		if (!has_requests(r))
			continue;
		put_u64(w, p->requests ? request_lists(p) : 0);
		for (uint64_t i = 0; p->requests && i < request_lists(p); i++) {
			put_u32(w, p->requests[i].n);
			put(w, p->requests[i].at,
			    (size_t)p->requests[i].n * RECORDED_REQUEST_BYTES);
		}
		for (uint64_t i = 0; has_work(r) && p->requests && i < request_lists(p); i++)
			put_u32(w, p->work ? p->work[i] : 0);
	}
}

static int check_part(const struct recorded *r, int k, struct err *e)
{
	const struct recorded_part *p = &r->part[k];
	uint64_t samples;

	if (p->samples_per_file == 0 ||
	    __builtin_mul_overflow(p->files, p->samples_per_file, &samples) ||
	    samples > SAMPLES_MAX)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64 " files of %" PRIu64
			       " samples for %s: a recorded order has 1 to %" PRIu32 " samples",
			       p->files, p->samples_per_file, part_names[k], SAMPLES_MAX);
	for (uint64_t i = 0; p->bytes && i < p->files; i++)
		if (p->bytes[i] > INT64_MAX)
			return err_set(e, ERR_USAGE,
				       "file %" PRIu64 " for %s has %" PRIu64
				       " bytes; at most 2^63 - 1 are possible",
				       i, part_names[k], p->bytes[i]);
	for (uint64_t i = 0; i < p->epochs * r->ranks; i++)
		for (uint64_t j = 0; j < p->visits[i].n; j++)
			if (p->visits[i].sample[j] >= samples)
				return err_set(e, ERR_USAGE,
					       "epoch %" PRIu64 " of %s visits sample %" PRIu32
					       ", but there are %" PRIu64,
					       i / r->ranks + 1, part_names[k],
					       p->visits[i].sample[j], samples);
	return 0;
}

static int check(const struct recorded *r, struct err *e)
{
	int rc = 0;

	if (r->ranks < 1 || r->ranks > RECORDED_RANKS_MAX)
		return err_set(e, ERR_USAGE, "%" PRIu32 " ranks; 1 to %u are possible", r->ranks,
			       RECORDED_RANKS_MAX);
	for (int k = 0; k < RECORDED_PARTS && rc == 0; k++)
		rc = check_part(r, k, e);
	return rc;
}

int recorded_write(const char *path, const struct recorded *r, struct err *e)
{
	struct writer sum = {0}, w = {0};
	struct out_file f;
	int rc = check(r, e);

	if (rc < 0)
		return err_wrap(e, "%s", path);
	put_body(&sum, r);
	rc = out_file_open(&f, path, FILE_NAMED, e);
	if (rc < 0)
		return rc;
	w.file = &f;
	put(&w, MAGIC, MAGIC_BYTES);
	put_u32(&w, !has_requests(r) ? VERSION_WITHOUT : has_work(r) ? VERSION : VERSION_IDLE);
	put_u32(&w, sum.crc);
	put_body(&w, r);
	return out_file_close(&f, e);
}

/* ---- reading ---- */

struct taking {
	const char *path;
	const unsigned char *bytes;
	uint64_t n, at;
	uint32_t version;
	struct err *e;
};

static int cut(const struct taking *t, const char *what)
{
	return err_set(t->e, ERR_DATA,
		       "%s: %s is cut off at byte %" PRIu64 ": the file is damaged, or not whole",
		       t->path, what, t->n);
}

static bool has(const struct taking *t, uint64_t n)
{
	return n <= t->n - t->at;
}

static uint64_t take_u64(struct taking *t)
{
	uint64_t v;

	memcpy(&v, t->bytes + t->at, sizeof(v));
	t->at += sizeof(v);
	return le64toh(v);
}

static uint32_t u32_at(const struct taking *t, uint64_t at)
{
	uint32_t v;

	memcpy(&v, t->bytes + at, sizeof(v));
	return le32toh(v);
}

/* Samples stay where they lie: at multiples of four bytes, because all before them is. */
static int take_visits(struct taking *t, const struct recorded *r, struct recorded_part *p,
		       struct recorded_visits *out, int k)
{
	uint64_t samples = p->files * p->samples_per_file;

	for (uint64_t i = 0; i < p->epochs * r->ranks; i++) {
		uint32_t *sample;

		if (!has(t, 8))
			return cut(t, "the order");
		out[i].n = take_u64(t);
		if (out[i].n > (t->n - t->at) / 4)
			return cut(t, "the order");
		sample = (uint32_t *)(uintptr_t)(t->bytes + t->at);
		for (uint64_t j = 0; j < out[i].n; j++) {
			sample[j] = le32toh(sample[j]);
			if (sample[j] >= samples)
				return err_set(t->e, ERR_DATA,
					       "%s: epoch %" PRIu64 " of %s visits sample %" PRIu32
					       " at byte %" PRIu64 ", but there are %" PRIu64
					       " samples",
					       t->path, i / r->ranks + 1, part_names[k], sample[j],
					       t->at + 4 * j, samples);
		}
		out[i].sample = sample;
		t->at += 4 * out[i].n;
	}
	return 0;
}

static int take_sizes(struct taking *t, struct recorded_part *p, uint64_t *bytes)
{
	for (uint64_t i = 0; i < p->files; i++) {
		bytes[i] = take_u64(t);
		if (bytes[i] > INT64_MAX)
			return err_set(t->e, ERR_DATA,
				       "%s: file %" PRIu64 " has %" PRIu64 " bytes at byte %" PRIu64
				       "; at most 2^63 - 1 are possible",
				       t->path, i, bytes[i], t->at - 8);
	}
	p->bytes = bytes;
	return 0;
}

/* Numbers stay where they lie, too: each list takes a multiple of four bytes. */
static int take_work(struct taking *t, struct recorded_part *p, uint64_t n)
{
	uint32_t *work = (uint32_t *)(uintptr_t)(t->bytes + t->at);

	if (n > (t->n - t->at) / 4)
		return cut(t, "the work");
	for (uint64_t i = 0; i < n; i++)
		work[i] = le32toh(work[i]);
	t->at += 4 * n;
	p->work = work;
	return 0;
}

/* Requests stay where they lie, too. */
static int take_requests(struct taking *t, struct recorded *r, struct recorded_part *p, int k)
{
	struct recorded_requests *lists;
	uint64_t n;

	if (!has(t, 8))
		return cut(t, "the requests");
	n = take_u64(t);
	if (n == 0)
		return 0;
	if (n != request_lists(p))
		return err_set(t->e, ERR_DATA,
			       "%s: %" PRIu64 " lists of requests for %s at byte %" PRIu64
			       "; there are %" PRIu64,
			       t->path, n, part_names[k], t->at - 8, request_lists(p));
	/* each list has at least its number of requests in the file */
	if (n > (t->n - t->at) / 4)
		return cut(t, "the requests");
	lists = r->requests[k] = try_calloc(n, sizeof(*lists), "the recorded requests", t->e);
	if (!lists)
		return -ENOMEM;
	r->memory_bytes += n * sizeof(*lists);
	for (uint64_t i = 0; i < n; i++) {
		if (!has(t, 4))
			return cut(t, "the requests");
		lists[i].n = u32_at(t, t->at);
		t->at += 4;
		lists[i].at = t->bytes + t->at;
		if (lists[i].n > (t->n - t->at) / RECORDED_REQUEST_BYTES)
			return cut(t, "the requests");
		for (uint32_t j = 0; j < lists[i].n; j++) {
			uint64_t offset;
			uint32_t bytes;

			recorded_request(&lists[i], j, &offset, &bytes);
			if (offset > INT64_MAX)
				return err_set(t->e, ERR_DATA,
					       "%s: a request at offset %" PRIu64
					       " at byte %" PRIu64
					       "; at most 2^63 - 1 are possible",
					       t->path, offset,
					       t->at + (uint64_t)j * RECORDED_REQUEST_BYTES);
		}
		t->at += (uint64_t)lists[i].n * RECORDED_REQUEST_BYTES;
	}
	p->requests = lists;
	return t->version == VERSION ? take_work(t, p, n) : 0;
}

/* The arrays of a part are one piece of memory: sizes, then lists. */
static int take_part(struct taking *t, struct recorded *r, int k)
{
	struct recorded_part *p = &r->part[k];
	uint64_t samples, known, lists, sizes;
	struct recorded_visits *visits;
	int rc = 0;

	if (!has(t, PART_BYTES))
		return cut(t, part_names[k]);
	p->files = take_u64(t);
	p->samples_per_file = take_u64(t);
	known = take_u64(t);
	p->epochs = take_u64(t);
	if (p->samples_per_file == 0 || known > 1 ||
	    __builtin_mul_overflow(p->files, p->samples_per_file, &samples) ||
	    samples > SAMPLES_MAX)
		return err_set(t->e, ERR_DATA,
			       "%s: %" PRIu64 " files of %" PRIu64
			       " samples for %s at byte %" PRIu64 " are not possible",
			       t->path, p->files, p->samples_per_file, part_names[k],
			       t->at - PART_BYTES);
	sizes = known ? p->files : 0;
	if (!has(t, 8 * sizes))
		return cut(t, "the list of sizes");
	/* each list has at least its number of visits in the file */
	if (__builtin_mul_overflow(p->epochs, (uint64_t)r->ranks, &lists) ||
	    lists > (t->n - t->at - 8 * sizes) / 8)
		return cut(t, "the order");
	r->lists[k] = try_calloc(sizes * sizeof(uint64_t) + lists * sizeof(*visits) + 1, 1,
				 "the recorded sizes and orders", t->e);
	if (!r->lists[k])
		return -ENOMEM;
	r->memory_bytes += sizes * sizeof(uint64_t) + lists * sizeof(*visits);
	if (sizes)
		rc = take_sizes(t, p, r->lists[k]);
	visits = (struct recorded_visits *)((uint64_t *)r->lists[k] + sizes);
	if (rc == 0)
		rc = take_visits(t, r, p, visits, k);
	p->visits = lists ? visits : NULL;
	if (rc == 0 && t->version != VERSION_WITHOUT)
		rc = take_requests(t, r, p, k);
	return rc;
}

static int take(struct taking *t, struct recorded *r)
{
	uint32_t crc;
	int rc = 0;

	if (t->n < MAGIC_BYTES || memcmp(t->bytes, MAGIC, MAGIC_BYTES) != 0)
		return err_set(t->e, ERR_DATA,
			       "%s: no file of recorded sizes and orders, which 'stoker explain "
			       "LOG -o job.yaml' writes",
			       t->path);
	if (t->n < HEAD_BYTES)
		return cut(t, "its head");
	t->version = u32_at(t, MAGIC_BYTES);
	if (t->version < VERSION_WITHOUT || t->version > VERSION)
		return err_set(t->e, ERR_DATA,
			       "%s: version %" PRIu32 "; this program reads %u to %u", t->path,
			       t->version, VERSION_WITHOUT, VERSION);
	r->crc = u32_at(t, MAGIC_BYTES + 4);
	crc = crc32c_update(0, t->bytes + COVERED_FROM, t->n - COVERED_FROM);
	r->ranks = u32_at(t, COVERED_FROM);
	if (crc != r->crc)
		return err_set(t->e, ERR_DATA,
			       "%s: the checksum is %08" PRIx32 " instead of %08" PRIx32
			       ": the file is damaged, or not whole",
			       t->path, crc, r->crc);
	if (r->ranks < 1 || r->ranks > RECORDED_RANKS_MAX)
		return err_set(t->e, ERR_DATA, "%s: %" PRIu32 " ranks; 1 to %u are possible",
			       t->path, r->ranks, RECORDED_RANKS_MAX);
	t->at = HEAD_BYTES;
	for (int k = 0; k < RECORDED_PARTS && rc == 0; k++)
		rc = take_part(t, r, k);
	if (rc == 0 && t->at != t->n)
		rc = err_set(t->e, ERR_DATA,
			     "%s: %" PRIu64 " bytes follow the end at byte %" PRIu64, t->path,
			     t->n - t->at, t->at);
	return rc;
}

static int read_bytes(const char *path, void **out, uint64_t *n, struct err *e)
{
	struct stat st;
	int fd = file_open(path, &st, e);
	uint64_t got = 0;
	int rc = 0;

	if (fd < 0)
		return fd;
	if ((uint64_t)st.st_size > RECORDED_BYTES_MAX) {
		close(fd);
		return err_set(e, -EFBIG, "%s has %lld bytes; at most %" PRIu64 " are read", path,
			       (long long)st.st_size, RECORDED_BYTES_MAX);
	}
	*n = (uint64_t)st.st_size;
	*out = try_calloc(*n + 1, 1, "the recorded sizes and orders", e);
	if (!*out)
		rc = -ENOMEM;
	while (rc == 0 && got < *n) {
		ssize_t k = pread(fd, (char *)*out + got, *n - got, (off_t)got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			rc = err_sys(e, errno, "%s: cannot be read", path);
		else if (k == 0)
			*n = got; /* cut meanwhile: the checksum tells */
		else
			got += (uint64_t)k;
	}
	close(fd);
	return rc;
}

struct recorded *recorded_parse(void *bytes, uint64_t n, const char *path, struct err *e)
{
	struct recorded *r = xcalloc(1, sizeof(*r));
	struct taking t = {.path = path, .bytes = bytes, .n = n, .e = e};

	r->memory = bytes;
	r->memory_bytes = n;
	if (take(&t, r) == 0)
		return r;
	recorded_release(r);
	return NULL;
}

struct recorded *recorded_read(const char *path, struct err *e)
{
	void *bytes = NULL;
	uint64_t n = 0;

	if (read_bytes(path, &bytes, &n, e) < 0) {
		free(bytes);
		return NULL;
	}
	return recorded_parse(bytes, n, path, e);
}

void recorded_release(struct recorded *r)
{
	if (!r)
		return;
	for (int k = 0; k < RECORDED_PARTS; k++)
		free(r->lists[k]);
	for (int k = 0; k < RECORDED_PARTS; k++)
		free(r->requests[k]);
	free(r->memory);
	free(r);
}

/* ---- asking ---- */

const struct recorded_requests *recorded_requests_of(const struct recorded_part *p, uint64_t file,
						     uint64_t index)
{
	assert(p->requests && file < p->files && index <= p->samples_per_file);
	return &p->requests[file * (p->samples_per_file + 1) + index];
}

int64_t recorded_work_ns(const struct recorded_part *p, uint64_t file, uint64_t index)
{
	if (!p->work || file >= p->files || index >= p->samples_per_file)
		return 0;
	return p->work[file * (p->samples_per_file + 1) + index + 1] * INT64_C(1000);
}

void recorded_request(const struct recorded_requests *l, uint32_t i, uint64_t *offset,
		      uint32_t *bytes)
{
	const unsigned char *at = l->at + (size_t)i * RECORDED_REQUEST_BYTES;

	assert(i < l->n);
	memcpy(offset, at, sizeof(*offset));
	memcpy(bytes, at + sizeof(*offset), sizeof(*bytes));
	*offset = le64toh(*offset);
	*bytes = le32toh(*bytes);
}

void recorded_request_put(unsigned char *out, uint64_t offset, uint32_t bytes)
{
	offset = htole64(offset);
	bytes = htole32(bytes);
	memcpy(out, &offset, sizeof(offset));
	memcpy(out + sizeof(offset), &bytes, sizeof(bytes));
}

static uint64_t visits_of(const struct recorded *r, int part, uint64_t epoch)
{
	const struct recorded_visits *v = r->part[part].visits + epoch * r->ranks;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->ranks; i++)
		sum += v[i].n;
	return sum;
}

uint64_t recorded_visits_least(const struct recorded *r, int part)
{
	uint64_t least = UINT64_MAX;

	for (uint64_t i = 0; i < r->part[part].epochs; i++) {
		uint64_t n = visits_of(r, part, i);

		least = n < least ? n : least;
	}
	return least == UINT64_MAX ? 0 : least;
}

uint64_t recorded_visits_most(const struct recorded *r, int part)
{
	uint64_t most = 0;

	for (uint64_t i = 0; i < r->part[part].epochs; i++) {
		uint64_t n = visits_of(r, part, i);

		most = n > most ? n : most;
	}
	return most;
}

uint64_t recorded_sequence(const struct recorded *r, int part, uint64_t epoch, uint32_t *out)
{
	const struct recorded_part *p = &r->part[part];
	const struct recorded_visits *v;
	uint64_t n = 0, longest = 0;

	assert(epoch > 0 && p->epochs > 0);
	v = p->visits + (epoch - 1) % p->epochs * r->ranks;
	for (uint32_t i = 0; i < r->ranks; i++)
		longest = v[i].n > longest ? v[i].n : longest;
	for (uint64_t k = 0; k < longest; k++)
		for (uint32_t i = 0; i < r->ranks; i++)
			if (k < v[i].n)
				out[n++] = v[i].sample[k];
	return n;
}
