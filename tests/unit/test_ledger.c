/* The ledger of bytes: which lines a result has, what each is compared with, and that a difference
 * is explained only by what was measured. */
#include <math.h>

#include "result_synth.h"

#include "judge/ledger.h"
#include "judge/limit_memory.h"
#include "result/text.h"

#define MIB (1u << 20)
#define SIZE (60ull * 2 * 65536) /* of the samples that were delivered: 7.5 MiB */

/* One rank, one epoch of 60 steps; bytes in MiB of 7.5. */
struct shape {
	const char *store, *key; /* one more override; may be NULL */
	double meta, asked, returned, calls, fetched, device, part, lower;
	double files, cached, cached_end;
	double client, client_fetched, network;
	bool memory, loop;
	uint64_t opens, under_way, samples_per_file;
	double downloaded; /* into a cache on this host; 0: there is none */
};

/* As a cold run of whole files has it. */
static struct shape cold(void)
{
	return (struct shape){.store = "posix",
			      .asked = 7.5,
			      .returned = 7.5,
			      .calls = 7.5,
			      .fetched = 7.5,
			      .device = 7.5,
			      .part = -1,
			      .lower = -1,
			      .files = 7.5,
			      .cached_end = 7.5,
			      .client = -1,
			      .client_fetched = -1,
			      .network = -1,
			      .opens = 24};
}

static uint64_t mib(double v)
{
	return v > 0 ? (uint64_t)(v * MIB) : 0;
}

static void block(struct block_counters *c, double v)
{
	*c = (struct block_counters){.known = v >= 0, .reads = 60, .read_bytes = mib(v)};
}

static void fill(struct synth *s, const struct shape *h)
{
	char store[64];
	const char *overrides[] = {store, h->key, NULL};
	struct epoch_usage *u;
	struct io_stat *io;
	struct host_io_source *source = xcalloc(1, sizeof(*source));

	snprintf(store, sizeof(store), "storage.store=%s", h->store);
	synth_begin(s, 1, 1, overrides);
	synth_even(s, 0, 0, 60, 0.01, 0.001, 0.02);
	if (h->downloaded > 0) {
		free(s->w.reader.data_loader);
		s->w.reader.data_loader = xstrdup("mds");
		s->w.reader.cache_folder = xstrdup("/cache");
		s->r.rank[0].epoch[0].train_fetched.bytes = mib(h->downloaded);
	}
	io = &s->r.rank[0].train_io;
	io->kind[IO_META].requests = 1;
	io->kind[IO_META].asked_bytes = io->kind[IO_META].returned_bytes = mib(h->meta);
	io->kind[IO_DATA].requests = 120;
	io->kind[IO_DATA].asked_bytes = mib(h->asked) - mib(h->meta);
	io->kind[IO_DATA].returned_bytes = mib(h->returned) - mib(h->meta);
	io->kind[IO_OPEN].requests = h->opens;
	u = &s->r.usage[0];
	u->train = (struct proc_io){
		.known = true, .rchar_bytes = mib(h->calls), .read_bytes = mib(h->fetched)};
	block(&u->host_train.whole, h->device);
	u->host_train.whole.under_way = h->under_way;
	block(&u->host_train.part, h->part);
	block(&u->host_train.lower, h->lower);
	u->host_train.client = (struct fs_client_io){.known = h->client >= 0,
						     .fetched_known = h->client_fetched >= 0,
						     .returned_bytes = mib(h->client),
						     .fetched_bytes = mib(h->client_fetched)};
	u->host_train.net =
		(struct net_io){.known = h->network >= 0, .received_bytes = mib(h->network)};
	u->cache_start = (struct residency){.known = h->files >= 0,
					    .memory = h->memory,
					    .files = 24,
					    .looked = 24,
					    .bytes = mib(h->files),
					    .cached_bytes = mib(h->cached)};
	u->cache_end = u->cache_start;
	u->cache_end.cached_bytes = mib(h->cached_end);
	source->tree.whole.n = source->tree.part.n = 1;
	source->tree.loop = h->loop;
	if (h->client >= 0) {
		source->client.kind = FS_CLIENT_NFS;
		snprintf(source->client.type, sizeof(source->client.type), "nfs4");
	}
	source->client.network = h->network >= 0;
	s->r.host_source = source;
	if (h->samples_per_file)
		s->d.samples_per_file = h->samples_per_file;
}

static void expect(const struct shape *h, enum ledger_key key, int against, enum ledger_state state,
		   const char *word)
{
	const struct ledger_line *line;
	struct synth s;
	struct ledger l;
	char why[256];

	fill(&s, h);
	ledger_of(&s.r, &l);
	line = &l.line[key];
	words_of(&line->why, WORDS_SHORT, why, sizeof(why));
	if (!line->known || line->against != against || line->state != state || !strstr(why, word))
		fail_msg("%s: known %d, against %d, state %d, '%s'; expected %d, %d, '%s'",
			 ledger_keys[key], line->known, line->against, line->state, why, against,
			 state, word);
	synth_end(&s);
}

static void all_agree(void **state)
{
	struct shape h = cold();
	struct synth s;
	struct ledger l;

	(void)state;
	fill(&s, &h);
	ledger_of(&s.r, &l);
	for (int k = 0; k < LEDGER_LINES; k++) {
		bool here = (k <= LEDGER_CHARGED && k != LEDGER_REMOTE) || k == LEDGER_DEVICE;

		assert_int_equal(l.line[k].known, here);
		assert_int_equal(l.line[k].state, LEDGER_AGREES);
		if (here)
			assert_int_equal((uint64_t)l.line[k].bytes, SIZE);
	}
	synth_metrics(&s);
	synth_judge(&s);
	assert_int_equal(synth_verdict(&s, "ledger")->level, VERDICT_PASS);
	synth_end(&s);
	/* 64 KiB are nothing, and more than that and 1 % is something */
	h.device = 7.56;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_AGREES, "");
	h.device = 7.6;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_FLAGGED, "other programs");
}

/* Shards in a cache: samples are read there, and only downloads come from the storage. */
static void downloaded(void **state)
{
	struct shape h = cold();

	(void)state;
	h.downloaded = 7.5;
	h.calls = 15;
	expect(&h, LEDGER_REMOTE, LEDGER_WANTED, LEDGER_AGREES, "");
	expect(&h, LEDGER_CALLS, LEDGER_RETURNED, LEDGER_AGREES, "");
	expect(&h, LEDGER_CHARGED, LEDGER_REMOTE, LEDGER_AGREES, "");
	h.calls = 7.5;
	expect(&h, LEDGER_CALLS, LEDGER_RETURNED, LEDGER_FLAGGED, "");
	h.downloaded = h.fetched = 3;
	h.calls = 10.5;
	expect(&h, LEDGER_REMOTE, LEDGER_WANTED, LEDGER_EXPLAINED, "in the cache already");
	expect(&h, LEDGER_CALLS, LEDGER_RETURNED, LEDGER_AGREES, "");
	expect(&h, LEDGER_CHARGED, LEDGER_REMOTE, LEDGER_AGREES, "");
	h.downloaded = 9;
	expect(&h, LEDGER_REMOTE, LEDGER_WANTED, LEDGER_EXPLAINED, "whole");
}

static void requests(void **state)
{
	struct shape h = cold();

	(void)state;
	h.asked = 9;
	h.meta = 0.5;
	expect(&h, LEDGER_ASKED, LEDGER_WANTED, LEDGER_EXPLAINED, "including 512 KiB of headers");
	expect(&h, LEDGER_RETURNED, LEDGER_ASKED, LEDGER_EXPLAINED, "end of files");
	h = cold();
	h.asked = h.returned = 3;
	expect(&h, LEDGER_ASKED, LEDGER_WANTED, LEDGER_FLAGGED, "less was requested");
	h.key = "reader.read_type=memory";
	expect(&h, LEDGER_ASKED, LEDGER_WANTED, LEDGER_EXPLAINED, "own copies");
	h = cold();
	h.returned = 8;
	expect(&h, LEDGER_RETURNED, LEDGER_ASKED, LEDGER_FLAGGED, "more than was requested");
	h = cold();
	h.key = "run.measure=none";
	h.calls = 8;
	expect(&h, LEDGER_CALLS, LEDGER_WANTED, LEDGER_EXPLAINED, "not counted");
}

static void calls(void **state)
{
	struct shape h = cold();

	(void)state;
	h.calls = 0;
	expect(&h, LEDGER_CALLS, LEDGER_RETURNED, LEDGER_FLAGGED, "did not come from read calls");
	h.store = "mmap";
	expect(&h, LEDGER_CALLS, LEDGER_RETURNED, LEDGER_EXPLAINED, "mapped");
	expect(&h, LEDGER_CHARGED, LEDGER_RETURNED, LEDGER_AGREES, "");
	h = cold();
	h.calls = 8.2;
	expect(&h, LEDGER_CALLS, LEDGER_RETURNED, LEDGER_FLAGGED, "not requested from the store");
	h.store = "direct"; /* 121 requests of up to two blocks more */
	expect(&h, LEDGER_CALLS, LEDGER_RETURNED, LEDGER_EXPLAINED, "whole blocks");
	h.calls = 9;
	expect(&h, LEDGER_CALLS, LEDGER_RETURNED, LEDGER_FLAGGED, "not requested from the store");
}

static void fetched_less(void **state)
{
	struct shape h = cold();

	(void)state;
	h.fetched = h.device = 2;
	h.cached = 5.5;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_EXPLAINED, "held 5.5 MiB");
	h.cached = 3;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "another program");
	h.cached = 0;
	h.cached_end = 2; /* nobody else brought anything in, and each file has five samples */
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "another program");
	h.samples_per_file = 5;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_EXPLAINED, "read again");
	h.fetched = 0; /* a file system that reports nothing and keeps nothing */
	h.cached_end = 0;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "does not report");
	h.files = -1;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "is unknown");
	h.files = 7.5;
	h.memory = true;
	h.device = -1;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_EXPLAINED, "is in memory");
}

static void fetched_more(void **state)
{
	struct shape h = cold();

	(void)state;
	h.fetched = h.device = 20;
	h.files = 30;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_EXPLAINED, "read-ahead: 12.5 MiB");
	h.store = "mmap";
	expect(&h, LEDGER_CHARGED, LEDGER_RETURNED, LEDGER_EXPLAINED, "page faults");
	h.store = "posix";
	h.cached = 15; /* then only 7.5 were left to be brought in */
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "more than was requested");
	h.cached = 0;
	h.files = 7.5;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "fetched again");
	h.key = "storage.page_cache=drop_behind";
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_EXPLAINED,
	       "drop-behind were fetched again");
	h = cold();
	h.store = "direct";
	h.fetched = 8;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "more than was requested");
	h.opens = 200;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_EXPLAINED, "inodes");
	h = cold();
	h.store = "direct"; /* 121 requests, each of which may read a block again */
	h.fetched = h.device = 7.95;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "more than was requested");
	h.asked = 8;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_EXPLAINED, "reaches its end");
	h.fetched = h.device = 8.5;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "more than was requested");
}

/* Direct reads are charged as they are asked for: what the device delivers beyond that is not
 * theirs. */
static void others_beside_direct_reads(void **state)
{
	struct shape h = cold();

	(void)state;
	h.store = "direct";
	h.device = 16;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_EXPLAINED, "other programs");
	h.fetched = 12;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_FLAGGED, "other programs");
}

static void devices(void **state)
{
	struct shape h = cold();
	const struct fact *f;
	struct synth s;

	(void)state;
	h.device = 10;
	h.part = 7.5;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_FLAGGED,
	       "2.5 MiB of it from other partitions");
	h.part = 10;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_FLAGGED, "other programs");
	fill(&s, &h);
	synth_metrics(&s);
	synth_judge(&s);
	assert_int_equal(synth_verdict(&s, "ledger")->level, VERDICT_WARN);
	f = fact_first(&synth_verdict(&s, "ledger")->facts, REASON_LEDGER_DIFFERS);
	assert_non_null(f);
	assert_true(f->figure[0] == 10 * 1048576 && f->figure[1] == 7.5 * 1048576);
	synth_end(&s);
	h = cold();
	h.device = 7.25;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_FLAGGED, "other devices");
	h.under_way = 2;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_EXPLAINED, "in progress");
	h = cold();
	h.fetched = 0; /* all cached: what others read is little beside it */
	h.cached = 7.5;
	h.device = 0.07;
	expect(&h, LEDGER_DEVICE, LEDGER_CHARGED, LEDGER_EXPLAINED, "less than 1 %");
	h = cold();
	h.lower = 7.5;
	expect(&h, LEDGER_DISKS, LEDGER_DEVICE, LEDGER_AGREES, "");
	h.lower = 2;
	expect(&h, LEDGER_DISKS, LEDGER_DEVICE, LEDGER_FLAGGED, "a cache between");
	h.loop = true;
	expect(&h, LEDGER_DISKS, LEDGER_DEVICE, LEDGER_FLAGGED, "backing file");
	h.lower = 15;
	expect(&h, LEDGER_DISKS, LEDGER_DEVICE, LEDGER_FLAGGED, "other programs read");
}

static void networks(void **state)
{
	struct shape h = cold();

	(void)state;
	h.device = -1;
	h.client = h.client_fetched = 7.5;
	h.network = 8;
	expect(&h, LEDGER_CLIENT, LEDGER_CALLS, LEDGER_AGREES, "");
	expect(&h, LEDGER_FETCHED, LEDGER_CLIENT, LEDGER_AGREES, "");
	expect(&h, LEDGER_NETWORK, LEDGER_FETCHED, LEDGER_EXPLAINED, "headers");
	h.network = 12;
	expect(&h, LEDGER_NETWORK, LEDGER_FETCHED, LEDGER_FLAGGED, "other traffic");
	h.network = 1;
	expect(&h, LEDGER_NETWORK, LEDGER_FETCHED, LEDGER_FLAGGED, "another path");
	h.fetched = 0;
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_EXPLAINED, "nfs4");
	h.client = 9;
	expect(&h, LEDGER_CLIENT, LEDGER_CALLS, LEDGER_FLAGGED, "other programs");
	h.client = 7.5;
	h.client_fetched = 3;
	expect(&h, LEDGER_FETCHED, LEDGER_CLIENT, LEDGER_FLAGGED, "page cache held 0 B");
	h.cached = 4.5;
	expect(&h, LEDGER_FETCHED, LEDGER_CLIENT, LEDGER_EXPLAINED, "page cache");
	/* no client's counters: the network beside the calls */
	h = cold();
	h.device = -1;
	h.network = 7.8;
	expect(&h, LEDGER_NETWORK, LEDGER_CALLS, LEDGER_EXPLAINED, "headers");
}

/* Headers lie in pages that data requests reach into; evaluations bring files in, too. */
static void read_twice(void **state)
{
	struct shape h = cold();
	struct synth s;
	struct ledger l;

	(void)state;
	h.meta = 1;
	h.asked = h.returned = h.calls = 8.5;
	h.files = h.cached_end = 8;
	fill(&s, &h);
	s.r.usage[0].eval = (struct proc_io){.known = true, .read_bytes = mib(0.5)};
	ledger_of(&s.r, &l);
	assert_int_equal(l.line[LEDGER_CHARGED].state, LEDGER_EXPLAINED);
	assert_int_equal(l.line[LEDGER_CHARGED].why.reason, REASON_LEDGER_CACHE_AGAIN);
	synth_end(&s);
	/* without them something else must have brought in what was not fetched */
	expect(&h, LEDGER_CHARGED, LEDGER_CALLS, LEDGER_FLAGGED, "another program");
}

static void epoch_by_epoch(void **state)
{
	struct shape h = cold();
	struct synth s;
	double bytes[LEDGER_LINES];

	(void)state;
	fill(&s, &h);
	s.r.rank[0].epoch[0].train_requested = (struct requested){true, mib(8), mib(7.5)};
	ledger_of_epoch(&s.r, 0, false, bytes);
	assert_true(bytes[LEDGER_ASKED] == 8.0 * MIB && bytes[LEDGER_RETURNED] == 7.5 * MIB);
	assert_true(bytes[LEDGER_CALLS] == 7.5 * MIB && bytes[LEDGER_DEVICE] == 7.5 * MIB);
	assert_true(isnan(bytes[LEDGER_DISKS]) && isnan(bytes[LEDGER_NETWORK]));
	/* there was no evaluation, and no second epoch */
	ledger_of_epoch(&s.r, 0, true, bytes);
	assert_true(isnan(bytes[LEDGER_WANTED]) && isnan(bytes[LEDGER_DEVICE]));
	ledger_of_epoch(&s.r, 1, false, bytes);
	assert_true(isnan(bytes[LEDGER_WANTED]));
	/* readers that never came to rest */
	s.r.rank[0].epoch[0].train_requested.known = false;
	ledger_of_epoch(&s.r, 0, false, bytes);
	assert_true(isnan(bytes[LEDGER_ASKED]) && bytes[LEDGER_WANTED] == SIZE);
	synth_end(&s);
}

/* No kernel was asked for a store without files, and nothing is compared with what is not there. */
static void without_files(void **state)
{
	struct shape h = cold();
	struct synth s;
	struct ledger l;

	(void)state;
	h.store = "memory";
	fill(&s, &h);
	ledger_of(&s.r, &l);
	for (int k = 0; k < LEDGER_LINES; k++)
		assert_int_equal(l.line[k].known, k <= LEDGER_RETURNED);
	s.r.epochs_begun = s.r.epochs_done = 0;
	synth_metrics(&s);
	synth_judge(&s);
	assert_string_equal(synth_verdict(&s, "ledger")->check, "");
	synth_end(&s);
}

/* The files come once to each of four hosts and six times more; the kernel's count is one host's.
 */
static void memory_of_hosts(void **state)
{
	struct shape h = cold();
	struct fact_list facts = {0};
	const struct fact *f;
	struct synth s;

	(void)state;
	h.fetched = 10 * h.files;
	fill(&s, &h);
	s.r.nodes = 4;
	s.r.usage[0].memory = (struct memory_pressure){0, (int64_t)mib(6 * h.files / 4), 0};
	assert_true(limit_memory(&s.r, &facts));
	f = fact_first(&facts, REASON_LIMIT_MEMORY_AGAIN);
	assert_non_null(f);
	assert_true(f->figure[0] == (double)mib(75) && f->figure[1] == (double)mib(30));
	s.r.usage[0].memory.refault_bytes = (int64_t)mib(6 * h.files / 4) / 3;
	assert_false(limit_memory(&s.r, &facts));
	/* waits for pages of the machine may be those of other programs, of a group they are not */
	s.r.usage[0].wall_ns = 1000000000;
	s.r.usage[0].memory.stall_ns = 500000000;
	assert_false(limit_memory(&s.r, &facts));
	s.r.usage[0].memory.limit_bytes = mib(100);
	assert_true(limit_memory(&s.r, &facts));
	synth_end(&s);
}

static void words(void **state)
{
	struct shape h = cold();
	struct synth s;
	struct buf out = {0};

	(void)state;
	h.device = 10;
	fill(&s, &h);
	snprintf(s.r.host_source->tree.whole.device[0].name, 64, "nvme0n1");
	synth_metrics(&s);
	synth_judge(&s);
	result_text(&s.r, &s.m, false, &out);
	assert_non_null(strstr(out.data, "read from the device (nvme0n1)"));
	assert_non_null(strstr(out.data, "133.3 %  (!)"));
	buf_release(&out);
	synth_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_agree),       cmocka_unit_test(requests),
		cmocka_unit_test(calls),           cmocka_unit_test(fetched_less),
		cmocka_unit_test(fetched_more),    cmocka_unit_test(others_beside_direct_reads),
		cmocka_unit_test(devices),         cmocka_unit_test(networks),
		cmocka_unit_test(read_twice),      cmocka_unit_test(epoch_by_epoch),
		cmocka_unit_test(without_files),   cmocka_unit_test(words),
		cmocka_unit_test(memory_of_hosts), cmocka_unit_test(downloaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
