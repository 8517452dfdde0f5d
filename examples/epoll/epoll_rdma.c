/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that answers questions of 64 bytes, and its client. Both sleep in epoll_wait() on two
 * descriptors: that of the connection manager's events, and that of a completion channel.
 * epoll_tcp.c is the same over TCP; scripts/bench-beside.sh runs both beside each other.
 *
 *	epoll-rdma serve ADDRESS PORT
 *	epoll-rdma ask ADDRESS PORT COUNT
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>

#include "times.h"

#define BYTES 64
/* A SEND without a completion frees its place in the queue with the next one that has one. */
#define SIGNAL_EACH 16

static struct rdma_event_channel *events;
static struct rdma_cm_id *id;               /* of the connection */
static struct ibv_comp_channel *completions;
static struct ibv_mr *mr;
static char question[BYTES], answer[BYTES];
static int epoll_fd;
static bool ended;
static unsigned sent;
static uint64_t *times, asked_ns;           /* the client's; NULL: this is the server */
static size_t wanted, answered;

static void watch(int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e))
		err(1, "epoll");
}

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)question, BYTES, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(id->qp, &wr, &bad))
		err(1, "ibv_post_recv");
}

/* Makes room for what comes back first. */
static void send_message(void)
{
	struct ibv_sge sge = { (uintptr_t)answer, BYTES, 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE }, *bad;

	post_receive();
	if (++sent % SIGNAL_EACH == 0)
		wr.send_flags |= IBV_SEND_SIGNALED;
	asked_ns = times ? now_ns() : 0;
	if (ibv_post_send(id->qp, &wr, &bad))
		err(1, "ibv_post_send");
}

static void prepare(struct rdma_cm_id *connection)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = {
		.max_send_wr = 2 * SIGNAL_EACH, .max_recv_wr = 4, .max_send_sge = 1,
		.max_recv_sge = 1, .max_inline_data = BYTES } };

	id = connection;
	completions = ibv_create_comp_channel(id->verbs);
	if (!completions)
		err(1, "ibv_create_comp_channel");
	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 64, NULL, completions, 0);
	if (!attr.send_cq || ibv_req_notify_cq(attr.send_cq, 0) || rdma_create_qp(id, NULL, &attr))
		err(1, "rdma_create_qp");
	mr = ibv_reg_mr(id->pd, question, BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		err(1, "ibv_reg_mr");
	watch(completions->fd);
	if (!times)
		post_receive(); /* before the client may send */
}

static void on_message(void)
{
	if (times)
		times[answered] = now_ns() - asked_ns;
	answered++;
	if (!times || answered < wanted)
		send_message();
	else
		rdma_disconnect(id);
}

static void on_completions(void)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(completions, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		err(1, "ibv_req_notify_cq");
	while (ibv_poll_cq(cq, 1, &wc) > 0) {
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			errx(1, "%s", ibv_wc_status_str(wc.status));
		if (wc.opcode & IBV_WC_RECV)
			on_message();
	}
}

static void on_event(void)
{
	struct rdma_conn_param parameters = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_event *event;
	int ret = 0;

	if (rdma_get_cm_event(events, &event))
		return;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(event->id, 2000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		prepare(event->id);
		ret = rdma_connect(id, &parameters);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		prepare(event->id);
		ret = rdma_accept(id, &parameters);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (times)
			send_message();
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		ended = true;
		break;
	default:
		errx(1, "%s", rdma_event_str(event->event));
	}
	if (ret)
		err(1, "after %s", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

int main(int argc, char *argv[])
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct rdma_cm_id *first;

	if (argc < 4 || inet_pton(AF_INET, argv[2], &at.sin_addr) != 1 ||
	    strcmp(argv[1], argc == 5 ? "ask" : "serve"))
		errx(2, "usage: epoll-rdma serve ADDRESS PORT | ask ADDRESS PORT COUNT");
	at.sin_port = htons((uint16_t)atoi(argv[3]));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	events = rdma_create_event_channel();
	if (!events || rdma_create_id(events, &first, NULL, RDMA_PS_TCP))
		err(1, "rdma_create_id");
	watch(events->fd);
	if (argc == 5) {
		wanted = WARM_UP + (size_t)atoi(argv[4]);
		times = calloc(wanted, sizeof(*times));
		if (!times || rdma_resolve_addr(first, NULL, (struct sockaddr *)&at, 2000))
			err(1, "%s", argv[2]);
	} else {
		if (rdma_bind_addr(first, (struct sockaddr *)&at) || rdma_listen(first, 1))
			err(1, "%s port %s", argv[2], argv[3]);
		puts("listening");
		fflush(stdout);
	}
	while (!ended) {
		struct epoll_event ready[2];
		int n = epoll_wait(epoll_fd, ready, 2, -1);

		for (int i = 0; i < n; i++) {
			if (ready[i].data.fd == events->fd)
				on_event();
			else
				on_completions();
		}
	}
	if (times && answered < wanted)
		errx(1, "the server has closed the connection");
	if (times)
		times_print(times + WARM_UP, wanted - WARM_UP);
	return 0;
}
