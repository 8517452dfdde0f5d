/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending from queue pair 1; see qp1.h. */
#include "transport/fabric/qp1.h"

#include <errno.h>
#include <stdatomic.h>

#include "transport/fabric/packets.h"
#include "transport/packet/base/train.h"

static struct packet_port *_Atomic port;

void fabric_qp1_start(struct packet_port *p)
{
	atomic_store(&port, p);
}

struct packet_port *fabric_qp1_port(void)
{
	return atomic_load(&port);
}

int fabric_qp1_emit(const struct ibv_ah_attr *to, const union ibv_gid *source,
		    const uint8_t mad[HCA_GSI_MAD_BYTES])
{
	struct packet_port *by = atomic_load(&port);
	const struct packet_frame f = {
		.rc = { .op = RC_SEND, .flags = RC_FIRST | RC_LAST, .bytes = HCA_GSI_MAD_BYTES },
		.service = PACKET_UD,
		.dst_qpn = HCA_GSI_QPN,
		.src_qpn = HCA_GSI_QPN,
		.qkey = HCA_GSI_QKEY,
	};
	struct icrc_series series = { 0 };
	struct packet_route route;
	struct packet_train train;
	struct iovec *iov;

	if (!by)
		return -ENETDOWN;
	if (fabric_medium.address(to, source, &route))
		return -EHOSTUNREACH;
	packet_train_open(&train, by, HCA_GSI_QPN, &route, &series);
	iov = packet_train_begin(&train, &f);
	*iov = (struct iovec){ (void *)(uintptr_t)mad, HCA_GSI_MAD_BYTES };
	packet_train_end(&train, 1);
	return packet_train_emit(&train);
}
