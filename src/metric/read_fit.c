/* Least squares over three columns. */
#include "metric/read_fit.h"

#include <math.h>

static const double ENOUGH = 1.5;     /* times the least unexplained square */
static const double TOLERATED = 5e-4; /* of the mean square, beside it */

void read_fit_add(struct read_fit *f, double bytes, double beside, double ns)
{
	double q = bytes * beside;

	f->n += 1;
	f->s += bytes;
	f->q += q;
	f->t += ns;
	f->ss += bytes * bytes;
	f->sq += bytes * q;
	f->qq += q * q;
	f->st += bytes * ns;
	f->qt += q * ns;
	f->tt += ns * ns;
}

void read_fit_merge(struct read_fit *into, const struct read_fit *from)
{
	into->n += from->n;
	into->s += from->s;
	into->q += from->q;
	into->t += from->t;
	into->ss += from->ss;
	into->sq += from->sq;
	into->qq += from->qq;
	into->st += from->st;
	into->qt += from->qt;
	into->tt += from->tt;
}

/* Gauss with pivots over the columns in use; false when they depend on each other. */
static bool solve(double a[3][4], const bool use[3], double out[3])
{
	int col[3], n = 0;

	for (int i = 0; i < 3; i++) {
		out[i] = 0;
		if (use[i])
			col[n++] = i;
	}
	double m[3][4];

	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++)
			m[i][j] = a[col[i]][col[j]];
		m[i][n] = a[col[i]][3];
	}
	for (int i = 0; i < n; i++) {
		int p = i;

		for (int k = i + 1; k < n; k++)
			p = fabs(m[k][i]) > fabs(m[p][i]) ? k : p;
		if (fabs(m[p][i]) < 1e-9)
			return false;
		for (int j = 0; j <= n; j++) {
			double swap = m[i][j];

			m[i][j] = m[p][j];
			m[p][j] = swap;
		}
		for (int k = 0; k < n; k++) {
			double f = m[k][i] / m[i][i];

			for (int j = 0; k != i && j <= n; j++)
				m[k][j] -= f * m[i][j];
		}
	}
	for (int i = 0; i < n; i++)
		out[col[i]] = m[i][n] / m[i][i];
	return true;
}

/* What a solution leaves unexplained, of the mean square. */
static double residual(double a[3][4], double tt, const double x[3])
{
	double left = tt;

	for (int i = 0; i < 3; i++) {
		left -= 2 * x[i] * a[i][3];
		for (int j = 0; j < 3; j++)
			left += x[i] * x[j] * a[i][j];
	}
	return left > 0 ? left : 0;
}

/* Solves with the columns of `set`, a bit each; false when one may not be used or would be
 * negative. */
static bool attempt(double a[3][4], unsigned set, const bool allowed[3], double x[3])
{
	bool use[3];

	for (int k = 0; k < 3; k++) {
		use[k] = set >> k & 1;
		if (use[k] && !allowed[k])
			return false;
	}
	return solve(a, use, x) && x[0] >= 0 && x[1] >= 0 && x[2] >= 0;
}

/* The best of the simplest explanations that are nearly as good as the best of all: what is hardly
 * told apart would else be divided by noise. */
static void explain(double a[3][4], double tt, const bool allowed[3], double best[3])
{
	double least = INFINITY, x[3];

	for (unsigned set = 1; set < 8; set++)
		if (attempt(a, set, allowed, x))
			least = fmin(least, residual(a, tt, x));
	for (int columns = 1; columns <= 3; columns++) {
		double most = least * ENOUGH + TOLERATED * tt;
		bool found = false;

		for (unsigned set = 1; set < 8; set++) {
			if (__builtin_popcount(set) != columns || !attempt(a, set, allowed, x) ||
			    residual(a, tt, x) > most)
				continue;
			most = residual(a, tt, x);
			found = true;
			for (int k = 0; k < 3; k++)
				best[k] = x[k];
		}
		if (found)
			return;
	}
}

/* Whether one of two explanations, that readers share and that they do not, is clearly worse. */
static bool told_apart(double a[3][4], double tt, const bool allowed[3])
{
	double need = INFINITY, without = INFINITY, alone = INFINITY, x[3];

	for (unsigned set = 1; set < 8; set++) {
		if (!attempt(a, set, allowed, x))
			continue;
		if (!(set & 4)) {
			without = fmin(without, residual(a, tt, x));
			continue;
		}
		need = fmin(need, residual(a, tt, x));
		if (!(set & 2))
			alone = fmin(alone, residual(a, tt, x));
	}
	return without > need * ENOUGH || alone > without * ENOUGH;
}

struct read_law read_fit_law(const struct read_fit *f)
{
	struct read_law law = {0};
	double n = f->n, s = f->s / n, q = f->q / n, t = f->t / n, x[3] = {1, 0, 0};
	double var_s, var_q, cov;

	if (!(n >= 4) || !(t > 0) || !(s > 0)) {
		law.latency_share = f->t > 0;
		law.latency_ns = n > 0 ? t : 0;
		return law;
	}
	/* columns scaled to mean 1 */
	double a[3][4] = {{1, 1, 1, 1},
			  {1, f->ss / n / s / s, f->sq / n / s / q, f->st / n / s / t},
			  {1, f->sq / n / s / q, f->qq / n / q / q, f->qt / n / q / t}};

	var_s = a[1][1] - 1;
	var_q = a[2][2] - 1;
	cov = a[1][2] - 1;
	law.sizes_differ = var_s > 0.01;
	if (law.sizes_differ)
		var_q -= cov * cov / var_s;
	law.beside_differ = var_q > 0.0025;
	const bool allowed[3] = {true, law.sizes_differ, law.beside_differ};

	law.beside_differ = law.beside_differ && told_apart(a, f->tt / n / t / t, allowed);
	explain(a, f->tt / n / t / t, allowed, x);
	law.latency_share = x[0];
	law.stream_share = x[1];
	law.shared_share = x[2];
	law.latency_ns = law.latency_share * t;
	law.stream_ns_per_byte = law.stream_share * t / s;
	law.shared_ns_per_byte = law.shared_share * t / q;
	return law;
}
