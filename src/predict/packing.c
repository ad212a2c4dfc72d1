/* Many samples in few files. */
#include "predict/packing.h"

#include <math.h>

#include "base/str.h"

static const double MAIN_PART = 0.2;    /* of a batch's time: opens and metadata that count */
static const double FEWER = 0.5;        /* of the opens: what leaves more is no change */
static const uint64_t USUAL = 256;      /* samples of a file, where so few files are left that */
static const uint64_t LEAST = 4;        /* readers keep them open */
static const double ONE_READ = 2 << 20; /* bytes: the largest request of native reading */

/* The first other format that keeps files open and reads a sample alone. */
static const struct format_facts *packing_format(void)
{
	const struct format_facts *const *f = format_facts_table;

	while (*f && (*f)->kept_open == 0)
		f++;
	return *f;
}

/* What lies in a file must be a sample's bytes and nothing that depends on their number. */
static bool is_plain(const struct workload *w)
{
	return w->dataset.compression == 0 && !w->dataset.enable_chunking &&
	       w->dataset.hdf5.chunk_dims.n == 0 && w->dataset.hdf5.num_dset_per_record <= 1 &&
	       w->dataset.record_length_bytes_stdev == 0 && w->dataset.file_bytes == 0 &&
	       w->dataset.sizes == SIZES_COMPUTED;
}

/* The number of samples must stay what it is; 0: there are too few. */
static uint64_t samples_of_file(uint64_t all, uint64_t now, uint64_t kept)
{
	uint64_t n = LEAST * now, best = 0;

	for (; n <= all / 2; n *= 2)
		if (all % n == 0 && (n <= USUAL || !best || all / best > kept))
			best = n;
	return best;
}

/* Files that readers open in an epoch, each those of its samples. Orders may leave a reader with
 * fewer of them: that there are none at all is tried, too. */
static double opens_of(const struct packing *p, double readers, double samples, double kept)
{
	double files = (double)p->files, each = fmin(files, samples / readers);
	double again = files > kept ? (1 - kept / files) * samples : 0;

	return fmax(readers * each, again);
}

bool packing_of(const struct variants *v, const struct result *r, struct packing *out)
{
	const struct workload *w = r->workload;
	const struct costs *c = &v->costs;
	const struct dataset *d = r->dataset;
	const struct format_facts *now;
	double readers = (double)v->one[0].m.ranks * fmax(1, v->one[0].m.workers), samples;
	double data = c->data_requests, bytes = c->payload, metadata; /* s of a batch */
	bool native = w->reader.access != 0;
	uint64_t kept;

	*out = (struct packing){0};
	if (!d || !is_plain(w) || w->reader.queue_depth > 1 || c->opens <= 0 || c->bytes <= 0 ||
	    c->requests <= 0 || w->reader.read_type == READ_MEMORY)
		return false;
	now = &d->format->is;
	if (now->flags & (FORMAT_NO_IO | FORMAT_STREAM))
		return false;
	if (now->kept_open == 0) {
		out->format = packing_format();
		if (!out->format || c->plain <= 0 || d->samples_per_file != 1)
			return false;
	}
	kept = out->format ? out->format->kept_open : now->kept_open;
	samples = (double)dataset_samples(d, DATASET_TRAIN);
	out->samples =
		samples_of_file(dataset_samples(d, DATASET_TRAIN), d->samples_per_file, kept);
	if (out->samples == 0)
		return false;
	out->files = dataset_samples(d, DATASET_TRAIN) / out->samples;
	if (d->files[DATASET_EVAL] && w->workflow.evaluation)
		out->eval_files =
			(d->files[DATASET_EVAL] * d->samples_per_file + out->samples - 1) /
			out->samples;
	if (native || out->format) {
		bytes = out->format ? c->plain : c->payload;
		data = fmax(c->samples, bytes / ONE_READ);
	} else {
		bytes = c->data_bytes;
	}
	if (!out->format)
		data = fmin(data, c->requests);
	out->requests = data / c->requests;
	out->bytes = bytes / c->bytes;
	/* on_demand opens a file for each sample */
	out->opens = opens_of(out, readers, samples, (double)kept) / samples;
	out->framework = c->framework;
	out->begin_s = out->opens * samples / readers * (c->open / c->samples);
	metadata = (v->one[0].latency + v->one[0].m.read.serve_s) * fmax(0, 1 - out->requests);
	out->begin_s += out->opens * samples / readers * metadata / c->samples;
	return out->opens <= FEWER && c->open + metadata >= MAIN_PART * c->service;
}

void packing_apply(const struct packing *p, const struct variant *v, enum packing_opens when,
		   struct model *m)
{
	double opens = when == OPENS_SPREAD ? p->opens : 0;
	double requests = p->requests + opens * fmax(0, 1 - p->requests);

	m->delay_s -= v->open_latency * (1 - opens) + v->latency * (1 - requests);
	model_queue_scale(&m->open, opens, opens);
	model_queue_scale(&m->read, requests, p->bytes);
	m->bytes *= p->bytes;
	if (when == OPENS_FIRST)
		m->start_s += p->begin_s;
	if (p->format) {
		m->delay_s -= v->decode;
		m->cpu_s = fmin(m->cpu_s, p->framework);
	}
}

void packing_keys(const struct packing *p, char *out, size_t size)
{
	out[0] = '\0';
	if (p->format)
		str_append(out, size, "dataset.format=%s reader.access=native ", p->format->name);
	str_append(out, size,
		   "dataset.num_samples_per_file=%llu dataset.num_files_train=%llu "
		   "reader.read_type=memory",
		   (unsigned long long)p->samples, (unsigned long long)p->files);
	if (p->eval_files)
		str_append(out, size, " dataset.num_files_eval=%llu",
			   (unsigned long long)p->eval_files);
}

struct fact packing_fact(const struct packing *p)
{
	return fact_with(FACT(CHANGE_PACKED, (double)p->samples, 1 / p->opens), 0,
			 p->format ? p->format->name : "");
}
