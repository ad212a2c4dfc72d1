#pragma once
/* Reads arbitrary bytes as the layers of a small model in a format of checkpoints: whatever the
 * bytes, it ends with 0 or a sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "checkpoint/formats.h"

static struct {
	const struct checkpoint_format_ops *format;
	struct checkpoint_plan plan;
	struct checkpoint_common common;
	struct checkpoint_file file;
	struct file_writer measure;
	struct io io;
	struct blob *blob;
	unsigned char *piece, *buffer;
	struct buf meta;
} fuzz;

static inline void fuzz_begin(const char *format)
{
	static const char *const keys[] = {
		"framework=pytorch",
		"model.type=transformer",
		"model.num_layers=1",
		"model.transformer.vocab_size=10",
		"model.transformer.hidden_size=8",
		"model.transformer.ffn_hidden_size=8",
		"model.transformer.num_attention_heads=2",
		"model.transformer.num_kv_heads=1",
	};
	struct workload_request req = {
		.workload = "default", .overrides = keys, .override_count = 8, .inspect = true};
	struct workload w = {0};
	struct err e;

	if (fuzz.format)
		return;
	fuzz.format = checkpoint_format_find(format);
	if (!fuzz.format || workload_load(&w, &req, &e) < 0 ||
	    checkpoint_plan_init(&fuzz.plan, &w, 1, &e) < 0 ||
	    content_pool_init(&fuzz.common.pool[CHECKPOINT_FP16], CHECKPOINT_FP16, false, 0, 4096,
			      &e) < 0 ||
	    store_create(&fuzz.io.store, "memory", NULL, &e) < 0)
		abort();
	workload_release(&w);
	fuzz.common.plan = &fuzz.plan;
	fuzz.common.python = 311;
	checkpoint_file_at(&fuzz.plan, 0, 0, &fuzz.file);
	fuzz.blob = store_blob_new(fuzz.io.store, NULL);
	fuzz.piece = xmalloc(READ_PIECE);
	fuzz.buffer = xmalloc(4096);
	fuzz.measure.common = &fuzz.common;
	fuzz.measure.stream = xcalloc(1, sizeof(*fuzz.measure.stream));
}

static inline void fuzz_ended(int rc, const struct err *e)
{
	if (rc < 0 && (e->code != rc || e->text[0] == '\0')) {
		fprintf(stderr, "an error without a sentence: %d\n", rc);
		abort();
	}
}

static inline void fuzz_file(const uint8_t *data, size_t size)
{
	for (int i = 0; i < 4; i++) {
		struct file_reader r = {
			.common = &fuzz.common,
			.file = &fuzz.file,
			.io = &fuzz.io,
			.blob = fuzz.blob,
			.path = "f",
			.file_bytes = size,
			.way = i < 2 && !fuzz.format->maps ? READ_FRAMEWORK : READ_NATIVE,
			.verify = i % 2,
			.request = 64,
			.piece = fuzz.piece,
			.buffer = fuzz.buffer,
			.buffer_bytes = 64,
			.meta = fuzz.meta,
			.measure = &fuzz.measure,
		};
		struct err e = {0};

		if (io_open(&fuzz.io, "f", STORE_READ | STORE_WRITE | STORE_CREATE, fuzz.blob, &e) <
			    0 ||
		    io_pwrite(&fuzz.io, fuzz.blob, data, size, 0, &e) < 0)
			abort();
		fuzz_ended(fuzz.format->read(&r, 0, &e), &e);
		fuzz.meta = r.meta;
		io_close(&fuzz.io, fuzz.blob, NULL);
	}
}
