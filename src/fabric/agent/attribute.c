/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/attribute.h"

#include <string.h>

uint16_t agent_carry_out(struct agent_request *r, const struct agent_attribute *table, size_t count,
			 uint8_t method, uint16_t attr_id)
{
	const uint8_t kind = r->node->is_switch ? AGENT_OF_SWITCHES : AGENT_OF_ADAPTERS;
	const struct agent_attribute *at = NULL;
	uint16_t status;

	if (method != MAD_GET && method != MAD_SET)
		return MAD_STATUS_BAD_METHOD;
	for (size_t i = 0; i < count && !at; i++)
		if (table[i].id == attr_id && table[i].kinds & kind)
			at = &table[i];
	if (!at || (method == MAD_SET && !at->set))
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (method == MAD_SET) {
		status = at->set(r);
		if (status)
			return status;
	}
	status = at->get(r);
	if (!status)
		memset(r->data + at->bytes, 0, r->data_bytes - at->bytes);
	return status;
}

uint16_t agent_get_class_port_info(struct agent_request *r, uint8_t class_version, uint16_t capabilities)
{
	const struct mad_class_port_info info = {
		.base_version = MAD_BASE_VERSION, .class_version = class_version,
		.capability_mask = capabilities,
		.resp_time_value = r->node->port[agent_end_port(r->node, r->in_port)].info.resp_time_value,
	};

	mad_class_port_info_pack(&info, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_class_port_info(struct agent_request *r)
{
	(void)r;
	return MAD_STATUS_OK;
}
