#pragma once
/* What a set of runs shows, in sentences, each with the figures it rests on. */
#include "readback/groups.h"

struct key_finding {
	char topic[24]; /* "verdict", "best", "scaling", "factor", "limit" */
	struct buf text;
};

struct key_findings {
	struct key_finding *v;
	size_t n;
};

void key_findings_build(struct key_findings *k, const struct run_groups *g);
void key_findings_release(struct key_findings *k);
