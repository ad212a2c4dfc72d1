/* Whether the files are those of the workload, and hold what they should. */
#include <ctype.h>

#include "judge/verdict.h"

/* More than this of what was looked at, and a run reads something else than its dataset. */
static const double WRONG_SHARE = 0.10;

static const char *plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

static void worsen_by_share(struct verdict *v, uint64_t n, uint64_t of)
{
	verdict_worsen(v, (double)n > WRONG_SHARE * (double)of ? VERDICT_FAIL : VERDICT_WARN);
}

/* ---- names and extents ---- */

static void judge_links(struct verdict *v, const struct survey *s)
{
	if (s->distinct == s->named)
		return;
	worsen_by_share(v, s->named - s->distinct, s->named);
	verdict_takes(v, TAKES_PART, "the page cache");
	verdict_say(v,
		    " The %llu names checked are links to %llu %s: what is read of one is in the "
		    "page cache for the others.",
		    (unsigned long long)s->named, (unsigned long long)s->distinct,
		    plural(s->distinct, "file", "files"));
}

static void judge_extents(struct verdict *v, const struct survey *s)
{
	unsigned long long mapped = s->mapped;

	if (s->hole_files) {
		worsen_by_share(v, s->hole_bytes, s->mapped_bytes);
		verdict_takes(v, s->hole_bytes > s->mapped_bytes / 2 ? TAKES_STORAGE : TAKES_PART,
			      "holes in files");
		verdict_say(
			v,
			" %llu of %llu files checked have holes, %.3g %% of all bytes: reads of "
			"them do not reach the device.",
			(unsigned long long)s->hole_files, mapped,
			100 * (double)s->hole_bytes / (double)s->mapped_bytes);
	}
	if (s->twin_files && s->distinct == s->named) {
		worsen_by_share(v, s->twin_files, s->mapped);
		verdict_takes(v, TAKES_PART, "the same blocks again");
		verdict_say(v,
			    " %llu of %llu files checked have the same blocks as others of them "
			    "(reflinks): the device holds them once.",
			    (unsigned long long)s->twin_files, mapped);
	} else if (s->shared_files && s->distinct == s->named) {
		verdict_say(v,
			    " %llu of %llu files checked share blocks with a snapshot or with "
			    "files that were not checked.",
			    (unsigned long long)s->shared_files, mapped);
	}
	if (s->sparse_files) {
		worsen_by_share(v, s->sparse_files, s->counted);
		verdict_takes(v, TAKES_PART, "holes in files");
		verdict_say(v,
			    " %llu of %llu files checked have fewer blocks than bytes: holes, or "
			    "compression.",
			    (unsigned long long)s->sparse_files, (unsigned long long)s->counted);
	}
	if (s->compressed_files)
		verdict_say(v,
			    " The file system compresses %llu of %llu files checked: the device "
			    "delivers less than they hold.",
			    (unsigned long long)s->compressed_files, mapped);
	if (s->inline_files)
		verdict_say(v,
			    " %llu of %llu files checked are so small that they are kept in the "
			    "metadata of the file system.",
			    (unsigned long long)s->inline_files, mapped);
}

/* ---- content ---- */

static void say_kind(struct verdict *v, uint64_t n, bool *any, const char *one, const char *many)
{
	if (n == 0)
		return;
	verdict_say(v, "%s%llu %s", *any ? ", " : "", (unsigned long long)n, plural(n, one, many));
	*any = true;
}

static void say_kinds(struct verdict *v, const struct survey *s)
{
	bool any = false;

	say_kind(v, s->zero_files, &any, "contains only zeros", "contain only zeros");
	say_kind(v, s->constant_files, &any, "repeats one byte", "repeat one byte");
	say_kind(v, s->copied_files, &any, "has the content of another",
		 "have the content of others");
	if (s->derivable)
		say_kind(v, s->other_files, &any, "has other content", "have other content");
}

static void judge_content(struct verdict *v, const struct survey *s)
{
	uint64_t hollow = s->zero_files + s->constant_files + s->copied_files;
	uint64_t wrong = hollow + (s->derivable ? s->other_files : 0);

	if (s->failed_files)
		verdict_say(v, " %llu %s could not be compared.",
			    (unsigned long long)s->failed_files,
			    plural(s->failed_files, "file", "files"));
	if (s->samples == 0)
		return;
	verdict_say(v, " Content of %llu %s in %llu %s compared%s", (unsigned long long)s->samples,
		    plural(s->samples, "sample", "samples"), (unsigned long long)s->files,
		    plural(s->files, "file", "files"),
		    s->out_of_time ? " (reading more took too long)" : "");
	if (wrong) {
		worsen_by_share(v, wrong, s->files);
		verdict_takes(v, TAKES_CONTENT, NULL);
		verdict_say(v, ": ");
		say_kinds(v, s);
		/* where nothing is known of the content, no byte is the first that differs */
		if (s->derivable && s->first[0])
			verdict_say(v, " (%.200s)", s->first);
		verdict_say(v, ".");
	} else if (s->derivable) {
		verdict_say(v, ": as generated.");
	} else {
		verdict_say(v, ": it is not Stoker's; no two files are the same, and none repeats "
			       "one byte.");
	}
}

static void judge_dataset(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct survey *s = &r->presence.survey;

	(void)m;
	if (!r->presence.note[0]) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "The dataset was not checked against the workload.");
		return;
	}
	verdict_say(v, "%c%s", toupper((unsigned char)r->presence.note[0]), r->presence.note + 1);
	verdict_close(v);
	if (r->presence.how == PRESENCE_SIZES && r->presence.sizes_checked == 0)
		v->level = VERDICT_WARN;
	judge_content(v, s);
	judge_links(v, s);
	judge_extents(v, s);
}

extern const struct verdict_ops verdict_dataset;
const struct verdict_ops verdict_dataset = {
	.name = "dataset",
	.help = "Are the files on the store those of the workload, and real?",
	.needs = VERDICT_OF_READING,
	.judge = judge_dataset,
};
