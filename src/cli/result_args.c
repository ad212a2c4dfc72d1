#include "cli/result_args.h"

#include <getopt.h>
#include <stdio.h>

int result_args_parse(struct result_args *a, const struct command *c, const char *help, int argc,
		      char **argv, struct err *e)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"check", no_argument, NULL, 'c'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	int o;

	*a = (struct result_args){0};
	opterr = 0;
	optind = 1;
	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (o == 'h') {
			printf("usage: stoker %s\n\n%s\n\n%s", c->usage, c->help, help);
			return 1;
		}
		if (o == '?')
			return err_set(e, ERR_USAGE, "%s has no option '%s'; see stoker %s --help",
				       c->name, argv[optind - 1], c->name);
		a->json = a->json || o == 'j';
		a->check = a->check || o == 'c';
	}
	a->folder = (const char *const *)argv + optind;
	a->folders = (size_t)(argc - optind);
	return 0;
}
