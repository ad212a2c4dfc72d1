/* A run under way as plain lines and as JSON. */
#include <jansson.h>
#include <math.h>

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
		buf_printf(out, "Probing the storage, %u of %u numbers of readers", p->probe_done,
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
		put_samples(out, ", recently ", f->samples_recent);
		put_rate(out, " and ", f->bytes_recent, " decoded");
		put_percent(out, ", exposed wait ", f->wait);
	}
	if (f->device == DEVICE_DISK && !isnan(f->device_read)) {
		buf_say(out, ", %s reads", f->device_name);
		put_rate(out, " ", f->device_read, "");
	} else if (f->device == DEVICE_CALLS) {
		put_rate(out, ", read calls ", f->device_read, "");
	}
	if (!isnan(f->standing_s) && f->has_slowest)
		buf_say(out, ", no step for %s: rank %u %s",
			str_seconds(f->standing_s, s, sizeof(s)), f->slow_rank, f->slow_doing);
	else if (f->has_slowest)
		buf_say(out, ", slowest rank %u (%s behind the mean)", f->slow_rank,
			str_seconds(f->slow_behind_s, s, sizeof(s)));
	if (p->ranks > p->ranks_here)
		buf_say(out, "; of ranks %u-%u of %u", p->first_rank,
			p->first_rank + p->ranks_here - 1, p->ranks);
}

void live_line(const struct run_progress *p, const struct live_figures *f, struct buf *out)
{
	char a[32], b[32];

	if (p->training) {
		of_training(p, f, out);
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

static void set_number(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, isfinite(v) ? json_real(v) : json_null());
}

static void set_whole(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void set_text(json_t *o, const char *key, const char *v)
{
	json_put_text(o, key, v);
}

static void training_json(json_t *o, const struct run_progress *p, const struct live_figures *f)
{
	set_whole(o, "epoch", p->epoch);
	set_whole(o, "epochs", p->epochs);
	set_whole(o, "epoch_done", p->epoch_done);
	set_whole(o, "epoch_total", p->epoch_total);
	set_whole(o, "eval_done", p->eval_done);
	set_whole(o, "eval_total", p->eval_total);
	set_number(o, "au_percent", f->au);
	set_number(o, "au_recent_percent", f->au_recent);
	set_number(o, "exposed_wait_percent", f->wait);
	set_number(o, "exposed_wait_recent_percent", f->wait_recent);
	set_whole(o, "samples", p->samples);
	set_number(o, "samples_per_s", f->samples_rate);
	set_number(o, "samples_recent_per_s", f->samples_recent);
	set_whole(o, "read_samples", p->read_samples);
	set_whole(o, "read_bytes", p->read_bytes);
	set_number(o, "read_samples_recent_per_s", f->read_samples_recent);
	set_number(o, "read_bytes_recent_per_s", f->read_recent);
}

static void ranks_json(json_t *o, const struct run_progress *p, const struct live_figures *f)
{
	static const char *const source[] = {
		[DEVICE_UNKNOWN] = NULL, [DEVICE_DISK] = "disk", [DEVICE_CALLS] = "read_calls"};
	json_t *device = json_object(), *slowest = json_null();

	set_whole(o, "checkpoints_written", p->saves);
	set_number(o, "checkpoints_to_write", NAN);
	if (!p->saves_by_time)
		set_whole(o, "checkpoints_to_write", p->saves_total);
	set_whole(o, "checkpoints_read", p->loads);
	set_whole(o, "checkpoints_to_read", p->loads_total);
	set_whole(o, "ranks", p->ranks);
	set_whole(o, "ranks_here", p->ranks_here);
	set_whole(o, "first_rank", p->first_rank);
	set_text(device, "source", source[f->device]);
	set_text(device, "name", f->device_name[0] ? f->device_name : NULL);
	set_number(device, "read_bytes_per_s", f->device_read);
	set_number(device, "write_bytes_per_s", f->device_write);
	json_object_set_new(o, "device", device);
	if (f->has_slowest) {
		slowest = json_object();
		set_whole(slowest, "rank", f->slow_rank);
		set_number(slowest, "behind_s", f->slow_behind_s);
		set_number(slowest, "exposed_wait_percent", f->slow_wait);
		set_text(slowest, "doing", f->slow_doing);
	}
	json_object_set_new(o, "slowest", slowest);
	set_number(o, "no_step_for_s", f->standing_s);
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

	set_whole(o, "schema", 1);
	set_text(o, "event", status ? "end" : "progress");
	if (status)
		set_text(o, "status", status);
	set_number(o, "unix_s", (double)clock_wall_ns() / 1e9);
	set_number(o, "elapsed_s", (double)p->elapsed_ns / 1e9);
	set_text(o, "phase", live_phase_words[p->phase]);
	set_whole(o, "done", p->done);
	set_whole(o, "total", p->total);
	set_text(o, "unit", p->ranks && !p->training ? "checkpoints" : unit[p->phase]);
	set_number(o, "done_percent", 100 * f->part);
	set_number(o, "left_s", f->left_s);
	set_text(o, "left_from", isnan(f->left_s) ? NULL : f->left_how);
	set_whole(o, "bytes", p->bytes);
	set_number(o, "bytes_per_s", f->bytes_rate);
	set_number(o, "bytes_recent_per_s", f->bytes_recent);
	if (p->training)
		training_json(o, p, f);
	if (p->ranks)
		ranks_json(o, p, f);
	if (dropped)
		set_whole(o, "dropped_before", dropped);
	json_put_dump(out, o, JSON_COMPACT | JSON_REAL_PRECISION(14), JSON_EXACT);
	json_decref(o);
	buf_putc(out, '\n');
}
