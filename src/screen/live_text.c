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

/* ---- a line ---- */

#define LINE_MOST 100

/* In the order in which they are kept where not all have room; what matters most comes first. A
 * part that is left empty does not appear. */
enum part {
	PART_HEAD,
	PART_STANDS, /* that nothing moves is said in any case */
	PART_COUNT,
	PART_READ,
	PART_STANDS_RANK,
	PART_AU,
	PART_READ_RATE,
	PART_LEFT,
	PART_TRAINED,
	PART_SAMPLES,
	PART_RATE,
	PART_WAIT,
	PART_RANKS,
	PART_SLOWEST,
	PART_DEVICE,
	PARTS
};

/* As they are read. */
static const enum part shown[] = {PART_HEAD,      PART_COUNT,  PART_TRAINED, PART_READ,
				  PART_READ_RATE, PART_AU,     PART_STANDS,  PART_STANDS_RANK,
				  PART_SAMPLES,   PART_RATE,   PART_WAIT,    PART_RANKS,
				  PART_SLOWEST,   PART_DEVICE, PART_LEFT};

/* At most LINE_MOST bytes, whatever the figures; frees the parts. */
static void put_parts(struct buf *part, struct buf *out)
{
	bool kept[PARTS] = {false};
	size_t len = 0;

	for (int i = 0; i < PARTS; i++) {
		kept[i] = len + part[i].len <= LINE_MOST;
		len += kept[i] ? part[i].len : 0;
	}
	for (int i = 0; i < PARTS; i++)
		if (kept[shown[i]] && part[shown[i]].len)
			buf_append(out, part[shown[i]].data, part[shown[i]].len);
	for (int i = 0; i < PARTS; i++)
		buf_release(&part[i]);
}

static void of_readers(const struct run_progress *p, const struct live_figures *f, struct buf *part)
{
	char s[32];

	buf_say(&part[PART_READ], ", no step yet: workers read %llu samples, %s",
		(unsigned long long)p->read_samples,
		str_bytes((double)p->read_bytes, s, sizeof(s)));
	put_rate(&part[PART_READ_RATE], ", recently ", f->read_recent, "");
}

static void of_ranks(const struct run_progress *p, const struct live_figures *f, struct buf *part)
{
	char s[32];

	if (f->has_slowest && isnan(f->standing_s))
		buf_say(&part[PART_SLOWEST], ", slowest rank %u (%s behind)", f->slow_rank,
			str_seconds(f->slow_behind_s, s, sizeof(s)));
	else if (f->has_slowest) {
		buf_say(&part[PART_STANDS], ", no step for %s",
			str_seconds(f->standing_s, s, sizeof(s)));
		buf_say(&part[PART_STANDS_RANK], ": rank %u %s", f->slow_rank, f->slow_doing);
	}
	if (p->ranks > p->ranks_here)
		buf_say(&part[PART_RANKS], ", ranks %u-%u of %u", p->first_rank,
			p->first_rank + p->ranks_here - 1, p->ranks);
}

static void of_training(const struct run_progress *p, const struct live_figures *f,
			struct buf *part)
{
	bool evaluates = p->phase == PROGRESS_EVAL;

	buf_say(&part[PART_HEAD], "%s, epoch %u/%u",
		evaluates                         ? "Evaluating"
		: p->phase == PROGRESS_CHECKPOINT ? "Checkpoint"
						  : "Training",
		p->epoch, p->epochs);
	buf_printf(&part[PART_COUNT], ", step %llu/%llu",
		   (unsigned long long)(evaluates ? p->epoch_done : p->done),
		   (unsigned long long)(evaluates ? p->epoch_total : p->total));
	if (evaluates)
		buf_printf(&part[PART_TRAINED], "; training step %llu/%llu",
			   (unsigned long long)p->done, (unsigned long long)p->total);
	of_ranks(p, f, part);
	if (f->filling) {
		of_readers(p, f, part);
	} else {
		put_percent(&part[PART_AU], ", AU so far ", f->au);
		put_samples(&part[PART_SAMPLES], ", ", f->samples_recent);
		put_percent(&part[PART_WAIT], ", exposed wait ", f->wait);
	}
	if (f->device == DEVICE_DISK && !isnan(f->device_read))
		put_rate(&part[PART_DEVICE], ", device ", f->device_read, "");
	else if (f->device == DEVICE_CALLS)
		put_rate(&part[PART_DEVICE], ", read calls ", f->device_read, "");
}

static void of_checkpoints(const struct run_progress *p, const struct live_figures *f,
			   struct buf *part)
{
	buf_printf(&part[PART_HEAD], "Checkpoints, written %llu/%llu", (unsigned long long)p->saves,
		   (unsigned long long)p->saves_total);
	buf_printf(&part[PART_COUNT], ", read back %llu/%llu", (unsigned long long)p->loads,
		   (unsigned long long)p->loads_total);
	put_rate(&part[PART_RATE], ", ", f->bytes_rate, "");
	if (f->device == DEVICE_DISK && !isnan(f->device_read)) {
		buf_say(&part[PART_DEVICE], ", %s reads", f->device_name);
		put_rate(&part[PART_DEVICE], " ", f->device_read, "");
		put_rate(&part[PART_DEVICE], ", writes ", f->device_write, "");
	}
}

void live_line(const struct run_progress *p, const struct live_figures *f, struct buf *out)
{
	struct buf part[PARTS] = {0};
	char a[32], b[32];

	if (p->training && p->phase == PROGRESS_PROBE) {
		buf_puts(&part[PART_HEAD], "Probing the storage");
		if (p->probe_total)
			buf_printf(&part[PART_COUNT], ", %u of %u numbers of readers",
				   p->probe_done, p->probe_total);
	} else if (p->training) {
		of_training(p, f, part);
	} else if (p->ranks) {
		of_checkpoints(p, f, part);
	} else if (p->phase == PROGRESS_VERIFY) {
		buf_printf(&part[PART_HEAD], "Verifying %s of %s",
			   str_bytes((double)p->done, a, sizeof(a)),
			   str_bytes((double)p->total, b, sizeof(b)));
		put_rate(&part[PART_RATE], ", ", f->bytes_rate, "");
	} else {
		buf_say(&part[PART_HEAD], "%s %llu/%llu files",
			p->phase == PROGRESS_GENERATE ? "Generating" : "Checking",
			(unsigned long long)p->done, (unsigned long long)p->total);
		if (p->phase == PROGRESS_GENERATE)
			put_rate(&part[PART_RATE], ", ", f->bytes_rate, "");
	}
	if (!isnan(f->left_s))
		buf_say(&part[PART_LEFT], ", %s left", str_seconds(f->left_s, a, sizeof(a)));
	put_parts(part, out);
}

static void training_summary(const struct run_progress *p, const struct live_figures *f,
			     const char *took, struct buf *part)
{
	buf_printf(&part[PART_HEAD], "Trained %llu of %llu steps", (unsigned long long)p->done,
		   (unsigned long long)p->total);
	buf_printf(&part[PART_COUNT], ", epoch %u of %u", p->epoch, p->epochs);
	buf_printf(&part[PART_TRAINED], ", in %s", took);
	put_percent(&part[PART_AU], ": AU so far ", f->au);
	put_samples(&part[PART_SAMPLES], ", ", f->samples_rate);
	put_rate(&part[PART_RATE], ", ", f->bytes_rate, "");
	put_percent(&part[PART_WAIT], ", exposed wait ", f->wait);
	if (p->ranks > p->ranks_here)
		buf_say(&part[PART_RANKS], "; of ranks %u-%u of %u", p->first_rank,
			p->first_rank + p->ranks_here - 1, p->ranks);
}

void live_summary(const struct run_progress *p, const struct live_figures *f, struct buf *out)
{
	struct buf part[PARTS] = {0};
	char s[32], b[32];

	str_seconds((double)p->elapsed_ns / 1e9, s, sizeof(s));
	if (p->training) {
		training_summary(p, f, s, part);
	} else if (p->ranks) {
		buf_printf(&part[PART_HEAD], "Checkpoints written %llu of %llu",
			   (unsigned long long)p->saves, (unsigned long long)p->saves_total);
		buf_printf(&part[PART_COUNT], ", read back %llu of %llu",
			   (unsigned long long)p->loads, (unsigned long long)p->loads_total);
		buf_printf(&part[PART_TRAINED], ", in %s", s);
	} else if (p->phase == PROGRESS_VERIFY) {
		buf_printf(&part[PART_HEAD], "Compared %s in %s",
			   str_bytes((double)p->done, b, sizeof(b)), s);
	} else {
		buf_say(&part[PART_HEAD], "%s %llu of %llu files",
			p->phase == PROGRESS_GENERATE ? "Generated" : "Checked",
			(unsigned long long)(p->done - p->skipped), (unsigned long long)p->total);
		if (p->skipped)
			buf_say(&part[PART_COUNT], ", %llu were there",
				(unsigned long long)p->skipped);
		buf_say(&part[PART_TRAINED], ", in %s", s);
		if (p->phase == PROGRESS_GENERATE && p->bytes) {
			buf_say(&part[PART_SAMPLES], ", %s",
				str_bytes((double)p->bytes, b, sizeof(b)));
			put_rate(&part[PART_RATE], ", ", f->bytes_rate, "");
		}
	}
	put_parts(part, out);
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
