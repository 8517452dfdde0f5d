/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds many idle connections between two processes, and prints what one costs.
 *
 *     rdmacm_idle COUNT [noqp]
 *
 * On the caller's side a connection needs a descriptor for its port, on the callee's
 * side none. scripts/bench-cm.sh prints the figures.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define BACKLOG 64
#define PROCESS_FDS 100 /* other descriptors of a process */

struct figures {
	double rss_bytes, seconds;
};

static bool with_qp = true;
static int figures_pipe[2];

static double rss_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long size, resident;

	CHECK(f && fscanf(f, "%ld %ld", &size, &resident) == 2);
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* All QPs share one CQ, as in a server. */
static void qp_make(struct rdma_cm_id *id, struct ibv_cq **cq)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!with_qp)
		return;
	if (!*cq)
		*cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = *cq;
	CHECK(*cq && rdma_create_qp(id, NULL, &attr) == 0);
}

static void serve(int fd, uint16_t count)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param param = { .retry_count = 7 };
	struct ibv_cq *cq = NULL;
	struct figures f = { 0 };
	unsigned up = 0;
	double before = 0;
	uint16_t port;

	cm_listener(ch, RDMA_PS_TCP, BACKLOG, &port);
	CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
	while (up < count) {
		struct rdma_cm_event *ev;

		CHECK(rdma_get_cm_event(ch, &ev) == 0);
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			qp_make(ev->id, &cq);
			CHECK(rdma_accept(ev->id, &param) == 0);
		} else {
			CHECK(ev->event == RDMA_CM_EVENT_ESTABLISHED);
			/* The first connection makes what all of them share. */
			if (!up++)
				before = rss_bytes();
		}
		rdma_ack_cm_event(ev);
	}
	f.rss_bytes = (rss_bytes() - before) / count;
	CHECK(write(figures_pipe[1], &f, sizeof(f)) == sizeof(f));
	pause();
}

static void call(struct rdma_event_channel *ch, uint16_t port, struct ibv_cq **cq)
{
	struct rdma_conn_param param = { .retry_count = 7 };
	struct rdma_cm_id *id = cm_caller(ch, RDMA_PS_TCP, port);

	qp_make(id, cq);
	CHECK(rdma_connect(id, &param) == 0);
	if (with_qp) {
		cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED);
		return;
	}
	cm_expect_ack(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(rdma_establish(id) == 0);
}

int main(int argc, char **argv)
{
	uint16_t count = (uint16_t)(argc > 1 ? atoi(argv[1]) : 1000);
	struct figures ours = { 0 }, theirs;
	struct rdma_event_channel *ch;
	struct ibv_cq *cq = NULL;
	struct cm_child server;
	struct rlimit limit;
	double before = 0;
	uint64_t start;
	uint16_t port;

	with_qp = argc < 3 || strcmp(argv[2], "noqp");
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_cur < count + (rlim_t)PROCESS_FDS) {
		printf("at most %lu descriptors\n", (unsigned long)limit.rlim_cur);
		return 77;
	}
	CHECK(pipe(figures_pipe) == 0);
	server = cm_fork(serve, count);
	CHECK(read(server.fd, &port, sizeof(port)) == sizeof(port));
	alarm(30);
	ch = rdma_create_event_channel();
	start = cm_now_ms();
	for (unsigned i = 0; i < count; i++) {
		call(ch, port, &cq);
		if (!i)
			before = rss_bytes();
	}
	CHECK(read(figures_pipe[0], &theirs, sizeof(theirs)) == sizeof(theirs));
	ours.seconds = (double)(cm_now_ms() - start) / 1000;
	ours.rss_bytes = (rss_bytes() - before) / count;
	printf("connections %u in %.2f s, one after the other\n", count,
	       ours.seconds);
	printf("caller_bytes %.0f\ncallee_bytes %.0f\n", ours.rss_bytes,
	       theirs.rss_bytes);
	/* All connections end at once when the peer is killed. */
	start = cm_now_ms();
	cm_child_kill(&server);
	for (unsigned i = 0; i < count; i++)
		cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED);
	printf("disconnected in %.2f s\n", (double)(cm_now_ms() - start) / 1000);
	return 0;
}
