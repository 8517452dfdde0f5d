/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port follows the interfaces of its network namespace, of which this test makes
 * one of its own: state, GIDs, and the events that tell of both.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LIMIT_MS 60000

static struct ibv_context *context, *second;
static int fd;

static void expect_that(int line, const char *what, int holds)
{
	if (holds)
		return;
	printf("%s:%d: failed: %s (%s)\n", __FILE__, line, what, strerror(errno));
	exit(1);
}
#define expect(condition) expect_that(__LINE__, #condition, !!(condition))

static void link_set(int up)
{
	struct ifreq r = { .ifr_name = "lo" };

	expect(!ioctl(fd, SIOCGIFFLAGS, &r));
	r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
	expect(!ioctl(fd, SIOCSIFFLAGS, &r));
}

static void address_add(const char *text)
{
	struct ifreq r = { .ifr_name = "lo:1" };
	struct sockaddr_in a = { .sin_family = AF_INET };

	inet_pton(AF_INET, text, &a.sin_addr);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	expect(!ioctl(fd, SIOCSIFADDR, &r));
}

static void address_remove(void)
{
	struct ifreq r = { .ifr_name = "lo:1" };

	expect(!ioctl(fd, SIOCGIFFLAGS, &r));
	r.ifr_flags = (short)(r.ifr_flags & ~IFF_UP);
	expect(!ioctl(fd, SIOCSIFFLAGS, &r));
}

/* The next event, or -1 when there is none for so long. */
static int next_event(struct ibv_context *c, int limit_ms)
{
	struct pollfd p = { .fd = c->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	if (poll(&p, 1, limit_ms) != 1)
		return -1;
	expect(!ibv_get_async_event(c, &e));
	expect(e.event_type == IBV_EVENT_GID_CHANGE ||
	       e.event_type == IBV_EVENT_PORT_ACTIVE || e.event_type == IBV_EVENT_PORT_ERR);
	expect(e.element.port_num == 1);
	ibv_ack_async_event(&e);
	return e.event_type;
}

/* Takes events until `wanted` comes; others that a change brings are let go by. */
static void await(struct ibv_context *c, enum ibv_event_type wanted)
{
	int event;

	while ((event = next_event(c, LIMIT_MS)) != (int)wanted)
		if (event < 0) {
			printf("no %s came\n", ibv_event_type_str(wanted));
			exit(1);
		}
}

static enum ibv_port_state state(void)
{
	struct ibv_port_attr a;

	expect(!ibv_query_port(context, 1, &a));
	expect(a.max_mtu == IBV_MTU_4096);
	expect(a.phys_state == (a.state == IBV_PORT_ACTIVE ? 5 : 3));
	return a.state;
}

static int has_gid(const char *text)
{
	struct ibv_gid_entry entries[64];
	ssize_t n = ibv_query_gid_table(context, entries, 64, 0);
	struct in_addr a;

	expect(n >= 0);
	inet_pton(AF_INET, text, &a);
	for (ssize_t i = 0; i < n; i++)
		if (!memcmp(entries[i].gid.raw + 12, &a, 4) && entries[i].gid.raw[11] == 0xff)
			return 1;
	return 0;
}

/* A queue pair and an address handle with an address vector without a GRH, which means this
 * host: each is refused with `error`, or made if that is 0. */
static void by_lid(int error)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UC,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .path_mtu = IBV_MTU_256,
				 .ah_attr = { .port_num = 1, .dlid = 1 } };
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_ah *ah;

	expect(qp && !ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	expect(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) == error);
	expect(qp->state == (error ? IBV_QPS_INIT : IBV_QPS_RTR));
	errno = 0;
	ah = ibv_create_ah(pd, &a.ah_attr);
	expect(error ? !ah && errno == error : !!ah);
	expect((!ah || !ibv_destroy_ah(ah)) && !ibv_destroy_qp(qp));
	expect(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
}

int main(void)
{
	const char *transports = getenv("BUSBAR_TRANSPORTS");
	struct ibv_device **list;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		printf("skipped: no network namespace: %s\n", strerror(errno));
		return 77;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	list = ibv_get_device_list(NULL);
	expect(fd >= 0 && list && list[0]);
	context = ibv_open_device(list[0]);
	second = ibv_open_device(list[0]);
	expect(context && second);
	expect(state() == IBV_PORT_DOWN);
	expect(!has_gid("127.0.0.1"));
	/* Shared memory needs no address. */
	by_lid(transports && !strcmp(transports, "roce") ? EHOSTUNREACH : 0);

	link_set(1);
	await(context, IBV_EVENT_PORT_ACTIVE);
	await(second, IBV_EVENT_PORT_ACTIVE);
	expect(state() == IBV_PORT_ACTIVE);
	expect(has_gid("127.0.0.1"));
	by_lid(0);

	address_add("198.51.100.1");
	do
		await(context, IBV_EVENT_GID_CHANGE);
	while (!has_gid("198.51.100.1"));
	address_remove();
	while (has_gid("198.51.100.1"))
		next_event(context, 50);

	link_set(0);
	await(context, IBV_EVENT_PORT_ERR);
	await(second, IBV_EVENT_PORT_ERR);
	expect(state() == IBV_PORT_DOWN);
	link_set(1);
	await(context, IBV_EVENT_PORT_ACTIVE);
	expect(state() == IBV_PORT_ACTIVE);
	/* Unread events do not keep it open. */
	expect(!ibv_close_device(second));
	expect(!ibv_close_device(context));
	ibv_free_device_list(list);
	return 0;
}
