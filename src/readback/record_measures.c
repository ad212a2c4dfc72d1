#include "readback/record_measures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/vector.h"
#include "loader/loader.h"
#include "readback/record.h"
#include "readback/step_marks.h"
#include "result/json_limit.h"
#include "result/seal.h"
#include "workload/backend.h"

static const struct part *epochs_of(const struct run_record *r)
{
	return part(record_part(r, F_RUN_TRAINING), F_TRAINING_EPOCHS);
}

/* Epochs of the rank that has most, or of summary.json if it lists more. */
static size_t epoch_count(const struct run_record *r)
{
	size_t most = r->au.n;

	for (uint32_t k = 0; k < r->ranks; k++)
		if (r->rank[k].epochs > most)
			most = r->rank[k].epochs;
	return most;
}

double record_au(const struct run_record *r, size_t epoch)
{
	return epoch < r->au.n ? r->au.v[epoch] : NAN;
}

double record_throughput(const struct run_record *r, size_t epoch)
{
	return epoch < r->throughput.n ? r->throughput.v[epoch] : NAN;
}

double *record_values(const struct run_record *r, const size_t *index, size_t n, record_measure of,
		      bool by_epoch, size_t *count)
{
	size_t most = 1;
	double *v;

	*count = 0;
	for (size_t i = 0; i < n; i++)
		most += by_epoch ? r[index ? index[i] : i].facts.epochs : 1;
	v = xcalloc(most, sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		const struct run_record *one = &r[index ? index[i] : i];
		double sum = 0;
		size_t epochs = 0;

		for (size_t e = 0; e < one->facts.epochs; e++) {
			double x = of(one, e);

			if (!isfinite(x))
				continue;
			sum += x;
			epochs++;
			if (by_epoch)
				v[(*count)++] = x;
		}
		if (!by_epoch && epochs)
			v[(*count)++] = sum / (double)epochs;
	}
	return v;
}

double *record_whole_values(const struct run_record *r, const size_t *index, size_t n,
			    record_measure of_epoch, record_run_measure of_run, bool by_epoch,
			    size_t *count, double *mean)
{
	double *own = xcalloc(n + 1, sizeof(*own)), sum = 0;
	size_t runs = 0;

	for (size_t i = 0; i < n; i++) {
		double one = of_run(&r[index ? index[i] : i]);

		if (!isfinite(one))
			continue;
		own[runs++] = one;
		sum += one;
	}
	*mean = runs ? sum / (double)runs : NAN;
	if (!by_epoch) {
		*count = runs;
		return own;
	}
	free(own);
	return record_values(r, index, n, of_epoch, true, count);
}

static double phase_sum(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

/* Steps that an epoch of a rank has by the configuration; 0: not known. */
static uint64_t planned_steps(const struct run_record *r)
{
	const struct workload *w = &r->workload;
	double samples, steps;

	if (!r->has_workload || w->reader.batch_size < 1 || r->ranks == 0)
		return 0;
	samples = r->files >= 0 && !workload_files_differ(w)
			  ? r->files * (double)w->dataset.num_samples_per_file
			  : (double)workload_samples(w, false);
	steps = floor(samples / (double)w->reader.batch_size / r->ranks);
	if (w->train.total_training_steps > 0)
		steps = fmin(steps, (double)w->train.total_training_steps);
	return steps >= 1 && steps < 1e15 ? (uint64_t)steps : 0;
}

static double configured_step(const struct run_record *r)
{
	return r->has_workload ? time_dist_mean(&r->workload.train.computation_time) : NAN;
}

/* Of the stamps of an epoch, where no rank left times: what was configured to be computed. */
static double whole_au_of_stamps(const struct run_record *r, size_t epoch)
{
	double compute = (double)planned_steps(r) * configured_step(r);

	return epoch < r->rank[0].epochs && compute > 0 && r->rank[0].epoch[epoch].train_wall_s > 0
		       ? 100 * compute / r->rank[0].epoch[epoch].train_wall_s
		       : NAN;
}

static double find_whole_au(const struct run_record *r, size_t epoch)
{
	const struct part *of = part_at(epochs_of(r), epoch);
	double sum = 0;
	uint32_t n = 0;

	/* steps do not say what of them was late for want of a processor */
	if (figure(of, F_EPOCH_LATE) > 0)
		return figure(of, F_EPOCH_WHOLE_AU);
	if (r->stamps_alone)
		return whole_au_of_stamps(r, epoch);

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_epoch *ep;
		double compute = 0;

		if (r->rank[k].epochs <= epoch)
			continue;
		ep = &r->rank[k].epoch[epoch];
		for (size_t b = 0; b < ep->blocks; b++)
			compute += phase_sum(ep->block[b].compute, ep->block[b].computes);
		if (!(ep->train_wall_s > 0))
			continue;
		sum += 100 * compute / ep->train_wall_s;
		n++;
	}
	return n ? sum / n : NAN;
}

/* Of the epoch's training part, mean over ranks. */
static double wall_of_epoch(const struct run_record *r, size_t epoch)
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		if (r->rank[k].epochs > epoch && r->rank[k].epoch[epoch].train_wall_s > 0) {
			sum += r->rank[k].epoch[epoch].train_wall_s;
			n++;
		}
	return n ? sum / n : NAN;
}

/* What the run itself measured; its files have the times of two clocks, a little apart. */
static double recorded_whole(const struct run_record *r, enum field id)
{
	return figure(record_part(r, F_RUN_TRAINING), id);
}

static double find_whole_run_au(const struct run_record *r)
{
	double known = recorded_whole(r, F_TRAINING_WHOLE_AU), compute = 0, wall = 0;

	if (isfinite(known))
		return known;
	for (size_t i = 0; i < epoch_count(r); i++) {
		double one = find_whole_au(r, i), s = wall_of_epoch(r, i);

		if (isfinite(one) && isfinite(s)) {
			compute += one * s;
			wall += s;
		}
	}
	return wall > 0 ? compute / wall : NAN;
}

/* Shares of the ranks' training time; NaN without times. */
static double share_of(const struct run_record *r, bool waiting)
{
	double part = 0, wall = 0;

	for (uint32_t k = 0; k < r->ranks && !r->stamps_alone; k++)
		for (size_t i = 0; i < r->rank[k].epochs; i++) {
			const struct record_epoch *ep = &r->rank[k].epoch[i];
			double load = 0, compute = 0;

			if (!(ep->train_wall_s > 0))
				continue;
			for (size_t b = 0; b < ep->blocks; b++) {
				load += phase_sum(ep->block[b].load, ep->block[b].loads);
				compute += phase_sum(ep->block[b].compute, ep->block[b].computes);
			}
			part += waiting ? load : ep->train_wall_s - load - compute;
			wall += ep->train_wall_s;
		}
	return wall > 0 ? 100 * part / wall : NAN;
}

static double find_wait_share(const struct run_record *r)
{
	return share_of(r, true);
}

/* All that is neither waiting nor computation as AU counts it: also what computation was late by.
 */
static double find_other_share(const struct run_record *r, double wait, double au)
{
	return r->ours && isfinite(wait + au) ? fmax(0, 100 - wait - au) : share_of(r, false);
}

/* The two largest parts of that, by the decomposition of the time; "": it has none. */
static void find_others(const struct run_record *r, struct record_facts *f)
{
	static const struct {
		enum time_part part;
		const char *name;
	} parts[] = {{TIME_NO_CPU, "threads without a processor"},
		     {TIME_FRAMEWORK, "the framework's own code"},
		     {TIME_SKEW, "waiting for other ranks"},
		     {TIME_COLLECTIVE, "the barrier itself"},
		     {TIME_CHECKPOINT, "checkpoints"},
		     {TIME_OTHER, "time between steps"}};
	enum { PARTS = sizeof(parts) / sizeof(parts[0]) };
	const struct part *d = part(record_part(r, F_RUN_TRAINING), F_TRAINING_DECOMPOSITION);
	double share[PARTS];

	for (size_t i = 0; i < PARTS; i++) {
		share[i] = figure_named(d, F_DECOMPOSITION_MEAN_PERCENT, parts[i].part);
		if (isnan(share[i]))
			share[i] = -1;
		/* two of them are in waits, too */
		if (share[i] > f->other_share)
			share[i] = f->other_share;
	}
	for (int turn = 0; turn < 2; turn++) {
		size_t most = 0;

		for (size_t i = 1; i < PARTS; i++)
			if (share[i] > share[most])
				most = i;
		if (!(share[most] >= 0.05))
			return;
		str_append(f->others, sizeof(f->others), "%s%s %.1f %%", turn ? ", " : "",
			   parts[most].name, share[most]);
		share[most] = -1;
	}
}

static uint64_t find_steps(const struct run_record *r)
{
	uint64_t steps = 0;

	if (r->ranks == 0)
		return 0;
	if (r->stamps_alone || (!r->ours && r->ranks_found == 0))
		return planned_steps(r);
	if (r->rank[0].epochs == 0)
		return 0;
	for (size_t b = 0; b < r->rank[0].epoch[0].blocks; b++)
		steps += r->rank[0].epoch[0].block[b].computes;
	return steps;
}

uint64_t record_window(const struct run_record *r)
{
	const struct loader_ops *ops;
	uint32_t workers;
	uint64_t batches = 0;

	if (!r->has_workload)
		return 0;
	ops = loader_find(r->workload.reader.data_loader);
	if (ops)
		ops->window(&r->workload, &workers, &batches);
	return batches;
}

static double find_sample_bytes(const struct run_record *r)
{
	double decoded = figure(record_part(r, F_RUN_NEED), F_NEED_SAMPLE_DECODED);

	if (!r->has_workload)
		return NAN;
	/* with dataset.file_bytes the key follows from that */
	return r->workload.dataset.file_bytes > 0 && !isnan(decoded)
		       ? decoded
		       : r->workload.dataset.record_length_bytes;
}

static const struct part *recorded_need(const struct run_record *r)
{
	const struct part *need = record_part(r, F_RUN_NEED);
	const char *of = figure_text(need, F_NEED_OF);

	return of && strcmp(of, "training") == 0 ? need : NULL;
}

static void find_need(const struct run_record *r, struct need *out)
{
	double bytes = figure(recorded_need(r), F_NEED_SAMPLE_FILE);

	if (!r->has_workload) {
		*out = (struct need){.why = "the workload is not known",
				     .samples = NAN,
				     .bytes = NAN,
				     .samples_at_target = NAN,
				     .bytes_at_target = NAN};
		return;
	}
	need_find(&r->workload, NEED_TRAINING, isnan(bytes) ? find_sample_bytes(r) : bytes, out);
}

static const struct part *recorded_supply(const struct run_record *r)
{
	return part(recorded_need(r), F_NEED_SUPPLY);
}

static double find_returned_rate(const struct run_record *r)
{
	return figure(recorded_supply(r), F_SUPPLY_RETURNED);
}

static const char *find_supply(const struct run_record *r)
{
	const char *of = figure_text(recorded_supply(r), F_SUPPLY_OF);

	return of ? of : "";
}

/* Samples of an epoch and the time of its slowest rank; false: a file is missing. */
static bool epoch_rate(const struct run_record *r, size_t epoch, double *samples, double *longest)
{
	*samples = *longest = 0;
	if (!r->has_workload)
		return false;
	if (r->stamps_alone && epoch < r->rank[0].epochs) {
		*samples =
			(double)planned_steps(r) * (double)r->workload.reader.batch_size * r->ranks;
		*longest = r->rank[0].epoch[epoch].train_wall_s;
		return *samples > 0 && *longest > 0;
	}
	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_epoch *ep;

		if (r->rank[k].epochs <= epoch)
			return false;
		ep = &r->rank[k].epoch[epoch];
		for (size_t b = 0; b < ep->blocks; b++)
			*samples += (double)ep->block[b].computes *
				    (double)r->workload.reader.batch_size;
		if (ep->train_wall_s > *longest)
			*longest = ep->train_wall_s;
	}
	return *longest > 0;
}

static double find_whole_rate(const struct run_record *r, size_t epoch)
{
	double samples, longest;

	return epoch_rate(r, epoch, &samples, &longest) ? samples / longest : NAN;
}

static double find_whole_throughput(const struct run_record *r)
{
	double known = recorded_whole(r, F_TRAINING_WHOLE_RATE), samples = 0, wall = 0;

	if (isfinite(known))
		return known;
	for (size_t i = 0; i < epoch_count(r); i++) {
		double n, longest;

		if (!epoch_rate(r, i, &n, &longest))
			continue;
		samples += n;
		wall += longest;
	}
	return wall > 0 ? samples / wall : NAN;
}

static double find_fed(const struct run_record *r)
{
	double fed = figure(recorded_supply(r), F_SUPPLY_FED);
	struct need n;

	if (!isnan(fed))
		return fed;
	find_need(r, &n);
	fed = need_fed(&n, find_whole_throughput(r));
	return fed > r->ranks ? r->ranks : fed;
}

static double find_wall(const struct run_record *r, size_t epoch)
{
	double longest = NAN;

	for (uint32_t k = 0; k < r->ranks; k++)
		if (epoch < r->rank[k].epochs && !(longest >= r->rank[k].epoch[epoch].train_wall_s))
			longest = r->rank[k].epoch[epoch].train_wall_s;
	return longest;
}

/* Of a result that does not say, by its workload: of DLIO's files the bytes are not known. */
static double find_fed_stated(const struct run_record *r)
{
	const struct part *need = record_part(r, F_RUN_NEED);
	struct need own;

	if (need)
		return figure(part(need, F_NEED_SUPPLY), F_SUPPLY_FED);
	if (!r->has_workload || !r->trained)
		return NAN;
	need_find(&r->workload, NEED_TRAINING, NAN, &own);
	return fmin(need_fed(&own, find_whole_throughput(r)), r->ranks);
}

/* What is foretold of the framework's own code. */
static void find_costs(const struct run_record *r, struct record_facts *f)
{
	const json_t *costs = figure_json(record_part(r, F_RUN_WHAT_IF), F_WHAT_IF_COSTS);
	const char *cause = figure_text(record_part(r, F_RUN_LIMIT), F_LIMIT_CAUSE);
	struct costs_effect effect;
	struct fact said;
	struct buf text = {0};

	if (costs_effect_read(costs, &effect)) {
		said = costs_effect_fact(&effect);
		words_put(&text, &said, WORDS_LONG);
	}
	f->costs_au = effect.au;
	f->costs_text = text.len ? buf_take(&text) : xstrdup("");
	f->cause = cause_of(cause);
}

static void measures_find(struct record_facts *f, const struct run_record *r)
{
	const struct part *epochs = epochs_of(r);

	f->epochs = epoch_count(r);
	f->lists_epochs = epochs != NULL;
	if (part_count(epochs) > f->epochs)
		f->epochs = part_count(epochs);
	f->epoch = xcalloc(f->epochs + 1, sizeof(*f->epoch));
	for (size_t i = 0; i < f->epochs; i++)
		f->epoch[i] = (struct epoch_facts){
			.whole_au = find_whole_au(r, i),
			.whole_rate = find_whole_rate(r, i),
			.wall_s = find_wall(r, i),
			.payload = figure(part_at(epochs, i), F_EPOCH_PAYLOAD_RATE),
		};
	f->whole_run_au = find_whole_run_au(r);
	f->whole_throughput = find_whole_throughput(r);
	f->wait_share = find_wait_share(r);
	f->other_share = find_other_share(r, f->wait_share, f->whole_run_au);
	find_others(r, f);
	f->steps = find_steps(r);
	f->sample_bytes = find_sample_bytes(r);
	f->step_s = configured_step(r);
	f->target =
		r->has_workload && r->workload.metric.au > 0 ? 100 * r->workload.metric.au : NAN;
	find_need(r, &f->need);
	f->fed = find_fed(r);
	f->fed_stated = find_fed_stated(r);
	f->returned_rate = find_returned_rate(r);
	f->payload_mean = recorded_whole(r, F_TRAINING_PAYLOAD_RATE_MEAN);
	f->supply = xstrdup(find_supply(r));
	find_costs(r, f);
}

/* ---- as they were found ---- */

double record_whole_au(const struct run_record *r, size_t epoch)
{
	return epoch < r->facts.epochs ? r->facts.epoch[epoch].whole_au : NAN;
}

double record_whole_rate(const struct run_record *r, size_t epoch)
{
	return epoch < r->facts.epochs ? r->facts.epoch[epoch].whole_rate : NAN;
}

double record_wall(const struct run_record *r, size_t epoch)
{
	return epoch < r->facts.epochs ? r->facts.epoch[epoch].wall_s : NAN;
}

double record_whole_run_au(const struct run_record *r)
{
	return r->facts.whole_run_au;
}

double record_whole_throughput(const struct run_record *r)
{
	return r->facts.whole_throughput;
}

void record_need(const struct run_record *r, struct need *out)
{
	*out = r->facts.need;
}

double record_shown(const struct run_record *r, size_t i)
{
	return r->broken ? NAN : r->facts.shown[i];
}

/* ---- all that is kept of a result ---- */

static const double SHARE_SEEN = 0.01; /* fetched, from which on the system counts fetching */
/* Waits that are not 0 from which on equal lists are no chance: they are written in microseconds or
 * finer. */
#define WAITS_ENOUGH 6u

/* 0 where there is none. */
static double number_at(const struct part *of, enum field id)
{
	double v = figure(of, id);

	return isnan(v) ? 0 : v;
}

/* NULL where there is no text. */
static char *text_copy(const struct part *of, enum field id)
{
	const char *s = figure_text(of, id);

	return s ? xstrdup(s) : NULL;
}

/* ---- where the bytes came from ---- */

static bool in_memory(const struct run_record *r)
{
	static const char *const systems[] = {"tmpfs", "ramfs", "hugetlbfs"};
	const char *fs =
		figure_text(record_part(r, F_RUN_STORAGE_PATH), F_STORAGE_PATH_FILE_SYSTEM);

	for (size_t i = 0; fs && i < sizeof(systems) / sizeof(systems[0]); i++)
		if (strcmp(fs, systems[i]) == 0)
			return true;
	return r->has_workload &&
	       workload_base_store(&r->workload)->flags & (STORE_IS_VOLATILE | STORE_KEEPS_NOTHING);
}

static double cached_share(const struct run_record *r)
{
	const struct part *epochs = part(record_part(r, F_RUN_TRAINING), F_TRAINING_EPOCHS);
	double fetched = 0, returned = 0, cached = 0, looked = 0;

	for (size_t i = 0; i < part_count(epochs); i++) {
		const struct part *ep = part_at(epochs, i);
		const struct part *cache = part(ep, F_EPOCH_PAGE_CACHE);

		fetched += number_at(part(ep, F_EPOCH_PROCESS_IO), F_PROCESS_IO_DEVICE_READ);
		returned += number_at(ep, F_EPOCH_RETURNED);
		cached += number_at(cache, F_PAGE_CACHE_START);
		looked += number_at(cache, F_PAGE_CACHE_BYTES);
	}
	if (returned > 0 && fetched > SHARE_SEEN * returned)
		return fmax(0, 1 - fetched / returned);
	/* nothing fetched: from the cache where it held the files; else the file system does not
	 * say what it fetches */
	return looked > 0 && cached >= looked / 2 ? cached / looked : NAN;
}

/* "/mnt/nfs"; NULL: not known, or no file system is read. */
static char *mount_of(const struct run_record *r)
{
	const char *text = json_string_value(json_object_get(
		figure_json(part_whole(r->result), F_RUN_SYSTEM), "data file system"));
	const char *on = text ? strstr(text, " on /") : NULL;

	if (!on || !r->has_workload ||
	    !(workload_base_store(&r->workload)->flags & STORE_HAS_FILES))
		return NULL;
	return xstrdup(on + 4);
}

/* ---- what the run says of itself ---- */

static void find_claim(struct record_facts *f, const struct run_record *r)
{
	const struct part *measured = record_part(r, F_RUN_MEASURED);
	const json_t *taken = figure_json(measured, F_MEASURED_TAKEN);

	f->claim_storage = text_copy(measured, F_MEASURED_STORAGE);
	f->claim_instead = text_copy(measured, F_MEASURED_INSTEAD);
	f->claim_text = text_copy(measured, F_MEASURED_SAID);
	for (size_t i = 0; i < json_array_size(taken); i++) {
		const char *one = json_string_value(json_array_get(taken, i));

		str_list_add(&f->taken, xstrdup(one ? one : ""));
	}
}

#define SERVERS_TOLD 8

static void find_servers(struct record_facts *f, const struct run_record *r)
{
	const struct part *list = part(record_part(r, F_RUN_OBJECT_STORE), F_OBJECT_STORE_SERVERS);

	for (size_t i = 0; i < part_count(list) && i < SERVERS_TOLD; i++) {
		const struct part *s = part_at(list, i), *n = part(s, F_SERVER_TIMED);
		const char *address = figure_text(s, F_SERVER_ADDRESS);
		double all = figure(n, F_SERVER_COUNTS_ALL);
		double again = figure(n, F_SERVER_COUNTS_AGAIN_ALL);
		double first = figure(n, F_SERVER_COUNTS_FIRST);
		double last = figure(n, F_SERVER_COUNTS_LAST);
		struct buf b = {0};

		if (!address || !(all >= 0))
			continue;
		buf_printf(&b, "%.300s: %.0f requests", address, all);
		if (again > 0)
			buf_printf(&b, ", %.0f retries", again);
		if (isfinite(first) && isfinite(last))
			buf_printf(&b, "; first byte after %.3g ms, last after %.3g ms",
				   1e3 * first, 1e3 * last);
		str_list_add(&f->servers, buf_take(&b));
	}
}

/* Its text where its level is bad; NULL. */
static char *bad_verdict(const struct run_record *r, const char *check)
{
	const struct part *list = record_part(r, F_RUN_VERDICTS);

	for (size_t i = 0; i < part_count(list); i++) {
		const struct part *v = part_at(list, i);
		const char *name = figure_text(v, F_VERDICT_CHECK);
		const char *level = figure_text(v, F_VERDICT_LEVEL);
		const char *text = figure_text(v, F_VERDICT_SAID);

		if (name && level && strcmp(name, check) == 0 &&
		    (strcmp(level, "fail") == 0 || strcmp(level, "warn") == 0))
			return xstrdup(text ? text : "");
	}
	return NULL;
}

static char *build_of(const struct run_record *r)
{
	const struct part *versions =
		part(record_part(r, F_RUN_ENVIRONMENT), F_ENVIRONMENT_VERSIONS);
	char *build = text_copy(versions, F_VERSIONS_BUILD);

	return build ? build : text_copy(versions, F_VERSIONS_STOKER);
}

static char *seal_copy(const struct run_record *r)
{
	const char *seal = json_string_value(
		json_object_get(json_object_get(r->result, field_key(F_RUN_INTEGRITY)), SEAL_SELF));

	return seal ? xstrdup(seal) : NULL;
}

/* ---- one run, or a copy of it ---- */

/* Of the waits of all steps of all ranks, and of how they are divided. */
static void digest_waits(const struct run_record *r, char hex[SHA256_HEX])
{
	size_t telling = 0;
	struct sha256 h;

	hex[0] = '\0';
	sha256_begin(&h);
	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct record_rank *rank = &r->rank[k];

		sha256_add(&h, &rank->epochs, sizeof(rank->epochs));
		for (size_t e = 0; e < rank->epochs; e++) {
			const struct record_epoch *ep = &rank->epoch[e];

			sha256_add(&h, &ep->blocks, sizeof(ep->blocks));
			for (size_t b = 0; b < ep->blocks; b++) {
				const struct record_phase *p = &ep->block[b];

				sha256_add(&h, &p->loads, sizeof(p->loads));
				if (p->loads)
					sha256_add(&h, p->load, p->loads * sizeof(*p->load));
				for (size_t i = 0; i < p->loads; i++)
					telling += p->load[i] != 0 &&
						   (i == 0 || p->load[i] != p->load[i - 1]);
			}
		}
	}
	if (telling >= WAITS_ENOUGH)
		sha256_end(&h, hex);
}

struct run_parts {
	uint64_t *v;
	size_t n, room;
};

static void add_part(struct run_parts *p, enum run_part_kind kind, const double *v, size_t n)
{
	uint64_t h = rng_mix64(fnv1a(FNV_START, v, n * sizeof(*v)));

	VECTOR_PUSH(p->v, p->n, p->room, (h & ~(uint64_t)3) | kind);
}

/* Waits of a phase: with fewer, chance could repeat them in one of many results. Those of DLIO,
 * which are of Python, vary more. */
#define PART_WAITS 12u
#define PART_WAITS_DLIO 6u

static void add_steps(struct run_parts *p, const struct record_phase *x, size_t least)
{
	size_t telling = 0;

	for (size_t i = 0; i < x->loads; i++)
		telling += x->load[i] != 0 && (i == 0 || x->load[i] != x->load[i - 1]);
	if (telling >= least)
		add_part(p, PART_STEPS, x->load, x->loads);
}

static double whole_microseconds(double s)
{
	return round(s * 1e6);
}

/* The stamps of rank 0 are in microseconds: where an epoch or a checkpoint begins and ends, and how
 * long two epochs in a row are, which other dates leave as it is. */
static void add_stamps(struct run_parts *p, const struct run_record *r, size_t e)
{
	const struct record_epoch *ep = &r->rank[0].epoch[e];
	double begin = r->begin_s + ep->begin_s;
	double at[] = {begin, r->begin_s + ep->end_s};

	if (isfinite(at[1]) && begin != floor(begin) && ep->end_s - ep->begin_s >= 1e-3)
		add_part(p, PART_STAMPS, at, 2);
	for (size_t c = 0; c < ep->checkpoints; c++) {
		double one[] = {r->begin_s + ep->checkpoint[c].begin_s, ep->checkpoint[c].seconds};

		if (isfinite(one[0]) && one[0] != floor(one[0]) && one[1] > 0)
			add_part(p, PART_STAMPS, one, 2);
	}
	if (!r->ours && e > 0 && ep->blocks && ep[-1].blocks) {
		double lasts[] = {
			whole_microseconds(ep->end_s - ep->begin_s),
			whole_microseconds(ep->block[0].wall_s),
			whole_microseconds(ep[-1].end_s - ep[-1].begin_s),
			whole_microseconds(ep[-1].block[0].wall_s),
		};

		if (lasts[1] >= 1e6 && lasts[3] >= 1e6)
			add_part(p, PART_STAMPS, lasts, 4);
	}
}

/* DLIO writes figures with all their digits. */
static void add_figures(struct run_parts *p, const struct run_record *r)
{
	double checkpoints[] = {r->save_gib_per_s, r->load_gib_per_s, r->checkpoint_gib};

	for (size_t i = 0; i + 1 < r->au.n && i + 1 < r->throughput.n; i++) {
		const double *rate = &r->throughput.v[i];
		double two[] = {r->au.v[i], r->au.v[i + 1], rate[0], rate[1]};

		/* not those of a test, which have few digits */
		if (rate[0] != rate[1] && rate[0] * 1e6 != round(rate[0] * 1e6) &&
		    rate[1] * 1e6 != round(rate[1] * 1e6))
			add_part(p, PART_FIGURES, two, 4);
	}
	for (size_t i = 0; i < 2; i++) {
		bool has = isfinite(checkpoints[i]) &&
			   checkpoints[i] * 1e6 != round(checkpoints[i] * 1e6);

		checkpoints[i] = has ? checkpoints[i] : 0;
	}
	if ((checkpoints[0] > 0 || checkpoints[1] > 0) && checkpoints[2] > 0)
		add_part(p, PART_FIGURES, checkpoints, 3);
}

static int by_hash(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* The least hashes of two runs that share a part of their epochs have the same part in common. */
static void find_parts(struct record_facts *f, const struct run_record *r)
{
	size_t least = r->ours ? PART_WAITS : PART_WAITS_DLIO;
	struct run_parts p = {0};

	for (uint32_t k = 0; r->rank && k < r->ranks; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++) {
			for (size_t b = 0; b < r->rank[k].epoch[e].blocks; b++)
				add_steps(&p, &r->rank[k].epoch[e].block[b], least);
			if (k == 0)
				add_stamps(&p, r, e);
		}
	if (!r->ours)
		add_figures(&p, r);
	if (p.n)
		qsort(p.v, p.n, sizeof(*p.v), by_hash);
	f->parts = p.n < RUN_PARTS ? p.n : RUN_PARTS;
	f->part = p.n ? xrealloc(p.v, f->parts * sizeof(*p.v)) : NULL;
}

void facts_find(struct record_facts *f, const struct run_record *r)
{
	const struct workload *w = &r->workload;
	const struct part *whole = part_whole(r->result);
	const struct part *epochs = part(part(whole, F_RUN_TRAINING), F_TRAINING_EPOCHS);
	const char *folder = r->has_workload ? w->dataset.data_folder : NULL;

	*f = (struct record_facts){0};
	measures_find(f, r);
	steady_au_find(r, &f->steady);
	for (size_t i = 0; i < shown_count(); i++)
		f->shown[i] = shown_figure(whole, i);
	f->run_id = text_copy(whole, F_RUN_ID);
	f->seal = seal_copy(r);
	f->workload = text_copy(whole, F_RUN_WORKLOAD);
	f->status = text_copy(whole, F_RUN_STATUS);
	f->build = build_of(r);
	find_claim(f, r);
	find_servers(f, r);
	f->unsteady = bad_verdict(r, "steady");
	f->in_memory = in_memory(r);
	f->mount = mount_of(r);
	f->cached_share = cached_share(r);
	f->samples = number_at(part_at(epochs, 0), F_EPOCH_SAMPLES);
	f->data_bytes = number_at(part(whole, F_RUN_DATASET), F_DATASET_TOTAL);
	digest_waits(r, f->waits);
	f->marks = step_marks_find(r);
	find_parts(f, r);
	f->data_folder = xstrdup(folder ? folder : "");
	if (!r->has_workload)
		return;
	f->generates = w->workflow.generate_data;
	f->train_files = w->dataset.num_files_train;
	f->batch = w->reader.batch_size;
}

void facts_release(struct record_facts *f)
{
	free(f->epoch);
	free(f->supply);
	free(f->costs_text);
	free(f->run_id);
	free(f->seal);
	free(f->marks);
	free(f->part);
	free(f->workload);
	free(f->status);
	free(f->claim_storage);
	free(f->claim_instead);
	free(f->claim_text);
	free(f->build);
	free(f->unsteady);
	free(f->mount);
	free(f->data_folder);
	str_list_release(&f->taken);
	str_list_release(&f->servers);
	*f = (struct record_facts){0};
}
