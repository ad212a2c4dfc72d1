/* The least level of `dataset`, by what result.json counted of its files. */
#include "judge/recorded.h"
#include "judge/recorded_json.h"

static const double WRONG_SHARE = 0.10;

/* `n` of `of` are wrong: as the row judges it. */
static void count(struct verdict *v, double n, double of, unsigned takes, const char *what)
{
	enum verdict_level level = n > WRONG_SHARE * of ? VERDICT_FAIL : VERDICT_WARN;

	if (!(n > 0))
		return;
	verdict_worsen(v, level);
	v->takes |= takes;
	verdict_say(v, "%s%.10g of %.10g %s", v->text[0] ? "; " : "", n, of, what);
}

void recorded_dataset(const json_t *result, const struct workload *w, struct verdict *v)
{
	const json_t *d = part(result, "dataset"), *x = part(d, "extents"), *c = part(d, "content");
	double named = figure(d, "names_checked"), links = named - figure(d, "different_files");
	double holes = figure(x, "files_with_holes"), wrong;

	(void)w;
	count(v, links, named, TAKES_PART, "names are links to files of others");
	if (holes > 0)
		count(v, fmax(1, figure(x, "hole_bytes")), figure(x, "bytes"), 0,
		      "bytes are in holes");
	if (!(links > 0))
		count(v, figure(x, "files_with_blocks_of_others_checked"), figure(x, "files"),
		      TAKES_PART, "files have the blocks of others");
	if (figure(d, "files_with_fewer_blocks_than_bytes") > 0)
		count(v, figure(d, "files_with_fewer_blocks_than_bytes"), INFINITY, TAKES_PART,
		      "files have fewer blocks than bytes");
	wrong = figure(c, "files_of_zeros") + figure(c, "files_of_one_byte") +
		figure(c, "files_with_the_content_of_others");
	/* where none is as generated, nobody may know what they should hold */
	if (figure(c, "files_as_generated") > 0)
		wrong += figure(c, "files_with_other_content");
	count(v, wrong, figure(c, "files"), TAKES_CONTENT, "files have other content");
}
