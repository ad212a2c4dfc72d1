#include "cli/result_args.h"

#include <stddef.h>

#include "base/alloc.h"

const struct flag flag_json = {.name = "--json",
			       .kind = FLAG_SET,
			       .offset = offsetof(struct result_args, json),
			       .help = "print as JSON"};

static int take_folder(void *args, const char *word, struct err *e)
{
	struct result_args *a = args;

	(void)e;
	a->folder[a->folders++] = word;
	return 0;
}

int result_args_parse(struct result_args *a, const struct command *c, int argc, char **argv,
		      struct err *e)
{
	*a = (struct result_args){.folder = xcalloc((size_t)argc + 1, sizeof(*a->folder)),
				  .tolerance = -1};
	return flags_parse(c, a, argc, argv, take_folder, e);
}
