#include "judge/uncounted.h"

#include "base/str.h"
#include "judge/origin.h"

const double uncounted_left_share = 0.01;

static const double CACHE_SHARE = 0.10; /* of the files: less matters little */
static const double LINK_SHARE = 0.10;  /* of the names, as for the verdict `dataset` */
static const double MEMORY_RATE = 5e9;  /* bytes/s of one request: no device or network has it */

/* What may have been measured is unknown: no number of the storage. */
static void judge_unknown(struct verdict *v, const struct uncounted *u)
{
	char a[32];

	if (u->request_rate > MEMORY_RATE) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_takes(v, TAKES_STORAGE, "the page cache");
		verdict_say(
			v,
			"what the page cache held is unknown, but requests delivered %s/s each, "
			"which is the rate of memory.",
			str_bytes(u->request_rate, a, sizeof(a)));
		return;
	}
	verdict_worsen(v, VERDICT_UNKNOWN);
	verdict_say(v, "whether the data came from it or from the page cache is not known.");
}

void uncounted_judge(struct verdict *v, const struct result *r, const struct uncounted *u)
{
	const char *type = r->host_source ? r->host_source->client.type : "";

	verdict_say(v, " %s does not report its reads to the kernel: ",
		    type[0] ? type : "The file system");
	if (u->direct) {
		verdict_say(v, "O_DIRECT bypassed the page cache of this machine; whether a server "
			       "had the data in memory is unknown.");
	} else if (u->cached_share < 0) {
		judge_unknown(v, u);
	} else if (u->cached_share > CACHE_SHARE) {
		bool all = u->cached_share > 1 - CACHE_SHARE;

		verdict_worsen(v, VERDICT_WARN);
		verdict_takes(v, all ? TAKES_STORAGE : TAKES_PART, "the page cache");
		verdict_say(v, "%s%.0f %% of %s was in the page cache before %s, which %s.",
			    all ? "but " : "", 100 * u->cached_share, u->files, u->before,
			    all ? "was measured instead of the storage" : "served that part");
	} else {
		verdict_say(v,
			    "the page cache held %.2g %% of %s before %s, so that the data came "
			    "from the file system%s.",
			    100 * u->cached_share, u->files, u->before,
			    origin_is_served(r)
				    ? ""
				    : "; whether its server had it in memory is unknown");
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

void uncounted_say_links(struct verdict *v, const struct result *r)
{
	const struct survey *s = &r->presence.survey;

	verdict_say(v,
		    "%llu names checked are links to %llu file%s (see dataset), and what had been "
		    "read of a file came from the page cache for its other names.",
		    (unsigned long long)s->named, (unsigned long long)s->distinct,
		    s->distinct == 1 ? "" : "s");
}
