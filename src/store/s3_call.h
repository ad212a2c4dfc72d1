#pragma once
/* A client of S3 and its calls, as data: what is asked, what came, and what was counted of each
 * endpoint (s3_client.h has what is done with them). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "conf/opt.h"
#include "http/connection.h"
#include "http/sigv4.h"
#include "store/s3_credentials.h"
#include "store/servers.h"

#define S3_ENDPOINTS_MAX 64
#define S3_KEY_MAX 1024                   /* bytes of a key */
#define S3_PATH_MAX (3 * S3_KEY_MAX + 80) /* of "/bucket/key", encoded */
#define S3_ETAG_MAX 80
#define S3_OPENING 4 /* connections that are opened ahead at once, of all threads together */

enum s3_balance { S3_BY_RANK, S3_BY_THREAD, S3_ROUND_ROBIN, S3_LEAST_BUSY };
enum s3_addressing { S3_ADDRESS_AUTO, S3_ADDRESS_PATH, S3_ADDRESS_HOST };

struct s3_options {
	char *bucket, *region, *profile;
	struct str_list endpoints;
	int balance, addressing, client; /* its row of s3_profiles */
	bool sign, head_on_open, stagger_workers;
	int64_t prefetch_window, retries, put_bytes, part_bytes, parts_in_flight, list_page;
	double retry_first, retry_most, connect_time, answer_time, idle_time;
};

/* What was done with one endpoint. All but grow. */
struct s3_counts {
	_Atomic uint64_t requests[SERVER_REQUESTS]; /* answered or failed, without repetitions */
	_Atomic uint64_t failed;
	_Atomic uint64_t sent_again[SERVER_AGAINS];
	_Atomic uint64_t again_ns; /* waited before and lost in tries that were void */
	_Atomic uint64_t body_sent, body_received; /* bytes */
	/* from the end of a request to the first byte of its answer, and to the last one */
	_Atomic uint64_t first_ns, last_ns, first_max_ns, answers;
	_Atomic uint64_t late_ack, beside_ack; /* answers that waited for an acknowledgement */
	_Atomic uint64_t reopened;             /* connections, where one had been lost */
};

struct s3_endpoint {
	struct http_server server;
	char host[URL_HOST_MAX + 128]; /* the Host line: with the bucket, where it is part of it */
	_Atomic unsigned busy;
	struct s3_counts counts;
};

struct s3_client {
	const struct s3_options *options; /* lent */
	enum s3_balance balance;
	bool by_path;
	char bucket_path[80]; /* "/bucket", or "" where it is part of the host */
	pthread_mutex_t lock; /* of what follows */
	struct s3_credentials credentials;
	_Atomic unsigned version; /* of the credentials and the region */
	char region[64];
	struct s3_call *idle;                /* calls that nobody uses */
	pthread_mutex_t opening[S3_OPENING]; /* held while a connection is opened ahead */
	struct s3_endpoint *endpoint[S3_ENDPOINTS_MAX];
	_Atomic unsigned endpoints,
		given; /* given by the user; others are where they redirect to */
	_Atomic unsigned turn;
	_Atomic int64_t skew_s; /* the server's time less ours */
};

enum s3_state { S3_CALL_IDLE, S3_CALL_WAITING, S3_CALL_RUNNING, S3_CALL_DONE };

struct s3_call {
	/* ---- the request, set between s3_call_take and s3_call_begin ---- */
	enum server_request kind;
	const char *path;  /* "/bucket/key", encoded; lent */
	const char *query; /* encoded and sorted, or NULL; lent */
	uint64_t from, n;  /* of a GET: a range; n 0 with `plain`: whatever there is */
	const char *if_match;
	const char *copy_source; /* encoded */
	const void *body;
	size_t body_n;
	bool checked;  /* the body goes with its MD5 */
	void *into;    /* of a GET: n bytes of room */
	size_t sink_n; /* or, when not 0, so many, which are written over: bytes are counted */
	bool plain;    /* a GET of a whole object, without saying the range */
	bool once;     /* not sent again after an error, which is not counted as one */
	/* A GET whose body is taken piece by piece (http_more), of which the first one has `room`
	 * bytes: s3_calls_wait returns when a piece is full, too. After the first piece it is not
	 * sent again. */
	bool piecewise;
	size_t room;

	/* ---- the answer ---- */
	int rc; /* 0, or negative with `err` */
	struct err err;
	int status;
	uint64_t got;    /* bytes of the body in `into` */
	uint64_t length; /* of the object, as HEAD or a range tells it; UINT64_MAX: untold */
	char etag[S3_ETAG_MAX];
	int64_t modified_s;
	struct buf text; /* the body of other answers; kept until the next request */

	/* ---- the client's ---- */
	struct s3_client *client;
	struct s3_endpoint *at;
	unsigned at_index;
	enum s3_state state;
	int64_t begun_ns, not_before_ns, lost_ns;
	unsigned tries, hops;
	bool clock_mended, renewed, reused_again;
	unsigned version;
	char *moved_path, *moved_query; /* after a redirect */
	struct http_exchange x;
	struct http_connection *conn; /* the one in use */
	struct buf head;
	struct sigv4_key key;
	char access_key[256], secret[256], region[64];
	char *token;
	struct s3_call *next;
	void *owner;
	struct http_connection *kept[S3_ENDPOINTS_MAX];
};
