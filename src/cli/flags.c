#include "cli/flags.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/cli.h"
#include "conf/opt.h"
#include "launch/launcher.h"
#include "os/signals.h"

#define COLUMNS 80 /* the narrowest terminals, and a page of the manual */
#define INDENT 24
#define FLAGS_MAX 128

static const struct flag help_flag = {
	.name = "--help", .letter = "-h", .kind = FLAG_SET, .help = "print this and exit"};

static bool is_operand(const struct flag *f)
{
	return f->name[0] != '-';
}

static bool same(const char *form, const char *name, size_t n)
{
	return form && strlen(form) == n && strncmp(form, name, n) == 0;
}

static bool is_called(const struct flag *f, const char *name, size_t n)
{
	return !is_operand(f) &&
	       (same(f->name, name, n) || same(f->letter, name, n) || same(f->hidden, name, n));
}

const struct flag *flag_find(const struct command *c, const char *name, size_t n)
{
	for (size_t i = 0; c->flags && c->flags[i]; i++)
		if (is_called(c->flags[i], name, n))
			return c->flags[i];
	return is_called(&help_flag, name, n) ? &help_flag : NULL;
}

/* ---- values ---- */

static int bad_choice(const struct flag *f, const char *form, const char *value, struct err *e)
{
	struct buf all = {0};
	size_t n = 0;
	const char *near;

	if (!f->choices[1])
		return err_set(e, ERR_USAGE, "%s: '%s' is not supported; the only value is '%s'",
			       form, value, f->choices[0]);
	for (; f->choices[n]; n++)
		buf_printf(&all, "%s%s", n ? ", " : "", f->choices[n]);
	near = str_nearest(value, f->choices, n);
	err_set(e, ERR_USAGE, "%s: '%s' is not one of %s%s%s%s", form, value, all.data,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	buf_release(&all);
	return ERR_USAGE;
}

static int set_choice(const struct flag *f, int *field, const char *form, const char *value,
		      struct err *e)
{
	for (int i = 0; f->choices[i]; i++)
		if (strcmp(f->choices[i], value) == 0) {
			*field = i;
			return 0;
		}
	return bad_choice(f, form, value, e);
}

static int set_count(const struct flag *f, int64_t *field, const char *form, const char *value,
		     struct err *e)
{
	if (str_to_i64(value, field) && *field >= f->min && *field <= f->max)
		return 0;
	return err_set(e, ERR_USAGE, "%s: '%s' is not a whole number from %lld to %lld", form,
		       value, (long long)f->min, (long long)f->max);
}

static int set_real(const struct flag *f, double *field, const char *form, const char *value,
		    struct err *e)
{
	size_t n = strlen(value);
	bool percent = strcmp(f->value, "PERCENT") == 0;
	AUTO_FREE char *bare = xstrndup(value, percent && n && value[n - 1] == '%' ? n - 1 : n);

	if (str_to_f64(bare, field) && *field >= (double)f->min && *field <= (double)f->max)
		return 0;
	return err_set(e, ERR_USAGE, "%s: '%s' is not a number from %lld to %.10g", form, value,
		       (long long)f->min, (double)f->max);
}

static int set_seed(struct flag_seed *field, const char *form, const char *value, struct err *e)
{
	*field = (struct flag_seed){.set = true, .value = 1};
	if (!value || str_to_u64(value, &field->value))
		return 0;
	return err_set(e, ERR_USAGE, "%s: '%s' is not a whole number of at least 0", form, value);
}

/* `form`: as typed. */
static int set_field(const struct flag *f, void *args, const char *form, const char *value,
		     struct err *e)
{
	void *field = (char *)args + f->offset;

	switch (f->kind) {
	case FLAG_SET:
		*(bool *)field = true;
		return 0;
	case FLAG_TEXT:
		if (!value[0] && f->value && strcmp(f->value, "TEXT") != 0)
			return err_set(e, ERR_USAGE, "%s needs a value, but it is empty: %s %s",
				       form, form, f->value);
		*(const char **)field = value;
		return 0;
	case FLAG_LIST:
		str_list_add(field, xstrdup(value));
		return 0;
	case FLAG_COUNT:
		return set_count(f, field, form, value, e);
	case FLAG_REAL:
		return set_real(f, field, form, value, e);
	case FLAG_CHOICE:
		return set_choice(f, field, form, value, e);
	case FLAG_SEED:
		return set_seed(field, form, value, e);
	}
	return 0;
}

/* ---- what no flag of the command is ---- */

/* "'study run', 'study sbatch' and 'run'": the commands with a flag of that name. */
static void list_owners(const struct command *const *c, const char *name, size_t n,
			const char **owner, size_t *owners)
{
	for (; c && *c; c++) {
		list_owners((*c)->subcommand, name, n, owner, owners);
		for (size_t i = 0; (*c)->flags && (*c)->flags[i] && *owners < FLAGS_MAX; i++)
			if (is_called((*c)->flags[i], name, n)) {
				owner[(*owners)++] = (*c)->name;
				break;
			}
	}
}

static const char *nearest_flag(const struct command *c, const char *name)
{
	const char *names[FLAGS_MAX], *begun = NULL;
	size_t n = 0, matches = 0;

	for (size_t i = 0; c->flags && c->flags[i] && n < FLAGS_MAX; i++)
		if (!is_operand(c->flags[i]))
			names[n++] = c->flags[i]->name;
	for (size_t i = 0; i < n; i++)
		if (str_starts(names[i], name)) {
			begun = names[i];
			matches++;
		}
	return matches == 1 && strlen(name) > 2 ? begun : str_nearest(name, names, n);
}

static int unknown_flag(const struct command *c, const char *arg, struct err *e)
{
	size_t n = strcspn(arg, "="), owners = 0;
	AUTO_FREE char *name = xstrndup(arg, n);
	const char *owner[FLAGS_MAX], *near;
	struct buf text = {0};

	buf_printf(&text, "'%s' has no option '%s'", c->name, name);
	list_owners(command_table, name, n, owner, &owners);
	near = owners ? NULL : nearest_flag(c, name);
	for (size_t i = 0; i < owners; i++)
		buf_printf(&text, "%s'%s'",
			   i == 0            ? "; it is an option of "
			   : i + 1 == owners ? " and "
					     : ", ",
			   owner[i]);
	if (near)
		buf_printf(&text, "; did you mean '%s'?", near);
	buf_printf(&text, "%s 'stoker %s --help' lists its options", near ? "" : ";", c->name);
	err_set(e, ERR_USAGE, "%s", text.data);
	buf_release(&text);
	return ERR_USAGE;
}

/* ---- help ---- */

/* "-o, --output FILE" */
static char *flag_title(const struct flag *f)
{
	const char *before = f->kind == FLAG_SEED ? "[=" : f->bare ? " [" : " ";

	if (is_operand(f))
		return xstrdup(f->name);
	return xasprintf("%s%s%s%s%s%s", f->letter ? f->letter : "", f->letter ? ", " : "", f->name,
			 f->value ? before : "", f->value ? f->value : "",
			 f->value && (f->kind == FLAG_SEED || f->bare) ? "]" : "");
}

static void put_row(struct buf *out, const char *title, const char *text)
{
	size_t begin = out->len, at;

	buf_printf(out, "  %s", title);
	at = out->len - begin;
	if (at + 2 > INDENT) {
		buf_putc(out, '\n');
		at = 0;
	}
	buf_printf(out, "%*s", (int)(INDENT - at), "");
	buf_wrap(out, text, INDENT, INDENT, COLUMNS);
}

static char *flag_help(const struct flag *f)
{
	struct buf b = {0};

	if (f->put_rows)
		f->put_rows(&b);
	buf_puts(&b, f->help);
	return buf_take(&b);
}

static void put_flag(struct buf *out, const struct flag *f)
{
	AUTO_FREE char *title = flag_title(f), *help = flag_help(f);

	put_row(out, title, help);
}

/* Paragraphs, each wrapped. */
static void put_about(struct buf *out, const char *about)
{
	while (*about) {
		size_t n = strcspn(about, "\n");
		AUTO_FREE char *paragraph = xstrndup(about, n);

		buf_wrap(out, paragraph, 0, 0, COLUMNS);
		buf_putc(out, '\n');
		about += n + strspn(about + n, "\n");
	}
}

static void put_usage(struct buf *out, const struct command *c)
{
	bool flags = false;

	for (size_t i = 0; c->flags && c->flags[i]; i++)
		flags = flags || !is_operand(c->flags[i]);
	buf_printf(out, "stoker %s%s%s%s", c->name, c->operands ? " " : "",
		   c->operands ? c->operands : "", flags ? " [options]" : "");
}

const char *const program_examples[2] = {
	"stoker show workloads",
	"stoker run cosmoflow_h100 -n 2 dataset.num_files_train=64 workflow.generate_data=true"};

static void put_command_line(struct buf *out, const char *line)
{
	size_t room = COLUMNS - 4; /* the indent, and " \\" */

	buf_puts(out, "  ");
	while (strlen(line) > room) {
		size_t n = room;

		while (n > 0 && line[n] != ' ')
			n--;
		assert(n > 0);
		buf_append(out, line, n);
		buf_puts(out, " \\\n      ");
		line += n + 1;
		room = COLUMNS - 8;
	}
	buf_printf(out, "%s\n", line);
}

void flags_put_examples(struct buf *out, const char *const example[2])
{
	buf_puts(out, "\nexamples:\n");
	for (int i = 0; i < 2; i++)
		put_command_line(out, example[i]);
}

/* What --help prints: usage, sentence, subcommands or operands and flags, examples. */
static void command_help(const struct command *c, struct buf *out)
{
	assert(!c->carry_out != !c->subcommand);
	assert(c->examples[0] && c->examples[1]);
	buf_puts(out, "usage: ");
	put_usage(out, c);
	buf_puts(out, "\n\n");
	buf_wrap(out, c->help, 0, 0, COLUMNS);
	buf_putc(out, '\n');
	if (c->about)
		put_about(out, c->about);
	for (size_t i = 0; c->subcommand && c->subcommand[i]; i++) {
		AUTO_FREE char *title =
			xasprintf("%s %s", strrchr(c->subcommand[i]->name, ' ') + 1,
				  c->subcommand[i]->operands ? c->subcommand[i]->operands : "");

		put_row(out, title, c->subcommand[i]->help);
	}
	if (c->subcommand) {
		buf_printf(out, "\n'stoker %s ... --help' lists the options of each.\n", c->name);
		flags_put_examples(out, c->examples);
		return;
	}
	for (size_t i = 0; c->flags && c->flags[i]; i++)
		put_flag(out, c->flags[i]);
	put_flag(out, &help_flag);
	flags_put_examples(out, c->examples);
}

/* ---- the command line ---- */

/* "-n4" and "-oFILE", but no long name with one dash. */
static const struct flag *attached(const struct command *c, const char *arg)
{
	AUTO_FREE char *with_two = xasprintf("-%s", arg);
	const struct flag *f = arg[1] != '-' && arg[1] && arg[2] ? flag_find(c, arg, 2) : NULL;

	for (size_t i = 0; f && c->flags[i]; i++)
		if (str_starts(with_two, c->flags[i]->name))
			return NULL;
	return f && f->kind != FLAG_SET && f->kind != FLAG_SEED ? f : NULL;
}

/* argv[*i] begins with a dash; *i moves past its value. */
static int parse_flag(const struct command *c, void *args, int argc, char **argv, int *i,
		      struct err *e)
{
	const char *arg = argv[*i], *value = strchr(arg, '=');
	size_t n = value ? (size_t)(value - arg) : strlen(arg);
	const struct flag *f = flag_find(c, arg, n);

	if (!f && (f = attached(c, arg))) {
		AUTO_FREE char *letter = xstrndup(arg, 2);

		return set_field(f, args, letter, arg + 2, e);
	}
	if (!f)
		return unknown_flag(c, arg, e);
	AUTO_FREE char *form = xstrndup(arg, n);

	if (value && f->kind == FLAG_SET)
		return err_set(e, ERR_USAGE, "%s takes no value", form);
	if (f == &help_flag)
		return 1;
	value = value ? value + 1 : NULL;
	if (!value && f->bare && (*i + 1 >= argc || argv[*i + 1][0] == '-')) {
		*i += *i + 1 < argc && strcmp(argv[*i + 1], f->bare) == 0;
		value = f->bare;
	}
	if (!value && f->kind != FLAG_SET && f->kind != FLAG_SEED) {
		if (*i + 1 >= argc)
			return err_set(e, ERR_USAGE, "%s needs a value: %s %s", form, form,
				       f->value);
		value = argv[++*i];
	}
	return set_field(f, args, form, value, e);
}

int flags_no_operand(void *args, const char *word, struct err *e)
{
	(void)args;
	return err_set(e, ERR_USAGE, "unexpected argument '%s'", word);
}

int flags_list_operand(void *args, const char *word, struct err *e)
{
	(void)e;
	str_list_add(args, xstrdup(word));
	return 0;
}

int flags_parse(const struct command *c, void *args, int argc, char **argv,
		int (*operand)(void *args, const char *word, struct err *e), struct err *e)
{
	bool flags = true;
	int rc = 0;

	for (int i = 1; rc == 0 && i < argc; i++) {
		if (flags && strcmp(argv[i], "--") == 0)
			flags = false;
		else if (flags && argv[i][0] == '-' && argv[i][1])
			rc = parse_flag(c, args, argc, argv, &i, e);
		else
			rc = operand(args, argv[i], e);
	}
	if (rc == 1 && launcher_leads()) {
		struct buf text = {0};

		command_help(c, &text);
		say_text(stdout, &text);
		buf_release(&text);
	}
	return rc;
}

void flag_put_words(const struct flag *f, const void *args, struct str_list *out)
{
	const void *field = (const char *)args + f->offset;
	const struct str_list *list = field;

	if (f->name[0] != '-')
		return;
	switch (f->kind) {
	case FLAG_SET:
		if (*(const bool *)field)
			str_list_add(out, xstrdup(f->name));
		break;
	case FLAG_TEXT:
		if (*(const char *const *)field)
			str_list_add(out, xasprintf("%s=%s", f->name, *(const char *const *)field));
		break;
	case FLAG_LIST:
		for (size_t i = 0; i < list->n; i++)
			str_list_add(out, xasprintf("%s=%s", f->name, list->v[i]));
		break;
	case FLAG_COUNT:
		if (*(const int64_t *)field >= f->min)
			str_list_add(out, xasprintf("%s=%lld", f->name,
						    (long long)*(const int64_t *)field));
		break;
	case FLAG_REAL:
		if (!isnan(*(const double *)field))
			str_list_add(out, xasprintf("%s=%.15g", f->name, *(const double *)field));
		break;
	case FLAG_CHOICE:
	case FLAG_SEED:
		assert(false && "no command with these names its options");
	}
}

int flags_carry_out(const struct command *c, void *args, int argc, char **argv,
		    int (*operand)(void *args, const char *word, struct err *e),
		    int (*work)(void *args, struct err *e))
{
	struct err e = {0};
	int rc = flags_parse(c, args, argc, argv, operand, &e);

	/* until the work looks at a flag of its own */
	if (rc == 0)
		rc = signals_start(&(struct signal_work){0}, &e);
	if (rc == 0)
		rc = work(args, &e);
	for (size_t i = 0; c->flags && c->flags[i]; i++)
		if (c->flags[i]->kind == FLAG_LIST)
			str_list_release((struct str_list *)((char *)args + c->flags[i]->offset));
	if (operand == flags_list_operand)
		str_list_release(args);
	return rc < 0 ? cli_fail(&e) : 0;
}

int command_main(const struct command *c, int argc, char **argv)
{
	const char *names[FLAGS_MAX], *near, *word = argc > 1 ? argv[1] : NULL;
	struct buf text = {0};
	size_t n = 0;

	if (!c->subcommand)
		return c->carry_out(c, argc, argv);
	for (; c->subcommand[n] && n < FLAGS_MAX; n++) {
		const char *name = strrchr(c->subcommand[n]->name, ' ') + 1;

		names[n] = name;
		if (word && strcmp(word, name) == 0)
			return c->subcommand[n]->carry_out(c->subcommand[n], argc - 1, argv + 1);
	}
	if (!word || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		command_help(c, &text);
		say_text(word ? stdout : stderr, &text);
		buf_release(&text);
		return word ? 0 : 2;
	}
	near = str_nearest(word, names, n);
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", names[i]);
	say(stderr, "stoker: '%s' is not a subcommand of 'stoker %s'%s%s%s (%s)\n", word, c->name,
	    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", text.data);
	buf_release(&text);
	return 2;
}

/* ---- the man page ---- */

void examples_man(struct buf *out, const char *const example[2])
{
	buf_puts(out, ".PP\nExamples:\n.PP\n.nf\n");
	for (int i = 0; i < 2; i++) {
		buf_puts(out, "  ");
		buf_put_roff(out, example[i]);
		buf_putc(out, '\n');
	}
	buf_puts(out, ".fi\n");
}

static void man_command(struct buf *out, const struct command *c)
{
	buf_puts(out, ".SS ");
	put_usage(out, c);
	buf_putc(out, '\n');
	buf_put_roff(out, c->help);
	buf_putc(out, '\n');
	for (const char *p = c->about; p && *p; p += strspn(p, "\n")) {
		size_t n = strcspn(p, "\n");
		AUTO_FREE char *paragraph = xstrndup(p, n);

		buf_puts(out, ".PP\n");
		buf_put_roff(out, paragraph);
		buf_putc(out, '\n');
		p += n;
	}
	for (size_t i = 0; c->flags && c->flags[i]; i++) {
		AUTO_FREE char *title = flag_title(c->flags[i]), *help = flag_help(c->flags[i]);

		buf_puts(out, ".TP\n.B ");
		buf_put_roff(out, title);
		buf_putc(out, '\n');
		buf_put_roff(out, help);
		buf_putc(out, '\n');
	}
	examples_man(out, c->examples);
	for (size_t i = 0; c->subcommand && c->subcommand[i]; i++)
		man_command(out, c->subcommand[i]);
}

void commands_man(struct buf *out)
{
	for (size_t i = 0; command_table[i]; i++)
		man_command(out, command_table[i]);
}
