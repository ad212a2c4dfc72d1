/* A store that fails where it is told to: for testing that every failure ends in a sentence. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "store/store.h"

enum fault_op {
	FAULT_ANY,
	FAULT_OPEN,
	FAULT_READ,
	FAULT_WRITE,
	FAULT_SYNC,
	FAULT_CLOSE,
	FAULT_STAT,
	FAULT_RENAME,
	FAULT_REMOVE,
	FAULT_MKDIR,
	FAULT_LIST,
};

static const char *const op_names[] = {"any",  "open",   "read",   "write", "sync", "close",
				       "stat", "rename", "remove", "mkdir", "list", NULL};

enum fault_action { ACT_FAIL, ACT_SHORT, ACT_DELAY };

static const char *const action_names[] = {"fail", "short", "delay", NULL};

static const char *const errno_names[] = {
	"EIO",   "ENOSPC", "EINTR",  "EACCES",    "EAGAIN",   "EBADF",     "EBUSY",  "EDQUOT",
	"EFBIG", "EINVAL", "EISDIR", "EMFILE",    "ENFILE",   "ENOENT",    "ENOMEM", "ENOTDIR",
	"EPERM", "EROFS",  "ESTALE", "ETIMEDOUT", "ENOTCONN", "EREMOTEIO", NULL};
static const int errno_values[] = {EIO,    ENOSPC,    EINTR,    EACCES,   EAGAIN, EBADF,
				   EBUSY,  EDQUOT,    EFBIG,    EINVAL,   EISDIR, EMFILE,
				   ENFILE, ENOENT,    ENOMEM,   ENOTDIR,  EPERM,  EROFS,
				   ESTALE, ETIMEDOUT, ENOTCONN, EREMOTEIO};

_Static_assert(sizeof(errno_names) / sizeof(errno_names[0]) ==
		       sizeof(errno_values) / sizeof(errno_values[0]) + 1,
	       "one name for each value");

struct fault_config {
	int op;
	int action;
	int errno_index;
	int64_t nth, count;
	char *path;
	double delay;
};

static const struct opt fault_options[] = {
	STORE_OPTION("op", struct fault_config, op, OPT_ENUM, int, "any",
		     "Which calls are counted: open, read, write, sync (files and folders), close, "
		     "stat, rename, remove, mkdir, list, or any.",
		     .choices = op_names),
	STORE_OPTION(
		"nth", struct fault_config, nth, OPT_I64, int64_t, "0",
		"The first call that is affected, counted from 1 over all threads; 0 affects none.",
		.max = 9e18),
	STORE_OPTION("count", struct fault_config, count, OPT_I64, int64_t, "1",
		     "How many consecutive calls are affected from the nth on; 0: all that follow.",
		     .max = 9e18, .unit = "calls"),
	STORE_OPTION("action", struct fault_config, action, OPT_ENUM, int, "fail",
		     "fail: the call has no effect and returns the error. short: a read returns "
		     "half of what was requested; a write stores half and returns the error; other "
		     "calls are not affected. delay: the call takes 'delay' seconds longer.",
		     .choices = action_names),
	STORE_OPTION("errno", struct fault_config, errno_index, OPT_ENUM, int, "EIO",
		     "The error that is returned.", .choices = errno_names),
	STORE_OPTION("path", struct fault_config, path, OPT_STR, char *, NULL,
		     "Only calls on paths that contain this text are counted."),
	STORE_OPTION("delay", struct fault_config, delay, OPT_F64, double, "0",
		     "How much longer an affected call takes with action delay.", .max = 1e6,
		     .unit = "s"),
};

struct fault_store {
	struct store base;
	enum fault_op op;
	enum fault_action action;
	int errnum;
	uint64_t nth, count;
	char *path;
	int64_t delay_ns;
	_Atomic uint64_t calls;
};

struct fault_blob {
	struct blob base;
	bool watched; /* its path is one that is counted */
};

static struct fault_store *of(struct store *s)
{
	return (struct fault_store *)s;
}

static int fault_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	const struct fault_config *c = config;
	struct fault_store *f;

	(void)lower;
	if (c->action == ACT_SHORT && c->op != FAULT_ANY && c->op != FAULT_READ &&
	    c->op != FAULT_WRITE)
		return err_set(e, ERR_USAGE,
			       "storage.fault: action 'short' affects only reads and writes, so op "
			       "'%s' would do nothing; set op to read, write or any",
			       op_names[c->op]);
	f = xcalloc(1, sizeof(*f));
	f->op = (enum fault_op)c->op;
	f->action = (enum fault_action)c->action;
	f->errnum = errno_values[c->errno_index];
	f->nth = (uint64_t)c->nth;
	f->count = (uint64_t)c->count;
	f->path = c->path && *c->path ? xstrdup(c->path) : NULL;
	f->delay_ns = (int64_t)(c->delay * (double)NS_PER_S);
	*out = &f->base;
	return 0;
}

static void fault_destroy(struct store *s)
{
	free(of(s)->path);
	free(s);
}

static bool watches(const struct fault_store *f, const char *path)
{
	return !f->path || strstr(path, f->path);
}

/* Counts a call on a watched path. The number of the call when it is to be disturbed, else 0. */
static uint64_t call_hit(struct fault_store *f, enum fault_op op, bool watched)
{
	uint64_t call;

	if (f->nth == 0 || !watched || (f->op != FAULT_ANY && f->op != op))
		return 0;
	call = atomic_fetch_add_explicit(&f->calls, 1, memory_order_relaxed) + 1;
	if (call < f->nth || (f->count && call - f->nth >= f->count))
		return 0;
	return call;
}

static int fail_call(const struct fault_store *f, enum fault_op op, uint64_t call, const char *path,
		     struct err *e)
{
	if (path)
		return err_sys(e, f->errnum, "cannot %s '%s' (the fault store fails call %llu)",
			       op_names[op], path, (unsigned long long)call);
	return err_sys(e, f->errnum, "%s failed (the fault store fails call %llu)", op_names[op],
		       (unsigned long long)call);
}

/* For calls that succeed or fail as a whole: negative when this one fails. */
static int disturb(struct fault_store *f, enum fault_op op, bool watched, const char *path,
		   struct err *e)
{
	uint64_t call = call_hit(f, op, watched);

	if (call && f->action == ACT_DELAY)
		clock_sleep_until(clock_now_ns() + f->delay_ns);
	if (call && f->action == ACT_FAIL)
		return fail_call(f, op, call, path, e);
	return 0;
}

static int disturb_blob(struct blob *b, enum fault_op op, struct err *e)
{
	return disturb(of(b->store), op, ((struct fault_blob *)b)->watched, NULL, e);
}

static int disturb_path(struct store *s, enum fault_op op, const char *path, struct err *e)
{
	return disturb(of(s), op, watches(of(s), path), path, e);
}

static int fault_open(struct store *s, const char *path, unsigned how, struct blob *b,
		      struct err *e)
{
	int rc = disturb_path(s, FAULT_OPEN, path, e);

	((struct fault_blob *)b)->watched = watches(of(s), path);
	return rc < 0 ? rc : store_open(s->lower, path, how, store_blob_below(b), e);
}

static int fault_close(struct blob *b, struct err *e)
{
	struct err first;
	int rc = disturb_blob(b, FAULT_CLOSE, &first);
	/* the blob below ends in any case, as after a real close that failed */
	int below = store_close(store_blob_below(b), rc < 0 ? NULL : e);

	if (rc < 0 && e)
		*e = first;
	return rc < 0 ? rc : below;
}

static ssize_t fault_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct fault_store *f = of(b->store);
	uint64_t call = call_hit(f, FAULT_READ, ((struct fault_blob *)b)->watched);

	if (call && f->action == ACT_DELAY)
		clock_sleep_until(clock_now_ns() + f->delay_ns);
	if (call && f->action == ACT_FAIL)
		return fail_call(f, FAULT_READ, call, NULL, e);
	if (call && f->action == ACT_SHORT)
		n /= 2;
	return store_pread(store_blob_below(b), p, n, offset, e);
}

static ssize_t fault_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	struct fault_store *f = of(b->store);
	uint64_t call = call_hit(f, FAULT_WRITE, ((struct fault_blob *)b)->watched);

	if (call && f->action == ACT_DELAY)
		clock_sleep_until(clock_now_ns() + f->delay_ns);
	if (call && f->action == ACT_SHORT) {
		ssize_t w = store_pwrite(store_blob_below(b), p, n / 2, offset, e);

		return w < 0 ? w : fail_call(f, FAULT_WRITE, call, NULL, e);
	}
	if (call && f->action == ACT_FAIL)
		return fail_call(f, FAULT_WRITE, call, NULL, e);
	return store_pwrite(store_blob_below(b), p, n, offset, e);
}

static int fault_sync(struct blob *b, struct err *e)
{
	int rc = disturb_blob(b, FAULT_SYNC, e);

	return rc < 0 ? rc : store_sync(store_blob_below(b), e);
}

static int fault_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	int rc = disturb_blob(b, FAULT_STAT, e);

	return rc < 0 ? rc : store_stat_blob(store_blob_below(b), out, e);
}

static int fault_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	int rc = disturb_path(s, FAULT_STAT, path, e);

	return rc < 0 ? rc : store_stat_path(s->lower, path, out, e);
}

static int fault_mkdirs(struct store *s, const char *path, struct err *e)
{
	int rc = disturb_path(s, FAULT_MKDIR, path, e);

	return rc < 0 ? rc : store_mkdirs(s->lower, path, e);
}

static int fault_list(struct store *s, const char *path, store_list_fn fn, void *arg, struct err *e)
{
	int rc = disturb_path(s, FAULT_LIST, path, e);

	return rc < 0 ? rc : store_list(s->lower, path, fn, arg, e);
}

static int fault_list_sizes(struct store *s, const char *path, store_sizes_fn fn, void *arg,
			    struct err *e)
{
	int rc = disturb_path(s, FAULT_LIST, path, e);

	return rc < 0 ? rc : store_list_sizes(s->lower, path, fn, arg, e);
}

static int fault_remove(struct store *s, const char *path, struct err *e)
{
	int rc = disturb_path(s, FAULT_REMOVE, path, e);

	return rc < 0 ? rc : store_remove(s->lower, path, e);
}

static int fault_rename(struct store *s, const char *from, const char *to, struct err *e)
{
	struct fault_store *f = of(s);
	int rc = disturb(f, FAULT_RENAME, watches(f, from) || watches(f, to), from, e);

	return rc < 0 ? rc : store_rename(s->lower, from, to, e);
}

static int fault_sync_dir(struct store *s, const char *path, struct err *e)
{
	int rc = disturb_path(s, FAULT_SYNC, path, e);

	return rc < 0 ? rc : store_sync_dir(s->lower, path, e);
}

const struct store_ops store_fault = {
	.is.name = "fault",
	.is.help = "makes selected calls to the store below ('fault+posix') fail, return less or "
		   "take longer, to see what a failing disk does to a run",
	.is.flags = STORE_IS_SHIM | STORE_EACH_CALL,
	.is.options = fault_options,
	.is.option_count = sizeof(fault_options) / sizeof(fault_options[0]),
	.is.config_bytes = sizeof(struct fault_config),
	.blob_bytes = sizeof(struct fault_blob),
	.create = fault_create,
	.destroy = fault_destroy,
	.open = fault_open,
	.close = fault_close,
	.pread = fault_pread,
	.pwrite = fault_pwrite,
	.sync = fault_sync,
	.stat_blob = fault_stat_blob,
	.stat = fault_stat,
	.mkdirs = fault_mkdirs,
	.list = fault_list,
	.list_sizes = fault_list_sizes,
	.remove = fault_remove,
	.rename = fault_rename,
	.sync_dir = fault_sync_dir,
};
