/* What the processes of one run do together, outside the timed phases. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/net.h"
#include "dataset/manifest.h"
#include "run/state.h"

/* Files whose size every host is asked for. */
#define PROBE_FILES 64u

bool run_leads(const struct run_state *s)
{
	return !s->net || net_process_number(s->net) == 0;
}

bool run_tells_host(const struct run_state *s)
{
	return !s->net || net_process(s->net, net_process_number(s->net))->on_node == 0;
}

int run_agree(struct run_state *s, int rc, struct err *e)
{
	return s->net ? comm_agree(s->o->processes, rc, e) : rc;
}

int run_share(struct run_state *s, void *p, size_t n, struct err *e)
{
	int rc = s->net ? comm_broadcast(s->o->processes, 0, p, n) : 0;

	/* what stopped it is found by the agreement */
	return rc < 0 ? run_agree(s, err_set(e, rc, "the run was stopped"), e) : 0;
}

int run_follow(struct run_state *s, int rc, void *p, size_t n, struct err *e)
{
	struct err outcome = {0};

	if (run_leads(s) && rc < 0)
		outcome = *e;
	if (run_share(s, &outcome, sizeof(outcome), e) < 0)
		return e->code;
	if (outcome.code < 0) {
		*e = outcome;
		return outcome.code;
	}
	return run_share(s, p, n, e);
}

uint32_t run_processes_here(const struct run_state *s)
{
	uint32_t n = 0;

	if (!s->net)
		return 1;
	for (uint32_t p = 0; p < net_processes(s->net); p++)
		n += net_process(s->net, p)->node ==
		     net_process(s->net, net_process_number(s->net))->node;
	return n;
}

/* ---- one dataset for all hosts ---- */

struct probe {
	bool manifest;
	char created[32];
	uint64_t config_hash;
	uint32_t files;
	struct {
		uint64_t bytes; /* UINT64_MAX: not there */
		int64_t mtime_ns;
	} file[2 * PROBE_FILES];
};

struct probe_answer {
	bool same, one_file_system;
	char host[NET_HOST_MAX];
	char why[512];
};

static void probe_kind(const struct run_state *s, enum dataset_kind kind, struct probe *out)
{
	struct io io = {.store = s->store};
	uint64_t files = s->d->files[kind], n = files < PROBE_FILES ? files : PROBE_FILES;
	char path[DATASET_PATH_MAX];

	for (uint64_t i = 0; i < n; i++) {
		struct store_stat st;
		uint64_t index = n > 1 ? i * (files - 1) / (n - 1) : 0;
		bool there = dataset_path(s->d, kind, index, path, sizeof(path), NULL) == 0 &&
			     io_stat_path(&io, path, &st, NULL) == 0;

		out->file[out->files].bytes = there ? st.bytes : UINT64_MAX;
		out->file[out->files++].mtime_ns = there ? st.mtime_ns : 0;
	}
}

static void probe(const struct run_state *s, struct probe *out)
{
	struct io io = {.store = s->store};
	struct manifest m;

	memset(out, 0, sizeof(*out));
	if (manifest_read(&io, s->d->folder, &m, NULL) == 0 && m.found) {
		out->manifest = true;
		memcpy(out->created, m.created, sizeof(out->created));
		out->config_hash = m.config_hash;
	}
	probe_kind(s, DATASET_TRAIN, out);
	if (s->w->workflow.evaluation)
		probe_kind(s, DATASET_EVAL, out);
}

static void compare(const struct probe *a, const struct probe *b, struct probe_answer *out)
{
	uint32_t absent = 0, other = 0;

	out->one_file_system = true;
	for (uint32_t i = 0; i < a->files; i++) {
		absent += b->file[i].bytes == UINT64_MAX;
		other += b->file[i].bytes != UINT64_MAX && b->file[i].bytes != a->file[i].bytes;
		if (a->file[i].mtime_ns != b->file[i].mtime_ns)
			out->one_file_system = false;
	}
	out->same = absent == 0 && other == 0 && a->manifest == b->manifest &&
		    a->config_hash == b->config_hash && strcmp(a->created, b->created) == 0;
	if (absent || other)
		snprintf(out->why, sizeof(out->why),
			 "of %u files looked at, %u are not there and %u have another size",
			 a->files, absent, other);
	else if (!out->same)
		snprintf(out->why, sizeof(out->why), "the manifest is another one");
}

static int judge_probes(struct run_state *s, const struct buf *part, struct err *e)
{
	struct buf hosts = {0};
	const char *why = "";
	uint32_t bad = 0;
	bool one = true;

	for (uint32_t p = 0; p < net_processes(s->net); p++) {
		const struct probe_answer *a = (const void *)part[p].data;

		if (part[p].len != sizeof(*a) || net_process(s->net, p)->on_node != 0)
			continue;
		one = one && a->one_file_system;
		if (a->same)
			continue;
		buf_printf(&hosts, "%s'%s'", bad ? ", " : "", a->host);
		why = bad++ ? why : a->why;
	}
	if (bad) {
		err_set(e, ERR_DATA,
			"not all hosts see one dataset in '%s': on %.500s it is not the one that "
			"host '%s' sees (%s): use a folder that all hosts share, or the same copy "
			"on each",
			s->d->folder, hosts.data, net_process(s->net, 0)->host, why);
		buf_release(&hosts);
		return ERR_DATA;
	}
	snprintf(s->r->presence.note + strlen(s->r->presence.note),
		 sizeof(s->r->presence.note) - strlen(s->r->presence.note), ". %s %u hosts %s",
		 one ? "All" : "Each of", net_nodes(s->net),
		 one ? "see the same files" : "has a copy of its own");
	return 0;
}

int run_check_shared(struct run_state *s, struct err *e)
{
	const struct net_process *me;
	struct probe *first, *mine;
	struct probe_answer a = {.same = true, .one_file_system = true};
	struct buf *part;
	int rc;

	if (!s->net || net_nodes(s->net) == 1)
		return 0;
	me = net_process(s->net, net_process_number(s->net));
	first = xcalloc(2, sizeof(*first));
	mine = first + 1;
	part = xcalloc(net_processes(s->net), sizeof(*part));
	if (me->on_node == 0)
		probe(s, mine);
	*first = *mine;
	rc = run_share(s, first, sizeof(*first), e);
	if (rc == 0 && me->on_node == 0)
		compare(first, mine, &a);
	memcpy(a.host, me->host, sizeof(a.host));
	if (rc == 0 && comm_gather(s->o->processes, &a, sizeof(a), part) < 0)
		rc = err_set(e, ERR_CANCELED, "the run was stopped");
	if (rc == 0 && run_leads(s))
		rc = judge_probes(s, part, e);
	for (uint32_t p = 0; p < net_processes(s->net); p++)
		buf_release(&part[p]);
	free(part);
	free(first);
	return run_agree(s, rc, e);
}
