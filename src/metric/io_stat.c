#include "metric/io_stat.h"

const char *const io_kind_names[IO_KINDS] = {"open", "metadata", "data", "write", "sync"};

void io_stat_init(struct io_stat *s)
{
	for (int k = 0; k < IO_KINDS; k++) {
		s->kind[k].requests = 0;
		s->kind[k].asked_bytes = 0;
		s->kind[k].returned_bytes = 0;
		s->kind[k].busy_ns = 0;
		hist_init(&s->kind[k].latency_ns);
	}
	s->reads = (struct read_fit){0};
}

void io_stat_add(struct io_stat *s, enum io_kind kind, int64_t took_ns, uint64_t asked,
		 int64_t returned)
{
	s->kind[kind].requests++;
	s->kind[kind].asked_bytes += asked;
	if (returned > 0)
		s->kind[kind].returned_bytes += (uint64_t)returned;
	s->kind[kind].busy_ns += took_ns;
	hist_add(&s->kind[kind].latency_ns, (uint64_t)took_ns);
}

void io_stat_merge(struct io_stat *into, const struct io_stat *from)
{
	for (int k = 0; k < IO_KINDS; k++) {
		into->kind[k].requests += from->kind[k].requests;
		into->kind[k].asked_bytes += from->kind[k].asked_bytes;
		into->kind[k].returned_bytes += from->kind[k].returned_bytes;
		into->kind[k].busy_ns += from->kind[k].busy_ns;
		hist_merge(&into->kind[k].latency_ns, &from->kind[k].latency_ns);
	}
	read_fit_merge(&into->reads, &from->reads);
}
