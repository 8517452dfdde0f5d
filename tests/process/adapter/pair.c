/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests' calls: requests to a side, here or in its process. */
#include "pair.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "stream.h"
#include "wire.h"

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

pid_t thread_named(pid_t pid, const char *name)
{
	char path[300], found[32];
	struct dirent *entry;
	pid_t thread = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && !thread && (entry = readdir(tasks))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, entry->d_name);
		f = fopen(path, "re");
		if (f && fgets(found, sizeof(found), f) && !strncmp(found, name, strlen(name)))
			thread = (pid_t)strtol(entry->d_name, NULL, 10);
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return thread;
}

/* Where the threads of this process and its children are, if gdb is installed: a message that does
 * not come may wait for one of them. */
static void show_threads(void)
{
	char command[300];

	snprintf(command, sizeof(command),
		 "for p in %d $(cat /proc/%d/task/*/children); do "
		 "[ $p = $$ ] || timeout 20 gdb -batch -nx -p $p -ex 'thread apply all backtrace 12'; done 2>/dev/null | grep '^[T#]'",
		 (int)getpid(), (int)getpid());
	if (!access("/usr/bin/gdb", X_OK) && system(command))
		printf("    gdb shows nothing\n");
}

void fail_at(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	printf("    %s:%d: ", file, line);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	show_threads();
	_exit(1);
}

/* ---- what an RNIC has ---- */

void need_no_rnic(const char *why)
{
	if (!transport_under_test()->streams)
		return;
	printf("    left out: %s\n", why);
	fflush(stdout);
	_exit(77);
}

void need_rnr(void)
{
	need_no_rnic("a message that finds no receive ends its connections");
}

void need_arrival(void)
{
	need_no_rnic("a message is complete before it has arrived");
}

bool offers(enum ibv_wr_opcode opcode)
{
	const char *extensions = getenv("BUSBAR_IWARP_EXTENSIONS");

	switch (opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return !transport_under_test()->streams ||
		       (extensions && !strcmp(extensions, "on"));
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_LOCAL_INV:
		return true;
	default:
		return !transport_under_test()->streams;
	}
}

static void need_type(const struct side_options *opt)
{
	if (opt && opt->type && opt->type != IBV_QPT_RC)
		need_no_rnic("its queue pairs are of RC only");
}

/* ---- transport of the requests ---- */

static void request_send(struct side *s, const struct request *q)
{
	if (send(s->socket, q, sizeof(*q), MSG_NOSIGNAL) != sizeof(*q))
		fail("the other process is gone (request %d): %s", q->kind,
		     strerror(errno));
}

static void reply_receive(struct side *s, struct reply *r)
{
	ssize_t n;

	do {
		n = recv(s->socket, r, sizeof(*r), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(*r))
		fail("the other process died");
}

static void call(struct side *s, const struct request *q, struct reply *r)
{
	if (s->end) {
		memset(r, 0, sizeof(*r));
		end_serve(s->end, q, r);
		return;
	}
	request_send(s, q);
	reply_receive(s, r);
}

/* The other process is on another host, as it sees it: in the network namespace of which
 * ADAPTER_NETNS names the file. */
static void enter_other_network(void)
{
	const char *path = getenv("ADAPTER_NETNS");
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		fail("ADAPTER_NETNS=%s: %s", path, strerror(errno));
	close(fd);
}

/* The other process: serves until the socket closes. */
_Noreturn static void peer_main(int fd)
{
	static struct end e;
	static struct request q;
	static struct reply r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(fd, &q, sizeof(q), 0) == sizeof(q)) {
		memset(&r, 0, sizeof(r));
		end_serve(&e, &q, &r);
		if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
			break;
	}
	close(fd);
	exit(e.ctx ? 1 : 0); /* closed in order? */
}

void process_spawn(struct side *s, const struct side *others, int count)
{
	int fds[2], size = 1 << 20;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		fail("socketpair: %s", strerror(errno));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	fflush(stdout);
	s->pid = fork();
	if (s->pid < 0)
		fail("fork: %s", strerror(errno));
	if (s->pid == 0) {
		close(fds[0]);
		for (int i = 0; i < count; i++)
			close(others[i].socket);
		enter_other_network();
		peer_main(fds[1]);
	}
	close(fds[1]);
	s->socket = fds[0];
}

void process_end(struct side *s)
{
	int status;

	if (s->pid <= 0)
		return;
	close(s->socket);
	if (waitpid(s->pid, &status, 0) != s->pid)
		fail("waitpid: %s", strerror(errno));
	s->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail("the other process ended with status 0x%x", status);
}

void side_signal(struct side *s, int sig)
{
	if (s->pid <= 0)
		fail("no process of its own");
	kill(s->pid, sig);
}

void side_stop(struct side *s)
{
	siginfo_t info;

	side_signal(s, SIGSTOP);
	expect_eq(waitid(P_PID, (id_t)s->pid, &info, WSTOPPED), 0);
}

void side_kill(struct side *s)
{
	side_signal(s, SIGKILL);
	waitpid(s->pid, NULL, 0);
	close(s->socket);
	s->pid = 0;
	s->open = false;
}

void pair_respawn(struct pair *p)
{
	if (p->b.pid)
		process_end(&p->b);
	if (p->spares == 0)
		fail("test error: no spare process");
	p->b = p->spare[--p->spares];
}

/* ---- opening ---- */

void side_open(struct side *s, const struct side_options *opt)
{
	struct request q = { .kind = REQ_OPEN };
	struct reply r;

	need_type(opt);
	if (opt)
		q.opt = *opt;
	call(s, &q, &r);
	if (r.ret)
		fail("side not opened: %s", strerror(r.error));
	s->open = true;
	s->addr = r.addr;
	s->bytes = q.opt.bytes ? q.opt.bytes : 1 << 16;
	s->lkey = r.lkey;
	s->rkey = r.rkey;
	s->qpn[0] = r.qpn;
	s->gid = r.gid;
}

void side_close(struct side *s)
{
	struct request q = { .kind = REQ_CLOSE };
	struct reply r;

	if (!s->open)
		return;
	call(s, &q, &r);
	s->open = false;
	if (r.ret)
		fail("%d objects could not be destroyed", r.ret);
}

void pair_open(struct pair *p, const struct side_options *opt)
{
	side_open(&p->a, opt);
	side_open(&p->b, opt);
}

void pair_connect_qp(struct pair *p, int i)
{
	struct side *a = &p->a, *b = &p->b;
	const struct connection *c = &p->conn;

	expect_eq(side_to_init(a, i, c->access_a), 0);
	expect_eq(side_to_init(b, i, c->access_b), 0);
	if (transport_under_test()->streams) {
		stream_connect(p, i);
		return;
	}
	expect_eq(side_to_rtr(a, i, c, c->by_lid_a ? NULL : &b->gid, b->qpn[i], c->psn_b), 0);
	expect_eq(side_to_rtr(b, i, c, c->by_lid_b ? NULL : &a->gid, a->qpn[i], c->psn_a), 0);
	expect_eq(side_to_rts(a, i, c, c->psn_a), 0);
	expect_eq(side_to_rts(b, i, c, c->psn_b), 0);
}

void pair_start(struct pair *p, const struct side_options *opt)
{
	pair_open(p, opt);
	pair_connect_qp(p, 0);
}

void pair_end_soon(struct pair *p, uint8_t timeout, uint8_t retry_cnt)
{
	bool waits = transport_under_test()->waits;

	p->conn.timeout = waits ? 15 : timeout; /* 134 ms */
	p->conn.retry_cnt = waits ? 3 : retry_cnt;
}

void pair_reset_qp(struct pair *p, int i)
{
	expect_eq(side_to_state(&p->a, i, IBV_QPS_RESET), 0);
	expect_eq(side_to_state(&p->b, i, IBV_QPS_RESET), 0);
	/* A packet that was sent twice may still be on its way. */
	if (transport_under_test()->waits) {
		p->conn.psn_a = (p->conn.psn_a + 0x10000) & 0xffffff;
		p->conn.psn_b = (p->conn.psn_b + 0x10000) & 0xffffff;
	}
}

/* ---- QPs ---- */

int side_qp_create(struct side *s, const struct side_options *opt)
{
	struct request q = { .kind = REQ_QP_CREATE };
	struct reply r;

	need_type(opt);
	if (opt)
		q.opt = *opt;
	call(s, &q, &r);
	if (r.ret >= 0)
		s->qpn[r.ret] = r.qpn;
	errno = r.error;
	return r.ret;
}

int side_qp_destroy(struct side *s, int i)
{
	struct request q = { .kind = REQ_QP_DESTROY, .qp = i };
	struct reply r;

	call(s, &q, &r);
	return r.ret;
}

int side_modify(struct side *s, int i, const struct ibv_qp_attr *attr, int mask)
{
	struct request q = { .kind = REQ_MODIFY, .qp = i, .mask = mask,
			     .attr = *attr };
	struct reply r;

	call(s, &q, &r);
	return r.ret;
}

void side_query(struct side *s, int i, struct ibv_qp_attr *attr,
		struct ibv_qp_init_attr *init)
{
	struct request q = { .kind = REQ_QUERY, .qp = i };
	struct reply r;

	call(s, &q, &r);
	expect_eq(r.ret, 0);
	if (attr)
		*attr = r.attr;
	if (init)
		*init = r.init;
}

enum ibv_qp_state side_state(struct side *s, int i)
{
	struct ibv_qp_attr attr;

	side_query(s, i, &attr, NULL);
	return attr.qp_state;
}

void side_wait_state(struct side *s, int i, enum ibv_qp_state state)
{
	const uint64_t end = now_ms() + WAIT_MS;

	while (side_state(s, i) != state && now_ms() < end)
		usleep(1000);
	expect_eq(side_state(s, i), state);
}

int side_to_state(struct side *s, int i, enum ibv_qp_state state)
{
	return side_modify(s, i, &(struct ibv_qp_attr){ .qp_state = state },
			   IBV_QP_STATE);
}

static enum ibv_qp_type type_of(struct side *s, int i)
{
	struct ibv_qp_init_attr init;

	side_query(s, i, NULL, &init);
	return init.qp_type;
}

int side_to_init(struct side *s, int i, unsigned access_or_qkey)
{
	bool ud = type_of(s, i) == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access_or_qkey,
		.qkey = access_or_qkey,
	};

	return side_modify(s, i, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					IBV_QP_PORT |
					(ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static struct ibv_ah_attr address_of(const union ibv_gid *gid)
{
	/* Of every port of the adapter, and of the first host of a fabric (at_host.sh). */
	struct ibv_ah_attr attr = { .port_num = 1, .dlid = 1 };

	if (gid) {
		attr.is_global = 1;
		attr.grh = (struct ibv_global_route){ .dgid = *gid, .hop_limit = 64 };
		return attr;
	}
	/* Programs leave any values in the fields that do not count. */
	memset(&attr.grh, 0x5a, sizeof(attr.grh));
	return attr;
}

int side_to_rtr(struct side *s, int i, const struct connection *c,
		const union ibv_gid *gid, uint32_t qpn, uint32_t rq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.rq_psn = rq_psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = c->min_rnr_timer,
	};

	need_no_rnic("its queue pairs are connected by a connection manager");
	if (type_of(s, i) == IBV_QPT_UD)
		return side_to_state(s, i, IBV_QPS_RTR);
	attr.ah_attr = address_of(gid);
	return side_modify(s, i, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   (type_of(s, i) == IBV_QPT_UC ?
					    0 :
					    IBV_QP_MAX_DEST_RD_ATOMIC |
						    IBV_QP_MIN_RNR_TIMER));
}

int side_to_rts(struct side *s, int i, const struct connection *c,
		uint32_t sq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = sq_psn,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.max_rd_atomic = 4,
	};

	if (type_of(s, i) != IBV_QPT_RC)
		return side_modify(s, i, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return side_modify(s, i, &attr,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_MAX_QP_RD_ATOMIC);
}

/* ---- memory ---- */

struct region side_reg(struct side *s, uint64_t offset, uint64_t length,
		       int access, int pd)
{
	struct request q = { .kind = REQ_REG, .offset = offset,
			     .length = length, .access = access, .pd = pd };
	struct reply r;

	call(s, &q, &r);
	return r.region;
}

int side_dereg(struct side *s, int index)
{
	struct request q = { .kind = REQ_DEREG, .index = index };
	struct reply r;

	call(s, &q, &r);
	return r.ret;
}

struct region side_rereg(struct side *s, int index, int flags, int pd,
			 uint64_t offset, uint64_t length, int access)
{
	struct request q = { .kind = REQ_REREG, .index = index, .mask = flags,
			     .pd = pd, .offset = offset, .length = length,
			     .access = access };
	struct reply r;

	call(s, &q, &r);
	return r.region;
}

static void fill_bytes(struct side *s, enum request_kind kind, uint64_t offset,
		       uint64_t length, uint64_t seed)
{
	struct request q = { .kind = kind, .offset = offset, .length = length,
			     .seed = seed };
	struct reply r;

	if (offset + length > s->bytes)
		fail("test error: beyond the buffer");
	call(s, &q, &r);
}

void side_fill(struct side *s, uint64_t offset, uint64_t length, uint64_t seed)
{
	fill_bytes(s, REQ_FILL, offset, length, seed);
}

void side_set(struct side *s, uint64_t offset, uint64_t length, uint8_t value)
{
	fill_bytes(s, REQ_SET, offset, length, value);
}

/* A WRITE of a stream has completed, and nothing behind it has said that it was carried out. */
static bool writes_are_under_way;

static void note_completions(const struct polled *p)
{
	for (int i = 0; i < p->count; i++)
		if (p->wc[i].status == IBV_WC_SUCCESS)
			writes_are_under_way = transport_under_test()->streams &&
					       p->wc[i].opcode == IBV_WC_RDMA_WRITE;
}

bool side_holds(struct side *s, uint64_t offset, uint64_t length, uint64_t seed)
{
	struct request q = { .kind = REQ_CHECK, .offset = offset,
			     .length = length, .seed = seed };
	struct reply r;

	call(s, &q, &r);
	return r.bad_at == UINT64_MAX;
}

void side_check_at(const char *file, int line, struct side *s, uint64_t offset,
		   uint64_t length, uint64_t seed)
{
	struct request q = { .kind = REQ_CHECK, .offset = offset,
			     .length = length, .seed = seed };
	const uint64_t end = now_ms() + WAIT_MS;
	struct reply r;

	while (writes_are_under_way && !side_holds(s, offset, length, seed) && now_ms() < end)
		usleep(1000);
	call(s, &q, &r);
	if (r.bad_at != UINT64_MAX)
		fail_at(file, line, "wrong byte at %llu of %llu",
			(unsigned long long)r.bad_at,
			(unsigned long long)length);
}

void side_peek(struct side *s, uint64_t offset, void *to, uint32_t length)
{
	struct request q = { .kind = REQ_PEEK, .offset = offset,
			     .length = length };
	struct reply r;

	if (length > NOTE_BYTES)
		fail("test error: peek of %u bytes", length);
	call(s, &q, &r);
	memcpy(to, r.note, length);
}

/* ---- work ---- */

struct ibv_sge side_sge(const struct side *s, uint64_t offset, uint32_t length)
{
	return (struct ibv_sge){ .addr = s->addr + offset, .length = length,
				 .lkey = s->lkey };
}

static struct posted post_sends(struct side *s, enum request_kind kind, int qp,
				const struct send_req *req, int count)
{
	struct request q = { .kind = kind, .qp = qp, .count = count };
	struct reply r;

	for (int i = 0; i < count; i++)
		if (!offers(req[i].opcode))
			need_no_rnic("it has no immediate data, atomics and windows");
	memcpy(q.send, req, (size_t)count * sizeof(*req));
	call(s, &q, &r);
	return r.posted;
}

struct posted side_post_send(struct side *s, int qp, const struct send_req *req,
			     int count)
{
	return post_sends(s, REQ_POST_SEND, qp, req, count);
}

struct posted side_build_send(struct side *s, int qp, const struct send_req *req,
			      int count)
{
	return post_sends(s, REQ_BUILD_SEND, qp, req, count);
}

struct posted side_post_recv(struct side *s, int qp, const struct recv_req *req,
			     int count)
{
	struct request q = { .kind = REQ_POST_RECV, .qp = qp, .count = count };
	struct reply r;

	memcpy(q.recv, req, (size_t)count * sizeof(*req));
	call(s, &q, &r);
	return r.posted;
}

void side_recv(struct side *s, uint64_t wr_id, uint64_t offset, uint32_t length)
{
	struct recv_req req = { .wr_id = wr_id, .num_sge = 1,
				.sge = { side_sge(s, offset, length) } };

	expect_eq(side_post_recv(s, 0, &req, 1).ret, 0);
}

struct send_req send_req(const struct side *s, enum ibv_wr_opcode opcode,
			 uint64_t wr_id, uint64_t offset, uint32_t length)
{
	return (struct send_req){ .wr_id = wr_id, .opcode = opcode,
				  .flags = IBV_SEND_SIGNALED, .num_sge = 1,
				  .sge = { side_sge(s, offset, length) } };
}

struct send_req rdma_req(const struct side *s, const struct side *to,
			 enum ibv_wr_opcode opcode, uint64_t wr_id,
			 uint64_t offset, uint64_t offset_to, uint32_t length)
{
	struct send_req r = send_req(s, opcode, wr_id, offset, length);

	r.remote_addr = to->addr + offset_to;
	r.rkey = to->rkey;
	return r;
}

void side_send(struct side *s, uint64_t wr_id, uint64_t offset, uint32_t length)
{
	struct send_req req = send_req(s, IBV_WR_SEND, wr_id, offset, length);

	expect_eq(side_post_send(s, 0, &req, 1).ret, 0);
}

struct polled side_poll(struct side *s, enum side_cq cq, int want,
			int timeout_ms)
{
	struct request q = { .kind = REQ_POLL, .cq = cq, .count = want,
			     .timeout_ms = timeout_ms };
	struct reply r;

	call(s, &q, &r);
	note_completions(&r.polled);
	return r.polled;
}

struct ibv_wc side_wait(struct side *s, enum side_cq cq)
{
	struct polled p = side_poll(s, cq, 1, WAIT_MS);

	if (p.count != 1)
		fail("no completion within %d ms", WAIT_MS);
	return p.wc[0];
}

struct ibv_wc side_wait_ok(struct side *s, enum side_cq cq, uint64_t wr_id)
{
	struct ibv_wc wc = side_wait(s, cq);

	if (wc.wr_id != wr_id)
		fail("completion of wr_id %llu (%s) came instead of %llu",
		     (unsigned long long)wc.wr_id,
		     ibv_wc_status_str(wc.status), (unsigned long long)wr_id);
	expect_status(wc, IBV_WC_SUCCESS);
	return wc;
}

void side_expect_none(struct side *s, enum side_cq cq)
{
	struct polled p = side_poll(s, cq, 1, QUIET_MS);

	if (p.count)
		fail("unexpected completion of wr_id %llu: %s",
		     (unsigned long long)p.wc[0].wr_id,
		     ibv_wc_status_str(p.wc[0].status));
}

/* ---- events ---- */

int side_arm(struct side *s, enum side_cq cq, bool solicited_only)
{
	struct request q = { .kind = REQ_ARM, .cq = cq,
			     .index = solicited_only };
	struct reply r;

	call(s, &q, &r);
	return r.ret;
}

int side_event(struct side *s, int timeout_ms)
{
	struct request q = { .kind = REQ_EVENT, .timeout_ms = timeout_ms };
	struct reply r;

	call(s, &q, &r);
	return r.ret;
}

int side_async(struct side *s, int timeout_ms)
{
	struct request q = { .kind = REQ_ASYNC, .timeout_ms = timeout_ms };
	struct reply r;

	call(s, &q, &r);
	return r.ret;
}

/* ---- address handles ---- */

int side_ah_create(struct side *s, const struct ibv_ah_attr *attr)
{
	struct request q = { .kind = REQ_AH_CREATE, .ah = *attr };
	struct reply r;

	need_no_rnic("it has no datagrams");
	call(s, &q, &r);
	return r.ret;
}

int side_ah_to(struct side *s, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = address_of(gid);
	int ah = side_ah_create(s, &attr);

	expect(ah >= 0);
	return ah;
}

int side_ah_from_wc(struct side *s, const struct ibv_wc *wc, uint64_t offset)
{
	struct request q = { .kind = REQ_AH_FROM_WC, .wc = *wc,
			     .offset = offset };
	struct reply r;

	call(s, &q, &r);
	return r.ret;
}

void side_ah_destroy(struct side *s, int ah)
{
	struct request q = { .kind = REQ_AH_DESTROY, .index = ah };
	struct reply r;

	call(s, &q, &r);
	expect_eq(r.ret, 0);
}

/* ---- functions ---- */

struct running {
	pthread_t thread;
	struct side *side;
	struct request q;
	struct reply r;
};

static void *run_thread(void *arg)
{
	struct running *run = arg;

	end_serve(run->side->end, &run->q, &run->r);
	return NULL;
}

void side_start(struct side *s, side_fn *fn, const void *arg, size_t size)
{
	struct running *run = calloc(1, sizeof(*run));

	if (!run || size > NOTE_BYTES)
		fail("test error: note of %zu bytes", size);
	run->q.kind = REQ_RUN;
	run->q.fn = fn;
	if (size)
		memcpy(run->q.note, arg, size);
	run->side = s;
	s->thread = run;
	if (!s->end)
		request_send(s, &run->q);
	else if (pthread_create(&run->thread, NULL, run_thread, run))
		fail("no thread");
}

int side_join(struct side *s, void *arg, size_t size)
{
	struct running *run = s->thread;
	int ret;

	if (s->end)
		pthread_join(run->thread, NULL);
	else
		reply_receive(s, &run->r);
	if (size)
		memcpy(arg, run->r.note, size);
	ret = run->r.ret;
	s->thread = NULL;
	free(run);
	return ret;
}

/* The side may run another function meanwhile, if its process is ours. */
int side_run(struct side *s, side_fn *fn, void *arg, size_t size)
{
	struct request q = { .kind = REQ_RUN, .fn = fn };
	struct reply r;

	if (size > NOTE_BYTES)
		fail("test error: note of %zu bytes", size);
	if (size)
		memcpy(q.note, arg, size);
	call(s, &q, &r);
	if (size)
		memcpy(arg, r.note, size);
	return r.ret;
}
