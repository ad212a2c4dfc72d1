/* Any bytes as text for people: what comes out is UTF-8 on one line without control characters,
 * stays as it is when it is escaped again, and shows nothing else where nothing was to be escaped.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *s, size_t n)
{
	size_t used;

	for (size_t at = 0; at < n; at += used) {
		uint32_t c;

		used = utf8_decode(s + at, n - at, &c);
		if (used == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) ||
		    (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	struct buf once = {0}, twice = {0};
	char room[17];
	size_t n;

	buf_put_said(&once, s, size, SAY_LINE);
	check(once.data, once.len);
	buf_put_said(&twice, once.data, once.len, SAY_LINE);
	if (twice.len != once.len || (once.len && memcmp(once.data, twice.data, once.len) != 0))
		abort();
	if (once.len < size)
		abort();
	n = say_escape(room, sizeof(room), s, size, SAY_LINE);
	check(room, n);
	if (n >= sizeof(room) || memcmp(room, once.data, n) != 0)
		abort();
	buf_reset(&once);
	buf_say(&once, "%.*s|%-9.4s", (int)(size < 99 ? size : 99), size ? s : "", room);
	check(once.data, once.len);
	buf_release(&once);
	buf_release(&twice);
	return 0;
}
