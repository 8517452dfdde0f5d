/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The filter of faults of a port: faults that BUSBAR_FAULTS asks for, and faults that are asked
 * for while the process runs; see port.h.
 *
 * A port whose faults begin while it runs gets the filter in between its carrier and itself. No
 * thread polls meanwhile, as polls take receive_lock. A thread that emits uses either the
 * carrier, whose packets then do not pass the filter, or the filter. The filter stays until the
 * port is closed, because packets may be in it.
 *
 * Events at packet numbers (event/rules.h) are the judge of the filter. This process reads their
 * file, with its own rights, also if another process asks for them.
 */
#define LOG_ROOM "packet"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "hca/host/settings.h"
#include "hca/run/elide.h"
#include "transport/carrier/fault.h"
#include "transport/packet/base/port.h"
#include "transport/packet/event/file.h"
#include "transport/packet/event/watch.h"
#include "transport/packet/frame/show.h"
#include "util/clock.h"
#include "util/clock_source.h"
#include "util/log.h"

#define NO_CORRUPTION                                                                      \
	"corrupt is not offered, as nothing inside of a process would notice it; no faults"
#define NO_STREAMS "cut, reset and stall are for the streams of iwarp; no faults"

/* What a text of BUSBAR_FAULTS asks for. */
struct wanted {
	struct impair_settings settings;
	struct packet_event_rules *rules; /* to be freed; NULL: no events */
};

static bool are_wanted(const struct impair_settings *s)
{
	return !impair_is_none(&s->out) || !impair_is_none(&s->in) || s->events[0];
}

static bool corrupts(const struct wanted *w)
{
	if (w->settings.out.corrupt > 0 || w->settings.in.corrupt > 0)
		return true;
	for (unsigned i = 0; w->rules && i < w->rules->count; i++)
		if (w->rules->rule[i].action == PACKET_EVENT_CORRUPT)
			return true;
	return false;
}

/* Why not; NULL: all of it is possible. */
static const char *not_offered(const struct packet_port *port, const struct wanted *w)
{
	if (!port->medium->seal && corrupts(w))
		return NO_CORRUPTION;
	if (impair_has_stream_faults(&w->settings.out) || impair_has_stream_faults(&w->settings.in))
		return NO_STREAMS;
	return NULL;
}

/* Reads the text, and the file of events that it names. 0; with an error *out asks for nothing and
 * `note` says why: -EINVAL: the text or the file cannot be used; -EOPNOTSUPP: the port does not
 * offer it; -ENOMEM. No lock is held. */
static int read_text(const struct packet_port *port, const char *text, struct wanted *out,
		     char *note, size_t note_bytes)
{
	struct wanted w = { .settings.seed = 1 };
	const char *why;
	int ret;

	*out = w;
	ret = impair_parse(text, &w.settings, note, note_bytes);
	if (!ret && w.settings.events[0])
		ret = packet_event_load(w.settings.events, &w.rules, note, note_bytes);
	if (ret)
		return ret;
	why = not_offered(port, &w);
	if (why) {
		snprintf(note, note_bytes, "%s", why);
		out->settings.seed = w.settings.seed;
		free(w.rules);
		return -EOPNOTSUPP;
	}
	*out = w;
	return 0;
}

/* The port takes over what is wanted. receive_lock is held. */
static void keep(struct packet_port *port, const struct wanted *w)
{
	free(port->event_rules);
	port->event_rules = w->rules;
	port->faults = w->settings;
	port->faults_known = true;
}

/* Reads BUSBAR_FAULTS unless the faults are known. A setting that cannot be used means no faults. */
static void read_setting(struct packet_port *port)
{
	struct wanted w;
	char error[256];
	bool known;

	hca_lock(&port->receive_lock);
	known = port->faults_known;
	hca_unlock(&port->receive_lock);
	if (known)
		return;
	switch (read_text(port, hca_settings.faults, &w, error, sizeof(error))) {
	case 0: break;
	case -EOPNOTSUPP:
		log_warn("BUSBAR_FAULTS='%.80s' not usable: %s", hca_settings.faults, error);
		break;
	default:
		log_warn("BUSBAR_FAULTS='%.80s' not usable: %s; no faults", hca_settings.faults,
			 error);
	}
	hca_lock(&port->receive_lock);
	if (port->faults_known)
		free(w.rules);
	else
		keep(port, &w);
	hca_unlock(&port->receive_lock);
}

/* ---- events ---- */

/* As carrier_fault_params.judge. */
static void judge(void *arg, enum carrier_direction direction, const struct carrier_unit *packet,
		  uint64_t now_ns, struct carrier_fault_verdict *verdict)
{
	struct packet_port *port = arg;
	struct packet_frame f = { 0 };
	const struct iovec *bytes = packet->iov;
	uint32_t qpn;

	if (!port->medium->peek(bytes->iov_base, bytes->iov_len, &f))
		return;
	qpn = direction == CARRIER_OUT ? packet->flow : f.dst_qpn;
	packet_events_see(port->events, direction, qpn, &f, now_ns, verdict);
}

/* receive_lock is held. */
static int apply_events(struct packet_port *port)
{
	if (port->event_rules && !port->events && !(port->events = packet_events_open()))
		return -ENOMEM;
	if (port->events)
		packet_events_set(port->events, port->event_rules, clock_now_ns());
	carrier_fault_judge(port->fault, port->event_rules);
	return 0;
}

unsigned packet_faults_event(struct packet_port *port, unsigned index, char *line, size_t bytes)
{
	unsigned count = 0;

	hca_lock(&port->receive_lock);
	if (port->events)
		count = packet_events_tell(port->events, index, line, bytes);
	hca_unlock(&port->receive_lock);
	return count;
}

void packet_faults_tell(struct packet_port *port)
{
	char line[PACKET_EVENT_LINE_BYTES];

	for (unsigned i = 0; i < packet_faults_event(port, i, line, sizeof(line)); i++)
		log_info("event %s", line);
}

void packet_faults_connected(struct packet_port *port, uint32_t qpn)
{
	if (port->events)
		packet_events_connected(port->events, qpn);
}

void packet_faults_forked(struct packet_port *port)
{
	if (port->events)
		packet_events_forked(port->events);
}

void packet_faults_end(struct packet_port *port)
{
	packet_faults_tell(port);
	if (port->events)
		packet_events_set(port->events, NULL, 0);
}

/* ---- the filter ---- */

static int open_filter(struct packet_port *port, struct carrier *below)
{
	const struct carrier_fault_params params = { .clock = clock_source_host(),
						     .seed = port->faults.seed,
						     .judge = judge,
						     .judge_arg = port };

	return carrier_fault_open(below, &params, &port->fault);
}

int packet_faults(struct packet_port *port, struct carrier **carrier)
{
	int ret = 0;

	read_setting(port);
	hca_lock(&port->receive_lock);
	port->fault = NULL;
	if (are_wanted(&port->faults) || packet_show_wanted() || hca_settings.paging[0])
		ret = open_filter(port, *carrier);
	if (!ret && port->fault)
		*carrier = port->fault;
	hca_unlock(&port->receive_lock);
	return ret;
}

/* Puts the filter between the carrier and the port, which is its only user. */
static int insert_filter(struct packet_port *port)
{
	struct carrier *below = atomic_load(&port->carrier);
	const struct carrier_upper upper = below->upper;
	int ret = open_filter(port, below);

	if (ret)
		return ret;
	carrier_set_upper(port->fault, &upper);
	/* Before the filter is used: a thread that emits wakes the progress thread afterwards. */
	atomic_store(&port->holds_back, true);
	atomic_store(&port->carrier, port->fault);
	return 0;
}

int packet_faults_apply(struct packet_port *port)
{
	const struct impair_settings *s = &port->faults;
	int ret = 0;

	if (!port->fault && are_wanted(s))
		ret = insert_filter(port);
	if (ret || !port->fault)
		return ret;
	if (are_wanted(s))
		atomic_store(&port->holds_back, true);
	ret = apply_events(port);
	if (ret)
		return ret;
	carrier_fault_seed(port->fault, s->seed);
	carrier_fault_set(port->fault, 1u << CARRIER_OUT, IMPAIR_ALL_CLASSES, &s->out);
	carrier_fault_set(port->fault, 1u << CARRIER_IN, IMPAIR_ALL_CLASSES, &s->in);
	return 0;
}

void packet_faults_settle(struct packet_port *port)
{
	if (carrier_fault_passes(port->fault))
		atomic_store(&port->holds_back, false);
}

int packet_faults_set(struct packet_port *port, const char *text, char *note,
		      size_t note_bytes)
{
	struct wanted wanted;
	int ret = read_text(port, text, &wanted, note, note_bytes), err = 0;

	if (ret && ret != -EOPNOTSUPP)
		return ret;
	packet_faults_tell(port);
	hca_lock(&port->receive_lock);
	keep(port, &wanted);
	if (atomic_load(&port->carrier))
		err = packet_faults_apply(port);
	if (err) /* no faults at the next opening either */
		keep(port, &(struct wanted){ .settings.seed = wanted.settings.seed });
	hca_unlock(&port->receive_lock);
	return err ? err : ret;
}
