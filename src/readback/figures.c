#include "readback/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "judge/verdict.h"
#include "readback/record.h"
#include "result/json_limit.h"

/* A share of which the largest is wanted. */
static void raise(double *to, double share)
{
	if (isfinite(share) && !(share < *to))
		*to = fmin(1, share);
}

static void take_epochs(struct run_figures *f, const struct part *training, double hosts)
{
	const struct part *epochs = part(training, F_TRAINING_EPOCHS);
	const struct part *cache = part(part_at(epochs, 0), F_EPOCH_PAGE_CACHE);

	f->cached_first = figure(cache, F_PAGE_CACHE_START) / figure(cache, F_PAGE_CACHE_BYTES);
	f->samples = f->epochs_s = 0;
	for (size_t i = 0; i < part_count(epochs); i++) {
		const struct part *epoch = part_at(epochs, i);
		const struct part *p = part(epoch, F_EPOCH_PROCESSORS);
		double wall = figure(epoch, F_EPOCH_WALL);
		double all = figure(p, F_PROCESSORS_ALLOWED) * wall;

		f->samples += figure(epoch, F_EPOCH_SAMPLES);
		f->epochs_s += wall;
		raise(&f->client_busy, figure(p, F_PROCESSORS_BUSY) / all);
		raise(&f->run_busy, figure(epoch, F_EPOCH_CPU) / all / hosts);
	}
}

static double ledger_bytes(const struct run_record *r, enum ledger_key key)
{
	const struct part *lines = record_part(r, F_RUN_LEDGER);

	for (size_t i = 0; i < part_count(lines); i++) {
		const struct part *line = part_at(lines, i);
		const char *name = figure_text(line, F_LEDGER_KEY);

		if (name && strcmp(name, ledger_keys[key]) == 0)
			return figure(line, F_LEDGER_BYTES);
	}
	return NAN;
}

static double requests(const struct part *training, enum io_kind kind)
{
	return figure(part_named(training, F_TRAINING_IO, kind), F_IO_KIND_REQUESTS);
}

static void take_training(struct run_figures *f, const struct part *training)
{
	const struct part *read = part(training, F_TRAINING_READING);

	f->whole_au = figure(training, F_TRAINING_WHOLE_AU);
	f->whole_rate = figure(training, F_TRAINING_WHOLE_RATE);
	f->returned_bytes = figure(training, F_TRAINING_RETURNED);
	f->opens = requests(training, IO_OPEN);
	f->requests = requests(training, IO_META) + requests(training, IO_DATA);
	f->busy_s = figure(read, F_READING_BUSY);
	f->batches = figure(read, F_READING_BATCHES);
	f->later_busy_s = figure(read, F_READING_LATER_BUSY);
	f->later_batches = figure(read, F_READING_LATER_BATCHES);
	f->no_processor = figure_named(part(training, F_TRAINING_DECOMPOSITION),
				       F_DECOMPOSITION_CRITICAL_PERCENT, TIME_NO_CPU);
}

static void take_verdicts(struct run_figures *f, const struct part *verdicts)
{
	for (size_t i = 0; i < part_count(verdicts); i++) {
		const char *check = figure_text(part_at(verdicts, i), F_VERDICT_CHECK);
		const char *level = figure_text(part_at(verdicts, i), F_VERDICT_LEVEL);
		const struct verdict_ops *row = check ? verdict_find(check) : NULL;

		if (!row || !level || strcmp(level, "fail") != 0 || row->about == ABOUT_LENGTH)
			continue;
		f->machine_failed = f->machine_failed || row->about == ABOUT_MACHINE;
		f->failed = f->failed ? f->failed : row;
	}
}

static double read_from_cache(const struct part *load)
{
	const struct part *each = part(load, F_SAVES_EACH);
	double asked = 0, fetched = 0;

	for (size_t i = 0; i < part_count(each); i++) {
		asked += figure(part_at(each, i), F_SAVED_TENSORS);
		fetched += figure(part_at(each, i), F_SAVED_PROCESS_READ);
	}
	return asked > 0 && isfinite(fetched) ? fmax(0, 1 - fetched / asked) : NAN;
}

static void take_checkpoints(struct run_figures *f, const struct run_record *r)
{
	const struct part *all = record_part(r, F_RUN_CHECKPOINT);
	const struct part *save = part(all, F_CHECKPOINT_SAVE);
	const struct part *load = part(all, F_CHECKPOINT_LOAD);

	if (!r->ours) {
		f->checkpoint_bytes = r->checkpoint_gib * 0x1p30;
		f->write_rate = r->save_gib_per_s * 0x1p30;
		f->write_s = r->checkpoint_gib / r->save_gib_per_s;
		f->read_rate = r->load_gib_per_s * 0x1p30;
		f->read_s = r->checkpoint_gib / r->load_gib_per_s;
		f->read_cached = NAN;
		return;
	}
	f->checkpoint_bytes = figure(all, F_CHECKPOINT_TOTAL);
	f->write_s = figure(save, F_SAVES_MEAN);
	f->write_rate = figure(save, F_SAVES_RATE);
	f->read_s = figure(load, F_SAVES_MEAN);
	f->read_rate = figure(load, F_SAVES_RATE);
	f->read_cached = read_from_cache(load);
	f->saves = figure(save, F_SAVES_COUNT);
	f->stall_s = figure(all, F_CHECKPOINT_STALL) / f->saves;
	f->stall_dev_s = figure(save, F_SAVES_STDEV);
}

static void take_words(const json_t *limit, struct run_figures *f)
{
	AUTO_FREE char *text = limit_told(limit, WORDS_LONG);

	snprintf(f->limit, sizeof(f->limit), "%s", text ? text : "");
}

void figures_find(struct run_figures *f, const struct run_record *r)
{
	const struct part *training = record_part(r, F_RUN_TRAINING);
	const struct part *whole = part_whole(r->result);
	const struct part *limit = part(whole, F_RUN_LIMIT);
	const char *storage = figure_text(part(whole, F_RUN_MEASURED), F_MEASURED_STORAGE);

	*f = (struct run_figures){.wall_s = figure(whole, F_RUN_WALL),
				  .client_busy = NAN,
				  .run_busy = NAN,
				  .fetched_bytes = ledger_bytes(r, LEDGER_CHARGED),
				  .device_bytes = ledger_bytes(r, LEDGER_DEVICE)};
	take_training(f, training);
	take_epochs(f, training, r->hosts ? r->hosts : 1);
	take_verdicts(f, record_part(r, F_RUN_VERDICTS));
	take_checkpoints(f, r);
	snprintf(f->storage, sizeof(f->storage), "%s", storage ? storage : "");
	f->emulated = strcmp(f->storage, "emulated") == 0;
	f->cause = cause_of(figure_text(limit, F_LIMIT_CAUSE));
	take_words(figure_json(whole, F_RUN_LIMIT), f);
}
