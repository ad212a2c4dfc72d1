/* The facts of a result, taken while it is whole. */
#include "readback/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "readback/record.h"
#include "readback/record_measures.h"

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
	f->claim_text = text_copy(measured, F_MEASURED_SAID);
	for (size_t i = 0; i < json_array_size(taken); i++) {
		const char *one = json_string_value(json_array_get(taken, i));

		str_list_add(&f->taken, xstrdup(one ? one : ""));
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
	f->status = text_copy(whole, F_RUN_STATUS);
	f->build = build_of(r);
	find_claim(f, r);
	f->unsteady = bad_verdict(r, "steady");
	f->in_memory = in_memory(r);
	f->mount = mount_of(r);
	f->cached_share = cached_share(r);
	f->samples = number_at(part_at(epochs, 0), F_EPOCH_SAMPLES);
	f->data_bytes = number_at(part(whole, F_RUN_DATASET), F_DATASET_TOTAL);
	digest_waits(r, f->waits);
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
	free(f->status);
	free(f->claim_storage);
	free(f->claim_text);
	free(f->build);
	free(f->unsteady);
	free(f->mount);
	free(f->data_folder);
	str_list_release(&f->taken);
	*f = (struct record_facts){0};
}
