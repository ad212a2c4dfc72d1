#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#define LINE_EVERY_NS (10 * NS_PER_S)
#define BAR 30

static const char *const phase_name[] = {"Generating", "Checking", "Training", "Evaluating"};

void progress_init(struct progress_view *v, bool quiet)
{
	*v = (struct progress_view){.terminal = isatty(STDERR_FILENO), .quiet = quiet};
}

static void describe(const struct run_progress *p, char *out, size_t n)
{
	double s = (double)p->elapsed_ns / 1e9;
	double part = p->total ? (double)p->done / (double)p->total : 0;
	char rate[32], left[32] = "", au[32] = "", epoch[32] = "";

	if (part > 0.01 && part < 1 && s > 1) {
		char t[24];

		snprintf(left, sizeof(left), ", %s left", str_seconds(s / part - s, t, sizeof(t)));
	}
	if (p->phase == PROGRESS_CHECK) {
		snprintf(out, n, "%s %llu/%llu files%s", phase_name[p->phase],
			 (unsigned long long)p->done, (unsigned long long)p->total, left);
		return;
	}
	if (p->phase != PROGRESS_GENERATE) {
		snprintf(epoch, sizeof(epoch), " epoch %u/%u,", p->epoch, p->epochs);
		if (p->au_so_far >= 0)
			snprintf(au, sizeof(au), ", AU so far %.1f %%", p->au_so_far);
	}
	snprintf(out, n, "%s%s %llu/%llu %s, %s/s%s%s", phase_name[p->phase], epoch,
		 (unsigned long long)p->done, (unsigned long long)p->total,
		 p->phase == PROGRESS_GENERATE ? "files" : "steps",
		 str_bytes(s > 0 ? (double)p->bytes_done / s : 0, rate, sizeof(rate)), au, left);
}

void progress_show(void *arg, const struct run_progress *p)
{
	struct progress_view *v = arg;
	int64_t now = clock_now_ns();
	char text[200], bar[BAR + 1];
	unsigned filled;

	if (v->quiet || p->total == 0)
		return;
	if (!v->begun || v->phase != p->phase) {
		v->begun = true;
		v->phase = p->phase;
		v->last_line_ns = now;
	}
	if (!v->terminal) {
		if (now - v->last_line_ns < LINE_EVERY_NS)
			return;
		v->last_line_ns = now;
		describe(p, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
		return;
	}
	describe(p, text, sizeof(text));
	filled = (unsigned)(BAR * p->done / p->total);
	if (filled > BAR)
		filled = BAR;
	memset(bar, '#', filled);
	memset(bar + filled, '.', BAR - filled);
	bar[BAR] = '\0';
	fprintf(stderr, "\r\033[K[%s] %s", bar, text);
	fflush(stderr);
	v->drawn = true;
}

void progress_done(struct progress_view *v)
{
	if (v->drawn)
		fprintf(stderr, "\r\033[K");
	v->drawn = false;
}
