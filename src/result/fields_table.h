/* Every figure of result.json: one row each, in the order in which they are written. Included
 * several times, by fields.h and fields.c, each of which says what a row means to it:
 *
 * SECTION(S, says)                                 an object of result.json; its rows follow
 * FIGURE(S, ID, key, TYPE, unit, when, value, says)     a figure: F_S_ID
 * ONE(S, ID, key, CHILD, when, item, says)         an object of section CHILD
 * MANY(S, ID, key, CHILD, n, item, says)           a list of n of them
 * NAMED(S, ID, key, CHILD, names, n, item, says)   an object with n of them, by names
 * PARTS(S, ID, key, unit, names, n, value, says)   an object with n numbers, by names
 * TOLD(S, ID, key, TYPE, says)                     a figure that the function of a JSON row writes
 * SHOWN(S, ID, key, TYPE, unit, when, value, says) a figure that tables of runs have, too: the CSV
 *                                                  of report, compare, the page. Its section is
 *                                                  RUN or one that ONE rows lead to.
 *
 * In `when`, `n`, `value` and `item`: r is the result, m its metrics, x what this object is of (its
 * type is AT_S of fields_view.h), i the number in the list. `room` has the size of what the child
 * is of. `when` is true, false (the key is left out) or OR_NULL(known). A number that is not finite
 * is left out, an item that is NULL too. TYPE: NUMBER, COUNT, FLAG, TEXT, TIME (ns since 1970),
 * JSON (made by a function: what is no figure). */

/* what an includer does not ask for */
#ifndef SECTION
#define SECTION(...)
#endif
#ifndef FIGURE
#define FIGURE(...)
#endif
#ifndef ONE
#define ONE(...)
#endif
#ifndef MANY
#define MANY(...)
#endif
#ifndef NAMED
#define NAMED(...)
#endif
#ifndef PARTS
#define PARTS(...)
#endif
#ifndef SHOWN
#define SHOWN FIGURE
#endif

#define TOLD(S, ID, key, TYPE, says) FIGURE(S, ID, key, TYPE, NULL, false, 0, says)

/* of a measure over epochs or ranks */
#define SPREAD(S, ID, name, unit, of, says)                                                        \
	FIGURE(S, ID##_MEAN, name "_mean_" unit, NUMBER, unit, (of)->count, (of)->mean,            \
	       says ", mean")                                                                      \
	FIGURE(S, ID##_STDEV, name "_stdev_" unit, NUMBER, unit, (of)->count, (of)->stdev,         \
	       says ", standard deviation of the population")                                      \
	FIGURE(S, ID##_MIN, name "_min_" unit, NUMBER, unit, (of)->count, (of)->min,               \
	       says ", least")                                                                     \
	FIGURE(S, ID##_MAX, name "_max_" unit, NUMBER, unit, (of)->count, (of)->max, says ", most")

SECTION(RUN, "The file")
FIGURE(RUN, SCHEMA, "schema", COUNT, NULL, true, RESULT_SCHEMA,
       "Version of this layout: raised when a key changes its meaning or goes away")
FIGURE(RUN, PROGRAM, "program", TEXT, NULL, true, "stoker", "The program that wrote the file")
FIGURE(RUN, VERSION, "version", TEXT, NULL, true, STOKER_VERSION, "Its version")
FIGURE(RUN, ID, "run_id", TEXT, NULL, r->id[0], r->id,
       "32 hexadecimal digits that no other run has")
FIGURE(RUN, STATUS, "status", TEXT, NULL, true, result_status_names[r->status],
       "`complete`, `interrupted` or `failed`")
FIGURE(RUN, REASON, "reason", TEXT, NULL, true, r->reason.code ? r->reason.text : NULL,
       "Why the run is not complete; else null")
FIGURE(RUN, WORKLOAD, "workload", TEXT, NULL, true, r->workload->choice,
       "The workload as asked for")
FIGURE(RUN, OVERRIDES, "overrides", JSON, NULL, true, json_texts(&r->workload->overrides),
       "Overrides of the command line")
FIGURE(RUN, ACCELERATORS, "accelerators", COUNT, NULL, true, r->ranks,
       "Accelerators that were emulated")
FIGURE(RUN, START, "start", TIME, NULL, true, r->begin_wall_ns, "Local time of the start")
FIGURE(RUN, END, "end", TIME, NULL, true, r->end_wall_ns, "Local time of the end")
FIGURE(RUN, WALL, "wall_s", NUMBER, "s", true, seconds(r->end_wall_ns - r->begin_wall_ns),
       "Time from start to end")
FIGURE(RUN, FOLDER, "folder", TEXT, NULL, true, r->folder, "The folder of the results")
FIGURE(RUN, VERDICTS, "verdicts", JSON, NULL, true, json_verdicts(&r->judged),
       "What is known of how true the figures are: one verdict for each check")
FIGURE(RUN, MEASURED, "measured", JSON, NULL, r->judged.measured.facts.count,
       json_measured(&r->judged), "What was measured, and what the verdicts take from it")
FIGURE(RUN, WARNINGS, "warnings", JSON, NULL, true, json_texts(&r->workload->warnings),
       "Warnings about the configuration")
FIGURE(RUN, NOTES, "notes", JSON, NULL, true, json_texts(&r->workload->notes),
       "Remarks on the configuration")
FIGURE(RUN, LIMIT, "limit", JSON, NULL, r->judged.limit.cause != CAUSE_NONE,
       json_limit(&r->judged.limit), "What limited the run, what that cost, and what helps")
FIGURE(RUN, WHAT_IF, "what_if", JSON, NULL,
       r->judged.outlook.known || r->judged.outlook.why.reason != REASON_NONE,
       json_what_if(&r->judged.outlook),
       "What a change of the configuration or the storage would give")
FIGURE(RUN, FLEET, "fleet", JSON, NULL, r->judged.basis, json_basis(r->judged.basis),
       "What the models rest on from which larger runs are predicted")
ONE(RUN, MEMORY_COPY, "memory_copy", MEMORY_COPY, r->memory_copy.threads, &r->memory_copy,
    "How fast this machine copies memory")
ONE(RUN, PROBE, "probe", PROBE, r->probe.asked, &r->probe,
    "What the storage gives by itself, measured after training")
ONE(RUN, TRAINING, "training", TRAINING, r->trained && r->rank && r->usage, training_view(r, room),
    "Training of all accelerators")
ONE(RUN, BARRIER, "barrier", BARRIER, r->barrier.count, &r->barrier,
    "What a barrier of all ranks costs by itself")
ONE(RUN, NEED, "need", NEED, (r->trained || r->only_evaluated) && r->rank && r->usage,
    need_view(r, m, room), "What one accelerator needs of its storage")
MANY(RUN, LEDGER, "ledger", LEDGER, r->trained && r->rank && r->usage ? LEDGER_LINES : NO_LIST,
     r->judged.ledger.line[i].known ? &r->judged.ledger.line[i] : NULL,
     "Bytes of training at each place between samples and storage")
ONE(RUN, STORAGE_PATH, "storage_path", STORAGE_PATH, r->host_source, r->host_source,
    "What lies below the folder of the dataset")
ONE(RUN, OBJECT_STORE, "object_store", OBJECT_STORE, r->servers.n, servers_view(r, room),
    "What was done with the servers of the store")
ONE(RUN, EVALUATION, "evaluation", EVALUATION, r->evaluated && r->rank && r->usage,
    evaluation_view(r, room), "Evaluation of all accelerators")
ONE(RUN, CHECKPOINT, "checkpoint", CHECKPOINT, r->checkpointed && r->rank, checkpoint_view(r, room),
    "Checkpoints of all accelerators")
ONE(RUN, GENERATION, "generation", GENERATION, r->generated, r, "Generation of the dataset")
ONE(RUN, DATASET, "dataset", DATASET, r->dataset, r->dataset, "The dataset as it was found")
ONE(RUN, MEMORY, "memory", MEMORY, true, r, "Memory of this program")
ONE(RUN, TRACE, "trace", TRACE, r->trace, trace_view(r, room), "Spans that the trace kept")
MANY(RUN, RANKS, "ranks", RANK, r->trained && r->rank ? r->ranks : NO_LIST,
     rank_view(r, m, i, room), "Each accelerator")
MANY(RUN, HOSTS, "hosts", HOST, r->process ? r->nodes : NO_LIST, host_view(r, i, room),
     "Each host of a run of several processes")
ONE(RUN, ENVIRONMENT, "environment", ENVIRONMENT, true, &r->host, "The machine of process 0")
FIGURE(RUN, SYSTEM, "system", JSON, NULL, true, json_pairs(r->system.pair, r->system.pairs),
       "Settings of the system that matter to reading: `data file system` and others by name")
FIGURE(RUN, SERIES, "series", JSON, NULL, r->series, json_series(r),
       "Curves over time of the machine and the accelerators")
FIGURE(RUN, CONFIGURATION, "configuration", JSON, NULL, true, json_configuration(r->workload),
       "Each key of the workload with its `value`, `unit` and, unless it is the default, `origin`")
FIGURE(RUN, INTEGRITY, "integrity", JSON, NULL, false, NULL,
       "Digests of the files of the result, and of this one")

SECTION(TRAINING, "Training")
FIGURE(TRAINING, DEFINITION, "definition", TEXT, NULL, true,
       r->workload->compat.dlio ? "dlio" : "stoker", "Whose definition of AU: `stoker` or `dlio`")
FIGURE(TRAINING, EPOCHS_PLANNED, "epochs_planned", COUNT, NULL, true, r->epochs_planned,
       "Epochs asked for")
FIGURE(TRAINING, EPOCHS_BEGUN, "epochs_begun", COUNT, NULL, true, r->epochs_begun,
       "Epochs that every rank began")
FIGURE(TRAINING, EPOCHS_DONE, "epochs_done", COUNT, NULL, true, r->epochs_done, "Epochs finished")
FIGURE(TRAINING, STEPS_PER_EPOCH, "steps_per_epoch", COUNT, NULL, true, r->steps_per_epoch,
       "Steps planned in each epoch")
FIGURE(TRAINING, DROPPED, "dropped_samples_per_epoch", COUNT, NULL, true, r->dropped_samples,
       "Samples left out in each epoch because they do not fill a step")
FIGURE(TRAINING, SHUFFLE_SEED, "shuffle_seed", COUNT, NULL, true, r->shuffle_seed,
       "Seed of the order of samples")
FIGURE(TRAINING, TARGET, "au_target_percent", NUMBER, "percent", true, r->workload->metric.au * 100,
       "AU to be reached")
FIGURE(TRAINING, WHOLE_AU, "whole_run_au_percent", NUMBER, "percent", true, m->whole.au,
       "AU of the whole run, no step excluded")
FIGURE(TRAINING, WHOLE_RATE, "whole_run_samples_per_s", NUMBER, "samples/s", true,
       m->whole.throughput, "Samples per second of the whole run")
FIGURE(TRAINING, WHOLE_PAYLOAD, "whole_run_payload_bytes_per_s", NUMBER, "bytes/s", true,
       m->whole.payload_rate, "Bytes of samples per second of the whole run")
SPREAD(TRAINING, AU, "au", "percent", &m->train_au, "AU by definition, over epochs")
SPREAD(TRAINING, THROUGHPUT, "throughput", "samples_per_s", &m->train_throughput,
       "Throughput by definition, over epochs")
SPREAD(TRAINING, IO_RATE, "io", "mib_per_s", &m->train_io, "The same in MiB/s, over epochs")
SPREAD(TRAINING, EPOCH_WHOLE_AU, "whole_au", "percent", &m->whole_au, "Whole-run AU, over epochs")
FIGURE(TRAINING, LATE, "compute_late_mean_percent", NUMBER, "percent", true, m->late_percent,
       "Time in which computation was late for want of a processor, mean over epochs")
SPREAD(TRAINING, EPOCH_WHOLE_RATE, "whole_throughput", "samples_per_s", &m->whole_throughput,
       "Throughput with no step excluded, over epochs")
SPREAD(TRAINING, PAYLOAD_RATE, "payload_rate", "bytes_per_s", &m->payload_rate,
       "Bytes of samples per second, over epochs")
FIGURE(TRAINING, PAYLOAD_COUNTS, "payload_counts", TEXT, NULL, true,
       "decoded bytes of samples read from the store; those served from a reader's own copy of a "
       "file "
       "add none",
       "What payload is")
FIGURE(TRAINING, PAYLOAD, "payload_bytes", COUNT, "bytes", true, m->payload_bytes,
       "Bytes of samples")
FIGURE(TRAINING, DEVICE_READ, "device_read_bytes", COUNT, "bytes", OR_NULL(m->device_known),
       m->device_bytes, "Fetched for this program from below the page cache")
FIGURE(TRAINING, OVERSHOOT_MEAN, "compute_overshoot_mean_s", NUMBER, "s", m->overshoot_known,
       m->compute_overshoot_mean_s, "Computation took longer than asked for, mean")
FIGURE(TRAINING, OVERSHOOT_MAX, "compute_overshoot_max_s", NUMBER, "s", m->overshoot_known,
       m->compute_overshoot_max_s, "Computation took longer than asked for, most")
FIGURE(TRAINING, ASKED, "asked_bytes", COUNT, "bytes", true, io_stat_asked(&x->io),
       "Bytes that requests for data and metadata asked for")
FIGURE(TRAINING, RETURNED, "returned_bytes", COUNT, "bytes", true, io_stat_returned(&x->io),
       "Bytes that they returned")
MANY(TRAINING, EPOCHS, "epochs", EPOCH, m->epochs, epoch_view(r, m, i, room), "Each finished epoch")
ONE(TRAINING, DECOMPOSITION, "decomposition", DECOMPOSITION, m->epochs, &r->judged.time,
    "Where the time of training went")
ONE(TRAINING, STRAGGLERS, "stragglers", STRAGGLERS, m->epochs && r->rank, &r->judged.stragglers,
    "The slowest rank, host and samples")
ONE(TRAINING, READING, "reading", READING, m->epochs && r->rank, &r->judged.reading,
    "Batches that were read while the readers were busy")
ONE(TRAINING, STEADINESS, "steadiness", STEADINESS, m->epochs && r->rank, &r->judged.steady,
    "Whether training went on as it began")
NAMED(TRAINING, IO, "io", IO_KIND, io_kind_names, IO_KINDS, io_view(&x->io, i, room),
      "Requests to the store by kind")

SECTION(EPOCH, "One epoch of training")
FIGURE(EPOCH, NUMBER, "epoch", COUNT, NULL, true, x->i + 1, "Its number, from 1")
FIGURE(EPOCH, STEPS, "steps", COUNT, NULL, true, x->e->steps, "Steps of each rank")
FIGURE(EPOCH, MEASURED_STEPS, "measured_steps", COUNT, NULL, true, x->e->measured_steps,
       "Steps that AU by definition counts")
FIGURE(EPOCH, AU, "au_percent", NUMBER, "percent", x->e->train_valid, x->e->train_au,
       "AU by definition, mean over ranks")
FIGURE(EPOCH, THROUGHPUT, "throughput_samples_per_s", NUMBER, "samples/s", x->e->train_valid,
       x->e->train_throughput, "Throughput by definition, sum over ranks")
FIGURE(EPOCH, IO_RATE, "io_mib_per_s", NUMBER, "MiB/s", x->e->train_valid, x->e->train_io_mib,
       "The same in MiB/s")
FIGURE(EPOCH, AU_MISSING, "au_missing_because", TEXT, NULL, !x->e->train_valid, x->e->why,
       "Why there is no AU by definition")
FIGURE(EPOCH, WHOLE_AU, "whole_au_percent", NUMBER, "percent", true, x->e->whole_au,
       "Computation over wall time, no step excluded, without lateness")
FIGURE(EPOCH, WHOLE_RATE, "whole_throughput_samples_per_s", NUMBER, "samples/s", true,
       x->e->whole_throughput, "Samples per second, no step excluded")
FIGURE(EPOCH, PAYLOAD_RATE, "payload_rate_bytes_per_s", NUMBER, "bytes/s", true,
       x->e->whole_payload_rate, "Bytes of samples per second, no step excluded")
FIGURE(EPOCH, SAMPLES, "samples", COUNT, NULL, true, x->e->samples, "Samples of all ranks")
FIGURE(EPOCH, PAYLOAD, "payload_bytes", COUNT, "bytes", true, x->e->payload_bytes,
       "Bytes of samples")
FIGURE(EPOCH, ASKED, "asked_bytes", COUNT, "bytes", !isnan(x->j->train_bytes[LEDGER_ASKED]),
       x->j->train_bytes[LEDGER_ASKED], "Bytes that requests asked for")
FIGURE(EPOCH, RETURNED, "returned_bytes", COUNT, "bytes", !isnan(x->j->train_bytes[LEDGER_ASKED]),
       x->j->train_bytes[LEDGER_RETURNED], "Bytes that they returned")
FIGURE(EPOCH, DOWNLOADED, "downloaded_bytes", COUNT, "bytes", result_caches(r),
       result_fetched(r, x->i, false).bytes,
       "Bytes of the remote dataset that were downloaded into `reader.cache_folder`; those asked "
       "for and returned are of that folder then")
FIGURE(EPOCH, DOWNLOADED_SHARDS, "downloaded_shards", COUNT, NULL, result_caches(r),
       result_fetched(r, x->i, false).shards, "Whole shards that they are")
FIGURE(EPOCH, DOWNLOAD_REQUESTS, "download_requests", COUNT, NULL, result_caches(r),
       result_fetched(r, x->i, false).requests, "Reads of the remote dataset that brought them")
FIGURE(EPOCH, DOWNLOAD, "download_s", NUMBER, "s", result_caches(r),
       seconds(result_fetched(r, x->i, false).busy_ns), "Time of the downloads, sum over threads")
FIGURE(EPOCH, REMOVED_SHARDS, "removed_shards", COUNT, NULL, result_caches(r),
       result_fetched(r, x->i, false).removed, "Shards removed from the cache")
FIGURE(EPOCH, REMOVED, "removed_bytes", COUNT, "bytes", result_caches(r),
       result_fetched(r, x->i, false).removed_bytes, "Their bytes")
FIGURE(EPOCH, SHARD_WAIT, "shard_wait_s", NUMBER, "s", result_caches(r),
       seconds(result_fetched(r, x->i, false).waited_ns),
       "Time that samples waited for their shard, sum over workers")
FIGURE(EPOCH, WALL, "wall_s", NUMBER, "s", true, x->e->wall_s, "Wall time, mean over ranks")
FIGURE(EPOCH, COMPUTE, "compute_s", NUMBER, "s", true, x->e->compute_s,
       "Computation, mean over ranks")
FIGURE(EPOCH, LATE, "compute_late_s", NUMBER, "s", true, x->e->compute_late_s,
       "Of that: late for want of a processor")
FIGURE(EPOCH, EXPOSED_WAIT, "exposed_wait_s", NUMBER, "s", true, x->e->exposed_wait_s,
       "Waiting for batches, mean over ranks")
FIGURE(EPOCH, BARRIER_WAIT, "barrier_wait_s", NUMBER, "s", true, x->e->barrier_wait_s,
       "Waiting at barriers, mean over ranks")
FIGURE(EPOCH, CPU, "cpu_s", NUMBER, "s", true, seconds(x->u->cpu_ns),
       "Processor time of this program")
FIGURE(EPOCH, FRAMEWORK_CPU, "framework_cpu_s", NUMBER, "s", r->workload->costs,
       result_framework_ns(r, x->i, false) / 1e9,
       "Of that: spent as the framework's own code would")
ONE(EPOCH, PROCESS_IO, "process_io", PROCESS_IO, OR_NULL(x->u->train.known), &x->u->train,
    "Counters of this program")
ONE(EPOCH, HOST_IO, "host_io", HOST_IO, OR_NULL(r->host_source), &x->u->host_train,
    "Counters of the hosts")
ONE(EPOCH, MEMORY_PRESSURE, "memory_pressure", MEMORY_PRESSURE, true, &x->u->memory,
    "Of the host that was shortest of memory")
ONE(EPOCH, PROCESSORS, "processors", PROCESSORS, x->u->cpu_train.wall_ns > 0,
    processors_view(&x->u->cpu_train, x->u->cpu_train_process, room),
    "Of the process that waited longest for a processor")
ONE(EPOCH, PAGE_CACHE, "page_cache", PAGE_CACHE, OR_NULL(page_cache_why(x->u)), x->u,
    "What the page cache held of the dataset")
FIGURE(EPOCH, ORDER_PROVED, "order_proved", FLAG, NULL, true, x->u->order_kept == ORDER_KEPT,
       "Each sample was delivered exactly once")
FIGURE(EPOCH, ORDER_NOTE, "order_note", TEXT, NULL, true, x->u->order_note,
       "The same as a sentence")
ONE(EPOCH, OVER_RANKS, "over_ranks", OVER_RANKS, true, over_ranks_view(r, x->i, room),
    "How measures spread over the ranks")
ONE(EPOCH, DECOMPOSITION, "decomposition", DECOMPOSITION, true, &x->j->time,
    "Where the time of the epoch went")

SECTION(OVER_RANKS, "A measure over the ranks of an epoch")
SPREAD(OVER_RANKS, AU, "au", "percent", &x->of[RANK_AU], "AU by definition")
SPREAD(OVER_RANKS, WHOLE_AU, "whole_au", "percent", &x->of[RANK_WHOLE], "AU, no step excluded")
SPREAD(OVER_RANKS, THROUGHPUT, "throughput", "samples_per_s", &x->of[RANK_RATE],
       "Throughput by definition")
SPREAD(OVER_RANKS, EXPOSED_WAIT, "exposed_wait", "s", &x->of[RANK_WAIT], "Waiting for batches")
SPREAD(OVER_RANKS, BARRIER_WAIT, "barrier_wait", "s", &x->of[RANK_BARRIER], "Waiting at barriers")
SPREAD(OVER_RANKS, WALL, "wall", "s", &x->of[RANK_WALL], "Wall time")

SECTION(PROCESS_IO, "What the kernel counted of this program: `/proc/self/io`")
FIGURE(PROCESS_IO, READ_CALLS, "read_calls", COUNT, NULL, true, x->syscr, "Read calls")
FIGURE(PROCESS_IO, RETURNED, "returned_bytes", COUNT, "bytes", true, x->rchar_bytes,
       "Bytes that read calls returned")
FIGURE(PROCESS_IO, DEVICE_READ, "device_read_bytes", COUNT, "bytes", true, x->read_bytes,
       "Fetched from below the page cache")
FIGURE(PROCESS_IO, DEVICE_WRITE, "device_write_bytes", COUNT, "bytes", true, x->write_bytes,
       "Given to the layer below the page cache")

SECTION(HOST_IO, "What the counters of the hosts moved by, whoever caused it")
FIGURE(HOST_IO, DEVICE_READ, "device_read_bytes", COUNT, "bytes", x->whole.known,
       x->whole.read_bytes, "Read from the devices under the file system of the dataset")
FIGURE(HOST_IO, DEVICE_WRITTEN, "device_written_bytes", COUNT, "bytes", x->whole.known,
       x->whole.written_bytes, "Written to them")
FIGURE(HOST_IO, PARTITION_READ, "partition_read_bytes", COUNT, "bytes", x->part.known,
       x->part.read_bytes, "Read from their partitions")
FIGURE(HOST_IO, PARTITION_WRITTEN, "partition_written_bytes", COUNT, "bytes", x->part.known,
       x->part.written_bytes, "Written to them")
FIGURE(HOST_IO, DISKS_READ, "disks_below_read_bytes", COUNT, "bytes", x->lower.known,
       x->lower.read_bytes, "Read from the disks below these devices")
FIGURE(HOST_IO, DISKS_WRITTEN, "disks_below_written_bytes", COUNT, "bytes", x->lower.known,
       x->lower.written_bytes, "Written to them")
FIGURE(HOST_IO, NETWORK_RECEIVED, "network_received_bytes", COUNT, "bytes", x->net.known,
       x->net.received_bytes, "Received by network interfaces")
FIGURE(HOST_IO, NETWORK_SENT, "network_sent_bytes", COUNT, "bytes", x->net.known, x->net.sent_bytes,
       "Sent by them")
FIGURE(HOST_IO, LOOPBACK_RECEIVED, "loopback_received_bytes", COUNT, "bytes", x->net.known,
       x->net.loopback_bytes, "Received from the same machine")
FIGURE(HOST_IO, RDMA_RECEIVED, "rdma_received_bytes", COUNT, "bytes", x->net.rdma_known,
       x->net.rdma_received_bytes, "Received by RDMA")
FIGURE(HOST_IO, RDMA_SENT, "rdma_sent_bytes", COUNT, "bytes", x->net.rdma_known,
       x->net.rdma_sent_bytes, "Sent by RDMA")
FIGURE(HOST_IO, CLIENT_RETURNED, "client_returned_bytes", COUNT, "bytes", x->client.known,
       x->client.returned_bytes, "Returned by the client of a network file system")
FIGURE(HOST_IO, CLIENT_FETCHED, "client_fetched_bytes", COUNT, "bytes", x->client.fetched_known,
       x->client.fetched_bytes, "Fetched by it from its servers")
FIGURE(HOST_IO, CLIENT_SENT, "client_sent_bytes", COUNT, "bytes", x->client.fetched_known,
       x->client.sent_bytes, "Sent by it to its servers")

SECTION(MEMORY_PRESSURE, "What the kernel says of memory being short")
FIGURE(MEMORY_PRESSURE, STALL, "stall_s", NUMBER, "s", x->stall_ns >= 0, seconds(x->stall_ns),
       "Some program waited for memory")
FIGURE(MEMORY_PRESSURE, REFAULT, "refault_bytes", COUNT, "bytes", x->refault_bytes >= 0,
       x->refault_bytes, "Read again after they had been evicted for lack of memory")
FIGURE(MEMORY_PRESSURE, LIMIT, "control_group_limit_bytes", COUNT, "bytes", x->limit_bytes,
       x->limit_bytes, "Limit of the control group")

SECTION(PROCESSORS, "Processors as a process got them")
FIGURE(PROCESSORS, HOST, "host", TEXT, NULL, r->process && x->process < r->processes,
       r->process[x->process].hostname, "Its host")
FIGURE(PROCESSORS, ONLINE, "online", COUNT, NULL, true, x->p->online, "Processors of the machine")
FIGURE(PROCESSORS, ALLOWED, "allowed", COUNT, NULL, true, x->p->allowed, "Of these it may use")
FIGURE(PROCESSORS, WAITED, "threads_waited_s", NUMBER, "s", x->p->waited_ns >= 0,
       seconds(x->p->waited_ns), "Threads of ranks and readers waited for a processor")
FIGURE(PROCESSORS, RAN, "threads_ran_s", NUMBER, "s", x->p->ran_ns >= 0, seconds(x->p->ran_ns),
       "They ran")
FIGURE(PROCESSORS, BUSY, "busy_s", NUMBER, "s", x->p->busy_ns >= 0, seconds(x->p->busy_ns),
       "The allowed processors were busy, with all programs")
FIGURE(PROCESSORS, STEAL, "steal_s", NUMBER, "s", x->p->steal_ns >= 0, seconds(x->p->steal_ns),
       "Taken by the hypervisor")
FIGURE(PROCESSORS, PRESSURE, "pressure_s", NUMBER, "s", x->p->pressure_ns >= 0,
       seconds(x->p->pressure_ns), "Some program waited for a processor")
FIGURE(PROCESSORS, INVOLUNTARY, "involuntary_switches", COUNT, NULL, x->p->involuntary >= 0,
       x->p->involuntary, "Switches to another program")
FIGURE(PROCESSORS, NICE, "nice", NUMBER, NULL, true, x->p->nice, "Priority")
FIGURE(PROCESSORS, QUOTA, "quota_processors", NUMBER, "processors", x->p->groups, x->g->quota,
       "Quota of its control group")
FIGURE(PROCESSORS, QUOTA_PERIODS, "quota_periods", COUNT, NULL, x->p->groups,
       x->g->periods > 0 ? x->g->periods : 0, "Periods of the quota")
FIGURE(PROCESSORS, QUOTA_THROTTLED, "quota_throttled_periods", COUNT, NULL, x->p->groups,
       x->g->throttled_periods > 0 ? x->g->throttled_periods : 0, "Of these: used up")
FIGURE(PROCESSORS, QUOTA_THROTTLED_TIME, "quota_throttled_s", NUMBER, "s",
       x->p->groups && x->g->throttled_ns >= 0, seconds(x->g->throttled_ns),
       "Threads were stopped by the quota")
FIGURE(PROCESSORS, STOOD_STILL, "stood_still_s", NUMBER, "s", x->p->stops && x->p->stopped_ns >= 0,
       seconds(x->p->stopped_ns), "The whole process stood still")
FIGURE(PROCESSORS, THREAD_STOOD_STILL, "thread_stood_still_s", NUMBER, "s",
       x->p->freezes && x->p->frozen_ns >= 0, seconds(x->p->frozen_ns),
       "One of its threads stood still")
FIGURE(PROCESSORS, THREAD, "thread", TEXT, NULL, x->p->freezes, x->p->frozen_thread, "Which one")

SECTION(PAGE_CACHE, "The dataset in the page cache around an epoch; null where nobody looked")
FIGURE(PAGE_CACHE, FILE_SYSTEM, "file_system", TEXT, NULL, cache_looked(x),
       cache_look(x)->file_system, "File system of the dataset")
FIGURE(PAGE_CACHE, METHOD, "method", TEXT, NULL, cache_looked(x),
       cache_look(x)->mincore ? "mincore" : "cachestat", "`cachestat` or `mincore`")
FIGURE(PAGE_CACHE, HOST, "host", TEXT, NULL, cache_of_hosts(r, x),
       r->process[cache_look(x)->process].hostname, "The host that held the largest share")
FIGURE(PAGE_CACHE, HOSTS, "hosts", COUNT, NULL, cache_of_hosts(r, x), cache_look(x)->hosts, "Hosts")
FIGURE(PAGE_CACHE, FILES, "files", COUNT, NULL, cache_looked(x), cache_look(x)->files,
       "Files of the dataset")
FIGURE(PAGE_CACHE, LOOKED, "files_looked_at", COUNT, NULL, cache_looked(x), cache_look(x)->looked,
       "Of these looked at")
FIGURE(PAGE_CACHE, BYTES, "bytes_looked_at", COUNT, "bytes", cache_looked(x), cache_look(x)->bytes,
       "Their bytes")
FIGURE(PAGE_CACHE, FOUND, "cached_before_eviction_bytes", COUNT, "bytes",
       cache_looked(x) && x->evicted ? OR_NULL(x->cache_found.known) : false,
       x->cache_found.cached_bytes, "Of these cached before they were evicted")
FIGURE(PAGE_CACHE, FOUND_RECLAIMED, "reclaimed_before_eviction_bytes", COUNT, "bytes",
       cache_looked(x) && x->evicted && !x->cache_found.mincore ? OR_NULL(x->cache_found.known)
								: false,
       x->cache_found.reclaimed_bytes, "Of these taken back by the kernel before")
FIGURE(PAGE_CACHE, EVICTION, "eviction_s", NUMBER, "s", cache_looked(x) && x->evicted,
       seconds(x->evict_ns), "Time that evicting took, outside every measured time")
FIGURE(PAGE_CACHE, OWN_MAPPED, "own_mapped_bytes", COUNT, "bytes", cache_looked(x) && x->evicted,
       x->own_mapped_bytes,
       "Mapped by this program, and not let go before that: pages of these files stay")
FIGURE(PAGE_CACHE, START, "cached_at_start_bytes", COUNT, "bytes",
       cache_looked(x) ? OR_NULL(x->cache_start.known) : false, x->cache_start.cached_bytes,
       "Of these cached when the epoch began")
FIGURE(PAGE_CACHE, START_RECLAIMED, "reclaimed_at_start_bytes", COUNT, "bytes",
       cache_looked(x) && !x->cache_start.mincore ? OR_NULL(x->cache_start.known) : false,
       x->cache_start.reclaimed_bytes, "Of these taken back by the kernel by then")
FIGURE(PAGE_CACHE, END, "cached_at_end_bytes", COUNT, "bytes",
       cache_looked(x) ? OR_NULL(x->cache_end.known) : false, x->cache_end.cached_bytes,
       "Of these cached when the epoch ended")
FIGURE(PAGE_CACHE, END_RECLAIMED, "reclaimed_at_end_bytes", COUNT, "bytes",
       cache_looked(x) && !x->cache_end.mincore ? OR_NULL(x->cache_end.known) : false,
       x->cache_end.reclaimed_bytes, "Of these taken back by the kernel by then")
FIGURE(PAGE_CACHE, MISSING, "missing_because", TEXT, NULL,
       page_cache_why(x) && page_cache_why(x)[0], page_cache_why(x), "Why a look failed")

SECTION(DECOMPOSITION, "Where time went: parts that add up to the wall time")
FIGURE(DECOMPOSITION, WALL, "wall_s", NUMBER, "s", true, x->wall_s, "Wall time, mean over ranks")
PARTS(DECOMPOSITION, MEAN, "mean_over_ranks_s", "s", time_part_names, TIME_PARTS,
      part_of(x->mean_s[i], x->wall_s, 1), "Its parts, means over ranks")
PARTS(DECOMPOSITION, MEAN_PERCENT, "mean_over_ranks_percent", "percent", time_part_names,
      TIME_PARTS, part_of(x->mean_s[i], x->wall_s, 100 / x->wall_s), "The same, of the wall time")
FIGURE(DECOMPOSITION, CRITICAL_WALL, "critical_path_wall_s", NUMBER, "s", true, x->critical_wall_s,
       "From the first rank's start to the last one's end")
PARTS(DECOMPOSITION, CRITICAL, "critical_path_s", "s", time_part_names, TIME_PARTS,
      part_of(x->critical_s[i], x->critical_wall_s, 1),
      "Its parts: in each step those of the rank that came last")
PARTS(DECOMPOSITION, CRITICAL_PERCENT, "critical_path_percent", "percent", time_part_names,
      TIME_PARTS, part_of(x->critical_s[i], x->critical_wall_s, 100 / x->critical_wall_s),
      "The same, of that time")
PARTS(DECOMPOSITION, WORKERS, "workers_s", "s", work_names, WORK_KINDS, x->work_s[i],
      "Time of workers in batches that were delivered, all ranks")
FIGURE(DECOMPOSITION, LATE_COMPUTE, "late_compute_s", NUMBER, "s", true, x->late_compute_s,
       "Of no_processor: computation was late; the rest is in waits")
FIGURE(DECOMPOSITION, LATE_BARRIER, "late_barrier_s", NUMBER, "s", true, x->late_barrier_s,
       "Of no_processor: barriers were late")
FIGURE(DECOMPOSITION, LATE_FRAMEWORK, "late_framework_s", NUMBER, "s", true, x->late_framework_s,
       "Of no_processor: the framework's code was late")
FIGURE(DECOMPOSITION, FRAMEWORK_LOOP, "framework_loop_s", NUMBER, "s", true, x->framework_loop_s,
       "Of framework: the code of the training loop; the rest is in waits")
FIGURE(DECOMPOSITION, HIDDEN_IO, "hidden_io_s", NUMBER, "s", true, x->hidden_io_s,
       "In requests while no rank waited for them")
FIGURE(DECOMPOSITION, READY, "ready_batches_mean", NUMBER, "batches", true, x->ready_mean,
       "Batches ready when a rank asked for one")
FIGURE(DECOMPOSITION, SERVICE_MEAN, "batch_service_mean_s", NUMBER, "s", true, x->service_mean_s,
       "Making a batch, mean")
FIGURE(DECOMPOSITION, SERVICE_STDEV, "batch_service_stdev_s", NUMBER, "s", true, x->service_dev_s,
       "Making a batch, standard deviation")

SECTION(STRAGGLERS, "What came last")
ONE(STRAGGLERS, RANK, "slowest_rank", SLOWEST_RANK, r->ranks > 1 && r->judged.time.last_share > 0,
    &r->judged.time, "The rank that arrived last most often")
ONE(STRAGGLERS, HOST, "slowest_host", SLOWEST_HOST,
    r->nodes > 1 && r->judged.time.last_node_share > 0, &r->judged.time,
    "The host whose ranks arrived last most often")
MANY(STRAGGLERS, SAMPLES, "slowest_samples", SLOW_SAMPLE, x->samples, &x->sample[i],
     "The samples that took longest to read")

SECTION(SLOWEST_RANK, "The rank that arrived last most often")
FIGURE(SLOWEST_RANK, RANK, "rank", COUNT, NULL, true, x->last_rank, "Its number, from 0")
FIGURE(SLOWEST_RANK, HOST, "host", TEXT, NULL, true, result_rank_host(r, x->last_rank)->hostname,
       "Its host")
FIGURE(SLOWEST_RANK, LAST, "last_in_percent_of_steps", NUMBER, "percent", true, 100 * x->last_share,
       "Steps in which it was the last")
FIGURE(SLOWEST_RANK, BEHIND, "behind_the_others_s", NUMBER, "s", true, x->last_behind_s,
       "Behind the one before it, mean")
FIGURE(SLOWEST_RANK, PART, "spends_more_on", TEXT, NULL, true, time_part_names[x->last_part],
       "The part of the time in which it exceeds the mean most")

SECTION(SLOWEST_HOST, "The host whose ranks arrived last most often")
FIGURE(SLOWEST_HOST, HOST, "host", TEXT, NULL, true, node_hostname(r, x->last_node), "Its name")
FIGURE(SLOWEST_HOST, LAST, "last_in_percent_of_steps", NUMBER, "percent", true,
       100 * x->last_node_share, "Steps in which one of its ranks was the last")

SECTION(SLOW_SAMPLE, "A sample that took long to read")
FIGURE(SLOW_SAMPLE, RANK, "rank", COUNT, NULL, true, x->rank, "The rank that it was read for")
FIGURE(SLOW_SAMPLE, HOST, "host", TEXT, NULL, true, result_rank_host(r, x->rank)->hostname,
       "Its host")
FIGURE(SLOW_SAMPLE, SAMPLE, "sample", COUNT, NULL, true, x->of.sample, "Number of the sample")
FIGURE(SLOW_SAMPLE, FILE, "file", TEXT, NULL, true,
       result_sample_file(r, x->of.sample, a->text, sizeof(a->text)), "Its file")
FIGURE(SLOW_SAMPLE, BEGIN, "begin_s", NUMBER, "s", true, seconds(x->of.begin_ns - r->begin_ns),
       "Begin, since the start of the run")
FIGURE(SLOW_SAMPLE, SECONDS, "seconds", NUMBER, "s", true, seconds(x->of.ns), "Time to read it")
FIGURE(SLOW_SAMPLE, TIMES, "times_mean", NUMBER, NULL, r->judged.stragglers.mean_s > 0,
       seconds(x->of.ns) / r->judged.stragglers.mean_s, "The same over the mean of all samples")

SECTION(READING, "Reading while the readers were busy")
FIGURE(READING, BUSY, "busy_s", NUMBER, "s", true, x->busy_s, "Time")
FIGURE(READING, BATCHES, "batches", NUMBER, NULL, true, x->batches, "Batches in that time")
FIGURE(READING, LATER_BUSY, "later_busy_s", NUMBER, "s", true, x->later_s,
       "Of that: after all ranks had used what the start of an epoch reads ahead")
FIGURE(READING, LATER_BATCHES, "later_batches", NUMBER, NULL, true, x->later_batches,
       "Batches in that time")

SECTION(STEADINESS,
	"Whether a phase went on as it began: docs/metrics.md, \"Change during the run\"")
FIGURE(STEADINESS, KNOWN, "known", FLAG, NULL, true, x->known, "There were steps enough to tell")
FIGURE(STEADINESS, CHANGE, "change", TEXT, NULL, true, steady_change_names[x->change],
       "`none`, `level`, `trend` or `alternate`")
FIGURE(STEADINESS, HIDDEN, "hidden", FLAG, NULL, true, x->hidden,
       "Only reading changed: computation covered it")
FIGURE(STEADINESS, STALLS, "stalls", COUNT, NULL, true, x->stalls,
       "Heavy waits among many light ones")
FIGURE(STEADINESS, STALLED, "stalled_s", NUMBER, "s", true, x->stalled_s,
       "Time that ranks waited in them, mean over ranks")
MANY(STEADINESS, LONGEST, "longest_stalls", STALL,
     x->stalls < STALLS_KEPT ? x->stalls : STALLS_KEPT, &x->stall[i], "The longest of them")
FIGURE(STEADINESS, RANK, "rank", COUNT, NULL, x->change && x->rank != UINT32_MAX, x->rank,
       "The rank whose reading alone changed")
FIGURE(STEADINESS, FAST, "fast_samples_per_s", NUMBER, "samples/s", x->change == CHANGE_ALTERNATE,
       x->before_rate, "Rate of fast phases")
FIGURE(STEADINESS, SLOW, "slow_samples_per_s", NUMBER, "samples/s", x->change == CHANGE_ALTERNATE,
       x->last_rate, "Rate of slow phases")
FIGURE(STEADINESS, SLOW_PHASES, "slow_phases", COUNT, NULL, x->change == CHANGE_ALTERNATE,
       x->slow_phases, "Slow phases")
FIGURE(STEADINESS, SLOW_PHASE, "slow_phase_s", NUMBER, "s", x->change == CHANGE_ALTERNATE,
       x->slow_s, "Length of a slow phase")
FIGURE(STEADINESS, PERIOD, "period_s", NUMBER, "s",
       x->change == CHANGE_ALTERNATE && x->period_s > 0, x->period_s,
       "From one slow phase to the next")
FIGURE(STEADINESS, EPOCH, "epoch", COUNT, NULL, changed_once(x), x->epoch,
       "Epoch in which the last part begins, from 1")
FIGURE(STEADINESS, STEP, "step", COUNT, NULL, changed_once(x), x->step, "Step of it, from 1")
FIGURE(STEADINESS, AT, "at_s", NUMBER, "s", changed_once(x), x->at_s,
       "The same, since the start of the run")
FIGURE(STEADINESS, PART, "part", TEXT, NULL, changed_once(x), time_part_names[x->part],
       "The part of a step's time that changed most")
FIGURE(STEADINESS, BEFORE_RATE, "before_samples_per_s", NUMBER, "samples/s", changed_once(x),
       x->before_rate, "Rate before the change")
FIGURE(STEADINESS, LAST_RATE, "lasting_samples_per_s", NUMBER, "samples/s", changed_once(x),
       x->last_rate, "Rate after it")
FIGURE(STEADINESS, BEFORE_PAYLOAD, "before_payload_bytes_per_s", NUMBER, "bytes/s", changed_once(x),
       x->before_payload, "The same in bytes of samples, before")
FIGURE(STEADINESS, LAST_PAYLOAD, "lasting_payload_bytes_per_s", NUMBER, "bytes/s", changed_once(x),
       x->last_payload, "The same, after")
FIGURE(STEADINESS, BEFORE_AU, "before_au_percent", NUMBER, "percent", changed_once(x), x->before_au,
       "AU before the change, no step excluded")
FIGURE(STEADINESS, LAST_AU, "last_au_percent", NUMBER, "percent", changed_once(x), x->last_au,
       "AU after it")
FIGURE(STEADINESS, LAST_SHARE, "last_part_percent", NUMBER, "percent", changed_once(x),
       100 * x->last_share, "Of the time of training, after the change")
FIGURE(STEADINESS, BEFORE_READ, "before_batch_read_s", NUMBER, "s", changed_once(x),
       x->before_read_s, "Reading a batch before the change, mean over ranks")
FIGURE(STEADINESS, LAST_READ, "last_batch_read_s", NUMBER, "s", changed_once(x), x->last_read_s,
       "The same after it")
FIGURE(STEADINESS, KEEPS_UP, "keeps_up_for_s", NUMBER, "s", changed_once(x) && x->kept_up_s > 0,
       x->kept_up_s, "Time after the end until workers no longer keep up")

SECTION(STALL, "One heavy wait")
FIGURE(STALL, EPOCH, "epoch", COUNT, NULL, true, x->epoch, "Epoch, from 1")
FIGURE(STALL, STEP, "step", COUNT, NULL, true, x->step, "Step of it, from 1")
FIGURE(STALL, RANK, "rank", COUNT, NULL, true, x->rank, "The rank that waited longest")
FIGURE(STALL, AT, "at_s", NUMBER, "s", true, x->at_s, "Begin, since the start of the run")
FIGURE(STALL, LENGTH, "length_s", NUMBER, "s", true, x->length_s, "How long reading stood still")
FIGURE(STALL, WAITED, "waited_s", NUMBER, "s", true, x->waited_s, "Of that a rank waited")
FIGURE(STALL, PROCESS, "whole_process", FLAG, NULL, true, x->process, "All threads stood still")

SECTION(IO_KIND, "Requests to the store of one kind")
FIGURE(IO_KIND, REQUESTS, "requests", COUNT, NULL, true, x->io->kind[x->kind].requests, "Requests")
FIGURE(IO_KIND, ASKED, "asked_bytes", COUNT, "bytes", true, x->io->kind[x->kind].asked_bytes,
       "Bytes they asked for")
FIGURE(IO_KIND, RETURNED, "returned_bytes", COUNT, "bytes", true,
       x->io->kind[x->kind].returned_bytes, "Bytes they returned")
FIGURE(IO_KIND, BUSY, "busy_s", NUMBER, "s", true, seconds(x->io->kind[x->kind].busy_ns),
       "Time in them, all threads")
ONE(IO_KIND, LATENCY, "latency", LATENCY, true, &x->io->kind[x->kind].latency_ns,
    "How long each took")
NAMED(IO_KIND, BY_SIZE, "latency_by_size", SIZED, io_class_names,
      io_stat_sized(x->io, x->kind, IO_TO_4_KIB) ? IO_CLASSES : NO_LIST, sized_view(x, i),
      "The same by the bytes asked for")

SECTION(LATENCY, "How long requests took; quantiles are upper bounds of buckets")
FIGURE(LATENCY, COUNT, "count", COUNT, NULL, true, x->total, "Requests")
FIGURE(LATENCY, MEAN, "mean_ns", NUMBER, "ns", x->total, x->sum / (double)x->total, "Mean")
FIGURE(LATENCY, MIN, "min_ns", COUNT, "ns", x->total, x->min, "Least")
FIGURE(LATENCY, P50, "p50_ns", COUNT, "ns", x->total, hist_quantile(x, 0.5), "Median")
FIGURE(LATENCY, P90, "p90_ns", COUNT, "ns", x->total, hist_quantile(x, 0.9),
       "90 % took at most this")
FIGURE(LATENCY, P99, "p99_ns", COUNT, "ns", x->total, hist_quantile(x, 0.99), "99 %")
FIGURE(LATENCY, P99_9, "p99_9_ns", COUNT, "ns", x->total, hist_quantile(x, 0.999), "99.9 %")
FIGURE(LATENCY, P99_99, "p99_99_ns", COUNT, "ns", x->total, hist_quantile(x, 0.9999), "99.99 %")
FIGURE(LATENCY, MAX, "max_ns", COUNT, "ns", x->total, x->max, "Most")
FIGURE(LATENCY, BUCKETS, "buckets", JSON, NULL, x->total, latency_buckets(x),
       "Lower bound in ns and number of requests, of each bucket that holds any")

SECTION(SIZED, "The same of requests of one class of sizes")
FIGURE(SIZED, COUNT, "count", COUNT, NULL, true, x->total, "Requests")
FIGURE(SIZED, P50, "p50_ns", COUNT, "ns", true, io_latency_quantile(x, 0.5), "Median")
FIGURE(SIZED, P90, "p90_ns", COUNT, "ns", true, io_latency_quantile(x, 0.9),
       "90 % took at most this")
FIGURE(SIZED, P99, "p99_ns", COUNT, "ns", true, io_latency_quantile(x, 0.99), "99 %")
FIGURE(SIZED, P99_9, "p99_9_ns", COUNT, "ns", true, io_latency_quantile(x, 0.999), "99.9 %")
FIGURE(SIZED, P99_99, "p99_99_ns", COUNT, "ns", true, io_latency_quantile(x, 0.9999), "99.99 %")
FIGURE(SIZED, MAX, "max_ns", COUNT, "ns", true, x->max_ns, "Most")
FIGURE(SIZED, BUCKETS, "buckets", JSON, NULL, true, sized_buckets(x), "As in latency")

SECTION(LEDGER, "Bytes at one place, compared with an earlier one")
FIGURE(LEDGER, KEY, "key", TEXT, NULL, true, ledger_keys[i], "The place")
FIGURE(LEDGER, TITLE, "title", TEXT, NULL, true, ledger_titles[i], "The same for people")
FIGURE(LEDGER, PLACE, "place", TEXT, NULL,
       result_ledger_place(r, (enum ledger_key)i, a->text, sizeof(a->text))[0], a->text,
       "What counted them: a device, an interface, a file system")
FIGURE(LEDGER, BYTES, "bytes", COUNT, "bytes", true, x->bytes, "Bytes over all epochs")
FIGURE(LEDGER, EPOCHS, "epoch_bytes", JSON, "bytes", true,
       ledger_epochs(&r->judged, (enum ledger_key)i, false), "Those of each epoch; null: not known")
FIGURE(LEDGER, EVALUATIONS, "evaluation_bytes", JSON, "bytes", true,
       ledger_epochs(&r->judged, (enum ledger_key)i, true), "Those of each evaluation")
FIGURE(LEDGER, AGAINST, "compared_with", TEXT, NULL, x->against >= 0, ledger_keys[x->against],
       "Key of the line that it is compared with")
FIGURE(LEDGER, PERCENT, "percent", NUMBER, "percent",
       x->against >= 0 && r->judged.ledger.line[x->against].bytes > 0,
       100 * x->bytes / r->judged.ledger.line[x->against].bytes, "Bytes of that line's")
FIGURE(LEDGER, STATE, "state", TEXT, NULL, x->against >= 0, ledger_states[x->state],
       "`agrees`, `explained` or `flagged`: they differ by more than 1 %")
FIGURE(LEDGER, WHY, "why", TEXT, NULL, words_of(&x->why, WORDS_SHORT, a->text, sizeof(a->text))[0],
       a->text, "Why they differ")
FIGURE(LEDGER, WHY_FACT, "why_fact", JSON, NULL, x->why.reason != REASON_NONE, json_fact(&x->why),
       "The same as a reason with its figures")

SECTION(EVALUATION, "Evaluation")
FIGURE(EVALUATION, STEPS, "steps", COUNT, NULL, true, r->eval_steps, "Steps planned in each")
SPREAD(EVALUATION, AU, "au", "percent", &m->eval_au, "AU by definition, over evaluations")
FIGURE(EVALUATION, WHOLE_AU, "whole_au_mean_percent", NUMBER, "percent", m->eval_au.count,
       r->judged.eval_steady.whole_au, "AU, no step excluded")
SPREAD(EVALUATION, THROUGHPUT, "throughput", "samples_per_s", &m->eval_throughput,
       "Throughput, over evaluations")
SPREAD(EVALUATION, IO_RATE, "io", "mib_per_s", &m->eval_io, "The same in MiB/s")
FIGURE(EVALUATION, ASKED, "asked_bytes", COUNT, "bytes", true, io_stat_asked(&x->io),
       "Bytes that requests for data and metadata asked for")
FIGURE(EVALUATION, RETURNED, "returned_bytes", COUNT, "bytes", true, io_stat_returned(&x->io),
       "Bytes that they returned")
MANY(EVALUATION, EPOCHS, "epochs", EVALUATED, m->epochs,
     m->epoch[i].has_eval ? epoch_view(r, m, i, room) : NULL, "Each evaluation")
ONE(EVALUATION, STEADINESS, "steadiness", STEADINESS, true, &r->judged.eval_steady,
    "Whether evaluation went on as it began")
NAMED(EVALUATION, IO, "io", IO_KIND, io_kind_names, IO_KINDS, io_view(&x->io, i, room),
      "Requests to the store by kind")

SECTION(EVALUATED, "One evaluation")
FIGURE(EVALUATED, EPOCH, "epoch", COUNT, NULL, true, x->i + 1, "Its epoch, from 1")
FIGURE(EVALUATED, AU, "au_percent", NUMBER, "percent", x->e->eval_valid, x->e->eval_au,
       "AU by definition, mean over ranks")
FIGURE(EVALUATED, AU_MISSING, "au_missing_because", TEXT, NULL, !x->e->eval_valid, x->e->eval_why,
       "Why there is none")
FIGURE(EVALUATED, THROUGHPUT, "throughput_samples_per_s", NUMBER, "samples/s",
       x->e->eval_throughput > 0, x->e->eval_throughput, "Throughput, sum over ranks")
FIGURE(EVALUATED, IO_RATE, "io_mib_per_s", NUMBER, "MiB/s", x->e->eval_throughput > 0,
       x->e->eval_io_mib, "The same in MiB/s")
FIGURE(EVALUATED, SAMPLES, "samples", COUNT, NULL, true, x->e->eval_samples, "Samples of all ranks")
FIGURE(EVALUATED, PAYLOAD, "payload_bytes", COUNT, "bytes", true, x->e->eval_payload_bytes,
       "Bytes of samples")
FIGURE(EVALUATED, ASKED, "asked_bytes", COUNT, "bytes", !isnan(x->j->eval_bytes[LEDGER_ASKED]),
       x->j->eval_bytes[LEDGER_ASKED], "Bytes that requests asked for")
FIGURE(EVALUATED, RETURNED, "returned_bytes", COUNT, "bytes",
       !isnan(x->j->eval_bytes[LEDGER_ASKED]), x->j->eval_bytes[LEDGER_RETURNED],
       "Bytes that they returned")
FIGURE(EVALUATED, WALL, "wall_s", NUMBER, "s", true, x->e->eval_wall_s,
       "Wall time, longest of a rank")
FIGURE(EVALUATED, CPU, "cpu_s", NUMBER, "s", true, seconds(x->u->cpu_eval_ns),
       "Processor time of this program")
FIGURE(EVALUATED, FRAMEWORK_CPU, "framework_cpu_s", NUMBER, "s", r->workload->costs,
       result_framework_ns(r, x->i, true) / 1e9, "Of that: spent as the framework's own code would")
FIGURE(EVALUATED, CACHED, "cached_at_start_bytes", COUNT, "bytes", OR_NULL(x->u->cache_eval.known),
       x->u->cache_eval.cached_bytes, "Files of the evaluation in the page cache when it began")
FIGURE(EVALUATED, RECLAIMED, "reclaimed_at_start_bytes", COUNT, "bytes",
       x->u->cache_eval.mincore ? false : OR_NULL(x->u->cache_eval.known),
       x->u->cache_eval.reclaimed_bytes, "Of these taken back by the kernel by then")
FIGURE(EVALUATED, CACHE_MISSING, "missing_because", TEXT, NULL,
       !x->u->cache_eval.known && x->u->cache_eval.why[0], x->u->cache_eval.why,
       "Why that look failed")
FIGURE(EVALUATED, LOOKED, "bytes_looked_at", COUNT, "bytes", x->u->cache_eval.known,
       x->u->cache_eval.bytes, "Bytes of the files looked at")
ONE(EVALUATED, PROCESS_IO, "process_io", PROCESS_IO, OR_NULL(x->u->eval.known), &x->u->eval,
    "Counters of this program")
ONE(EVALUATED, HOST_IO, "host_io", HOST_IO, OR_NULL(r->host_source), &x->u->host_eval,
    "Counters of the hosts")
ONE(EVALUATED, PROCESSORS, "processors", PROCESSORS, x->u->cpu_eval.wall_ns > 0,
    processors_view(&x->u->cpu_eval, x->u->cpu_eval_process, room),
    "Of the process that waited longest for a processor")
FIGURE(EVALUATED, ORDER_PROVED, "order_proved", FLAG, NULL, x->u->eval_order_note[0],
       x->u->eval_order_kept == ORDER_KEPT, "Each sample was delivered exactly once")
FIGURE(EVALUATED, ORDER_NOTE, "order_note", TEXT, NULL, x->u->eval_order_note[0],
       x->u->eval_order_note, "The same as a sentence")

SECTION(CHECKPOINT, "Checkpoints")
FIGURE(CHECKPOINT, FOLDER, "folder", TEXT, NULL, true, r->workload->checkpoint.checkpoint_folder,
       "Their folder")
FIGURE(CHECKPOINT, FSYNC, "fsync", FLAG, NULL, true, r->workload->checkpoint.fsync,
       "They were flushed to the storage")
FIGURE(CHECKPOINT, ASYNC, "async", FLAG, NULL, true, r->workload->checkpoint.async && r->trained,
       "They were written in the background")
FIGURE(CHECKPOINT, COUNTS, "duration_counts", TEXT, NULL, true,
       r->workload->compat.dlio ? "rank 0" : "the longest of any rank, by its own clock",
       "Whose time a duration is")
FIGURE(CHECKPOINT, PARAMETERS, "parameters", COUNT, NULL, true, r->checkpoint_parameters,
       "Parameters of the model")
FIGURE(CHECKPOINT, MODEL, "model_bytes", COUNT, "bytes", true, r->checkpoint_totals.model_bytes,
       "Bytes of the model, all ranks")
FIGURE(CHECKPOINT, OPTIMIZER, "optimizer_bytes", COUNT, "bytes", true,
       r->checkpoint_totals.optimizer_bytes, "Bytes of the optimizer, all ranks")
FIGURE(CHECKPOINT, TOTAL, "total_bytes", COUNT, "bytes", true, r->checkpoint_totals.total_bytes,
       "Bytes of tensors of one checkpoint, all ranks")
FIGURE(CHECKPOINT, WHOLE_JOB, "whole_job_bytes", COUNT, "bytes", true,
       r->checkpoint_totals.whole_bytes, "The same of the whole job that is emulated")
FIGURE(CHECKPOINT, WHOLE_JOB_RANKS, "whole_job_ranks", COUNT, NULL, true,
       r->checkpoint_totals.whole_ranks, "Ranks of that job")
FIGURE(CHECKPOINT, DLIO_TOTAL, "dlio_total_bytes", COUNT, "bytes", true,
       r->checkpoint_totals.dlio_model_bytes + r->checkpoint_totals.dlio_optimizer_bytes,
       "What DLIO takes total_bytes for")
FIGURE(CHECKPOINT, WRITERS, "writing_ranks", COUNT, NULL, true, r->checkpoint_totals.writers,
       "Ranks that write")
FIGURE(CHECKPOINT, STALL, "stall_s", NUMBER, "s", r->trained, x->stall,
       "Time of training in which ranks stood still for checkpoints")
FIGURE(CHECKPOINT, DRAIN, "after_last_epoch_s", NUMBER, "s", r->trained, x->drain,
       "Time after the last epoch for the checkpoint under way")
FIGURE(CHECKPOINT, WHOLE_AU, "whole_au_percent", NUMBER, "percent",
       r->trained &&isfinite(x->au) && isfinite(x->without), x->au, "Whole-run AU")
FIGURE(CHECKPOINT, WITHOUT_STALL, "whole_au_without_stall_percent", NUMBER, "percent",
       r->trained &&isfinite(x->au) && isfinite(x->without), x->without,
       "The same without that time")
ONE(CHECKPOINT, SAVE, "save", SAVES, true, saves_view(r, false, room), "Those written")
ONE(CHECKPOINT, LOAD, "load", SAVES, true, saves_view(r, true, room), "Those read back")

SECTION(SAVES, "Checkpoints written, or read back")
FIGURE(SAVES, COUNT, "count", COUNT, NULL, true, x->duration.count, "Those that are whole")
FIGURE(SAVES, MEAN, "duration_mean_s", NUMBER, "s", x->duration.count, x->duration.mean,
       "Duration, mean")
FIGURE(SAVES, STDEV, "duration_stdev_s", NUMBER, "s", x->duration.count, x->duration.stdev,
       "Duration, standard deviation")
FIGURE(SAVES, MIN, "duration_min_s", NUMBER, "s", x->duration.count, x->duration.min, "Shortest")
FIGURE(SAVES, MAX, "duration_max_s", NUMBER, "s", x->duration.count, x->duration.max, "Longest")
FIGURE(SAVES, RATE, "throughput_mean_bytes_per_s", NUMBER, "bytes/s", x->duration.count,
       x->rate.mean * 0x1p30, "Bytes per second, mean")
FIGURE(SAVES, RATE_MIN, "throughput_min_bytes_per_s", NUMBER, "bytes/s", x->duration.count,
       x->rate.min * 0x1p30, "Bytes per second, least")
MANY(SAVES, EACH, "each", SAVED, saves_count(r, x->load), saved_view(r, x, i, room), "Each")
NAMED(SAVES, IO, "io", IO_KIND, io_kind_names, IO_KINDS, io_view(&x->io, i, room),
      "Requests to the store by kind")

SECTION(SAVED, "One checkpoint over all ranks")
FIGURE(SAVED, EPOCH, "epoch", COUNT, NULL, true, x->c.epoch, "Its epoch, from 1")
FIGURE(SAVED, NUMBER, "number", COUNT, NULL, true, x->c.number, "Number in the epoch, from 1")
FIGURE(SAVED, WHOLE, "whole", FLAG, NULL, true, x->c.done, "It is whole on every rank")
FIGURE(SAVED, DURATION, "duration_s", NUMBER, "s", x->c.done, x->c.duration_s,
       "The longest of a rank")
FIGURE(SAVED, SHORTEST, "duration_shortest_rank_s", NUMBER, "s", x->c.done, x->c.shortest_s,
       "The shortest of a rank")
FIGURE(SAVED, RANK_0, "duration_rank_0_s", NUMBER, "s", x->c.done, x->c.first_rank_s,
       "That of rank 0")
FIGURE(SAVED, SPAN, "span_s", NUMBER, "s", x->c.done, x->c.span_s,
       "From the first rank's turn to the last one's end")
FIGURE(SAVED, RATE, "throughput_bytes_per_s", NUMBER, "bytes/s", x->c.done, x->c.rate,
       "Bytes of all ranks over the duration")
FIGURE(SAVED, FILES, "files", COUNT, NULL, x->c.done, x->c.files, "Files")
FIGURE(SAVED, TENSORS, "tensor_bytes", COUNT, "bytes", x->c.done, x->c.payload_bytes,
       "Bytes of tensors")
FIGURE(SAVED, FILE_BYTES, "file_bytes", COUNT, "bytes", x->c.done && !x->load, x->c.file_bytes,
       "Bytes of the files")
FIGURE(SAVED, STALL_MEAN, "stall_mean_s", NUMBER, "s", x->c.done && !x->load, x->c.stall_mean_s,
       "Ranks stood still, mean over ranks")
FIGURE(SAVED, STALL_MAX, "stall_max_s", NUMBER, "s", x->c.done && !x->load, x->c.stall_max_s,
       "Ranks stood still, longest of a rank")
FIGURE(SAVED, WAITED, "waited_for_previous_s", NUMBER, "s", x->c.done && x->async, x->c.wait_max_s,
       "Of that: for the checkpoint before it")
FIGURE(SAVED, STAGE, "stage_s", NUMBER, "s", x->c.done && x->async, x->c.stage_max_s,
       "Of that: for the copy to memory")
FIGURE(SAVED, WRITE, "write_s", NUMBER, "s", x->c.done && x->async, x->c.write_max_s,
       "Writing in the background")
FIGURE(SAVED, HIDDEN, "hidden_s", NUMBER, "s", x->c.done && x->async, x->c.hidden_mean_s,
       "Of that: while ranks did not wait for it, mean over ranks")
FIGURE(SAVED, PROCESS_READ, "process_read_bytes", COUNT, "bytes",
       x->c.done && x->load ? OR_NULL(x->c.process_known) : false, x->c.process_bytes,
       "Fetched for this program from below the page cache while it lasted")
FIGURE(SAVED, PROCESS_WRITE, "process_write_bytes", COUNT, "bytes",
       x->c.done && !x->load ? OR_NULL(x->c.process_known) : false, x->c.process_bytes,
       "Given by this program to the page cache or the disk while it lasted")
FIGURE(SAVED, DISK_READ, "disk_read_bytes", COUNT, "bytes",
       x->c.done && x->load ? OR_NULL(x->c.disk_known) : false, x->c.disk_bytes,
       "Read from the disk below the folder while it lasted")
FIGURE(SAVED, DISK_WRITTEN, "disk_written_bytes", COUNT, "bytes",
       x->c.done && !x->load ? OR_NULL(x->c.disk_known) : false, x->c.disk_bytes,
       "Written to the disk below the folder while it lasted")

SECTION(GENERATION, "Generation of the dataset")
FIGURE(GENERATION, FILES, "files_written", COUNT, NULL, true, r->generation.files, "Files written")
FIGURE(GENERATION, KEPT, "files_kept", COUNT, NULL, true, r->generation.skipped,
       "Files that were there already")
FIGURE(GENERATION, BYTES, "written_bytes", COUNT, "bytes", true, r->generation.bytes,
       "Bytes written")
FIGURE(GENERATION, WALL, "wall_s", NUMBER, "s", true, seconds(r->generation.wall_ns), "Time")
FIGURE(GENERATION, MEAN_FILE, "mean_file_bytes", NUMBER, "bytes", r->generation.mean_file_bytes > 0,
       r->generation.mean_file_bytes, "Bytes of a file, mean")
FIGURE(GENERATION, RATE, "rate_bytes_per_s", NUMBER, "bytes/s", r->generation.wall_ns > 0,
       (double)r->generation.bytes / seconds(r->generation.wall_ns), "Bytes written per second")

SECTION(DATASET, "The dataset as it was found")
FIGURE(DATASET, FOLDER, "folder", TEXT, NULL, true, x->folder, "Its folder")
FIGURE(DATASET, FORMAT, "format", TEXT, NULL, true, x->format ? x->format->is.name : NULL,
       "Its format")
FIGURE(DATASET, TRAIN_FILES, "train_files", COUNT, NULL, true, x->files[DATASET_TRAIN],
       "Files for training")
FIGURE(DATASET, EVAL_FILES, "eval_files", COUNT, NULL, true, x->files[DATASET_EVAL],
       "Files for evaluation")
FIGURE(DATASET, SAMPLES_PER_FILE, "samples_per_file", COUNT, NULL, true, x->samples_per_file,
       "Samples in a file")
FIGURE(DATASET, TOTAL, "total_bytes", COUNT, "bytes", x->total_bytes != UINT64_MAX, x->total_bytes,
       "Bytes of all files")
FIGURE(DATASET, MEAN_FILE, "mean_train_file_bytes", NUMBER, "bytes", x->seen_files[DATASET_TRAIN],
       (double)x->seen_bytes[DATASET_TRAIN] / (double)x->seen_files[DATASET_TRAIN],
       "Bytes of a file for training, mean")
FIGURE(DATASET, CHECKED_BY, "checked_by", TEXT, NULL, true, checked_by(&r->presence),
       "`manifest`, `sizes`, `nothing`; null: not checked")
FIGURE(DATASET, FOUND, "files_found", COUNT, NULL, true, r->presence.files_found, "Files found")
FIGURE(DATASET, SIZES_CHECKED, "sizes_checked", COUNT, NULL, true, r->presence.sizes_checked,
       "Files whose size was checked")
FIGURE(DATASET, NOTE, "note", TEXT, NULL, true, r->presence.note, "The same as a sentence")
FIGURE(DATASET, NAMES_CHECKED, "names_checked", COUNT, NULL, r->presence.survey.named,
       r->presence.survey.named, "Names looked at for being of one file")
FIGURE(DATASET, DIFFERENT_FILES, "different_files", COUNT, NULL, r->presence.survey.named,
       r->presence.survey.distinct, "Different files among them")
ONE(DATASET, EXTENTS, "extents", EXTENTS, r->presence.survey.mapped, &r->presence.survey,
    "Where files lie")
FIGURE(DATASET, SPARSE, "files_with_fewer_blocks_than_bytes", COUNT, NULL,
       r->presence.survey.counted, r->presence.survey.sparse_files,
       "Files with fewer blocks than bytes")
ONE(DATASET, CONTENT, "content", CONTENT, r->presence.survey.files, &r->presence.survey,
    "What files hold")

SECTION(EXTENTS, "Where files lie, of those whose extents were looked at")
FIGURE(EXTENTS, FILES, "files", COUNT, NULL, true, x->mapped, "Files")
FIGURE(EXTENTS, BYTES, "bytes", COUNT, "bytes", true, x->mapped_bytes, "Their bytes")
FIGURE(EXTENTS, HOLE_FILES, "files_with_holes", COUNT, NULL, true, x->hole_files,
       "Files with holes")
FIGURE(EXTENTS, HOLES, "hole_bytes", COUNT, "bytes", true, x->hole_bytes, "Bytes in holes")
FIGURE(EXTENTS, TWINS, "files_with_blocks_of_others_checked", COUNT, NULL, true, x->twin_files,
       "Files with blocks of another one that was looked at")
FIGURE(EXTENTS, SHARED, "files_with_shared_blocks", COUNT, NULL, true, x->shared_files,
       "Files with shared blocks")
FIGURE(EXTENTS, COMPRESSED, "compressed_files", COUNT, NULL, true, x->compressed_files,
       "Files that the file system compresses")
FIGURE(EXTENTS, INLINE, "inline_files", COUNT, NULL, true, x->inline_files,
       "Files that lie in metadata")

SECTION(CONTENT, "What files hold, of those that were read before the run")
FIGURE(CONTENT, SAMPLES, "samples", COUNT, NULL, true, x->samples, "Samples compared")
FIGURE(CONTENT, FILES, "files", COUNT, NULL, true, x->files, "Files")
FIGURE(CONTENT, COMPARED, "compared_bytes", COUNT, "bytes", true, x->bytes, "Bytes compared")
FIGURE(CONTENT, PLACES, "places", COUNT, NULL, x->places, x->places,
       "Places in the files at which they were compared")
FIGURE(CONTENT, FILE_BYTES, "file_bytes", COUNT, "bytes", x->places, x->file_bytes,
       "Bytes that these files have")
FIGURE(CONTENT, UNKNOWN, "files_compared_in_front_only", COUNT, NULL, x->places,
       x->unknown_files,
       "Large files with places whose content depends on too much before them to be compared")
FIGURE(CONTENT, GENERATED, "files_as_generated", COUNT, NULL, true, x->files_as_generated,
       "Files with the bytes that this program generates")
FIGURE(CONTENT, ZEROS, "files_of_zeros", COUNT, NULL, true, x->zero_files, "Files of zeros")
FIGURE(CONTENT, CONSTANT, "files_of_one_byte", COUNT, NULL, true, x->constant_files,
       "Files of one byte again and again")
FIGURE(CONTENT, COPIED, "files_with_the_content_of_others", COUNT, NULL, true, x->copied_files,
       "Files with the content of others")
FIGURE(CONTENT, OTHER, "files_with_other_content", COUNT, NULL, true, x->other_files,
       "Files with other content")
FIGURE(CONTENT, FAILED, "files_not_compared", COUNT, NULL, true, x->failed_files,
       "Files that could not be compared")

SECTION(MEMORY, "Memory of this program")
FIGURE(MEMORY, BOUND, "bound_bytes", COUNT, "bytes", true, r->memory_bound_bytes,
       "Upper bound as stated before the run")
FIGURE(MEMORY, PEAK, "peak_rss_bytes", COUNT, "bytes", true, r->peak_rss_bytes,
       "Most that was resident")

SECTION(TRACE, "The trace")
FIGURE(TRACE, SPANS, "spans", COUNT, NULL, true, x->kept, "Spans kept")
FIGURE(TRACE, DROPPED, "spans_dropped", COUNT, NULL, true, x->dropped, "Spans dropped")
FIGURE(TRACE, CAPACITY, "spans_a_reader", COUNT, NULL, true, r->trace->capacity,
       "Spans that fit, of each reader")

SECTION(RANK, "One accelerator, all finished epochs")
FIGURE(RANK, NUMBER, "rank", COUNT, NULL, true, i, "Its number, from 0")
FIGURE(RANK, LOST, "lost", FLAG, NULL, x->of->lost, true,
       "Its process ended before it sent its results: nothing else is known")
FIGURE(RANK, WORKERS, "workers", COUNT, NULL, !x->of->lost, x->of->workers,
       "Threads that read for it")
FIGURE(RANK, PREFETCH, "prefetch_batches", COUNT, NULL, !x->of->lost, x->of->prefetch_batches,
       "Batches that may be ready beyond the one in use")
FIGURE(RANK, SAMPLES, "samples", COUNT, NULL, !x->of->lost, x->samples, "Samples")
FIGURE(RANK, PAYLOAD, "payload_bytes", COUNT, "bytes", !x->of->lost, x->payload, "Bytes of samples")
FIGURE(RANK, REQUESTS, "requests", COUNT, NULL, !x->of->lost, x->requests, "Requests to the store")
FIGURE(RANK, WHOLE_AU, "whole_au_percent", NUMBER, "percent", !x->of->lost && x->wall > 0,
       100 * x->compute / x->wall, "AU, no step excluded")
FIGURE(RANK, LATE, "compute_late_s", NUMBER, "s", !x->of->lost, x->late,
       "Computation was late for want of a processor")
FIGURE(RANK, WALL, "wall_s", NUMBER, "s", !x->of->lost, x->wall, "Wall time")
FIGURE(RANK, EXPOSED_WAIT, "exposed_wait_s", NUMBER, "s", !x->of->lost, x->wait,
       "Waiting for batches")
FIGURE(RANK, BARRIER_WAIT, "barrier_wait_s", NUMBER, "s", !x->of->lost, x->barrier,
       "Waiting at barriers")
FIGURE(RANK, WORKER_BUSY, "worker_busy_s", NUMBER, "s", !x->of->lost,
       seconds(x->of->worker_busy_ns), "Its workers were busy")
FIGURE(RANK, WORKER_IDLE, "worker_idle_s", NUMBER, "s", !x->of->lost,
       seconds(x->of->worker_idle_ns), "Its workers were idle")
FIGURE(RANK, PREPROCESS, "preprocess_s", NUMBER, "s", !x->of->lost, seconds(x->of->preprocess_ns),
       "Preprocessing")
FIGURE(RANK, TRANSPORT, "transport_s", NUMBER, "s", !x->of->lost && x->of->transport_ns > 0,
       seconds(x->of->transport_ns), "Moving batches from workers to it")
FIGURE(RANK, UNPACK, "transport_unpack_s", NUMBER, "s", !x->of->lost && x->of->transport_ns > 0,
       seconds(x->of->unpack_ns), "Of that: in its own thread")
FIGURE(RANK, PIN, "pin_s", NUMBER, "s", !x->of->lost && x->of->pin_ns > 0, seconds(x->of->pin_ns),
       "Copies to pinned memory")
FIGURE(RANK, FRAMEWORK, "framework_s", NUMBER, "s", rank_has_costs(x->of),
       seconds(x->of->framework_ns), "Spent as the framework's own code would")
FIGURE(RANK, FRAMEWORK_BEYOND, "framework_beyond_s", NUMBER, "s", rank_has_costs(x->of),
       seconds(x->of->framework_beyond_ns), "What this program's own work took beyond that")

SECTION(HOST, "One host")
FIGURE(HOST, NAME, "hostname", TEXT, NULL, x->first, x->first->hostname, "Its name")
FIGURE(HOST, KERNEL, "kernel", TEXT, NULL, x->facts, x->facts->kernel, "Its kernel")
FIGURE(HOST, CPUS, "cpu_count", COUNT, NULL, x->facts, x->facts->cpu_count, "Its processors")
FIGURE(HOST, MEMORY, "memory_gib", NUMBER, "GiB", x->facts, x->facts->memory_gib, "Its memory")
MANY(HOST, PROCESSES, "processes", HOST_PROCESS, r->processes,
     r->process[i].node == x->node ? &r->process[i] : NULL, "Processes of the run on it")

SECTION(HOST_PROCESS, "One process of a run")
FIGURE(HOST_PROCESS, NUMBER, "process", COUNT, NULL, true, i, "Its number, from 0")
FIGURE(HOST_PROCESS, FIRST_RANK, "first_rank", COUNT, NULL, true, x->first_rank, "Its first rank")
FIGURE(HOST_PROCESS, RANKS, "ranks", COUNT, NULL, true, x->ranks, "Its ranks")
FIGURE(HOST_PROCESS, LOST, "lost", FLAG, NULL, x->lost, true, "It ended before it sent its results")
FIGURE(HOST_PROCESS, OFFSET, "clock_offset_s", NUMBER, "s", true, seconds(x->wall_offset_ns),
       "Its clock minus that of process 0")
FIGURE(HOST_PROCESS, OFFSET_ERROR, "clock_offset_error_s", NUMBER, "s", true,
       seconds(x->offset_error_ns), "Half the round trip of that measurement")

SECTION(ENVIRONMENT, "A machine")
FIGURE(ENVIRONMENT, HOSTNAME, "hostname", TEXT, NULL, true, x->hostname, "Its name")
FIGURE(ENVIRONMENT, KERNEL, "kernel", TEXT, NULL, true, x->kernel, "Its kernel")
FIGURE(ENVIRONMENT, PROCESSOR, "processor", TEXT, NULL, true, x->processor, "Architecture")
FIGURE(ENVIRONMENT, CPUS, "cpu_count", COUNT, NULL, true, x->cpu_count, "Its processors")
FIGURE(ENVIRONMENT, USABLE_CPUS, "usable_cpus", NUMBER, NULL, true, x->usable_cpus,
       "Of these usable for this program")
FIGURE(ENVIRONMENT, MEMORY, "memory_bytes", NUMBER, "bytes", true, x->memory_gib * 0x1p30,
       "Its memory")
ONE(ENVIRONMENT, VERSIONS, "versions", VERSIONS, true, x, "Versions of what ran")
FIGURE(ENVIRONMENT, CPUINFO, "cpuinfo", JSON, NULL, true, json_pairs(x->cpuinfo, x->cpuinfo_count),
       "Of /proc/cpuinfo")
FIGURE(ENVIRONMENT, MEMINFO, "meminfo", JSON, NULL, true, json_pairs(x->meminfo, x->meminfo_count),
       "Of /proc/meminfo")

SECTION(VERSIONS, "Versions of what ran")
FIGURE(VERSIONS, STOKER, "stoker", TEXT, NULL, true, STOKER_VERSION, "This program")
FIGURE(VERSIONS, BUILD, "build", TEXT, NULL, true, build_id, "The same with its commit")
FIGURE(VERSIONS, COMPILER, "compiler", TEXT, NULL, true, __VERSION__, "The compiler")
FIGURE(VERSIONS, LIBC, "libc", TEXT, NULL, true, gnu_get_libc_version(), "The C library")
FIGURE(VERSIONS, JANSSON, "jansson", TEXT, NULL, true, jansson_version_str(), "The JSON library")

SECTION(STORAGE_PATH, "What lies below the folder of the dataset")
FIGURE(STORAGE_PATH, FILE_SYSTEM, "file_system", TEXT, NULL, true,
       x->file_system[0] ? x->file_system : NULL, "The file system")
FIGURE(STORAGE_PATH, DEVICES, "devices", JSON, NULL, true, block_names(&x->tree.whole),
       "Devices below it")
FIGURE(STORAGE_PATH, PARTITIONS, "partitions", JSON, NULL, true, block_names(&x->tree.part),
       "Their partitions")
FIGURE(STORAGE_PATH, DISKS, "disks_below", JSON, NULL, true, block_names(&x->tree.lower),
       "Disks below these devices")
FIGURE(STORAGE_PATH, INTERFACES, "network_interfaces", TEXT, NULL, true, x->interfaces,
       "Network interfaces that are counted")
FIGURE(STORAGE_PATH, CLIENT, "client", TEXT, NULL, true, x->client.kind ? x->client.type : NULL,
       "Client of a network file system")
FIGURE(STORAGE_PATH, IN_MEMORY, "in_memory", TEXT, NULL, true,
       x->tree.memory[0] ? x->tree.memory : NULL, "A device that lies in memory")
FIGURE(STORAGE_PATH, CACHED, "through_page_cache", TEXT, NULL, true,
       x->tree.cached[0] ? x->tree.cached : NULL, "A device that reads through the page cache")
FIGURE(STORAGE_PATH, UNSEEN, "unseen", TEXT, NULL, true, x->tree.unseen[0] ? x->tree.unseen : NULL,
       "Why what lies below cannot be seen")
FIGURE(STORAGE_PATH, LIMIT_BYTES, "control_group_read_bytes_per_s", NUMBER, "bytes/s",
       x->limit.bytes_per_s > 0, x->limit.bytes_per_s, "Limit of the control group")
FIGURE(STORAGE_PATH, LIMIT_READS, "control_group_reads_per_s", NUMBER, "reads/s",
       x->limit.reads_per_s > 0, x->limit.reads_per_s, "Limit of the control group")

SECTION(NEED, "What one accelerator needs, and what the run gave")
FIGURE(NEED, OF, "of", TEXT, NULL, true, r->only_evaluated ? "evaluation" : "training",
       "`training` or `evaluation`")
FIGURE(NEED, SAMPLE_FILE, "sample_file_bytes", NUMBER, "bytes", true, x->sample_file_bytes,
       "Bytes in files of a sample, mean")
FIGURE(NEED, SAMPLE_DECODED, "sample_decoded_bytes", NUMBER, "bytes", true, x->sample_decoded_bytes,
       "Bytes of a decoded sample, mean")
FIGURE(NEED, SIZES_FROM, "sample_file_bytes_from", TEXT, NULL, sizes_names[x->sizes],
       sizes_names[x->sizes], "How they are known: `layout`, `files`, `estimate`")
FIGURE(NEED, COMPUTATION, "computation_s", NUMBER, "s", true, x->need.step_s,
       "Computation of a step, mean")
FIGURE(NEED, BATCH, "batch_size", COUNT, NULL, true, x->need.batch, "Samples of a step")
FIGURE(NEED, SAMPLES, "samples_per_s", NUMBER, "samples/s", x->need.known, x->need.samples,
       "Samples of an accelerator that never waits")
FIGURE(NEED, BYTES, "bytes_per_s", NUMBER, "bytes/s", x->need.known, x->need.bytes,
       "The same in bytes in files")
FIGURE(NEED, MISSING, "missing_because", TEXT, NULL, !x->need.known, x->need.why,
       "Why there is no need")
FIGURE(NEED, TARGET, "target_percent", NUMBER, "percent", x->need.known && x->need.target > 0,
       100 * x->need.target, "AU to be reached")
FIGURE(NEED, SAMPLES_AT_TARGET, "samples_per_s_at_target", NUMBER, "samples/s",
       x->need.known && x->need.target > 0, x->need.samples_at_target, "Samples at that AU")
FIGURE(NEED, BYTES_AT_TARGET, "bytes_per_s_at_target", NUMBER, "bytes/s",
       x->need.known && x->need.target > 0, x->need.bytes_at_target, "The same in bytes in files")
FIGURE(NEED, SAID, "text", TEXT, NULL, true, supply_text(x, a->text, 256), "The same as a sentence")
ONE(NEED, SUPPLY, "supply", SUPPLY, x->source != SUPPLY_NONE, x, "What the run gave")

SECTION(SUPPLY, "What the run gave")
FIGURE(SUPPLY, OF, "of", TEXT, NULL, true, supply_names[x->source], "What gave it")
FIGURE(SUPPLY, INSTEAD, "instead", TEXT, NULL, x->source == SUPPLY_CACHE, x->instead,
       "What answered in place of the storage")
FIGURE(SUPPLY, ACCELERATORS, "accelerators", COUNT, NULL, true, x->accelerators, "Accelerators")
FIGURE(SUPPLY, SAMPLES, "samples_per_s", NUMBER, "samples/s", true, x->samples,
       "Samples of all of them, whole run")
FIGURE(SUPPLY, RETURNED, "returned_bytes_per_s", NUMBER, "bytes/s", true, x->bytes,
       "Bytes that requests returned, whole run")
FIGURE(SUPPLY, FED, "accelerators_fed", NUMBER, NULL, true, x->fed,
       "Accelerators that this is enough for")
FIGURE(SUPPLY, FED_AT_TARGET, "accelerators_fed_at_target", NUMBER, NULL, true, x->fed_at_target,
       "The same at the AU to be reached")
FIGURE(SUPPLY, SAID, "text", TEXT, NULL, true, supply_fed_text(x, a->text, 256),
       "The same as a sentence")

SECTION(OBJECT_STORE, "The servers of the store")
SHOWN(OBJECT_STORE, REQUESTS, "timed_requests", COUNT, NULL, true, server_requests(&x->timed),
      "Requests in the timed part (training epochs; evaluations where nothing is trained), "
      "retries not counted")
SHOWN(OBJECT_STORE, AGAIN, "timed_sent_again", COUNT, NULL, true, server_repetitions(&x->timed),
      "Retries in the timed part, for any reason")
SHOWN(OBJECT_STORE, BUSY, "timed_too_busy", COUNT, NULL, true, x->timed.again[SERVER_BUSY],
      "Of these: a server answered that it was too busy (503, 429)")
SHOWN(OBJECT_STORE, FIRST, "timed_first_byte_mean_s", NUMBER, "s", x->timed.answers,
      per(x->timed.first_ns, x->timed.answers) / 1e9,
      "From the end of a request to the first byte of its answer, in the timed part")
SHOWN(OBJECT_STORE, LAST, "timed_last_byte_mean_s", NUMBER, "s", x->timed.answers,
      per(x->timed.last_ns, x->timed.answers) / 1e9, "The same to its last byte")
FIGURE(OBJECT_STORE, AGAIN_SHARE, "timed_again_share", NUMBER, NULL,
       isfinite(result_again_share(r)), result_again_share(r),
       "Share of the total request time of readers and writers in the timed part: failed attempts "
       "and the pauses before retries")
SHOWN(OBJECT_STORE, PROCESSOR, "processor_s_per_gb", NUMBER, "s", isfinite(result_cpu_per_gb(r)),
      result_cpu_per_gb(r),
      "Processor time of this program in the timed part, all its work included, for each 10^9 "
      "bytes that came from the servers")
MANY(OBJECT_STORE, SERVERS, "servers", SERVER, r->servers.n, &r->servers.use[i],
     "Each server; of several processes the sums")

SECTION(SERVER, "One server")
FIGURE(SERVER, ADDRESS, "address", TEXT, NULL, true, x->address, "Its host and port")
FIGURE(SERVER, TLS, "tls", FLAG, NULL, true, x->tls, "It is talked to by https")
FIGURE(SERVER, GIVEN, "given", FLAG, NULL, true, x->given,
       "An endpoint of the configuration; others were redirected to")
FIGURE(SERVER, SKEW, "clock_ahead_s", NUMBER, "s", x->skew_s != 0, (double)x->skew_s,
       "Its clock minus this machine's, where it refused a signature for that")
FIGURE(SERVER, FIRST_MAX, "first_byte_max_s", NUMBER, "s", x->whole.answers,
       seconds((int64_t)x->first_max_ns), "The longest wait for a first byte")
ONE(SERVER, WHOLE, "whole", SERVER_COUNTS, true, &x->whole,
    "Since the store was opened: generation, verification and checkpoints included")
ONE(SERVER, TIMED, "timed", SERVER_COUNTS, true, &x->timed, "The same in the timed part")

SECTION(SERVER_COUNTS, "What was done with a server")
FIGURE(SERVER_COUNTS, ALL, "requests", COUNT, NULL, true, server_requests(x),
       "Requests, answered or failed; retries are not counted")
FIGURE(SERVER_COUNTS, FAILED, "failed", COUNT, NULL, true, x->failed,
       "Of these: failed (that an object is not there is an answer)")
ONE(SERVER_COUNTS, REQUESTS, "by_kind", SERVER_REQUESTS, true, x, "By kind")
FIGURE(SERVER_COUNTS, AGAIN_ALL, "sent_again", COUNT, NULL, true, server_repetitions(x),
       "Retries")
ONE(SERVER_COUNTS, AGAIN, "again_by_reason", SERVER_AGAIN, true, x, "By reason")
FIGURE(SERVER_COUNTS, AGAIN_TIME, "again_s", NUMBER, "s", true, seconds((int64_t)x->again_ns),
       "Time of failed attempts and of the pauses before retries, of all threads")
FIGURE(SERVER_COUNTS, CONNECTIONS, "connections", COUNT, NULL, true, x->connections,
       "Connections opened")
FIGURE(SERVER_COUNTS, REOPENED, "reopened", COUNT, NULL, true, x->reopened,
       "Requests before which one was opened because the kept one had been closed")
FIGURE(SERVER_COUNTS, BODY_SENT, "body_sent_bytes", COUNT, "bytes", true, x->body_sent,
       "Bodies of requests")
FIGURE(SERVER_COUNTS, BODY_RECEIVED, "body_received_bytes", COUNT, "bytes", true, x->body_received,
       "Bodies of answers")
FIGURE(SERVER_COUNTS, WIRE_SENT, "wire_sent_bytes", COUNT, "bytes", true, x->wire_sent,
       "Sent with heads, before TLS")
FIGURE(SERVER_COUNTS, WIRE_RECEIVED, "wire_received_bytes", COUNT, "bytes", true, x->wire_received,
       "Received with heads, after TLS")
FIGURE(SERVER_COUNTS, ANSWERS, "answers", COUNT, NULL, true, x->answers,
       "Answers, those that made a repetition included")
FIGURE(SERVER_COUNTS, FIRST, "first_byte_mean_s", NUMBER, "s", x->answers,
       per(x->first_ns, x->answers) / 1e9,
       "From the end of a request to the first byte of its answer")
FIGURE(SERVER_COUNTS, LAST, "last_byte_mean_s", NUMBER, "s", x->answers,
       per(x->last_ns, x->answers) / 1e9, "The same to its last byte")
FIGURE(SERVER_COUNTS, CLUMPED, "waited_for_ack", COUNT, NULL, true, x->clumped,
       "Answers whose bytes came 35 to 46 ms late over a network that is faster")
FIGURE(SERVER_COUNTS, BESIDE, "waited_nearly_as_long", COUNT, NULL, true, x->beside_clump,
       "Answers whose bytes came up to 10 ms sooner or later than that")

#define BY_KIND(ID, key)                                                                           \
	FIGURE(SERVER_REQUESTS, ID, key, COUNT, NULL, x->requests[SERVER_##ID],                    \
	       x->requests[SERVER_##ID], "Requests of this kind; absent: none")
SECTION(SERVER_REQUESTS, "Requests by kind")
BY_KIND(GET, "get")
BY_KIND(HEAD, "head")
BY_KIND(LIST, "list")
BY_KIND(PUT, "put")
BY_KIND(MULTIPART_BEGIN, "multipart_begin")
BY_KIND(PART, "part")
BY_KIND(MULTIPART_END, "multipart_end")
BY_KIND(MULTIPART_ABORT, "multipart_abort")
BY_KIND(COPY, "copy")
BY_KIND(DELETE, "delete")
#undef BY_KIND

#define BY_REASON(ID, key, says)                                                                   \
	FIGURE(SERVER_AGAIN, ID, key, COUNT, NULL, x->again[SERVER_##ID], x->again[SERVER_##ID],   \
	       says)
SECTION(SERVER_AGAIN, "Repetitions by reason")
BY_REASON(CLOSED, "closed", "The server had closed a kept connection: sent again at once")
BY_REASON(LOST, "lost", "A connection was lost before or in the middle of an answer")
BY_REASON(CONNECT, "no_connection", "The server could not be connected to")
BY_REASON(TIME, "time_limit", "A time limit was reached")
BY_REASON(BUSY, "too_busy", "The server was too busy (503, 429)")
BY_REASON(ERROR, "server_error", "Another error of the server (500, 502, 504)")
BY_REASON(MOVED, "moved", "A redirect, or another region")
BY_REASON(CLOCK, "clock", "Signed anew with the server's time")
BY_REASON(EXPIRED, "expired", "Signed anew with fresh credentials")
#undef BY_REASON

SECTION(PROBE, "What the storage gives by itself")
FIGURE(PROBE, OWN, "own", FLAG, NULL, x->own, true,
       "The run decided on it, as its own measures left open what more readers would do")
FIGURE(PROBE, DONE, "done", FLAG, NULL, true, x->done, "It was measured")
FIGURE(PROBE, WHY, "why", TEXT, NULL, true, x->why[0] ? x->why : NULL, "Why not, or not in full")
FIGURE(PROBE, COLD, "cold", FLAG, NULL, true, x->cold, "The page cache held none of the bytes")
FIGURE(PROBE, RUN_READERS, "run_readers", COUNT, NULL, true, x->run_readers, "Readers of the run")
FIGURE(PROBE, EVICT, "evict_s", NUMBER, "s", true, x->evict_s, "Time that evicting took")
MANY(PROBE, POINTS, "points", PROBE_POINT, x->count, &x->point[i],
     "Reading samples, with more and more readers")
MANY(PROBE, SIZED, "sized", PROBE_POINT, x->sized_count, &x->sized[i],
     "Requests of one other size: with one reader and with the most")

SECTION(PROBE_POINT, "One measurement of the probe")
FIGURE(PROBE_POINT, READERS, "readers", COUNT, NULL, true, x->readers, "Readers")
FIGURE(PROBE_POINT, SECONDS, "seconds", NUMBER, "s", true, x->seconds, "Time")
FIGURE(PROBE_POINT, SAMPLES, "samples", COUNT, NULL, true, x->samples, "Samples")
FIGURE(PROBE_POINT, OPENS, "opens", COUNT, NULL, true, x->opens, "Opens")
FIGURE(PROBE_POINT, REQUESTS, "requests", COUNT, NULL, true, x->requests, "Requests")
FIGURE(PROBE_POINT, BYTES, "bytes", COUNT, "bytes", true, x->bytes, "Bytes")
FIGURE(PROBE_POINT, SAMPLE_RATE, "samples_per_s", NUMBER, "samples/s", true,
       a_second(x->samples, x), "Samples per second")
FIGURE(PROBE_POINT, OPEN_RATE, "opens_per_s", NUMBER, "opens/s", true, a_second(x->opens, x),
       "Opens per second")
FIGURE(PROBE_POINT, REQUEST_RATE, "requests_per_s", NUMBER, "requests/s", true,
       a_second(x->requests, x), "Requests per second")
FIGURE(PROBE_POINT, BYTE_RATE, "bytes_per_s", NUMBER, "bytes/s", true, a_second(x->bytes, x),
       "Bytes per second")
FIGURE(PROBE_POINT, OPEN, "open_s", NUMBER, "s", true, x->open_s,
       "Time of all readers in opens and closes")
FIGURE(PROBE_POINT, READ, "read_s", NUMBER, "s", true, x->read_s, "Time of all readers in requests")
FIGURE(PROBE_POINT, META, "metadata_s", NUMBER, "s", true, x->meta_s,
       "Of this: in requests for headers and indexes")
FIGURE(PROBE_POINT, READERS_TIME, "reader_s", NUMBER, "s", true, x->reader_s,
       "Time of all readers, each to its end")
FIGURE(PROBE_POINT, LONGEST, "longest_request_s", NUMBER, "s", true, x->longest_s,
       "Longest request")
FIGURE(PROBE_POINT, CPU, "cpu_s", NUMBER, "s", true, x->cpu_s, "Processor time")

SECTION(BARRIER, "What a barrier of all ranks costs by itself, measured before training")
FIGURE(BARRIER, OVER, "over", TEXT, NULL, true, result_barrier_way(x),
       "`threads`, `sockets` or `mpi`")
FIGURE(BARRIER, PROCESSES, "processes", COUNT, NULL, true, x->processes, "Processes")
FIGURE(BARRIER, DEPTH, "depth", COUNT, NULL, x->processes > 1, x->depth,
       "Depth of the connections: 1 without a tree")
FIGURE(BARRIER, MESSAGES, "messages", NUMBER, NULL, x->processes > 1, x->messages,
       "Messages of process 0 for one barrier")
FIGURE(BARRIER, LIBRARY, "library", TEXT, NULL, x->library[0], x->library, "The MPI library")
FIGURE(BARRIER, SOCKETS, "sockets_s", NUMBER, "s", x->sockets_s > 0, x->sockets_s,
       "A barrier of processes over sockets")
FIGURE(BARRIER, MPI, "mpi_s", NUMBER, "s", x->mpi_s > 0, x->mpi_s,
       "A barrier of processes over MPI")
FIGURE(BARRIER, COUNT, "barriers", COUNT, NULL, true, x->count, "Barriers measured")
FIGURE(BARRIER, MEDIAN, "median_s", NUMBER, "s", true, x->median_s, "Median")
FIGURE(BARRIER, MEAN, "mean_s", NUMBER, "s", true, x->mean_s, "Mean")
FIGURE(BARRIER, MAX, "max_s", NUMBER, "s", true, x->max_s, "Longest")
FIGURE(BARRIER, SHARE, "percent_of_step", NUMBER, "percent", true, 100 * result_barrier_share(r),
       "Of the time of a step")

SECTION(MEMORY_COPY, "How fast this machine copies memory")
FIGURE(MEMORY_COPY, THREADS, "threads", COUNT, NULL, true, x->threads, "Threads that copied")
FIGURE(MEMORY_COPY, RATE, "bytes_per_s", NUMBER, "bytes/s", true, x->bytes_per_s,
       "Bytes that they copied per second")

SECTION(VERDICT, "A verdict")
TOLD(VERDICT, CHECK, "check", TEXT, "Name of the check")
TOLD(VERDICT, LEVEL, "level", TEXT, "`pass`, `warn`, `fail` or `unknown`")
TOLD(VERDICT, SAID, "text", TEXT, "The finding as sentences")
TOLD(VERDICT, FACTS, "facts", JSON, "The finding as reasons with their figures")
TOLD(VERDICT, TAKES, "takes", JSON, "What the run cannot claim for this reason")

SECTION(MEASURED, "What was measured")
TOLD(MEASURED, STORAGE, "storage", TEXT,
     "Whether the storage was measured: `yes`, `part`, `no`, `emulated` or `unknown`")
TOLD(MEASURED, INSTEAD, "instead", TEXT,
     "What served in its place, as a reason; for `no` and `part`")
TOLD(MEASURED, SAID, "text", TEXT, "The same as sentences")
TOLD(MEASURED, FACTS, "facts", JSON, "The same as reasons with their figures")
TOLD(MEASURED, TAKEN, "taken", JSON, "What the run cannot claim")

SECTION(LIMIT, "What limited the run")
TOLD(LIMIT, CAUSE, "cause", TEXT, "Name of the cause")
TOLD(LIMIT, LOST, "lost_percent", NUMBER, "Percentage of the training time that was lost")
TOLD(LIMIT, CAUSE_SHARE, "cause_percent", NUMBER,
     "Percentage of the lost time that goes to the cause; absent if it is not about lost time")
TOLD(LIMIT, FACTS, "facts", JSON, "The cause as reasons with their figures")
TOLD(LIMIT, EFFECTS, "effects", JSON, "What changes would do, as reasons with their figures")
TOLD(LIMIT, SAID, "text", TEXT, "Cause and effects as sentences")
TOLD(LIMIT, REMEDY_FACTS, "remedy_facts", JSON, "What helps, as reasons with their figures")
TOLD(LIMIT, REMEDY, "remedy", TEXT, "The same as sentences")

SECTION(WHAT_IF, "What a change would give")
TOLD(WHAT_IF, COSTS, "framework_costs", JSON, "Effect of the framework's own code on AU")
TOLD(WHAT_IF, CHANGES, "changes", JSON, "Each change with the AU that is predicted for it")

SECTION(CONFIGURED, "A key of the workload")
TOLD(CONFIGURED, VALUE, "value", JSON, "Its value")
TOLD(CONFIGURED, ORIGIN, "origin", TEXT, "Where the value comes from; absent: the default")
TOLD(CONFIGURED, PROFILE, "profile", JSON, "The profile of framework costs that the value names")

SECTION(INTEGRITY, "Digests")
TOLD(INTEGRITY, FILES, "files", JSON, "Size and SHA-256 of each file, by name")
TOLD(INTEGRITY, LEFT_OUT, "not_digested", JSON, "Why a file has no digest, by name")

#undef SECTION
#undef FIGURE
#undef ONE
#undef MANY
#undef NAMED
#undef PARTS
#undef SHOWN
#undef TOLD
#undef SPREAD
