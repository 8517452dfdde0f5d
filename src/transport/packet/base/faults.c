/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The filter of faults of a port: faults that BUSBAR_FAULTS asks for, and faults that are asked
 * for while the process runs; see port.h.
 *
 * A port whose faults begin while it runs gets the filter in between its carrier and itself. No
 * thread polls meanwhile, as polls take receive_lock. A thread that emits uses either the
 * carrier, whose packets then do not pass the filter, or the filter. The filter stays until the
 * port is closed, because packets may be in it.
 */
#define LOG_ROOM "packet"
#include <errno.h>
#include <stdio.h>

#include "hca/host/settings.h"
#include "hca/run/elide.h"
#include "transport/carrier/fault.h"
#include "transport/packet/base/port.h"
#include "transport/packet/frame/show.h"
#include "util/clock_source.h"
#include "util/log.h"

#define NO_CORRUPTION                                                                      \
	"corrupt is not offered, as nothing inside of a process would notice it; no faults"
#define NO_STREAMS "cut, reset and stall are for the streams of iwarp; no faults"

static bool are_wanted(const struct impair_settings *s)
{
	return !impair_is_none(&s->out) || !impair_is_none(&s->in);
}

/* Why not; NULL: all of it is possible. */
static const char *not_offered(const struct packet_port *port, const struct impair_settings *s)
{
	if (!port->medium->seal && (s->out.corrupt > 0 || s->in.corrupt > 0))
		return NO_CORRUPTION;
	if (impair_has_stream_faults(&s->out) || impair_has_stream_faults(&s->in))
		return NO_STREAMS;
	return NULL;
}

/* Reads BUSBAR_FAULTS. A setting that cannot be used means no faults. */
static void read_setting(struct packet_port *port)
{
	struct impair_settings wanted;
	const char *why;
	char error[256];

	port->faults_known = true;
	if (impair_parse(hca_settings.faults, &wanted, error, sizeof(error)))
		log_warn("BUSBAR_FAULTS='%.80s' not usable: %s; no faults",
			 hca_settings.faults, error);
	else if ((why = not_offered(port, &wanted)))
		log_warn("BUSBAR_FAULTS='%.80s' not usable: %s", hca_settings.faults, why);
	else
		port->faults = wanted;
}

static int open_filter(struct packet_port *port, struct carrier *below)
{
	const struct carrier_fault_params params = { .clock = clock_source_host(),
						     .seed = port->faults.seed };

	return carrier_fault_open(below, &params, &port->fault);
}

int packet_faults(struct packet_port *port, struct carrier **carrier)
{
	int ret = 0;

	hca_lock(&port->receive_lock);
	port->fault = NULL;
	if (!port->faults_known)
		read_setting(port);
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
	struct impair_settings wanted;
	int ret = impair_parse(text, &wanted, note, note_bytes), err = 0;
	const char *why;

	if (ret)
		return ret;
	why = not_offered(port, &wanted);
	if (why) {
		snprintf(note, note_bytes, "%s", why);
		wanted = (struct impair_settings){ .seed = wanted.seed };
		ret = -EOPNOTSUPP;
	}
	hca_lock(&port->receive_lock);
	port->faults = wanted;
	port->faults_known = true;
	if (atomic_load(&port->carrier))
		err = packet_faults_apply(port);
	if (err) /* no faults at the next opening either */
		port->faults = (struct impair_settings){ .seed = wanted.seed };
	hca_unlock(&port->receive_lock);
	return err ? err : ret;
}
