/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many_latency [COUNT [LIMIT]]: half of a round trip of 64 bytes by SEND between two processes,
 * one of them alone, then with COUNT (1,000) connected queue pairs: all messages on one of
 * them, and each message on the next one. The medians of both, as multiples of the first; fails
 * above LIMIT (1.2) for the former. Not a test: it measures.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64, ROUNDS = 20000, WARM = 2000, LIMIT_S = 60, COUNT_MAX = 60000 };

struct side {
	int id, socket, count;
	uint32_t *qpn[2]; /* of both, shared */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp **qp;
	struct ibv_mr *mr;
	uint8_t *in; /* BYTES for each queue pair */
	union ibv_gid gid;
};

#define expect(cond)                                                     \
	do {                                                             \
		if (!(cond)) {                                           \
			printf("%s:%d: expected %s (errno %d)\n",        \
			       __FILE__, __LINE__, #cond, errno);        \
			exit(1);                                         \
		}                                                        \
	} while (0)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void meet(struct side *s)
{
	char byte = 'x';

	expect(send(s->socket, &byte, 1, MSG_NOSIGNAL) == 1);
	expect(recv(s->socket, &byte, 1, 0) == 1);
}

static void open_side(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	size_t bytes = (size_t)s->count * BYTES;

	expect(list && list[0]);
	s->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	expect(s->ctx && !ibv_query_gid(s->ctx, 1, 0, &s->gid));
	s->pd = ibv_alloc_pd(s->ctx);
	s->send_cq = ibv_create_cq(s->ctx, 2 * s->count, NULL, NULL, 0);
	s->recv_cq = ibv_create_cq(s->ctx, 2 * s->count, NULL, NULL, 0);
	s->in = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	s->qp = calloc((size_t)s->count, sizeof(*s->qp));
	expect(s->pd && s->send_cq && s->recv_cq && s->in && s->qp);
	memset(s->in, 0, bytes);
	s->mr = ibv_reg_mr(s->pd, s->in, bytes, IBV_ACCESS_LOCAL_WRITE);
	expect(s->mr);
}

static void post_receive(struct side *s, int i)
{
	struct ibv_sge sge = { (uintptr_t)(s->in + (size_t)i * BYTES), BYTES, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1 }, *bad;

	expect(!ibv_post_recv(s->qp[i], &wr, &bad));
}

static void create(struct side *s)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = s->send_cq, .recv_cq = s->recv_cq,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 2, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = BYTES },
	};

	for (int i = 0; i < s->count; i++) {
		s->qp[i] = ibv_create_qp(s->pd, &init);
		expect(s->qp[i]);
		s->qpn[s->id][i] = s->qp[i]->qp_num;
	}
}

static void connect_one(struct side *s, int i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	expect(!ibv_modify_qp(s->qp[i], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_ACCESS_FLAGS));
	post_receive(s, i);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = s->qpn[!s->id][i], .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
			     .grh = { .dgid = s->gid, .hop_limit = 64 } },
	};
	expect(!ibv_modify_qp(s->qp[i], &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						    IBV_QP_MAX_DEST_RD_ATOMIC |
						    IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7,
				  .rnr_retry = 7 };
	expect(!ibv_modify_qp(s->qp[i], &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						    IBV_QP_MAX_QP_RD_ATOMIC));
}

static void say(struct side *s, int i)
{
	uint8_t text[BYTES] = { 0 };
	struct ibv_sge sge = { (uintptr_t)text, BYTES, 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE }, *bad;

	expect(!ibv_post_send(s->qp[i], &wr, &bad));
}

static void hear(struct side *s, int i)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(s->recv_cq, 1, &wc))
		;
	expect(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)i);
	post_receive(s, i);
	while (ibv_poll_cq(s->send_cq, 1, &wc))
		expect(wc.status == IBV_WC_SUCCESS);
}

static int by_time(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The median of half a round trip in ns, on the asking side. */
static double ping_pong(struct side *s, int used)
{
	static uint32_t took[ROUNDS];

	meet(s);
	for (int r = -WARM; r < ROUNDS; r++) {
		int i = (r + WARM) % used;
		uint64_t began = now_ns();

		if (!s->id)
			say(s, i);
		hear(s, i);
		if (s->id)
			say(s, i);
		if (r >= 0)
			took[r] = (uint32_t)(now_ns() - began);
	}
	qsort(took, ROUNDS, sizeof(took[0]), by_time);
	return took[ROUNDS / 2] / 2.0;
}

static void close_side(struct side *s)
{
	for (int i = 0; i < s->count; i++)
		expect(!ibv_destroy_qp(s->qp[i]));
	expect(!ibv_dereg_mr(s->mr) && !ibv_destroy_cq(s->send_cq) &&
	       !ibv_destroy_cq(s->recv_cq) && !ibv_dealloc_pd(s->pd) &&
	       !ibv_close_device(s->ctx));
	free(s->in);
	free(s->qp);
}

/* Connects `count`; half round trips on one and on all in turns. */
static void measure(struct side *s, int count, double *one, double *all)
{
	s->count = count;
	open_side(s);
	create(s);
	meet(s);
	for (int i = 0; i < count; i++)
		connect_one(s, i);
	*one = ping_pong(s, 1);
	*all = ping_pong(s, count);
	meet(s);
	close_side(s);
	meet(s);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000, fds[2], status;
	double limit = argc > 2 ? atof(argv[2]) : 1.2, alone, one, all, again;
	struct side s = { .id = 0 };
	pid_t child;

	expect(count > 0 && count <= COUNT_MAX);
	for (int i = 0; i < 2; i++) {
		s.qpn[i] = mmap(NULL, (size_t)count * sizeof(uint32_t), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		expect(s.qpn[i] != MAP_FAILED);
	}
	expect(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	child = fork();
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	s.id = child ? 0 : 1;
	s.socket = fds[s.id];
	close(fds[!s.id]);
	alarm(LIMIT_S);
	measure(&s, 1, &alone, &all);
	measure(&s, count, &one, &all);
	measure(&s, 1, &again, &again);
	if (!child)
		return 0;
	expect(waitpid(child, &status, 0) == child && !status);
	if (again < alone)
		alone = again;
	printf("alone %.0f ns; with %d connected: on one %.0f ns (%.2f), on each in turn %.0f ns (%.2f)\n",
	       alone, count, one, one / alone, all, all / alone);
	return one > limit * alone;
}
