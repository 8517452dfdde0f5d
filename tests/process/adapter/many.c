/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many COUNT: two processes with COUNT connected queue pairs each (10,000), and
 * a message in each direction on every one of them, twice. It prints what they
 * cost in time and memory, and fails when a message is lost, doubled or found
 * in the wrong place, or when something is left behind.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

enum { MESSAGE = 16, ROUNDS = 2, BATCH = 64, LIMIT_S = 120, MAX_COUNT = 60000 };

struct side {
	int id;      /* 0 or 1 */
	int socket;  /* to the other one */
	int count;
	uint32_t *qpn[2]; /* of both, shared */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp **qp;
	struct ibv_mr *mr;
	uint8_t *out, *in; /* MESSAGE bytes for each QP */
	uint8_t *seen;
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

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Resident memory of this process, in KiB. */
static long resident_kib(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	long kib = 0;

	expect(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

/* Both are here. The other's death is an end of file. */
static void meet(struct side *s)
{
	char byte = 'x';

	expect(send(s->socket, &byte, 1, MSG_NOSIGNAL) == 1);
	expect(recv(s->socket, &byte, 1, 0) == 1);
}

static void open_side(struct side *s)
{
	size_t bytes = (size_t)s->count * MESSAGE;
	struct ibv_device **list = ibv_get_device_list(NULL);

	expect(list && list[0]);
	s->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	expect(s->ctx);
	expect(!ibv_query_gid(s->ctx, 1, 0, &s->gid));
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 2 * s->count, NULL, NULL, 0);
	s->out = aligned_alloc(4096, (2 * bytes + 4095) & ~(size_t)4095);
	s->seen = calloc((size_t)s->count, 1);
	s->qp = calloc((size_t)s->count, sizeof(*s->qp));
	expect(s->pd && s->cq && s->out && s->seen && s->qp);
	s->in = s->out + bytes;
	memset(s->out, 0, 2 * bytes);
	s->mr = ibv_reg_mr(s->pd, s->out, 2 * bytes, IBV_ACCESS_LOCAL_WRITE);
	expect(s->mr);
}

static void create_qps(struct side *s)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	for (int i = 0; i < s->count; i++) {
		s->qp[i] = ibv_create_qp(s->pd, &init);
		expect(s->qp[i]);
		s->qpn[s->id][i] = s->qp[i]->qp_num;
	}
}

static void connect_qp(struct side *s, struct ibv_qp *qp, uint32_t to)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	expect(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					      IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = to, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
			     .grh = { .dgid = s->gid, .hop_limit = 64 } },
	};
	expect(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV |
					      IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN |
					      IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18,
				  .retry_cnt = 7, .rnr_retry = 7 };
	expect(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
					      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					      IBV_QP_RNR_RETRY |
					      IBV_QP_MAX_QP_RD_ATOMIC));
}

/* What side `from` says to the other one on QP `i` in a round. */
static void text(uint8_t to[MESSAGE], int from, int i, int round)
{
	const int words[MESSAGE / sizeof(int)] = { from, i, round, ~i };

	memcpy(to, words, MESSAGE);
}

static void post_receives(struct side *s)
{
	for (int i = 0; i < s->count; i++) {
		struct ibv_sge sge = { (uintptr_t)(s->in + (size_t)i * MESSAGE),
				       MESSAGE, s->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = (uint64_t)i, .num_sge = 1,
					  .sg_list = &sge };
		struct ibv_recv_wr *bad;

		expect(!ibv_post_recv(s->qp[i], &wr, &bad));
	}
}

static void post_sends(struct side *s, int round)
{
	for (int i = 0; i < s->count; i++) {
		uint8_t *out = s->out + (size_t)i * MESSAGE;
		struct ibv_sge sge = { (uintptr_t)out, MESSAGE, s->mr->lkey };
		struct ibv_send_wr wr = { .wr_id = (uint64_t)i, .num_sge = 1,
					  .sg_list = &sge, .opcode = IBV_WR_SEND };
		struct ibv_send_wr *bad;

		text(out, s->id, i, round);
		expect(!ibv_post_send(s->qp[i], &wr, &bad));
	}
}

static void take(struct side *s, const struct ibv_wc *wc, int round)
{
	int i = (int)wc->wr_id;
	uint8_t want[MESSAGE];

	expect(wc->status == IBV_WC_SUCCESS);
	expect(i >= 0 && i < s->count && wc->qp_num == s->qp[i]->qp_num);
	/* Bit 0: sent, bit 1: received; each once. */
	if (wc->opcode == IBV_WC_RECV) {
		text(want, !s->id, i, round);
		expect(wc->byte_len == MESSAGE);
		expect(!memcmp(s->in + (size_t)i * MESSAGE, want, MESSAGE));
		expect(!(s->seen[i] & 2));
		s->seen[i] |= 2;
	} else {
		expect(!(s->seen[i] & 1));
		s->seen[i] |= 1;
	}
}

static void run_round(struct side *s, int round)
{
	struct ibv_wc wc[BATCH];

	memset(s->seen, 0, (size_t)s->count);
	post_receives(s);
	meet(s);
	post_sends(s, round);
	for (int left = 2 * s->count; left > 0;) {
		int n = ibv_poll_cq(s->cq, BATCH, wc);

		expect(n >= 0);
		for (int k = 0; k < n; k++)
			take(s, &wc[k], round);
		left -= n;
	}
	meet(s);
}

static void close_side(struct side *s)
{
	for (int i = 0; i < s->count; i++)
		expect(!ibv_destroy_qp(s->qp[i]));
	expect(!ibv_dereg_mr(s->mr));
	expect(!ibv_destroy_cq(s->cq));
	expect(!ibv_dealloc_pd(s->pd));
	expect(!ibv_close_device(s->ctx));
	free(s->qp);
	free(s->seen);
	free(s->out);
}

static void run_side(struct side *s)
{
	double start, created, connected, carried, end;
	long before, after;

	open_side(s);
	before = resident_kib();
	start = now_s();
	create_qps(s);
	created = now_s();
	meet(s);
	for (int i = 0; i < s->count; i++)
		connect_qp(s, s->qp[i], s->qpn[!s->id][i]);
	connected = now_s();
	meet(s);
	for (int round = 0; round < ROUNDS; round++)
		run_round(s, round);
	carried = now_s();
	after = resident_kib();
	close_side(s);
	end = now_s();
	meet(s);
	if (s->id)
		return;
	printf("%d queue pairs in each of two processes, %.1f KiB each\n",
	       s->count, (double)(after - before) / s->count);
	printf("create %.1f us, connect %.1f us, destroy %.1f us each; "
	       "%.2f us for each of %d messages\n",
	       (created - start) * 1e6 / s->count,
	       (connected - created) * 1e6 / s->count,
	       (end - carried) * 1e6 / s->count,
	       (carried - connected) * 1e6 / (2.0 * ROUNDS * s->count),
	       2 * ROUNDS * s->count);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 10000;
	struct side s = { .count = count };
	int pair[2], status;
	uint32_t *shared;
	pid_t pid;

	expect(count > 0 && count <= MAX_COUNT);
	shared = mmap(NULL, 2 * sizeof(*shared) * (size_t)count,
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(shared != MAP_FAILED);
	s.qpn[0] = shared;
	s.qpn[1] = shared + count;
	expect(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	alarm(LIMIT_S);
	pid = fork();
	expect(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT_S);
		s.id = 1;
	}
	s.socket = pair[s.id];
	close(pair[!s.id]);
	run_side(&s);
	if (s.id)
		return 0;
	expect(waitpid(pid, &status, 0) == pid);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return 0;
}
