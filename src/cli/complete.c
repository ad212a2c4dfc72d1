/* What may come next on a command line. The options, commands, keys and values are those of the
 * tables. */
#include "cli/complete.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "workload/feature.h"
#include "workload/key.h"
#include "workload/workload.h"

/* What a value or an operand is, by the name that the help has for it. Of others, such as numbers,
 * nothing is known. */
enum kind { KIND_OTHER, KIND_FILE, KIND_FOLDER, KIND_WORKLOAD, KIND_FILTER, KIND_KEY, KIND_SHELL };

static const struct {
	const char *name;
	enum kind kind;
} kinds[] = {
	{"FILE", KIND_FILE},     {"DESIGN.csv", KIND_FILE},      {"LOG", KIND_FILE},
	{"RESULT", KIND_FILE},   {"PROGRAM", KIND_FILE},         {"COMMAND", KIND_FILE},
	{"RUN", KIND_FILE},      {"BASELINE, NEW", KIND_FOLDER}, {"FOLDER", KIND_FOLDER},
	{"DIR", KIND_FOLDER},    {"WORKLOAD", KIND_WORKLOAD},    {"NAME:N, NAME:?", KIND_WORKLOAD},
	{"FILTER", KIND_FILTER}, {"key=value", KIND_KEY},        {"KEY=FACTOR", KIND_KEY},
	{"SHELL", KIND_SHELL},
};

struct completion {
	const char *word;    /* to be completed */
	struct str_list put; /* the candidates so far */
	bool files, folders;
};

static enum kind kind_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return kinds[i].kind;
	return KIND_OTHER;
}

/* The first `n` bytes of the word and then `rest`, if the word may become that. What a shell would
 * take for more than a word is not repeated to it. */
static void put(struct completion *c, size_t n, const char *rest, const char *help)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_+~:=,./-";
	AUTO_FREE char *all = xasprintf("%.*s%s", (int)n, c->word, rest);

	if (!str_starts(all, c->word) || strspn(c->word, plain) < n)
		return;
	for (size_t i = 0; i < c->put.n; i++)
		if (strcmp(c->put.v[i], all) == 0)
			return;
	say(stdout, "%s\t%s\n", all, help);
	str_list_add(&c->put, xstrdup(all));
}

static void put_names(struct completion *c, size_t n, const char *const *names, const char *help)
{
	for (; names && *names; names++)
		put(c, n, *names, help);
}

/* ---- keys ---- */

/* Stores joined by '+': shims come before a store. */
static void put_stores(struct completion *c, size_t n)
{
	const char *joined = strrchr(c->word + n, '+');

	n = joined ? (size_t)(joined + 1 - c->word) : n;
	for (size_t i = 0; store_facts_table[i]; i++) {
		const struct store_facts *s = store_facts_table[i];
		AUTO_FREE char *name =
			xasprintf("%s%s", s->name, s->flags & STORE_IS_SHIM ? "+" : "");

		put(c, n, name, s->help);
	}
}

/* The row of a store's own key, or NULL. */
static const struct opt *store_row(const char *key)
{
	for (size_t i = 0; store_facts_table[i]; i++) {
		const struct store_facts *s = store_facts_table[i];
		AUTO_FREE char *section = xasprintf("storage.%s.", s->name);

		if (str_starts(key, section))
			return opt_find(s->options, s->option_count, key + strlen(section));
	}
	return NULL;
}

/* Values of a key, behind the first `n` bytes of the word. */
static void put_values(struct completion *c, size_t n, const char *key)
{
	static const char *const truths[] = {"true", "false", NULL};
	const struct opt *row = workload_key_row(key);
	const char *has[FEATURE_VALUES_MAX];
	size_t values = row ? feature_values(row->key, has) : 0;

	if (strcmp(key, "workload") == 0)
		put_names(c, n, workload_builtin_names(), "workload");
	row = row ? row : store_row(key);
	if (!row)
		return;
	if (strcmp(row->key, "storage.store") == 0)
		put_stores(c, n);
	else if (values)
		for (size_t i = 0; i < values; i++)
			put(c, n, has[i], row->key);
	else if (row->type == OPT_BOOL)
		put_names(c, n, truths, row->key);
	else
		put_names(c, n, row->choices, row->key);
	c->folders = c->folders || str_ends(row->key, "folder") || str_ends(row->key, "_root");
	c->files = c->files || str_ends(row->key, "_file") || str_ends(row->key, ".costs");
}

/* A key behind the first `n` bytes of the word: as far as the end of its section, or all of it. */
static void put_key(struct completion *c, size_t n, const char *key, const char *help)
{
	const char *bare = c->word + n;
	size_t typed = strlen(bare),
	       section = strncmp(key, bare, typed) == 0 ? typed + strcspn(key + typed, ".") : 0;

	if (!section)
		return;
	AUTO_FREE char *text = key[section] ? xasprintf("%.*s.", (int)section, key)
					    : xasprintf("%s%s", key, c->word[0] == '~' ? "" : "=");

	put(c, n, text, key[section] ? "a section of keys" : help);
}

/* Any key, or the values of the one that the word names. */
static void put_keys(struct completion *c)
{
	size_t n = strspn(c->word, "+~"), named = n + strcspn(c->word + n, ":=");
	const char *equals = strchr(c->word, '=');

	/* of one workload: NAME:key=value */
	n = c->word[named] == ':' ? named + 1 : n;
	n += str_starts(c->word + n, "workload.") ? strlen("workload.") : 0;
	if (equals) {
		size_t end = (size_t)(equals - c->word);
		AUTO_FREE char *key = xasprintf("%.*s", (int)(end - n), c->word + n);

		put_values(c, end + 1, key);
		return;
	}
	for (size_t i = 0; i < workload_row_count; i++)
		put_key(c, n, workload_rows[i].key, workload_rows[i].help);
	for (size_t i = 0; store_facts_table[i]; i++) {
		const struct store_facts *s = store_facts_table[i];

		for (size_t k = 0; k < s->option_count; k++) {
			AUTO_FREE char *key =
				xasprintf("storage.%s.%s", s->name, s->options[k].key);

			put_key(c, n, key, s->options[k].help);
		}
	}
}

/* ---- operands and options ---- */

static void put_kind(struct completion *c, size_t n, const char *name, bool first)
{
	static const char *const shells[] = {"bash", "zsh", "fish", NULL};

	switch (kind_of(name)) {
	case KIND_FILE:
		c->files = true;
		return;
	case KIND_FOLDER:
		c->folders = true;
		return;
	case KIND_WORKLOAD:
		c->files = c->files || first;
		if (first)
			put_names(c, n, workload_builtin_names(), "workload");
		return;
	case KIND_FILTER:
		put_names(c, n, workload_builtin_names(), "workload");
		return;
	case KIND_KEY:
		put_keys(c);
		return;
	case KIND_SHELL:
		put_names(c, n, shells, "shell");
		return;
	case KIND_OTHER:
		return;
	}
}

static bool takes_value(const struct flag *f)
{
	return f->kind != FLAG_SET && f->kind != FLAG_SEED;
}

static void put_flag_values(struct completion *c, size_t n, const struct flag *f)
{
	if (f->choices)
		put_names(c, n, f->choices, f->name);
	else
		put_kind(c, n, f->value, true);
}

static void put_flags(struct completion *c, const struct command *of)
{
	const char *equals = strchr(c->word, '=');
	size_t n = equals ? (size_t)(equals - c->word) : 0;
	const struct flag *f = equals ? flag_find(of, c->word, n) : NULL;

	if (f && takes_value(f))
		put_flag_values(c, n + 1, f);
	for (size_t i = 0; !equals && of->flags && of->flags[i]; i++)
		if (of->flags[i]->name[0] == '-')
			put(c, 0, of->flags[i]->name, of->flags[i]->help);
	if (!equals)
		put(c, 0, "--help", "print this and exit");
}

static void put_operands(struct completion *c, const struct command *of, size_t before)
{
	bool key = strchr(c->word, '=') || c->word[0] == '+' || c->word[0] == '~';

	for (size_t i = 0; of->flags && of->flags[i] && of->flags[i]->name[0] != '-'; i++) {
		enum kind kind = kind_of(of->flags[i]->name);

		if (!key || kind == KIND_KEY)
			put_kind(c, 0, of->flags[i]->name, before == 0 || of->several);
	}
}

/* The words behind a command. */
static void complete_command(struct completion *c, const struct command *of, int argc, char **argv)
{
	const struct flag *pending = NULL;
	bool flags = true;
	size_t operands = 0;

	for (int i = 0; i < argc - 1; i++) {
		const char *w = argv[i];

		if (pending && !(pending->bare && w[0] == '-')) {
			pending = NULL;
			continue;
		}
		pending = NULL;
		if (flags && strcmp(w, "--") == 0)
			flags = false;
		else if (flags && w[0] == '-' && w[1])
			pending = flag_find(of, w, strlen(w));
		else if (!strchr(w, '=') && w[0] != '~')
			operands++;
		if (pending && !takes_value(pending))
			pending = NULL;
	}
	if (pending)
		put_flag_values(c, 0, pending);
	if (pending && !pending->bare)
		return;
	if (flags && c->word[0] == '-')
		put_flags(c, of);
	else
		put_operands(c, of, operands);
}

static const char *last_word(const char *name)
{
	const char *space = strrchr(name, ' ');

	return space ? space + 1 : name;
}

static const struct command *command_of(const struct command *const *table, const char *name)
{
	for (; table && *table; table++)
		if (strcmp(last_word((*table)->name), name) == 0)
			return *table;
	return NULL;
}

static void put_commands(struct completion *c, const struct command *const *table)
{
	for (; table && *table; table++)
		put(c, 0, last_word((*table)->name), (*table)->help);
}

/* `at`: where the words begin that `table` names. */
static void complete_words(struct completion *c, int argc, char **argv)
{
	const struct command *const *table = command_table;
	const struct command *of = NULL;
	int at = argc > 1 && strcmp(argv[0], "help") == 0 ? 1 : 0;

	for (; table; table = of->subcommand) {
		if (at == argc - 1) {
			put_commands(c, table);
			if (of)
				put_flags(c, of);
			break;
		}
		of = command_of(table, argv[at++]);
		if (!of)
			return;
	}
	if (of && !of->subcommand)
		complete_command(c, of, argc - at, argv + at);
	if (argc == 1) {
		put(c, 0, "help", "print the help of a command");
		put(c, 0, "version", "say which program this is");
		put(c, 0, "--help", "print this and exit");
		put(c, 0, "--version", "say which program this is");
	}
}

static bool typed(const char *word)
{
	for (; *word; word++)
		if (iscntrl((unsigned char)*word))
			return false;
	return true;
}

int complete_main(int argc, char **argv)
{
	char nothing[] = "", *none[] = {nothing, NULL};
	struct completion c = {0};

	for (int i = 0; i < argc; i++)
		if (!typed(argv[i]))
			return 0;
	if (argc == 0) {
		argc = 1;
		argv = none;
	}
	c.word = argv[argc - 1];
	complete_words(&c, argc, argv);
	if (c.files)
		say(stdout, "\tfiles\n");
	else if (c.folders)
		say(stdout, "\tfolders\n");
	str_list_release(&c.put);
	return 0;
}
