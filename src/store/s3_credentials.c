#include "store/s3_credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define FILE_MAX (1u << 20)

static const char *variable(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

static void forget(void *p, size_t n)
{
	memset(p, 0, n);
	__asm__ volatile("" : : "r"(p) : "memory");
}

void s3_credentials_release(struct s3_credentials *c)
{
	if (c->token)
		forget(c->token, strlen(c->token));
	free(c->token);
	forget(c, sizeof(*c));
}

/* A line break would be another header. */
static bool is_clean(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || (unsigned char)*text == 127)
			return false;
	return true;
}

static int keep(struct s3_credentials *out, const char *access, const char *secret,
		const char *token, const char *where, struct err *e)
{
	if (!is_clean(access) || !is_clean(secret) || (token && !is_clean(token)))
		return err_set(e, ERR_USAGE,
			       "the S3 credentials of %s hold a blank or a control character",
			       where);
	if (strlen(access) >= sizeof(out->access_key) || strlen(secret) >= sizeof(out->secret))
		return err_set(e, ERR_USAGE, "the S3 credentials of %s are too long", where);
	snprintf(out->access_key, sizeof(out->access_key), "%s", access);
	snprintf(out->secret, sizeof(out->secret), "%s", secret);
	out->token = token && *token ? xstrdup(token) : NULL;
	return 0;
}

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r");
	for (n = strlen(s); n && strchr(" \t\r", s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

static int from_text(struct s3_credentials *out, char *text, const char *profile, const char *path,
		     struct err *e)
{
	char *access = NULL, *secret = NULL, *token = NULL, *save = NULL;
	bool here = false, found = false;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value;

		line = trim(line);
		if (*line == '[') {
			char *end = strchr(line, ']');

			if (end)
				*end = '\0';
			here = strcmp(trim(line + 1), profile) == 0;
			found |= here;
			continue;
		}
		value = strchr(line, '=');
		if (!here || *line == '#' || *line == ';' || !value)
			continue;
		*value++ = '\0';
		line = trim(line);
		value = trim(value);
		if (strcmp(line, "aws_access_key_id") == 0)
			access = value;
		else if (strcmp(line, "aws_secret_access_key") == 0)
			secret = value;
		else if (strcmp(line, "aws_session_token") == 0)
			token = value;
	}
	if (!access || !secret)
		return err_set(
			e, ERR_USAGE,
			found ? "the profile '%.100s' of '%.300s' lacks aws_access_key_id or "
				"aws_secret_access_key"
			      : "there is no profile '%.100s' in '%.300s'",
			profile, path);
	return keep(out, access, secret, token, "that file", e);
}

int s3_credentials_find(struct s3_credentials *out, const char *profile, struct err *e)
{
	const char *access = variable("AWS_ACCESS_KEY_ID"),
		   *secret = variable("AWS_SECRET_ACCESS_KEY"), *home = variable("HOME"),
		   *named = variable("AWS_SHARED_CREDENTIALS_FILE");
	bool asked = profile || variable("AWS_PROFILE");
	AUTO_FREE char *path = NULL;
	struct buf text = {0};
	struct err why = {0};
	int rc;

	memset(out, 0, sizeof(*out));
	if (access && secret && !profile)
		return keep(out, access, secret, variable("AWS_SESSION_TOKEN"), "the environment",
			    e);
	if (!profile)
		profile = variable("AWS_PROFILE") ?: "default";
	path = named ? xstrdup(named) : home ? xasprintf("%s/.aws/credentials", home) : NULL;
	rc = path ? file_read(path, FILE_MAX, &text, &why) : -1;
	if (rc >= 0)
		rc = from_text(out, text.data ? text.data : (char[1]){0}, profile, path, &why);
	if (text.data)
		forget(text.data, text.len);
	buf_release(&text);
	if (rc >= 0)
		return 0;
	if (asked || named)
		return err_set(e, ERR_USAGE, "no S3 credentials: %s", why.text);
	return err_set(e, ERR_USAGE,
		       "no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
		       "AWS_PROFILE with a profile in ~/.aws/credentials, or "
		       "storage.storage_options.access_key_id and secret_access_key "
		       "(storage.s3.sign=false sends requests without a signature)");
}
