/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter that BUSBAR_FAULTS asks for; see packet.h. */
#define LOG_ROOM "packet"
#include "hca/host/settings.h"
#include "transport/carrier/fault.h"
#include "transport/packet/packet.h"
#include "util/clock_source.h"
#include "util/log.h"

/* What BUSBAR_FAULTS says. False: nothing, or it cannot be used. */
static bool read_faults(struct impair_settings *faults, bool seals)
{
	char error[160];

	if (impair_parse(hca_settings.faults, faults, error, sizeof(error))) {
		log_warn("BUSBAR_FAULTS='%.80s' not usable: %s; no faults",
			 hca_settings.faults, error);
		return false;
	}
	if (!seals && (faults->out.corrupt > 0 || faults->in.corrupt > 0)) {
		log_warn("BUSBAR_FAULTS='%.80s' not usable: corrupt is not offered, as nothing inside of a process would notice it; no faults",
			 hca_settings.faults);
		return false;
	}
	return !impair_is_none(&faults->out) || !impair_is_none(&faults->in);
}

int packet_faults(struct packet_port *port, struct carrier **carrier)
{
	struct carrier_fault_params params = { .clock = clock_source_host() };
	struct impair_settings faults;
	int ret;

	port->holds_back = false;
	if (!read_faults(&faults, port->medium->seal))
		return 0;
	params.seed = faults.seed;
	ret = carrier_fault_open(*carrier, &params, carrier);
	if (ret)
		return ret;
	port->holds_back = true;
	carrier_fault_set(*carrier, 1u << CARRIER_OUT, IMPAIR_ALL_CLASSES, &faults.out);
	carrier_fault_set(*carrier, 1u << CARRIER_IN, IMPAIR_ALL_CLASSES, &faults.in);
	return 0;
}
