/* The measures of a run as a file. What its structs are made of is said here once, member by
 * member; how members become bytes is the same for all of them. */
#include "result/measures.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/program.h"
#include "base/saturate.h"
#include "base/vector.h"
#include "codec/columns.h"
#include "dataset/listed.h"
#include "metric/series.h"

static const char first_line[] = "stoker measures 1\n";
#define MEMORY_TIMES 512
#define REQUEST_NS_MOST ((int64_t)1 << 60)
#define MEMORY_LEAST ((size_t)64 << 20)

/* ---- what the structs are made of ---- */

#define SHAPE struct proc_io
DEFINE_SHAPE(proc_io, V(known), V(rchar_bytes), V(read_bytes), V(write_bytes), V(syscr));
#undef SHAPE

#define SHAPE struct checkpoint_stat
DEFINE_SHAPE(checkpoint_stat, V(files), V(payload_bytes), V(file_bytes), V(part_ns), V(total_ns));
#undef SHAPE

#define SHAPE struct checkpoint_times
DEFINE_SHAPE(checkpoint_times, V(number), V(epoch), V(step), V(total_steps), V(done), V(begin_ns),
	     V(end_ns), V(begin_wall_ns), V(end_wall_ns), V(stall_ns), V(wait_ns), V(stage_ns),
	     V(waited_ns), S(stat, checkpoint_stat), S(io_before, proc_io), S(io_after, proc_io),
	     V(disk_known), V(disk_before_bytes), V(disk_after_bytes));
#undef SHAPE

#define SHAPE struct step_times
DEFINE_SHAPE(step_times, V(ask_ns), V(got_ns), V(compute_begin_ns), V(compute_end_ns),
	     V(barrier_in_ns), V(barrier_out_ns), V(share), V(over_compute), V(service_us),
	     V(ready_us), V(late_compute), V(late_barrier));
#undef SHAPE

#define SHAPE struct phase
DEFINE_SHAPE(phase, V(kind), V(number), V(begin_ns), V(end_ns), V(begin_wall_ns), V(end_wall_ns),
	     V(first_step), V(steps), V(samples));
#undef SHAPE

#define SHAPE struct order_proof
DEFINE_SHAPE(order_proof, V(count), V(sum_a), V(sum_b), V(refused));
#undef SHAPE

#define SHAPE struct epoch_split
DEFINE_SHAPE(epoch_split, V(wait_ns), V(work_ns), V(batches), V(ready), V(service_ns),
	     V(service_sq), V(delivery_ns), V(waited), V(framework_start_ns), V(framework_step_ns),
	     V(framework_loop_ns), V(framework_late_ns));
#undef SHAPE

#define SHAPE struct requested
DEFINE_SHAPE(requested, V(known), V(asked_bytes), V(returned_bytes));
#undef SHAPE

#define SHAPE struct fetched
DEFINE_SHAPE(fetched, V(shards), V(requests), V(bytes), V(removed), V(removed_bytes), V(busy_ns),
	     V(waited_ns));
#undef SHAPE

#define SHAPE struct rank_epoch
DEFINE_SHAPE(rank_epoch, V(begin_wall_ns), V(train_end_wall_ns), V(end_wall_ns), V(begin_ns),
	     V(train_end_ns), V(end_ns), V(blocks), V(saves), V(loads), V(steps_planned),
	     V(has_eval), S(delivered, order_proof), S(eval_delivered, order_proof),
	     S(rest, order_proof), S(eval_rest, order_proof), V(accounted), V(eval_accounted),
	     S(split, epoch_split), S(eval_split, epoch_split), V(payload_bytes),
	     V(eval_payload_bytes), S(train_requested, requested), S(eval_requested, requested),
	     S(train_fetched, fetched), S(eval_fetched, fetched), V(framework_ns),
	     V(eval_framework_ns));
#undef SHAPE

#define SHAPE struct hist
DEFINE_SHAPE(hist, V(total), V(min), V(max), V(sum), V(count));
#undef SHAPE

#define SHAPE struct read_seen
DEFINE_SHAPE(read_seen, V(begin_ns), V(end_ns), V(bytes), V(place), V(name));
#undef SHAPE

#define SHAPE struct io_latency
DEFINE_SHAPE(io_latency, V(total), V(max_ns), V(count));
#undef SHAPE

/* the requests of a log are chunks of their own */
#define SHAPE struct read_log
DEFINE_SHAPE(read_log, V(apart), V(wide), V(n));
#undef SHAPE

#define SHAPE __typeof__(((struct io_stat *)0)->kind[0])
DEFINE_SHAPE(io_kind, V(requests), V(asked_bytes), V(returned_bytes), V(busy_ns),
	     S(latency_ns, hist));
#undef SHAPE

#define SHAPE struct io_stat
DEFINE_SHAPE(io, S(kind, io_kind), S(reads, read_log), S(opens, read_log), S(sized, io_latency));
#undef SHAPE

#define SHAPE struct slow_sample
DEFINE_SHAPE(slow_sample, V(sample), V(begin_ns), V(ns));
#undef SHAPE

#define SHAPE struct slow_samples
DEFINE_SHAPE(slow_samples, V(least_ns), V(n), S(kept, slow_sample));
#undef SHAPE

#define SHAPE struct service_times
DEFINE_SHAPE(service_times, V(n), V(stride), V(seen), V(ns));
#undef SHAPE

#define SHAPE struct rank_result
DEFINE_SHAPE(rank, V(worker_busy_ns), V(worker_idle_ns), V(preprocess_ns), V(drain_ns),
	     V(transport_ns), V(unpack_ns), V(pin_ns), V(framework_ns), V(framework_beyond_ns),
	     V(train_busy_ns), V(workers), V(prefetch_batches), S(service, service_times),
	     S(slow, slow_samples), V(sample_ns), V(lost));
#undef SHAPE

#define SHAPE struct block_counters
DEFINE_SHAPE(block_counters, V(known), V(reads), V(read_bytes), V(writes), V(written_bytes),
	     V(busy_ms), V(queued_ms), V(under_way));
#undef SHAPE

#define SHAPE struct net_io
DEFINE_SHAPE(net_io, V(known), V(received_bytes), V(sent_bytes), V(loopback_bytes), V(rdma_known),
	     V(rdma_received_bytes), V(rdma_sent_bytes));
#undef SHAPE

#define SHAPE struct fs_client_io
DEFINE_SHAPE(fs_client_io, V(known), V(fetched_known), V(returned_bytes), V(fetched_bytes),
	     V(sent_bytes));
#undef SHAPE

#define SHAPE struct host_io
DEFINE_SHAPE(host_io, S(whole, block_counters), S(part, block_counters), S(lower, block_counters),
	     S(net, net_io), S(client, fs_client_io), S(disks, block_counters));
#undef SHAPE

#define SHAPE struct memory_pressure
DEFINE_SHAPE(memory_pressure, V(stall_ns), V(refault_bytes), V(limit_bytes));
#undef SHAPE

#define SHAPE struct processor_group
DEFINE_SHAPE(processor_group, V(quota), V(periods), V(throttled_periods), V(throttled_ns), V(id),
	     V(of_threads), V(first_periods), V(first_throttled_periods), V(first_throttled_ns));
#undef SHAPE

#define SHAPE struct processors
DEFINE_SHAPE(processors, V(wall_ns), V(waited_ns), V(ran_ns), V(cpu_ns), V(busy_ns), V(steal_ns),
	     V(pressure_ns), V(involuntary), S(group, processor_group), V(groups), V(allowed),
	     V(online), V(nice), V(idle_class), V(stopped_ns), V(frozen_ns), V(stops), V(freezes),
	     V(frozen_thread));
#undef SHAPE

#define SHAPE struct residency
DEFINE_SHAPE(residency, V(known), V(why), V(memory), V(file_system), V(mincore), V(files),
	     V(looked), V(bytes), V(cached_bytes), V(reclaimed_bytes), V(hosts), V(process),
	     V(hosts_cached_bytes));
#undef SHAPE

#define SHAPE struct epoch_usage
DEFINE_SHAPE(usage, S(train, proc_io), S(eval, proc_io), S(host_train, host_io),
	     S(host_eval, host_io), V(cpu_ns), V(wall_ns), V(host_cpu_ns),
	     S(memory, memory_pressure), V(memory_process), S(cpu_train, processors),
	     S(cpu_eval, processors), V(cpu_train_process), V(cpu_eval_process), V(cpu_eval_ns),
	     V(evicted), V(evict_ns), V(own_mapped_bytes), S(cache_found, residency),
	     S(cache_start, residency), S(cache_end, residency), S(cache_eval, residency),
	     V(eval_wall_ns), V(order_note), V(order_kept), V(eval_order_note), V(eval_order_kept));
#undef SHAPE

#define SHAPE struct host_facts
DEFINE_SHAPE(host_facts, V(hostname), V(kernel), V(processor), V(cpu_count), V(usable_cpus),
	     V(memory_gib));
#undef SHAPE

#define SHAPE struct result_process
DEFINE_SHAPE(process, V(hostname), V(node), V(first_rank), V(ranks), V(lost), V(own),
	     V(wall_offset_ns), V(offset_error_ns), V(peak_rss_bytes), S(host, host_facts));
#undef SHAPE

#define SHAPE struct server_counts
DEFINE_SHAPE(server_counts, V(requests), V(failed), V(again), V(again_ns), V(connections),
	     V(reopened), V(body_sent), V(body_received), V(wire_sent), V(wire_received),
	     V(answers), V(first_ns), V(last_ns), V(clumped), V(beside_clump));
#undef SHAPE

#define SHAPE struct server_use
DEFINE_SHAPE(server_use, V(address), V(tls), V(given), V(skew_s), V(first_max_ns),
	     S(whole, server_counts), S(timed, server_counts));
#undef SHAPE

#define SHAPE struct barrier_cost
DEFINE_SHAPE(barrier, V(count), V(median_s), V(mean_s), V(max_s), V(way), V(processes), V(depth),
	     V(messages), V(sockets_s), V(mpi_s), V(library));
#undef SHAPE

#define SHAPE struct memory_copy
DEFINE_SHAPE(memory_copy, V(threads), V(bytes_per_s));
#undef SHAPE

#define SHAPE struct probe_point
DEFINE_SHAPE(probe_point, V(readers), V(seconds), V(samples), V(opens), V(requests), V(bytes),
	     V(open_s), V(read_s), V(meta_s), V(reader_s), V(longest_s), V(cpu_s));
#undef SHAPE

#define SHAPE struct probe
DEFINE_SHAPE(probe, V(asked), V(own), V(done), V(hung), V(why), V(cold), V(evict_s), V(run_readers),
	     V(processes), V(count), V(sized_count));
#undef SHAPE

#define SHAPE struct survey
DEFINE_SHAPE(survey, V(named), V(distinct), V(mapped), V(mapped_bytes), V(hole_files),
	     V(hole_bytes), V(compressed_files), V(inline_files), V(twin_files), V(shared_files),
	     V(counted), V(sparse_files), V(samples), V(files), V(bytes), V(places), V(file_bytes),
	     V(unknown_files), V(files_as_generated), V(zero_files), V(constant_files),
	     V(copied_files), V(other_files), V(failed_files), V(derivable), V(out_of_time),
	     V(first));
#undef SHAPE

#define SHAPE struct presence_result
DEFINE_SHAPE(presence, V(how), V(files_found), V(sizes_checked), V(note), S(survey, survey));
#undef SHAPE

#define SHAPE struct block_device
DEFINE_SHAPE(block_device, V(name), V(path));
#undef SHAPE

#define SHAPE struct block_list
DEFINE_SHAPE(block_list, V(n), S(device, block_device));
#undef SHAPE

#define SHAPE struct block_tree
DEFINE_SHAPE(block_tree, S(whole, block_list), S(part, block_list), S(lower, block_list), V(loop),
	     V(memory), V(cached), V(unseen));
#undef SHAPE

#define SHAPE struct fs_client
DEFINE_SHAPE(fs_client, V(kind), V(network), V(uncounted), V(local_server), V(type), V(place),
	     V(name));
#undef SHAPE

#define SHAPE struct io_limit
DEFINE_SHAPE(io_limit, V(device), V(bytes_per_s), V(reads_per_s));
#undef SHAPE

#define SHAPE struct host_io_source
DEFINE_SHAPE(source, S(tree, block_tree), S(client, fs_client), S(disks, block_list),
	     V(file_system), V(memory), V(interfaces), S(limit, io_limit));
#undef SHAPE

#define SHAPE struct checkpoint_totals
DEFINE_SHAPE(totals, V(ranks), V(writers), V(files), V(model_bytes), V(optimizer_bytes),
	     V(total_bytes), V(whole_ranks), V(whole_bytes), V(dlio_model_bytes),
	     V(dlio_optimizer_bytes));
#undef SHAPE

#define SHAPE struct series_point
DEFINE_SHAPE(point, V(t_ns), S(disk, block_counters), S(process, proc_io), V(process_cpu_ns),
	     V(cpu_busy_ticks), V(cpu_all_ticks), V(cached_bytes), V(dirty_bytes),
	     V(available_bytes), V(user));
#undef SHAPE

#define SHAPE struct probe_log
DEFINE_SHAPE(probe_log, V(n), V(apart), V(wide));
#undef SHAPE

#define SHAPE struct err
DEFINE_SHAPE(err, V(code), V(text));
#undef SHAPE

#define SHAPE struct result
DEFINE_SHAPE(result, V(status), S(reason, err), V(unwritable), V(begin_wall_ns), V(end_wall_ns),
	     V(begin_ns), V(trained), V(evaluated), V(generated), V(only_evaluated),
	     V(checkpointed), S(checkpoint_totals, totals), V(checkpoint_parameters),
	     V(generation.files), V(generation.skipped), V(generation.bytes), V(generation.wall_ns),
	     V(generation.mean_file_bytes), V(ranks), V(epochs_planned), V(epochs_begun),
	     V(epochs_done), V(steps_per_epoch), V(eval_steps), V(dropped_samples), V(processes),
	     V(nodes), S(host, host_facts), V(memory_bound_bytes), V(peak_rss_bytes),
	     S(presence, presence), V(shuffle_seed), S(barrier, barrier),
	     S(memory_copy, memory_copy), S(probe, probe), V(folder), V(id));
#undef SHAPE

/* What of a result is there at all, and what of its dataset was seen. */
struct holds {
	bool ranks, save_io, load_io, eval_io, usage, processes, source, checkpoint_source, series,
		dataset;
	uint64_t name_total[DATASET_KINDS], seen_files[DATASET_KINDS], seen_bytes[DATASET_KINDS];
};
#define SHAPE struct holds
DEFINE_SHAPE(holds, V(ranks), V(save_io), V(load_io), V(eval_io), V(usage), V(processes), V(source),
	     V(checkpoint_source), V(series), V(dataset), V(name_total), V(seen_files),
	     V(seen_bytes));
#undef SHAPE

#define SHAPE struct listed_totals
DEFINE_SHAPE(listed_totals, V(samples), V(bytes), V(payload), V(max_sample_bytes),
	     V(max_file_bytes));
#undef SHAPE

/* ---- what is in it, in the order of the file ---- */

/* Arrays that are told in one chunk. */
struct pieces {
	struct piece *v;
	size_t n, room;
};

static void add_piece(struct pieces *p, const void *at, size_t n)
{
	VECTOR_PUSH(p->v, p->n, p->room, {at, n});
}

/* Those of every level, gathered once for writing and, once there is memory for them, for reading.
 */
struct levels {
	struct pieces io, seen, epoch, phase, step, save, load;
};

static void levels_release(struct levels *l)
{
	free(l->io.v);
	free(l->seen.v);
	free(l->epoch.v);
	free(l->phase.v);
	free(l->step.v);
	free(l->save.v);
	free(l->load.v);
}

static void add_io(struct levels *l, const struct io_stat *io)
{
	if (io)
		add_piece(&l->io, io, 1);
}

/* The requests of all: two logs each. */
static void add_logs(struct levels *l)
{
	for (size_t i = 0; i < l->io.n; i++) {
		const struct io_stat *io = l->io.v[i].at;

		add_piece(&l->seen, io->reads.seen, io->reads.n);
		add_piece(&l->seen, io->opens.seen, io->opens.n);
	}
}

/* What all ranks have where one has it: of a rank that was lost, nothing came. */
static void add_all_io(struct levels *l, const struct result *r, const struct holds *h)
{
	static struct io_stat none;

	for (uint32_t k = 0; r->rank && k < r->ranks_here; k++) {
		const struct rank_result *one = &r->rank[k];

		add_io(l, &one->train_io);
		add_io(l, h->save_io && !one->save_io ? &none : one->save_io);
		add_io(l, h->load_io && !one->load_io ? &none : one->load_io);
	}
	add_io(l, r->eval_io);
}

static void add_epochs(struct levels *l, const struct result *r)
{
	for (uint32_t k = 0; r->rank && k < r->ranks_here; k++)
		add_piece(&l->epoch, r->rank[k].epoch, r->rank[k].epoch ? r->epochs_begun : 0);
}

static void add_phases(struct levels *l)
{
	for (size_t p = 0; p < l->epoch.n; p++) {
		const struct rank_epoch *ep = l->epoch.v[p].at;

		for (const struct rank_epoch *end = ep + l->epoch.v[p].n; ep < end; ep++) {
			add_piece(&l->phase, ep->block, ep->block ? ep->blocks : 0);
			add_piece(&l->phase, &ep->eval, ep->has_eval);
			add_piece(&l->save, ep->save, ep->saves);
			add_piece(&l->load, ep->load, ep->loads);
		}
	}
}

static void add_steps(struct levels *l)
{
	for (size_t p = 0; p < l->phase.n; p++) {
		const struct phase *phase = l->phase.v[p].at;

		for (size_t i = 0; i < l->phase.v[p].n; i++)
			add_piece(&l->step, phase[i].step, phase[i].step ? phase[i].steps : 0);
	}
}

/* ---- writing ---- */

static void put_one(struct buf *b, const char *name, const struct shape *shape, const void *at,
		    size_t n)
{
	columns_put(b, name, shape, &(struct piece){at, n}, 1);
}

static void put_pieces(struct buf *b, const char *name, const struct shape *shape,
		       const struct pieces *p)
{
	columns_put(b, name, shape, p->v, p->n);
}

/* Keys and values in turn. */
static void put_pairs(struct buf *b, const char *name, const struct sysinfo_pair *pair, size_t n)
{
	const char **text = xcalloc(2 * n + 1, sizeof(*text));

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = pair[i].key;
		text[2 * i + 1] = pair[i].value;
	}
	columns_put_texts(b, name, text, 2 * n);
	free(text);
}

static void put_epoch_pairs(struct buf *b, const char *of, uint32_t i,
			    const struct sysinfo_pair *pair, size_t n)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.%u", of, i);
	if (n)
		put_pairs(b, name, pair, n);
}

static void put_list(struct buf *b, const char *name, const struct str_list *l)
{
	columns_put_texts(b, name, (const char *const *)l->v, l->n);
}

static void put_processes(struct buf *b, const struct result *r)
{
	char of[48];

	put_one(b, "processes", &shape_process, r->process, r->process ? r->processes : 0);
	for (uint32_t p = 0; r->process && p < r->processes; p++) {
		const struct result_process *one = &r->process[p];

		put_epoch_pairs(b, "process_cpuinfo", p, one->host.cpuinfo,
				one->host.cpuinfo_count);
		put_epoch_pairs(b, "process_hostmeminfo", p, one->host.meminfo,
				one->host.meminfo_count);
		snprintf(of, sizeof(of), "process_meminfo.%u", p);
		for (uint32_t i = 0; one->meminfo && i < r->epochs_begun; i++)
			put_epoch_pairs(b, of, i, one->meminfo[i].pairs, one->meminfo[i].count);
	}
}

/* Its points, and of each the two logs of its requests. */
static void add_points(const struct probe *p, struct pieces *points, struct pieces *logs)
{
	for (uint32_t i = 0; i < probe_points(p); i++) {
		const struct probe_point *at = probe_point_at(p, i);

		add_piece(points, at, 1);
		add_piece(logs, &at->reads, 1);
		add_piece(logs, &at->open_log, 1);
	}
}

static void put_probe(struct buf *b, const struct probe *p)
{
	struct pieces points = {0}, logs = {0}, seen = {0};

	add_points(p, &points, &logs);
	for (size_t i = 0; i < logs.n; i++) {
		const struct probe_log *log = logs.v[i].at;

		add_piece(&seen, log->seen, log->n);
	}
	put_pieces(b, "probe_points", &shape_probe_point, &points);
	put_pieces(b, "probe_logs", &shape_probe_log, &logs);
	put_pieces(b, "probe_seen", &shape_read_seen, &seen);
	free(points.v);
	free(logs.v);
	free(seen.v);
}

static void put_series(struct buf *b, const struct series *s)
{
	size_t n;
	const struct series_point *point = series_points(s, &n);

	if (!s)
		return;
	put_one(b, "series_devices", &shape_block_list, series_devices(s), 1);
	put_one(b, "series", &shape_point, point, n);
}

static struct holds holds_of(const struct result *r)
{
	struct holds h = {.ranks = r->rank && r->ranks_here,
			  .eval_io = r->eval_io != NULL,
			  .usage = r->usage != NULL,
			  .processes = r->process != NULL,
			  .source = r->host_source != NULL,
			  .checkpoint_source = r->checkpoint_source != NULL,
			  .series = r->series != NULL,
			  .dataset = r->dataset != NULL};

	for (uint32_t k = 0; h.ranks && k < r->ranks_here; k++) {
		h.save_io |= r->rank[k].save_io != NULL;
		h.load_io |= r->rank[k].load_io != NULL;
	}
	for (int k = 0; r->dataset && k < DATASET_KINDS; k++) {
		h.name_total[k] = r->dataset->name_total[k];
		h.seen_files[k] = r->dataset->seen_files[k];
		h.seen_bytes[k] = r->dataset->seen_bytes[k];
	}
	return h;
}

/* Of files that others wrote: totals, and for each of the slowest samples the path of its file. */
static void put_listed(struct buf *b, const struct result *r)
{
	const struct dataset *d = r->dataset;
	struct listed_totals totals;
	struct str_list path = {0};

	if (!d || !d->listed)
		return;
	totals = dataset_listed_totals(d);
	put_one(b, "listed", &shape_listed_totals, &totals, 1);
	for (uint32_t k = 0; r->rank && k < r->ranks_here; k++)
		for (uint32_t i = 0; i < r->rank[k].slow.n; i++) {
			char at[DATASET_PATH_MAX];

			result_sample_file(r, r->rank[k].slow.kept[i].sample, at, sizeof(at));
			str_list_add(&path, xstrdup(at + (at[0] ? strlen(d->folder) + 1 : 0)));
		}
	put_list(b, "listed_paths", &path);
	str_list_release(&path);
}

void measures_put(const struct result *r, struct buf *out)
{
	const struct holds holds = holds_of(r);
	struct levels l = {0};

	add_all_io(&l, r, &holds);
	add_logs(&l);
	add_epochs(&l, r);
	add_phases(&l);
	add_steps(&l);
	buf_puts(out, first_line);
	put_one(out, "holds", &shape_holds, &holds, 1);
	put_one(out, "result", &shape_result, r, 1);
	columns_put_texts(out, "build", (const char *const[]){build_id}, 1);
	put_list(out, "warnings", &r->workload->warnings);
	put_list(out, "notes", &r->workload->notes);
	put_list(out, "added", &r->workload->added);
	put_pairs(out, "cpuinfo", r->host.cpuinfo, r->host.cpuinfo_count);
	put_pairs(out, "meminfo", r->host.meminfo, r->host.meminfo_count);
	put_pairs(out, "system", r->system.pair, r->system.pairs);
	put_one(out, "source", &shape_source, r->host_source, r->host_source != NULL);
	put_one(out, "checkpoint_source", &shape_source, r->checkpoint_source,
		r->checkpoint_source != NULL);
	put_one(out, "ranks", &shape_rank, r->rank, r->rank ? r->ranks_here : 0);
	put_pieces(out, "io", &shape_io, &l.io);
	put_pieces(out, "seen", &shape_read_seen, &l.seen);
	put_pieces(out, "epochs", &shape_rank_epoch, &l.epoch);
	put_pieces(out, "phases", &shape_phase, &l.phase);
	put_pieces(out, "steps", &shape_step_times, &l.step);
	put_pieces(out, "saves", &shape_checkpoint_times, &l.save);
	put_pieces(out, "loads", &shape_checkpoint_times, &l.load);
	put_one(out, "usage", &shape_usage, r->usage, r->usage ? r->epochs_begun : 0);
	for (uint32_t i = 0; r->usage && i < r->epochs_begun; i++)
		put_epoch_pairs(out, "epoch_meminfo", i, r->usage[i].meminfo,
				r->usage[i].meminfo_count);
	put_processes(out, r);
	put_one(out, "servers", &shape_server_use, r->servers.use, r->servers.n);
	put_probe(out, &r->probe);
	put_series(out, r->series);
	put_listed(out, r);
	columns_put_texts(out, "end", (const char *const[]){"end"}, 1);
	levels_release(&l);
}

/* ---- reading ---- */

struct loading {
	struct columns_in in;
	struct result *r;
	const struct dataset *dataset; /* NULL: none */
	struct err *e;
	int rc; /* the first failure; what follows does nothing */
};

static void get_pieces(struct loading *x, const char *name, const struct shape *shape,
		       const struct pieces *p)
{
	if (x->rc == 0)
		x->rc = columns_get(&x->in, name, shape, p->v, p->n, x->e);
}

static void get_one(struct loading *x, const char *name, const struct shape *shape, void *at,
		    size_t n)
{
	if (x->rc == 0)
		x->rc = columns_get(&x->in, name, shape, &(struct piece){at, n}, 1, x->e);
}

static void *room(struct loading *x, size_t n, size_t size)
{
	void *p = x->rc == 0 ? columns_room(&x->in, n, size, x->e) : NULL;

	if (!p && x->rc == 0)
		x->rc = x->e->code;
	return p;
}

static void demand(struct loading *x, bool holds, const char *what)
{
	if (x->rc == 0 && !holds)
		x->rc = err_set(x->e, -EINVAL, "'%s' is damaged: %s cannot be", x->in.name, what);
}

struct pair_list {
	struct sysinfo_pair *pair;
	size_t n;
	bool value; /* comes next */
};

static void take_pair(void *arg, const char *text)
{
	struct pair_list *l = arg;

	if (l->value)
		l->pair[l->n++].value = xstrdup(text);
	else
		l->pair[l->n].key = xstrdup(text);
	l->value = !l->value;
}

static void get_pairs(struct loading *x, const char *name, struct sysinfo_pair **out, size_t *count)
{
	size_t n = columns_count(&x->in, name) / 2;
	struct pair_list l = {0};

	if (n == 0)
		return;
	l.pair = room(x, n + 1, sizeof(*l.pair));
	if (!l.pair)
		return;
	x->rc = columns_get_texts(&x->in, name, take_pair, &l, x->e);
	if (l.value) /* a key without its value */
		free(l.pair[l.n].key);
	*out = l.pair;
	*count = l.n;
}

static void get_epoch_pairs(struct loading *x, const char *of, uint32_t i,
			    struct sysinfo_pair **out, size_t *count)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.%u", of, i);
	get_pairs(x, name, out, count);
}

static void take_text(void *arg, const char *text)
{
	str_list_add(arg, xstrdup(text));
}

static void take_build(void *arg, const char *text)
{
	struct result *r = arg;

	snprintf(r->build, sizeof(r->build), "%s", text);
}

static void get_list(struct loading *x, const char *name, struct str_list *l)
{
	str_list_release(l);
	if (x->rc == 0)
		x->rc = columns_get_texts(&x->in, name, take_text, l, x->e);
}

static struct host_io_source *get_source(struct loading *x, bool there, const char *name)
{
	struct host_io_source *s = there ? room(x, 1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	get_one(x, name, &shape_source, s, 1);
	demand(x,
	       s->tree.whole.n <= BLOCK_DEVICES_MAX && s->tree.part.n <= BLOCK_DEVICES_MAX &&
		       s->tree.lower.n <= BLOCK_DEVICES_MAX && s->disks.n <= BLOCK_DEVICES_MAX &&
		       s->client.kind <= FS_CLIENT_LUSTRE,
	       "its storage path");
	return s;
}

static void get_ranks(struct loading *x, const struct holds *h)
{
	struct result *r = x->r;
	/* numbers of files with fewer samples than others have gaps (sample_counts.h) */
	uint64_t samples = x->dataset ? u64_product(x->dataset->files[DATASET_TRAIN],
						    x->dataset->samples_per_file)
				      : UINT64_MAX;

	demand(x, columns_count(&x->in, "ranks") == r->ranks && r->ranks > 0,
	       "the number of ranks");
	r->rank = room(x, r->ranks, sizeof(*r->rank));
	if (!r->rank)
		return;
	r->ranks_here = r->ranks;
	get_one(x, "ranks", &shape_rank, r->rank, r->ranks);
	for (uint32_t k = 0; x->rc == 0 && k < r->ranks; k++) {
		struct rank_result *one = &r->rank[k];

		one->epoch = room(x, r->epochs_begun, sizeof(*one->epoch));
		if (h->save_io)
			one->save_io = room(x, 1, sizeof(*one->save_io));
		if (h->load_io)
			one->load_io = room(x, 1, sizeof(*one->load_io));
		demand(x, one->service.n <= SERVICE_KEPT && one->slow.n <= SLOW_SAMPLES_KEPT,
		       "a rank's samples");
		for (uint32_t i = 0; x->rc == 0 && i < one->slow.n; i++)
			demand(x, one->slow.kept[i].sample < samples, "a sample");
	}
}

static bool windows_can_be(uint64_t apart, uint64_t wide)
{
	return (apart & (apart - 1)) == 0 && (wide & (wide - 1)) == 0 && wide <= apart;
}

static bool log_can_be(const struct read_log *l)
{
	return l->n <= READ_LOG_KEPT && windows_can_be(l->apart, l->wide);
}

static void demand_times(struct loading *x, const struct pieces *seen)
{
	for (size_t p = 0; p < seen->n; p++)
		for (size_t i = 0; i < seen->v[p].n; i++) {
			const struct read_seen *s = (const struct read_seen *)seen->v[p].at + i;

			demand(x,
			       s->begin_ns >= 0 && s->end_ns >= s->begin_ns &&
				       s->end_ns - s->begin_ns < REQUEST_NS_MOST,
			       "the times of a request");
		}
}

static void get_io(struct loading *x, const struct holds *h, struct levels *l)
{
	add_all_io(l, x->r, h);
	get_pieces(x, "io", &shape_io, &l->io);
	for (size_t i = 0; i < l->io.n; i++) {
		const struct io_stat *io = l->io.v[i].at;

		demand(x, log_can_be(&io->reads) && log_can_be(&io->opens), "a log of requests");
	}
	if (x->rc == 0)
		add_logs(l);
	get_pieces(x, "seen", &shape_read_seen, &l->seen);
	demand_times(x, &l->seen);
}

static void get_epochs(struct loading *x, struct levels *l)
{
	add_epochs(l, x->r);
	get_pieces(x, "epochs", &shape_rank_epoch, &l->epoch);
	for (size_t p = 0; p < l->epoch.n; p++)
		for (size_t i = 0; x->rc == 0 && i < l->epoch.v[p].n; i++) {
			struct rank_epoch *ep =
				(struct rank_epoch *)(uintptr_t)l->epoch.v[p].at + i;

			ep->block = room(x, ep->blocks, sizeof(*ep->block));
			ep->save = room(x, ep->saves, sizeof(*ep->save));
			ep->load = room(x, ep->loads, sizeof(*ep->load));
			ep->block_capacity = ep->block ? ep->blocks : 0;
			ep->save_capacity = ep->saves;
		}
	if (x->rc < 0)
		return;
	add_phases(l);
	get_pieces(x, "phases", &shape_phase, &l->phase);
	get_pieces(x, "saves", &shape_checkpoint_times, &l->save);
	get_pieces(x, "loads", &shape_checkpoint_times, &l->load);
	for (size_t p = 0; p < l->phase.n; p++)
		for (size_t i = 0; x->rc == 0 && i < l->phase.v[p].n; i++) {
			struct phase *one = (struct phase *)(uintptr_t)l->phase.v[p].at + i;

			demand(x, one->kind <= PHASE_EVAL, "the kind of a phase");
			one->step = room(x, one->steps, sizeof(*one->step));
			one->capacity = one->steps;
		}
	if (x->rc == 0)
		add_steps(l);
	get_pieces(x, "steps", &shape_step_times, &l->step);
}

static void get_usage(struct loading *x)
{
	struct result *r = x->r;
	uint32_t processes = r->processes ? r->processes : 1;

	r->usage = room(x, r->epochs_begun, sizeof(*r->usage));
	if (!r->usage)
		return;
	get_one(x, "usage", &shape_usage, r->usage, r->epochs_begun);
	for (uint32_t i = 0; x->rc == 0 && i < r->epochs_begun; i++) {
		struct epoch_usage *u = &r->usage[i];

		get_epoch_pairs(x, "epoch_meminfo", i, &u->meminfo, &u->meminfo_count);
		demand(x,
		       u->order_kept <= ORDER_UNKNOWN && u->eval_order_kept <= ORDER_UNKNOWN &&
			       u->cpu_train_process < processes &&
			       u->cpu_eval_process < processes && u->memory_process < processes &&
			       u->cache_start.process < processes &&
			       u->cache_end.process < processes &&
			       u->cache_found.process < processes &&
			       u->cache_eval.process < processes &&
			       u->cpu_train.groups <= PROCESSOR_GROUPS_MAX &&
			       u->cpu_eval.groups <= PROCESSOR_GROUPS_MAX,
		       "what is counted of an epoch");
	}
}

static void get_processes(struct loading *x)
{
	struct result *r = x->r;
	char of[48];

	demand(x, columns_count(&x->in, "processes") == r->processes, "the number of processes");
	r->process = room(x, r->processes, sizeof(*r->process));
	get_one(x, "processes", &shape_process, r->process, r->processes);
	for (uint32_t p = 0; x->rc == 0 && p < r->processes; p++) {
		struct result_process *one = &r->process[p];

		demand(x,
		       one->node < r->nodes && one->first_rank <= r->ranks &&
			       one->ranks <= r->ranks - one->first_rank,
		       "the host or the ranks of a process");
		get_epoch_pairs(x, "process_cpuinfo", p, &one->host.cpuinfo,
				&one->host.cpuinfo_count);
		get_epoch_pairs(x, "process_hostmeminfo", p, &one->host.meminfo,
				&one->host.meminfo_count);
		one->meminfo = room(x, r->epochs_begun, sizeof(*one->meminfo));
		snprintf(of, sizeof(of), "process_meminfo.%u", p);
		for (uint32_t i = 0; one->meminfo && i < r->epochs_begun; i++)
			get_epoch_pairs(x, of, i, &one->meminfo[i].pairs, &one->meminfo[i].count);
	}
}

static void get_servers(struct loading *x)
{
	struct servers *l = &x->r->servers;
	size_t n = columns_count(&x->in, "servers");

	demand(x, n <= SERVERS_MAX, "the number of its servers");
	if (n)
		l->use = room(x, n, sizeof(*l->use));
	if (!l->use)
		return;
	l->n = l->room = (uint32_t)n;
	get_one(x, "servers", &shape_server_use, l->use, n);
}

static void get_log(struct loading *x, struct probe_log *l, struct pieces *seen)
{
	l->seen = room(x, l->n, sizeof(*l->seen));
	add_piece(seen, l->seen, l->seen ? l->n : 0);
}

static void get_probe(struct loading *x)
{
	struct probe *p = &x->r->probe;
	struct pieces points = {0}, logs = {0}, seen = {0};

	p->hung = false;
	if (x->rc == 0)
		add_points(p, &points, &logs);
	get_pieces(x, "probe_points", &shape_probe_point, &points);
	get_pieces(x, "probe_logs", &shape_probe_log, &logs);
	for (size_t i = 0; i < logs.n; i++)
		get_log(x, (struct probe_log *)(uintptr_t)logs.v[i].at, &seen);
	get_pieces(x, "probe_seen", &shape_read_seen, &seen);
	demand_times(x, &seen);
	for (uint32_t i = 0; i < probe_points(p); i++)
		demand(x,
		       probe_point_at(p, i)->readers > 0 &&
			       probe_point_at(p, i)->readers <= PROBE_READERS_MAX &&
			       (i == 0 || i >= p->count ||
				p->point[i].readers > p->point[i - 1].readers),
		       "the readers of its probe");
	free(points.v);
	free(logs.v);
	free(seen.v);
}

static void get_series(struct loading *x)
{
	size_t n = columns_count(&x->in, "series");
	struct block_list *devices = room(x, 1, sizeof(*devices));
	struct series_point *point = room(x, n, sizeof(*point));

	if (devices && point) {
		get_one(x, "series_devices", &shape_block_list, devices, 1);
		get_one(x, "series", &shape_point, point, n);
		demand(x, devices->n <= BLOCK_DEVICES_MAX, "the devices of its curves");
	}
	if (devices && point && x->rc == 0)
		x->r->series = series_of(devices, point, n);
	else
		free(point);
	free(devices);
}

static bool holds_all(const struct columns_in *in, bool stated, const char *name)
{
	return stated || columns_count(in, name) == 0;
}

static void get_listed(struct loading *x, struct dataset *d)
{
	const struct result *r = x->r;
	struct listed_totals totals = {0};
	struct str_list path = {0};
	struct listed_name *name;
	size_t n = 0, paths = columns_count(&x->in, "listed_paths");

	if (!d || d->workload->dataset.names != NAMES_LISTED ||
	    columns_count(&x->in, "listed") != 1)
		return;
	get_one(x, "listed", &shape_listed_totals, &totals, 1);
	name = room(x, paths + 1, sizeof(*name));
	if (!name)
		return;
	get_list(x, "listed_paths", &path);
	for (uint32_t k = 0; r->rank && k < r->ranks_here; k++)
		for (uint32_t i = 0; i < r->rank[k].slow.n && n < path.n; i++, n++)
			name[n] = (struct listed_name){r->rank[k].slow.kept[i].sample /
							       d->samples_per_file,
						       xstrdup(path.v[n])};
	str_list_release(&path);
	dataset_recall(d, &totals, name, n);
}

static void get_result(struct loading *x, struct workload *w, struct dataset *d)
{
	struct result *r = x->r;
	struct holds h = {0};
	struct levels l = {0};

	if (columns_count(&x->in, "end") != 1)
		x->rc = err_set(x->e, -EINVAL, "'%s' is damaged: its end is missing", x->in.name);
	get_one(x, "holds", &shape_holds, &h, 1);
	get_one(x, "result", &shape_result, r, 1);
	demand(x,
	       r->status <= RUN_FAILED && r->barrier.way <= BARRIER_MPI &&
		       r->presence.how <= PRESENCE_LISTED && r->epochs_done <= r->epochs_begun &&
		       r->epochs_begun <= r->epochs_planned,
	       "its status, its epochs or its barrier");
	demand(x, r->probe.count <= PROBE_POINTS_MAX && r->probe.sized_count <= PROBE_SIZED_MAX,
	       "the number of points of its probe");
	demand(x, !h.ranks || !r->epochs_begun || h.usage, "epochs of which nothing was counted");
	demand(x, !h.ranks || !r->evaluated || r->trained || r->only_evaluated,
	       "an evaluation by ranks that neither trained nor evaluated alone");
	demand(x,
	       holds_all(&x->in, h.ranks, "ranks") && holds_all(&x->in, h.usage, "usage") &&
		       holds_all(&x->in, h.processes, "processes") &&
		       holds_all(&x->in, h.source, "source") &&
		       holds_all(&x->in, h.checkpoint_source, "checkpoint_source") &&
		       holds_all(&x->in, h.series, "series"),
	       "measures that it states not to have");
	if (x->rc < 0)
		r->probe = (struct probe){0};
	if (x->rc == 0 && columns_count(&x->in, "build"))
		x->rc = columns_get_texts(&x->in, "build", take_build, r, x->e);
	get_list(x, "warnings", &w->warnings);
	get_list(x, "notes", &w->notes);
	get_list(x, "added", &w->added);
	get_pairs(x, "cpuinfo", &r->host.cpuinfo, &r->host.cpuinfo_count);
	get_pairs(x, "meminfo", &r->host.meminfo, &r->host.meminfo_count);
	get_pairs(x, "system", &r->system.pair, &r->system.pairs);
	r->host_source = get_source(x, h.source, "source");
	r->checkpoint_source = get_source(x, h.checkpoint_source, "checkpoint_source");
	if (h.ranks)
		get_ranks(x, &h);
	if (h.eval_io)
		r->eval_io = room(x, 1, sizeof(*r->eval_io));
	if (x->rc == 0) {
		get_io(x, &h, &l);
		get_epochs(x, &l);
	}
	if (h.usage)
		get_usage(x);
	if (h.processes)
		get_processes(x);
	get_servers(x);
	get_probe(x);
	if (h.series)
		get_series(x);
	levels_release(&l);
	for (int k = 0; x->rc == 0 && h.dataset && d && k < DATASET_KINDS; k++)
		if (h.name_total[k] < d->files[k])
			x->rc = err_set(x->e, -EINVAL,
					"the measures are of a dataset of %" PRIu64
					" files, and the configuration beside them reads %" PRIu64
					": one of them was changed after the run",
					h.name_total[k], d->files[k]);
	if (x->rc == 0 && h.dataset && d &&
	    memcmp(h.name_total, d->name_total, sizeof(h.name_total)) != 0)
		x->rc = dataset_set_name_total(d, h.name_total, x->e);
	for (int k = 0; h.dataset && d && k < DATASET_KINDS; k++) {
		d->seen_files[k] = h.seen_files[k];
		d->seen_bytes[k] = h.seen_bytes[k];
	}
	if (x->rc == 0 && h.dataset)
		get_listed(x, d);
	r->dataset = h.dataset ? d : NULL;
}

int measures_read(struct result *r, struct workload *w, struct dataset *d, const char *data,
		  size_t n, const char *name, struct err *e)
{
	size_t head = sizeof(first_line) - 1;
	struct loading x = {.r = r, .dataset = d, .e = e};

	*r = (struct result){.workload = w};
	if (n < head || memcmp(data, first_line, head) != 0)
		return err_set(e, -EINVAL,
			       "'%s' does not begin as the measures of a run do: it is damaged, or "
			       "of a later version",
			       name);
	x.rc = columns_open(&x.in, data + head, n - head, name, MEMORY_LEAST + MEMORY_TIMES * n, e);
	if (x.rc == 0)
		get_result(&x, w, d);
	return x.rc;
}

void measures_release(struct result *r)
{
	/* no more was made */
	r->epochs_planned = r->epochs_begun;
	result_release(r);
}
