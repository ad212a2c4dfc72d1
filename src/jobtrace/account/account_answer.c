/* What a job did, as a paragraph. Only what the log shows: a part that it does not show is left
 * out here, and has its reason in the table. */
#include <math.h>

#include "base/say.h"
#include "base/str.h"
#include "jobtrace/account/account.h"

static const struct file_group *dataset_of(const struct account *a)
{
	for (size_t g = 0; g < a->groups; g++)
		if (a->group[g].role == FILE_DATASET)
			return &a->group[g];
	return NULL;
}

static double number_of(const struct account *a, enum account_fact f)
{
	return account_has(a, f) && !a->fact[f].at_least && !a->fact[f].at_most ? a->fact[f].number
										: NAN;
}

/* "64 npz files in /data". */
static void put_dataset(const struct account *a, const struct file_group *main, struct buf *out)
{
	double files = number_of(a, ACCOUNT_FILES); /* without those of evaluation */
	char text[64];

	if (!(files >= 1))
		files = (double)main->files;
	buf_say(out, "%.0f %s file%s in %s", files, main->extension[0] ? main->extension : "data",
		files == 1 ? "" : "s", main->folder[0] ? main->folder : "its folder");
	if (account_has(a, ACCOUNT_DATA_BYTES) && !a->fact[ACCOUNT_DATA_BYTES].at_least)
		buf_printf(out, " (%s)",
			   str_bytes(a->fact[ACCOUNT_DATA_BYTES].number, text, sizeof(text)));
}

static void put_training(const struct account *a, const struct file_group *main, struct buf *out)
{
	double epochs = number_of(a, ACCOUNT_EPOCHS), steps = number_of(a, ACCOUNT_STEPS);
	double batch = number_of(a, ACCOUNT_BATCH), ranks = number_of(a, ACCOUNT_RANKS);

	buf_puts(out, "The job trained");
	if (a->trainings > 1)
		buf_printf(out, " %zu times, one after the other, each", a->trainings);
	if (epochs >= 1)
		buf_printf(out, " for %.0f epoch%s", epochs, epochs > 1 ? "s" : "");
	if (epochs >= 1 && steps >= epochs && fmod(steps, epochs) == 0)
		buf_printf(out, " of %.0f step%s", steps / epochs, steps > epochs ? "s" : "");
	if (ranks > 1)
		buf_printf(out, " on %.0f ranks", ranks);
	if (batch >= 1)
		buf_printf(out, " with batches of %.0f sample%s", batch, batch > 1 ? "s" : "");
	buf_puts(out, " from ");
	put_dataset(a, main, out);
	buf_puts(out, ".");
}

static void put_loader(const struct account *a, struct buf *out)
{
	double workers = number_of(a, ACCOUNT_WORKERS);

	if (workers >= 1)
		buf_printf(out, " %.0f worker%s%s read%s the samples.", workers,
			   workers > 1 ? "s" : "",
			   number_of(a, ACCOUNT_RANKS) > 1 ? " of each rank" : "",
			   workers > 1 ? "" : "s");
	else if (workers >= 0)
		buf_puts(out, " The process that trains reads the samples itself.");
}

static void put_compute(const struct account *a, struct buf *out)
{
	if (!account_has(a, ACCOUNT_COMPUTE))
		return;
	buf_puts(out, " A step computes for ");
	account_put_value(a, ACCOUNT_COMPUTE, out);
	buf_puts(out, ".");
}

static void put_evaluations(const struct account *a, struct buf *out)
{
	double n = number_of(a, ACCOUNT_EVALUATIONS);

	if (n >= 1)
		buf_printf(out, " It evaluated %.0f time%s.", n, n > 1 ? "s" : "");
}

static void put_checkpoints(const struct account *a, struct buf *out)
{
	double n = number_of(a, ACCOUNT_CHECKPOINTS);

	if (!(n >= 1))
		return;
	buf_printf(out, " It wrote %.0f checkpoint%s", n, n > 1 ? "s" : "");
	if (account_has(a, ACCOUNT_CHECKPOINT_BYTES)) {
		buf_puts(out, " of ");
		account_put_value(a, ACCOUNT_CHECKPOINT_BYTES, out);
	}
	buf_puts(out, ".");
}

void account_answer(const struct account *a, struct buf *out)
{
	const struct file_group *main = dataset_of(a);
	char text[64];

	if (!main) {
		buf_puts(out, "The log shows no dataset that the job read.");
		return;
	}
	if (a->trains) {
		put_training(a, main, out);
		put_loader(a, out);
		put_compute(a, out);
		if (account_has(a, ACCOUNT_LIMIT))
			buf_say(out, " It was limited by %s.", a->fact[ACCOUNT_LIMIT].text);
		put_evaluations(a, out);
		put_checkpoints(a, out);
		return;
	}
	buf_puts(out, "The job read ");
	put_dataset(a, main, out);
	if (main->bytes_read >= 0)
		buf_printf(out, ": %s were read in all",
			   str_bytes((double)main->bytes_read, text, sizeof(text)));
	buf_puts(out, ". The log does not show that it trained.");
}
