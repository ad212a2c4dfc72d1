/* Whether the files are those of the workload, and hold what they should. */
#include <ctype.h>
#include <stdio.h>

#include "judge/verdict.h"

/* More than this of what was looked at, and a run reads something else than its dataset. */
static const double WRONG_SHARE = 0.10;

static enum verdict_level level_of(uint64_t n, uint64_t of)
{
	return (double)n > WRONG_SHARE * (double)of ? VERDICT_FAIL : VERDICT_WARN;
}

/* ---- names and extents ---- */

static void judge_links(struct verdict *v, const struct survey *s)
{
	if (s->distinct == s->named)
		return;
	verdict_found(v, level_of(s->named - s->distinct, s->named),
		      FACT(DATASET_LINKS, (double)s->named, (double)s->distinct));
	verdict_takes(v, TAKES_PART, REASON_INSTEAD_PAGE_CACHE);
}

static void judge_extents(struct verdict *v, const struct survey *s)
{
	double mapped = (double)s->mapped;

	if (s->hole_files) {
		verdict_found(v, level_of(s->hole_bytes, s->mapped_bytes),
			      FACT(DATASET_HOLES, (double)s->hole_files, mapped,
				   100 * (double)s->hole_bytes / (double)s->mapped_bytes));
		verdict_takes(v, s->hole_bytes > s->mapped_bytes / 2 ? TAKES_STORAGE : TAKES_PART,
			      REASON_INSTEAD_HOLES);
	}
	if (s->twin_files && s->distinct == s->named) {
		verdict_found(v, level_of(s->twin_files, s->mapped),
			      FACT(DATASET_TWINS, (double)s->twin_files, mapped));
		verdict_takes(v, TAKES_PART, REASON_INSTEAD_SAME_BLOCKS);
	} else if (s->shared_files && s->distinct == s->named) {
		verdict_found(v, VERDICT_PASS,
			      FACT(DATASET_SHARED, (double)s->shared_files, mapped));
	}
	if (s->sparse_files) {
		verdict_found(v, level_of(s->sparse_files, s->counted),
			      FACT(DATASET_SPARSE, (double)s->sparse_files, (double)s->counted));
		verdict_takes(v, TAKES_PART, REASON_INSTEAD_HOLES);
	}
	if (s->compressed_files)
		verdict_found(v, VERDICT_PASS,
			      FACT(DATASET_COMPRESSED, (double)s->compressed_files, mapped));
	if (s->inline_files)
		verdict_found(v, VERDICT_PASS,
			      FACT(DATASET_INLINE, (double)s->inline_files, mapped));
}

/* ---- content ---- */

static void judge_wrong(struct verdict *v, const struct survey *s, uint64_t wrong)
{
	enum verdict_level level = level_of(wrong, s->files);

	verdict_found(v, level,
		      fact_with(FACT(DATASET_DIFFERS, (double)s->samples, (double)s->files,
				     s->out_of_time),
				0,
				/* where nothing is known of the content, no byte is the first
				 * that differs */
				s->derivable ? s->first : ""));
	verdict_takes(v, TAKES_CONTENT, REASON_NONE);
	if (s->zero_files)
		verdict_found(v, level, FACT(DATASET_ZEROS, (double)s->zero_files));
	if (s->constant_files)
		verdict_found(v, level, FACT(DATASET_CONSTANT, (double)s->constant_files));
	if (s->copied_files)
		verdict_found(v, level, FACT(DATASET_COPIED, (double)s->copied_files));
	if (s->derivable && s->other_files)
		verdict_found(v, level, FACT(DATASET_OTHER, (double)s->other_files));
}

static void judge_content(struct verdict *v, const struct survey *s)
{
	uint64_t wrong = s->zero_files + s->constant_files + s->copied_files +
			 (s->derivable ? s->other_files : 0);

	if (s->failed_files)
		verdict_found(v, VERDICT_PASS, FACT(DATASET_NOT_COMPARED, (double)s->failed_files));
	if (s->files == 0)
		return;
	if (s->places)
		verdict_found(v, VERDICT_PASS,
			      FACT(DATASET_COMPARED, (double)s->bytes, (double)s->places,
				   (double)s->file_bytes));
	if (s->unknown_files)
		verdict_found(v, VERDICT_PASS,
			      FACT(DATASET_IN_FRONT, (double)s->unknown_files, SURVEY_MADE_BYTES));
	if (wrong)
		judge_wrong(v, s, wrong);
	else
		verdict_found(v, VERDICT_PASS,
			      s->derivable ? FACT(DATASET_AS_GENERATED, (double)s->samples,
						  (double)s->files, s->out_of_time)
					   : FACT(DATASET_FOREIGN, (double)s->samples,
						  (double)s->files, s->out_of_time));
}

static void judge_dataset(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct survey *s = &r->presence.survey;
	char note[sizeof(r->presence.note)];

	(void)m;
	if (!r->presence.note[0]) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(DATASET_UNCHECKED));
		return;
	}
	snprintf(note, sizeof(note), "%s", r->presence.note);
	note[0] = (char)toupper((unsigned char)note[0]);
	verdict_found(v,
		      r->presence.how == PRESENCE_SIZES && r->presence.sizes_checked == 0
			      ? VERDICT_WARN
			      : VERDICT_PASS,
		      fact_with_clause(FACT(DATASET_FOUND), 0, note));
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
