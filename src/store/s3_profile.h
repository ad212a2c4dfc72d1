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
	bool plain;    /* a whole object is asked for without a range */
	bool if_match; /* later ranges name the ETag */
	int retries;
	uint64_t put_bytes, put_part; /* larger objects go in parts */
	unsigned put_parts;           /* in flight */
};

#define S3_NATIVE 0 /* its place: what the keys of the store say */

extern const struct s3_profile s3_profiles[];
extern const char *const s3_profile_names[]; /* NULL-terminated */
