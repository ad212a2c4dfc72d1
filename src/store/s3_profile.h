#pragma once
/* How clients of S3 ask for objects and send them, as data. Pure. */
#include <stdbool.h>
#include <stdint.h>

enum s3_head {
	S3_HEAD_NEVER,
	S3_HEAD_ALWAYS, /* when an object is opened */
	S3_HEAD_LARGE,  /* before reads of at least head_from bytes */
};

struct s3_profile {
	const char *name;
	enum s3_head head;
	uint64_t head_from;
	bool plain; /* a whole object is asked for without a range */
	/* later ranges name the ETag: of whole objects, and of those that are read as files */
	bool if_match, files_if_match;
	int retries;
	uint64_t put_bytes, put_part; /* larger objects go in parts */
	unsigned put_parts;           /* in flight */

	/* Reads of a file object come from a block that is fetched with this much behind what was
	 * asked for (fsspec's readahead cache); 0: each is a request. */
	uint64_t read_ahead;

	/* Whole objects: of those from a size on, ranges of `part` bytes, so many at once: at least
	 * `least`, and more with the processors. By size, ascending; `part` 0 ends it. Smaller ones
	 * are one request. An object whose size is not known is asked for in one request where
	 * there is no row for 0 bytes; else the first range tells it. */
	struct s3_ranges {
		uint64_t from, part;
		unsigned least, per_processor;
	} whole[4];

	/* How DLIO's readers keep objects under way, a worker: prefetch_window of them, of which
	 * `at_once` together (0: all). `chunks`: those of a window are handed out when all have
	 * come. */
	unsigned window, at_once;
	bool chunks, staggers;
	double process_bytes_s; /* known to be reached by one process; 0: not known */
};

struct s3_split {
	uint64_t part; /* UINT64_MAX: all of it */
	unsigned ranges;
};

/* How an object of this size (UINT64_MAX: unknown) is asked for. */
struct s3_split s3_profile_split(const struct s3_profile *p, uint64_t bytes, unsigned processors);
/* The most ranges of one object at once. */
unsigned s3_profile_most_ranges(const struct s3_profile *p, unsigned processors);

#define S3_NATIVE 0 /* its place: what the keys of the store say */

extern const struct s3_profile s3_profiles[];
extern const char *const s3_profile_names[]; /* NULL-terminated */
