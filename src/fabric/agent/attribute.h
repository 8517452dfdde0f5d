/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes as tables: what Get and Set do with each attribute of a class. Private to the agents.
 */
#ifndef FABRIC_AGENT_ATTRIBUTE_H
#define FABRIC_AGENT_ATTRIBUTE_H

#include "fabric/agent/state.h"

enum agent_kinds { /* bits */
	AGENT_OF_ADAPTERS = 1,
	AGENT_OF_SWITCHES = 2,
	AGENT_OF_ALL = 3,
};

struct agent_attribute {
	uint16_t id;
	uint16_t bytes; /* of its layout */
	uint8_t kinds;  /* of nodes that have it */
	/* Both return the status, enum mad_status; get() writes `bytes` at r->data. NULL: it has not this
	 * method. */
	uint16_t (*get)(struct agent_request *r);
	uint16_t (*set)(struct agent_request *r);
};

/*
 * Carries out the method on the attribute: the status. After a Set r->data has what is in force then,
 * or, if the status says that it was refused, what it had.
 */
uint16_t agent_carry_out(struct agent_request *r, const struct agent_attribute *table, size_t count,
			 uint8_t method, uint16_t attr_id);

/* ClassPortInfo of a class with this version and these capabilities. No traps are sent, so that a Set
 * (TrapLID and the like) stores nothing. */
uint16_t agent_get_class_port_info(struct agent_request *r, uint8_t class_version, uint16_t capabilities);
uint16_t agent_set_class_port_info(struct agent_request *r);

#endif
