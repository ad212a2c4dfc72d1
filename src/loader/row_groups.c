/* Keeps row groups of one worker in flight. */
#include "loader/row_groups.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/saturate.h"
#include "format/reader.h"
#include "store/async.h"

/* Buffers: of ranges that fit, as many bytes in all; of others, so many each. */
#define ROOM_ALL (2ull << 30)
#define ROOM_LEAST (2u << 20)
#define ROOM_PIECE (4u << 20)
#define NATIVE_PIECE (1u << 20)

/* Asked for, and not taken. */
struct unit {
	uint64_t file, first, end; /* samples */
	uint64_t payload;          /* of each */
	struct blob *blob;
	unsigned lanes;      /* whose ranges have not been read to their end */
	bool asked;          /* for all of its ranges */
	size_t block;        /* Python's buffer */
	uint64_t file_bytes; /* with it */
	int64_t begun_ns;
};

/* A range that is being read. */
struct lane {
	struct lane *behind; /* in the order of asking */
	struct unit *unit;
	uint64_t next, left; /* to ask for */
	uint64_t at, have;   /* what lies in the buffer; with decoding */
	bool flying;
	unsigned char *buffer;
	struct store_request request;
};

struct groups {
	const struct loader_config *config;
	const struct reader_config *settings;
	const struct format_ops *format;
	const struct io *io;
	struct unit_pace pace;
	struct store_queue *queue;
	uint32_t align;
	bool decodes, broken;
	size_t room; /* of a lane */
	size_t piece;
	uint64_t split; /* ranges are asked for in parts of so many bytes; 0: whole */

	struct unit *unit; /* a ring */
	unsigned units, first_unit, unit_count;
	struct lane *lane, *free_lane;
	struct lane *head, **tail; /* asked for */
	struct store_request **reaped;
	unsigned char *buffers, *blobs;

	struct groups_source *source;
	bool more;
	struct unit *open; /* has ranges that were not asked for */
	void *cursor;
	struct extent part;            /* what is left of one of them */
	uint64_t from, until, payload; /* the unit that was delivered last */
	struct err failed;             /* code != 0: nothing more is read */
	struct file_spec spec;
	char path[DATASET_PATH_MAX];
	struct file_spec decoded; /* of the unit whose bytes are decoded, while others are begun */
	char decoded_path[DATASET_PATH_MAX];

	/* what the format's reader sees */
	struct store view;
	struct store_ops view_ops;
	struct io view_io;
	struct unit *current;
	struct blob *beside; /* what it opens besides */
	uint64_t memory_bytes;
};

static bool loads_groups(const struct loader_config *c)
{
	return workload_loader(c->workload)->flags & LOADER_GROUPS;
}

bool groups_wanted(const struct loader_config *c)
{
	return c->dataset->format->unit_begin && c->workload->reader.access <= ACCESS_NATIVE &&
	       (loads_groups(c) || (c->workload->reader.queue_depth > 1 && !c->one_request));
}

/* ---- memory ---- */

static void set_pace(struct groups *g, const struct loader_config *c,
		     const struct reader_config *settings)
{
	g->config = c;
	g->settings = settings;
	g->format = c->dataset->format;
	g->format->unit_pace(settings, &g->pace);
	if (c->workload->reader.queue_depth > 1) {
		g->pace.requests = (uint32_t)c->workload->reader.queue_depth;
		g->pace.window = g->pace.requests;
		g->split = NATIVE_PIECE;
	}
	if (c->one_request)
		g->pace.requests = g->pace.window = 1, g->pace.early = false;
	if (g->pace.requests > STORE_DEPTH_MAX)
		g->pace.requests = STORE_DEPTH_MAX;
	if (store_base_flags(c->store) & STORE_HAS_OBJECTS)
		g->pace.python = false;
}

static void plan(struct groups *g, const struct loader_config *c,
		 const struct reader_config *settings)
{
	uint64_t most, room;

	set_pace(g, c, settings);
	g->decodes = settings->decode != DECODE_NONE;
	g->align = store_queue_align(c->store);
	g->units = g->pace.window + g->pace.early;
	most = ROOM_ALL / g->pace.requests;
	room = g->split ? g->split : g->pace.largest;
	if (room > (most > ROOM_LEAST ? most : ROOM_LEAST))
		room = ROOM_PIECE;
	g->piece = ((size_t)room + 4095) & ~(size_t)4095;
	/* Python's last request is a whole buffer */
	g->room = g->piece + 2 * (size_t)g->align +
		  (g->pace.python ? reader_buffer_bytes(settings) : 0);
	g->room = (g->room + 4095) & ~(size_t)4095;
}

static void lay_out(struct carver *c, struct groups *g)
{
	size_t blob = (store_blob_bytes(g->config->store) + 63) & ~(size_t)63;
	uint64_t bytes;

	carve(c, sizeof(*g));
	g->unit = carve(c, g->units * sizeof(*g->unit));
	g->lane = carve(c, g->pace.requests * sizeof(*g->lane));
	g->reaped = carve(c, g->pace.requests * sizeof(*g->reaped));
	g->cursor = carve(c, g->format->unit_bytes);
	g->blobs = carve(c, (g->units + 1) * blob);
	if (__builtin_mul_overflow((uint64_t)g->room, (uint64_t)g->pace.requests, &bytes))
		c->overflow = true;
	else
		g->buffers = carve(c, bytes);
}

void groups_of_library(const struct loader_config *c, uint64_t *unit, uint64_t *held)
{
	struct reader_config settings = {.access = (enum read_access)c->workload->reader.access,
					 .example = &c->dataset->form};
	struct groups g = {0};

	set_pace(&g, c, &settings);
	*unit = g.pace.unit_bytes;
	*held = u64_product(g.pace.unit_bytes, loads_groups(c) ? g.pace.window + g.pace.early : 1);
}

uint64_t groups_bytes(const struct loader_config *c, const struct reader_config *settings,
		      struct err *e)
{
	struct carver carver = {0};
	struct groups g = {0};
	uint64_t bytes;

	plan(&g, c, settings);
	lay_out(&carver, &g);
	bytes = carved(&carver);
	if (bytes == 0) {
		err_set(e, -ENOMEM, "%u row groups in flight exceed the memory of any machine",
			g.units);
		return 0;
	}
	return bytes + store_queue_bytes(c->store, g.pace.requests, false);
}

/* ---- what the format's reader sees ---- */

static struct groups *viewed(struct store *s)
{
	return (struct groups *)((char *)s - offsetof(struct groups, view));
}

static int pump(struct groups *g, unsigned units, struct err *e);
static int collect(struct groups *g, struct err *e);

static int view_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	struct groups *g = viewed(s);

	(void)b;
	return g->current ? 0 : io_open(g->io, path, how, g->beside, e);
}

static int view_close(struct blob *b, struct err *e)
{
	struct groups *g = viewed(b->store);

	return g->current ? 0 : io_close(g->io, g->beside, e);
}

static int view_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	struct groups *g = viewed(b->store);

	return g->current ? store_stat_blob(g->current->blob, out, e)
			  : io_stat_blob(g->io, g->beside, out, e);
}

static int view_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	return io_stat_path(viewed(s)->io, path, out, e);
}

static int ask(struct groups *g, struct lane *l, struct err *e);

static void drop_head(struct groups *g)
{
	struct lane *l = g->head;

	g->head = l->behind;
	if (!g->head)
		g->tail = &g->head;
	l->unit->lanes--;
	l->behind = g->free_lane;
	g->free_lane = l;
}

/* The lane that has the byte at `offset` of the current unit, with its bytes; NULL: none. */
static int lane_at(struct groups *g, uint64_t offset, struct lane **out, struct err *e)
{
	int rc = 0;

	*out = NULL;
	while (rc == 0) {
		struct lane *l = g->head;

		if (!l || l->unit != g->current) {
			if (g->open != g->current)
				return 0;
			rc = pump(g, g->units, e);
			if (rc == 0 && !g->head)
				return 0;
			continue;
		}
		if (l->flying) {
			rc = collect(g, e);
			continue;
		}
		if (offset >= l->at && offset < l->at + l->have) {
			*out = l;
			return 0;
		}
		if (offset < l->at)
			return err_set(e, ERR_DATA, "a row group was not read in its order");
		if (l->left > 0) {
			rc = ask(g, l, e);
		} else {
			drop_head(g);
			rc = pump(g, g->units, e);
		}
	}
	return rc;
}

static ssize_t view_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct groups *g = viewed(b->store);
	size_t done = 0;

	if (!g->current)
		return io_pread(g->io, IO_META, g->beside, p, n, offset, e);
	while (done < n) {
		struct lane *l;
		int rc = lane_at(g, offset + done, &l, e);
		uint64_t part;

		if (rc < 0)
			return rc;
		if (!l)
			break;
		part = l->at + l->have - (offset + done);
		part = part < n - done ? part : n - done;
		memcpy((char *)p + done,
		       l->buffer + (l->at - l->request.offset) + (offset + done - l->at), part);
		done += part;
	}
	return (ssize_t)done;
}

static const struct store_ops view_ops = {
	.is.name = "groups",
	.blob_bytes = sizeof(struct blob),
	.open = view_open,
	.close = view_close,
	.pread = view_pread,
	.stat_blob = view_stat_blob,
	.stat = view_stat,
};

const struct io *groups_io(struct groups *g)
{
	return &g->view_io;
}

/* ---- making and ending ---- */

int groups_create(struct groups **out, const struct loader_config *c,
		  const struct reader_config *settings, const struct io *io, struct err *e)
{
	struct store_queue_config config = {0};
	struct carver measure = {0}, carver = {0};
	struct groups sizes = {0}, *g;
	size_t bytes, blob = (store_blob_bytes(c->store) + 63) & ~(size_t)63;
	int rc;

	/* each unit has its file open */
	file_allow_more();
	plan(&sizes, c, settings);
	lay_out(&measure, &sizes);
	bytes = carved(&measure);
	g = bytes ? buffer_alloc(bytes, "buffers of row groups in flight", e) : NULL;
	if (!g)
		return -ENOMEM;
	memset(g, 0, bytes);
	*g = sizes;
	carver.base = (unsigned char *)g;
	lay_out(&carver, g);
	g->memory_bytes = bytes;
	g->io = io;
	/* a reader has the memory that it would have on the store itself */
	g->view_ops = view_ops;
	g->view_ops.is.flags = store_base_flags(c->store) & STORE_HAS_OBJECTS;
	g->view = (struct store){.ops = &g->view_ops};
	g->view_io = (struct io){.store = &g->view, .stop = io->stop};
	g->tail = &g->head;
	g->beside = (struct blob *)g->blobs;
	for (unsigned i = 0; i < g->units; i++)
		g->unit[i].blob = (struct blob *)(g->blobs + (i + 1) * blob);
	for (unsigned i = 0; i < g->pace.requests; i++) {
		g->lane[i].buffer = g->buffers + i * g->room;
		g->lane[i].behind = g->free_lane;
		g->free_lane = &g->lane[i];
	}
	config.depth = g->pace.requests;
	config.memory = g->buffers;
	config.memory_bytes = (size_t)g->room * g->pace.requests;
	rc = store_queue_create(&g->queue, io, &config, e);
	if (rc < 0) {
		buffer_free(g, bytes);
		return rc;
	}
	*out = g;
	return 0;
}

void groups_destroy(struct groups *g)
{
	if (!g)
		return;
	groups_end(g);
	store_queue_destroy(g->queue);
	buffer_free(g, g->memory_bytes);
}

/* ---- asking ---- */

static struct unit *unit_at(struct groups *g, unsigned i)
{
	return &g->unit[(g->first_unit + i) % g->units];
}

static int path_of(struct groups *g, uint64_t file, struct err *e)
{
	return dataset_path(g->config->dataset, g->config->kind, file, g->path, sizeof(g->path), e);
}

static int in_file(struct groups *g, uint64_t file, int rc, struct err *e)
{
	if (rc < 0 && e && path_of(g, file, NULL) == 0)
		err_wrap(e, "reading '%s'", g->path);
	return rc;
}

/* The buffer of the Python file object that the library would have. */
static int begin_python(struct groups *g, struct unit *u, struct err *e)
{
	struct store_stat st;
	int rc = io_stat_blob(g->io, u->blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(g->settings, st.block_bytes, reader_buffer_bytes(g->settings),
				      &u->block, e);
	u->file_bytes = st.bytes;
	return rc;
}

static int begin_unit(struct groups *g, uint64_t sample, struct err *e)
{
	const struct dataset *d = g->config->dataset;
	struct unit *u = unit_at(g, g->unit_count);
	struct blob *blob = u->blob;
	struct sample_unit found;
	uint64_t base;
	int rc;

	*u = (struct unit){.file = sample / d->samples_per_file, .blob = blob};
	base = u->file * d->samples_per_file;
	dataset_file_spec(d, g->config->kind, u->file, &g->spec);
	rc = g->format->unit_begin(g->cursor, g->settings, &g->spec, sample - base, &found, e);
	if (rc == 0)
		rc = path_of(g, u->file, e);
	if (rc < 0)
		return rc;
	u->first = base + found.first;
	u->end = base + found.end;
	u->payload = found.payload;
	u->begun_ns = clock_now_ns();
	if (g->io->trace)
		g->io->trace->file = u->file;
	rc = io_open(g->io, g->path, STORE_READ, u->blob, e);
	if (rc < 0)
		return rc;
	g->unit_count++;
	g->open = u;
	g->part.bytes = 0;
	g->source->covered(g->source, u->first, u->end);
	return g->pace.python ? begin_python(g, u, e) : 0;
}

/* The next piece of a lane's range. */
static int ask(struct groups *g, struct lane *l, struct err *e)
{
	struct store_request *r = &l->request;
	uint64_t n = l->left < g->piece ? l->left : g->piece, begin, end;
	size_t block = l->unit->block;
	int rc;

	/* whole buffers, and then one */
	if (block && n >= block)
		n -= n % block;
	begin = l->next & ~(uint64_t)(g->align - 1);
	end = l->next + (block > l->left ? block : n);
	end = (end + g->align - 1) & ~(uint64_t)(g->align - 1);
	r->blob = l->unit->blob;
	r->buffer = l->buffer;
	r->offset = begin;
	r->n = (size_t)(end - begin);
	r->write = false;
	r->tag = (uint64_t)(l - g->lane);
	rc = store_queue_submit(g->queue, r, e);
	if (rc < 0)
		return rc;
	l->at = l->next;
	l->have = n;
	l->next += n;
	l->left -= n;
	l->flying = true;
	return 0;
}

static bool next_part(struct groups *g, struct extent *out)
{
	if (g->part.bytes == 0 && !g->format->unit_next(g->cursor, &g->part))
		return false;
	*out = g->part;
	if (g->split && out->bytes > g->split)
		out->bytes = g->split;
	g->part.offset += out->bytes;
	g->part.bytes -= out->bytes;
	return true;
}

/* Asks for what there is room for, with up to `units` on their way. */
static int pump(struct groups *g, unsigned units, struct err *e)
{
	while (g->free_lane) {
		struct lane *l = g->free_lane;
		struct extent x;
		uint64_t sample;
		int rc;

		if (!g->open) {
			if (!g->source || !g->more || g->unit_count >= units)
				return 0;
			g->more = g->source->next(g->source, &sample);
			if (!g->more)
				return 0;
			rc = begin_unit(g, sample, e);
			if (rc < 0)
				return in_file(g, sample / g->config->dataset->samples_per_file, rc,
					       e);
		}
		if (!next_part(g, &x)) {
			g->open->asked = true;
			g->open = NULL;
			continue;
		}
		g->free_lane = l->behind;
		l->behind = NULL;
		l->unit = g->open;
		l->next = x.offset;
		l->left = x.bytes;
		l->unit->lanes++;
		*g->tail = l;
		g->tail = &l->behind;
		rc = ask(g, l, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Out of the order: its bytes are forgotten. */
static void drop_lane(struct groups *g, struct lane *l)
{
	struct lane **at = &g->head;

	while (*at != l)
		at = &(*at)->behind;
	*at = l->behind;
	if (!*at)
		g->tail = at;
	l->unit->lanes--;
	l->behind = g->free_lane;
	g->free_lane = l;
}

static int receive(struct groups *g, struct store_request *r, struct err *e)
{
	struct lane *l = &g->lane[r->tag];
	uint64_t want = l->at - r->offset + l->have;
	uint64_t file = l->unit->file;

	l->flying = false;
	if (r->result < 0) {
		if (e)
			*e = r->err;
		return in_file(g, file, (int)r->result, e);
	}
	if ((uint64_t)r->result < want)
		return in_file(g, file,
			       err_set(e, ERR_DATA,
				       "the file ends at offset %llu, inside a row group",
				       (unsigned long long)(r->offset + (uint64_t)r->result)),
			       e);
	if (g->decodes)
		return 0;
	if (l->left > 0)
		return ask(g, l, e);
	drop_lane(g, l);
	return 0;
}

/* Waits for results. */
static int collect(struct groups *g, struct err *e)
{
	int n = store_queue_flush(g->queue, e), rc = 0;

	if (n == 0)
		n = store_queue_reap(g->queue, g->reaped, g->pace.requests, e);
	if (n < 0) {
		g->broken = true;
		return n;
	}
	for (int i = 0; i < n; i++) {
		int code = receive(g, g->reaped[i], rc == 0 ? e : NULL);

		rc = rc < 0 ? rc : code;
	}
	return rc;
}

void groups_begin(struct groups *g, struct groups_source *source)
{
	groups_end(g);
	g->source = source;
	g->more = true;
}

void groups_end(struct groups *g)
{
	if (!g)
		return;
	g->source = NULL;
	g->more = false;
	g->open = NULL;
	for (struct lane *l = g->head; l; l = l->behind)
		l->left = 0;
	while (g->queue->in_flight > 0 && !g->broken)
		if (store_queue_reap(g->queue, g->reaped, g->pace.requests, NULL) < 0)
			g->broken = true;
	while (g->head)
		drop_head(g);
	for (unsigned i = 0; i < g->unit_count; i++)
		io_close(g->io, unit_at(g, i)->blob, NULL);
	g->unit_count = g->first_unit = 0;
	g->current = NULL;
	g->failed.code = 0;
	g->from = g->until = 0;
}

/* ---- delivering ---- */

bool groups_has(const struct groups *g, uint64_t sample)
{
	return sample >= g->from && sample < g->until;
}

uint64_t groups_payload(const struct groups *g)
{
	return g->payload;
}

static int decode_unit(struct groups *g, struct reader *reader, struct unit *u, uint64_t sample,
		       struct err *e)
{
	const struct dataset *d = g->config->dataset;
	struct sample got = {0};
	int rc = dataset_path(d, g->config->kind, u->file, g->decoded_path, sizeof(g->decoded_path),
			      e);

	if (rc < 0)
		return rc;
	dataset_file_spec(d, g->config->kind, u->file, &g->decoded);
	g->current = u;
	rc = g->format->read(reader, g->decoded_path, &g->decoded, sample % d->samples_per_file,
			     &got, e);
	g->current = NULL;
	while (g->head && g->head->unit == u && !g->head->flying)
		drop_head(g);
	return rc;
}

static int take_head(struct groups *g, struct reader *reader, uint64_t sample, struct unit *u,
		     struct err *e)
{
	unsigned most = g->pace.window + g->pace.early;
	int rc = pump(g, most, e);

	if (rc < 0)
		return rc;
	if (g->unit_count == 0 || sample < u->first || sample >= u->end)
		return err_set(e, ERR_DATA, "sample %llu is in none of the row groups asked for",
			       (unsigned long long)sample);
	if (g->decodes)
		rc = decode_unit(g, reader, u, sample, e);
	while (rc == 0 && (!u->asked || u->lanes > 0)) {
		rc = collect(g, e);
		if (rc == 0)
			rc = pump(g, most, e);
	}
	return rc;
}

int groups_take(struct groups *g, struct reader *reader, uint64_t sample, int64_t *begun_ns,
		struct err *e)
{
	struct unit *u = unit_at(g, 0);
	int rc;

	if (g->failed.code < 0) {
		if (e)
			*e = g->failed;
		return g->failed.code;
	}
	rc = take_head(g, reader, sample, u, &g->failed);
	*begun_ns = u->begun_ns;
	if (rc == 0) {
		g->from = u->first;
		g->until = u->end;
		g->payload = u->payload;
		rc = io_close(g->io, u->blob, &g->failed);
		g->first_unit = (g->first_unit + 1) % g->units;
		g->unit_count--;
	}
	if (rc == 0 && !g->pace.early)
		rc = pump(g, g->pace.window, &g->failed);
	g->failed.code = rc;
	if (rc < 0 && e)
		*e = g->failed;
	return rc;
}
