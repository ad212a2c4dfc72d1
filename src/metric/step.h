#pragma once
/* The six times of a step, monotonic ns. Everything reported about a rank is derived from them. */
#include <stdbool.h>
#include <stdint.h>

/* What the worker of a batch did while the rank waited for it (metric/split.h). */
enum wait_part {
	WAIT_START,      /* nothing yet: the epoch's first batch was not begun */
	WAIT_STARVED,    /* its indexes were not sent */
	WAIT_QUEUE,      /* sent, and not begun: the workers were busy with others */
	WAIT_OPEN,       /* opening, metadata */
	WAIT_DATA,       /* payload requests */
	WAIT_DECODE,     /* decoding, checking, copying */
	WAIT_PREPROCESS, /* the emulated transform */
	WAIT_TRANSPORT,  /* read, and on its way to the rank */
	WAIT_FRAMEWORK,  /* the framework's own code ran (framework.costs) */
	WAIT_NO_CPU,     /* ready to run, and without a processor */
	WAIT_OTHER,      /* not known */
	WAIT_PARTS
};

struct step_times {
	int64_t ask_ns; /* the rank asks its loader for a batch */
	int64_t got_ns; /* has it */
	int64_t compute_begin_ns;
	int64_t compute_end_ns; /* the emulated computation is over */
	int64_t barrier_in_ns;
	int64_t barrier_out_ns;    /* equal to barrier_in where the phase has no barrier */
	uint8_t share[WAIT_OTHER]; /* of got - ask, in 1/255; WAIT_OTHER is what is left */
	uint16_t over_compute;     /* of the computation, in 1/65535: beyond what was asked for */
	/* Of its batch, up to 71 minutes: begun until done by its worker; done until the rank had
	 * it. */
	uint32_t service_us, ready_us;
	/* Of the computation and of the barrier, in 1/65535: the rank should have gone on, and had
	 * no processor. */
	uint16_t late_compute, late_barrier;
};

enum phase_kind { PHASE_BLOCK, PHASE_EVAL };

/* A block of training steps (between two checkpoints) or an evaluation, on one rank. */
struct phase {
	enum phase_kind kind;
	uint32_t number;          /* blocks: from 1 within the epoch */
	int64_t begin_ns, end_ns; /* monotonic */
	int64_t begin_wall_ns, end_wall_ns;
	uint64_t first_step; /* of the epoch, from 0 */
	uint64_t steps;
	struct step_times *step; /* `steps` of them */
	bool shared;             /* they lie in the memory of the epoch's first block */
	uint64_t capacity;       /* allocated, before the phase begins */
	uint64_t samples;        /* delivered */
};
