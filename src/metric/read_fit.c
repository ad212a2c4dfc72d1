/* Least squares over three columns. */
#include "metric/read_fit.h"

#include <math.h>
#include <stdlib.h>

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

/* A moment at which reads began or ended, and the sum of (reads under way) * time up to it. */
struct moment {
	int64_t at_ns;
	int32_t more;
	double company;
};

static int by_time(const void *x, const void *y)
{
	const struct moment *a = x, *b = y;

	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static double company_at(const struct moment *m, size_t n, int64_t ns)
{
	size_t low = 0, high = n;

	while (high - low > 1) {
		size_t mid = (low + high) / 2;

		if (m[mid].at_ns <= ns)
			low = mid;
		else
			high = mid;
	}
	return m[low].company;
}

static void integrate(struct moment *m, size_t n)
{
	double sum = 0;
	int64_t under_way = 0;

	qsort(m, n, sizeof(*m), by_time);
	for (size_t i = 0; i < n; i++) {
		if (i)
			sum += (double)under_way * (double)(m[i].at_ns - m[i - 1].at_ns);
		m[i].company = sum;
		under_way += m[i].more;
	}
}

bool read_fit_add_seen(struct read_fit *f, const struct read_seen *seen, size_t n, uint64_t apart,
		       uint64_t wide)
{
	struct moment *m = calloc(n ? n : 1, 2 * sizeof(*m));

	if (!m)
		return false;
	for (size_t i = 0; i < n; i++) {
		m[2 * i] = (struct moment){seen[i].begin_ns, 1, 0};
		m[2 * i + 1] = (struct moment){seen[i].end_ns, -1, 0};
	}
	integrate(m, 2 * n);
	for (size_t i = 0; i < n; i++) {
		double took = (double)(seen[i].end_ns - seen[i].begin_ns);
		int64_t window = read_log_window(apart, wide, seen[i].begin_ns);

		if (window < 0 || window != read_log_window(apart, wide, seen[i].end_ns) ||
		    !(took > 0))
			continue;
		read_fit_add(f, (double)seen[i].bytes,
			     (company_at(m, 2 * n, seen[i].end_ns) -
			      company_at(m, 2 * n, seen[i].begin_ns)) /
				     took,
			     took);
	}
	free(m);
	return true;
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
