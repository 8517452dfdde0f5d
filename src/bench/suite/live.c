/* SPDX-License-Identifier: BSD-2-Clause */
/* See live.h. */
#include "bench/suite/live.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

#define UPDATE_NS (NSEC_PER_SEC / 5)
#define CLEAR "\r\033[K"

static struct {
	pthread_mutex_t lock;   /* threads of a kind log, too */
	bool terminal, shown;
	size_t cases, index;
	char id[130];
	double share;
	double expected;        /* of the case in work */
	double expected_all, expected_done, taken_done;
	uint64_t started_ns, updated_ns;
	bool working;           /* a case is */
	char held[1100];        /* the last warning of the case in work, not yet shown */
} live = { .lock = PTHREAD_MUTEX_INITIALIZER };

const char *live_duration(double seconds, char buf[32])
{
	unsigned long s = seconds > 0 ? (unsigned long)(seconds + 0.5) : 0;

	if (s < 60)
		snprintf(buf, 32, "%lu s", s);
	else if (s < 3600)
		snprintf(buf, 32, "%lu min %02lu s", s / 60, s % 60);
	else
		snprintf(buf, 32, "%lu h %02lu min", s / 3600, s / 60 % 60);
	return buf;
}

static void clear(void)
{
	if (live.shown)
		(void)!write(STDERR_FILENO, CLEAR, strlen(CLEAR));
	live.shown = false;
}

static void show_held(void)
{
	size_t n = strlen(live.held);

	if (!n)
		return;
	live.held[n] = '\n';
	(void)!write(STDERR_FILENO, live.held, n + 1);
	memset(live.held, 0, sizeof(live.held));
}

/* Every line of the log gets a line of its own. The last warning of a case waits: it may be
 * the reason why the case is left out, and is then shown as that. */
static bool on_log(enum log_level level, const char *line)
{
	bool hold;

	pthread_mutex_lock(&live.lock);
	clear();
	show_held();
	hold = live.working && level <= LOG_WARN;
	if (hold)
		snprintf(live.held, sizeof(live.held) - 1, "%s", line);
	pthread_mutex_unlock(&live.lock);
	return hold;
}

void live_begin(size_t cases, double seconds)
{
	live.terminal = isatty(STDERR_FILENO);
	live.cases = cases;
	live.index = 0;
	live.expected = live.expected_done = live.taken_done = 0;
	live.expected_all = seconds;
	live.held[0] = '\0';
	log_set_sink(on_log);
}

void live_end(void)
{
	log_set_sink(NULL);
	clear();
	show_held(); /* of a case that failed */
}

double live_seconds_left(void)
{
	double rest = live.expected_all - live.expected_done - live.expected * live.share;
	double slower = live.expected_done > 1 ? live.taken_done / live.expected_done : 1;

	return rest > 0 ? rest * slower : 0;
}

static void show(void)
{
	char left[32], line[300];
	int n;

	live_duration(live_seconds_left(), left);
	n = snprintf(line, sizeof(line), CLEAR "[%zu/%zu] %.60s  %.0f %%  %s left", live.index,
		     live.cases, live.id, 100 * live.share, left);
	(void)!write(STDERR_FILENO, line, (size_t)n);
	live.shown = true;
}

void live_case(const char *id, double seconds)
{
	pthread_mutex_lock(&live.lock);
	snprintf(live.id, sizeof(live.id), "%s", id);
	live.index++;
	live.share = 0;
	live.expected = seconds;
	live.working = true;
	live.started_ns = live.updated_ns = clock_monotonic_ns_slow();
	if (live.terminal)
		show();
	pthread_mutex_unlock(&live.lock);
}

void live_share(double share)
{
	uint64_t now = clock_monotonic_ns_slow();

	pthread_mutex_lock(&live.lock);
	live.share = share < 0 ? 0 : share > 1 ? 1 : share;
	if (live.terminal && now - live.updated_ns > UPDATE_NS) {
		live.updated_ns = now;
		show();
	}
	pthread_mutex_unlock(&live.lock);
}

double live_case_end(void)
{
	double taken = (double)(clock_monotonic_ns_slow() - live.started_ns) / 1e9;

	pthread_mutex_lock(&live.lock);
	clear();
	show_held();
	live.working = false;
	live.expected_done += live.expected;
	live.taken_done += taken;
	live.expected = live.share = 0;
	pthread_mutex_unlock(&live.lock);
	return taken;
}

void live_take_reason(char reason[LIVE_REASON_SIZE])
{
	const char *message;

	pthread_mutex_lock(&live.lock);
	/* "12:00:00.000 warn  room: message" */
	message = strchr(live.held, ' ');
	message = message ? strstr(message, ": ") : NULL;
	snprintf(reason, LIVE_REASON_SIZE, "%s", message ? message + 2 : "");
	memset(live.held, 0, sizeof(live.held));
	pthread_mutex_unlock(&live.lock);
}
