/* Any bytes on a client's socket: no crash, nothing read behind them, nothing of them taken that is
 * not there, and no '@' or query in what is kept. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/heard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct heard_text t, const char *data, size_t size)
{
	if (t.n && (t.p < data || t.p + t.n > data + size) && !(t.n == 1 && *t.p == '/'))
		abort();
}

static void check(const struct heard *h, const char *data, size_t size)
{
	if (h->bytes > size || h->first < INT64_MIN / 4 || h->last < -1 || h->whole < -1 ||
	    h->length < -1 || h->status > 999 || h->method >= HEARD_METHODS)
		abort();
	check_text(h->target, data, size);
	check_text(h->host, data, size);
	check_text(h->agent, data, size);
	if (h->target.n && (memchr(h->target.p, '?', h->target.n) ||
			    (*h->target.p != '/' && !(h->flags & HEARD_REST))))
		abort();
	if (h->host.n && memchr(h->host.p, '@', h->host.n))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* in memory of its own, so that nothing is behind it */
	char *copy = malloc(size ? size : 1);
	struct heard h;

	if (size)
		memcpy(copy, data, size);
	heard_sent(copy, size, &h);
	check(&h, copy, size);
	heard_received(copy, size, &h);
	check(&h, copy, size);
	heard_more(copy, size, true, &h);
	check(&h, copy, size);
	heard_more(copy, size, false, &h);
	check(&h, copy, size);
	heard_rest(copy, size, &h);
	check(&h, copy, size);
	free(copy);
	return 0;
}
