/* SPDX-License-Identifier: BSD-2-Clause */
/* Management datagrams between programs of this host; see plain.h. */
#define LOG_ROOM "umad"
#include "umad/plain.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "umad/count.h"
#include "util/abstract.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/user.h"

#define NAME_ANSWER "busbar.umad.answer.%08x"
#define NAME_CLASS "busbar.umad.class.%02x"
#define WAITING 1024
#define GSI_QPN 1
#define GSI_QKEY 0x80010000u

struct datagram {
	struct plug_mad head;
	uint8_t mad[PLUG_MAD_BYTES];
};

/* A request that waits for its answer. */
struct umad_waiting {
	struct list entry;
	uint64_t until_ns, tid;
	struct datagram request;
};

/* ---- the adapter ---- */

static struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (size_t i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), UMAD_CA))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

bool umad_plain_exists(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;

	for (size_t i = 0; list && list[i] && !found; i++)
		found = !strcmp(ibv_get_device_name(list[i]), UMAD_CA);
	if (list)
		ibv_free_device_list(list);
	return found;
}

static int look(struct ibv_context *ctx, struct plug_welcome *w, struct plug_port *p)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	if (ibv_query_device(ctx, &device) || ibv_query_port(ctx, 1, &port) ||
	    ibv_query_gid(ctx, 1, 0, &gid) || ibv_query_pkey(ctx, 1, 0, &pkey))
		return -EIO;
	*w = (struct plug_welcome){
		.node_guid = be64toh(device.node_guid),
		.system_guid = be64toh(device.sys_image_guid),
		.port_guid = be64toh(device.node_guid),
		.vendor_id = device.vendor_id,
		.device_id = device.vendor_part_id,
		.revision = device.hw_ver,
		.port = 1,
		.ports = 1,
	};
	*p = (struct plug_port){
		.subnet_prefix = be64toh(gid.global.subnet_prefix),
		.guids = { be64toh(gid.global.interface_id) },
		.capability_mask = port.port_cap_flags,
		.lid = port.lid,
		.pkeys = { be16toh(pkey) },
		.pkey_count = 1,
		.guid_count = 1,
		.state = (uint8_t)port.state,
		.physical_state = port.phys_state,
		.mtu_active = (uint8_t)port.active_mtu,
		.mtu_max = (uint8_t)port.max_mtu,
		.width_active = port.active_width,
		.speed_extended = 2, /* EDR, as the adapter's port says */
		.lanes = port.max_vl_num,
	};
	return 0;
}

int umad_plain_look(struct plug_welcome *welcome, struct plug_port *port)
{
	struct ibv_context *ctx = device_open();
	int ret = ctx ? look(ctx, welcome, port) : -ENODEV;

	if (ctx)
		ibv_close_device(ctx);
	return ret;
}

/* ---- agents ---- */

void umad_plain_init(struct umad_port_open *p)
{
	list_init(&p->waiting);
	for (unsigned i = 0; i < UMAD_AGENTS; i++)
		p->agents[i].answers = p->agents[i].requests = -1;
}

void umad_plain_forget(struct umad_port_open *p)
{
	struct list *entry;

	while ((entry = list_pop(&p->waiting)))
		free(list_entry(entry, struct umad_waiting, entry));
	for (unsigned i = 0; i < UMAD_AGENTS && p->plug < 0; i++)
		umad_plain_agent_close(p, i);
}

/* A socket under the name, watched by the port. */
static int listen_as(struct umad_port_open *p, const struct abstract_name *name)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd = abstract_open(name, SOCK_DGRAM, 0), on = 1;

	if (fd < 0)
		return fd;
	if (!setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) &&
	    !epoll_ctl(p->fd, EPOLL_CTL_ADD, fd, &e))
		return fd;
	close(fd);
	return -EIO;
}

int umad_plain_agent_open(struct umad_port_open *p, unsigned number, const struct plug_agent *agent)
{
	static const uint32_t none[4];
	struct umad_agent *a = &p->agents[number];
	struct abstract_name name;
	uint32_t upper;
	int ret;

	do {
		if (getrandom(&upper, sizeof(upper), 0) != sizeof(upper))
			return -EIO;
		upper |= 1;
		abstract_name(&name, NAME_ANSWER, upper);
		a->answers = listen_as(p, &name);
	} while (a->answers == -EADDRINUSE);
	ret = MIN(a->answers, 0);
	if (!ret && memcmp(agent->method_mask, none, sizeof(none)) != 0) {
		abstract_name(&name, NAME_CLASS, agent->class);
		a->requests = listen_as(p, &name);
		ret = a->requests == -EADDRINUSE ? -EPERM : MIN(a->requests, 0);
	}
	if (ret) {
		umad_plain_agent_close(p, number);
		return ret;
	}
	a->upper = upper;
	a->used = true;
	return 0;
}

int umad_plain_agent_close(struct umad_port_open *p, unsigned number)
{
	struct umad_agent *a = &p->agents[number];

	if (a->answers >= 0)
		close(a->answers);
	if (a->requests >= 0)
		close(a->requests);
	a->answers = a->requests = -1;
	return 0;
}

/* ---- sending ---- */

/* The two ends change places: the receiver answers to `head`. */
static int deliver(struct umad_port_open *p, const struct abstract_name *name,
		   const struct plug_mad *head, const uint8_t *mad)
{
	struct datagram d = { .head = { .qpn = GSI_QPN, .qkey = GSI_QKEY, .lid = head->lid,
					.sl = head->sl } };
	int fd = p->agents[head->agent].answers;

	memcpy(d.mad, mad, sizeof(d.mad));
	if (sendto(fd, &d, sizeof(d), MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)&name->address, name->len) < 0 &&
	    errno == EAGAIN)
		return -EAGAIN;
	return 0; /* a name that nobody has is a receiver that does not answer */
}

static int wait_for_answer(struct umad_port_open *p, const struct plug_mad *head,
			   const uint8_t *mad, uint64_t tid)
{
	struct umad_waiting *w;

	if (!head->timeout_ms || p->waiting_count >= WAITING)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->tid = tid;
	w->until_ns = clock_monotonic_ns_slow() + (uint64_t)head->timeout_ms * 1000000;
	w->request.head = *head;
	memcpy(w->request.mad, mad, sizeof(w->request.mad));
	list_push(&p->waiting, &w->entry);
	p->waiting_count++;
	return 0;
}

static int send_request(struct umad_port_open *p, const struct plug_mad *head, const uint8_t *mad)
{
	struct abstract_name name;

	abstract_name(&name, NAME_CLASS, mad[1]);
	return deliver(p, &name, head, mad);
}

int umad_plain_send(struct umad_port_open *p, const struct plug_mad *head,
		    const uint8_t mad[PLUG_MAD_BYTES])
{
	uint8_t answer[PLUG_MAD_BYTES];
	struct abstract_name name;
	struct mad_header h;

	mad_header_unpack(mad, &h);
	if (h.method & MAD_RESPONSE) {
		abstract_name(&name, NAME_ANSWER, (uint32_t)(h.tid >> 32));
		return deliver(p, &name, head, mad);
	}
	if (head->lid <= 1 && head->qpn == GSI_QPN && umad_count_answer(mad, answer)) {
		struct plug_mad from = { .agent = head->agent, .qpn = GSI_QPN, .qkey = GSI_QKEY,
					 .lid = head->lid };

		umad_port_queue(p, &from, answer, sizeof(answer));
		return 0;
	}
	if (head->lid <= 1 && head->qpn == GSI_QPN) {
		int ret = send_request(p, head, mad);

		if (ret)
			return ret;
	}
	return wait_for_answer(p, head, mad, h.tid);
}

/* ---- receiving ---- */

static struct umad_waiting *waiting_find(struct umad_port_open *p, uint64_t tid)
{
	list_for_each(w, &p->waiting, struct umad_waiting, entry)
		if (w->tid == tid)
			return w;
	return NULL;
}

static void waiting_free(struct umad_port_open *p, struct umad_waiting *w)
{
	list_remove(&w->entry);
	p->waiting_count--;
	free(w);
}

/* One datagram of a process of this user. */
static bool receive_from(int fd, struct datagram *d)
{
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = { d, sizeof(*d) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = fd < 0 ? -1 : recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	struct ucred cred;

	if (n != sizeof(*d) || !c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&cred, CMSG_DATA(c), sizeof(cred));
	return user_is_ours_or_root(cred.uid);
}

bool umad_plain_receive(struct umad_port_open *p, struct plug_mad *head, uint8_t mad[PLUG_MAD_BYTES])
{
	struct umad_waiting *w;
	struct mad_header h;
	struct datagram d;

	for (unsigned i = 0; i < UMAD_AGENTS; i++) {
		if (!p->agents[i].used || (!receive_from(p->agents[i].answers, &d) &&
					   !receive_from(p->agents[i].requests, &d)))
			continue;
		mad_header_unpack(d.mad, &h);
		w = h.method & MAD_RESPONSE ? waiting_find(p, h.tid) : NULL;
		if (w)
			waiting_free(p, w);
		*head = d.head;
		head->agent = i;
		memcpy(mad, d.mad, sizeof(d.mad));
		return true;
	}
	return false;
}

/* ---- time ---- */

void umad_plain_turn(struct umad_port_open *p)
{
	const uint64_t now_ns = clock_monotonic_ns_slow();
	struct list turn, *entry;

	list_init(&turn);
	list_splice(&turn, &p->waiting);
	while ((entry = list_pop(&turn))) {
		struct umad_waiting *w = list_entry(entry, struct umad_waiting, entry);
		struct plug_mad *head = &w->request.head;

		list_push(&p->waiting, &w->entry);
		if (w->until_ns > now_ns)
			continue;
		if (head->retries) {
			head->retries--;
			w->until_ns = now_ns + (uint64_t)head->timeout_ms * 1000000;
			send_request(p, head, w->request.mad);
			continue;
		}
		head->status = ETIMEDOUT;
		umad_port_queue(p, head, w->request.mad, PLUG_MAD_BYTES);
		waiting_free(p, w);
	}
}

uint64_t umad_plain_due_ns(const struct umad_port_open *p)
{
	uint64_t due = UINT64_MAX;

	list_for_each(w, (struct list *)&p->waiting, struct umad_waiting, entry)
		due = MIN(due, w->until_ns);
	return due;
}
