#pragma once
/* What an audit found: a list of findings about records, and its renderings. */
#include "readback/record.h"

enum audit_level {
	AUDIT_NOTE, /* correct, and easily misread */
	AUDIT_WARN, /* of limited validity */
	AUDIT_FAIL, /* invalid */
};

struct finding {
	size_t record;  /* index of the record it is about */
	char check[24]; /* "steady", "cache", "dataset", "config", ... as the verdicts of a run */
	enum audit_level level;
	bool about_cache; /* a warning of it means that the page cache served reads */
	char text[900];   /* what, with the figures that show it */
	char advice[400];
};

struct audit {
	const struct run_record *record; /* borrowed; sorted as given */
	size_t records;
	struct finding *finding; /* in the order of the records, worst first within one */
	size_t findings;
};

void audit_release(struct audit *a);
/* The worst finding's level, or -1 when there is none. */
int audit_worst(const struct audit *a);
/* Text for a terminal, and {"results": [{"folder", "findings": [...]}]}. */
void audit_text(const struct audit *a, bool color, struct buf *out);
json_t *audit_json(const struct audit *a);
/* {"check", "level": "note", "warning" or "fail", "text", "advice"} */
json_t *finding_json(const struct finding *f);
