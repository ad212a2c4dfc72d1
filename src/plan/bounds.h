#pragma once
/* What measured points say by themselves, without a law: more accelerators on as many hosts take no
 * fewer samples/s and get no larger a share each, more hosts give no less, and a part of what was
 * measured, with as many accelerators on each host or fewer, is fed as all of it was. The same
 * steps, computed slower, get no smaller a share. Of points with such steps only. Shares are from 0
 * to 1. */
#include "plan/sizing.h"

/* Moves both shares of a row to where the points allow them; where one has as many accelerators and
 * hosts, to what it measured. Rows that were in order, by accelerators and hosts, stay so. */
void bounds_apply(struct sizing_row *r, const struct sizing *s);
/* What points answer that passed with no less, or failed with no more; SIZING_UNKNOWN: they do not.
 * By AU, or by the share by rate. */
enum sizing_answer bounds_answer(const struct sizing_row *r, const struct sizing *s, bool by_rate);
/* The same of the most accelerators that pass. */
void bounds_most(struct sizing_most *m, const struct sizing *s, double hosts);
