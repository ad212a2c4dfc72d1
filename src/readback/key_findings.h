#pragma once
/* What a set of runs shows, in sentences, each with the figures it rests on. All of them rest on
 * the same runs, those that count (readback/groups.h), and on whole-run AU. */
#include "readback/groups.h"

struct key_finding {
	/* "verdict", "limit", "best", "scaling", "factor", "more", "same", "untested" */
	char topic[24];
	struct buf text;
};

struct key_findings {
	struct key_finding *v;
	size_t n;
};

void key_findings_build(struct key_findings *k, const struct run_groups *g);
void key_findings_release(struct key_findings *k);
