/* A run under way as plain lines and as JSON. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/str.h"
#include "result/json_out.h"
#include "screen/live.h"

static void put_rate(struct buf *out, const char *before, double v, const char *after)
{
	char text[32];

	if (!isnan(v))
		buf_say(out, "%s%s/s%s", before, str_bytes(v, text, sizeof(text)), after);
}

static void put_percent(struct buf *out, const char *before, double v)
{
	if (!isnan(v))
		buf_say(out, "%s%.1f %%", before, v);
}

static void put_samples(struct buf *out, const char *before, double v)
{
	if (!isnan(v))
		buf_printf(out, v < 99.5 ? "%s%.1f samples/s" : "%s%.0f samples/s", before, v);
}

static void of_training(const struct run_progress *p, const struct live_figures *f, struct buf *out)
{
	char s[32];

	if (p->phase == PROGRESS_PROBE) {
		buf_puts(out, "Probing the storage");
		if (p->probe_total)
			buf_printf(out, ", %u of %u numbers of readers", p->probe_done,
				   p->probe_total);
		return;
	}
	if (p->phase == PROGRESS_EVAL)
		buf_printf(out, "Evaluating, epoch %u/%u, step %llu/%llu; training step %llu/%llu",
			   p->epoch, p->epochs, (unsigned long long)p->epoch_done,
			   (unsigned long long)p->epoch_total, (unsigned long long)p->done,
			   (unsigned long long)p->total);
	else
		buf_say(out, "%s, epoch %u/%u, step %llu/%llu",
			p->phase == PROGRESS_CHECKPOINT ? "Checkpoint" : "Training", p->epoch,
			p->epochs, (unsigned long long)p->done, (unsigned long long)p->total);
	if (f->filling) {
		buf_say(out, ", no step has ended: workers read %llu samples, %s",
			(unsigned long long)p->read_samples,
			str_bytes((double)p->read_bytes, s, sizeof(s)));
		put_rate(out, ", recently ", f->read_recent, "");
	} else {
		put_percent(out, ", AU so far ", f->au);
	}
}

/* The rest, what matters most first: that nothing moves is said in any case. */
static void put_part(const struct run_progress *p, const struct live_figures *f, int part,
		     struct buf *out)
{
	char s[32];

	switch (part) {
	case 0:
		if (!isnan(f->standing_s) && f->has_slowest)
			buf_say(out, ", no step for %s: rank %u %s",
				str_seconds(f->standing_s, s, sizeof(s)), f->slow_rank,
				f->slow_doing);
		break;
	case 1:
		if (!f->filling)
			put_samples(out, ", ", f->samples_recent);
		break;
	case 2:
		if (!f->filling)
			put_percent(out, ", exposed wait ", f->wait);
		break;
	case 3:
		if (p->ranks > p->ranks_here)
			buf_say(out, ", ranks %u-%u of %u", p->first_rank,
				p->first_rank + p->ranks_here - 1, p->ranks);
		break;
	case 4:
		if (f->has_slowest && isnan(f->standing_s))
			buf_say(out, ", slowest rank %u (%s behind)", f->slow_rank,
				str_seconds(f->slow_behind_s, s, sizeof(s)));
		break;
	case 5:
		if (f->device == DEVICE_DISK && !isnan(f->device_read))
			put_rate(out, ", device ", f->device_read, "");
		else if (f->device == DEVICE_CALLS)
			put_rate(out, ", read calls ", f->device_read, "");
		break;
	}
}
#define LINE_PARTS 6
#define LINE_MOST 100

/* As much as a line has room for beside `last` bytes: JSON lines have all of it. */
static void put_parts(const struct run_progress *p, const struct live_figures *f, size_t last,
		      struct buf *out)
{
	for (int i = 0; i < LINE_PARTS && p->phase != PROGRESS_PROBE; i++) {
		size_t before = out->len;

		put_part(p, f, i, out);
		if (i > 0 && out->len > before && out->len + last > LINE_MOST) {
			out->len = before;
			out->data[before] = '\0';
		}
	}
}

void live_line(const struct run_progress *p, const struct live_figures *f, struct buf *out)
{
	char a[32], b[32];

	if (p->training) {
		of_training(p, f, out);
		put_parts(p, f,
			  isnan(f->left_s)
				  ? 0
				  : strlen(str_seconds(f->left_s, a, sizeof(a))) + sizeof(", left"),
			  out);
	} else if (p->ranks) {
		buf_printf(out, "Checkpoints, written %llu/%llu, read back %llu/%llu",
			   (unsigned long long)p->saves, (unsigned long long)p->saves_total,
			   (unsigned long long)p->loads, (unsigned long long)p->loads_total);
		put_rate(out, ", ", f->bytes_rate, "");
		if (f->device == DEVICE_DISK && !isnan(f->device_read)) {
			buf_say(out, ", %s reads", f->device_name);
			put_rate(out, " ", f->device_read, "");
			put_rate(out, ", writes ", f->device_write, "");
		}
	} else if (p->phase == PROGRESS_VERIFY) {
		buf_printf(out, "Verifying %s of %s", str_bytes((double)p->done, a, sizeof(a)),
			   str_bytes((double)p->total, b, sizeof(b)));
		put_rate(out, ", ", f->bytes_rate, "");
	} else {
		buf_say(out, "%s %llu/%llu files",
			p->phase == PROGRESS_GENERATE ? "Generating" : "Checking",
			(unsigned long long)p->done, (unsigned long long)p->total);
		if (p->phase == PROGRESS_GENERATE)
			put_rate(out, ", ", f->bytes_rate, "");
	}
	if (!isnan(f->left_s))
		buf_say(out, ", %s left", str_seconds(f->left_s, a, sizeof(a)));
}

void live_summary(const struct run_progress *p, const struct live_figures *f, struct buf *out)
{
	char s[32], b[32];

	str_seconds((double)p->elapsed_ns / 1e9, s, sizeof(s));
	if (p->training) {
		buf_printf(out, "Trained %llu of %llu steps, epoch %u of %u, in %s",
			   (unsigned long long)p->done, (unsigned long long)p->total, p->epoch,
			   p->epochs, s);
		put_percent(out, ": AU so far ", f->au);
		put_samples(out, ", ", f->samples_rate);
		put_rate(out, ", ", f->bytes_rate, "");
		put_percent(out, ", exposed wait ", f->wait);
		if (p->ranks > p->ranks_here)
			buf_say(out, "; of ranks %u-%u of %u", p->first_rank,
				p->first_rank + p->ranks_here - 1, p->ranks);
	} else if (p->ranks) {
		buf_printf(out, "Checkpoints written %llu of %llu, read back %llu of %llu, in %s",
			   (unsigned long long)p->saves, (unsigned long long)p->saves_total,
			   (unsigned long long)p->loads, (unsigned long long)p->loads_total, s);
	} else if (p->phase == PROGRESS_VERIFY) {
		buf_printf(out, "Compared %s in %s", str_bytes((double)p->done, b, sizeof(b)), s);
	} else {
		unsigned long long now = p->done - p->skipped;

		buf_say(out, "%s %llu of %llu files",
			p->phase == PROGRESS_GENERATE ? "Generated" : "Checked", now,
			(unsigned long long)p->total);
		if (p->skipped)
			buf_say(out, ", %llu were there", (unsigned long long)p->skipped);
		buf_say(out, ", in %s", s);
		if (p->phase == PROGRESS_GENERATE && p->bytes)
			buf_say(out, ", %s", str_bytes((double)p->bytes, b, sizeof(b)));
		if (p->phase == PROGRESS_GENERATE && p->bytes)
			put_rate(out, ", ", f->bytes_rate, "");
	}
}

/* ---- JSON ---- */

static void training_json(json_t *o, const struct run_progress *p, const struct live_figures *f)
{
	json_put_int(o, "epoch", p->epoch);
	json_put_int(o, "epochs", p->epochs);
	json_put_int(o, "epoch_done", p->epoch_done);
	json_put_int(o, "epoch_total", p->epoch_total);
	json_put_int(o, "eval_done", p->eval_done);
	json_put_int(o, "eval_total", p->eval_total);
	json_put(o, "au_percent", json_number(f->au));
	json_put(o, "au_recent_percent", json_number(f->au_recent));
	json_put(o, "exposed_wait_percent", json_number(f->wait));
	json_put(o, "exposed_wait_recent_percent", json_number(f->wait_recent));
	json_put_int(o, "samples", p->samples);
	json_put(o, "samples_per_s", json_number(f->samples_rate));
	json_put(o, "samples_recent_per_s", json_number(f->samples_recent));
	json_put_int(o, "read_samples", p->read_samples);
	json_put_int(o, "read_bytes", p->read_bytes);
	json_put(o, "read_samples_recent_per_s", json_number(f->read_samples_recent));
	json_put(o, "read_bytes_recent_per_s", json_number(f->read_recent));
}

static void ranks_json(json_t *o, const struct run_progress *p, const struct live_figures *f)
{
	static const char *const source[] = {
		[DEVICE_UNKNOWN] = NULL, [DEVICE_DISK] = "disk", [DEVICE_CALLS] = "read_calls"};
	json_t *device = json_object(), *slowest = json_null();

	json_put_int(o, "checkpoints_written", p->saves);
	json_put(o, "checkpoints_to_write",
		 p->saves_by_time ? json_null() : json_count(p->saves_total));
	json_put_int(o, "checkpoints_read", p->loads);
	json_put_int(o, "checkpoints_to_read", p->loads_total);
	json_put_int(o, "ranks", p->ranks);
	json_put_int(o, "ranks_here", p->ranks_here);
	json_put_int(o, "first_rank", p->first_rank);
	json_put_text(device, "source", source[f->device]);
	json_put_text(device, "name", f->device_name[0] ? f->device_name : NULL);
	json_put(device, "read_bytes_per_s", json_number(f->device_read));
	json_put(device, "write_bytes_per_s", json_number(f->device_write));
	json_put(o, "device", device);
	if (f->has_slowest) {
		slowest = json_object();
		json_put_int(slowest, "rank", f->slow_rank);
		json_put(slowest, "behind_s", json_number(f->slow_behind_s));
		json_put(slowest, "exposed_wait_percent", json_number(f->slow_wait));
		json_put_text(slowest, "doing", f->slow_doing);
	}
	json_put(o, "slowest", slowest);
	json_put(o, "no_step_for_s", json_number(f->standing_s));
}

void live_json(const struct run_progress *p, const struct live_figures *f, const char *status,
	       uint64_t dropped, struct buf *out)
{
	static const char *const unit[] = {
		[PROGRESS_GENERATE] = "files",   [PROGRESS_CHECK] = "files",
		[PROGRESS_TRAIN] = "steps",      [PROGRESS_EVAL] = "steps",
		[PROGRESS_CHECKPOINT] = "steps", [PROGRESS_VERIFY] = "bytes",
		[PROGRESS_PROBE] = "steps",      [PROGRESS_FINISH] = "steps"};
	json_t *o = json_object();

	json_put_int(o, "schema", 1);
	json_put_text(o, "event", status ? "end" : "progress");
	if (status)
		json_put_text(o, "status", status);
	json_put(o, "unix_s", json_number((double)clock_wall_ns() / 1e9));
	json_put(o, "elapsed_s", json_number((double)p->elapsed_ns / 1e9));
	json_put_text(o, "phase", live_phase_words[p->phase]);
	json_put_int(o, "done", p->done);
	json_put_int(o, "total", p->total);
	json_put_text(o, "unit", p->ranks && !p->training ? "checkpoints" : unit[p->phase]);
	json_put(o, "done_percent", json_number(100 * f->part));
	json_put(o, "left_s", json_number(f->left_s));
	json_put_text(o, "left_from", isnan(f->left_s) ? NULL : f->left_how);
	json_put_int(o, "bytes", p->bytes);
	json_put(o, "bytes_per_s", json_number(f->bytes_rate));
	json_put(o, "bytes_recent_per_s", json_number(f->bytes_recent));
	if (p->training)
		training_json(o, p, f);
	if (p->ranks)
		ranks_json(o, p, f);
	if (dropped)
		json_put_int(o, "dropped_before", dropped);
	json_put_dump(out, o, JSON_COMPACT | JSON_REAL_PRECISION(14), JSON_EXACT);
	json_decref(o);
	buf_putc(out, '\n');
}
