/* Figures through gnuplot: the same runs, error bars, colors and marks as the findings and the
 * page.
 */
#include "study/study.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/say.h"
#include "base/vector.h"
#include "os/child.h"
#include "readback/configuration.h"
#include "readback/effects.h"
#include "readback/groups.h"

#define NEUTRAL "#444444" /* what belongs to no model */
/* an error bar: gnuplot's own clear a box around the mean */
#define CAPPED "vectors heads size screen 0.007,90 nofilled linewidth 1.5"
#define TITLE "set label 2 at screen 0.5, screen 0.965 center font ',12' noenhanced "

/* A result's text made safe for gnuplot: inside quotes of either kind, enhanced mode off. */
static void put_plain(struct buf *out, const char *s)
{
	size_t begin = out->len;

	buf_put_said(out, s, strlen(s), SAY_LINE);
	for (size_t i = begin; i < out->len; i++)
		if (strchr("\"'\\`", out->data[i]))
			out->data[i] = ' ';
}

/* A field of a data file. */
static void put_label(struct buf *out, const char *s)
{
	buf_putc(out, '"');
	put_plain(out, s[0] ? s : " ");
	buf_putc(out, '"');
}

static void put_value(struct buf *out, double v)
{
	if (isfinite(v))
		buf_printf(out, " %.8g", v);
	else
		buf_puts(out, " nan");
}

static const struct {
	const char *terminal, *suffix;
} outputs[] = {
	/* 150 dots an inch at 7 x 4.5 inches */
	{"pngcairo size 1050,675 fontscale 1.25 linewidth 1.5 pointscale 2.2 noenhanced", "png"},
	{"svg size 700,450 background rgb 'white' noenhanced", "svg"},
	{"pdfcairo size 7in,4.5in fontscale 0.7 noenhanced", "pdf"},
};
#define OUTPUTS (sizeof(outputs) / sizeof(outputs[0]))

/* A folder within the one for the plots: gnuplot writes there, and what is whole gets its name. */
#define WORK ".stoker_plots"

/* `to`: the folder of the charts. */
static void put_script(struct buf *out, const char *to, const char *name, size_t entries,
		       const struct buf *commands)
{
	buf_printf(
		out,
		"set encoding utf8\nset datafile missing 'nan'\nset border 3\nset tics nomirror "
		"out\nset grid ytics linecolor rgb '#d7dce2' linetype 1\nset "
		"pointintervalbox 0\nset key at "
		"screen 0.5, screen 0.935 center top horizontal Left reverse maxcols 3 samplen 2.5 "
		"width 1\nset tmargin %g\nset bmargin 5.5\nset rmargin 3\n",
		3.5 + 1.1 * (double)((entries + 2) / 3));
	for (size_t i = 0; i < OUTPUTS; i++)
		buf_printf(out, "set terminal %s\nset output '%s/%s.%s'\n%s\n", outputs[i].terminal,
			   to, name, outputs[i].suffix, commands->data);
}

static int run_gnuplot(const char *folder, const char *work, const char *name, const char *script,
		       struct err *e)
{
	AUTO_FREE char *log = xasprintf("%s/%s.log", work, name);
	AUTO_FREE char *kept = xasprintf("%s/.%s.gnuplot.log", folder, name);
	const char *const argv[] = {"gnuplot", script, NULL};
	struct child c;
	char outcome[128];
	int rc = child_start(&c, argv, log, e);

	if (rc == -ENOENT)
		err_set(e, ERR_ABSENT, "--plots needs gnuplot, which is not installed");
	if (rc < 0)
		return rc;
	child_wait(&c, -1);
	if (child_outcome(&c, outcome, sizeof(outcome)) == 0) {
		remove(kept);
		return 0;
	}
	rename(log, kept);
	return err_set(e, -EIO, "gnuplot %s; see '%s'", outcome, kept);
}

/* `entries`: of the legend, which is in rows of 3 between the title and the chart. */
static int draw_chart(const char *folder, const char *name, size_t entries, const struct buf *data,
		      const struct buf *commands, struct err *e)
{
	AUTO_FREE char *work = path_join(folder, WORK);
	AUTO_FREE char *dat = xasprintf("%s/%s.dat", folder, name);
	AUTO_FREE char *gp = xasprintf("%s/%s.gp", folder, name);
	AUTO_FREE char *script = xasprintf("%s/%s.gp", work, name);
	struct buf kept = {0}, now = {0};
	int rc;

	put_script(&kept, folder, name, entries, commands);
	put_script(&now, work, name, entries, commands);
	rc = file_write_ours(dat, data->data ? data->data : "", data->len, e);
	if (rc == 0)
		rc = file_write_ours(gp, kept.data, kept.len, e);
	if (rc == 0)
		rc = file_write_ours(script, now.data, now.len, e);
	buf_release(&kept);
	buf_release(&now);
	file_remove_left(dat);
	file_remove_left(gp);
	if (rc == 0)
		rc = run_gnuplot(folder, work, name, script, e);
	for (size_t i = 0; rc == 0 && i < OUTPUTS; i++) {
		AUTO_FREE char *from = xasprintf("%s/%s.%s", work, name, outputs[i].suffix);
		AUTO_FREE char *to = xasprintf("%s/%s.%s", folder, name, outputs[i].suffix);

		if (rename(from, to) < 0)
			rc = err_sys(e, errno, "cannot rename '%s' to '%s'", from, to);
	}
	return rc;
}

/* gnuplot's numbers of a mark: filled, and its outline. */
static int filled_mark(enum palette_mark m)
{
	static const int marks[PALETTE_MARKS] = {
		[MARK_CIRCLE] = 7,         [MARK_SQUARE] = 5,   [MARK_TRIANGLE] = 9,
		[MARK_TRIANGLE_DOWN] = 11, [MARK_DIAMOND] = 13, [MARK_PENTAGON] = 15,
	};

	return marks[m];
}

/* What the marks mean, below the chart, as far as they are there. */
static void put_notes(struct buf *out, bool bars, bool hollow)
{
	if (!bars && !hollow)
		return;
	buf_printf(out, "set label 1 '%s%s%s' at screen 0.015, screen 0.025 font ',8' noenhanced\n",
		   bars ? "Error bars: standard deviation of the runs, or of the epochs of a "
			  "single run (3 or more)."
			: "",
		   bars && hollow ? " " : "",
		   hollow ? "Hollow: left out (a check failed, or the page cache served it)." : "");
}

/* ---- over processes ---- */

/* What is drawn of a group, on which axis. */
struct measure {
	const char *name, *title, *axis;
	bool percent;
	size_t offset; /* of its struct sample_stat in the group */
};

#define OF(member) offsetof(struct run_group, member)

static const struct measure measures[] = {
	{"whole_au", "Whole-run AU (compute time / wall time)", "whole-run AU (%)", true,
	 OF(whole_au)},
	{"au", "AU by the definition of DLIO, without excluded steps",
	 "AU by DLIO''s definition (%)", true, OF(au)},
	{"throughput", "Throughput of the whole run", "throughput (samples/s)", false,
	 OF(whole_rate)},
};

struct series {
	const char *model;
	const struct palette_color *color;
	int mark;
	double target;
	bool sound, hollow, bars; /* has such points */
};

struct lines {
	const struct run_groups *g;
	const struct measure *m;
	struct buf data, commands;
	struct series *v;
	size_t n, room;
	uint32_t least, most; /* processes */
	struct buf tics;
};

static void add_point(struct lines *l, const struct run_group *x, const struct sample_stat *s)
{
	struct series *k = l->n ? &l->v[l->n - 1] : NULL;
	AUTO_FREE char *tic = xasprintf("%s%u", l->tics.len ? "," : "", x->ranks);

	if (!k || strcmp(k->model, x->model) != 0) {
		size_t place = palette_place(l->g, x->model);

		VECTOR_PUSH(l->v, l->n, l->room,
			    {.model = x->model,
			     .color = palette_color_of(place),
			     .mark = filled_mark(palette_mark_of(place)),
			     .target = x->target});
		k = &l->v[l->n - 1];
		if (l->n > 1)
			buf_puts(&l->data, "\n\n");
		put_label(&l->data, x->model);
		buf_putc(&l->data, '\n');
	}
	k->sound = k->sound || !x->unsound;
	k->hollow = k->hollow || x->unsound;
	k->bars = k->bars || isfinite(s->stdev);
	/* processes, value if it counts, value if not, error bar */
	buf_printf(&l->data, "%u", x->ranks);
	put_value(&l->data, x->unsound ? NAN : s->mean);
	put_value(&l->data, x->unsound ? s->mean : NAN);
	put_value(&l->data, s->mean);
	put_value(&l->data, s->stdev);
	buf_putc(&l->data, '\n');
	l->least = l->least && l->least < x->ranks ? l->least : x->ranks;
	RAISE(l->most, x->ranks);
	buf_puts(&l->tics, tic);
}

static void begin_plot(struct buf *out, bool *first)
{
	buf_puts(out, *first ? "plot " : ", \\\n  ");
	*first = false;
}

static void draw_series(struct lines *l, const char *file, size_t i, bool *first)
{
	const struct series *k = &l->v[i];
	struct buf *out = &l->commands;
	const char *color = k->color->light;

	if (k->bars) {
		begin_plot(out, first);
		buf_printf(out,
			   "'%s' index %zu using 1:($4-$5):(0):(2*$5) with " CAPPED
			   " linecolor rgb '%s' notitle",
			   file, i, color);
	}
	if (k->hollow) {
		begin_plot(out, first);
		buf_printf(out,
			   "'%s' index %zu using 1:3 with points linecolor rgb 'white' pointtype "
			   "%d pointsize 0.9 notitle, \\\n  '' index %zu using 1:3 with points "
			   "linecolor rgb '%s' pointtype %d pointsize 0.9 linewidth 1.5 %s",
			   file, i, k->mark, i, color, k->mark - 1,
			   k->sound ? "notitle" : "title columnheader(1)");
	}
	if (k->sound) {
		begin_plot(out, first);
		buf_printf(out,
			   "'%s' index %zu using 1:2 with linespoints linecolor rgb '%s' pointtype "
			   "%d pointsize 0.9 linewidth 2 title columnheader(1)",
			   file, i, color, k->mark);
	}
}

static bool one_target(const struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!(l->v[i].target == l->v[0].target))
			return false;
	return true;
}

/* Each model's own; returns how many lines. */
static size_t draw_targets(struct lines *l, bool *first)
{
	bool one = one_target(l);
	size_t drawn = 0;

	for (size_t i = 0; i < l->n && (!one || i == 0); i++) {
		if (!isfinite(l->v[i].target))
			continue;
		begin_plot(&l->commands, first);
		buf_printf(&l->commands,
			   "%.6g with lines dashtype (8,5) linewidth 1.5 linecolor rgb '%s' title "
			   "'target",
			   l->v[i].target, one ? NEUTRAL : l->v[i].color->light);
		if (!one) {
			buf_puts(&l->commands, " of ");
			put_plain(&l->commands, l->v[i].model);
		}
		buf_printf(&l->commands, " (%.4g %%)'", l->v[i].target);
		drawn++;
	}
	return drawn;
}

static void put_axes(struct lines *l)
{
	bool hollow = false, bars = false;

	for (size_t i = 0; i < l->n; i++) {
		hollow = hollow || l->v[i].hollow;
		bars = bars || l->v[i].bars;
	}
	buf_printf(&l->commands,
		   TITLE "'%s'\nset xlabel 'accelerators'\nset ylabel '%s'\nset "
			 "yrange [0:%s]\nset xtics (%s)\n",
		   l->m->title, l->m->axis, l->m->percent ? "100" : "*", l->tics.data);
	if (l->most >= 8 * l->least) /* 1, 2, 4, ...: at equal distances */
		buf_printf(&l->commands, "set logscale x 2\nset xrange [%g:%g]\n", l->least / 1.3,
			   l->most * 1.3);
	else
		buf_printf(&l->commands, "set xrange [%g:%g]\n",
			   l->least - 0.08 * (l->most - l->least) - 0.2,
			   l->most + 0.08 * (l->most - l->least) + 0.2);
	put_notes(&l->commands, bars, hollow);
}

/* Runs without overrides, a line for each model. */
static int over_processes(const struct run_groups *g, const char *folder, const struct measure *m,
			  struct err *e)
{
	struct lines l = {.g = g, .m = m};
	AUTO_FREE char *file = xasprintf("%s/%s.dat", folder, m->name);
	bool first = true;
	size_t targets = 0;
	int rc = 0;

	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];
		const struct sample_stat *s = (const void *)((const char *)x + m->offset);

		if (!x->factors[0] && s->n)
			add_point(&l, x, s);
	}
	if (l.n) {
		put_axes(&l);
		if (m->percent)
			targets = draw_targets(&l, &first);
		for (size_t i = 0; i < l.n; i++)
			draw_series(&l, file, i, &first);
		buf_puts(&l.commands, "\n");
		rc = draw_chart(folder, m->name, l.n + targets, &l.data, &l.commands, e);
	}
	buf_release(&l.data);
	buf_release(&l.commands);
	buf_release(&l.tics);
	free(l.v);
	return rc;
}

/* ---- one factor ---- */

/* The name of a single factor: "reader.batch_size"; NULL for none or several. */
static char *parameter_of(const struct run_group *x)
{
	if (x->factor.n != 1)
		return NULL;
	return xstrndup(x->factors, strcspn(x->factors, "="));
}

struct bar {
	const struct run_group *group;
	char *value, *label;
	double number; /* the value; NaN: it is none */
};

/* Numbers by their values, before texts. */
static int by_value(const void *a, const void *b)
{
	const struct bar *x = a, *y = b;

	if (x->number < y->number || x->number > y->number)
		return x->number < y->number ? -1 : 1;
	return isnan(x->number) != isnan(y->number) ? isnan(x->number) - isnan(y->number)
						    : strcmp(x->label, y->label);
}

/* Which groups are drawn: those of the first one's model and number of processes without another
 * override. On the heap. */
static struct bar *find_bars(const struct run_groups *g, const struct run_group *first,
			     const char *parameter, size_t *n)
{
	struct bar *v = xcalloc(g->groups, sizeof(*v));

	*n = 0;
	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];
		AUTO_FREE char *p = parameter_of(x);
		bool base = !x->factors[0];

		if (x->ranks != first->ranks || strcmp(x->model, first->model) != 0 ||
		    (!base && (!p || strcmp(p, parameter) != 0)))
			continue;
		v[*n] = (struct bar){.group = x};
		if (base) {
			char *value = key_value(&g->record[x->record[0]], parameter);

			v[*n].value = value ? value : xstrdup("");
			v[*n].label = value ? xasprintf("%s (base)", value) : xstrdup("base");
		} else {
			const char *text = x->factors + strlen(parameter);

			v[*n].value = xstrdup(text + (text[0] == '='));
			v[*n].label = xstrdup(v[*n].value);
		}
		if (!key_number(parameter, v[*n].value, &v[*n].number))
			v[*n].number = NAN;
		(*n)++;
	}
	qsort(v, *n, sizeof(*v), by_value);
	return v;
}

/* Bars of whole-run AU, and beside each the AU by DLIO's definition as a mark. */
static void draw_bars(const struct bar *v, size_t n, const struct run_groups *g, const char *file,
		      struct buf *data, struct buf *out)
{
	const char *color = palette_color_of(palette_place(g, v[0].group->model))->light;
	bool hollow = false, bars = false, sound = false, dlio = false;
	double width = n < 5 ? 0.12 * (double)n : 0.6; /* of a bar, in distances of bars */
	size_t longest = 0;

	for (size_t i = 0; i < n; i++) {
		const struct run_group *x = v[i].group;

		RAISE(longest, strlen(v[i].label));
		sound = sound || (!x->unsound && x->whole_au.n);
		hollow = hollow || (x->unsound && x->whole_au.n);
		bars = bars || (x->whole_au.n && isfinite(x->whole_au.stdev));
		dlio = dlio || x->au.n;
		put_label(data, v[i].label);
		put_value(data, x->whole_au.n && !x->unsound ? x->whole_au.mean : NAN);
		put_value(data, x->whole_au.n && x->unsound ? x->whole_au.mean : NAN);
		put_value(data, x->whole_au.n ? x->whole_au.mean : NAN);
		put_value(data, x->whole_au.n ? x->whole_au.stdev : NAN);
		put_value(data, x->au.n ? x->au.mean : NAN);
		buf_putc(data, '\n');
	}
	buf_printf(out,
		   "set xrange [-0.6:%g]\nset boxwidth %g\nset style fill solid 0.75 border\n"
		   "set xtics %s\n",
		   (double)n - 0.4, width, longest * n > 60 ? "rotate by -20" : "norotate");
	put_notes(out, bars, hollow);
	/* labels come from a line that draws nothing, so that they are there for every bar */
	buf_printf(out, "plot '%s' using 0:(-1):xtic(1) with points pointtype 0 notitle", file);
	if (sound)
		buf_printf(
			out,
			", \\\n  '' using 0:2 with boxes linecolor rgb '%s' title 'whole-run AU'",
			color);
	if (hollow)
		buf_printf(
			out,
			", \\\n  '' using 0:3 with boxes fill empty linecolor rgb '%s' linewidth "
			"1.5 title 'whole-run AU, left out'",
			color);
	if (bars)
		buf_puts(out, ", \\\n  '' using 0:($4-$5):(0):(2*$5) with " CAPPED
			      " linecolor rgb 'black' notitle");
	if (dlio) /* beside the error bar */
		buf_printf(
			out,
			", \\\n  '' using ($0+%g):6 with points linecolor rgb 'white' pointtype 13 "
			"pointsize 0.9 notitle, \\\n  '' using ($0+%g):6 with points linecolor rgb "
			"'" NEUTRAL
			"' pointtype 12 pointsize 0.9 linewidth 1.5 title 'AU by DLIO''s "
			"definition'",
			0.3 * width, 0.3 * width);
}

static int one_parameter(const struct run_groups *g, const char *folder,
			 const struct run_group *first, const char *parameter, struct err *e)
{
	const char *base = strrchr(parameter, '.');
	struct buf data = {0}, commands = {0};
	AUTO_FREE char *text =
		xasprintf("%s_%u_%s", first->model, first->ranks, base ? base + 1 : parameter);
	AUTO_FREE char *file = NULL;
	struct bar *v;
	char name[128];
	size_t n;
	int rc;

	study_folder_name(text, name, sizeof(name));
	file = xasprintf("%s/%s.dat", folder, name);
	v = find_bars(g, first, parameter, &n);
	buf_puts(&commands, TITLE "'");
	put_plain(&commands, first->model);
	buf_printf(&commands, ", %u accelerator%s: ", first->ranks, first->ranks == 1 ? "" : "s");
	put_plain(&commands, parameter);
	buf_puts(&commands, "'\nset xlabel '");
	put_plain(&commands, parameter);
	buf_puts(&commands, "'\nset ylabel 'AU (%)'\nset yrange [0:100]\n");
	draw_bars(v, n, g, file, &data, &commands);
	if (isfinite(first->target))
		buf_printf(&commands,
			   ", \\\n  %.6g with lines dashtype (8,5) linewidth 1.5 linecolor rgb "
			   "'" NEUTRAL "' title 'target (%.4g %%)'",
			   first->target, first->target);
	buf_puts(&commands, "\n");
	rc = draw_chart(folder, name, 4, &data, &commands, e);
	for (size_t i = 0; i < n; i++) {
		free(v[i].value);
		free(v[i].label);
	}
	free(v);
	buf_release(&data);
	buf_release(&commands);
	return rc;
}

static bool is_first(const struct run_groups *g, size_t index, const char *parameter)
{
	for (size_t i = 0; i < index; i++) {
		AUTO_FREE char *p = parameter_of(&g->group[i]);

		if (p && strcmp(p, parameter) == 0 && g->group[i].ranks == g->group[index].ranks &&
		    strcmp(g->group[i].model, g->group[index].model) == 0)
			return false;
	}
	return true;
}

static int write_all(const struct run_groups *g, const char *folder, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(measures) / sizeof(measures[0]); i++)
		rc = over_processes(g, folder, &measures[i], e);
	for (size_t i = 0; rc == 0 && i < g->groups; i++) {
		AUTO_FREE char *parameter = parameter_of(&g->group[i]);

		if (parameter && is_first(g, i, parameter))
			rc = one_parameter(g, folder, &g->group[i], parameter, e);
	}
	return rc;
}

int plots_write(const struct run_groups *g, const char *folder, struct err *e)
{
	AUTO_FREE char *work = path_join(folder, WORK);
	AUTO_FREE char *lock_path = path_join(folder, WORK ".lock");
	char who[FILE_LOCK_WHO_MAX];
	struct file_lock lock;
	int rc;

	if (strpbrk(folder, "'\"\\\n"))
		return err_set(e, ERR_USAGE,
			       "--plots: the name of the folder cannot contain quotes, backslashes "
			       "or line breaks");
	rc = file_mkdirs(folder, e);
	if (rc < 0)
		return rc;
	rc = file_lock(&lock, lock_path, who, e);
	if (rc == -EBUSY)
		return err_set(e, -EBUSY,
			       "--plots: another report is writing to '%s'%s%s: wait until it has "
			       "ended, or choose another folder (lock file '%s')",
			       folder, who[0] ? ": " : "", who, lock_path);
	if (rc < 0)
		return rc;
	rc = remove_tree(work, e); /* of a killed one */
	if (rc == 0)
		rc = file_mkdir_ours(work, e);
	if (rc == 0)
		rc = write_all(g, folder, e);
	remove_tree(work, NULL);
	file_unlock(&lock);
	return rc;
}
