#include "judge/uncounted.h"

#include "judge/origin.h"

const double uncounted_left_share = 0.01;

static const double CACHE_SHARE = 0.10; /* of the files: less matters little */
static const double LINK_SHARE = 0.10;  /* of the names, as for the verdict `dataset` */
static const double MEMORY_RATE = 5e9;  /* bytes/s of one request: no device or network has it */

/* What may have been measured is unknown: no number of the storage. */
static void judge_unknown(struct verdict *v, const struct uncounted *u, const char *type)
{
	if (u->request_rate <= MEMORY_RATE) {
		verdict_found(v, VERDICT_UNKNOWN, fact_with(FACT(UNCOUNTED_UNKNOWN), 0, type));
		return;
	}
	verdict_takes(v, TAKES_STORAGE, REASON_INSTEAD_PAGE_CACHE);
	verdict_found(v, VERDICT_WARN, fact_with(FACT(UNCOUNTED_RATE, u->request_rate), 0, type));
}

void uncounted_judge(struct verdict *v, const struct result *r, const struct uncounted *u)
{
	const char *type = r->host_source ? r->host_source->client.type : "";
	double share = u->cached_share;

	if (!type[0])
		type = "The file system";
	if (u->direct) {
		verdict_found(v, VERDICT_PASS, fact_with(FACT(UNCOUNTED_DIRECT), 0, type));
	} else if (share < 0) {
		judge_unknown(v, u, type);
	} else if (share > CACHE_SHARE) {
		bool all = share > 1 - CACHE_SHARE;

		verdict_takes(v, all ? TAKES_STORAGE : TAKES_PART, REASON_INSTEAD_PAGE_CACHE);
		verdict_found(v, VERDICT_WARN,
			      fact_with(all ? FACT(UNCOUNTED_CACHE, share, u->eval)
					    : FACT(UNCOUNTED_CACHE_PART, share, u->eval),
					0, type));
	} else {
		verdict_found(
			v, VERDICT_PASS,
			fact_with(FACT(UNCOUNTED_COLD, 100 * share, u->eval, origin_is_served(r)),
				  0, type));
	}
}

bool uncounted_are_links(const struct result *r, enum dataset_kind kind)
{
	const struct survey *s = &r->presence.survey;
	uint64_t files = r->dataset ? r->dataset->files[kind] : 0;

	/* which kind they are of is not recorded */
	files = files < s->named ? files : s->named;
	return files > 0 && (double)(s->named - s->distinct) > LINK_SHARE * (double)files;
}

struct fact uncounted_links(const struct result *r)
{
	const struct survey *s = &r->presence.survey;

	return FACT(BYTES_LINKS, (double)s->named, (double)s->distinct);
}
