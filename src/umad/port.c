/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports are opened and closed, agents registered (umad_open_port(3), umad_register(3)). */
#define LOG_ROOM "umad"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "umad/plain.h"
#include "umad/system.h"
#include "umad/umad.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "verbs/private.h"

#define REGISTER_NS (5 * NSEC_PER_SEC)
#define CAPABILITY_IS_SM (1u << 1)

/* ---- opening ---- */

static int watch(struct umad_port_open *p, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(p->fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

/* 0 with p->plug, or a negative errno. */
static int plug_in(struct umad_port_open *p, struct plug_welcome *welcome)
{
	struct plug_place place;
	struct plug_port state;
	int ret = umad_place(&place);

	busbar_note_opened();
	if (ret <= 0)
		return ret ? ret : umad_plain_look(welcome, &state);
	ret = plug_connect(&place, PLUG_MANAGEMENT, welcome, &state);
	if (ret < 0)
		return ret;
	p->plug = ret;
	return watch(p, p->plug);
}

static int open_here(int portnum)
{
	struct umad_port_open *p = calloc(1, sizeof(*p));
	struct plug_welcome welcome;
	int ret;

	if (!p)
		return -ENOMEM;
	p->plug = -1;
	umad_plain_init(p);
	p->fd = epoll_create1(EPOLL_CLOEXEC);
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&p->lock, NULL);
	list_init(&p->queue);
	list_init(&p->transfers);
	ret = p->fd < 0 || p->wake < 0 ? -errno : plug_in(p, &welcome);
	if (!ret && portnum != UMAD_ANY_PORT && portnum != welcome.port)
		ret = -EINVAL;
	if (!ret)
		ret = watch(p, p->wake);
	if (!ret && !umad_port_enter(p))
		ret = -ENOMEM;
	if (!ret)
		return p->fd;
	umad_port_free(p);
	return ret;
}

UMAD_EXPORT int umad_open_port(const char *ca_name, int portnum)
{
	if (!umad_is_ours(ca_name))
		return UMAD_SYSTEM(-ENODEV, umad_open_port, ca_name, portnum);
	return open_here(portnum);
}

UMAD_EXPORT int umad_close_port(int portid)
{
	if (umad_port_leave(portid))
		return 0;
	return UMAD_SYSTEM(-EINVAL, umad_close_port, portid);
}

UMAD_EXPORT int umad_get_fd(int portid)
{
	struct umad_port_open *p = umad_port_get(portid);

	if (!p)
		return UMAD_SYSTEM(-EINVAL, umad_get_fd, portid);
	umad_port_put(p);
	return portid;
}

/*
 * The kernel sets IsSM in the port's capabilities while somebody has the file /dev/infiniband/issmN
 * open. Here the port has it from this call on until the process ends; the path is that of a pipe,
 * which can be opened.
 */
UMAD_EXPORT int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int fd = -1, ends[2] = { -1, -1 };
	struct plug_welcome welcome;
	struct plug_place place;
	struct plug_port state;
	int ret;

	if (!umad_is_ours(ca_name))
		return UMAD_SYSTEM(-ENODEV, umad_get_issm_path, ca_name, portnum, path, max);
	ret = umad_place(&place);
	if (ret <= 0)
		return ret ? ret : -ENODEV; /* no subnet, and so no manager of one */
	ret = 0;
	pthread_mutex_lock(&lock);
	if (ends[0] < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		ret = -errno;
	if (!ret && fd < 0) {
		fd = plug_connect(&place, PLUG_MANAGEMENT, &welcome, &state);
		ret = fd < 0 ? fd : plug_send(fd, PLUG_SET_CAPABILITY, CAPABILITY_IS_SM, 0, NULL, 0);
	}
	pthread_mutex_unlock(&lock);
	if (!ret && snprintf(path, (size_t)max, "/proc/self/fd/%d", ends[0]) >= max)
		ret = -ENAMETOOLONG;
	return ret;
}

/* ---- agents ---- */

static bool class_has_rmpp(uint8_t class)
{
	return class == MAD_CLASS_SUBN_ADM || class == MAD_CLASS_DEV_MGT || class == 0x10 ||
	       class == 0x12 ||
	       (class >= MAD_CLASS_VENDOR_2_FIRST && class <= MAD_CLASS_VENDOR_2_LAST);
}

/* Waits for the fabric's answer. The agent's number or a negative errno. */
static int await_agent(struct umad_port_open *p, unsigned number)
{
	const uint64_t until_ns = clock_monotonic_ns_slow() + REGISTER_NS;
	struct umad_agent *a = &p->agents[number];
	struct pollfd f = { .fd = p->plug, .events = POLLIN };
	int ret = 0;

	pthread_mutex_lock(&p->lock);
	while (a->waits && ret >= 0) {
		ret = umad_port_pump(p);
		if (ret)
			continue;
		/* Another thread may read the answer, so the wait is short. */
		pthread_mutex_unlock(&p->lock);
		poll(&f, 1, 10);
		pthread_mutex_lock(&p->lock);
		if (clock_monotonic_ns_slow() > until_ns)
			ret = -ETIMEDOUT;
	}
	if (ret >= 0)
		ret = a->used ? (int)number : -EPERM;
	if (ret < 0)
		*a = (struct umad_agent){ 0 };
	pthread_mutex_unlock(&p->lock);
	return ret;
}

static int agent_open(struct umad_port_open *p, const struct plug_agent *agent, bool rmpp)
{
	unsigned n = 0;
	int ret = -ENOMEM;

	pthread_mutex_lock(&p->lock);
	while (n < UMAD_AGENTS && (p->agents[n].used || p->agents[n].waits))
		n++;
	if (n < UMAD_AGENTS) {
		p->agents[n] = (struct umad_agent){ .waits = p->plug >= 0, .rmpp = rmpp,
						    .class = agent->class, .answers = -1,
						    .requests = -1 };
		ret = p->plug < 0 ? umad_plain_agent_open(p, n, agent) :
				    plug_send(p->plug, PLUG_AGENT_OPEN, n, 0, agent, sizeof(*agent));
		p->agents[n].waits &= !ret;
	}
	pthread_mutex_unlock(&p->lock);
	return ret ? ret : await_agent(p, n);
}

static bool is_subnet_management(uint8_t class)
{
	return class == MAD_CLASS_SUBN_LID || class == MAD_CLASS_SUBN_DIRECTED;
}

static int register_agent(int portid, struct plug_agent *agent, uint8_t rmpp_version)
{
	struct umad_port_open *p = umad_port_get(portid);
	int ret;

	if (!p)
		return -EINVAL;
	agent->qpn = !is_subnet_management(agent->class);
	ret = agent_open(p, agent, rmpp_version && class_has_rmpp(agent->class));
	umad_port_put(p);
	return ret;
}

static bool is_foreign(int portid)
{
	struct umad_port_open *p = umad_port_get(portid);

	if (p)
		umad_port_put(p);
	return !p;
}

/* The program's mask: an array of long, of 128 bits in all. */
static void mask_read(uint32_t to[4], const long *mask)
{
	if (mask)
		memcpy(to, mask, 16);
}

UMAD_EXPORT int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
			      long method_mask[16 / sizeof(long)])
{
	struct plug_agent agent = { .class = (uint8_t)mgmt_class,
				    .class_version = (uint8_t)mgmt_version };

	if (is_foreign(portid))
		return UMAD_SYSTEM(-EINVAL, umad_register, portid, mgmt_class, mgmt_version,
				   rmpp_version, method_mask);
	mask_read(agent.method_mask, method_mask);
	return register_agent(portid, &agent, rmpp_version);
}

UMAD_EXPORT int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
				  long method_mask[16 / sizeof(long)])
{
	struct plug_agent agent = { .class = (uint8_t)mgmt_class, .class_version = 1 };

	if (is_foreign(portid))
		return UMAD_SYSTEM(-EINVAL, umad_register_oui, portid, mgmt_class, rmpp_version, oui,
				   method_mask);
	if (mgmt_class < MAD_CLASS_VENDOR_2_FIRST || mgmt_class > MAD_CLASS_VENDOR_2_LAST)
		return -EINVAL;
	memcpy(agent.oui, oui, sizeof(agent.oui));
	mask_read(agent.method_mask, method_mask);
	return register_agent(portid, &agent, rmpp_version);
}

/* Unlike the calls above it returns a positive errno. */
UMAD_EXPORT int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct plug_agent agent = { .class = attr->mgmt_class,
				    .class_version = attr->mgmt_class_version };
	int ret;

	if (is_foreign(port_fd))
		return UMAD_SYSTEM(EINVAL, umad_register2, port_fd, attr, agent_id);
	if (attr->flags & ~(uint32_t)UMAD_USER_RMPP) {
		attr->flags = UMAD_USER_RMPP;
		return EINVAL;
	}
	if (attr->mgmt_class >= MAD_CLASS_VENDOR_2_FIRST &&
	    attr->mgmt_class <= MAD_CLASS_VENDOR_2_LAST) {
		agent.oui[0] = (uint8_t)(attr->oui >> 16);
		agent.oui[1] = (uint8_t)(attr->oui >> 8);
		agent.oui[2] = (uint8_t)attr->oui;
	}
	memcpy(agent.method_mask, attr->method_mask, sizeof(agent.method_mask));
	ret = register_agent(port_fd, &agent,
			     attr->flags & UMAD_USER_RMPP ? 0 : attr->rmpp_version);
	if (ret < 0)
		return -ret;
	*agent_id = (uint32_t)ret;
	return 0;
}

UMAD_EXPORT int umad_unregister(int portid, int agentid)
{
	struct umad_port_open *p = umad_port_get(portid);
	int ret = -EINVAL;

	if (!p)
		return UMAD_SYSTEM(-EINVAL, umad_unregister, portid, agentid);
	pthread_mutex_lock(&p->lock);
	if (agentid >= 0 && agentid < UMAD_AGENTS && p->agents[agentid].used) {
		ret = p->plug < 0 ? umad_plain_agent_close(p, (unsigned)agentid) :
				    plug_send(p->plug, PLUG_AGENT_CLOSE, (uint32_t)agentid, 0, NULL, 0);
		p->agents[agentid] = (struct umad_agent){ 0 };
	}
	pthread_mutex_unlock(&p->lock);
	umad_port_put(p);
	return ret;
}
