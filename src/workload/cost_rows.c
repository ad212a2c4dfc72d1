/* The rows of costs: what a framework's own code does, who spends it, and how it is measured. */
#include "base/buf.h"
#include "workload/framework_costs.h"
#include "workload/workload.h"

#define OF_LOOP "Statements like those of DLIO's loop, after pauses and without."
#define OF_TORCH (1u << FRAMEWORK_PYTORCH)
#define OF_TENSORFLOW (1u << FRAMEWORK_TENSORFLOW)
#define STARTS "Elapsed time of iter() in a script that imports torch and numpy."
#define BEGINS "Processor time of such a worker up to its first sample."
#define BATCHES "Batches of 1 to 128 samples of 4 KiB to 1 MiB."

const struct cost_row_facts cost_rows[COST_ROWS] = {
	[COST_SAMPLE] = {.name = "sample",
			 .what = "a sample, beside loading it: code of DLIO",
			 .spent_by = "worker",
			 .of = OF_TORCH,
			 .where = COST_IN_DLIO,
			 .parameters = COST_HAS_PER_SAMPLE,
			 .measured = "Statements like those of DLIO's reader."},
	[COST_INDEX] =
		{.name = "index",
		 .what = "a sample, for each sample of the rank: DLIO writes its whole index "
			 "into a message",
		 .spent_by = "worker",
		 .of = OF_TORCH,
		 .where = COST_IN_DLIO,
		 .parameters = COST_HAS_PER_SAMPLE,
		 .measured = "Dictionaries of 16 to 4096 entries written as DLIO does."},
	[COST_KEEP] = {.name = "keep",
		       .what = "fresh memory for a sample that is kept until its batch is made; "
			       "DLIO throws samples away, and without workers it is not fresh",
		       .spent_by = "worker",
		       .of = OF_TORCH,
		       .where = COST_IN_OWN_LOOPS,
		       .parameters = COST_HAS_PER_BYTE,
		       .bytes_are = "the sample",
		       .measured = "Arrays of a file loaded and kept, less the same thrown away."},
	[COST_INLINE] = {.name = "inline",
			 .what = "a batch made of its samples without workers",
			 .spent_by = "rank",
			 .of = OF_TORCH,
			 .parameters = COST_HAS_FIXED | COST_HAS_PER_SAMPLE | COST_HAS_PER_BYTE |
				       COST_HAS_AFTER_WAIT,
			 .fixed_is = "batch",
			 .bytes_are = "the batch",
			 .measured = BATCHES " next() of a loader without workers."},
	[COST_COLLATE] = {.name = "collate",
			  .what = "samples copied into the memory of a batch",
			  .spent_by = "worker",
			  .of = OF_TORCH,
			  .parameters = COST_HAS_FIXED | COST_HAS_PER_SAMPLE | COST_HAS_PER_BYTE |
					COST_HAS_AFTER_WAIT | COST_HAS_FIRST,
			  .fixed_is = "batch",
			  .bytes_are = "the batch",
			  .measured = BATCHES " default_collate, in a worker."},
	[COST_PACK] = {.name = "pack",
		       .what = "a batch handed to the rank: shared memory, pickling",
		       .spent_by = "worker",
		       .of = OF_TORCH,
		       .parameters = COST_HAS_FIXED | COST_HAS_PER_BYTE | COST_HAS_AFTER_WAIT |
				     COST_HAS_FIRST,
		       .fixed_is = "batch",
		       .bytes_are = "the batch",
		       .measured = BATCHES
		       " All threads of the worker for a batch, without default_collate."},
	[COST_HAND_OVER] = {.name = "hand_over",
			    .what = "a batch taken that lies ready",
			    .spent_by = "rank",
			    .parameters = COST_HAS_FIXED | COST_HAS_PER_BYTE | COST_HAS_AFTER_WAIT |
					  COST_HAS_FIRST,
			    .fixed_is = "batch",
			    .bytes_are = "the batch",
			    .measured = BATCHES
			    " Processor time of next() while the worker is idle, and the least "
			    "that it waits for the worker's thread that passes descriptors."},
	[COST_STEP] = {.name = "step",
		       .what = "the training loop's own code: DLIO's loop",
		       .spent_by = "rank",
		       .where = COST_IN_DLIO,
		       .parameters = COST_HAS_FIXED | COST_HAS_AFTER_WAIT,
		       .fixed_is = "step",
		       .measured = OF_LOOP},
	[COST_STEP_END] = {.name = "step_end",
			   .what = "the same behind the computation: DLIO's log, and its lists of "
				   "times",
			   .spent_by = "rank",
			   .where = COST_IN_DLIO,
			   .parameters = COST_HAS_FIXED | COST_HAS_AFTER_WAIT,
			   .fixed_is = "step",
			   .measured = OF_LOOP},
	[COST_BLOCK] = {.name = "block",
			.what = "the beginning of a block or an evaluation: DLIO's records",
			.spent_by = "rank",
			.where = COST_IN_DLIO,
			.parameters = COST_HAS_FIXED,
			.fixed_is = "block",
			.measured = OF_LOOP},
	[COST_LOOP_END] = {.name = "loop_end",
			   .what = "after the last batch of an epoch or an evaluation: DLIO's "
				   "iterators end",
			   .spent_by = "rank",
			   .where = COST_IN_DLIO,
			   .parameters = COST_HAS_FIXED,
			   .fixed_is = "loop",
			   .measured = OF_LOOP},
	[COST_PIN] = {.name = "pin",
		      .what = "a batch copied into locked memory",
		      .spent_by = "pin thread",
		      .of = OF_TORCH,
		      .parameters = COST_HAS_FIXED | COST_HAS_PER_BYTE | COST_HAS_AFTER_WAIT,
		      .fixed_is = "batch",
		      .bytes_are = "the batch",
		      .measured = "pin_memory() of 4 KiB to 16 MiB, where torch sees a GPU."},
	[COST_START_WORKER] = {.name = "start_worker",
			       .what = "a worker started, one after another",
			       .spent_by = "rank",
			       .of = OF_TORCH,
			       .parameters = COST_HAS_FIXED,
			       .fixed_is = "worker",
			       .measured = "Elapsed time of iter() with 1, 2 and 4 workers."},
	[COST_BEGIN_WORKER] = {.name = "begin_worker",
			       .what = "before a new worker takes its first task",
			       .spent_by = "worker",
			       .of = OF_TORCH,
			       .parameters = COST_HAS_FIXED,
			       .fixed_is = "worker",
			       .measured = "Processor time of a worker up to its first sample."},
	[COST_BEGIN_DLIO] = {.name = "begin_dlio",
			     .what = "DLIO's reader imported by a new worker",
			     .spent_by = "worker",
			     .of = OF_TORCH,
			     .where = COST_IN_DLIO,
			     .parameters = COST_HAS_FIXED,
			     .fixed_is = "worker",
			     .measured =
				     "Modules that look at the stack, as those of DLIO's reader "
				     "do, imported in a new process that has DLIO's other "
				     "modules."},
	[COST_RESUME_WORKER] =
		{.name = "resume_worker",
		 .what = "a persistent worker told of the next epoch",
		 .spent_by = "rank",
		 .of = OF_TORCH,
		 .parameters = COST_HAS_FIXED,
		 .fixed_is = "worker",
		 .measured = "Elapsed time of iter() of a loader whose workers are there."},
	[COST_END_WORKER] = {.name = "end_worker",
			     .what = "a worker ended",
			     .spent_by = "rank",
			     .of = OF_TORCH,
			     .parameters = COST_HAS_FIXED,
			     .fixed_is = "worker",
			     .measured = "Elapsed time of the end of an iterator."},
	[COST_ITERATOR] = {.name = "iterator",
			   .what = "tf.data's iterator made for an epoch, up to its first element",
			   .spent_by = "rank",
			   .of = OF_TENSORFLOW,
			   .parameters = COST_HAS_FIXED | COST_HAS_FIRST,
			   .fixed_is = "epoch",
			   .measured = "Elapsed time of iter() and the first next(), less that of "
				       "the files that are opened."},
	[COST_ITERATOR_MAP] = {.name = "iterator_map",
			       .what = "the same: what a map of tf.data adds",
			       .spent_by = "rank",
			       .of = OF_TENSORFLOW,
			       .parameters = COST_HAS_FIXED,
			       .fixed_is = "epoch",
			       .measured = "The same of a pipeline with a map, less that without."},
	[COST_ITERATOR_INTERLEAVE] = {.name = "iterator_interleave",
				      .what = "the same: what interleave adds",
				      .spent_by = "rank",
				      .of = OF_TENSORFLOW,
				      .parameters = COST_HAS_FIXED,
				      .fixed_is = "epoch",
				      .measured =
					      "The same of a pipeline with interleave, less that "
					      "without."},
	[COST_ITERATOR_END] = {.name = "iterator_end",
			       .what = "tf.data's iterator at its end, and released",
			       .spent_by = "rank",
			       .of = OF_TENSORFLOW,
			       .parameters = COST_HAS_FIXED,
			       .fixed_is = "epoch",
			       .measured = "Elapsed time of the last next() and of releasing."},
	[COST_INTERLEAVE] = {.name = "interleave",
			     .what = "a file's dataset made by the function of tf.data's "
				     "interleave",
			     .spent_by = "worker",
			     .of = OF_TENSORFLOW,
			     .parameters = COST_HAS_FIXED,
			     .fixed_is = "file",
			     .measured = "Many files of a record through interleave, less the "
					 "same files in a list."},
	[COST_PARSE] = {.name = "parse",
			.what = "records of a batch parsed and decoded by tf.data's map",
			.spent_by = "call of map",
			.of = OF_TENSORFLOW,
			.parameters = COST_HAS_FIXED | COST_HAS_PER_SAMPLE | COST_HAS_PER_BYTE,
			.fixed_is = "batch",
			.bytes_are = "the batch",
			.measured =
				"All threads for batches with parse_example and decode_raw, less "
				"those without."},
	[COST_START_SPAWN] = {.name = "start_spawn",
			      .what = "a worker started with spawn",
			      .spent_by = "rank",
			      .of = OF_TORCH,
			      .parameters = COST_HAS_FIXED,
			      .fixed_is = "worker",
			      .measured = STARTS},
	[COST_BEGIN_SPAWN] = {.name = "begin_spawn",
			      .what = "a new interpreter that imports torch and numpy",
			      .spent_by = "worker",
			      .of = OF_TORCH,
			      .parameters = COST_HAS_FIXED,
			      .fixed_is = "worker",
			      .measured = BEGINS},
	[COST_START_FORKSERVER] = {.name = "start_forkserver",
				   .what = "a worker started by a fork server",
				   .spent_by = "rank",
				   .of = OF_TORCH,
				   .parameters = COST_HAS_FIXED | COST_HAS_FIRST,
				   .fixed_is = "worker",
				   .measured = STARTS},
	[COST_BEGIN_FORKSERVER] = {.name = "begin_forkserver",
				   .what = "torch and numpy imported: the server has not",
				   .spent_by = "worker",
				   .of = OF_TORCH,
				   .parameters = COST_HAS_FIXED,
				   .fixed_is = "worker",
				   .measured = BEGINS},
	[COST_IMPORT_DLIO] = {.name = "import_dlio",
			      .what = "DLIO's modules imported by a worker that was not forked",
			      .spent_by = "worker",
			      .of = OF_TORCH,
			      .where = COST_IN_DLIO,
			      .parameters = COST_HAS_FIXED,
			      .fixed_is = "worker",
			      .measured = "DLIO imported behind torch, or those of its libraries "
					  "that are there."},
};

const struct cost_row_facts cost_load_row = {
	.name = COST_LOAD,
	.what = "a sample loaded by the format's library, beside its requests",
	.spent_by = "worker",
	.parameters = COST_HAS_FIXED | COST_HAS_PER_SAMPLE | COST_HAS_PER_BYTE |
		      COST_HAS_AFTER_WAIT | COST_HAS_AFTER_EACH_WAIT | COST_HAS_FIRST |
		      COST_HAS_DATA | COST_HAS_IMPORT,
	.fixed_is = "file opened",
	.bytes_are = "the arrays that are made",
	.measured =
		"Means of loads of files of 4 KiB to 4 MiB from the page cache, in turn, less the "
		"same calls into memory that is there. After waits: with pauses before the loads, "
		"and within their requests. Without workers: beside batches that are made of the "
		"samples. The first time: in new processes. The import: in a new process that has "
		"DLIO's other modules."};

static void put_row(struct buf *out, const char *name, const struct cost_row_facts *r)
{
	bool fixed = r->parameters & COST_HAS_FIXED, sample = r->parameters & COST_HAS_PER_SAMPLE,
	     byte = r->parameters & COST_HAS_PER_BYTE;

	buf_printf(out, "| %s | %s | %s | ", name, r->spent_by, r->what);
	if (fixed)
		buf_printf(out, "each %s", r->fixed_is);
	if (sample)
		buf_printf(out, "%seach sample", fixed ? ", " : "");
	if (byte)
		buf_printf(out, "%seach byte of %s", fixed || sample ? ", " : "", r->bytes_are);
	if (r->parameters & COST_HAS_AFTER_WAIT)
		buf_puts(out, ", after a wait");
	if (r->parameters & COST_HAS_AFTER_EACH_WAIT)
		buf_puts(out, ", after each further wait");
	if (r->parameters & COST_HAS_FIRST)
		buf_puts(out, ", the first time");
	if (r->parameters & COST_HAS_IMPORT)
		buf_puts(out, ", its import");
	if (r->of)
		buf_printf(out, "; only of %s", r->of == OF_TENSORFLOW ? "TensorFlow" : "PyTorch");
	if (r->where != COST_ANYWHERE)
		buf_printf(out, "; only %s `compat.dlio`",
			   r->where == COST_IN_DLIO ? "with" : "without");
	buf_printf(out, " | %s |\n", r->measured);
}

void costs_docs_markdown(struct buf *out)
{
	buf_puts(
		out,
		"\n## Costs of a framework\n\nA profile (`framework.costs`) has a law for each of "
		"these rows that was measured: fixed + per_sample times samples + per_byte times "
		"bytes, in seconds, and after_wait if the thread waited since it was last there; "
		"after_each_wait for each further request that it waited for. Short waits count "
		"for a part. first comes on top the first time in a worker, or in the rank. A law "
		"that goes by bytes may have points, each [bytes, seconds, after_wait]: times that "
		"were measured at these sizes, with straight lines between them. They take the "
		"place of the parts but per_sample. Points of loading have a fourth number: the "
		"seconds where there are no workers. before_data and after_data are those of the "
		"law's seconds that loading spends before its first request for 20 kB or more, and "
		"behind the last one; the others lie between these requests, by their bytes. "
		"import is what a new worker of DLIO spends on the format's library. "
		"`stoker calibrate` writes a profile; the time is that of the processor unless "
		"stated otherwise.\n\n");
	buf_puts(out, "| row | spent by | what | parts of the law | how it is measured |\n"
		      "|---|---|---|---|---|\n");
	put_row(out, COST_LOAD "FORMAT", &cost_load_row);
	for (size_t i = 0; i < COST_ROWS; i++)
		put_row(out, cost_rows[i].name, &cost_rows[i]);
}
