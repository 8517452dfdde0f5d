/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stall [ROUNDS [MILLISECONDS [all]]]: two queue pairs of this process, of which one READs from memory
 * on demand. In each round it READs from a page that was never used, and after these milliseconds (1)
 * once more from there. Prints how many milliseconds all rounds took, without what the program
 * slept. The data is checked, and that completions come once and in their order.
 *
 * With "all" it does this in all ways: posting by ibv_post_send() or ibv_wr_*(), polling by
 * ibv_poll_cq(), ibv_start_poll() or with events, completions by flag or of all requests (sq_sig_all). Each
 * way has one more round, in which the send queue is filled with all requests that were asked for, and
 * prints a line. At the end it waits until the shield's thread, if there is one, does not wake any more.
 */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, BYTES = 100, QUEUE = 16 };
enum polling { POLL, START_POLL, EVENTS, POLLINGS };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *to, *from;
static size_t page; /* of the next round */
static struct {
	bool builders, all;
	enum polling polling;
} way;
static uint64_t next_id = 1, next_seen = 1;

static void need(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && *list, "device");
	context = ibv_open_device(*list);
	need(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	need(pd && channel, "objects");
}

static void open_cq(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };

	if (way.polling == START_POLL)
		cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &init));
	else
		cq = ibv_create_cq(context, 64, NULL, way.polling == EVENTS ? channel : NULL, 0);
	need(cq != NULL, "completion queue");
	need(way.polling != EVENTS || !ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
}

static struct ibv_qp *open_qp(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .sq_sig_all = way.all, .pd = pd,
		.cap = { .max_send_wr = QUEUE, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (way.builders ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	need(qp != NULL, "ibv_create_qp");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS), "INIT");
	return qp;
}

static void connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	/* The smallest RNR delay is 1.28 ms. */
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 14, .max_rd_atomic = 4,
		.timeout = 1, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 },
	};

	need(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), "ibv_query_gid");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static struct ibv_mr *region(size_t bytes, int access)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	need(at != MAP_FAILED, "mmap");
	mr = ibv_reg_mr(pd, at, bytes, access);
	need(mr != NULL, "ibv_reg_mr");
	return mr;
}

/* ---- posting ---- */

static void post_plain(struct ibv_qp *qp, size_t at)
{
	struct ibv_sge sge = { (uintptr_t)to->addr + at, BYTES, to->lkey };
	struct ibv_send_wr wr = {
		.wr_id = next_id++, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = way.all ? 0 : IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)from->addr + at, from->rkey },
	}, *bad;

	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void post_built(struct ibv_qp *qp, size_t at)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ex->wr_id = next_id++;
	ex->wr_flags = way.all ? 0 : IBV_SEND_SIGNALED;
	ibv_wr_rdma_read(ex, from->rkey, (uintptr_t)from->addr + at);
	ibv_wr_set_sge(ex, to->lkey, (uintptr_t)to->addr + at, BYTES);
	need(!ibv_wr_complete(ex), "ibv_wr_complete");
}

/* The bytes of slot `i` of the page. */
static void post_read(struct ibv_qp *qp, size_t i)
{
	size_t at = page * PAGE + i * 2 * BYTES;

	memset((char *)from->addr + at, (int)(page + i) % 255 + 1, BYTES);
	if (way.builders)
		post_built(qp, at);
	else
		post_plain(qp, at);
}

/* ---- polling ---- */

static void see(uint64_t id, enum ibv_wc_status status)
{
	if (status == IBV_WC_SUCCESS && id == next_seen) {
		next_seen++;
		return;
	}
	printf("completion of %ju, not %ju, with %s\n", (uintmax_t)id, (uintmax_t)next_seen,
	       ibv_wc_status_str(status));
	exit(1);
}

static int poll_plain(void)
{
	struct ibv_wc wc[3];
	int n = ibv_poll_cq(cq, 3, wc);

	need(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++)
		see(wc[i].wr_id, wc[i].status);
	return n;
}

static void poll_extended(void)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	struct ibv_poll_cq_attr attr = { 0 };

	if (ibv_start_poll(ex, &attr))
		return;
	do
		see(ex->wr_id, ex->status);
	while (!ibv_next_poll(ex));
	ibv_end_poll(ex);
}

/* Arms the queue whenever it has seen a completion, and not for an event without one: since it was
 * armed last, an event means that there is a completion. */
static void poll_by_events(void)
{
	struct ibv_cq *of;
	void *own;

	if (poll_plain()) {
		need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		return;
	}
	need(!ibv_get_cq_event(channel, &of, &own), "ibv_get_cq_event");
	ibv_ack_cq_events(of, 1);
}

static void finish(void)
{
	while (next_seen != next_id)
		if (way.polling == START_POLL)
			poll_extended();
		else if (way.polling == EVENTS)
			poll_by_events();
		else
			poll_plain();
}

/* ---- rounds ---- */

/* Two READs, or as many as the queue takes. Microseconds, without the time behind the first. */
static uint64_t round_trip(struct ibv_qp *qp, unsigned reads, long interval_ms)
{
	const struct timespec interval = { 0, interval_ms * 1000000 };
	uint64_t began_us = now_us(), slept_us;

	post_read(qp, 0);
	slept_us = now_us();
	nanosleep(&interval, NULL);
	slept_us = now_us() - slept_us;
	for (unsigned i = 1; i < reads; i++)
		post_read(qp, i);
	finish();
	for (unsigned i = 0; i < reads; i++) {
		size_t at = page * PAGE + i * 2 * BYTES;

		need(!memcmp((char *)from->addr + at, (char *)to->addr + at, BYTES), "data");
	}
	page++;
	return now_us() - began_us - slept_us;
}

/* The milliseconds of all rounds. */
static uint64_t go(size_t rounds, long interval_ms, bool full)
{
	struct ibv_qp *a, *b;
	uint64_t us = 0;

	open_cq();
	a = open_qp();
	b = open_qp();
	connect_qp(a, b);
	connect_qp(b, a);
	for (size_t i = 0; i < rounds; i++)
		us += round_trip(a, 2, interval_ms);
	if (full)
		round_trip(a, QUEUE, interval_ms);
	need(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq), "the end");
	return (us + 999) / 1000;
}

static void go_all_ways(size_t rounds, long interval_ms)
{
	static const char *const names[] = { "ibv_poll_cq", "ibv_start_poll", "events" };

	for (unsigned i = 0; i < 2 * 2 * POLLINGS; i++) {
		way.builders = i & 1;
		way.all = i & 2;
		way.polling = (enum polling)(i / 4);
		printf("%s %s %s: %ju ms\n", way.builders ? "ibv_wr_*" : "ibv_post_send",
		       names[way.polling], way.all ? "sq_sig_all" : "flag",
		       (uintmax_t)go(rounds, interval_ms, true));
	}
}

/* ---- the shield's thread ---- */

/* How often it has run. -1: there is none. */
static long watcher_runs(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *d;
	long runs = -1;

	while (tasks && runs < 0 && (d = readdir(tasks))) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f) && !strcmp(name, "odp-shield\n")) {
			fclose(f);
			snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", d->d_name);
			f = fopen(path, "re");
			need(f && fscanf(f, "%*u %*u %ld", &runs) == 1, "schedstat");
		}
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return runs;
}

/* It looks every 2.5 ms while it looks at all. */
static void wait_until_idle(void)
{
	const struct timespec window = { 0, 250000000 };
	long before, runs = watcher_runs();

	for (int i = 0; runs >= 0; i++) {
		before = runs;
		nanosleep(&window, NULL);
		runs = watcher_runs();
		if (runs == before)
			return;
		need(i < 80, "a thread of the shield that sleeps");
	}
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	long interval_ms = argc > 2 ? atol(argv[2]) : 1;
	size_t pages = 2 * 2 * POLLINGS * (rounds + 1);

	open_device();
	from = region(pages * PAGE, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE |
				    IBV_ACCESS_REMOTE_READ);
	to = region(pages * PAGE, IBV_ACCESS_LOCAL_WRITE);
	if (argc > 3) {
		go_all_ways(rounds, interval_ms);
		wait_until_idle();
	} else {
		printf("%ju ms\n", (uintmax_t)go(rounds, interval_ms, false));
	}
	return ibv_dereg_mr(to) || ibv_dereg_mr(from) || ibv_destroy_comp_channel(channel) ||
	       ibv_dealloc_pd(pd) || ibv_close_device(context);
}
