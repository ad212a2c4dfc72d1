/* A cause for a test: every run is limited by toys. */
#include "judge/limit_view.h"

bool limit_at_toys(struct limit_view *v)
{
	limit_found(v, FACT(TOY_LIMIT, v->loss));
	return true;
}
