/* Which files DALI's readers take, and what its copying threads do with their bytes. */
#include "loader/dali_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/held_store.h"

#define AROUND_BYTES 65536u /* of a sample in its file: headers, other features */

static int kind_of(const struct dataset *d, enum dali_kind *out, struct err *e)
{
	const char *format = d->format->is.name;

	if (strcmp(format, "npy") == 0) {
		*out = DALI_NPY;
	} else if (strcmp(format, "tfrecord") == 0) {
		*out = DALI_TFRECORD;
		return 0;
	} else if (d->format->is.flags & FORMAT_IMAGE) {
		*out = DALI_IMAGE;
	} else {
		return err_set(e, ERR_USAGE,
			       "reader.data_loader native_dali has no reader for dataset.format "
			       "%s, but for npy, tfrecord, jpeg and png; reader.data_loader dali "
			       "reads any format, through Python",
			       format);
	}
	if (d->samples_per_file == 1)
		return 0;
	return err_set(e, ERR_USAGE,
		       "reader.data_loader native_dali takes an %s file for one sample, and "
		       "dataset.num_samples_per_file is %llu: set it to 1, or use "
		       "reader.data_loader dali",
		       format, (unsigned long long)d->samples_per_file);
}

int dali_source_init(struct dali_source *s, const struct loader_config *c, struct err *e)
{
	const struct workload *w = c->workload;
	struct err why;
	int rc;

	*s = (struct dali_source){.config = c};
	rc = kind_of(c->dataset, &s->kind, e);
	if (rc < 0)
		return rc;
	sample_reader_settings(&s->settings, c);
	s->whole = s->settings.access == ACCESS_NATIVE;
	s->maps = !w->reader.dont_use_mmap && !s->whole;
	s->touches = s->maps && w->reader.read_ahead;
	if (s->maps && store_map_check(c->store, &why) < 0)
		return err_set(e, ERR_USAGE,
			       "reader.data_loader native_dali maps files, and storage.store '%s' "
			       "does not let them be mapped: set reader.dont_use_mmap to true, "
			       "and it reads them",
			       w->storage.store ? w->storage.store : c->store->ops->is.name);
	s->settings.access = ACCESS_NATIVE;
	s->settings.keep_open = false;
	/* arrays and records are handed on as they are */
	s->decodes = s->settings.decode == DECODE_VERIFY ||
		     (s->settings.decode == DECODE_FULL && s->kind == DALI_IMAGE);
	s->keeps = !s->maps && s->decodes;
	s->room = c->dataset->max_sample_bytes;
	if (__builtin_add_overflow(s->room, AROUND_BYTES, &s->room) ||
	    (s->kind == DALI_IMAGE && __builtin_add_overflow(s->room, s->room / 2, &s->room)) ||
	    s->room > INT64_MAX / 2)
		return err_set(e, -ENOMEM,
			       "reading samples of %llu bytes takes more memory than a machine has",
			       (unsigned long long)c->dataset->max_sample_bytes);
	return 0;
}

uint64_t dali_item_bytes(const struct dali_source *s)
{
	return s->keeps ? s->room : 0;
}

static uint64_t decoder_bytes(const struct dali_source *s, struct err *e)
{
	struct held_store held;
	uint64_t bytes;

	held_store_init(&held);
	bytes = s->config->dataset->format->reader_bytes(&s->settings, &held.base);
	if (bytes == 0)
		err_set(e, -ENOMEM, "decoding samples takes more memory than a machine has");
	return bytes;
}

uint64_t dali_copier_bytes(const struct dali_source *s, struct err *e)
{
	uint64_t decoder = 0;

	if (s->decodes) {
		decoder = decoder_bytes(s, e);
		if (decoder == 0)
			return 0;
	}
	return s->room + decoder + sizeof(struct dali_copier) + sizeof(struct held_store);
}

int dali_copier_init(struct dali_copier *c, const struct dali_source *s, uint32_t number,
		     struct worker_stat *stat, struct err *e)
{
	const struct format_ops *format = s->config->dataset->format;

	c->source = s;
	c->stat = stat;
	io_stat_init(&stat->io);
	c->ring = trace_ring(s->config->trace, s->config->rank, s->config->kind, number, false);
	c->io = (struct io){.store = s->config->store,
			    .stat = s->config->workload->run.measure == MEASURE_ALL ? &stat->io
										    : NULL,
			    .trace = c->ring,
			    .stop = s->config->stop};
	c->buffer = buffer_alloc(s->room, "the output of a sample", e);
	if (!c->buffer)
		return -ENOMEM;
	if (!s->decodes)
		return 0;
	c->held = try_calloc(1, sizeof(*c->held), "a decoder", e);
	if (!c->held)
		return -ENOMEM;
	held_store_init(c->held);
	c->memory_bytes = decoder_bytes(s, e);
	c->memory = c->memory_bytes ? buffer_alloc(c->memory_bytes, "a decoder", e) : NULL;
	if (!c->memory)
		return -ENOMEM;
	c->held_io = (struct io){.store = &c->held->base};
	return format->reader_init(c->memory, &s->settings, &c->held_io, &c->decoder, e);
}

void dali_copier_release(struct dali_copier *c)
{
	if (c->decoder)
		c->source->config->dataset->format->reader_close(c->decoder, NULL);
	if (c->memory)
		buffer_free(c->memory, c->memory_bytes);
	if (c->buffer)
		buffer_free(c->buffer, c->source->room);
	free(c->held);
}

/* The format's own reader over the bytes in memory. */
static int decode(struct dali_copier *c, const struct dali_item *item, const unsigned char *bytes,
		  const struct file_spec *f, struct err *e)
{
	const struct dataset *d = c->source->config->dataset;
	char path[DATASET_PATH_MAX];
	struct sample got = {0};
	int rc = dataset_path(d, c->source->config->kind, item->file, path, sizeof(path), e);

	if (rc < 0)
		return rc;
	c->held->data = bytes;
	c->held->begin = item->begin;
	c->held->n = item->bytes;
	c->held->file_bytes = item->file_bytes;
	return d->format->read(c->decoder, path, f, item->sample % d->samples_per_file, &got, e);
}

static int copy(struct dali_copier *c, const struct dali_item *item, const struct file_spec *f,
		struct err *e)
{
	const struct store_map *map = item->shared ? &item->shared->map : &item->map;
	const unsigned char *bytes = item->kept;
	int rc = 0;

	if (map->at) {
		rc = io_map_copy(&c->io, IO_DATA, map, item->begin, c->buffer, (size_t)item->bytes,
				 e);
		bytes = c->buffer;
	}
	if (rc < 0 || !c->source->decodes || !bytes)
		return rc;
	return decode(c, item, bytes, f, e);
}

void dali_copier_take(struct dali_copier *c, struct dali_item *item, uint64_t *payload)
{
	const struct loader_config *config = c->source->config;
	int64_t begin = clock_now_ns(), end;
	struct file_spec f;

	*payload = 0;
	if (item->err.code < 0)
		return;
	atomic_store_explicit(&c->since_ns, begin, memory_order_relaxed);
	atomic_store_explicit(&c->doing, item->sample + 1, memory_order_release);
	if (c->ring) {
		c->ring->sample = item->sample;
		c->ring->file = item->file;
	}
	dataset_file_spec(config->dataset, config->kind, item->file, &f);
	item->err.code = copy(c, item, &f, &item->err);
	if (item->err.code < 0)
		err_wrap(&item->err, "rank %u, sample %llu", config->rank,
			 (unsigned long long)item->sample);
	else
		*payload = file_spec_sample_bytes(&f);
	c->stat->samples += item->err.code == 0;
	c->stat->payload_bytes += *payload;
	end = clock_now_ns();
	c->stat->read_ns += end - begin;
	span_add(c->ring, SPAN_DECODE, item->err.code < 0 ? SPAN_FAILED : 0, begin, end, *payload);
	atomic_store_explicit(&c->doing, 0, memory_order_release);
}

void dali_item_drop(struct dali_item *item)
{
	store_unmap(&item->map);
	dali_file_drop(item->shared);
	item->shared = NULL;
	item->err.code = 0;
}

void dali_file_drop(struct dali_file *f)
{
	if (!f || atomic_fetch_sub_explicit(&f->users, 1, memory_order_acq_rel) != DALI_FILE_LAST)
		return;
	store_unmap(&f->map);
	atomic_store_explicit(&f->users, 0, memory_order_release);
}
