#include "screen/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

#define INTERVAL_LEAST_S 0.1
#define INTERVAL_MOST_S 86400.0
#define CLOSE_PATIENCE_MS 1000

static const double usual_s[] = {
	[PROGRESS_NONE] = INTERVAL_MOST_S,
	[PROGRESS_PANEL] = 0.25,
	[PROGRESS_LINES] = 10,
	[PROGRESS_JSON] = 1,
};

/* ---- what is asked for ---- */

static int find_mode(const struct progress_request *a, enum progress_form *mode, struct err *e)
{
	bool draws = terminal_can_draw(STDERR_FILENO);

	*mode = a->form;
	if (*mode == PROGRESS_AUTO)
		*mode = draws ? PROGRESS_PANEL : PROGRESS_LINES;
	if (*mode == PROGRESS_PANEL && !draws)
		return err_set(e, ERR_USAGE,
			       "--progress panel: stderr is not a terminal with a movable cursor "
			       "(or TERM is unset or dumb): use lines or json");
	if (a->quiet)
		*mode = PROGRESS_NONE;
	return 0;
}

static int find_interval(const struct progress_request *a, double *seconds, struct err *e)
{
	if (!a->interval)
		return 0;
	if (str_to_f64(a->interval, seconds) && *seconds >= INTERVAL_LEAST_S &&
	    *seconds <= INTERVAL_MOST_S)
		return 0;
	return err_set(e, ERR_USAGE, "--progress-interval: '%s' is not a time of %g to %g seconds",
		       a->interval, INTERVAL_LEAST_S, INTERVAL_MOST_S);
}

int progress_open(const char *path, struct err *e)
{
	struct err why = {0};
	int fd;

	fd = file_open_out(path, O_APPEND, &why);
	if (fd == -ENXIO)
		return err_set(e, -ENXIO,
			       "--progress-file: '%s' has no reader: start the reader first", path);
	return fd >= 0 ? fd : err_set(e, fd, "--progress-file: %s", why.text);
}

static int open_stream(struct progress_stream *s, const char *path, struct err *e)
{
	s->fd = progress_open(path, e);
	s->own = s->fd >= 0;
	return s->own ? 0 : s->fd;
}

static void take_message(void *arg, const char *text, size_t n);

int progress_begin(struct progress_view *v, const struct progress_request *a, bool speaks,
		   double target, struct err *e)
{
	enum progress_form mode;
	double seconds = 0;
	int rc = find_mode(a, &mode, e);

	*v = (struct progress_view){.json = {.fd = -1}, .title = a->title, .target = target};
	if (rc == 0)
		rc = find_interval(a, &seconds, e);
	if (rc == 0 && speaks && a->file)
		rc = open_stream(&v->json, a->file, e);
	if (rc < 0)
		return rc;
	live_figures(&v->live, &v->last, 0, &v->figures);
	v->mode = speaks ? mode : PROGRESS_NONE;
	if (v->mode == PROGRESS_JSON && v->json.fd >= 0)
		v->mode = PROGRESS_NONE; /* it goes where it was told to */
	else if (v->mode == PROGRESS_JSON)
		v->json.fd = STDERR_FILENO;
	v->every_ns = (int64_t)((seconds > 0 ? seconds : usual_s[v->mode]) * 1e9);
	v->json.every_ns = (int64_t)((seconds > 0 ? seconds : usual_s[PROGRESS_JSON]) * 1e9);
	pthread_mutex_init(&v->lock, NULL);
	if (v->mode == PROGRESS_PANEL) {
		terminal_init(&v->terminal, STDERR_FILENO);
		v->sink = (struct log_sink){take_message, v};
		log_set_sink(&v->sink);
	}
	return 0;
}

int64_t progress_interval_ns(const struct progress_view *v)
{
	int64_t least = INT64_MAX;

	if (v->mode == PROGRESS_PANEL || v->mode == PROGRESS_LINES)
		least = v->every_ns;
	if (v->json.fd >= 0 && v->json.every_ns < least)
		least = v->json.every_ns;
	/* the phases of a run are told apart by it, however seldom they are shown */
	return least < NS_PER_S ? least : NS_PER_S;
}

/* ---- the three forms ---- */

static void write_whole(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, text, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return; /* nowhere left to report to */
		text += w;
		n -= (size_t)w;
	}
}

static void take_message(void *arg, const char *text, size_t n)
{
	struct progress_view *v = arg;
	struct buf above = {0};

	pthread_mutex_lock(&v->lock);
	if (v->closed) {
		write_whole(STDERR_FILENO, text, n);
	} else {
		buf_append(&above, text, n);
		terminal_draw(&v->terminal, &above, &v->frame);
		buf_release(&above);
	}
	pthread_mutex_unlock(&v->lock);
}

static void draw_panel(struct progress_view *v, const struct run_progress *p, int64_t now)
{
	struct live_style style = {.utf8 = v->terminal.utf8,
				   .colour = v->terminal.colour,
				   .title = v->title,
				   .target = v->target};

	/* a message that waits for a stopped terminal has the lock */
	if (!terminal_ready(&v->terminal) || pthread_mutex_trylock(&v->lock) != 0)
		return;
	terminal_size(&v->terminal, &style.columns, &style.rows);
	buf_reset(&v->frame);
	live_panel(&v->live, p, &v->figures, now, &style, &v->frame);
	terminal_draw(&v->terminal, NULL, &v->frame);
	pthread_mutex_unlock(&v->lock);
}

static void stay(struct progress_view *v)
{
	struct buf line = {0};

	live_summary(&v->last, &v->figures, &line);
	buf_putc(&line, '\n');
	pthread_mutex_lock(&v->lock);
	buf_reset(&v->frame);
	if (v->terminal.lines || terminal_ready(&v->terminal)) {
		terminal_draw(&v->terminal, &line, &v->frame);
		log_console_count();
	}
	pthread_mutex_unlock(&v->lock);
	buf_release(&line);
}

static void stream_close(struct progress_stream *s)
{
	if (s->own)
		close(s->fd);
	s->fd = -1;
}

static void stream_put(struct progress_stream *s, const struct buf *line, int patience_ms)
{
	struct pollfd p = {.fd = s->fd, .events = POLLOUT};
	ssize_t n = -1;

	do {
		errno = EAGAIN;
		/* with room in a pipe there is room for all of a line */
		if (poll(&p, 1, patience_ms) > 0)
			n = write(s->fd, line->data, line->len);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)line->len) {
		s->dropped = 0;
	} else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		s->dropped++;
	} else {
		if (s->own)
			log_warning("the progress stream was ended: %s",
				    n < 0 ? strerror(errno)
					  : "only a part of a line could be written");
		stream_close(s);
	}
}

static void stream(struct progress_view *v, const char *status, int patience_ms)
{
	struct buf line = {0};

	live_json(&v->last, &v->figures, status, v->json.dropped, &line);
	stream_put(&v->json, &line, patience_ms);
	buf_release(&line);
}

static void put_line(struct progress_view *v)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct buf line = {0};

	if (poll(&p, 1, 0) <= 0)
		return;
	live_line(&v->last, &v->figures, &line);
	buf_putc(&line, '\n');
	write_whole(STDERR_FILENO, line.data, line.len);
	buf_release(&line);
}

/* ---- the course of things ---- */

static bool due(int64_t *next, int64_t every, int64_t now)
{
	/* who calls keeps time to within its own ticks */
	if (now < *next - every / 8)
		return false;
	*next = now + every;
	return true;
}

static void next_phase(struct progress_view *v, const struct run_progress *p, int64_t now)
{
	bool same = v->begun && (v->last.phase == p->phase ||
				 (live_is_training(v->last.phase) && live_is_training(p->phase)));

	if (same)
		return;
	if (v->begun && v->mode == PROGRESS_PANEL && v->last.phase != PROGRESS_CHECK)
		stay(v);
	v->begun = true;
	if (v->mode == PROGRESS_LINES)
		v->next_ns = now + v->every_ns;
}

void progress_show(void *arg, const struct run_progress *p)
{
	struct progress_view *v = arg;
	int64_t now = clock_now_ns();
	bool last = p->phase == PROGRESS_FINISH;

	if (p->total == 0)
		return;
	next_phase(v, p, now);
	live_add(&v->live, p, now);
	live_figures(&v->live, p, now, &v->figures);
	v->last = *p;
	v->last.rank = NULL;
	if (v->mode == PROGRESS_PANEL && (due(&v->next_ns, v->every_ns, now) || last))
		draw_panel(v, p, now);
	else if (v->mode == PROGRESS_LINES && due(&v->next_ns, v->every_ns, now))
		put_line(v);
	if (v->json.fd >= 0 && (due(&v->json.next_ns, v->json.every_ns, now) || last))
		stream(v, NULL, 0);
}

void progress_done(struct progress_view *v, int rc)
{
	if (v->mode == PROGRESS_PANEL) {
		if (v->begun && v->last.phase != PROGRESS_CHECK)
			stay(v);
		pthread_mutex_lock(&v->lock);
		terminal_draw(&v->terminal, NULL, &(struct buf){0});
		v->closed = true;
		terminal_release(&v->terminal);
		buf_release(&v->frame);
		pthread_mutex_unlock(&v->lock);
		log_set_sink(NULL);
	}
	v->closed = true;
	v->mode = PROGRESS_NONE;
	if (v->json.fd >= 0)
		stream(v,
		       rc == 0              ? "complete"
		       : rc == ERR_CANCELED ? "interrupted"
					    : "failed",
		       CLOSE_PATIENCE_MS);
	if (v->json.fd >= 0)
		stream_close(&v->json);
}
