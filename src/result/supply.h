#pragma once
/* Need beside supply: what one accelerator of the workload needs (workload/need.h), what the run
 * measured, and how many accelerators that is enough for. The one source of these figures for the
 * terminal, result.json, the page and tables. */
#include "result/metrics.h"
#include "result/result.h"
#include "workload/need.h"

/* What the measured rate is a rate of. */
enum supply_source {
	SUPPLY_NONE,     /* nothing was measured, or there is no need to compare it with */
	SUPPLY_STORAGE,  /* the storage limited the run: this is what it gave these readers */
	SUPPLY_AT_LEAST, /* computation took 95 % of the time: the storage may feed more */
	SUPPLY_RUN,      /* something else limited the run: the storage may feed more */
	SUPPLY_CACHE,    /* in part or in whole something other than the storage answered */
	SUPPLY_EMULATED, /* a store inside this program */
	SUPPLY_UNKNOWN,  /* it is not known where the bytes came from */
	SUPPLY_SOURCES
};
extern const char *const supply_names[SUPPLY_SOURCES]; /* as in result.json */

struct supply {
	struct need need; /* by the bytes in files of this run's dataset */
	double sample_file_bytes, sample_decoded_bytes; /* mean of a sample; NAN: not known */
	enum dataset_sizes sizes;                       /* how well the former is known */
	uint32_t accelerators;                          /* that the run had */
	double samples;       /* samples/s of all of them, whole run; NAN: none */
	double bytes;         /* bytes/s that requests returned in that time; NAN: not counted */
	double fed;           /* samples / need at 100 %, at most `accelerators`; NAN: not known */
	double fed_at_target; /* the same at the target */
	bool all;             /* whole-run AU reached the target */
	enum supply_source source;
	char instead[64]; /* SUPPLY_CACHE: "the page cache" */
	bool part;        /* SUPPLY_CACHE: only some of the bytes */
	bool loader;      /* SUPPLY_CACHE: but not reading, the work on samples limited the run */
};

/* Of training; of evaluations when the run made nothing else. Measured rates are those of the whole
 * run (nothing excluded), never multiplied from the configuration; r->judged is complete. Without
 * r->dataset all is unknown. */
void supply_find(const struct result *r, const struct run_metrics *m, struct supply *out);

/* What the run fed: "this storage fed 3.0 of 8" (at 100 %), "this storage fed 8 of 8 at 90 %" where
 * the target was reached, "this storage fed at least 8" where accelerators were kept busy, "this
 * run fed 3.0 of 8" where neither the storage nor the cache limited it, "the page cache fed 3.0 of
 * 8", "the storage and the page cache fed 3.0 of 8" where it served a part. "" when SUPPLY_NONE.
 * Returns `out`. */
char *supply_fed_text(const struct supply *s, char *out, size_t out_size);
/* need_text and supply_fed_text in one clause, without a full stop: "2.96 GiB/s (21.7 samples/s) at
 * 100 %, 2.66 at 90 %: this storage fed 3.0 of 8". Without a need only that. Returns `out`. */
char *supply_text(const struct supply *s, char *out, size_t out_size);
/* The same in at most `width` columns, if need be with less of the need: without samples/s, then
 * without the target. */
char *supply_text_within(const struct supply *s, size_t width, char *out, size_t out_size);
