/* SPDX-License-Identifier: BSD-2-Clause */
/* A request of act.c, which act_end.c carries out in the side's process. */
#ifndef ADAPTER_ACT_NOTE_H
#define ADAPTER_ACT_NOTE_H

#include "act.h"

enum act_kind {
	ACT_OPEN, ACT_CLOSE, ACT_HASH, ACT_FILL, ACT_READ, ACT_REGISTER,
	ACT_REREGISTER, ACT_CONNECT, ACT_STATE, ACT_QUERY, ACT_ACCESS, ACT_RECREATE,
	ACT_DRAIN, ACT_SEND, ACT_RECV, ACT_SRQ_LIMIT, ACT_POLL, ACT_RESIZE,
	ACT_ARM, ACT_EVENT, ACT_ASYNC, ACT_KINDS,
};

struct act_note {
	enum act_kind kind;
	int q, which, value, flags, access;
	uint64_t offset, length, seed, iova;
	union {
		uint32_t qpn[PAIRS];
		struct act_address to;
		struct {
			struct ibv_wc wc[16];
			int count;
		};
		uint64_t hash;
		uint8_t bytes[512];
		struct region region;
		struct ibv_sge sge[SEND_SGES];
	};
	/* Of a send. */
	struct ibv_send_wr wr;
	int to_ah;
};
_Static_assert(sizeof(struct act_note) <= NOTE_BYTES, "fits a request");

/* A side_fn: `arg` is a struct act_note. */
int act_on_side(struct end *e, void *arg);

#endif
