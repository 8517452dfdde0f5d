/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints CM messages as RoCE v2 datagrams in text2pcap's hex format for cm_tshark.sh, so
 * that tshark, an independent decoder, checks them. The invariant CRC is zero; tshark does
 * not need it.
 */
#include <stdio.h>
#include <string.h>

#include "wire/cm.h"

static void datagram_print(const struct cm_mad *m)
{
	/* BTH: UD SEND only, pkey, QP 1, PSN 1; DETH: qkey of QP 1, from QP 1. */
	uint8_t out[20 + CM_MAD_SIZE + 4] = {
		0x64, 0x00, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 1,
		0x80, 0x01, 0, 0, 0, 0, 0, 1,
	};

	if (wire_cm_encode(m, out + 20))
		return;
	for (size_t i = 0; i < sizeof(out); i++) {
		if (i % 16 == 0)
			printf("%s%06zx", i ? "\n" : "", i);
		printf(" %02x", out[i]);
	}
	printf("\n\n");
}

int main(void)
{
	struct cm_mad req = {
		.type = CM_REQ, .tid = 7,
		.req = {
			.local_comm_id = 0x0a0b0c0d,
			.service_id = wire_cm_service_id(0x0106, 18515),
			.local_ca_guid = 0x0102030405060708,
			.local_qpn = 0x1a2b3c, .responder_resources = 16,
			.initiator_depth = 15, .remote_response_timeout = 20,
			.service = CM_SERVICE_UC, .starting_psn = 0x4d5e6f,
			.local_response_timeout = 19, .retry_count = 6,
			.pkey = 0xffff, .path_mtu = 5, .rnr_retry_count = 4,
			.max_cm_retries = 13, .srq = 1,
			.primary = { .local_gid = { [10] = 255, 255, 10, 0, 0, 1 },
				     .remote_gid = { [10] = 255, 255, 10, 0, 0, 2 },
				     .flow_label = 0x12345, .packet_rate = 3,
				     .traffic_class = 33, .hop_limit = 64,
				     .sl = 5, .local_ack_timeout = 14 },
		},
	};
	struct cm_mad rep = {
		.type = CM_REP, .tid = 7,
		.rep = { .local_comm_id = 0x01020304, .remote_comm_id = 0x0a0b0c0d,
			 .local_qpn = 0x3c2b1a, .starting_psn = 0x6f5e4d,
			 .responder_resources = 9, .initiator_depth = 8,
			 .target_ack_delay = 15, .rnr_retry_count = 7, .srq = 1 },
	};
	struct cm_mad rej = {
		.type = CM_REJ,
		.rej = { .local_comm_id = 1, .remote_comm_id = 2, .answered = 1,
			 .reason = CM_REASON_CONSUMER },
	};
	struct cm_mad dreq = {
		.type = CM_DREQ,
		.dreq = { .local_comm_id = 3, .remote_comm_id = 4,
			  .remote_qpn = 0x0c0d0e },
	};
	struct cm_mad sidr_rep = {
		.type = CM_SIDR_REP,
		.sidr_rep = { .request_id = 5, .status = CM_SIDR_NO_QP,
			      .qpn = 0x0f0e0d, .qkey = 0x01234567,
			      .service_id = wire_cm_service_id(0x0111, 7174) },
	};
	struct cm_mad lap = {
		.type = CM_LAP,
		.lap = { .local_comm_id = 3, .remote_comm_id = 4,
			 .remote_qpn = 0x0c0d0e, .remote_response_timeout = 19,
			 .alternate = { .hop_limit = 64, .sl = 5 } },
	};
	struct cm_mad apr = {
		.type = CM_APR,
		.apr = { .local_comm_id = 4, .remote_comm_id = 3,
			 .status = CM_PATH_UNSUPPORTED },
	};
	struct cm_ip_header ip = { 4, 40001, { [12] = 10, 0, 0, 1 },
				   { [12] = 10, 0, 0, 2 } };

	wire_cm_ip_encode(&ip, req.req.private_data);
	datagram_print(&req);
	datagram_print(&rep);
	datagram_print(&rej);
	datagram_print(&dreq);
	datagram_print(&sidr_rep);
	datagram_print(&lap);
	datagram_print(&apr);
	return 0;
}
