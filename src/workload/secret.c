#include "workload/secret.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "workload/workload.h"

#define HIDDEN "hidden"

static const struct {
	const char *key, *variable;
} secrets[] = {
	{"access_key_id", "AWS_ACCESS_KEY_ID"},
	{"secret_access_key", "AWS_SECRET_ACCESS_KEY"},
	{"session_token", "AWS_SESSION_TOKEN"},
};
#define SECRETS (sizeof(secrets) / sizeof(secrets[0]))

/* Which of them the last component of a key names, with or without "aws_" before it; SECRETS: none.
 */
static size_t secret_of(const char *key, size_t n)
{
	for (size_t i = 0; i < SECRETS; i++) {
		size_t word = strlen(secrets[i].key);

		if (n == word && strncmp(key, secrets[i].key, word) == 0)
			return i;
		if (n == word + 4 && strncmp(key, "aws_", 4) == 0 &&
		    strncmp(key + 4, secrets[i].key, word) == 0)
			return i;
	}
	return SECRETS;
}

static bool is_hidden(const char *text)
{
	size_t n = strlen(text);

	return n == 0 || (n <= sizeof(HIDDEN) - 1 && strncmp(text, HIDDEN, n) == 0);
}

/* Keys that are given replace those of the environment together, so that none is mixed. */
static void put(const char *const value[SECRETS])
{
	if (value[0] && value[1] && !value[2])
		unsetenv(secrets[2].variable);
	for (size_t i = 0; i < SECRETS; i++)
		if (value[i])
			setenv(secrets[i].variable, value[i], 1);
}

/* A value that a word gives: of a key, or in a map of options, {access_key_id: ..., ...}. */
struct given {
	size_t which;
	char *text; /* its quotes included */
	size_t n;
};

static bool is_of_key(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9');
}

/* The end of a value that begins at `at`: of its quotes, or else before what ends it in a map. */
static size_t length_in_map(const char *at)
{
	size_t n;

	if (*at == '\'' || *at == '"') {
		for (n = 1; at[n] && at[n] != *at; n++)
			if (at[n] == '\\' && at[n + 1])
				n++;
		return n + (at[n] != 0);
	}
	for (n = strcspn(at, ",}"); n > 0 && at[n - 1] == ' '; n--)
		;
	return n;
}

/* The first value of a map at or after `from`; false: there is none. */
static bool next_in_map(char *from, struct given *out)
{
	for (char *colon = from; (colon = strchr(colon, ':')) != NULL; colon++) {
		char *end = colon, *key;

		while (end > from && (end[-1] == ' ' || end[-1] == '\'' || end[-1] == '"'))
			end--;
		for (key = end; key > from && is_of_key(key[-1]); key--)
			;
		out->which = secret_of(key, (size_t)(end - key));
		out->text = colon + 1 + strspn(colon + 1, " ");
		out->n = length_in_map(out->text);
		if (out->which < SECRETS && out->n > 0)
			return true;
	}
	return false;
}

static bool of_key(char *word, struct given *out)
{
	char *equals = strchr(word, '=');
	const char *key;

	if (!equals)
		return false;
	for (key = equals; key > word && key[-1] != '.' && key[-1] != '+'; key--)
		;
	out->which = secret_of(key, (size_t)(equals - key));
	out->text = equals + 1;
	out->n = strlen(out->text);
	return out->which < SECRETS;
}

/* Keeps a value and overwrites it. What is left has its length; `fill` is what follows the word. */
static void take(const struct given *g, char fill, char *value[SECRETS])
{
	char *at = g->text, *text = xstrndup(at, g->n);
	bool quoted = g->n > 1 && (*at == '\'' || *at == '"') && at[g->n - 1] == *at;

	if (!strstr(text, "${") && !is_hidden(text)) {
		free(value[g->which]);
		value[g->which] = quoted ? xstrndup(at + 1, g->n - 2) : xstrdup(text);
		memset(at, fill, g->n);
		memcpy(at, HIDDEN, g->n < sizeof(HIDDEN) - 1 ? g->n : sizeof(HIDDEN) - 1);
	}
	free(text);
}

void secret_hide_words(int argc, char **argv)
{
	char *value[SECRETS] = {0};

	for (int i = 1; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		struct given g;

		if (of_key(argv[i], &g))
			take(&g, 0, value);
		else if (equals && equals[1 + strspn(equals + 1, " ")] == '{')
			for (char *at = equals + 1; next_in_map(at, &g); at = g.text + g.n)
				take(&g, ' ', value);
	}
	put((const char *const *)value);
	for (size_t i = 0; i < SECRETS; i++)
		free(value[i]);
}

/* Whether a word names one of the secrets: as its key, or in a map of options. Others may hold the
 * same text, as a bucket's name does the access key "test". */
static bool names_secret(const char *word)
{
	for (size_t i = 0; i < SECRETS; i++)
		if (strstr(word, secrets[i].key))
			return true;
	return false;
}

/* A whole word that holds the secret, such as a map of options, is not kept. */
static void hide_in_words(struct str_list *words, const char *secret)
{
	for (size_t i = 0; i < words->n; i++) {
		char *equals = strchr(words->v[i], '=');

		if (!equals || !names_secret(words->v[i]) || !strstr(equals, secret))
			continue;
		memset(equals + 1, 0, strlen(equals + 1));
		str_list_add(words, xasprintf("%s" HIDDEN, words->v[i]));
		free(words->v[i]);
		words->v[i] = words->v[--words->n];
	}
}

static void hide_in_map(struct node *map, const char *value[SECRETS], struct str_list *kept)
{
	for (size_t i = 0; map && map->kind == NODE_MAP && i < map->n; i++) {
		size_t which = secret_of(map->key[i], strlen(map->key[i]));
		struct node *v = map->child[i];

		if (which == SECRETS || !v->s || strstr(v->s, "${") || is_hidden(v->s))
			continue;
		str_list_add(kept, xstrdup(v->s));
		value[which] = kept->v[kept->n - 1];
		node_become(v, node_new_str(HIDDEN, v->mark));
	}
}

void secret_take(struct workload *w)
{
	static const char *const maps[] = {"workload.storage", "workload.storage.storage_options"};
	const char *value[SECRETS] = {0}, *unused[SECRETS] = {0};
	struct str_list kept = {0};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		hide_in_map(node_path(w->composed, maps[i]), unused, &kept);
		hide_in_map(node_path(w->tree, maps[i]), value, &kept);
	}
	put(value);
	for (size_t i = 0; i < kept.n; i++) {
		hide_in_words(&w->overrides, kept.v[i]);
		memset(kept.v[i], 0, strlen(kept.v[i]));
	}
	str_list_release(&kept);
}
