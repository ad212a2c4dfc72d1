#pragma once
/* What a phase lost because threads of the run had no processor, and who had it. */
#include <stdbool.h>
#include <stddef.h>

#include "result/result.h"

enum cpu_taker {
	CPU_TAKEN_BY_NOBODY, /* or it is not known by whom */
	CPU_TAKEN_BY_SELF,   /* threads of the run waited for each other */
	CPU_TAKEN_BY_OTHERS, /* other programs */
	CPU_TAKEN_BY_QUOTA,  /* of a control group */
	CPU_STOPPED,         /* the process stood still */
	CPU_FROZEN           /* a thread did */
};

#define CPU_LOSS_SPOILS 0.25 /* of the time of a phase: the result describes the machine */

struct cpu_loss {
	bool measured; /* there was the phase, and its counters were read */
	bool known;    /* the kernel says how long threads waited */
	enum cpu_taker taker;
	double wall_s;     /* of the phase */
	double lost_s;     /* of that, on the way that took longest: threads had no processor */
	double lost_share; /* lost_s of wall_s */
	/* Of the process that waited longest, or stood still. */
	uint32_t process;
	double waited_s;                /* all its threads */
	double wanted_share;            /* of the time in which they could have run */
	double processors;              /* that it may use: of its mask, or its quota */
	double own_share, others_share; /* of the processors of its mask; NAN: not known */
	double steal_share;             /* the hypervisor's; NAN: not known */
	double quota;                   /* of the group that was throttled; 0: none */
	bool quota_of_threads;          /* not the process is in that group */
	double periods, throttled;      /* of that group */
	double stopped_s, frozen_s;
	uint32_t stops;
	char frozen_thread[16];
	int allowed, online, nice;
	bool idle_class;
};

/* Whether so much was lost to others, a quota or an interruption that the phase describes this
 * machine, not the storage: what is left is no better, because requests end late too when those who
 * wait for them, or the threads that wake them, have no processor. */
bool cpu_loss_spoils(const struct cpu_loss *l);
/* Over the training of the finished epochs, or their evaluations. */
void cpu_loss_of(const struct result *r, bool eval, struct cpu_loss *out);
/* Who had the processors, with the figures; false where that is not known. */
bool cpu_loss_fact(const struct result *r, const struct cpu_loss *l, struct fact *out);
