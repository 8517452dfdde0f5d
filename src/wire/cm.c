/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM MADs by tables (wire/fields.h). Offsets are those of IBA volume 1, chapter
 * 12.6, from the first byte after the MAD header.
 */
#include "wire/cm.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/container_of.h"
#include "wire/bytes.h"
#include "wire/fields.h"
#include "wire/mad/mad.h"

#define BITS(member, at_byte, at_bit, bits) \
	WIRE_BITS(struct cm_mad, member, at_byte, at_bit, bits)
#define BYTES(member, at_byte) WIRE_BYTES(struct cm_mad, member, at_byte)
#define PATH(member, at)                                                     \
	BITS(member.local_lid, (at), 0, 16),                                 \
	BITS(member.remote_lid, (at) + 2, 0, 16),                            \
	BYTES(member.local_gid, (at) + 4),                                   \
	BYTES(member.remote_gid, (at) + 20),                                 \
	BITS(member.flow_label, (at) + 36, 0, 20),                           \
	BITS(member.packet_rate, (at) + 39, 2, 6),                           \
	BITS(member.traffic_class, (at) + 40, 0, 8),                         \
	BITS(member.hop_limit, (at) + 41, 0, 8),                             \
	BITS(member.sl, (at) + 42, 0, 4),                                    \
	BITS(member.subnet_local, (at) + 42, 4, 1),                          \
	BITS(member.local_ack_timeout, (at) + 43, 0, 5)

static const struct wire_field req_fields[] = {
	BITS(req.local_comm_id, 0, 0, 32),
	BITS(req.vendor_id, 5, 0, 24),
	BITS(req.service_id, 8, 0, 64),
	BITS(req.local_ca_guid, 16, 0, 64),
	BITS(req.local_qkey, 28, 0, 32),
	BITS(req.local_qpn, 32, 0, 24),
	BITS(req.responder_resources, 35, 0, 8),
	BITS(req.local_eecn, 36, 0, 24),
	BITS(req.initiator_depth, 39, 0, 8),
	BITS(req.remote_eecn, 40, 0, 24),
	BITS(req.remote_response_timeout, 43, 0, 5),
	BITS(req.service, 43, 5, 2),
	BITS(req.flow_control, 43, 7, 1),
	BITS(req.starting_psn, 44, 0, 24),
	BITS(req.local_response_timeout, 47, 0, 5),
	BITS(req.retry_count, 47, 5, 3),
	BITS(req.pkey, 48, 0, 16),
	BITS(req.path_mtu, 50, 0, 4),
	BITS(req.rdc_exists, 50, 4, 1),
	BITS(req.rnr_retry_count, 50, 5, 3),
	BITS(req.max_cm_retries, 51, 0, 4),
	BITS(req.srq, 51, 4, 1),
	BITS(req.extended_service, 51, 5, 3),
	PATH(req.primary, 52),
	PATH(req.alternate, 96),
	BYTES(req.private_data, 140),
};

static const struct wire_field mra_fields[] = {
	BITS(mra.local_comm_id, 0, 0, 32),
	BITS(mra.remote_comm_id, 4, 0, 32),
	BITS(mra.answered, 8, 0, 2),
	BITS(mra.service_timeout, 9, 0, 5),
	BYTES(mra.private_data, 10),
};

static const struct wire_field rej_fields[] = {
	BITS(rej.local_comm_id, 0, 0, 32),
	BITS(rej.remote_comm_id, 4, 0, 32),
	BITS(rej.answered, 8, 0, 2),
	BITS(rej.info_len, 9, 0, 7),
	BITS(rej.reason, 10, 0, 16),
	BYTES(rej.info, 12),
	BYTES(rej.private_data, 84),
};

static const struct wire_field rep_fields[] = {
	BITS(rep.local_comm_id, 0, 0, 32),
	BITS(rep.remote_comm_id, 4, 0, 32),
	BITS(rep.local_qkey, 8, 0, 32),
	BITS(rep.local_qpn, 12, 0, 24),
	BITS(rep.vendor_id_high, 15, 0, 8),
	BITS(rep.local_eecn, 16, 0, 24),
	BITS(rep.vendor_id_middle, 19, 0, 8),
	BITS(rep.starting_psn, 20, 0, 24),
	BITS(rep.vendor_id_low, 23, 0, 8),
	BITS(rep.responder_resources, 24, 0, 8),
	BITS(rep.initiator_depth, 25, 0, 8),
	BITS(rep.target_ack_delay, 26, 0, 5),
	BITS(rep.failover_accepted, 26, 5, 2),
	BITS(rep.flow_control, 26, 7, 1),
	BITS(rep.rnr_retry_count, 27, 0, 3),
	BITS(rep.srq, 27, 3, 1),
	BITS(rep.local_ca_guid, 28, 0, 64),
	BYTES(rep.private_data, 36),
};

static const struct wire_field rtu_fields[] = {
	BITS(rtu.local_comm_id, 0, 0, 32),
	BITS(rtu.remote_comm_id, 4, 0, 32),
	BYTES(rtu.private_data, 8),
};

static const struct wire_field dreq_fields[] = {
	BITS(dreq.local_comm_id, 0, 0, 32),
	BITS(dreq.remote_comm_id, 4, 0, 32),
	BITS(dreq.remote_qpn, 8, 0, 24),
	BYTES(dreq.private_data, 12),
};

static const struct wire_field drep_fields[] = {
	BITS(drep.local_comm_id, 0, 0, 32),
	BITS(drep.remote_comm_id, 4, 0, 32),
	BYTES(drep.private_data, 8),
};

static const struct wire_field sidr_req_fields[] = {
	BITS(sidr_req.request_id, 0, 0, 32),
	BITS(sidr_req.pkey, 4, 0, 16),
	BITS(sidr_req.service_id, 8, 0, 64),
	BYTES(sidr_req.private_data, 16),
};

static const struct wire_field sidr_rep_fields[] = {
	BITS(sidr_rep.request_id, 0, 0, 32),
	BITS(sidr_rep.status, 4, 0, 8),
	BITS(sidr_rep.info_len, 5, 0, 8),
	BITS(sidr_rep.qpn, 8, 0, 24),
	BITS(sidr_rep.service_id, 12, 0, 64),
	BITS(sidr_rep.qkey, 20, 0, 32),
	BYTES(sidr_rep.info, 24),
	BYTES(sidr_rep.private_data, 96),
};

static const struct wire_field lap_fields[] = {
	BITS(lap.local_comm_id, 0, 0, 32),
	BITS(lap.remote_comm_id, 4, 0, 32),
	BITS(lap.remote_qpn, 12, 0, 24),
	BITS(lap.remote_response_timeout, 15, 0, 5),
	/* The layout differs from that of the paths in a REQ. */
	BITS(lap.alternate.local_lid, 20, 0, 16),
	BITS(lap.alternate.remote_lid, 22, 0, 16),
	BYTES(lap.alternate.local_gid, 24),
	BYTES(lap.alternate.remote_gid, 40),
	BITS(lap.alternate.flow_label, 56, 0, 20),
	BITS(lap.alternate.traffic_class, 59, 0, 8),
	BITS(lap.alternate.hop_limit, 60, 0, 8),
	BITS(lap.alternate.packet_rate, 61, 2, 6),
	BITS(lap.alternate.sl, 62, 0, 4),
	BITS(lap.alternate.subnet_local, 62, 4, 1),
	BITS(lap.alternate.local_ack_timeout, 63, 0, 5),
	BYTES(lap.private_data, 64),
};

static const struct wire_field apr_fields[] = {
	BITS(apr.local_comm_id, 0, 0, 32),
	BITS(apr.remote_comm_id, 4, 0, 32),
	BITS(apr.info_len, 8, 0, 8),
	BITS(apr.status, 9, 0, 8),
	BYTES(apr.info, 12),
	BYTES(apr.private_data, 84),
};

#define MESSAGE(type_code, spelling, rows)                                       \
	{ .type = (type_code), .layout = WIRE_ELEMENT(struct cm_mad, spelling, rows, \
		CM_MAD_SIZE - MAD_HEADER_BYTES) }
static const struct message {
	enum cm_type type;
	struct wire_layout layout;
} messages[] = {
	MESSAGE(CM_REQ, "REQ", req_fields),
	MESSAGE(CM_MRA, "MRA", mra_fields),
	MESSAGE(CM_REJ, "REJ", rej_fields),
	MESSAGE(CM_REP, "REP", rep_fields),
	MESSAGE(CM_RTU, "RTU", rtu_fields),
	MESSAGE(CM_DREQ, "DREQ", dreq_fields),
	MESSAGE(CM_DREP, "DREP", drep_fields),
	MESSAGE(CM_SIDR_REQ, "SIDR_REQ", sidr_req_fields),
	MESSAGE(CM_SIDR_REP, "SIDR_REP", sidr_rep_fields),
	MESSAGE(CM_LAP, "LAP", lap_fields),
	MESSAGE(CM_APR, "APR", apr_fields),
};

/* The last field of every message must end at the end of the MAD. */
#define ENDS_WITH_MAD(at, bytes) \
	_Static_assert(MAD_HEADER_BYTES + (at) + (bytes) == CM_MAD_SIZE, "size")
ENDS_WITH_MAD(140, CM_REQ_PRIVATE);
ENDS_WITH_MAD(10, CM_MRA_PRIVATE);
ENDS_WITH_MAD(84, CM_REJ_PRIVATE);
ENDS_WITH_MAD(36, CM_REP_PRIVATE);
ENDS_WITH_MAD(8, CM_RTU_PRIVATE);
ENDS_WITH_MAD(12, CM_DREQ_PRIVATE);
ENDS_WITH_MAD(8, CM_DREP_PRIVATE);
ENDS_WITH_MAD(16, CM_SIDR_REQ_PRIVATE);
ENDS_WITH_MAD(96, CM_SIDR_REP_PRIVATE);
ENDS_WITH_MAD(64, CM_LAP_PRIVATE);
ENDS_WITH_MAD(84, CM_APR_PRIVATE);
_Static_assert(CM_REQ_PRIVATE - CM_IP_HEADER_SIZE == 56, "rdma_connect(3)");
_Static_assert(CM_SIDR_REQ_PRIVATE - CM_IP_HEADER_SIZE == 180, "rdma_connect(3)");

static const struct message *message_find(unsigned type)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
		if (messages[i].type == type)
			return &messages[i];
	return NULL;
}

const char *wire_cm_name(enum cm_type type)
{
	const struct message *m = message_find(type);

	return m ? m->layout.name : "unknown";
}

/* Checks the values whose range is smaller than their field. */
static bool values_valid(const struct cm_mad *mad)
{
	switch (mad->type) {
	case CM_REQ:
		return mad->req.path_mtu >= 1 && mad->req.path_mtu <= 5;
	case CM_MRA:
		return mad->mra.answered <= CM_ANSWERED_OTHER;
	case CM_REJ:
		return mad->rej.answered <= CM_ANSWERED_OTHER &&
		       mad->rej.info_len <= CM_INFO_SIZE;
	case CM_SIDR_REP:
		return mad->sidr_rep.status <= CM_SIDR_VERSION &&
		       mad->sidr_rep.info_len <= CM_INFO_SIZE;
	case CM_APR:
		return mad->apr.status <= CM_PATH_INVALID_SL &&
		       mad->apr.info_len <= CM_INFO_SIZE;
	default:
		return true;
	}
}

int wire_cm_encode(const struct cm_mad *mad, uint8_t out[CM_MAD_SIZE])
{
	const struct message *m = message_find(mad->type);
	const struct mad_header header = {
		.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_COMM_MGT,
		.class_version = MAD_VERSION_COMM_MGT,
		.method = MAD_SEND,
		.tid = mad->tid,
		.attr_id = (uint16_t)mad->type,
		.attr_mod = mad->attr_mod,
	};

	if (!m || !values_valid(mad))
		return -EINVAL;
	mad_header_pack(&header, out);
	return wire_pack(&m->layout, mad, out + MAD_HEADER_BYTES) ? 0 : -EINVAL;
}

int wire_cm_decode(const void *bytes, size_t len, struct cm_mad *mad)
{
	const struct message *m;
	struct mad_header header;
	struct cm_mad got;

	if (!mad_header_read(bytes, len, &header) || header.mgmt_class != MAD_CLASS_COMM_MGT ||
	    header.class_version != MAD_VERSION_COMM_MGT || header.method != MAD_SEND)
		return -EBADMSG;
	m = message_find(header.attr_id);
	if (!m)
		return -EBADMSG;
	wire_unpack(&m->layout, (const uint8_t *)bytes + MAD_HEADER_BYTES, &got);
	got.type = m->type;
	got.tid = header.tid;
	got.attr_mod = header.attr_mod;
	if (!values_valid(&got))
		return -EBADMSG;
	*mad = got;
	return 0;
}

int wire_cm_ip_encode(const struct cm_ip_header *header,
		      uint8_t out[CM_IP_HEADER_SIZE])
{
	if (header->ip_version != 4 && header->ip_version != 6)
		return -EINVAL;
	out[0] = 0; /* major and minor version of the annex */
	out[1] = (uint8_t)(header->ip_version << 4);
	put_16(out + 2, header->src_port);
	memcpy(out + 4, header->src, 16);
	memcpy(out + 20, header->dst, 16);
	return 0;
}

int wire_cm_ip_decode(const void *bytes, size_t len, struct cm_ip_header *header)
{
	const uint8_t *in = bytes;

	if (len < CM_IP_HEADER_SIZE || in[0] != 0)
		return -EBADMSG;
	if (in[1] >> 4 != 4 && in[1] >> 4 != 6)
		return -EBADMSG;
	header->ip_version = in[1] >> 4;
	header->src_port = get_16(in + 2);
	memcpy(header->src, in + 4, 16);
	memcpy(header->dst, in + 20, 16);
	return 0;
}

int wire_cm_service_parse(uint64_t service_id, uint16_t *port_space,
			  uint16_t *port)
{
	switch (service_id >> 16) {
	case 0x0002: /* IPoIB */
	case 0x0106: /* TCP */
	case 0x0111: /* UDP */
	case 0x013f: /* IB */
		*port_space = (uint16_t)(service_id >> 16);
		*port = (uint16_t)service_id;
		return 0;
	default:
		return -EBADMSG;
	}
}
