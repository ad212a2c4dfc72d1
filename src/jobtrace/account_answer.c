/* What a job did, as a paragraph. */
#include "base/say.h"
#include "base/str.h"
#include "jobtrace/account.h"

void account_answer(const struct account *a, struct buf *out)
{
	const struct file_group *main = NULL;
	char text[64];

	for (size_t g = 0; g < a->groups && !main; g++)
		if (a->group[g].role == FILE_DATASET)
			main = &a->group[g];
	if (!main) {
		buf_puts(out, "The log shows no dataset that the job read.");
		return;
	}
	buf_say(out, "The job read %zu %s file%s in %s", main->files,
		main->extension[0] ? main->extension : "data", main->files == 1 ? "" : "s",
		main->folder[0] ? main->folder : "its folder");
	if (main->bytes_read >= 0)
		buf_printf(out, ", %s in all",
			   str_bytes((double)main->bytes_read, text, sizeof(text)));
	buf_puts(out, ".");
}
