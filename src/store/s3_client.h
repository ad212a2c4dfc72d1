#pragma once
/* Requests to an S3 server: signed, sent over kept connections to one of several endpoints,
 * repeated where that helps, counted. One call is one request with all its repetitions; any number
 * of calls can be under way in one thread. Any number of threads may use one client. */
#include "store/s3_call.h"

extern const char *const s3_kind_names[SERVER_REQUESTS];
extern const char *const s3_retry_names[SERVER_AGAINS];

int s3_client_create(struct s3_client **out, const struct s3_options *o, struct err *e);
void s3_client_destroy(struct s3_client *c);

/* A call of the client's, with its connections; only the first few allocate. */
struct s3_call *s3_call_take(struct s3_client *c);
void s3_call_give(struct s3_call *call);
/* Opens the connection of a call's next request, where it is known which that is. Few threads at a
 * time do: servers refuse thousands at once. 1: it is open, 0: it is not known. */
int s3_call_connect(struct s3_call *call, struct err *e);
void s3_call_begin(struct s3_call *call);
/* As far as it goes without waiting; afterwards it is done or waits: for its connection when it
 * runs, for not_before_ns when it waits. */
void s3_call_step(struct s3_call *call);
/* Until all that were begun are done, or `any` of them is. */
void s3_calls_wait(struct s3_call *const *calls, size_t n, bool any);
/* Begins one and waits for it: its rc. */
int s3_call_run(struct s3_call *call, struct err *e);

/* Appends "/bucket/key" or "/key", encoded; ERR_USAGE for what can be no key, and for a URI of
 * another bucket. "s3://bucket/", leading "/" and "./" are left out, as are the slashes at the end.
 */
int s3_path(const struct s3_client *c, const char *name, struct buf *out, struct err *e);
/* The key of a name, not encoded, in the name. */
const char *s3_key(const struct s3_client *c, const char *name);
