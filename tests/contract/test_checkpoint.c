/* The contract of checkpoint/checkpoint.h, the same for every format: what is written is read back,
 * requests of any kind; what fails leaves nothing that has a name; damage is found; ranks do not
 * disturb each other; memory is what was stated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/formats.h"

#define RANKS 4

static const struct checkpoint_format_ops *format;

struct job {
	struct workload w;
	struct checkpoint *c;
	struct store *store;
	struct io io;
	struct checkpoint_rank *rank[RANKS];
};

static void begin(struct job *j, const char *store, const char *fault, const char *more)
{
	char name[64];
	const char *keys[] = {
		"framework=pytorch",
		"model.type=x",
		"model.model_size_bytes=70001",
		"model.num_layers=3",
		"model.transformer.vocab_size=1000",
		"model.transformer.hidden_size=64",
		"model.transformer.ffn_hidden_size=96",
		"model.transformer.num_attention_heads=4",
		"model.transformer.num_kv_heads=2",
		"model.parallelism.tensor=2",
		"model.parallelism.zero_stage=1",
		"checkpoint.fsync=true",
		"checkpoint.pool_bytes=2097152",
		"checkpoint.checkpoint_folder=/ck/pt",
		"checkpoint.access=native",
		name,
		more ? more : "checkpoint.verify=true",
	};
	struct workload_request req = {
		.workload = "default", .overrides = keys, .override_count = 17, .inspect = true};
	struct node *n = fault ? yaml_parse(fault, strlen(fault), "test", NULL) : NULL;
	struct err e;
	int rc;

	memset(j, 0, sizeof(*j));
	snprintf(name, sizeof(name), "checkpoint.format=%s", format->is.name);
	rc = workload_load(&j->w, &req, &e);
	assert_true(rc == 0 || rc == ERR_ABSENT);
	if (checkpoint_open(&j->c, &j->w, RANKS, &e) < 0 ||
	    store_create(&j->store, store, n, &e) < 0)
		fail_msg("%s", e.text);
	node_free(n);
	j->io.store = j->store;
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(checkpoint_rank_open(&j->rank[i], j->c, j->store, i, &e), 0);
}

static void end(struct job *j)
{
	for (int i = 0; i < RANKS; i++)
		checkpoint_rank_close(j->rank[i]);
	checkpoint_close(j->c);
	store_destroy(j->store);
	workload_release(&j->w);
}

static int write_all(struct job *j, int64_t step, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < RANKS && rc == 0; i++)
		rc = checkpoint_write(j->rank[i], 1, step, &j->io, NULL, e);
	return rc == 0 ? checkpoint_commit(j->rank[0], 1, step, &j->io, e) : rc;
}

static int read_all(struct job *j, int64_t step, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < RANKS && rc == 0; i++)
		rc = checkpoint_read(j->rank[i], (i + 1) % RANKS, 1, step, &j->io, NULL, e);
	return rc;
}

struct listing {
	char name[64][128];
	int n, temporary;
};

static int list_one(void *arg, const char *name, bool is_dir)
{
	struct listing *l = arg;
	size_t n = strlen(name);

	assert_false(is_dir);
	snprintf(l->name[l->n++], 128, "%s", name);
	l->temporary += n > 4 && strcmp(name + n - 4, ".tmp") == 0;
	return 0;
}

static void list(struct job *j, int64_t step, struct listing *l)
{
	char folder[64];

	memset(l, 0, sizeof(*l));
	snprintf(folder, sizeof(folder), "/ck/pt/global_epoch1_step%d", (int)step);
	store_list(j->store, folder, list_one, l, NULL);
}

static void test_round_trip(void **state)
{
	static const char *const ways[] = {"checkpoint.verify=true", "checkpoint.block_bytes=4096",
					   "checkpoint.torch=torch2", "checkpoint.restore=all",
					   "checkpoint.randomize_tensor=false"};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct job j;
		struct err e = {0};
		struct listing l;
		struct checkpoint_totals t;
		struct checkpoint_stat s, r;
		uint64_t bytes, files, all = 0;

		begin(&j, "memory", NULL, ways[i]);
		checkpoint_plan_totals(checkpoint_plan_of(j.c), &t);
		for (int k = 0; k < RANKS; k++) {
			assert_int_equal(checkpoint_write(j.rank[k], 1, 7, &j.io, &s, &e), 0);
			checkpoint_rank_file_bytes(j.rank[k], &bytes, &files);
			assert_int_equal(s.file_bytes, bytes);
			assert_int_equal(s.files, files);
			assert_true(s.file_bytes > s.payload_bytes && s.total_ns > 0);
			all += s.payload_bytes;
		}
		assert_int_equal(all, t.total_bytes);
		assert_int_equal(checkpoint_commit(j.rank[0], 1, 7, &j.io, &e), 0);
		if (read_all(&j, 7, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(checkpoint_read(j.rank[3], 3, 1, 7, &j.io, &r, &e), 0);
		assert_true(r.payload_bytes >= s.payload_bytes);
		assert_true((r.payload_bytes > s.payload_bytes) ==
			    (strcmp(ways[i], "checkpoint.restore=all") == 0));
		list(&j, 7, &l);
		assert_int_equal(l.temporary, 0);
		for (int k = 0; k < RANKS; k++)
			assert_int_equal(checkpoint_remove(j.rank[k], 1, 7, &j.io, &e), 0);
		assert_int_equal(checkpoint_remove_end(j.rank[0], 1, 7, &j.io, &e), 0);
		/* once more: nothing is there, and that is no error */
		assert_int_equal(checkpoint_remove(j.rank[0], 1, 7, &j.io, &e), 0);
		assert_int_equal(checkpoint_remove_end(j.rank[0], 1, 7, &j.io, &e), 0);
		assert_int_equal(read_all(&j, 7, &e) < 0, 1);
		end(&j);
	}
}

/* Whatever call fails, the write ends with a sentence, and without it with a checkpoint. */
static void test_faults(void **state)
{
	static const char *const ops[] = {"open", "write", "sync", "close", "rename", "mkdir"};

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		int failed = 0;

		for (int nth = 1;; nth += nth < 6 ? 1 : 5) {
			struct job j;
			struct err e = {0};
			struct listing l;
			char yaml[96];
			int rc;

			snprintf(yaml, sizeof(yaml),
				 "fault: {op: %s, nth: %d, count: 1, errno: ENOSPC}", ops[i], nth);
			begin(&j, "fault+memory", yaml, NULL);
			rc = write_all(&j, 2, &e);
			list(&j, 2, &l);
			assert_int_equal(l.temporary, 0);
			if (rc == 0) {
				/* the fault may be waiting for a call of the read */
				if (read_all(&j, 2, &e) < 0)
					assert_int_equal(read_all(&j, 2, &e), 0);
				end(&j);
				break;
			}
			failed++;
			assert_non_null(strstr(e.text, "No space left"));
			/* a folder that could not be synced has all its files */
			if (strcmp(ops[i], "sync") != 0)
				assert_true(read_all(&j, 2, &e) < 0);
			/* and now that there is room */
			assert_int_equal(write_all(&j, 2, &e), 0);
			assert_int_equal(read_all(&j, 2, &e), 0);
			end(&j);
		}
		assert_true(failed > 0);
	}
}

static void test_stop(void **state)
{
	struct stop_flag stop = {.set = 1};
	struct job j;
	struct err e = {0};
	struct listing l;

	(void)state;
	begin(&j, "memory", NULL, NULL);
	assert_int_equal(write_all(&j, 1, &e), 0);
	j.io.stop = &stop;
	assert_int_equal(checkpoint_write(j.rank[0], 1, 2, &j.io, NULL, &e), ERR_CANCELED);
	list(&j, 2, &l);
	assert_int_equal(l.n, 0);
	assert_int_equal(checkpoint_read(j.rank[0], 0, 1, 1, &j.io, NULL, &e), ERR_CANCELED);
	end(&j);
}

/* A byte changed anywhere, or a file cut anywhere: never a crash, and never unseen where it is a
 * byte of a tensor. */
static void test_damage(void **state)
{
	struct job j;
	struct err e = {0};
	struct listing l;
	struct blob *b;
	int found = 0, tried = 0;

	(void)state;
	begin(&j, "memory", NULL, NULL);
	b = store_blob_new(j.store, &e);
	assert_int_equal(write_all(&j, 1, &e), 0);
	list(&j, 1, &l);
	for (int i = 0; i < l.n; i++) {
		char path[256];
		struct store_stat st;
		unsigned char *copy;

		snprintf(path, sizeof(path), "/ck/pt/global_epoch1_step1/%s", l.name[i]);
		assert_int_equal(io_open(&j.io, path, STORE_READ | STORE_WRITE, b, &e), 0);
		assert_int_equal(io_stat_blob(&j.io, b, &st, &e), 0);
		copy = xmalloc((size_t)st.bytes);
		assert_int_equal(
			io_pread_full(&j.io, IO_META, b, path, copy, (size_t)st.bytes, 0, &e), 0);
		for (uint64_t at = 0; at < st.bytes; at += 1 + st.bytes / 31) {
			unsigned char damaged = copy[at] ^ 0x40;

			assert_int_equal(io_pwrite(&j.io, b, &damaged, 1, at, &e), 1);
			e.text[0] = '\0';
			if (read_all(&j, 1, &e) < 0) {
				found++;
				assert_true(e.text[0] != '\0');
			}
			tried++;
			assert_int_equal(io_pwrite(&j.io, b, copy + at, 1, at, &e), 1);
		}
		io_close(&j.io, b, NULL);
		for (int part = 0; part < 8; part++) {
			size_t keep = (size_t)st.bytes * (size_t)part / 8;

			assert_int_equal(io_open(&j.io, path,
						 STORE_READ | STORE_WRITE | STORE_CREATE, b, &e),
					 0);
			assert_int_equal(io_pwrite(&j.io, b, copy, keep, 0, &e), keep);
			io_close(&j.io, b, NULL);
			/* the file "checkpoint" is read, and nothing depends on it */
			assert_true(read_all(&j, 1, &e) < 0);
		}
		assert_int_equal(io_open(&j.io, path, STORE_WRITE | STORE_CREATE, b, &e), 0);
		assert_int_equal(io_pwrite(&j.io, b, copy, (size_t)st.bytes, 0, &e), st.bytes);
		io_close(&j.io, b, NULL);
		free(copy);
	}
	assert_int_equal(read_all(&j, 1, &e), 0);
	/* what is not found are dates, padding and the like */
	assert_true(found > tried * 8 / 10);
	free(b);
	end(&j);
}

struct writer {
	struct job *j;
	int rank, rc;
	struct err e;
};

static void *write_some(void *arg)
{
	struct writer *t = arg;

	for (int step = 1; step <= 5 && t->rc == 0; step++)
		t->rc = checkpoint_write(t->j->rank[t->rank], 1, step, &t->j->io, NULL, &t->e);
	return NULL;
}

static void test_threads(void **state)
{
	struct writer t[RANKS] = {0};
	pthread_t thread[RANKS];
	struct job j;
	struct err e = {0};

	(void)state;
	begin(&j, "memory", NULL, NULL);
	for (int i = 0; i < RANKS; i++) {
		t[i] = (struct writer){.j = &j, .rank = i};
		assert_int_equal(thread_start(&thread[i], write_some, &t[i], 131072, "w", &e), 0);
	}
	for (int i = 0; i < RANKS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(t[i].rc, 0);
	}
	for (int step = 1; step <= 5; step++) {
		assert_int_equal(checkpoint_commit(j.rank[0], 1, step, &j.io, &e), 0);
		assert_int_equal(read_all(&j, step, &e), 0);
	}
	end(&j);
}

static void test_memory(void **state)
{
	struct job j;

	(void)state;
	begin(&j, "memory", NULL, "checkpoint.access=framework");
	assert_true(checkpoint_memory_bytes(j.c) > 3 * 2097152u - 1);
	assert_true(checkpoint_memory_bytes(j.c) < 4 * 2097152u);
	assert_true(checkpoint_rank_memory_bytes(j.c, j.store, 0) < 10u << 20);
	end(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_faults),
		cmocka_unit_test(test_stop),       cmocka_unit_test(test_damage),
		cmocka_unit_test(test_threads),    cmocka_unit_test(test_memory),
	};
	int failed = 0;

	for (size_t i = 0; checkpoint_table[i]; i++) {
		format = checkpoint_table[i];
		print_message("%s\n", format->is.name);
		failed += cmocka_run_group_tests_name(format->is.name, tests, NULL, NULL);
	}
	return failed;
}
