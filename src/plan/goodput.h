#pragma once
/* Checkpoints and goodput: how often a job that fails should write, what share of its time is left
 * for training, and how fast the storage must take a checkpoint. All pure. Seconds and bytes.
 *
 *   S  bytes of a checkpoint          B  rate at which it is written
 *   C  training stands still for one checkpoint: S / B, or the copy to host memory when the
 *      write goes on beside training
 *   M  mean time between failures of the job: that of one accelerator / accelerators
 *   R  from a failure until training goes on: detection, restart, reading S
 *   T  training between two checkpoints
 *
 * Failures are independent and come at a constant rate (exponential times between them). */
#include <stdbool.h>

/* Mean time between failures of one accelerator where nothing is said, in hours: the figure that
 * MLCommons uses (50,000 h: one failure every half hour at 100,000 accelerators). Llama 3 405B had
 * 466 interruptions in 54 days on 16,384 H100: 45,600 h. */
#define GOODPUT_MTBF_HOURS 50000.0
/* Seconds from a failure until a restarted job reads its checkpoint, where nothing is said: an
 * assumption, not a measurement. */
#define GOODPUT_RESTART_S 300.0
/* Bytes of a checkpoint for each parameter: weights in bf16 (2), a copy in fp32 (4), two moments
 * of Adam (4 + 4). */
#define GOODPUT_PARAMETER_BYTES 14.0

/* sqrt(2 C M) (Young 1974). */
double goodput_young(double c, double m);
/* sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18M) - C for C < 2M, else M (Daly 2006, eq. 37). */
double goodput_daly(double c, double m);
/* C + sqrt(2 (M + R) C + C^2): best availability (arXiv 2410.18124). */
double goodput_availability(double c, double r, double m);
/* The share of time that trains: T / (M e^(R/M) (e^((T + C)/M) - 1)), exact for exponential
 * failures, which may also come while a checkpoint is written or read (Daly 2006, eq. 20). 0 where
 * it underflows. */
double goodput_share(double t, double c, double r, double m);
/* The T with the greatest share: M (1 + W(-e^(-1 - C/M))), W the principal branch of Lambert's
 * function, which solves (1 - T/M) e^((T + C)/M) = 1. It does not depend on R. */
double goodput_best(double c, double m);

struct goodput_input {
	double accelerators;
	double bytes;      /* S */
	double write_rate; /* B; NAN: not known */
	double read_rate;  /* NAN: as write_rate */
	double pause_s;    /* C of an asynchronous checkpoint; NAN: synchronous, S / B */
	double interval_s; /* the T that is asked about; NAN */
	double loss;       /* target, 0 to 1; NAN */
	double restart_s, mtbf_one_s;
	/* A first level, such as local NVMe; NAN: none. `local_share` of failures leave it whole.
	 */
	double local_rate, local_share;
};

/* Of one T. */
struct goodput_at {
	double interval_s;
	double share;        /* goodput_share */
	double per_gigabyte; /* what 1e9 bytes/s more of write rate would add to the share */
};

struct goodput {
	double mtbf_s;    /* M */
	double pause_s;   /* C; NAN: no rate is known */
	double write_s;   /* S / B */
	double restart_s; /* R */
	double young_s, daly_s, availability_s;
	struct goodput_at best, asked; /* asked.interval_s is NAN without one */
	/* An asynchronous write must end before the next checkpoint begins, S / B <= T: the
	 * shortest T that allows. A failure before its end goes back to the checkpoint before. */
	double least_interval_s; /* 0: synchronous */
	bool best_is_bound;      /* best.interval_s is that */
	bool asked_waits;        /* the T that is asked about is shorter */
	double read_demand;      /* bytes/s that the write takes beside reading, at best: S / T */
	/* The least rate of writing with which the best interval loses no more than the target, of
	 * the exact share; first order, without restarts, S / C with C = loss^2 M / 2. NAN without
	 * a target, and where none is enough: then `restart_loss` is more, what is lost with any
	 * rate (and with the pause of an asynchronous checkpoint). */
	double needed_rate;
	double restart_loss;
	/* Two levels, each at Young's interval; NAN without. */
	double local_interval_s, shared_interval_s, two_level_share;
};

void goodput_find(const struct goodput_input *in, struct goodput *out);
