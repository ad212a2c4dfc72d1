#include "http/base64.h"

void base64(const void *bytes, size_t n, char *out, size_t size)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = bytes;
	size_t at = 0;

	for (size_t i = 0; i < n && at + 5 <= size; i += 3) {
		unsigned v = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0) |
			     (i + 2 < n ? p[i + 2] : 0);

		out[at++] = digit[v >> 18];
		out[at++] = digit[v >> 12 & 63];
		out[at++] = i + 1 < n ? digit[v >> 6 & 63] : '=';
		out[at++] = i + 2 < n ? digit[v & 63] : '=';
	}
	out[at] = '\0';
}
