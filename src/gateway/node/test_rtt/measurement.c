/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of a case; see measurement.h. */
#define LOG_ROOM "gateway/test_rtt"
#include "gateway/node/test_rtt/measurement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

#define BUFFER_SIZE (8u << 20)

int measurement_open(struct measurement *m, struct node *node,
		     const struct rtt_case *setting, unsigned id,
		     const char *prefix, struct format *format)
{
	const struct writer_settings settings = {
		.path = m->path,
		.append = true,
		.block = true,
		.buffer_size = BUFFER_SIZE,
		.node = node,
	};
	int n;

	m->node = node;
	m->setting = setting;
	m->id = id;
	m->missed = m->made_up = m->warmup_sent = m->wrong_length = m->unrecorded = 0;
	m->started = m->stopped = (struct timespec){ 0 };
	hist_init(&m->late_ns);
	m->format = format;
	n = snprintf(m->path, sizeof(m->path), "%s_values%u_rate%.10g.log",
		     prefix, setting->values, setting->rate_hz);
	if (n >= (int)sizeof(m->path)) {
		log_error("the name of the file of case %u is longer than a path may be",
			  id);
		return -ENAMETOOLONG;
	}
	return writer_open(&m->writer, &settings, format);
}

void measurement_record(struct measurement *m, const struct sample *s,
			struct timespec received, uint64_t now_ns)
{
	struct sample record = {
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			 SAMPLE_HAS_RECEIVED,
		.received = received,
	};
	struct sample *records[] = { &record };
	enum node_loss cause;
	uint64_t took_ns;
	char why[300];

	if (unlikely(s->length != m->setting->values)) {
		m->wrong_length++;
		return;
	}
	if (!tally_receive(&m->tally, s->sequence, now_ns, &took_ns))
		return;
	record.sequence = s->sequence - m->tally.first;
	record.origin = timespec_from_ns(timespec_to_ns(received) - took_ns);
	if (unlikely(!writer_put(m->writer, records, 1))) {
		cause = writer_why(m->writer, &record, why, sizeof(why));
		node_lose(m->node, cause, 1, "%s", why);
		m->unrecorded++;
	}
}

static double us(const struct hist *h, double percent)
{
	return (double)hist_percentile(h, percent) / 1e3;
}

static json_t *round_trip(const struct hist *h)
{
	/* An empty one has no figures; zeros would be taken for such. */
	if (!h->count)
		return json_null();
	return json_pack("{s:I, s:f, s:I, s:I, s:I, s:I, s:I}",
			 "min", (json_int_t)h->min, "mean", hist_mean(h),
			 "p50", (json_int_t)hist_percentile(h, 50),
			 "p90", (json_int_t)hist_percentile(h, 90),
			 "p99", (json_int_t)hist_percentile(h, 99),
			 "p99.9", (json_int_t)hist_percentile(h, 99.9),
			 "max", (json_int_t)h->max);
}

static double seconds(struct timespec t)
{
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static json_t *results(const struct measurement *m, bool complete)
{
	const struct rtt_case *k = m->setting;
	uint64_t sent = tally_sent(&m->tally);
	uint64_t received = tally_received(&m->tally);

	return json_pack("{s:i, s:f, s:i, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:s, s:f, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:o}",
			 "id", (int)m->id, "rate", k->rate_hz,
			 "values", (int)k->values,
			 "started", seconds(m->started),
			 "stopped", seconds(m->stopped),
			 "count", (json_int_t)k->count,
			 "sent", (json_int_t)sent,
			 "received", (json_int_t)received,
			 "missed", (json_int_t)m->missed,
			 "made_up", (json_int_t)m->made_up,
			 "warmup", k->warmup_s,
			 "warmup_sent", (json_int_t)m->warmup_sent,
			 "mode", rtt_mode_names[k->mode],
			 "duration", k->duration_s,
			 "lost", (json_int_t)(sent - received),
			 "late", (json_int_t)m->tally.late,
			 "repeated", (json_int_t)m->tally.repeated,
			 "wrong_length", (json_int_t)m->wrong_length,
			 "complete", complete,
			 "round_trip_ns", round_trip(&m->tally.round_trip_ns),
			 "planned_round_trip_ns", round_trip(&m->tally.planned_ns),
			 "step_late_ns", round_trip(&m->late_ns));
}

static int append_results(const struct measurement *m, bool complete)
{
	json_t *o = results(m, complete);
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(16)) : NULL;
	int fd = text ? open(m->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
				      O_NONBLOCK, 0666) : -1;
	FILE *f = fd >= 0 ? fdopen(fd, "a") : NULL;
	int ret = 0;

	if (!f || fprintf(f, "%c %s%c", m->format->comment_prefix, text,
			  m->format->delimiter) < 0)
		ret = text ? -errno : -ENOMEM;
	if (f && fclose(f) && !ret)
		ret = -errno;
	if (ret)
		log_error("cannot write the results of case %u to '%s': %s",
			  m->id, m->path, strerror(-ret));
	free(text);
	json_decref(o);
	return ret;
}

int measurement_close(struct measurement *m, bool complete)
{
	const struct hist *h = &m->tally.round_trip_ns;
	const struct hist *planned = &m->tally.planned_ns;
	uint64_t sent = tally_sent(&m->tally);
	uint64_t received = tally_received(&m->tally);
	struct signal_list *none = signal_list_new(0, SIGNAL_FLOAT);
	int ret;

	/* Also a file without samples gets its header. */
	ret = writer_close(m->writer, none);
	m->writer = NULL;
	signal_list_put(none);
	if (!ret)
		ret = append_results(m, complete);
	log_info("case %u%s: rate %.10g values %u sent %ju lost %ju missed %ju made up %ju round trip p50 %.1f us p99 %.1f us max %.1f us, from the planned time p50 %.1f us p99 %.1f us max %.1f us",
		 m->id, complete ? "" : " (not complete)", m->setting->rate_hz,
		 m->setting->values, (uintmax_t)sent,
		 (uintmax_t)(sent - received), (uintmax_t)m->missed,
		 (uintmax_t)m->made_up,
		 us(h, 50), us(h, 99), us(h, 100), us(planned, 50),
		 us(planned, 99), us(planned, 100));
	if (m->wrong_length)
		log_warn("case %u: %ju samples came back without all of their %u values and count as lost",
			 m->id, (uintmax_t)m->wrong_length, m->setting->values);
	if (m->unrecorded)
		log_warn("case %u: %ju samples are not in '%s'", m->id,
			 (uintmax_t)m->unrecorded, m->path);
	return ret;
}
