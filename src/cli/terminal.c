#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/signals.h"

static const char *environment(const char *name)
{
	const char *v = getenv(name);

	return v ? v : "";
}

bool terminal_can_draw(int fd)
{
	const char *term = environment("TERM");

	return isatty(fd) && *term && strcmp(term, "dumb") != 0;
}

static bool locale_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (int i = 0; i < 3; i++) {
		const char *v = environment(names[i]);

		if (*v)
			return strcasestr(v, "UTF-8") || strcasestr(v, "utf8");
	}
	return false;
}

void terminal_init(struct terminal *t, int fd)
{
	const char *term = environment("TERM");
	bool inside = *environment("TMUX") != '\0';

	*t = (struct terminal){.fd = fd,
			       .utf8 = locale_is_utf8(),
			       .colour = *environment("NO_COLOR") == '\0',
			       .continued = signals_continued()};
	/* these two cut lines off */
	t->reflows = strcmp(term, "linux") != 0 && (inside || !*environment("XTERM_VERSION"));
}

void terminal_release(struct terminal *t)
{
	free(t->length);
	*t = (struct terminal){.fd = -1, .broken = true};
}

static unsigned from_environment(const char *name, unsigned otherwise)
{
	uint64_t v;

	return str_to_u64(environment(name), &v) && v >= 1 && v <= 10000 ? (unsigned)v : otherwise;
}

void terminal_size(const struct terminal *t, unsigned *columns, unsigned *rows)
{
	struct winsize w = {0};

	if (ioctl(t->fd, TIOCGWINSZ, &w) != 0)
		w = (struct winsize){0};
	*columns = w.ws_col ? w.ws_col : from_environment("COLUMNS", 80);
	*rows = w.ws_row ? w.ws_row : from_environment("LINES", 24);
}

bool terminal_ready(const struct terminal *t)
{
	struct pollfd p = {.fd = t->fd, .events = POLLOUT};
	pid_t front;

	if (t->broken)
		return false;
	/* in the background; -1: not this session's terminal, which nobody guards */
	front = tcgetpgrp(t->fd);
	if (front > 0 && front != getpgrp())
		return false;
	return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

unsigned terminal_columns(const char *text, size_t n)
{
	unsigned columns = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\033') {
			while (i < n && text[i] != 'm')
				i++;
			continue;
		}
		columns += (c & 0xc0) != 0x80;
	}
	return columns;
}

static void put(struct terminal *t, const struct buf *b)
{
	for (size_t done = 0; done < b->len;) {
		ssize_t n = write(t->fd, b->data + done, b->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			t->broken = true;
			return;
		}
		done += (size_t)n;
	}
}

/* Rows that a line takes now that the terminal may have another width. */
static unsigned rows_of(const struct terminal *t, unsigned length, unsigned columns)
{
	return t->reflows && length > columns ? (length + columns - 1) / columns : 1;
}

static unsigned rows_of_all(const struct terminal *t, unsigned columns)
{
	unsigned rows = 0;

	for (unsigned i = 0; i < t->ghosts; i++)
		rows += rows_of(t, t->ghost[i], columns);
	for (unsigned i = 0; i < t->lines; i++)
		rows += rows_of(t, t->length[i], columns);
	return rows;
}

/* Of the ghosts and the block, what lies in the first `out` rows stays behind as ghosts. */
static void leave_ghosts(struct terminal *t, unsigned out, unsigned columns)
{
	unsigned ghost[sizeof(t->ghost) / sizeof(t->ghost[0])], n = 0;
	unsigned all = t->ghosts + t->lines;

	for (unsigned i = 0; i < all && out > 0 && n < sizeof(ghost) / sizeof(ghost[0]); i++) {
		unsigned length = i < t->ghosts ? t->ghost[i] : t->length[i - t->ghosts];
		unsigned rows = rows_of(t, length, columns);

		ghost[n++] = rows > out ? out * columns : length;
		out -= rows > out ? out : rows;
	}
	memcpy(t->ghost, ghost, n * sizeof(ghost[0]));
	t->ghosts = n;
}

static void add_block(struct terminal *t, struct buf *out, const struct buf *block)
{
	const char *at = block->data, *end = at + block->len;

	t->lines = 0;
	while (block->len && at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at);

		if (t->lines == t->capacity) {
			t->capacity = t->capacity ? 2 * t->capacity : 32;
			t->length = xrealloc(t->length, t->capacity * sizeof(*t->length));
		}
		t->length[t->lines++] = terminal_columns(at, n);
		buf_append(out, at, n);
		buf_puts(out, "\033[K\r\n");
		at += n + 1;
	}
}

void terminal_draw(struct terminal *t, const struct buf *above, const struct buf *block)
{
	unsigned columns, rows, up, continued = signals_continued();
	struct buf out = {0};

	if (t->broken)
		return;
	/* the shell has the lines below it now */
	if (continued != t->continued)
		t->lines = t->ghosts = 0;
	t->continued = continued;
	terminal_size(t, &columns, &rows);
	up = rows_of_all(t, columns);
	leave_ghosts(t, up > rows - 1 ? up - (rows - 1) : 0, columns);
	buf_puts(&out, "\033[?25l\r");
	if (up)
		buf_printf(&out, "\033[%uA", up);
	if (above && above->len) {
		t->ghosts = 0; /* no longer right above it */
		buf_puts(&out, "\033[J");
		buf_append(&out, above->data, above->len);
	}
	add_block(t, &out, block);
	buf_puts(&out, "\033[J\033[?25h");
	put(t, &out);
	buf_release(&out);
}
