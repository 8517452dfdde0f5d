/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of iWARP connections on the guest's siw0, for siw_facts.py, which plays the other end
 * with a TCP socket of its own. It tells what the verbs and the connection manager say, a line
 * for each, and does what its arguments say, KEY=VALUE:
 *
 *   listen=PORT | connect=PORT, address=ADDRESS    which end, and where
 *   private=BYTES         of the accept, reject or connect
 *   ird=N, ord=N          (1)
 *   reject=1              instead of an accept
 *   receives=N, room=BYTES   buffers of each queue pair (1 of 64 bytes)
 *   early=1               does the work right after rdma_accept, not after ESTABLISHED
 *   stag=N, to=N          what `work` writes to and reads from
 *   work=OP:BYTES,...     send, se (solicited), inv (invalidates), write, read; disconnect, error
 *
 * Prints "memory STAG TO STAG TO" first: 4096 bytes of 0x5a, and memory without remote access.
 * A listener serves one connection after the other until it is ended.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

enum { MEMORY_BYTES = 4096, POLL_MS = 5 };

static struct {
	const char *address, *work;
	unsigned port, private_bytes, ird, ord, reject, receives, room, early;
	uint32_t stag;
	uint64_t to;
	int listens;
} opt = { .address = "10.0.2.15", .work = "", .ird = 1, .ord = 1, .receives = 1, .room = 64 };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *conn;
static struct ibv_pd *pd;
static struct ibv_mr *remote, *local, *receive_mr;
static uint8_t memory[MEMORY_BYTES], quiet[MEMORY_BYTES], received[MEMORY_BYTES];
static uint8_t private_data[256];

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static void must(int good, const char *what)
{
	if (good)
		return;
	say("failed %s: %m", what);
	exit(1);
}

static void parse(char *word)
{
	char *value = strchr(word, '=');
	unsigned long number;

	must(value != NULL, word);
	*value++ = 0;
	number = strtoul(value, NULL, 0);
	if (!strcmp(word, "listen") || !strcmp(word, "connect")) {
		opt.listens = *word == 'l';
		opt.port = (unsigned)number;
	} else if (!strcmp(word, "address")) {
		opt.address = value;
	} else if (!strcmp(word, "private")) {
		opt.private_bytes = (unsigned)number;
	} else if (!strcmp(word, "ird")) {
		opt.ird = (unsigned)number;
	} else if (!strcmp(word, "ord")) {
		opt.ord = (unsigned)number;
	} else if (!strcmp(word, "reject")) {
		opt.reject = (unsigned)number;
	} else if (!strcmp(word, "receives")) {
		opt.receives = (unsigned)number;
	} else if (!strcmp(word, "room")) {
		opt.room = (unsigned)number;
	} else if (!strcmp(word, "early")) {
		opt.early = (unsigned)number;
	} else if (!strcmp(word, "stag")) {
		opt.stag = (uint32_t)number;
	} else if (!strcmp(word, "to")) {
		opt.to = number;
	} else if (!strcmp(word, "work")) {
		opt.work = value;
	} else {
		must(0, word);
	}
}

/* Objects of the device, at the first identifier that has it. */
static void make_memory(struct ibv_context *device)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	memset(memory, 0x5a, sizeof(memory));
	pd = ibv_alloc_pd(device);
	must(pd != NULL, "ibv_alloc_pd");
	remote = ibv_reg_mr(pd, memory, sizeof(memory), access);
	local = ibv_reg_mr(pd, quiet, sizeof(quiet), IBV_ACCESS_LOCAL_WRITE);
	receive_mr = ibv_reg_mr(pd, received, sizeof(received), IBV_ACCESS_LOCAL_WRITE);
	must(remote && local && receive_mr, "ibv_reg_mr");
	say("memory %#x %#lx %#x %#lx", remote->rkey, (unsigned long)(uintptr_t)memory, local->rkey,
	    (unsigned long)(uintptr_t)quiet);
}

static void make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	must(!rdma_create_qp(conn, pd, &attr), "rdma_create_qp");
	for (unsigned i = 0; i < opt.receives; i++)
		must(!rdma_post_recv(conn, NULL, received, opt.room, receive_mr), "rdma_post_recv");
}

static void post(const char *op, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)memory, bytes, remote->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = bytes ? 1 : 0 }, *bad;

	wr.opcode = !strcmp(op, "write") ? IBV_WR_RDMA_WRITE
		  : !strcmp(op, "read") ? IBV_WR_RDMA_READ
		  : !strcmp(op, "inv") ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
	if (!strcmp(op, "se"))
		wr.send_flags = IBV_SEND_SOLICITED;
	if (wr.opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = opt.stag;
	wr.wr.rdma.rkey = opt.stag;
	if (wr.opcode == IBV_WR_RDMA_WRITE || wr.opcode == IBV_WR_RDMA_READ)
		wr.wr.rdma.remote_addr = opt.to;
	say("post %s %d", op, ibv_post_send(conn->qp, &wr, &bad));
}

static void do_work(void)
{
	char *text = strdup(opt.work), *rest = text, *word;

	while ((word = strsep(&rest, ",")) && *word) {
		char *bytes = strchr(word, ':');
		struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

		if (bytes)
			*bytes++ = 0;
		if (!strcmp(word, "disconnect"))
			say("disconnect %d", rdma_disconnect(conn));
		else if (!strcmp(word, "error"))
			say("error %d", ibv_modify_qp(conn->qp, &error, IBV_QP_STATE));
		else
			post(word, bytes ? (uint32_t)strtoul(bytes, NULL, 0) : 0);
	}
	free(text);
}

static void tell_completions(void)
{
	struct ibv_wc wc;

	while (conn && conn->qp && (ibv_poll_cq(conn->send_cq, 1, &wc) > 0 ||
				    ibv_poll_cq(conn->recv_cq, 1, &wc) > 0))
		say("completion %u %s %u", wc.opcode, ibv_wc_status_str(wc.status), wc.byte_len);
}

static struct rdma_conn_param parameters(void)
{
	struct rdma_conn_param p = {
		.private_data = private_data, .private_data_len = (uint8_t)opt.private_bytes,
		.responder_resources = (uint8_t)opt.ird, .initiator_depth = (uint8_t)opt.ord,
	};

	return p;
}

static void drop(void)
{
	tell_completions();
	if (conn->qp)
		rdma_destroy_qp(conn);
	rdma_destroy_id(conn);
	conn = NULL;
	say("ended");
}

/* A request to the listener. */
static void answer(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = parameters();

	conn = id;
	if (opt.reject) {
		say("reject %d", rdma_reject(conn, private_data, p.private_data_len));
		conn = NULL;
		return;
	}
	make_qp();
	if (rdma_accept(conn, &p)) {
		say("accept failed: %m");
		rdma_destroy_qp(conn);
		conn = NULL;
		return;
	}
	say("accepted");
	if (opt.early)
		do_work();
}

static void take_event(void)
{
	struct rdma_cm_event *event;
	struct rdma_conn_param p;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;

	must(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	type = event->event;
	id = event->id;
	p = event->param.conn;
	say("event %s %d private %u ird %u ord %u", rdma_event_str(type) + strlen("RDMA_CM_EVENT_"),
	    event->status, p.private_data_len, p.responder_resources, p.initiator_depth);
	tell_completions();
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		answer(id);
	else if (type == RDMA_CM_EVENT_ESTABLISHED && !opt.early)
		do_work();
	else if (type != RDMA_CM_EVENT_ESTABLISHED && conn)
		drop();
	if (!conn && !opt.listens)
		exit(0);
}

static void run(void)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

	for (;;) {
		if (poll(&fd, 1, POLL_MS) > 0)
			take_event();
		tell_completions();
	}
}

static void await(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	must(!rdma_get_cm_event(channel, &event) && event->event == type, rdma_event_str(type));
	rdma_ack_cm_event(event);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct rdma_conn_param p;
	struct rdma_cm_id *id;
	char service[8];

	for (int i = 1; i < argc; i++)
		parse(argv[i]);
	for (unsigned i = 0; i < sizeof(private_data); i++)
		private_data[i] = (uint8_t)(i + 1);
	if (opt.listens)
		hints.ai_flags = RAI_PASSIVE;
	snprintf(service, sizeof(service), "%u", opt.port);
	must(!rdma_getaddrinfo(opt.address, service, &hints, &info), "rdma_getaddrinfo");
	channel = rdma_create_event_channel();
	must(channel != NULL, "rdma_create_event_channel");
	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	if (opt.listens) {
		must(!rdma_bind_addr(id, info->ai_src_addr), "rdma_bind_addr");
		make_memory(id->verbs);
		must(!rdma_listen(id, 8), "rdma_listen");
		say("listening");
		run();
	}
	must(!rdma_resolve_addr(id, NULL, info->ai_dst_addr, 2000), "rdma_resolve_addr");
	await(RDMA_CM_EVENT_ADDR_RESOLVED);
	make_memory(id->verbs);
	must(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
	await(RDMA_CM_EVENT_ROUTE_RESOLVED);
	conn = id;
	make_qp();
	p = parameters();
	must(!rdma_connect(conn, &p), "rdma_connect");
	run();
}
