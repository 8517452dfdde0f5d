/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of the node-type c37.118, by their numbers in its table; the first ones are those of
 * part/fault.h. */
#ifndef GATEWAY_NODE_C37_FIGURES_H
#define GATEWAY_NODE_C37_FIGURES_H

#include "gateway/part/fault.h"

enum c37_figure {
	/* Reading. */
	C37_CONNECTIONS = FAULT_KINDS,
	C37_UNREACHABLE,
	C37_SILENT,
	C37_CONFIGURATIONS,
	C37_MISSED,
	C37_REPEATED,
	C37_LATE,
	C37_TIME_STEPS,
	C37_LEAP_SECONDS,
	C37_EARLY,
	C37_INVALID,
	C37_NOT_IN_SYNC,
	C37_TIME_QUALITY,
	C37_CUT,
	C37_STEPS,
	C37_STEPS_INCOMPLETE,
	C37_FRAMES_ABSENT,
	C37_TOO_LATE,
	/* Writing. */
	C37_CLIENTS,
	C37_CLIENTS_BEHIND,
	C37_CLIENTS_DROPPED,
	C37_COMMANDS,
	C37_FRAMES_SENT,
	C37_THINNED,
	C37_FIGURES,
};

#endif
