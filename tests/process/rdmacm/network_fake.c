/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network between the processes of this host, for the tests of connection management. A test
 * program that is linked with it replaces functions of libibverbs (verbs/private.h), so that
 * all messages go through queue pair 1, as if no other way existed; data goes as always.
 * What a process sends arrives at the same process, as at the one that receives for the
 * host, and is handed to its owner by the code of transport roce. NETWORK_FAKE="loss dup
 * delay seed ends": percentages, the longest delay in ms, a random seed, and how many of the
 * messages are lost that a process sends when it ends.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/path/gsi.h"
#include "hca/run/progress.h"
#include "hca/share/peers.h"
#include "transport/roce/dispatch.h"
#include "transport/roce/gsi.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "verbs/private.h"

#define NSEC_PER_MSEC UINT64_C(1000000)

/* ---- functions of hca that transport roce calls ---- */

static hca_gsi_receive *receiver;

void hca_gsi_deliver(const struct hca_gsi_address *from,
		     const uint8_t mad[HCA_GSI_MAD_BYTES])
{
	receiver(from, mad);
}

int progress_watch(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events),
		   void *arg)
{
	return busbar_progress_watch(fd, events, fn, arg);
}

void progress_unwatch(int fd)
{
	busbar_progress_unwatch(fd);
}

void progress_unwatch_async(int fd)
{
	busbar_progress_unwatch_async(fd);
}

void progress_timer_init(struct progress_timer *t, void (*fn)(struct progress_timer *t))
{
	busbar_progress_timer_init(t, fn);
}

void progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns)
{
	busbar_progress_timer_arm(t, deadline_ns);
}

void progress_timer_cancel(struct progress_timer *t)
{
	busbar_progress_timer_cancel(t);
}

int hca_peer_check(int fd, const char *what, pid_t *pid)
{
	return busbar_peer_check(fd, what, pid);
}

bool hca_complaint_due(void)
{
	return true;
}

/* ---- the network ---- */

static struct {
	pthread_mutex_t lock;
	unsigned loss, dup, delay, seed, ends;
} faults = { .lock = PTHREAD_MUTEX_INITIALIZER, .seed = 1 };

struct flight {
	struct progress_timer timer;
	struct hca_gsi_address at;
	uint8_t mad[HCA_GSI_MAD_BYTES];
};

static unsigned pick(unsigned n)
{
	return n ? (unsigned)rand_r(&faults.seed) % n : 0;
}

static void land(struct progress_timer *t)
{
	struct flight *f = container_of(t, struct flight, timer);

	roce_gsi_arrived(&f->at, f->mad, sizeof(f->mad));
	free(f);
}

/* The process ends, its progress thread may be gone: what it sends still leaves its host. */
static _Atomic bool exiting;

static void keep_nothing(const struct hca_gsi_address *from, const uint8_t *mad)
{
}

static int answer_nothing(const struct hca_gsi_address *to, const uint8_t *mad)
{
	return 0;
}

static void fly_now(const struct hca_gsi_address *to, const uint8_t *mad)
{
	static const struct roce_dispatch_ops ops = { keep_nothing, answer_nothing };
	struct roce_dispatch d;

	/* An owner that is busy does not get it, and nobody repeats it then. */
	roce_dispatch_init(&d, &ops);
	for (int i = 0; i < 10; i++) {
		roce_dispatch_arrived(&d, to, mad, HCA_GSI_MAD_BYTES);
		usleep(5000);
	}
}

__attribute__((destructor)) static void fake_end(void)
{
	exiting = true;
}

static int fly(const struct hca_gsi_address *to, const uint8_t *mad)
{
	unsigned copies, delay;

	if (exiting && faults.ends) {
		faults.ends--;
		return 0;
	}
	if (exiting) {
		fly_now(to, mad);
		return 0;
	}
	pthread_mutex_lock(&faults.lock);
	copies = pick(100) < faults.loss ? 0 : pick(100) < faults.dup ? 2 : 1;
	while (copies--) {
		struct flight *f = calloc(1, sizeof(*f));

		if (!f)
			abort();
		delay = pick(faults.delay + 1);
		f->at = *to;
		memcpy(f->mad, mad, sizeof(f->mad));
		progress_timer_init(&f->timer, land);
		progress_timer_arm(&f->timer, clock_monotonic_ns_slow() +
						      delay * NSEC_PER_MSEC);
	}
	pthread_mutex_unlock(&faults.lock);
	return 0;
}

static int open_nothing(void)
{
	return 0;
}

static const struct roce_gsi_port network = { open_nothing, fly };

/* ---- instead of functions of libibverbs ---- */

static _Atomic bool is_open;

bool busbar_subnet_on(void)
{
	return false;
}

uint64_t busbar_subnet_place(void)
{
	return 0;
}

void busbar_subnet_own_ipv4(uint8_t ip[4])
{
}

int busbar_subnet_gid_of_ipv4(const uint8_t ip[4], union ibv_gid *gid)
{
	return -ENOENT;
}

int busbar_subnet_path_to(const union ibv_gid *to, struct hca_subnet_path *path)
{
	return -ENOENT;
}

int busbar_subnet_join(const union ibv_gid *mgid, bool sends_only, struct hca_subnet_path *path)
{
	return -ENOENT;
}

int busbar_subnet_lid_of_gid(const union ibv_gid *gid, uint16_t *lid)
{
	return -ENOENT;
}

bool busbar_gsi_exists(void)
{
	return true;
}

bool busbar_local_exists(void)
{
	return false;
}

static _Atomic unsigned slot;

static void fake_forked(void)
{
	roce_gsi_forked();
	is_open = false;
	pthread_mutex_init(&faults.lock, NULL);
}

int busbar_gsi_open(hca_gsi_receive *receive)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *text = getenv("NETWORK_FAKE");
	int ret = -EALREADY;

	pthread_mutex_lock(&lock);
	if (is_open)
		goto out;
	if (text)
		sscanf(text, "%u %u %u %u %u", &faults.loss, &faults.dup, &faults.delay,
		       &faults.seed, &faults.ends);
	receiver = receive;
	roce_gsi_start(&network);
	ret = roce_gsi_ops.open();
	if (ret > 0) {
		slot = (unsigned)ret;
		is_open = true;
		ret = 0;
	}
out:
	pthread_mutex_unlock(&lock);
	return ret;
}

uint32_t busbar_gsi_comm_id(uint32_t number)
{
	return slot << HCA_GSI_SLOT_SHIFT |
	       (number & ((1u << HCA_GSI_SLOT_SHIFT) - 1));
}

int busbar_gsi_send(const struct hca_gsi_address *to, const uint8_t *mad)
{
	return is_open ? roce_gsi_ops.send(to, mad) : -ENOTCONN;
}

int busbar_gsi_serve(const struct hca_gsi_service *service)
{
	return roce_gsi_ops.serve(service);
}

void busbar_gsi_unserve(const struct hca_gsi_service *service)
{
	roce_gsi_ops.unserve(service);
}

__attribute__((constructor)) static void fake_load(void)
{
	pthread_atfork(NULL, NULL, fake_forked);
}
