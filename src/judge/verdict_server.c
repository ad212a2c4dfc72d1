/* What servers of objects did beside answering: what of the time is theirs to mend, and is in the
 * rates all the same. */
#include <math.h>

#include "judge/server_view.h"
#include "judge/verdict.h"

static void judge_repetitions(struct verdict *v, const struct servers_view *s)
{
	double busy = (double)s->n.again[SERVER_BUSY];
	bool told = busy >= SERVERS_LEAST && busy > BUSY_WARN * s->tries;

	if (told)
		verdict_found(v, VERDICT_WARN,
			      FACT(SERVER_BUSY, busy, s->tries, 100 * busy / s->tries,
				   100 * BUSY_WARN, s->again_share));
	/* a few refusals with long pauses are as dear as many */
	if (s->again_share > AGAIN_WARN && s->why != SERVER_AGAINS && !(told && s->busy))
		verdict_found(v, VERDICT_WARN,
			      fact_with(FACT(SERVER_AGAIN, s->again, s->tries, s->again_share,
					     AGAIN_WARN),
					0, servers_why(s->why)));
	else if (s->why != SERVER_AGAINS && v->level == VERDICT_PASS)
		verdict_found(v, VERDICT_PASS,
			      fact_with(FACT(SERVER_SOME_AGAIN, s->again, s->tries, s->again_share),
					0, servers_why(s->why)));
}

static void judge_connections(struct verdict *v, const struct servers_view *s)
{
	double n = (double)s->n.reopened;

	if (n >= SERVERS_LEAST && n > REOPENED_WARN * s->tries)
		verdict_found(v, VERDICT_WARN,
			      FACT(SERVER_REOPENED, n, s->tries, n / s->tries, REOPENED_WARN));
}

static void judge_clump(struct verdict *v, const struct servers_view *s)
{
	double n = (double)s->n.clumped, of = (double)s->n.answers;

	if (n >= SERVERS_LEAST && n > CLUMP_WARN * of &&
	    (double)s->n.beside_clump <= CLUMP_BESIDE * n)
		verdict_found(v, VERDICT_WARN, FACT(SERVER_CLUMP, n, of, n / of, CLUMP_WARN));
}

static const struct server_counts *counts_of(const struct server_use *u,
					     const struct servers_view *s)
{
	return s->timed ? &u->timed : &u->whole;
}

/* Of what a server was asked: the share of what sends it bytes, which takes another time. */
static double uploads(const struct server_counts *n)
{
	double all = (double)server_requests(n);

	return all > 0 ? (double)(n->requests[SERVER_PUT] + n->requests[SERVER_PART] +
				  n->requests[SERVER_MULTIPART_END]) /
				 all
		       : 0;
}

/* A given server that gets far less than its share, or is far slower than the others. Where they
 * redirect, times say nothing. */
static void judge_each(struct verdict *v, const struct result *r, const struct servers_view *s)
{
	const struct servers *l = &r->servers;
	double given = 0, idle = 0, asked = 0;
	const char *first = NULL;

	for (uint32_t i = 0; i < l->n; i++) {
		given += l->use[i].given;
		asked += l->use[i].given ? (double)server_requests(counts_of(&l->use[i], s)) : 0;
	}
	if (given < 2 || asked < SERVERS_LEAST * given)
		return;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct server_use *u = &l->use[i];

		if (!u->given ||
		    (double)server_requests(counts_of(u, s)) >= IDLE_SHARE * asked / given)
			continue;
		idle++;
		first = first ? first : u->address;
	}
	if (idle > 0)
		verdict_found(v, VERDICT_WARN, fact_with(FACT(SERVER_IDLE, idle, given), 0, first));
	for (uint32_t i = 0; i < l->n && s->n.again[SERVER_MOVED] == 0; i++) {
		const struct server_counts *n = counts_of(&l->use[i], s);
		double own = (double)n->answers, rest = (double)s->n.answers - own, took, others;

		if (!l->use[i].given || own < SERVERS_LEAST || rest < SERVERS_LEAST)
			continue;
		/* one that alone takes the checkpoints of rank 0 is not slower */
		if (fabs(uploads(n) - uploads(&s->n)) > UPLOADS_ALIKE)
			continue;
		took = (double)n->last_ns / own / 1e9;
		others = (double)(s->n.last_ns - n->last_ns) / rest / 1e9;
		if (took > SLOW_RATIO * others && took - others > SLOW_LEAST_S)
			verdict_found(v, VERDICT_WARN,
				      fact_with(FACT(SERVER_SLOW, took, others, SLOW_RATIO), 0,
						l->use[i].address));
	}
}

static void judge_clock(struct verdict *v, const struct result *r)
{
	for (uint32_t i = 0; i < r->servers.n; i++) {
		const struct server_use *u = &r->servers.use[i];
		double ahead = (double)u->skew_s;

		if (ahead == 0 || server_requests(&u->whole) == 0)
			continue;
		/* the store keeps one clock for all of them */
		verdict_found(v, VERDICT_WARN,
			      fact_with(FACT(SERVER_CLOCK, ahead > 0 ? ahead : NAN,
					     ahead < 0 ? -ahead : NAN),
					0, u->address));
		return;
	}
}

static double answering(const struct result *r, const struct servers_view *s)
{
	double n = 0;

	for (uint32_t i = 0; i < r->servers.n; i++)
		n += server_requests(counts_of(&r->servers.use[i], s)) > 0;
	return n;
}

static void judge_server(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	struct servers_view s;

	(void)m;
	if (!servers_view_of(r, &s))
		return;
	verdict_found(
		v, VERDICT_PASS,
		FACT(SERVER_ASKED, answering(r, &s), (double)server_requests(&s.n),
		     s.n.answers ? (double)s.n.first_ns / (double)s.n.answers / 1e9 : (double)NAN,
		     s.n.answers ? (double)s.n.last_ns / (double)s.n.answers / 1e9 : (double)NAN));
	judge_repetitions(v, &s);
	judge_connections(v, &s);
	judge_clump(v, &s);
	judge_each(v, r, &s);
	judge_clock(v, r);
}

extern const struct verdict_ops verdict_server;
const struct verdict_ops verdict_server = {
	.name = "server",
	.help = "Did the servers answer at once, all of them, over kept connections?",
	.needs = VERDICT_OF_SERVERS,
	.worst_first = true,
	.judge = judge_server,
};
