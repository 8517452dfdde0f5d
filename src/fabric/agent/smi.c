/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/smi.h"

static const struct agent_step discard = {.way = AGENT_DISCARD};

static uint16_t lid_at(const uint8_t *mad, unsigned at)
{
	return (uint16_t)(mad[at] << 8 | mad[at + 1]);
}

/* An adapter has one way out: its own port. */
static struct agent_step out(bool is_switch, uint8_t port, uint8_t to)
{
	if (!to || (!is_switch && to != port))
		return discard;
	return (struct agent_step){.way = AGENT_OUT, .port = to};
}

/* The directed part has ended: here, or at another LID behind this switch. */
static struct agent_step end(const uint8_t *mad, bool is_switch, unsigned lid_at_byte, enum agent_way here)
{
	const uint16_t lid = lid_at(mad, lid_at_byte);

	if (lid == MAD_LID_PERMISSIVE)
		return (struct agent_step){.way = here};
	return is_switch ? (struct agent_step){.way = AGENT_BY_LID, .lid = lid} : discard;
}

/* D = 0. */
static struct agent_step step_outbound(uint8_t *mad, bool is_switch, uint8_t port, enum agent_origin origin)
{
	const uint8_t count = mad[MAD_SMP_AT_HOP_COUNT];
	uint8_t *pointer = &mad[MAD_SMP_AT_HOP_POINTER];
	const uint8_t *initial = mad + MAD_SMP_AT_INITIAL_PATH;
	uint8_t *back = mad + MAD_SMP_AT_RETURN_PATH;

	/* The directed part begins here. */
	if (!*pointer && count) {
		if (origin == AGENT_FROM_LINK)
			return discard;
		*pointer = 1;
		return out(is_switch, port, initial[1]);
	}
	if (*pointer && origin != AGENT_FROM_LINK)
		/* The route by LID behind the directed part has ended here. */
		return *pointer == count + 1 && origin == AGENT_FROM_LID ?
			(struct agent_step){.way = AGENT_TO_AGENT} : discard;
	/* In the midst of it: a switch. */
	if (*pointer < count) {
		if (!is_switch)
			return discard;
		back[*pointer] = port;
		++*pointer;
		return out(is_switch, port, initial[*pointer]);
	}
	if (*pointer != count || (!count && origin == AGENT_FROM_LINK))
		return discard;
	if (count)
		back[*pointer] = port;
	++*pointer;
	return end(mad, is_switch, MAD_SMP_AT_DR_DLID, AGENT_TO_AGENT);
}

/* D = 1. */
static struct agent_step step_returning(uint8_t *mad, bool is_switch, uint8_t port, enum agent_origin origin)
{
	const uint8_t count = mad[MAD_SMP_AT_HOP_COUNT];
	uint8_t *pointer = &mad[MAD_SMP_AT_HOP_POINTER];
	const uint8_t *back = mad + MAD_SMP_AT_RETURN_PATH;

	/* The directed part begins here: at the node that answers, or where the route by LID ends. */
	if (count && *pointer == count + 1) {
		if (origin == AGENT_FROM_LINK)
			return discard;
		--*pointer;
		return out(is_switch, port, back[*pointer]);
	}
	if (*pointer >= 2 && *pointer <= count) {
		if (!is_switch || origin != AGENT_FROM_LINK)
			return discard;
		--*pointer;
		return out(is_switch, port, back[*pointer]);
	}
	if (*pointer == 1) {
		/* A path without a hop returns in the node that answered. */
		if (count && origin != AGENT_FROM_LINK)
			return discard;
		*pointer = 0;
		return end(mad, is_switch, MAD_SMP_AT_DR_SLID, AGENT_TO_PROCESS);
	}
	if (!*pointer && origin == AGENT_FROM_LID)
		return (struct agent_step){.way = AGENT_TO_PROCESS};
	return discard;
}

bool agent_smi_is_path(const uint8_t mad[MAD_BYTES])
{
	return mad[MAD_SMP_AT_HOP_COUNT] < MAD_SMP_PATH_BYTES &&
	       mad[MAD_SMP_AT_HOP_POINTER] <= mad[MAD_SMP_AT_HOP_COUNT] + 1;
}

struct agent_step agent_smi_step(uint8_t mad[MAD_BYTES], bool is_switch, uint8_t port,
				 enum agent_origin origin)
{
	if (!agent_smi_is_path(mad))
		return discard;
	if (mad[MAD_SMP_AT_DIRECTION] & MAD_SMP_D)
		return step_returning(mad, is_switch, port, origin);
	return step_outbound(mad, is_switch, port, origin);
}
