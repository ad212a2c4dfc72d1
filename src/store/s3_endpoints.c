#include "store/s3_endpoints.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#define FILE_MAX (1u << 20)
#define SPACE " \t\r\n"

static const char *variable(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

/* Those between separators, without blanks around them. */
static void add_each(struct str_list *out, const char *text, const char *separators, bool comments)
{
	AUTO_FREE char *copy = xstrdup(text);
	char *save = NULL;

	for (char *p = strtok_r(copy, separators, &save); p;
	     p = strtok_r(NULL, separators, &save)) {
		size_t n;

		p += strspn(p, SPACE);
		n = strlen(p);
		while (n && strchr(SPACE, p[n - 1]))
			n--;
		if (n && !(comments && *p == '#'))
			str_list_add(out, xstrndup(p, n));
	}
}

/* A number of at most six digits. */
static bool take_number(const char **at, unsigned *out)
{
	char *end;
	size_t digits = strspn(*at, "0123456789");

	*out = (unsigned)strtoul(*at, &end, 10);
	*at += digits;
	return digits > 0 && digits <= 6;
}

static int add_template(struct str_list *out, const char *text, struct err *e)
{
	const char *open = strchr(text, '{'), *at = open ? open + 1 : NULL;
	unsigned from, to;

	if (!open) {
		str_list_add(out, xstrdup(text));
		return 0;
	}
	if (!take_number(&at, &from) || strncmp(at, "...", 3) != 0 ||
	    (at += 3, !take_number(&at, &to)) || *at != '}' || from > to ||
	    to - from >= S3_ENDPOINTS_MAX)
		return err_set(e, ERR_USAGE,
			       "S3_ENDPOINT_TEMPLATE: '%.200s' has no range such as {1...8}, of at "
			       "most %d numbers",
			       text, S3_ENDPOINTS_MAX);
	for (unsigned i = from; i <= to; i++)
		str_list_add(out, xasprintf("%.*s%u%s", (int)(open - text), text, i, at + 1));
	return 0;
}

static int add_file(struct str_list *out, const char *path, struct err *e)
{
	struct buf text = {0};
	int rc = file_read(path, FILE_MAX, &text, e);

	if (rc < 0 && e)
		err_wrap(e, "S3_ENDPOINT_FILE");
	if (rc >= 0 && text.data)
		add_each(out, text.data, "\n", true);
	buf_release(&text);
	if (rc >= 0 && out->n == 0)
		return err_set(e, ERR_USAGE, "S3_ENDPOINT_FILE: '%.200s' names no endpoint", path);
	return rc < 0 ? rc : 0;
}

int s3_endpoints(const struct s3_options *o, struct str_list *out, struct err *e)
{
	const char *v;

	if (o->endpoints.n) {
		str_list_copy(out, &o->endpoints);
		return 0;
	}
	if ((v = variable("S3_ENDPOINT_URIS")))
		add_each(out, v, ",", false);
	if (out->n)
		return 0;
	if ((v = variable("S3_ENDPOINT_TEMPLATE")))
		return add_template(out, v, e);
	if ((v = variable("S3_ENDPOINT_FILE")))
		return add_file(out, v, e);
	if ((v = variable("AWS_ENDPOINT_URL_S3")) || (v = variable("AWS_ENDPOINT_URL")))
		str_list_add(out, xstrdup(v));
	return 0;
}

int s3_balance(const struct s3_options *o, enum s3_balance *out, struct err *e)
{
	const char *v = variable("S3_LOAD_BALANCE_STRATEGY");

	*out = (enum s3_balance)o->balance;
	if (!v || *out != S3_BY_RANK)
		return 0;
	if (strcmp(v, "round_robin") == 0)
		*out = S3_ROUND_ROBIN;
	else if (strcmp(v, "least_connections") == 0)
		*out = S3_LEAST_BUSY;
	else
		return err_set(e, ERR_USAGE,
			       "S3_LOAD_BALANCE_STRATEGY is '%.100s': it can be round_robin or "
			       "least_connections",
			       v);
	return 0;
}
