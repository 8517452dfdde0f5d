/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests between pair.c, which the tests call, and end.c, which carries them
 * out in the process of the side. Plain bytes: both are one program.
 */
#ifndef ADAPTER_WIRE_H
#define ADAPTER_WIRE_H

#include "pair.h"

enum request_kind {
	REQ_OPEN,
	REQ_CLOSE,
	REQ_QP_CREATE,
	REQ_QP_DESTROY,
	REQ_MODIFY,
	REQ_QUERY,
	REQ_REG,
	REQ_DEREG,
	REQ_REREG,
	REQ_POST_SEND,
	REQ_BUILD_SEND,
	REQ_POST_RECV,
	REQ_POLL,
	REQ_FILL,
	REQ_SET,
	REQ_CHECK,
	REQ_PEEK,
	REQ_ARM,
	REQ_EVENT,
	REQ_ASYNC,
	REQ_AH_CREATE,
	REQ_AH_FROM_WC,
	REQ_AH_DESTROY,
	REQ_RUN,
	REQ_KINDS,
};

struct request {
	enum request_kind kind;
	int qp;
	int index;
	int count;
	int timeout_ms;
	int mask;
	int access;
	int pd;
	enum side_cq cq;
	uint64_t offset, length, seed;
	union {
		struct side_options opt;
		struct ibv_qp_attr attr;
		struct send_req send[MAX_WRS];
		struct recv_req recv[MAX_WRS];
		struct ibv_ah_attr ah;
		struct ibv_wc wc;
		struct {
			side_fn *fn;
			uint8_t note[NOTE_BYTES];
		};
	};
};

struct reply {
	int ret;
	int error;
	union {
		struct {
			uint64_t addr;
			uint32_t lkey, rkey, qpn;
			union ibv_gid gid;
		};
		struct {
			struct ibv_qp_attr attr;
			struct ibv_qp_init_attr init;
		};
		struct posted posted;
		struct polled polled;
		struct region region;
		uint64_t bad_at; /* UINT64_MAX: none */
		uint8_t note[NOTE_BYTES];
	};
};

/* Carries out `q` on `e`. */
void end_serve(struct end *e, const struct request *q, struct reply *r);

#endif
