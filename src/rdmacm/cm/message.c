/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from the values of a connection, and values from the messages of the peer.
 */
#include <endian.h>
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/base/base.h"
#include "rdmacm/cm/cm.h"
#include "rdmacm/qp/qp.h"

#define NSEC_PER_MSEC UINT64_C(1000000)
#define TARGET_ACK_DELAY 10
#define LID_PERMISSIVE 0xffff

/*
 * Response time of each side, as n of 4.096 us * 2^n: the time in the setting
 * divided by the number of tries; 20 (4.3 s) by default.
 */
uint8_t cma_response_code(void)
{
	uint64_t each_ns = cma_settings.timeout_ms * NSEC_PER_MSEC /
			   (CM_RETRIES + 1);
	uint8_t code = 0;

	while (UINT64_C(4096) << code < each_ns)
		code++;
	return code;
}

/* ---- messages ---- */

static void ip_header_write(const struct cma_id *id, uint8_t *out)
{
	const struct rdma_addr *addr = &id->pub.route.addr;
	struct cm_ip_header h = {
		.ip_version = addr->dst_addr.sa_family == AF_INET ? 4 : 6,
		.src_port = cma_addr_port(&addr->src_addr),
	};

	cma_addr_to_bytes(&addr->src_addr, h.src);
	cma_addr_to_bytes(&addr->dst_addr, h.dst);
	wire_cm_ip_encode(&h, out);
}

static uint64_t service_id_of(const struct cma_id *id)
{
	const struct sockaddr *dst = &id->pub.route.addr.dst_addr;

	return wire_cm_service_id(cma_addr_port_space(dst, id->pub.ps),
				  cma_addr_port(dst));
}

static enum cm_service service_of(const struct cma_id *id)
{
	switch (id->pub.qp_type) {
	case IBV_QPT_UC:
		return CM_SERVICE_UC;
	case IBV_QPT_XRC_SEND:
		return CM_SERVICE_EXTENDED;
	default:
		return CM_SERVICE_RC;
	}
}

/* The private data of a request; IP addresses, if it has them, come first. */
static void request_private(const struct cma_id *id, uint8_t *out)
{
	size_t lead = cma_private_lead(id);

	if (lead)
		ip_header_write(id, out);
	memcpy(out + lead, id->conn.private_data, id->conn.private_len);
}

/*
 * Peers tell hosts apart by it, and network namespaces of one host must differ: each numbers
 * its queue pairs by itself. So the address is part of it.
 */
static uint64_t ca_guid(const struct cma_id *id)
{
	const union ibv_gid *gid = &id->pub.route.addr.addr.ibaddr.sgid;
	uint64_t guid = be64toh(id->device->guid);

	if (!id->network)
		return guid;
	for (unsigned i = 0; i < sizeof(gid->raw); i++)
		guid = (guid ^ gid->raw[i]) * UINT64_C(0x100000001b3);
	/* Locally administered, of one device. */
	return (guid & ~(UINT64_C(3) << 56)) | UINT64_C(2) << 56;
}

/* RoCE has none. */
static uint16_t lid_of(const union ibv_gid *gid)
{
	const uint16_t lid = cma_lid_of(gid);

	return lid ? lid : LID_PERMISSIVE;
}

static void req_make(const struct cma_id *id, struct cm_req *req)
{
	const struct cma_conn *c = &id->conn;
	const struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;

	*req = (struct cm_req){
		.vendor_id = id->local_ece.vendor_id,
		.service_id = service_id_of(id),
		.local_ca_guid = ca_guid(id),
		.local_qpn = c->local_qpn,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.remote_response_timeout = cma_response_code(),
		.service = service_of(id),
		.extended_service = id->pub.qp_type == IBV_QPT_XRC_SEND ?
					    CM_EXTENDED_XRC : 0,
		.flow_control = c->flow_control,
		.starting_psn = c->local_psn,
		.local_response_timeout = cma_response_code(),
		.retry_count = c->retry_count,
		.pkey = 0xffff,
		.path_mtu = c->path_mtu,
		.rnr_retry_count = c->rnr_retry_asked,
		.max_cm_retries = CM_RETRIES,
		.srq = c->srq,
		.primary = {
			.local_lid = lid_of(&ib->sgid),
			.remote_lid = lid_of(&ib->dgid),
			.packet_rate = IBV_RATE_100_GBPS,
			.traffic_class = id->tos,
			.sl = id->pub.route.path_rec ? id->pub.route.path_rec->sl : 0,
			.hop_limit = CMA_HOP_LIMIT,
			.local_ack_timeout = c->ack_timeout,
		},
	};
	memcpy(req->primary.local_gid, ib->sgid.raw, 16);
	memcpy(req->primary.remote_gid, ib->dgid.raw, 16);
	request_private(id, req->private_data);
}

static void rep_make(const struct cma_id *id, struct cm_rep *rep)
{
	const struct cma_conn *c = &id->conn;

	*rep = (struct cm_rep){
		.local_qpn = c->local_qpn,
		/* XRC: the QP number of the target is in the field of the EECN. */
		.local_eecn = id->pub.qp_type == IBV_QPT_XRC_RECV ?
				      c->local_qpn : 0,
		.vendor_id_high = (uint8_t)(id->local_ece.vendor_id >> 16),
		.vendor_id_middle = (uint8_t)(id->local_ece.vendor_id >> 8),
		.vendor_id_low = (uint8_t)id->local_ece.vendor_id,
		.starting_psn = c->local_psn,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.target_ack_delay = TARGET_ACK_DELAY,
		.flow_control = c->flow_control,
		.rnr_retry_count = c->rnr_retry_asked,
		.srq = c->srq,
		.local_ca_guid = ca_guid(id),
	};
	memcpy(rep->private_data, c->private_data, c->private_len);
}

static void sidr_rep_make(const struct cma_id *id, bool accepted,
			  struct cm_sidr_rep *rep)
{
	const struct cma_conn *c = &id->conn;

	*rep = (struct cm_sidr_rep){
		.status = accepted ? CM_SIDR_SUCCESS : CM_SIDR_REJECTED,
		.qpn = accepted ? c->local_qpn : 0,
		.qkey = accepted ? RDMA_UDP_QKEY : 0,
		.service_id = wire_cm_service_id(
			cma_addr_port_space(&id->pub.route.addr.src_addr,
					    id->pub.ps),
			cma_addr_port(&id->pub.route.addr.src_addr)),
	};
	memcpy(rep->private_data, c->private_data, c->private_len);
}

static void sidr_req_make(const struct cma_id *id, struct cm_sidr_req *req)
{
	*req = (struct cm_sidr_req){
		.pkey = 0xffff,
		.service_id = service_id_of(id),
	};
	request_private(id, req->private_data);
}

bool cma_message_make(const struct cma_id *id, enum cm_input input, struct cm_mad *mad)
{
	const struct cma_conn *c = &id->conn;

	mad->attr_mod = 0;
	mad->tid = 0;
	switch (input) {
	case CM_DO_CONNECT:
		mad->type = CM_REQ;
		mad->tid = (uint64_t)cma_random(UINT32_MAX) << 32;
		mad->attr_mod = id->local_ece.options;
		req_make(id, &mad->req);
		return true;
	case CM_DO_LOOKUP:
		mad->type = CM_SIDR_REQ;
		mad->tid = (uint64_t)cma_random(UINT32_MAX) << 32;
		sidr_req_make(id, &mad->sidr_req);
		return true;
	case CM_DO_ACCEPT:
	case CM_DO_REJECT:
		if (cma_id_is_datagram(id)) {
			mad->type = CM_SIDR_REP;
			sidr_rep_make(id, input == CM_DO_ACCEPT, &mad->sidr_rep);
			return true;
		}
		break;
	default:
		return false;
	}
	if (input == CM_DO_ACCEPT) {
		mad->type = CM_REP;
		mad->attr_mod = id->local_ece.options;
		rep_make(id, &mad->rep);
	} else {
		mad->type = CM_REJ;
		mad->rej = (struct cm_rej){ .reason = c->reject_reason };
		memcpy(mad->rej.private_data, c->private_data, c->private_len);
	}
	return true;
}

/* ---- values of the peer's messages ---- */

void cma_message_learn(struct cma_id *id, const struct cm_mad *mad)
{
	struct cma_conn *c = &id->conn;

	switch (mad->type) {
	case CM_REQ:
		c->remote_qpn = mad->req.local_qpn;
		c->remote_psn = mad->req.starting_psn;
		c->path_mtu = MIN(mad->req.path_mtu, id->active_mtu);
		c->ack_timeout = mad->req.primary.local_ack_timeout;
		c->retry_count = mad->req.retry_count;
		c->rnr_retry = mad->req.rnr_retry_count;
		/* The peer's initiator depth is this side's responder resources. */
		c->responder_resources = mad->req.initiator_depth;
		c->initiator_depth = mad->req.responder_resources;
		id->tos = mad->req.primary.traffic_class;
		id->remote_ece.vendor_id = mad->req.vendor_id;
		id->remote_ece.options = mad->attr_mod;
		break;
	case CM_REP:
		c->remote_qpn = id->pub.qp_type == IBV_QPT_XRC_SEND ?
					mad->rep.local_eecn :
					mad->rep.local_qpn;
		c->remote_psn = mad->rep.starting_psn;
		c->rnr_retry = mad->rep.rnr_retry_count;
		c->responder_resources = mad->rep.initiator_depth;
		c->initiator_depth = mad->rep.responder_resources;
		id->remote_ece.vendor_id =
			(uint32_t)mad->rep.vendor_id_high << 16 |
			(uint32_t)mad->rep.vendor_id_middle << 8 |
			mad->rep.vendor_id_low;
		id->remote_ece.options = mad->attr_mod;
		break;
	case CM_SIDR_REP:
		c->remote_qpn = mad->sidr_rep.qpn;
		c->remote_qkey = mad->sidr_rep.qkey;
		break;
	default:
		break;
	}
}

static void event_private(struct cma_event *ev, bool datagram,
			  const uint8_t *data, size_t len)
{
	memcpy(ev->private_data, data, len);
	if (datagram) {
		ev->pub.param.ud.private_data = ev->private_data;
		ev->pub.param.ud.private_data_len = (uint8_t)len;
	} else {
		ev->pub.param.conn.private_data = ev->private_data;
		ev->pub.param.conn.private_data_len = (uint8_t)len;
	}
}

void cma_message_tell(struct cma_event *ev, const struct cma_id *id, const struct cm_mad *mad)
{
	const struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;
	size_t lead = cma_private_lead(id);
	struct rdma_conn_param *conn = &ev->pub.param.conn;
	struct rdma_ud_param *ud = &ev->pub.param.ud;

	switch (mad->type) {
	case CM_REQ:
		conn->responder_resources = mad->req.initiator_depth;
		conn->initiator_depth = mad->req.responder_resources;
		conn->flow_control = mad->req.flow_control;
		conn->retry_count = mad->req.retry_count;
		conn->rnr_retry_count = mad->req.rnr_retry_count;
		conn->srq = mad->req.srq;
		conn->qp_num = mad->req.local_qpn;
		event_private(ev, false,
			      mad->req.private_data + lead,
			      CM_REQ_PRIVATE - lead);
		break;
	case CM_SIDR_REQ:
		event_private(ev, true,
			      mad->sidr_req.private_data + lead,
			      CM_SIDR_REQ_PRIVATE - lead);
		break;
	case CM_REP:
		conn->responder_resources = mad->rep.initiator_depth;
		conn->initiator_depth = mad->rep.responder_resources;
		conn->flow_control = mad->rep.flow_control;
		conn->rnr_retry_count = mad->rep.rnr_retry_count;
		conn->srq = mad->rep.srq;
		conn->qp_num = id->conn.remote_qpn;
		event_private(ev, false, mad->rep.private_data, CM_REP_PRIVATE);
		break;
	case CM_REJ:
		event_private(ev, false, mad->rej.private_data, CM_REJ_PRIVATE);
		break;
	case CM_DREQ:
		event_private(ev, false, mad->dreq.private_data, CM_DREQ_PRIVATE);
		break;
	case CM_SIDR_REP:
		cma_ud_fill(ud, id, &ib->dgid, mad->sidr_rep.qpn,
			    mad->sidr_rep.qkey);
		event_private(ev, true, mad->sidr_rep.private_data,
			      CM_SIDR_REP_PRIVATE);
		break;
	default:
		break;
	}
}
