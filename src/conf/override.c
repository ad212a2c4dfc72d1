/* One override as typed: operation, key, value. */
#include "conf/override.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/override_text.h"
#include "conf/utf8.h"

int override_fail(const struct override_text *t, const char *fmt, ...)
{
	size_t n = strlen(t->whole);
	va_list ap;

	if (!t->e)
		return ERR_USAGE;
	va_start(ap, fmt);
	err_vset(t->e, ERR_USAGE, fmt, ap);
	va_end(ap);
	return err_wrap(t->e, "command line: '%.120s%s': column %zu", t->whole,
			n > 120 ? "..." : "", (size_t)(t->at - t->whole) + 1);
}

static int check_utf8(struct override_text *t)
{
	while (*t->at) {
		size_t n = utf8_length(t->at);

		if (n == 0)
			return override_fail(t, "the text is not UTF-8");
		t->at += n;
	}
	t->at = t->whole;
	return 0;
}

static size_t component_length(const char *s)
{
	size_t n = 0;

	if (isdigit((unsigned char)*s)) {
		while (isdigit((unsigned char)s[n]))
			n++;
		return *s == '0' ? 1 : n;
	}
	while (isalpha((unsigned char)s[n]) || s[n] == '_' || s[n] == '$' ||
	       (n && (isdigit((unsigned char)s[n]) || s[n] == '-')))
		n++;
	return n;
}

static int read_key(struct override_text *t, char **out)
{
	const char *start = t->at;
	int parts = 0;

	for (;;) {
		size_t n = component_length(t->at);

		if (n == 0 && t->at == start)
			return override_fail(
				t, "a key such as workload.reader.batch_size is expected");
		if (n == 0)
			return override_fail(t, "a part of the key is missing or starts with a "
						"character that no key has");
		if (++parts > NODE_DEPTH_MAX)
			return override_fail(t, "the key has more than %d parts", NODE_DEPTH_MAX);
		t->at += n;
		if (*t->at == '\0' || *t->at == '=')
			break;
		if (!strchr("./@", *t->at))
			return override_fail(t, "'%c' cannot be part of a key", *t->at);
		t->at++;
	}
	*out = xstrndup(start, (size_t)(t->at - start));
	return 0;
}

static enum override_op read_op(struct override_text *t)
{
	if (*t->at == '~') {
		t->at++;
		return OVERRIDE_DELETE;
	}
	if (*t->at != '+')
		return OVERRIDE_SET;
	t->at++;
	if (*t->at != '+')
		return OVERRIDE_ADD;
	t->at++;
	return OVERRIDE_FORCE;
}

static int read_override(struct override_text *t, struct override *o)
{
	int rc = check_utf8(t);

	if (rc != 0)
		return rc;
	o->op = read_op(t);
	rc = read_key(t, &o->key);
	if (rc != 0)
		return rc;
	if (*t->at == '=') {
		t->at++;
		return override_read_value(t, &o->value);
	}
	if (o->op != OVERRIDE_DELETE)
		return override_fail(t, "'=' is missing: write %.60s=VALUE", t->whole);
	return 0;
}

int override_parse(const char *text, struct override *out, struct err *e)
{
	struct override_text t = {.whole = text, .at = text, .e = e};
	int rc;

	*out = (struct override){.text = xstrdup(text)};
	rc = read_override(&t, out);
	if (rc != 0)
		override_release(out);
	return rc;
}

void override_release(struct override *o)
{
	free(o->key);
	node_free(o->value);
	free(o->text);
	*o = (struct override){0};
}
