/* Whether the bytes read are those of the samples, and whether the device delivered them. */
#include <math.h>

#include "judge/ledger.h"
#include "judge/origin.h"
#include "judge/uncounted.h"
#include "judge/verdict.h"
#include "store/store.h"

static const double CACHE_SHARE = 0.10;  /* device bytes below this share: cache measured */
static const double DEVICE_SHARE = 0.90; /* above it: the device was measured */
static const double READ_AHEAD_SHARE = 1.10;

/* Samples that took nothing from the store, under reader.read_type=memory. False when the bytes do
 * not say: each sample takes all its bytes or none. */
static bool own_copies(const struct result *r, uint64_t payload, uint64_t samples,
		       uint64_t sample_bytes, uint64_t *out)
{
	if (r->workload->reader.read_type != READ_MEMORY || sample_bytes == 0 ||
	    payload % sample_bytes != 0 || payload / sample_bytes > samples)
		return false;
	*out = samples - payload / sample_bytes;
	return true;
}

/* Wrong files on disk show in what a sample delivers, where all samples have one size. */
static void judge_payload(struct verdict *v, const struct result *r, const struct run_metrics *m)
{
	const struct dataset *d = r->dataset;
	uint64_t samples = 0, expected, copies;

	for (uint32_t i = 0; i < m->epochs; i++)
		samples += m->epoch[i].samples;
	if (!d || samples == 0 || d->files[DATASET_TRAIN] == 0)
		return;
	/* of others' files each has its own */
	if (d->listed)
		return;
	if (d->drawn) {
		if (r->workload->reader.read_type == READ_MEMORY)
			verdict_found(v, VERDICT_PASS, FACT(BYTES_COPIES_LEFT_OUT));
		return;
	}
	expected = d->format->wanted_bytes ? d->format->wanted_bytes(&d->form)
					   : dataset_sample_bytes(d, DATASET_TRAIN, 0);
	if (m->payload_bytes == samples * expected)
		return;
	if (own_copies(r, m->payload_bytes, samples, expected, &copies)) {
		double share = (double)copies / (double)samples;

		bool many = share > 1 - DEVICE_SHARE;

		verdict_found(v, many ? VERDICT_WARN : VERDICT_PASS,
			      FACT(BYTES_COPIES, 100 * share));
		if (many)
			verdict_takes(v, share > 0.5 ? TAKES_STORAGE : TAKES_PART,
				      REASON_INSTEAD_OWN_COPIES);
		return;
	}
	verdict_found(
		v, VERDICT_FAIL,
		FACT(BYTES_SIZE, (double)m->payload_bytes / (double)samples, (double)expected));
	verdict_takes(v, TAKES_CONTENT, REASON_NONE);
}

/* ---- what the device delivered ---- */

/* The part of the dataset that was in the page cache before the epochs; negative: unknown. */
static double cached_share(const struct result *r)
{
	double bytes = 0, cached = 0;

	for (uint32_t i = 0; r->usage && i < r->epochs_begun; i++) {
		const struct residency *c = &r->usage[i].cache_start;

		if (!c->known || c->looked == 0)
			return -1;
		bytes += (double)c->bytes;
		cached += (double)c->cached_bytes;
	}
	return bytes > 0 ? cached / bytes : -1;
}

/* Nothing came from a device, and nothing into an empty page cache: then it is the counter. */
static bool counts_nothing(const struct result *r, const struct run_metrics *m)
{
	double share = cached_share(r);

	if (m->device_bytes > 0 || share < 0 || share > uncounted_left_share)
		return false;
	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct epoch_usage *u = &r->usage[i];

		if (!u->cache_end.known ||
		    residency_cached(&u->cache_end) > residency_cached(&u->cache_start))
			return false;
	}
	return true;
}

static bool in_memory(const struct result *r)
{
	return r->usage && r->epochs_begun && r->usage[0].cache_start.memory;
}

/* Whether files take less on the device than they hold. */
static bool is_thin(const struct result *r)
{
	const struct survey *s = &r->presence.survey;

	return s->hole_files || s->compressed_files || s->inline_files;
}

/* Bytes that a data request delivers in a second, while it is under way. */
static double request_rate(const struct result *r)
{
	double bytes = 0, busy_s = 0;

	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		bytes += (double)io->kind[IO_DATA].returned_bytes;
		busy_s += (double)io->kind[IO_DATA].busy_ns / 1e9;
	}
	return busy_s > 0 ? bytes / busy_s : 0;
}

/* Less came from the device than was returned. */
static void judge_missing(struct verdict *v, const struct result *r, double share, bool direct)
{
	const struct ledger_line *l = &r->judged.ledger.line[LEDGER_CHARGED];
	bool thin = is_thin(r), links = uncounted_are_links(r, DATASET_TRAIN);

	if (in_memory(r)) {
		verdict_takes(v, TAKES_STORAGE, REASON_INSTEAD_MEMORY);
		verdict_found(
			v, VERDICT_WARN,
			fact_with(FACT(BYTES_MEMORY), 0, r->usage[0].cache_start.file_system));
	} else if (thin && (direct || cached_share(r) <= uncounted_left_share)) {
		verdict_takes(v, TAKES_CONTENT, REASON_NONE);
		verdict_found(v, VERDICT_WARN, FACT(BYTES_THIN));
	} else if (direct) {
		verdict_found(v, VERDICT_WARN, FACT(BYTES_DIRECT));
	} else {
		verdict_takes(v, share < CACHE_SHARE ? TAKES_STORAGE : TAKES_PART,
			      REASON_INSTEAD_PAGE_CACHE);
		verdict_found(v, VERDICT_WARN,
			      links                 ? uncounted_links(r)
			      : share < CACHE_SHARE ? FACT(BYTES_CACHE)
						    : FACT(BYTES_CACHE_PART, 1 - share));
	}
	if (!direct && !thin && !links && l->known && l->state == LEDGER_FLAGGED &&
	    cached_share(r) >= 0)
		verdict_found(v, VERDICT_WARN,
			      FACT(BYTES_OTHER_READER, 100 * cached_share(r), false));
}

/* A reader that goes through a file more than once has its own earlier reads in the page cache:
 * nothing was there before the epochs, and the device delivered each sample. */
/* `payload` bytes of decoded samples are this much of files, each read once. */
static bool is_read_again(const struct result *r, const struct run_metrics *m, double payload)
{
	double files = payload * dataset_file_share(r->dataset, DATASET_TRAIN);
	const struct ledger_line *l = &r->judged.ledger.line[LEDGER_CHARGED];
	double cached = cached_share(r);

	return cached >= 0 && cached <= uncounted_left_share && !is_thin(r) && !in_memory(r) &&
	       !(l->known && l->state == LEDGER_FLAGGED) &&
	       (double)m->device_bytes >= DEVICE_SHARE * files;
}

/* The device delivered all. A loop device reads its file, perhaps from this machine's page cache,
 * or from where nobody knows. False when there is nothing to say of what lies below.
 */
static bool judge_below(struct verdict *v, const struct result *r)
{
	const struct block_tree *t = r->host_source ? &r->host_source->tree : NULL;
	const struct ledger_line *device = &r->judged.ledger.line[LEDGER_DEVICE],
				 *disks = &r->judged.ledger.line[LEDGER_DISKS];
	double share;

	if (t && t->memory[0]) {
		verdict_found(v, VERDICT_PASS, FACT(BYTES_BELOW_MEMORY));
	} else if (t && device->known && disks->known &&
		   origin_is_cached_below(t, device->bytes, disks->bytes, &share)) {
		verdict_takes(v, share < CACHE_SHARE ? TAKES_STORAGE : TAKES_PART,
			      REASON_INSTEAD_PAGE_CACHE);
		verdict_found(v, VERDICT_WARN,
			      fact_with(FACT(BYTES_BELOW_CACHED, share), 0, t->cached));
	} else {
		return origin_judge_device(v, r);
	}
	return true;
}

static void judge_delivered(struct verdict *v, const struct result *r, const struct run_metrics *m,
			    double returned, double payload)
{
	const struct store_facts *base = workload_base_store(r->workload);
	bool direct = base->flags & STORE_IS_UNCACHED;
	double share = returned > 0 ? (double)m->device_bytes / returned : 0;

	if (base->flags & STORE_HAS_OBJECTS) {
		struct server_counts n = servers_sum(&r->servers, true);

		verdict_found(v, VERDICT_PASS,
			      FACT(BYTES_OBJECTS,
				   n.body_received ? (double)n.body_received : (double)NAN));
		return;
	}
	if (!(base->flags & STORE_HAS_FILES)) {
		verdict_found(v, VERDICT_UNKNOWN,
			      fact_with(FACT(BYTES_NO_DEVICE), 0, r->workload->storage.store));
		return;
	}
	if (!m->device_known) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(BYTES_NOT_REPORTED));
		return;
	}
	if (share < CACHE_SHARE && !in_memory(r) && r->host_source &&
	    r->host_source->client.kind == FS_CLIENT_NONE && !is_thin(r) &&
	    (ledger_uncounted(r, (double)m->device_bytes) || counts_nothing(r, m))) {
		const struct uncounted u = {.cached_share = cached_share(r),
					    .request_rate = request_rate(r),
					    .direct = direct};

		uncounted_judge(v, r, &u);
		return;
	}
	verdict_found(v, VERDICT_PASS, FACT(BYTES_DEVICE, share, (double)m->device_bytes));
	if (share < DEVICE_SHARE && (direct || !(payload > 0) || !is_read_again(r, m, payload))) {
		judge_missing(v, r, share, direct);
		if (!(v->takes & TAKES_STORAGE))
			origin_judge_device(v, r);
	} else if (!judge_below(v, r)) {
		verdict_found(v, VERDICT_PASS,
			      share < DEVICE_SHARE       ? FACT(BYTES_READ_AGAIN)
			      : share > READ_AHEAD_SHARE ? FACT(BYTES_READ_AHEAD)
							 : FACT(BYTES_STORAGE));
	}
}

static void judge_device(struct verdict *v, const struct result *r, const struct run_metrics *m,
			 double returned, double payload)
{
	judge_delivered(v, r, m, returned, payload);
	/* where the page cache may have served instead, nobody knows even that */
	if (cached_share(r) >= 0 || workload_base_store(r->workload)->flags & STORE_IS_UNCACHED)
		origin_judge_server(v, r, returned, m->device_known ? (double)m->device_bytes : 0,
				    origin_delivered(r, false));
}

/* ---- what is smaller than its samples, and what is small altogether ---- */

static void judge_encoding(struct verdict *v, const struct result *r, double returned,
			   double payload)
{
	if (payload > 0 && returned < DEVICE_SHARE * payload &&
	    dataset_file_share(r->dataset, DATASET_TRAIN) < DEVICE_SHARE)
		verdict_found(v, VERDICT_PASS, FACT(BYTES_ENCODED, returned, payload));
}

/* A client of a file system fetched, or the network carried, far less than the requests returned.
 * The network may have had another way: that alone takes nothing from the storage. */
static void judge_client(struct verdict *v, const struct result *r, double returned)
{
	const struct fs_client *c = r->host_source ? &r->host_source->client : NULL;
	const struct ledger_line *fetched = &r->judged.ledger.line[LEDGER_FETCHED],
				 *network = &r->judged.ledger.line[LEDGER_NETWORK], *l;

	l = fetched->known ? fetched : network;
	if (!c || !l->known || !(returned > 0) || l->bytes >= DEVICE_SHARE * returned)
		return;
	verdict_found(
		v, VERDICT_WARN,
		fact_with(FACT(BYTES_CLIENT_CACHE, l->bytes, returned, l == fetched), 0, c->type));
	if (l == fetched)
		verdict_takes(v, l->bytes < CACHE_SHARE * returned ? TAKES_STORAGE : TAKES_PART,
			      REASON_INSTEAD_PAGE_CACHE);
}

/* Servers have about as much memory as their clients, or more. */
static void judge_small(struct verdict *v, const struct result *r)
{
	const struct fs_client *c = r->host_source ? &r->host_source->client : NULL;
	const struct dataset *d = r->dataset;
	double bytes, memory = r->host.memory_gib * 1073741824;

	if (!c || !d || (!c->network && c->kind == FS_CLIENT_NONE))
		return;
	bytes = (double)dataset_samples(d, DATASET_TRAIN) *
		dataset_mean_sample_bytes(d, DATASET_TRAIN) * dataset_file_share(d, DATASET_TRAIN);
	if (bytes > 0 && bytes < memory)
		verdict_found(v, VERDICT_PASS,
			      fact_with(FACT(BYTES_SERVER_MAY_HOLD, bytes, r->epochs_begun, memory),
					0, c->type));
}

static void judge_bytes(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	double asked = 0, returned = 0, payload = 0;
	uint64_t requests = 0;

	/* requests are counted over all epochs, also one that was not finished: so is payload here
	 */
	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		for (uint32_t i = 0; i < r->epochs_begun; i++)
			payload += (double)r->rank[k].epoch[i].payload_bytes;
		requests += io->kind[IO_DATA].requests + io->kind[IO_META].requests;
		asked += (double)io_stat_asked(io);
		returned += (double)io_stat_returned(io);
	}
	if (r->workload->run.measure == MEASURE_NONE) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(BYTES_NOT_COUNTED));
		return;
	}
	if (requests == 0) {
		verdict_found(v, VERDICT_WARN, FACT(BYTES_NO_REQUEST));
		verdict_takes(v, TAKES_STORAGE, REASON_INSTEAD_NO_REQUEST);
		return;
	}
	verdict_found(v, VERDICT_PASS,
		      FACT(BYTES_MOVED, payload, asked, returned, (double)requests));
	judge_payload(v, r, m);
	judge_encoding(v, r, returned, payload);
	/* of the cache on this host; the verdict local-cache says which epochs that takes */
	if (result_caches(r)) {
		verdict_found(v, VERDICT_PASS,
			      FACT(BYTES_FROM_CACHE, r->judged.ledger.line[LEDGER_REMOTE].bytes));
		return;
	}
	judge_device(v, r, m, returned, payload);
	judge_client(v, r, returned);
	judge_small(v, r);
}

extern const struct verdict_ops verdict_bytes;
const struct verdict_ops verdict_bytes = {
	.name = "bytes",
	.help = "Were the right bytes read, and did the device deliver them?",
	.about = ABOUT_ORIGIN,
	.needs = VERDICT_OF_TRAINING,
	.about_cache = true,
	.takes = TAKES_PART,
	.judge = judge_bytes,
};
