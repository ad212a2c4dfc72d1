/* Any bytes as an answer of a server, in pieces whose size the first byte says: no crash, no more
 * taken than there is, and the same answer for any size of the pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/response.h"
#include "http/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The body in chunks, and whether it ended. */
static bool take(const char *text, size_t n, size_t step, struct buf *out, bool *bad)
{
	struct http_chunks c = {0};
	size_t at = 0;

	while (at < n && !c.done) {
		const char *piece;
		size_t piece_n, ask = n - at < step ? n - at : step;
		ssize_t took = http_chunks_take(&c, text + at, ask, &piece, &piece_n, NULL);

		if (took < 0) {
			*bad = true;
			return false;
		}
		if (took == 0 || (size_t)took > ask || piece < text ||
		    piece + piece_n > text + at + took)
			abort();
		buf_append(out, piece, piece_n);
		at += (size_t)took;
	}
	return c.done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct buf whole = {0}, pieces = {0};
	bool bad[2] = {false, false};
	struct http_head h;
	char value[64];
	struct err e;
	ssize_t head;

	if (size < 1)
		return 0;
	size--;
	head = http_head_parse(&h, text, size, &e);
	if (head > (ssize_t)size || head > HTTP_HEAD_MAX)
		abort();
	if (head > 0) {
		if (h.status < 100 || h.status > 999 || h.length > INT64_MAX)
			abort();
		http_head_get(&h, "etag", value, sizeof(value));
		if (http_head_get(&h, "date", value, sizeof(value)))
			http_date(value);
		/* a beginning of it is never an answer of its own, but for what was cut */
		if (http_head_parse(&h, text, (size_t)head - 1, &e) > 0)
			abort();
		text += head;
		size -= (size_t)head;
	}
	if (take(text, size, SIZE_MAX, &whole, &bad[0]) !=
		    take(text, size, data[0] ? data[0] : 1, &pieces, &bad[1]) ||
	    bad[0] != bad[1] || whole.len != pieces.len ||
	    (whole.len && memcmp(whole.data, pieces.data, whole.len) != 0))
		abort();
	buf_release(&whole);
	buf_release(&pieces);
	return 0;
}
