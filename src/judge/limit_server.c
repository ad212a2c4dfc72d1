/* Time that is lost to requests which had to be sent again. */
#include <math.h>

#include "judge/limit_view.h"
#include "judge/server_view.h"

double limit_lost_to_repetitions(const struct limit_view *v)
{
	double share = result_again_share(v->r);

	return isfinite(share) ? share * v->lost[LOST_REQUESTS] : 0;
}

bool limit_at_throttle(struct limit_view *v)
{
	struct servers_view s;
	double busy;

	if (!servers_view_of(v->r, &s) || !s.busy)
		return false;
	busy = (double)s.n.again[SERVER_BUSY];
	limit_found(v, FACT(LIMIT_THROTTLED, busy, s.tries, busy / s.tries, s.again_share));
	limit_would(v, FACT(EFFECT_LESS_AT_ONCE));
	return true;
}

bool limit_at_repetitions(struct limit_view *v)
{
	struct servers_view s;

	if (!servers_view_of(v->r, &s) || s.why == SERVER_AGAINS)
		return false;
	limit_found(v, fact_with(FACT(LIMIT_REPETITIONS, s.again, s.tries, s.again_share), 0,
				 servers_why(s.why)));
	limit_would(v, FACT(EFFECT_MEND_SERVER));
	return true;
}

bool limit_is_repeated(const struct limit_view *v, struct fact *why)
{
	double share = result_again_share(v->r);

	if (!(share > AGAIN_WARN))
		return false;
	*why = FACT(NO_MODEL_REPEATED, share);
	return true;
}
