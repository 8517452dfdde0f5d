/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of soft0 for performance management; see count.h. */
#define LOG_ROOM "umad"
#include "umad/count.h"

#include <string.h>

#include "hca/view/inspect.h"
#include "util/container_of.h"
#include "util/log.h"
#include "verbs/private.h"
#include "wire/mad/perf.h"

struct sums {
	uint64_t xmit_bytes, rcv_bytes, xmit_messages, rcv_messages, errors;
};

static void add(struct sums *s, const uint64_t *c)
{
	const uint64_t read_bytes = c[HCA_TX_READ_BYTES];

	/* The requester of a READ receives its bytes. */
	for (unsigned i = HCA_TX_WRITES; i <= HCA_TX_ATOMIC_WRITES; i += 2) {
		if (i == HCA_TX_INVALIDATES || i == HCA_TX_BINDS || i == 20)
			continue;
		s->xmit_messages += c[i];
		s->xmit_bytes += i == HCA_TX_READS ? 0 : c[i + 1];
	}
	s->rcv_bytes += read_bytes + c[HCA_RX_SEND_BYTES] + c[HCA_RX_WRITE_IMM_BYTES];
	s->rcv_messages += c[HCA_RX_SENDS] + c[HCA_RX_WRITES_IMM] + c[HCA_RX_ATOMICS];
	s->errors += c[HCA_RX_DROPPED];
}

static int sum(struct sums *s)
{
	struct hca_inspector *in;
	struct hca_view *view;
	int ret = busbar_inspector_open(HCA_VIEW_VERSION, &in);

	*s = (struct sums){ 0 };
	if (ret)
		return ret;
	ret = busbar_inspector_look(in, &view);
	for (size_t i = 0; !ret && i < view->process_count; i++)
		add(s, view->processes[i].totals);
	if (!ret)
		busbar_view_free(view);
	busbar_inspector_close(in);
	return ret;
}

#define UP_TO(value, most) ((value) < (most) ? (value) : (most))

static void counters(const struct sums *s, uint8_t *to)
{
	const struct mad_port_counters c = {
		.port_select = 1,
		.xmit_data = (uint32_t)UP_TO(s->xmit_bytes / 4, UINT32_MAX),
		.rcv_data = (uint32_t)UP_TO(s->rcv_bytes / 4, UINT32_MAX),
		.xmit_pkts = (uint32_t)UP_TO(s->xmit_messages, UINT32_MAX),
		.rcv_pkts = (uint32_t)UP_TO(s->rcv_messages, UINT32_MAX),
		.rcv_errors = (uint16_t)UP_TO(s->errors, UINT16_MAX),
	};

	mad_port_counters_pack(&c, to);
}

static void extended(const struct sums *s, uint8_t *to)
{
	const struct mad_port_counters_extended c = {
		.port_select = 1,
		.xmit_data = s->xmit_bytes / 4,
		.rcv_data = s->rcv_bytes / 4,
		.xmit_pkts = s->xmit_messages,
		.rcv_pkts = s->rcv_messages,
		.unicast_xmit_pkts = s->xmit_messages,
		.unicast_rcv_pkts = s->rcv_messages,
	};

	mad_port_counters_extended_pack(&c, to);
}

static void class_port_info(uint8_t *to)
{
	const struct mad_class_port_info c = {
		.base_version = MAD_BASE_VERSION,
		.class_version = MAD_VERSION_PERF,
		.capability_mask = MAD_PERF_EXTENDED_WIDTH,
		.resp_time_value = 18,
	};

	mad_class_port_info_pack(&c, to);
}

/* Counters are read; Set cannot clear those of processes, and says so. */
static uint16_t fill(const struct mad_header *h, uint8_t *data)
{
	struct sums s;

	if (h->method != MAD_GET)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (h->attr_id == MAD_ATTR_CLASS_PORT_INFO) {
		class_port_info(data);
		return MAD_STATUS_OK;
	}
	if (h->attr_id != MAD_ATTR_PORT_COUNTERS && h->attr_id != MAD_ATTR_PORT_COUNTERS_EXTENDED)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (sum(&s))
		return MAD_STATUS_BUSY;
	if (h->attr_id == MAD_ATTR_PORT_COUNTERS)
		counters(&s, data);
	else
		extended(&s, data);
	return MAD_STATUS_OK;
}

bool umad_count_answer(const uint8_t request[MAD_BYTES], uint8_t answer[MAD_BYTES])
{
	uint8_t data[MAD_BYTES] = { 0 };
	struct mad_header h;
	uint16_t status;

	if (!mad_header_read(request, MAD_BYTES, &h) || h.mgmt_class != MAD_CLASS_PERF)
		return false;
	memcpy(answer, request, MAD_BYTES);
	status = fill(&h, data);
	if (!mad_make_response(answer, status))
		return false;
	memcpy(answer + MAD_DATA_AT, data, MAD_BYTES - MAD_DATA_AT);
	return true;
}
