/* Plots through gnuplot. Its scripts hold no text of a result: labels come from the data files. */
#include "study/plots.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/file.h"
#include "study/study_plan.h"

/* A label as one quoted field of a data file, without what gnuplot would read as more. */
static void put_label(struct buf *out, const char *s)
{
	buf_putc(out, '"');
	for (; *s; s++)
		if (*s == '_')
			buf_puts(out, "\\\\_");
		else if (!strchr("\"\\{}^@&~`$\n\r", *s))
			buf_putc(out, *s);
	buf_putc(out, '"');
}

static int draw_chart(const char *folder, const char *name, const struct buf *data,
		      const struct buf *commands, struct err *e)
{
	static const struct {
		const char *terminal, *suffix;
	} outputs[] = {
		/* 150 dots an inch at 7 x 4.5 inches */
		{"pngcairo size 1050,675 fontscale 1.3", "png"},
		{"svg size 700,450", "svg"},
		{"pdfcairo size 7in,4.5in", "pdf"},
	};
	AUTO_FREE char *dat = xasprintf("%s/%s.dat", folder, name);
	AUTO_FREE char *gp = xasprintf("%s/%s.gp", folder, name);
	/* removed again: no name that somebody's file may have */
	AUTO_FREE char *log = xasprintf("%s/.%s.gnuplot.%ld.log", folder, name, (long)getpid());
	const char *const argv[] = {"gnuplot", gp, NULL};
	struct buf script = {0};
	struct child c;
	char outcome[128];
	int rc;

	buf_puts(&script, "set datafile missing \"nan\"\n");
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		buf_printf(&script, "set terminal %s\nset output '%s/%s.%s'\n%s\n",
			   outputs[i].terminal, folder, name, outputs[i].suffix, commands->data);
	rc = file_write(dat, data->data ? data->data : "", data->len, e);
	if (rc == 0)
		rc = file_write(gp, script.data, script.len, e);
	buf_release(&script);
	if (rc == 0)
		rc = child_start(&c, argv, log, e);
	if (rc < 0) {
		if (rc == -ENOENT)
			err_set(e, ERR_ABSENT, "--plots needs gnuplot, which is not installed");
		return rc;
	}
	child_wait(&c, -1);
	if (child_outcome(&c, outcome, sizeof(outcome)) != 0)
		return err_set(e, -EIO, "gnuplot %s; see '%s'", outcome, log);
	remove(log);
	return 0;
}

/* Lines over processes, one block of the data file for each model. */
static int over_processes(const struct run_groups *g, const char *folder, const char *name,
			  const char *ylabel, bool au, struct err *e)
{
	struct buf data = {0}, commands = {0};
	const char *model = NULL;
	double target = NAN;
	int blocks = 0, rc = 0;

	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];
		const struct sample_stat *s = au ? &x->au : &x->io;

		if (x->factors[0] || s->n == 0)
			continue;
		if (!model || strcmp(model, x->model) != 0) {
			if (blocks++)
				buf_puts(&data, "\n\n");
			put_label(&data, x->model);
			buf_putc(&data, '\n');
			model = x->model;
		}
		buf_printf(&data, "%u %.8g %.8g\n", x->ranks, s->mean, s->stdev);
		target = x->target;
	}
	if (blocks) {
		buf_printf(&commands,
			   "set grid\nset key outside below\nset xlabel 'processes'\nset ylabel "
			   "'%s'\nset yrange [0:*]\nset xtics 1\nset autoscale x\nset offsets 0.5, "
			   "0.5, 0, 0\nplot ",
			   ylabel);
		if (au && isfinite(target))
			buf_printf(&commands,
				   "%.6g with lines dashtype 2 linecolor 'red' title "
				   "'target', ",
				   target);
		buf_printf(&commands,
			   "for [i=0:%d] '%s/%s.dat' index i using 1:2:3 with yerrorlines "
			   "linewidth 2 pointtype 7 title columnheader(1)\n",
			   blocks - 1, folder, name);
		rc = draw_chart(folder, name, &data, &commands, e);
	}
	buf_release(&data);
	buf_release(&commands);
	return rc;
}

/* The name of a single factor: "reader.batch_size"; NULL for none or several. */
static char *parameter_of(const struct run_group *x)
{
	if (!x->factors[0] || strstr(x->factors, ", "))
		return NULL;
	return xstrndup(x->factors, strcspn(x->factors, "="));
}

static int one_parameter(const struct run_groups *g, const char *folder,
			 const struct run_group *first, const char *parameter, struct err *e)
{
	const char *base = strrchr(parameter, '.');
	struct buf data = {0}, commands = {0};
	AUTO_FREE char *text =
		xasprintf("%s_%u_%s", first->model, first->ranks, base ? base + 1 : parameter);
	char name[128];
	int rc;

	study_folder_name(text, name, sizeof(name));
	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];
		AUTO_FREE char *p = parameter_of(x);

		if (x->ranks != first->ranks || strcmp(x->model, first->model) != 0 ||
		    (x->factors[0] && (!p || strcmp(p, parameter) != 0)))
			continue;
		put_label(&data, x->factors[0] ? x->factors + strlen(parameter) + 1 : "base");
		buf_printf(&data, " %.8g %.8g %.8g\n", x->au.n ? x->au.mean : NAN,
			   x->au.n ? x->au.stdev : 0, x->whole_au.n ? x->whole_au.mean : NAN);
	}
	buf_printf(&commands,
		   "set grid ytics\nset key outside below\nset ylabel 'AU (%%)'\nset yrange "
		   "[0:105]\nset style fill solid 0.8\nset boxwidth 0.38\nunset xlabel\nset "
		   "xtics autofreq\nplot '%s/%s.dat' using ($0-0.2):2:xtic(1) with boxes title 'AU "
		   "as defined', '' using ($0+0.2):4 with boxes title 'compute / wall time'",
		   folder, name);
	if (isfinite(first->target))
		buf_printf(&commands, ", %.6g with lines dashtype 2 linecolor 'red' title 'target'",
			   first->target);
	buf_puts(&commands, "\n");
	rc = draw_chart(folder, name, &data, &commands, e);
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

int plots_write(const struct run_groups *g, const char *folder, struct err *e)
{
	int rc;

	if (strpbrk(folder, "'\"\\\n"))
		return err_set(e, ERR_USAGE,
			       "--plots: the name of the folder cannot contain quotes, backslashes "
			       "or line breaks");
	rc = file_mkdirs(folder, e);
	if (rc == 0)
		rc = over_processes(g, folder, "au", "AU (%)", true, e);
	if (rc == 0)
		rc = over_processes(g, folder, "throughput", "I/O throughput (MiB/s)", false, e);
	for (size_t i = 0; rc == 0 && i < g->groups; i++) {
		AUTO_FREE char *parameter = parameter_of(&g->group[i]);

		if (parameter && is_first(g, i, parameter))
			rc = one_parameter(g, folder, &g->group[i], parameter, e);
	}
	return rc;
}
