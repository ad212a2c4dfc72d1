#include "screen/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"
#include "base/vector.h"
#include "os/signals.h"

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

bool terminal_has_colour(int fd)
{
	/* Open MPI's mpirun gives a process a terminal of its own, wherever the output goes then */
	return terminal_can_draw(fd) && *environment("NO_COLOR") == '\0' &&
	       !getenv("OMPI_COMM_WORLD_SIZE");
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
			       .colour = terminal_has_colour(fd),
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

/* All zeros: it does not say. */
static struct winsize size_of(int fd)
{
	struct winsize w = {0};

	return ioctl(fd, TIOCGWINSZ, &w) == 0 ? w : (struct winsize){0};
}

unsigned terminal_width(int fd)
{
	unsigned columns = size_of(fd).ws_col;

	return columns ? columns : 100;
}

void terminal_size(const struct terminal *t, unsigned *columns, unsigned *rows)
{
	struct winsize w = size_of(t->fd);

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

static void terminal_put(struct terminal *t, const struct buf *b)
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

/* The ghosts and the block, counted as lines of the terminal: the last ghost and the first line of
 * the block may be joined into one. How many there are, and the length of one. */
static unsigned known_lines(const struct terminal *t)
{
	return t->ghosts + t->lines - (t->joined && t->lines);
}

static unsigned known_length(const struct terminal *t, unsigned i)
{
	bool joined = t->joined && t->lines;

	if (i + joined < t->ghosts)
		return t->ghost[i];
	if (i < t->ghosts)
		return t->ghost[i] + t->length[0];
	return t->length[i - t->ghosts + joined];
}

static unsigned rows_of_all(const struct terminal *t, unsigned columns)
{
	unsigned rows = 0;

	for (unsigned i = 0; i < known_lines(t); i++)
		rows += rows_of(t, known_length(t, i), columns);
	return rows;
}

/* What lies in the first `out` rows stays behind as ghosts. */
static void leave_ghosts(struct terminal *t, unsigned out, unsigned columns)
{
	unsigned ghost[sizeof(t->ghost) / sizeof(t->ghost[0])], n = 0;
	bool cut = false;

	for (unsigned i = 0; i < known_lines(t) && out > 0 && n < sizeof(ghost) / sizeof(ghost[0]);
	     i++) {
		unsigned length = known_length(t, i), rows = rows_of(t, length, columns);

		cut = rows > out;
		ghost[n++] = cut ? out * columns : length;
		out -= cut ? out : rows;
	}
	memcpy(t->ghost, ghost, n * sizeof(ghost[0]));
	t->ghosts = n;
	t->joined = cut;
}

static void add_block(struct terminal *t, struct buf *out, const struct buf *block)
{
	const char *at = block->data, *end = block->len ? at + block->len : at;

	t->lines = 0;
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at);

		VECTOR_PUSH(t->length, t->lines, t->capacity, terminal_columns(at, n));
		buf_append(out, at, n);
		buf_puts(out, "\r\n");
		at += n + 1;
	}
}

/* Blanks the block, `up` rows of it, and the cursor's line, and goes to where it began. Row by row
 * from column 0: that also makes tmux forget that a row was the continuation of the one above, and
 * it keeps what "erase below" takes from the top of the screen among the rows scrolled off. */
static void blank(struct buf *out, unsigned up, unsigned rows)
{
	unsigned n = up < rows ? up : rows - 1;

	buf_putc(out, '\r');
	if (up)
		buf_printf(out, "\033[%uA", up);
	for (unsigned i = 0; i < n; i++)
		buf_puts(out, "\033[K\r\n");
	buf_puts(out, "\033[K");
	if (n)
		buf_printf(out, "\033[%uA", n);
}

void terminal_draw(struct terminal *t, const struct buf *above, const struct buf *block)
{
	unsigned columns, rows, up, continued = signals_continued();
	struct buf out = {0};

	if (t->broken)
		return;
	/* the shell has the lines below it now */
	if (continued != t->continued)
		t->lines = t->ghosts = t->joined = 0;
	t->continued = continued;
	terminal_size(t, &columns, &rows);
	up = t->lines;
	if (columns != t->columns || rows != t->rows) {
		/* the cursor is on the last row then, or all of it is in sight */
		up = rows_of_all(t, columns);
		leave_ghosts(t, up > rows - 1 ? up - (rows - 1) : 0, columns);
	}
	t->columns = columns;
	t->rows = rows;
	buf_puts(&out, "\033[?25l");
	blank(&out, up, rows);
	if (above && above->len) {
		/* no longer right above it */
		t->ghosts = 0;
		t->joined = false;
		buf_append(&out, above->data, above->len);
	}
	add_block(t, &out, block);
	buf_puts(&out, "\033[?25h");
	terminal_put(t, &out);
	buf_release(&out);
}

void terminal_line(struct terminal *t, const struct buf *text)
{
	unsigned columns, rows;
	struct buf out = {0};

	if (text ? !terminal_ready(t) : !t->line)
		return;
	terminal_size(t, &columns, &rows);
	buf_puts(&out, "\r\033[K");
	if (text)
		buf_append(&out, text->data,
			   text->len < columns ? text->len : utf8_whole(text->data, columns - 1));
	terminal_put(t, &out);
	buf_release(&out);
	t->line = text != NULL;
}
