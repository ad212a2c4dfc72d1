/* Where the figures of a result.json leave a verdict unknown. */
#include "judge/recorded.h"

#include <math.h>

#include "judge/recorded_json.h"
#include "store/store.h"

static const double DEVICE_SHARE = 0.90;

static bool all_epochs_done(const json_t *result)
{
	const json_t *t = part(result, "training");

	return json_array_size(epochs_of(result)) > 0 &&
	       figure(t, "epochs_begun") == (double)json_array_size(epochs_of(result));
}

static bool nothing_measured(const struct workload *w)
{
	return w && w->run.measure == MEASURE_NONE;
}

static bool page_cache_grew(const json_t *result)
{
	const json_t *epochs = epochs_of(result);

	for (size_t i = 0; i < json_array_size(epochs); i++) {
		const json_t *c = part(json_array_get(epochs, i), "page_cache");

		if (figure(c, "cached_at_end_bytes") > figure(c, "cached_at_start_bytes"))
			return true;
	}
	return false;
}

bool recorded_unknown_bytes(const json_t *result, const struct workload *w)
{
	const json_t *path = part(result, "storage_path"), *t = part(result, "training");

	if (!w || !(workload_base_store(w)->flags & STORE_HAS_FILES) || nothing_measured(w))
		return true;
	if (isnan(figure(t, "device_read_bytes")))
		return true;
	if (json_is_string(part(path, "client")))
		return true;
	/* nothing at all is not a count where there is no device, or nothing was fetched */
	if (!(figure(t, "device_read_bytes") > 0) &&
	    (json_array_size(part(path, "devices")) == 0 || !page_cache_grew(result)))
		return true;
	return json_is_string(part(path, "through_page_cache")) ||
	       json_is_string(part(path, "unseen"));
}

bool recorded_unknown_cache(const json_t *result, const struct workload *w)
{
	bool direct = !w || workload_base_store(w)->flags & STORE_IS_UNCACHED;
	const json_t *epochs = epochs_of(result);

	for (size_t i = 0; i < json_array_size(epochs); i++) {
		const json_t *c = part(json_array_get(epochs, i), "page_cache");

		if (isnan(figure(c, "cached_at_start_bytes")) ||
		    (direct && isnan(figure(c, "cached_at_end_bytes"))))
			return true;
	}
	return !all_epochs_done(result);
}

bool recorded_unknown_dataset(const json_t *result, const struct workload *w)
{
	(void)w;
	return !json_is_string(part(part(result, "dataset"), "checked_by"));
}

bool recorded_unknown_order(const json_t *result, const struct workload *w)
{
	static const char *const parts[] = {"training", "evaluation"};
	bool any = false;

	(void)w;
	for (int k = 0; k < 2; k++) {
		const json_t *epochs = part(part(result, parts[k]), "epochs");

		for (size_t i = 0; i < json_array_size(epochs); i++) {
			any = true;
			if (!json_is_true(part(json_array_get(epochs, i), "order_proved")))
				return true;
		}
	}
	return !any;
}

bool recorded_unknown_rates(const json_t *result, const struct workload *w)
{
	const json_t *t = part(result, "training");

	(void)w;
	return !(figure(t, "epochs_done") > 0) || isnan(figure(t, "whole_au_mean_percent")) ||
	       isnan(figure(t, "au_mean_percent"));
}

bool recorded_unknown_client(const json_t *result, const struct workload *w)
{
	const json_t *epochs = epochs_of(result);

	for (size_t i = 0; i < json_array_size(epochs); i++)
		if (isnan(figure(part(json_array_get(epochs, i), "processors"),
				 "threads_waited_s")))
			return true;
	return !all_epochs_done(result) || nothing_measured(w);
}

bool recorded_unknown_checkpoint(const json_t *result, const struct workload *w)
{
	const json_t *each = part(part(part(result, "checkpoint"), "save"), "each");

	(void)w;
	for (size_t i = 0; i < json_array_size(each); i++)
		if (isnan(figure(json_array_get(each, i), "disk_written_bytes")))
			return true;
	return false;
}

bool recorded_unknown_always(const json_t *result, const struct workload *w)
{
	(void)result;
	(void)w;
	return true;
}

/* As dataset_file_share, from what a result says of a sample; 1 in older ones. */
double recorded_file_share(const json_t *result, const struct workload *w)
{
	const json_t *need = part(result, "need");
	double share = figure(need, "sample_file_bytes") / figure(need, "sample_decoded_bytes");

	/* an image is read whole for each of its samples */
	if (workload_format(w)->flags & FORMAT_IMAGE)
		share /= (double)w->dataset.num_samples_per_file;
	return share > 0 && isfinite(share) ? share : 1;
}

void recorded_device(const json_t *result, const struct workload *w, struct verdict *v)
{
	const json_t *t = part(result, "training"), *x = part(part(result, "dataset"), "extents");
	double returned = figure(t, "returned_bytes"), device = figure(t, "device_read_bytes");

	/* what the device delivered is asked in the same words, whatever was in the page cache;
	 * a reader may go through a file more than once, files may take less than they hold */
	if (recorded_unknown_bytes(result, w) || !(returned > 0) ||
	    !(device < 0.999 * DEVICE_SHARE * returned) ||
	    device >= DEVICE_SHARE * figure(t, "payload_bytes") * recorded_file_share(result, w) ||
	    figure(x, "compressed_files") + figure(x, "inline_files") > 0)
		return;
	v->level = VERDICT_WARN;
	verdict_say(v, "%.10g of %.10g bytes came from the device.", device, returned);
}
