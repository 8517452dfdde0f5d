/* SPDX-License-Identifier: BSD-2-Clause */
/* See cm_help.h. */
#include "cm_help.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define TEST_LIMIT_S 30

/* Looks in a forked process, because some tests fork before they open devices. */
static bool device_present(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct ibv_device **list = ibv_get_device_list(NULL);

		_exit(list && list[0] ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int cm_main(int argc, char **argv, const struct cm_case *cases, size_t count)
{
	if (!device_present())
		return 77;
	for (size_t i = 0; i < count; i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name))
			continue;
		alarm(TEST_LIMIT_S);
		cases[i].run();
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		printf("%s\n", cases[i].name);
	return 1;
}

struct sockaddr *cm_loopback(uint16_t port)
{
	static _Thread_local struct sockaddr_in sin;

	memset(&sin, 0, sizeof(sin));
	sin.sin_family = AF_INET;
	sin.sin_port = htons(port);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return (struct sockaddr *)&sin;
}

struct rdma_cm_event *cm_expect(struct rdma_event_channel *ch,
				enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;

	CHECK(rdma_get_cm_event(ch, &ev) == 0);
	if (ev->event != type)
		fprintf(stderr, "got %s, status %d, instead of %s\n",
			rdma_event_str(ev->event), ev->status,
			rdma_event_str(type));
	CHECK(ev->event == type);
	return ev;
}

int cm_expect_ack(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev = cm_expect(ch, type);
	int status = ev->status;

	CHECK(rdma_ack_cm_event(ev) == 0);
	return status;
}

void cm_expect_quiet(struct rdma_event_channel *ch, int ms)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };

	CHECK(poll(&pfd, 1, ms) == 0);
}

struct rdma_cm_id *cm_listener(struct rdma_event_channel *ch,
			       enum rdma_port_space ps, int backlog,
			       uint16_t *port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, ps) == 0);
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
	CHECK(rdma_listen(id, backlog) == 0);
	*port = ntohs(rdma_get_src_port(id));
	CHECK(*port != 0);
	return id;
}

struct rdma_cm_id *cm_caller(struct rdma_event_channel *ch,
			     enum rdma_port_space ps, uint16_t port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, ps) == 0);
	CHECK(rdma_resolve_addr(id, NULL, cm_loopback(port), 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(id->verbs && id->port_num);
	CHECK(rdma_resolve_route(id, 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	return id;
}

void cm_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(id->qp && id->send_cq && id->recv_cq && id->recv_cq_channel);
}

void cm_pair_make(struct cm_pair *p)
{
	struct rdma_conn_param param = { .responder_resources = 2,
					 .initiator_depth = 1,
					 .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_event *ev;

	p->caller_ch = rdma_create_event_channel();
	p->callee_ch = rdma_create_event_channel();
	CHECK(p->caller_ch && p->callee_ch);
	p->listener = cm_listener(p->callee_ch, RDMA_PS_TCP, 8, &p->port);
	p->caller = cm_caller(p->caller_ch, RDMA_PS_TCP, p->port);
	cm_qp(p->caller);
	CHECK(rdma_connect(p->caller, &param) == 0);
	ev = cm_expect(p->callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->callee = ev->id;
	CHECK(ev->listen_id == p->listener);
	cm_qp(p->callee);
	CHECK(rdma_accept(p->callee, &ev->param.conn) == 0);
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(cm_expect_ack(p->caller_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(cm_expect_ack(p->callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
}

void cm_id_free(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	CHECK(rdma_destroy_id(id) == 0);
}

void cm_pair_free(struct cm_pair *p)
{
	if (p->caller)
		cm_id_free(p->caller);
	if (p->callee)
		cm_id_free(p->callee);
	if (p->listener)
		cm_id_free(p->listener);
	rdma_destroy_event_channel(p->caller_ch);
	rdma_destroy_event_channel(p->callee_ch);
}

void cm_message(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	char out[16] = "fifteen letters", in[16] = "";
	struct ibv_mr *out_mr = rdma_reg_msgs(from, out, sizeof(out));
	struct ibv_mr *in_mr = rdma_reg_msgs(to, in, sizeof(in));
	struct ibv_wc wc;

	CHECK(out_mr && in_mr);
	CHECK(rdma_post_recv(to, NULL, in, sizeof(in), in_mr) == 0);
	CHECK(rdma_post_send(from, NULL, out, sizeof(out), out_mr, 0) == 0);
	CHECK(rdma_get_recv_comp(to, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(in));
	CHECK(rdma_get_send_comp(from, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS);
	CHECK(!memcmp(in, out, sizeof(in)));
	CHECK(rdma_dereg_mr(out_mr) == 0);
	CHECK(rdma_dereg_mr(in_mr) == 0);
}

enum ibv_qp_state cm_qp_state(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init) == 0);
	return attr.qp_state;
}

uint64_t cm_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct cm_child cm_fork(void (*body)(int fd, uint16_t port), uint16_t port)
{
	struct cm_child c;
	int fds[2];

	CHECK(pipe(fds) == 0);
	c.pid = fork();
	CHECK(c.pid >= 0);
	if (!c.pid) {
		close(fds[0]);
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		alarm(TEST_LIMIT_S);
		body(fds[1], port);
		exit(0);
	}
	close(fds[1]);
	c.fd = fds[0];
	return c;
}

void cm_child_expect(struct cm_child *c, char sign)
{
	char got = 0;

	CHECK(read(c->fd, &got, 1) == 1);
	CHECK(got == sign);
}

void cm_child_kill(struct cm_child *c)
{
	CHECK(kill(c->pid, SIGKILL) == 0);
	CHECK(waitpid(c->pid, NULL, 0) == c->pid);
	close(c->fd);
}

void cm_child_join(struct cm_child *c)
{
	int status;

	CHECK(waitpid(c->pid, &status, 0) == c->pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(c->fd);
}
