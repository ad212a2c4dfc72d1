/* stoker plan: what so many accelerators need, and whether what was measured is enough; and a plan
 * made again, for audits, from what its file names. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/program.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "cli/plan_known.h"
#include "cli/result_args.h"
#include "conf/quantity.h"
#include "page/page.h"
#include "plan/sizing.h"
#include "readback/audit.h"
#include "readback/figures.h"
#include "readback/sums.h"
#include "result/json_out.h"
#include "result/seal.h"
#include "screen/terminal.h"
#include "workload/need.h"

#define ACCELERATORS_MAX 10000000
#define HOSTS_MAX 1000000

#define ASKED "asked"
#define RUNS "runs"
/* Keys of what sizing_find says. */
static const char *const late[] = {"plans", "most_that_pass", "notes", NULL};

/* Each option that was given, but for results, which a plan names, and its own files. */
static void asked_words(const struct plan_args *a, struct str_list *out);

/* ---- numbers of accelerators ---- */

static int parse_accelerators(const char *text, double *n, size_t *count, struct err *e)
{
	AUTO_FREE char *copy = xstrdup(text);
	char *at = copy;

	for (*count = 0; at;) {
		char *next = strchr(at, ',');
		int64_t v;

		if (next)
			*next++ = '\0';
		if (!str_to_i64(at, &v) || v < 1 || v > ACCELERATORS_MAX)
			return err_set(e, ERR_USAGE,
				       "--accelerators: '%.40s' is not a whole number from 1 to %d",
				       at, ACCELERATORS_MAX);
		if (*count == SIZING_ROWS_MAX)
			return err_set(e, ERR_USAGE, "--accelerators: more than %d numbers",
				       SIZING_ROWS_MAX);
		for (size_t i = 0; i < *count; i++)
			if (n[i] == (double)v)
				return err_set(e, ERR_USAGE, "--accelerators: %lld is given twice",
					       (long long)v);
		n[(*count)++] = (double)v;
		at = next;
	}
	return 0;
}

static int check_sources(const struct plan_args *a, size_t results, struct err *e)
{
	if (!a->accelerators)
		return err_set(e, ERR_USAGE,
			       "'plan' needs to know for how many accelerators: --accelerators N");
	if (results == 0 && a->point.n == 0 && !plan_wants_checkpoint(a))
		return err_set(e, ERR_USAGE,
			       "there is nothing to plan from: name results (--from RESULT), or "
			       "points (--point hosts=1,accelerators=8,samples_per_s=160,au=93.1)");
	return 0;
}

/* ---- checkpoints ---- */

struct typed {
	const char *option, *text, *unit; /* text NULL: not given */
	double *value;
	const char *each[2]; /* units that it has */
};

static int read_typed(const struct typed *t, struct err *e)
{
	if (!t->text)
		return 0;
	/* so many bytes/s are no storage: "383" is MB/s or GB/s, as the reader of it knows */
	if (t->each[0] && str_to_f64(t->text, t->value) && *t->value > 0)
		return err_set(e, ERR_USAGE, "%s: '%.40s' has no unit: write %.40s%s, %.40s%s, ...",
			       t->option, t->text, t->text, t->each[0], t->text, t->each[1]);
	if (quantity_number(t->text, t->unit, t->value) && isfinite(*t->value) &&
	    *t->value >= 1e-9 && *t->value <= 1e18)
		return 0;
	return err_set(e, ERR_USAGE, "%s: '%.40s' is not a number of %s above 0 (1e-9 to 1e18)%s%s",
		       t->option, t->text, strcmp(t->unit, "s") == 0 ? "seconds" : t->unit,
		       t->each[0] ? ", such as 100" : quantity_example(t->unit),
		       t->each[0] ? t->each[0] : "");
}

/* "405e9", "405B". */
static int read_parameters(const char *text, double *out, struct err *e)
{
	static const char letters[] = "KMBT";
	size_t n = strlen(text);
	const char *letter = n ? strchr(letters, toupper((unsigned char)text[n - 1])) : NULL;
	AUTO_FREE char *bare = xstrndup(text, letter ? n - 1 : n);

	if (str_to_f64(bare, out)) {
		*out *= letter ? pow(1000, (double)(letter - letters + 1)) : 1;
		if (*out >= 1 && *out <= 1e15)
			return 0;
	}
	return err_set(e, ERR_USAGE,
		       "--parameters: '%.40s' is not a number from 1 to 1e15, such as 8e9, or with "
		       "K, M, B (1e9) or T: 8B",
		       text);
}

static int read_checkpoint(const struct plan_args *a, struct goodput_input *in, struct err *e)
{
	const struct typed typed[] = {
		{"--checkpoint", a->checkpoint, "bytes", &in->bytes, {"GB", "GiB"}},
		{"--write-rate", a->write_rate, "bytes/s", &in->write_rate, {"MB/s", "GB/s"}},
		{"--read-rate", a->read_rate, "bytes/s", &in->read_rate, {"MB/s", "GB/s"}},
		{"--interval", a->interval, "s", &in->interval_s, {NULL}},
		{"--pause", a->pause, "s", &in->pause_s, {NULL}},
		{"--restart", a->restart, "s", &in->restart_s, {NULL}},
		{"--local-rate", a->local_rate, "bytes/s", &in->local_rate, {"MB/s", "GB/s"}},
	};
	double parameters = NAN;
	int rc = a->parameters ? read_parameters(a->parameters, &parameters, e) : 0;

	*in = (struct goodput_input){.bytes = parameters * GOODPUT_PARAMETER_BYTES,
				     .write_rate = NAN,
				     .read_rate = NAN,
				     .pause_s = NAN,
				     .interval_s = NAN,
				     .loss = a->loss / 100,
				     .restart_s = GOODPUT_RESTART_S,
				     .mtbf_one_s =
					     (isnan(a->mtbf) ? GOODPUT_MTBF_HOURS : a->mtbf) * 3600,
				     .local_rate = NAN,
				     .local_share = a->local_share / 100};
	for (size_t i = 0; rc == 0 && i < sizeof(typed) / sizeof(typed[0]); i++)
		rc = read_typed(&typed[i], e);
	return rc;
}

static int check_checkpoint(const struct plan_args *a, struct err *e)
{
	bool others = a->write_rate || a->read_rate || a->interval || a->pause || a->restart ||
		      a->local_rate || !isnan(a->loss) || !isnan(a->mtbf) || !isnan(a->local_share);

	if (a->checkpoint && a->parameters)
		return err_set(e, ERR_USAGE,
			       "--checkpoint and --parameters both give the size of a checkpoint: "
			       "name one");
	if (!a->checkpoint && !a->parameters && others)
		return err_set(e, ERR_USAGE,
			       "options of checkpoints need the size of one: --checkpoint SIZE, or "
			       "--parameters X");
	if (!isnan(a->loss) && (a->loss <= 0 || a->loss >= 100))
		return err_set(e, ERR_USAGE, "--loss: %.4g is not a percentage between 0 and 100",
			       a->loss);
	if ((a->local_rate == NULL) != (isnan(a->local_share) != 0))
		return err_set(e, ERR_USAGE,
			       "two levels need both --local-rate and --local-share, the failures "
			       "that leave the first level whole");
	if (!isnan(a->local_share) && (a->local_share <= 0 || a->local_share >= 100))
		return err_set(e, ERR_USAGE,
			       "--local-share: %.4g is not a percentage between 0 and 100",
			       a->local_share);
	if (!isnan(a->mtbf) && a->mtbf <= 0)
		return err_set(e, ERR_USAGE, "--mtbf-hours: give a number above 0");
	return 0;
}

/* Rates that were not given: the highest of the results. */
static void take_rates(const struct plan_args *a, struct known *k, struct goodput_input *in)
{
	const struct known_result *fastest = NULL;
	double read = NAN;
	bool cached = false;
	char rate[48];

	for (size_t i = 0; i < k->results; i++) {
		const struct known_result *x = &k->result[i];

		if (isfinite(x->write) && (!fastest || x->write > fastest->write))
			fastest = x;
		read = fmax(read, isfinite(x->read) ? x->read : NAN);
		cached = cached || x->cached;
	}
	if (!a->write_rate && fastest) {
		in->write_rate = fastest->write;
		str_list_add(&k->notes,
			     xasprintf("checkpoints are written at %s, the highest rate of the "
				       "results ('%.300s'); --write-rate sets another",
				       need_rate_text(in->write_rate, rate, sizeof(rate)),
				       fastest->point.from));
	}
	if (!a->read_rate && !a->write_rate && isfinite(read))
		in->read_rate = read;
	else if (!a->read_rate && cached)
		str_list_add(&k->notes,
			     xstrdup("the results read checkpoints from the page cache, which a "
				     "restart does not find: the rate of reading is taken to be "
				     "that of writing; --read-rate sets another"));
}

static int find_checkpoint(const struct plan_args *a, struct known *k, double accelerators,
			   struct sizing *s, struct err *e)
{
	int rc;

	if (!plan_wants_checkpoint(a))
		return 0;
	rc = read_checkpoint(a, &s->checkpoint, e);
	if (rc < 0)
		return rc;
	take_rates(a, k, &s->checkpoint);
	s->checkpoint.accelerators = accelerators;
	s->has_goodput = true;
	s->mtbf_given = !isnan(a->mtbf);
	s->restart_given = a->restart != NULL;
	goodput_find(&s->checkpoint, &s->goodput);
	return 0;
}

/* ---- all of it ---- */

struct making {
	const struct plan_args *a;
	char *model; /* where the workload that was named is found now; NULL: by its name */
	double accelerators[SIZING_ROWS_MAX];
	size_t count;
	struct duty duty;
	struct known known;
	struct sizing s;
};

/* What can be told before any result is read. */
static int begin_plan(struct making *m, const struct plan_args *a, struct err *e)
{
	int rc;

	m->a = a;
	m->known.point = xcalloc(PLAN_POINTS_MAX, sizeof(*m->known.point));
	rc = parse_accelerators(a->accelerators, m->accelerators, &m->count, e);
	if (rc == 0)
		rc = check_checkpoint(a, e);
	if (rc == 0 && a->model)
		rc = duty_load(&m->duty, m->model ? m->model : a->model, NULL, e);
	return rc;
}

static int find_answers(struct making *m, void (*tell)(const struct sizing_row *), struct err *e)
{
	struct sizing_runs runs = {.run = m->known.run,
				   .runs = m->known.results,
				   .plan = &m->duty,
				   .notes = &m->known.notes};
	struct sizing_question q = {.plan = &m->duty,
				    .accelerators = m->accelerators,
				    .count = m->count,
				    .hosts = (double)m->a->hosts,
				    .grows = m->a->grows,
				    .simulate = m->known.results ? sizing_by_run : NULL,
				    .arg = &runs,
				    .tell = m->known.results ? tell : NULL};

	return sizing_find(&m->s, &q, m->known.point, m->known.points, e);
}

/* The rest, once the results were looked at. Without `answers` only what takes no time. */
static int end_plan(struct making *m, bool answers, void (*tell)(const struct sizing_row *),
		    struct err *e)
{
	int rc = known_take(m->a, &m->known, &m->duty, e);

	bool asks = m->known.points || !plan_wants_checkpoint(m->a);

	if (rc == 0 && !asks && m->a->page)
		return err_set(e, ERR_USAGE,
			       "--output: a page draws what accelerators get, which needs results "
			       "of training (--from) or points (--point); --json has the "
			       "checkpoints");
	if (rc == 0 && answers && asks)
		rc = find_answers(m, tell, e);
	else if (rc == 0)
		m->s = (struct sizing){.plan = m->duty,
				       .point = m->known.point,
				       .points = m->known.points,
				       .grows = m->a->grows};
	if (rc == 0)
		rc = find_checkpoint(m->a, &m->known, m->accelerators[0], &m->s, e);
	m->s.notes = m->known.notes;
	m->known.notes = (struct str_list){0};
	return rc;
}

static void making_release(struct making *m)
{
	free(m->model);
	sizing_release(&m->s);
	known_release(&m->known);
}

/* ---- its files ---- */

static json_t *runs_json(const struct known *k)
{
	json_t *list = json_array();

	for (size_t i = 0; i < k->results; i++) {
		json_t *o = json_object();

		json_put_text(o, "folder", k->result[i].folder);
		run_name_put(o, &k->result[i].name);
		json_array_append_new(list, o);
	}
	return list;
}

/* The plan, and all that it is made of: what was asked, and which runs. */
static json_t *plan_json(const struct making *m)
{
	json_t *o = sizing_json(&m->s);
	struct str_list words = {0};

	asked_words(m->a, &words);
	json_put_text(o, "build", build_id);
	json_put(o, ASKED, json_texts(&words));
	json_put(o, RUNS, runs_json(&m->known));
	str_list_release(&words);
	return o;
}

/* "-": printed instead of words. */
static bool prints_json(const struct plan_args *a)
{
	return a->json && strcmp(a->json, "-") == 0;
}

static int write_json(const struct making *m, const char *path, struct err *e)
{
	json_t *plan = plan_json(m);
	struct buf text = {0};
	int rc;

	seal_put(plan);
	json_put_document(&text, plan);
	seal_text(&text.data, SEAL_FILE);
	rc = file_write(path, text.data, strlen(text.data), e);
	buf_release(&text);
	return rc;
}

static int write_page(const struct sizing *s, const char *path, struct err *e)
{
	struct buf page = {0};
	json_t *root = sizing_json(s);
	int rc;

	plan_page_render(root, &page);
	json_decref(root);
	rc = file_write(path, page.data, page.len, e);
	buf_release(&page);
	return rc;
}

static int write_plan(const struct making *m, struct err *e)
{
	const struct plan_args *a = m->a;
	bool mixed = (a->json && place_named_descriptor(a->json) == STDOUT_FILENO) ||
		     (a->page && place_named_descriptor(a->page) == STDOUT_FILENO);
	struct buf text = {0};
	int rc = 0;

	if (a->json)
		rc = write_json(m, prints_json(a) ? "/dev/stdout" : a->json, e);
	if (rc == 0 && a->page)
		rc = write_page(&m->s, a->page, e);
	if (rc == 0 && !prints_json(a)) {
		sizing_text(&m->s, (size_t)terminal_width(mixed ? STDERR_FILENO : STDOUT_FILENO),
			    &text);
		if (a->page)
			buf_say(&text, "\npage: %s\n", a->page);
		say_text(mixed ? stderr : stdout, &text);
		fflush(mixed ? stderr : stdout);
		buf_release(&text);
	}
	return rc;
}

/* A simulation of many may take half a minute. */
static void tell_row(const struct sizing_row *row)
{
	static unsigned n;

	say(stderr, "\r\033[K  simulation %u: %.0f accelerators on %.0f host%s", ++n,
	    row->accelerators, row->hosts, row->hosts == 1 ? "" : "s");
}

static int make_plan(const struct plan_args *a, struct err *e)
{
	struct making m = {0};
	bool tell = a->from.n && terminal_can_draw(STDERR_FILENO);
	int rc = begin_plan(&m, a, e);

	if (rc == 0 && a->from.n)
		rc = known_load(a, &m.known, e);
	if (rc == 0)
		rc = end_plan(&m, true, tell ? tell_row : NULL, e);
	if (tell)
		say(stderr, "\r\033[K");
	if (rc == 0)
		rc = write_plan(&m, e);
	making_release(&m);
	return rc;
}

static int plan(void *args, struct err *e)
{
	const struct plan_args *a = args;
	int rc = check_sources(a, a->from.n, e);

	if (rc == 0 && a->json && !prints_json(a))
		rc = named_output_add(a->json, e);
	if (rc == 0 && a->page)
		rc = named_output_add(a->page, e);
	return rc == 0 ? make_plan(a, e) : rc;
}

#define NOTHING_ASKED                                                                              \
	{                                                                                          \
		.loss = NAN, .mtbf = NAN, .local_share = NAN, .target = NAN                        \
	}

static int plan_main(const struct command *c, int argc, char **argv)
{
	struct plan_args a = NOTHING_ASKED;

	return flags_carry_out(c, &a, argc, argv, flags_list_operand, plan);
}

#define FLAG_ARGS struct plan_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "RESULT", "the folder of a run, or one that holds such folders, as with --from"),
	F(LIST, "--from", "RESULT", from,
	  "plan from what this run measured; further results may follow, all of one workload"),
	F(LIST, "--point", "KEY=VALUE,...", point,
	  "plan from a published result: hosts=, accelerators=, samples_per_s=, au= (percent), "
	  "and where they differ from --model: model=, accelerator=, sample_bytes=, "
	  "batch_size=, computation_time=; spread= (percent), target= (percent), largest=yes: "
	  "one more accelerator a host misses the target. May be repeated"),
	F(TEXT, "--accelerators", "N,...", accelerators,
	  "the numbers of accelerators to plan for, separated by commas", .letter = "-n"),
	F(COUNT, "--hosts", "N", hosts, 1, HOSTS_MAX,
	  "the number of hosts (default: each has as many accelerators as where it was measured)"),
	F(TEXT, "--model", "WORKLOAD", model,
	  "plan this workload: one that is built in, or a YAML file (default: the one that was "
	  "measured)"),
	F(SET, "--storage-grows", grows,
	  "the storage grows with the number of hosts (default: it is the one that was measured)"),
	F(REAL, "--target", "PERCENT", target, 1, 100,
	  "the AU to reach (default: metric.au of the workload)"),
	F(SET, "--despite-verdicts", despite, "plan from results whose checks failed, too"),
	F(TEXT, "--json", "FILE", json,
	  "also write the plan as JSON; without FILE, or with -, print JSON instead of words; "
	  "/dev/stdout: the words go to standard error",
	  .bare = "-"),
	F(TEXT, "--output", "FILE", page, "also write a page with the curve", .letter = "-o"),
	F(TEXT, "--checkpoint", "SIZE", checkpoint,
	  "bytes of a checkpoint: how often to write one, and what share of time trains"),
	F(TEXT, "--parameters", "X", parameters,
	  "the same from the parameters of the model, 14 bytes each (405e9, or 405B; K, M, B, T)"),
	F(TEXT, "--write-rate", "RATE", write_rate, "at which a checkpoint is written"),
	F(TEXT, "--read-rate", "RATE", read_rate,
	  "at which it is read after a failure (default: as it is written)"),
	F(TEXT, "--interval", "TIME", interval,
	  "training between two checkpoints (default: only the best)"),
	F(TEXT, "--pause", "TIME", pause,
	  "checkpoints are asynchronous: training stops for this time, while they are copied to "
	  "memory"),
	F(REAL, "--loss", "PERCENT", loss, 0, 100,
	  "the most time to lose: prints the write rate that this needs"),
	F(TEXT, "--restart", "TIME", restart,
	  "from a failure until the checkpoint is read (default: 5min, an assumption)"),
	F(REAL, "--mtbf-hours", "X", mtbf, 0, 1000000000,
	  "mean time between failures of one accelerator (default: 50000, MLCommons' figure)"),
	F(TEXT, "--local-rate", "RATE", local_rate,
	  "of a first level, such as local NVMe: all of it"),
	F(REAL, "--local-share", "PERCENT", local_share, 0, 100,
	  "of failures that leave the first level whole"),
	NULL};
/* clang-format on */

const struct command command_plan = {
	.name = "plan",
	.operands = "[RESULT ...]",
	.help = "Say whether a storage feeds N accelerators, from results.",
	.about =
		"AU as DLIO defines it says whether it passes, the rate whether it is enough. \"At "
		"least\" marks what the measurements did not reach the limit of. Intervals hold "
		"90 % of what agrees with the points. docs/plan.md has the method.\n"
		"With the size of a checkpoint, it says how often to write one, also without "
		"results.",
	.flags = flags,
	.alone = true,
	.examples = {"stoker plan --point hosts=1,accelerators=8,samples_per_s=160,au=93.1 --model "
		     "unet3d_h100 --accelerators 8,16,32",
		     "stoker plan --from before --accelerators 4,8 --despite-verdicts -o plan.html "
		     "--checkpoint 5TB --write-rate 50GB/s"},
	.carry_out = plan_main,
};

static void asked_words(const struct plan_args *a, struct str_list *out)
{
	for (size_t i = 0; flags[i]; i++)
		if (flags[i]->offset != offsetof(struct plan_args, from) &&
		    flags[i]->offset != offsetof(struct plan_args, json) &&
		    flags[i]->offset != offsetof(struct plan_args, page))
			flag_put_words(flags[i], a, out);
}

/* ---- made again ---- */

struct again {
	struct making m;
	struct plan_args a;
	const json_t *stated;
	size_t room;
	struct err why; /* it cannot be */
	char *absent;   /* a workload file that it names */
};

/* A file is looked for from the current folder, then, that of the plan alone, beside the plan. */
static void find_workloads(struct again *x, const char *folder)
{
	const char *model = x->a.model;
	AUTO_FREE char *beside = model ? path_join(folder, model) : NULL;

	if (model && str_ends(model, ".yaml") && !file_exists(model)) {
		if (file_exists(beside))
			x->m.model = xstrdup(beside);
		else
			x->absent = xstrdup(model);
	}
	for (size_t i = 0; i < x->a.point.n && !x->absent; i++) {
		const char *at = strstr(x->a.point.v[i], "model=");
		AUTO_FREE char *name = at ? xstrndup(at + 6, strcspn(at + 6, ",")) : NULL;

		if (name && str_ends(name, ".yaml") && !file_exists(name))
			x->absent = xstrdup(name);
	}
}

static int read_words(struct again *x, char **word, size_t n, struct err *e)
{
	struct str_list given = {0};
	bool same;

	for (size_t i = 1; i <= n; i++)
		if (!str_starts(word[i], "--") || strcmp(word[i], "--help") == 0)
			return err_set(e, ERR_DATA, "'%.60s' is no option of a plan", word[i]);
	if (flags_parse(&command_plan, &x->a, (int)n + 1, word, flags_no_operand, e) < 0)
		return e->code;
	asked_words(&x->a, &given);
	same = given.n == n;
	for (size_t i = 0; same && i < n; i++)
		same = strcmp(given.v[i], word[i + 1]) == 0;
	str_list_release(&given);
	return same ? 0 : err_set(e, ERR_DATA, "'" ASKED "' is not as a plan writes it");
}

#define WORDS_MAX (PLAN_POINTS_MAX + 64)
static int read_asked(struct again *x, struct err *e)
{
	const json_t *list = json_object_get(x->stated, ASKED);
	char *word[WORDS_MAX + 2] = {(char[]){"plan"}};
	size_t n = json_array_size(list);
	int rc;

	if (!json_is_array(list) || n > WORDS_MAX)
		return err_set(e, ERR_DATA, "it does not say what was asked for ('" ASKED "')");
	for (size_t i = 0; i < n; i++) {
		/* the options that are texts stay in the file's tree */
		word[i + 1] = (char *)(uintptr_t)json_string_value(json_array_get(list, i));
		if (!word[i + 1])
			return err_set(e, ERR_DATA, "'" ASKED "' is not a list of texts");
	}
	rc = read_words(x, word, n, e);
	return rc ?: check_sources(&x->a, json_array_size(json_object_get(x->stated, RUNS)), e);
}

static void *begin_again(const json_t *stated, const char *folder)
{
	struct again *x = xcalloc(1, sizeof(*x));

	x->a = (struct plan_args)NOTHING_ASKED;
	x->stated = stated;
	x->room = json_array_size(json_object_get(stated, RUNS));
	if (x->room > PLAN_RUNS_MAX) {
		err_set(&x->why, ERR_DATA, "it names more than %d runs", PLAN_RUNS_MAX);
	} else if (read_asked(x, &x->why) == 0) {
		find_workloads(x, folder);
		begin_plan(&x->m, &x->a, &x->why);
	}
	known_begin(&x->m.known, x->room < PLAN_RUNS_MAX ? x->room : PLAN_RUNS_MAX);
	x->room = x->m.known.results;
	x->m.known.results = 0;
	return x;
}

static void take_again(void *of, const json_t *row, struct run_record *r, struct derive *d)
{
	struct again *x = of;
	struct known *k = &x->m.known;
	const char *folder = derive_string(row, "folder");
	struct known_result *one = &k->result[k->results];

	(void)d;
	if (k->results == x->room)
		return;
	if (r)
		known_look(k, k->results, r);
	else if (!x->why.code)
		err_set(&x->why, ERR_DATA, "runs that it names are not there");
	k->results++;
	/* as the plan has them: what differs was told */
	free(one->folder);
	one->folder = xstrdup(folder ? folder : "");
	snprintf(one->point.from, sizeof(one->point.from), "%.159s", one->folder);
	run_name_stated(&one->name, row);
}

static json_t *made_again(void *of, struct derive *d)
{
	struct again *x = of;
	bool haste = sums_in_haste(x->stated, d->audit);
	json_t *made;

	if (!x->why.code)
		end_plan(&x->m, !haste, NULL, &x->why);
	if (x->why.code && x->absent) {
		derive_unchecked(d, "the workload '%.200s' that it plans is not there", x->absent);
		return NULL;
	}
	if (x->why.code) {
		derive_holds(d, false, "The plan cannot be made again: %.300s.", x->why.text);
		return NULL;
	}
	made = plan_json(&x->m);
	if (!haste)
		return made;
	derive_unchecked(d, d->audit->quick
				    ? "its answers, which --quick leaves out"
				    : "its answers: another build of this program made the plan");
	for (size_t i = 0; late[i]; i++)
		json_object_del(made, late[i]);
	return made;
}

static void release_again(void *of)
{
	struct again *x = of;

	making_release(&x->m);
	str_list_release(&x->a.from);
	str_list_release(&x->a.point);
	free(x->absent);
	free(x);
}

const struct sums_ops sums_plan = {
	.list = RUNS,
	.sign = "plans",
	.late = late,
	.told = "what was asked for, points that were typed, and which results were left out",
	.begin = begin_again,
	.take = take_again,
	.made = made_again,
	.release = release_again,
};
