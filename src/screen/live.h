#pragma once
/* Figures of a run under way, from what it tells now and then, and their forms: a panel of lines
 * for a terminal, a line of text, a JSON object. Formulas: docs/metrics.md, "While a run lasts". */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "run/run.h"

#define LIVE_POINTS 256
#define LIVE_POINT_LEAST_NS 200000000
#define LIVE_RECENT_NS 5000000000

struct live_point {
	int64_t t_ns;
	uint64_t bytes, samples, read_samples, read_bytes;
	int64_t train_ns, compute_ns, wait_ns;
};

struct live_device {
	int64_t t_ns;
	uint64_t read_bytes, written_bytes;
};

/* All zeros: nothing was told yet. */
struct live {
	struct live_point point[LIVE_POINTS]; /* a ring, the newest at (points - 1) % LIVE_POINTS */
	uint64_t points;
	struct live_device device[LIVE_POINTS]; /* the same, of moments that differ */
	uint64_t devices;
	enum progress_phase phase;
	uint64_t moved_done; /* the count of steps or files, */
	int64_t moved_ns;    /* and when it was first seen */
};

/* NAN: not known. */
struct live_figures {
	double part; /* done, 0 to 1 */
	double au, au_recent;
	double wait, wait_recent; /* percent of training time */
	double samples_rate, bytes_rate, samples_recent, bytes_recent; /* a second */
	double read_samples_recent, read_recent; /* by the workers: samples and bytes a second */
	bool filling; /* no step has ended: the first batches are being read */
	enum device_source device;
	char device_name[64];             /* of DEVICE_DISK; "" otherwise */
	double device_read, device_write; /* bytes a second, recent */
	double left_s;
	char left_how[96];
	/* of the ranks here; only where there are several */
	bool has_slowest;
	uint32_t slow_rank;
	double slow_behind_s; /* waiting and computing, more than the mean */
	double slow_wait;     /* percent of its training time */
	const char *slow_doing;
	double standing_s; /* since the last step ended, when that is unusually long; else NAN */
};

/* Takes in what was told at `now_ns`. */
void live_add(struct live *l, const struct run_progress *p, int64_t now_ns);
/* p: the same as of the last live_add; its array of ranks may be NULL: then the slowest is left as
 * it is in `f`. */
void live_figures(const struct live *l, const struct run_progress *p, int64_t now_ns,
		  struct live_figures *f);
/* Bytes a second that workers read, in `cells` equal parts of the last span_s seconds, the newest
 * last; NAN where nothing is known. The same of AU in percent. */
void live_spark(const struct live *l, int64_t now_ns, double span_s, unsigned cells, double *bytes,
		double *au);

extern const char *const live_phase_words[]; /* "training", by enum progress_phase */
/* Steps and checkpoints of training: one activity, whatever it does at the moment. */
bool live_is_training(enum progress_phase phase);

/* ---- forms ---- */

struct live_style {
	unsigned columns, rows; /* of the terminal; the panel stays below both */
	bool utf8, colour;
	const char *title;
	double target; /* AU to reach, percent; 0: none */
};
/* Lines that each end with a line break, none longer than columns - 1. */
void live_panel(const struct live *l, const struct run_progress *p, const struct live_figures *f,
		int64_t now_ns, const struct live_style *style, struct buf *out);
/* One line of at most 100 bytes, without a line break and without control characters: what matters
 * least is left out where there is no room. */
void live_line(const struct run_progress *p, const struct live_figures *f, struct buf *out);
/* What is left to say of a phase that is over: the same. */
void live_summary(const struct run_progress *p, const struct live_figures *f, struct buf *out);
/* One JSON object and a line break, shorter than 4096 bytes. status: NULL while it goes on. */
void live_json(const struct run_progress *p, const struct live_figures *f, const char *status,
	       uint64_t dropped, struct buf *out);
