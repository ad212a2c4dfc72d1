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
	/* Reads of at least split_from bytes are split: into parts of `part` bytes, of `large_part`
	 * where they are larger than large_from; `ranges` of them are under way (0: as many as
	 * there are processors, at least 4). */
	uint64_t split_from, part, large_from, large_part;
	unsigned ranges;
	bool plain;       /* a whole object that is not split is asked for without a range */
	bool first_alone; /* the parts follow when the first one has come */
	bool if_match;    /* later ranges name the ETag */
	int retries;
	uint64_t put_bytes, put_part; /* larger objects go in parts */
	unsigned put_parts;           /* in flight */
	double bytes_s;               /* known as the most of one process; 0: not known */
};

#define S3_NATIVE 0 /* its place: what the keys of the store say */

extern const struct s3_profile s3_profiles[];
extern const char *const s3_profile_names[]; /* NULL-terminated */
