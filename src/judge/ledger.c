/* Lines of bytes, and why two of them differ. */
#include "judge/ledger.h"

#include <math.h>

#include "store/store.h"

static const double SHARE = 0.01;        /* of the larger one: what is below it agrees */
static const double LEAST_BYTES = 65536; /* and so does this much */
static const double BLOCK = 4096;        /* of a file system, and of O_DIRECT */
static const double HEADERS_SHARE = 0.1; /* of what a network carries: frames, calls, replies */
/* What this program reads to sample the machine: /proc and /sys, for each point. */
static const double SAMPLE_BYTES = 16384;

/* All that explanations are made of; sums over the begun epochs. */
struct facts {
	const struct result *r;
	const struct store_facts *base;
	double meta_returned, opens, requests;
	double past_end;   /* asked of the store beyond the end of files */
	double files;      /* bytes of the dataset's files, once an epoch */
	double cached;     /* of them in the page cache when the epochs began */
	double grown;      /* how much more at their ends */
	bool cached_known; /* every look before an epoch could tell */
	bool memory, part; /* the file system is memory; the looks saw only a part of the files */
	bool mapped, direct, uncounted, copies, encoded;
	bool thin;   /* files take less on the device than they return */
	bool linked; /* names are links to files that have other names */
	struct host_io host;
	double downloaded; /* of a remote dataset, into a cache on this host; 0: there is none */
	double loaded;     /* checkpoints read back during training */
	double evaluated;  /* fetched by evaluations, which are over when an epoch's last look is
			      taken */
	double samples;
};

static void explain(struct ledger_line *l, struct fact why)
{
	l->state = LEDGER_EXPLAINED;
	l->why = why;
}

static void flag(struct ledger_line *l, struct fact why)
{
	l->state = LEDGER_FLAGGED;
	l->why = why;
}

static bool bytes_differ(double a, double b)
{
	double d = fabs(a - b);

	return d > LEAST_BYTES && d > SHARE * fmax(a, b);
}

static void line_set(struct ledger *l, enum ledger_key key, double bytes)
{
	l->line[key].known = true;
	l->line[key].bytes = bytes;
}

/* What the kernel counted, of an epoch or of all; what is not known stays as it is. */
static void take_counters(const struct result *r, const struct proc_io *process,
			  const struct host_io *host, double bytes[LEDGER_LINES])
{
	if (process->known) {
		bytes[LEDGER_CALLS] = (double)process->rchar_bytes;
		bytes[LEDGER_CHARGED] = (double)process->read_bytes;
	}
	if (!r->host_source)
		return;
	if (host->whole.known)
		bytes[LEDGER_DEVICE] = (double)host->whole.read_bytes;
	if (host->lower.known)
		bytes[LEDGER_DISKS] = (double)host->lower.read_bytes;
	if (host->client.known)
		bytes[LEDGER_CLIENT] = (double)host->client.returned_bytes;
	if (host->client.fetched_known)
		bytes[LEDGER_FETCHED] = (double)host->client.fetched_bytes;
	if (host->net.known || host->net.rdma_known)
		bytes[LEDGER_NETWORK] =
			(double)host->net.received_bytes + (double)host->net.rdma_received_bytes;
}

static void none_known(double bytes[LEDGER_LINES])
{
	for (int k = 0; k < LEDGER_LINES; k++)
		bytes[k] = NAN;
}

/* ---- the lines ---- */

static void sum_requests(struct ledger *l, struct facts *f)
{
	const struct result *r = f->r;
	double wanted = 0, asked = 0, returned = 0;
	bool cached = result_caches(r);

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		for (uint32_t i = 0; i < r->epochs_begun; i++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[i];

			wanted += (double)ep->payload_bytes;
			f->downloaded += (double)ep->train_fetched.bytes;
			for (uint32_t c = 0; c < ep->loads; c++)
				f->loaded += (double)ep->load[c].stat.file_bytes;
		}
		asked += (double)io_stat_asked(io);
		returned += (double)io_stat_returned(io);
		f->meta_returned += (double)io->kind[IO_META].returned_bytes;
		f->opens += (double)io->kind[IO_OPEN].requests;
		f->requests +=
			(double)io->kind[IO_META].requests + (double)io->kind[IO_DATA].requests;
	}
	line_set(l, LEDGER_WANTED, wanted);
	if (cached)
		line_set(l, LEDGER_REMOTE, f->downloaded);
	if (r->workload->run.measure == MEASURE_NONE)
		return;
	line_set(l, LEDGER_ASKED, asked);
	line_set(l, LEDGER_RETURNED, returned);
	f->past_end = fmax(0, asked - returned);
}

static void sum_looks(struct facts *f)
{
	const struct result *r = f->r;

	f->cached_known = r->epochs_begun > 0;
	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct residency *c = &r->usage[i].cache_start;
		double scale = c->looked ? (double)c->files / (double)c->looked : 0;

		f->cached_known = f->cached_known && c->known && c->looked > 0;
		f->memory = f->memory || c->memory;
		f->part = f->part || c->looked < c->files;
		f->files += scale * (double)c->bytes;
		f->cached += scale * (double)residency_cached(c);
		f->grown += scale * fmax(0, (double)residency_cached(&r->usage[i].cache_end) -
						    (double)residency_cached(c));
	}
}

static void sum_kernel(struct ledger *l, struct facts *f)
{
	const struct result *r = f->r;
	struct proc_io process = {.known = r->epochs_begun > 0};
	double bytes[LEDGER_LINES];

	for (uint32_t i = 0; i < r->epochs_begun; i++) {
		const struct epoch_usage *u = &r->usage[i];

		process.known = process.known && u->train.known;
		process.rchar_bytes += u->train.rchar_bytes;
		process.read_bytes += u->train.read_bytes;
		f->evaluated += u->eval.known ? (double)u->eval.read_bytes : 0;
		if (i == 0)
			f->host = u->host_train;
		else
			host_io_add(&f->host, &u->host_train);
	}
	if (r->epochs_begun)
		f->host.whole.under_way = r->usage[r->epochs_begun - 1].host_train.whole.under_way;
	none_known(bytes);
	take_counters(r, &process, &f->host, bytes);
	/* of a file system that is not on the network it says nothing */
	if (!r->host_source || !r->host_source->client.network)
		bytes[LEDGER_NETWORK] = NAN;
	for (int k = 0; k < LEDGER_LINES; k++)
		if (!isnan(bytes[k]))
			line_set(l, (enum ledger_key)k, bytes[k]);
}

static void gather_facts(struct ledger *l, struct facts *f)
{
	const struct workload *w = f->r->workload;
	const struct dataset *d = f->r->dataset;

	f->base = workload_base_store(w);
	sum_requests(l, f);
	sum_looks(f);
	if (f->base->flags & STORE_HAS_FILES && f->r->usage)
		sum_kernel(l, f);
	f->direct = f->base->flags & STORE_IS_UNCACHED;
	f->mapped = (f->base->flags & STORE_MAPS) || (d && d->format->is.flags & FORMAT_MAPS) ||
		    workload_loader(w)->flags & LOADER_READS_AS_DALI;
	f->uncounted = f->base->flags & STORE_UNCOUNTED;
	f->linked = f->r->presence.survey.named > f->r->presence.survey.distinct;
	f->thin = f->r->presence.survey.hole_files + f->r->presence.survey.compressed_files +
		  f->r->presence.survey.inline_files;
	f->copies = w->reader.read_type == READ_MEMORY;
	f->encoded = (d && d->format->is.flags & FORMAT_IMAGE) || w->dataset.compression != 0;
}

/* ---- why two lines differ ---- */

static void why_asked(struct ledger_line *l, const struct facts *f, double wanted, double returned)
{
	if (l->bytes > wanted)
		explain(l, FACT(LEDGER_FRAMING, f->meta_returned, fmax(0, l->bytes - returned)));
	else if (f->encoded)
		explain(l, FACT(LEDGER_ENCODED));
	else if (f->copies)
		explain(l, FACT(LEDGER_COPIES));
	else
		flag(l, FACT(LEDGER_ASKED_LESS));
}

static void why_returned(struct ledger_line *l, double asked)
{
	if (l->bytes < asked)
		explain(l, FACT(LEDGER_PAST_END));
	else
		flag(l, FACT(LEDGER_RETURNED_MORE));
}

/* Shards come whole, and what is there is not downloaded again. */
static void why_downloaded(struct ledger_line *l, double wanted)
{
	if (l->bytes < wanted)
		explain(l, FACT(LEDGER_IN_CACHE, wanted - l->bytes));
	else
		explain(l, FACT(LEDGER_DOWNLOADED, l->bytes - wanted));
}

static void why_calls(struct ledger_line *l, const struct facts *f, double returned)
{
	double more = l->bytes - returned, sampling = 0;
	size_t points = 0;

	if (f->r->series)
		series_points(f->r->series, &points);
	sampling = (double)points * SAMPLE_BYTES;
	if (more < 0 && f->mapped)
		explain(l, FACT(LEDGER_FAULTS, -more));
	else if (more < 0 && f->uncounted)
		explain(l, fact_with(FACT(LEDGER_STORE_UNCOUNTED, -more), 0, f->base->name));
	else if (more < 0)
		flag(l, FACT(LEDGER_NOT_CALLS, -more));
	else if (f->direct && more <= 2 * BLOCK * f->requests + sampling)
		explain(l, FACT(LEDGER_BLOCKS, more));
	else if (more <= f->loaded + sampling + LEAST_BYTES)
		explain(l, FACT(LEDGER_READ_BACK, more, f->loaded));
	else
		flag(l, FACT(LEDGER_NOT_REQUESTED, more));
}

/* Whether what was fetched and what was there can have served all: nobody else brought anything in,
 * and no file was read more often than it has samples, which is when a format reads all of it for
 * each. */
static bool read_again(const struct facts *f, double charged, double asked)
{
	const struct dataset *d = f->r->dataset;
	double times = d && d->samples_per_file > 1 ? (double)d->samples_per_file : 1;
	double slack = fmax(LEAST_BYTES, SHARE * asked);

	/* headers and indexes lie in pages that the samples' requests reach into, too */
	return f->grown <= charged + f->evaluated + slack &&
	       (charged + f->cached) * times + f->meta_returned + slack >= asked;
}

bool ledger_uncounted(const struct result *r, double charged)
{
	const struct fs_client *c = r->host_source ? &r->host_source->client : NULL;

	/* versions of clients differ in what they report; nothing at all is not a count */
	return c && (c->kind != FS_CLIENT_NONE || c->uncounted || (c->network && charged <= 0));
}

static void why_less_charged(struct ledger_line *l, const struct facts *f, double missing,
			     double asked)
{
	double slack = fmax(LEAST_BYTES, SHARE * asked);
	double again = fmax(0, missing - f->cached);

	if (f->memory)
		explain(l, FACT(LEDGER_MEMORY));
	else if (ledger_uncounted(f->r, l->bytes))
		explain(l, fact_with(FACT(LEDGER_CLIENT_UNCOUNTED), 0,
				     f->r->host_source->client.type));
	else if (f->thin)
		explain(l, FACT(LEDGER_THIN, missing));
	else if (f->direct)
		flag(l, FACT(LEDGER_DIRECT_LESS, missing));
	else if (!f->cached_known)
		flag(l, FACT(LEDGER_CACHE_UNKNOWN, missing));
	else if (again <= slack)
		explain(l, FACT(LEDGER_CACHE_HELD, f->cached, f->part));
	else if (again <= asked - f->files + slack || read_again(f, l->bytes, asked))
		explain(l, FACT(LEDGER_CACHE_AGAIN, f->cached, again));
	else if (f->linked)
		explain(l, FACT(LEDGER_LINKS, missing));
	else if (l->bytes <= 0 && f->grown <= slack)
		flag(l, FACT(LEDGER_UNREPORTED, missing));
	else
		flag(l, FACT(LEDGER_OTHER_READER, missing, f->cached));
}

static void why_more_charged(struct ledger_line *l, const struct facts *f, double more,
			     double asked)
{
	/* what of the files was neither asked for nor there */
	double ahead = fmax(0, f->files - f->cached - asked);
	double tables = BLOCK * f->opens, slack = fmax(LEAST_BYTES, SHARE * asked);

	if (f->direct && more <= tables + slack)
		explain(l, FACT(LEDGER_TABLES, more));
	else if (f->direct && f->past_end > 0 && more <= tables + BLOCK * f->requests + slack)
		explain(l, FACT(LEDGER_LAST_BLOCKS, more));
	else if (!f->direct && more <= ahead + tables + slack)
		explain(l, FACT(LEDGER_READ_AHEAD, more, f->mapped));
	else if (!f->direct && f->r->workload->storage.page_cache == PAGE_CACHE_DROP)
		explain(l, FACT(LEDGER_DROPPED, more));
	else if (!f->direct && f->cached_known && asked + more > f->files)
		flag(l, FACT(LEDGER_EVICTED, more));
	else
		flag(l, FACT(LEDGER_MORE, more));
}

/* `exact`: what this run asked the kernel for is what it was charged, as no page cache is between.
 */
static void why_device(struct ledger_line *l, const struct facts *f, double charged, bool exact)
{
	const struct block_tree *t = &f->r->host_source->tree;
	double more = l->bytes - charged, parts = 0, mean;
	const struct block_counters *w = &f->host.whole;

	if (more > 0) {
		if (f->host.part.known && t->part.n == t->whole.n)
			parts = fmax(0, l->bytes - (double)f->host.part.read_bytes);
		(exact ? explain : flag)(
			l, FACT(LEDGER_OTHERS_READ, more, parts > SHARE * l->bytes ? parts : NAN));
		return;
	}
	mean = w->reads ? (double)w->read_bytes / (double)w->reads : 0;
	if (w->under_way && -more <= fmax(LEAST_BYTES, 2 * mean * (double)w->under_way))
		explain(l, FACT(LEDGER_UNDER_WAY, -more));
	else if (f->loaded > 0 && -more <= 1.05 * f->loaded + LEAST_BYTES)
		explain(l, FACT(LEDGER_CHECKPOINTS_ELSEWHERE, -more));
	else
		flag(l, FACT(LEDGER_OTHER_DEVICES, -more));
}

static void why_disks(struct ledger_line *l, const struct facts *f, double device)
{
	double away = fabs(l->bytes - device);

	if (l->bytes > device)
		flag(l, FACT(LEDGER_DISKS_MORE, away));
	else if (f->r->host_source->tree.loop)
		flag(l, FACT(LEDGER_BACKING_FILE, away));
	else
		flag(l, FACT(LEDGER_CACHE_BETWEEN, away));
}

static void why_network(struct ledger_line *l, double before)
{
	double more = l->bytes - before;

	if (more > 0 && more <= HEADERS_SHARE * before)
		explain(l, FACT(LEDGER_HEADERS, more));
	else if (more > 0)
		flag(l, FACT(LEDGER_TRAFFIC, more));
	else
		flag(l, FACT(LEDGER_OTHER_PATH, -more));
}

static void why_client(struct ledger_line *l, double returned)
{
	double more = l->bytes - returned;

	if (more > 0)
		flag(l, FACT(LEDGER_CLIENT_MORE, more));
	else
		flag(l, FACT(LEDGER_CLIENT_LESS, -more));
}

static void why_fetched(struct ledger_line *l, const struct facts *f, double client)
{
	double missing = client - l->bytes;

	if (missing < 0)
		explain(l, FACT(LEDGER_READ_AHEAD, -missing, false));
	else if (f->cached_known && missing <= f->cached + fmax(LEAST_BYTES, SHARE * client))
		explain(l, FACT(LEDGER_CACHE_HELD, f->cached, false));
	else if (f->cached_known)
		flag(l, FACT(LEDGER_CACHE_LESS, missing, f->cached));
	else
		flag(l, FACT(LEDGER_CACHE_UNKNOWN, missing));
}

/* The nearest known line before `key` among those that it follows from. */
static int line_before(const struct ledger *l, const struct facts *f, enum ledger_key key)
{
	enum ledger_key last = key == LEDGER_DEVICE ? LEDGER_CHARGED : key;

	/* what is read from the cache comes from this host */
	if (key == LEDGER_REMOTE)
		return LEDGER_WANTED;
	if (l->line[LEDGER_REMOTE].known &&
	    (key == LEDGER_CHARGED || key == LEDGER_CLIENT ||
	     (key == LEDGER_NETWORK && !l->line[LEDGER_FETCHED].known)))
		return LEDGER_REMOTE;
	/* mapped files and io_uring are not in the kernel's count of calls */
	if ((key == LEDGER_CHARGED || key == LEDGER_CLIENT) && (f->mapped || f->uncounted) &&
	    l->line[LEDGER_RETURNED].known)
		return LEDGER_RETURNED;
	if (key == LEDGER_CLIENT && l->line[LEDGER_CALLS].known)
		return LEDGER_CALLS;
	if (key == LEDGER_DEVICE)
		return l->line[last].known ? (int)last : -1;
	if (key == LEDGER_DISKS)
		return l->line[LEDGER_DEVICE].known ? LEDGER_DEVICE : -1;
	if (key == LEDGER_NETWORK)
		return l->line[LEDGER_FETCHED].known ? LEDGER_FETCHED
		       : l->line[LEDGER_CALLS].known ? LEDGER_CALLS
						     : -1;
	for (int k = (int)key - 1; k >= 0; k--)
		if (l->line[k].known && !(key == LEDGER_CALLS && k == LEDGER_REMOTE))
			return k;
	return -1;
}

static void compare_line(struct ledger *l, const struct facts *f, enum ledger_key key)
{
	struct ledger_line *line = &l->line[key];
	double before, now = line->bytes;

	line->against = line_before(l, f, key);
	if (line->against < 0)
		return;
	before = l->line[line->against].bytes;
	/* read calls are those of samples and of downloads */
	if (key == LEDGER_CALLS)
		before += f->downloaded;
	if (!bytes_differ(before, now))
		return;
	if (key > LEDGER_CHARGED && fabs(now - before) <= SHARE * l->line[LEDGER_WANTED].bytes) {
		explain(line, FACT(LEDGER_LITTLE, fabs(now - before)));
		return;
	}
	switch (key) {
	case LEDGER_ASKED:
		why_asked(line, f, before, l->line[LEDGER_RETURNED].bytes);
		break;
	case LEDGER_RETURNED:
		why_returned(line, before);
		break;
	case LEDGER_REMOTE:
		why_downloaded(line, before);
		break;
	case LEDGER_CALLS:
		if (line->against == LEDGER_WANTED)
			explain(line, FACT(LEDGER_NOT_COUNTED));
		else
			why_calls(line, f, before);
		break;
	case LEDGER_CHARGED:
		if (now < before)
			why_less_charged(line, f, before - now, before);
		else
			why_more_charged(line, f, now - before, before);
		break;
	case LEDGER_CLIENT:
		why_client(line, before);
		break;
	case LEDGER_FETCHED:
		why_fetched(line, f, before);
		break;
	case LEDGER_DEVICE:
		why_device(line, f, before,
			   f->direct && l->line[LEDGER_CHARGED].state != LEDGER_FLAGGED);
		break;
	case LEDGER_DISKS:
		why_disks(line, f, before);
		break;
	default:
		why_network(line, before);
	}
}

void ledger_of(const struct result *r, struct ledger *out)
{
	struct facts f = {.r = r};

	*out = (struct ledger){0};
	for (int k = 0; k < LEDGER_LINES; k++)
		out->line[k].against = -1;
	if (!r->rank || !r->trained)
		return;
	gather_facts(out, &f);
	for (int k = 0; k < LEDGER_LINES; k++)
		if (out->line[k].known)
			compare_line(out, &f, (enum ledger_key)k);
}

/* ---- epoch by epoch ---- */

static void epoch_requests(const struct result *r, uint32_t epoch, bool eval, double *bytes)
{
	double wanted = 0, asked = 0, returned = 0, downloaded = 0;
	bool known = true;

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct rank_epoch *ep = &r->rank[k].epoch[epoch];
		const struct requested *q = eval ? &ep->eval_requested : &ep->train_requested;

		if (r->rank[k].lost)
			continue;
		known = known && q->known;
		wanted += (double)(eval ? ep->eval_payload_bytes : ep->payload_bytes);
		asked += (double)q->asked_bytes;
		returned += (double)q->returned_bytes;
		downloaded += (double)(eval ? ep->eval_fetched : ep->train_fetched).bytes;
	}
	bytes[LEDGER_WANTED] = wanted;
	if (result_caches(r))
		bytes[LEDGER_REMOTE] = downloaded;
	if (!known)
		return;
	bytes[LEDGER_ASKED] = asked;
	bytes[LEDGER_RETURNED] = returned;
}

void ledger_of_epoch(const struct result *r, uint32_t epoch, bool eval, double bytes[LEDGER_LINES])
{
	const struct epoch_usage *u;

	none_known(bytes);
	if (!r->rank || epoch >= r->epochs_begun)
		return;
	for (uint32_t k = 0; eval && k < r->ranks; k++)
		if (!r->rank[k].lost && !r->rank[k].epoch[epoch].has_eval)
			return;
	epoch_requests(r, epoch, eval, bytes);
	if (!r->usage)
		return;
	u = &r->usage[epoch];
	take_counters(r, eval ? &u->eval : &u->train, eval ? &u->host_eval : &u->host_train, bytes);
}
