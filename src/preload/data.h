/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listener to the data path of a program: the requests that it posts, by ibv_post_send() or
 * ibv_wr_*(), and the completions that it polls, by ibv_poll_cq() or ibv_start_poll(). For a
 * preloaded library; the library then has these functions of libibverbs, too: ibv_open_device,
 * ibv_import_device, ibv_close_device, ibv_create_cq, ibv_resize_cq, ibv_destroy_cq, ibv_create_qp,
 * ibv_query_qp and ibv_destroy_qp. Uses the public interface alone. A library that listens from the
 * beginning (`later` false) may have an ibv_close_device of its own instead; context_goes() is not
 * called then.
 *
 * Not heard: requests of the kinds that this header's libibverbs does not know, receives, queue
 * pairs that another process made (ibv_open_qp) or that a function of one adapter alone made.
 */
#ifndef PRELOAD_DATA_H
#define PRELOAD_DATA_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* A request, however it is posted. It is valid during the call. */
struct preload_request {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id;
	uint64_t remote_addr; /* of RDMA and atomic operations, else 0 */
	uint32_t rkey;
	bool signaled;        /* by its flag, or because its queue pair completes all */
	const struct ibv_sge *sge; /* NULL where the data is inline */
	int sge_count;
	uint64_t bytes;
};

/* Members may be NULL. They are called by threads of the program, at the same time. */
struct preload_listener {
	/* It is about to be posted. By ibv_wr_*(): ibv_wr_complete() is about to begin. The adapter may
	 * hold the lock of the queue pair, so nothing may be posted to it here. */
	void (*posting)(struct ibv_qp *qp, const struct preload_request *r);
	/* It was refused with `error` (positive); all that follow in the same call, too, each in a call
	 * of its own, in their order. */
	void (*refused)(struct ibv_qp *qp, const struct preload_request *r, int error);
	/* The program is about to see it. False: hide it. An event may tell of it nevertheless. Of an extended completion queue, fields that
	 * the queue cannot tell are 0; it is made to tell the number of the queue pair. */
	bool (*completion)(struct ibv_cq *cq, const struct ibv_wc *wc);
	/* A queue pair is about to be made. `cap` may be made larger; the program sees its own
	 * capacities nevertheless. Where the device has no room for more it is made as asked. */
	void (*qp_asks)(const struct ibv_qp_init_attr *attr, struct ibv_qp_cap *cap);
	/* A completion queue is about to be made or resized, for so many completions: how many more it
	 * may ask for. Where the device has no room for more it is made as asked. */
	uint32_t (*cq_asks)(uint32_t cqe);
	/* A queue pair exists; or it was about to go, and stays, as its destruction failed. */
	void (*qp_made)(struct ibv_qp *qp, bool completes_all);
	/* A queue pair is about to go. */
	void (*qp_goes)(struct ibv_qp *qp);
	/* A context is about to be closed. */
	void (*context_goes)(struct ibv_context *context);
	/* Requests and completions are heard from preload_hear() on, and not before: until then the
	 * program pays nothing (hear.h). The other members are called in any case. */
	bool later;
};

/* Once, when the library is loaded (in a constructor). */
void preload_listen(const struct preload_listener *listener);
/* For a listener with `later`. More than once is once. */
void preload_hear(void);
/* The function of the program's libibverbs, or of the preloaded library below: its request is not
 * heard. */
int preload_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* The same: its completions are not heard. */
int preload_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
/* How many more requests its send queue got by qp_asks() than the program asked for. */
uint32_t preload_more_send_wr(const struct ibv_qp *qp);
/* May a thread of the library post to it beside the program? Not if the program has said that it
 * uses the queue pair in one thread alone (a thread domain). */
bool preload_may_post(const struct ibv_qp *qp);
/* Takes one of the places that a completion queue got by cq_asks(), and gives it back. False: all are
 * taken, or the queue cannot tell of which queue pair a completion is. */
bool preload_take_cqe(const struct ibv_cq *cq);
void preload_give_cqe(const struct ibv_cq *cq);

#endif
