/* Lines of strace. */
#include "trace/strace/strace.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "trace/strace/strace_names.h"

#define S_NS INT64_C(1000000000)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Decimal digits; the end of them. What is too large stays at the greatest. */
static const char *digits(const char *p, int64_t *value)
{
	int64_t v = 0;

	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
			v = INT64_MAX;
	*value = v;
	return p;
}

/* `.123456` as nanoseconds. */
static const char *fraction(const char *p, int64_t *ns)
{
	int64_t unit = S_NS / 10;

	*ns = 0;
	if (*p != '.')
		return p;
	for (p++; is_digit(*p); p++, unit /= 10)
		*ns += (*p - '0') * unit;
	return p;
}

static const char *blanks(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

static struct strace_text between(const char *p, const char *end)
{
	while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return (struct strace_text){p, (size_t)(end - p)};
}

/* ---- the beginning of a line ---- */

static const char *parse_pid(const char *p, struct strace_line *line)
{
	const char *q;

	if (strncmp(p, "[pid", 4) == 0) {
		q = digits(blanks(p + 4), &line->pid);
		if (*q == '<') /* --decode-pids=comm: [pid 1<name>] */
			q += strcspn(q, "]");
		if (*q != ']')
			line->pid = -1;
		return *q == ']' ? blanks(q + 1) : p;
	}
	if (!is_digit(*p))
		return p;
	q = digits(p, &line->pid);
	if (*q == '<')
		q += strcspn(q, ">") + (q[strcspn(q, ">")] == '>');
	if ((*q == ' ' || *q == '\t') && line->pid <= INT32_MAX)
		return blanks(q);
	line->pid = -1;
	return p;
}

static const char *parse_time(const char *p, struct strace_line *line)
{
	int64_t a, b, c, ns;
	const char *q;

	if (!is_digit(*p))
		return p;
	q = digits(p, &a);
	if (*q == ':') {
		if (!is_digit(q[1]))
			return p;
		q = digits(q + 1, &b);
		if (*q != ':' || !is_digit(q[1]))
			return p;
		q = fraction(digits(q + 1, &c), &ns);
		if (a > 23 || b > 59 || c > 60)
			return p;
		line->time_ns = ((a * 60 + b) * 60 + c) * S_NS + ns;
		line->of_day = true;
	} else if (*q == '.') {
		q = fraction(q, &ns);
		if (a > INT64_MAX / S_NS - 1)
			return p;
		line->time_ns = a * S_NS + ns;
	} else {
		return p;
	}
	if (*q != ' ' && *q != '\t') {
		line->time_ns = STRACE_NO_TIME;
		line->of_day = false;
		return p;
	}
	return blanks(q);
}

static int64_t signal_number(const char *name)
{
	size_t n = 0;

	while (is_word(name[n]))
		n++;
	return n > 3 ? strace_signal(name + 3, n - 3) : 0;
}

/* Behind `with`, with which the text begins; NULL: it does not. */
static const char *behind(const char *p, const char *with)
{
	size_t n = strlen(with);

	return strncmp(p, with, n) == 0 ? p + n : NULL;
}

static void parse_remark(const char *p, struct strace_line *line)
{
	const char *q;

	line->kind = STRACE_SIGNAL;
	if ((q = behind(p, "+++ exited with "))) {
		line->kind = STRACE_EXIT;
		digits(q, &line->value);
	} else if ((q = behind(p, "+++ killed by "))) {
		line->kind = STRACE_EXIT;
		line->value = -signal_number(q);
	} else if ((q = behind(p, "+++ superseded by execve in pid "))) {
		line->kind = STRACE_SUPERSEDED;
		digits(q, &line->value);
	}
}

static bool ends_with(const char *p, size_t n, const char *what)
{
	size_t w = strlen(what);

	return n >= w && memcmp(p + n - w, what, w) == 0;
}

void strace_line_parse(const char *text, struct strace_line *line)
{
	const char *p = text, *q = behind(text, "strace: Process ");
	size_t n;

	*line = (struct strace_line){.pid = -1, .time_ns = STRACE_NO_TIME};
	if (q) {
		q = digits(q, &line->value);
		line->kind = behind(q, " attached") ? STRACE_ATTACHED : STRACE_SIGNAL;
		return;
	}
	p = parse_time(parse_pid(blanks(p), line), line);
	n = strlen(p);
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\r'))
		n--;
	line->body = (struct strace_text){p, n};
	if (behind(p, "+++ ") && ends_with(p, n, " +++")) {
		parse_remark(p, line);
		return;
	}
	if (behind(p, "--- ") && ends_with(p, n, " ---")) {
		line->kind = STRACE_SIGNAL;
		return;
	}
	if ((q = behind(p, "<... "))) {
		while (is_word(*q))
			q++;
		line->name = (struct strace_text){p + 5, (size_t)(q - p - 5)};
		q = behind(q, " resumed>");
		if (!q)
			return;
		line->kind = STRACE_RESUMED;
		line->body = (struct strace_text){q, n - (size_t)(q - p)};
		return;
	}
	for (q = p; is_word(*q);)
		q++;
	if (q == p || *q != '(' || is_digit(*p))
		return;
	line->name = (struct strace_text){p, (size_t)(q - p)};
	line->kind = ends_with(p, n, "<unfinished ...>") || ends_with(p, n, "<detached ...>")
			     ? STRACE_UNFINISHED
			     : STRACE_CALL;
}

/* ---- a call ---- */

/* Behind the `"` that closes the string which begins at p; its end where it is not closed. */
static const char *string_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\' && p + 1 < end)
			p++;
	return p < end ? p + 1 : end;
}

/* Behind the `>` of the name beside a descriptor, which begins at p with `<`. Paths have their own
 * < and > escaped; `<char 1:3>` may be inside; addresses of sockets have `->`. */
static const char *beside_end(const char *p, const char *end)
{
	bool path = p + 1 < end && p[1] == '/';
	int depth = 0;

	for (; p < end; p++) {
		if (*p == '<')
			depth++;
		else if (*p == '>' && (path || p[-1] != '-') && --depth == 0)
			return p + 1;
	}
	return end;
}

/* Behind the element that begins at p: a string, a name beside a descriptor, a comment or one
 * character. */
static const char *skip(const char *p, const char *end, bool behind_word)
{
	if (*p == '"')
		return string_end(p, end);
	if (*p == '<' && behind_word && p + 1 < end && p[1] != '<' && p[1] != '=' && p[1] != ' ')
		return beside_end(p, end);
	if (*p == '/' && p + 1 < end && p[1] == '*') {
		const char *q = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);

		return q ? q + 2 : end;
	}
	return p + 1;
}

static void add_arg(struct strace_call *call, const char *from, const char *to)
{
	from = blanks(from);
	if (call->args < STRACE_ARGS && (to > from || call->args))
		call->arg[call->args++] = between(from, to < from ? from : to);
}

/* The `)` that closes the arguments, which are added; NULL: it is missing. */
static const char *parse_args(const char *p, const char *end, struct strace_call *call)
{
	const char *from = p;
	int depth = 0;

	while (p < end) {
		if (depth == 0 && (*p == ',' || *p == ')')) {
			add_arg(call, from, p);
			if (*p == ')')
				return p;
			from = p + 1;
		} else if (*p == '(' || *p == '[' || *p == '{') {
			depth++;
		} else if ((*p == ')' || *p == ']' || *p == '}') && depth) {
			depth--;
		}
		p = skip(p, end, p > from && is_word(p[-1]));
	}
	return NULL;
}

static int64_t error_number(const char *name, size_t n)
{
	int known = strace_error(name, n);

	return known ? known : EIO; /* an error that this system does not have */
}

static int64_t parse_duration(const char *p, const char **end)
{
	const char *q = *end, *after;
	int64_t s, ns;

	while (q > p && q[-1] == ' ')
		q--;
	if (q == p || q[-1] != '>')
		return STRACE_NO_TIME;
	for (q--; q > p && *q != '<';)
		q--;
	if (*q != '<' || !is_digit(q[1]))
		return STRACE_NO_TIME;
	after = fraction(digits(q + 1, &s), &ns);
	if (*after != '>' || s > INT64_MAX / S_NS - 1)
		return STRACE_NO_TIME;
	if (blanks(after + 1) < *end)
		return STRACE_NO_TIME;
	*end = q;
	return s * S_NS + ns;
}

bool strace_call_parse(const char *text, struct strace_call *call)
{
	const char *end = text + strlen(text), *p = strchr(text, '('), *q;

	*call = (struct strace_call){.duration_ns = STRACE_NO_TIME};
	if (!p)
		return false;
	p = parse_args(p + 1, end, call);
	if (!p)
		return false;
	p = blanks(p + 1);
	if (*p != '=')
		return false;
	p = blanks(p + 1);
	call->duration_ns = parse_duration(p, &end);
	call->result_text = between(p, end);
	if (*p == '?' || p >= end)
		return p < end;
	if (!strace_number(call->result_text, &call->result))
		return false;
	call->has_result = true;
	if (call->result != -1)
		return true;
	for (q = p; q < end && *q != ' ';)
		q++;
	q = blanks(q);
	for (p = q; is_word(*p);)
		p++;
	if (*q == 'E')
		call->result = -error_number(q, (size_t)(p - q));
	return true;
}

/* ---- values ---- */

bool strace_number(struct strace_text t, int64_t *value)
{
	bool minus = t.n && *t.p == '-';
	const char *p = t.p + minus, *end = t.p + t.n;
	uint64_t v = 0;
	unsigned base = 10;

	if (p >= end || !is_digit(*p))
		return false;
	if (*p == '0' && p + 1 < end && (p[1] == 'x' || p[1] == 'X')) {
		base = 16;
		p += 2;
	} else if (*p == '0') {
		base = 8;
	}
	for (; p < end; p++) {
		unsigned digit = is_digit(*p)                           ? (unsigned)(*p - '0')
				 : base == 16 && *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a' + 10)
				 : base == 16 && *p >= 'A' && *p <= 'F' ? (unsigned)(*p - 'A' + 10)
									: 99;

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
			v = UINT64_MAX;
	}
	if (base == 10 && v > INT64_MAX)
		v = INT64_MAX;
	*value = minus ? -(int64_t)(v & INT64_MAX) : (int64_t)v;
	return true;
}

static void unescape(const char *p, const char *end, struct buf *out)
{
	static const char letters[] = "abefnrtv", meant[] = "\a\b\033\f\n\r\t\v";

	while (p < end) {
		const char *letter;
		unsigned v = 0;
		int n = 0;

		if (*p != '\\' || p + 1 >= end) {
			buf_putc(out, *p++);
			continue;
		}
		p++;
		if (*p >= '0' && *p <= '7') {
			for (; n < 3 && p < end && *p >= '0' && *p <= '7'; n++)
				v = v * 8 + (unsigned)(*p++ - '0');
		} else if (*p == 'x') {
			for (p++; n < 2 && p < end && isxdigit((unsigned char)*p); n++, p++)
				v = v * 16 +
				    (unsigned)(is_digit(*p) ? *p - '0' : (*p | 32) - 'a' + 10);
		} else {
			letter = strchr(letters, *p);
			v = (unsigned char)(letter && *letter ? meant[letter - letters] : *p);
			p++;
		}
		if (v & 0xff) /* no name holds a NUL */
			buf_putc(out, (char)v);
	}
}

bool strace_descriptor(struct strace_text t, int64_t *fd, struct buf *name, bool *deleted)
{
	static const char cwd[] = "AT_FDCWD", gone[] = "(deleted)";
	const char *p = t.p, *end = t.p + t.n, *close;

	buf_reset(name);
	buf_puts(name, "");
	*deleted = false;
	if (t.n >= sizeof(cwd) - 1 && memcmp(p, cwd, sizeof(cwd) - 1) == 0) {
		*fd = -100;
		p += sizeof(cwd) - 1;
	} else if (strace_number(t, fd)) {
		p += *p == '-';
		while (p < end && is_word(*p))
			p++;
	} else {
		return false;
	}
	if (p >= end || *p != '<')
		return true;
	close = beside_end(p, end);
	if (close[-1] != '>' || close - p < 3)
		return true;
	*deleted = end - close >= (ptrdiff_t)sizeof(gone) - 1 &&
		   memcmp(close, gone, sizeof(gone) - 1) == 0;
	end = close - 1;
	p++;
	if (*p == '/') {
		/* with -yy, what a device is stands behind its path */
		const char *inner = memchr(p, '<', (size_t)(end - p));

		end = inner ? inner : end;
	}
	unescape(p, end, name);
	if (ends_with(name->data, name->len, " (deleted)")) {
		name->len -= sizeof(gone);
		name->data[name->len] = '\0';
		*deleted = true;
	}
	return true;
}

bool strace_string(struct strace_text t, struct buf *out, bool *cut)
{
	const char *end = t.p + t.n, *close;

	buf_reset(out);
	buf_puts(out, "");
	if (!t.n || *t.p != '"')
		return false;
	close = string_end(t.p, end);
	*cut = close < end && *close == '.';
	if (close - t.p < 2 || close[-1] != '"')
		return false;
	unescape(t.p + 1, close - 1, out);
	return true;
}

bool strace_has(struct strace_text t, const char *word)
{
	size_t n = strlen(word);
	const char *p = t.p, *end = t.p + t.n;

	while (p < end) {
		const char *q = p;

		while (q < end && is_word(*q))
			q++;
		if ((size_t)(q - p) == n && memcmp(p, word, n) == 0)
			return true;
		p = q < end && q == p ? skip(p, end, false) : q;
	}
	return false;
}

bool strace_field(struct strace_text t, const char *key, int64_t *value)
{
	size_t n = strlen(key);

	for (const char *p = t.p, *end = t.p + t.n; p < end;
	     p = skip(p, end, p > t.p && is_word(p[-1])))
		if ((size_t)(end - p) > n && p[n] == '=' && memcmp(p, key, n) == 0 &&
		    (p == t.p || !is_word(p[-1])))
			return strace_number(
				(struct strace_text){p + n + 1, (size_t)(end - p) - n - 1}, value);
	return false;
}

bool strace_iov_bytes(struct strace_text t, int64_t *bytes)
{
	static const char key[] = "iov_len=", more[] = "...]";
	const char *end = t.p + t.n;

	*bytes = 0;
	for (const char *p = t.p; p < end; p = skip(p, end, p > t.p && is_word(p[-1]))) {
		int64_t n;

		if ((size_t)(end - p) >= sizeof(more) - 1 && memcmp(p, more, sizeof(more) - 1) == 0)
			return false;
		if ((size_t)(end - p) < sizeof(key) || memcmp(p, key, sizeof(key) - 1))
			continue;
		p += sizeof(key) - 1;
		if (!strace_number((struct strace_text){p, (size_t)(end - p)}, &n) || n < 0 ||
		    __builtin_add_overflow(*bytes, n, bytes))
			return false;
	}
	return t.n && *t.p == '[';
}

bool strace_element(struct strace_text t, size_t *at, struct strace_text *element)
{
	const char *end = t.p + t.n, *from, *p;
	int depth = 0;

	if (*at == 0) {
		if (!t.n || *t.p != '[')
			return false;
		*at = 1;
	}
	if (*at >= t.n || t.p[*at - 1] == ']')
		return false;
	from = p = t.p + *at;
	while (p < end && (depth || (*p != ',' && *p != ']'))) {
		depth += *p == '[' || *p == '{' || *p == '(';
		depth -= *p == ']' || *p == '}' || *p == ')';
		p = skip(p, end, p > from && is_word(p[-1]));
	}
	if (p >= end) {
		*at = t.n;
		return false;
	}
	*at = (size_t)(p - t.p) + 1;
	from = blanks(from);
	*element = between(from, p < from ? from : p);
	return true;
}
