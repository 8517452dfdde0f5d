/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process a CM message from the network is for. Several dispatchers in one process
 * play the processes; one test ends a real one.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "hca/host/settings.h"
#include "hca/run/progress.h"
#include "transport/roce/dispatch.h"
#include "util/abstract.h"
#include "util/container_of.h"
#include "util/log.h"
#include "wire/cm_answer.h"

#define LIMIT_S 10

struct seen {
	struct hca_gsi_address at;
	struct cm_mad mad;
};

/* What the processes get and what they send; process i is dispatch[i]. */
#define PROCESSES 3
static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct seen last[PROCESSES], sent;
	unsigned got[PROCESSES], sent_count;
} world = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct roce_dispatch dispatch[PROCESSES];
static unsigned slots[PROCESSES];
static uint64_t service_base;

static void note(struct seen *at, unsigned *count, const struct hca_gsi_address *from,
		 const uint8_t *bytes)
{
	pthread_mutex_lock(&world.lock);
	at->at = *from;
	if (wire_cm_decode(bytes, CM_MAD_SIZE, &at->mad))
		abort();
	++*count;
	pthread_cond_broadcast(&world.more);
	pthread_mutex_unlock(&world.lock);
}

#define DELIVER(i)                                                                 \
	static void deliver_##i(const struct hca_gsi_address *from, const uint8_t *mad) \
	{                                                                          \
		note(&world.last[i], &world.got[i], from, mad);                    \
	}
DELIVER(0)
DELIVER(1)
DELIVER(2)

static int send_out(const struct hca_gsi_address *to, const uint8_t *mad)
{
	note(&world.sent, &world.sent_count, to, mad);
	return 0;
}

static const struct roce_dispatch_ops ops[PROCESSES] = {
	{ deliver_0, send_out }, { deliver_1, send_out }, { deliver_2, send_out },
};

static void wait_for(const unsigned *count, unsigned want)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LIMIT_S;
	pthread_mutex_lock(&world.lock);
	while (*count < want)
		if (pthread_cond_clockwait(&world.more, &world.lock, CLOCK_MONOTONIC,
					   &until))
			break;
	assert_int_equal(*count, want);
	pthread_mutex_unlock(&world.lock);
}

static unsigned total(void)
{
	unsigned sum;

	pthread_mutex_lock(&world.lock);
	sum = world.sent_count;
	for (unsigned i = 0; i < PROCESSES; i++)
		sum += world.got[i];
	pthread_mutex_unlock(&world.lock);
	return sum;
}

/* Nothing has come for 100 ms; a lower bound of what comes needs no more. */
static void wait_until_quiet(void)
{
	for (unsigned before = UINT32_MAX; before != total(); ) {
		before = total();
		usleep(100000);
	}
}

static struct hca_gsi_address address(uint8_t last, bool v6)
{
	struct hca_gsi_address a = { .interface = 3 };

	if (v6) {
		a.source[0] = a.destination[0] = 0xfd;
	} else {
		a.source[10] = a.source[11] = 0xff;
		a.destination[10] = a.destination[11] = 0xff;
		a.source[12] = a.destination[12] = 10;
	}
	a.source[15] = 200;
	a.destination[15] = last;
	return a;
}

static struct hca_gsi_service service(uint16_t port, uint8_t scope, uint8_t last)
{
	struct hca_gsi_service s = { .service_id = service_base + port,
				     .scope = scope };

	if (scope == HCA_GSI_ADDRESS)
		memcpy(s.address, address(last, false).destination, 16);
	return s;
}

static void arrive(unsigned at, const struct hca_gsi_address *from,
		   const struct cm_mad *mad)
{
	uint8_t bytes[CM_MAD_SIZE];

	assert_int_equal(wire_cm_encode(mad, bytes), 0);
	roce_dispatch_arrived(&dispatch[at], from, bytes, sizeof(bytes));
}

static struct cm_mad req(uint16_t port)
{
	return (struct cm_mad){ .type = CM_REQ, .tid = 7,
				.req = { .local_comm_id = 0x1234, .path_mtu = 3,
					 .service_id = service_base + port } };
}

static struct cm_mad to_slot(enum cm_type type, unsigned slot)
{
	struct cm_mad mad = { .type = type };

	wire_cm_parties_set(&mad, slot << HCA_GSI_SLOT_SHIFT | 5, 77);
	return mad;
}

static int begin(void **state)
{
	memset(world.got, 0, sizeof(world.got));
	world.sent_count = 0;
	/* Other tests' processes may have slots and services of their own. */
	service_base = UINT64_C(0x7000000000000000) | (uint64_t)getpid() << 16;
	for (unsigned i = 0; i < PROCESSES; i++) {
		int slot;

		roce_dispatch_init(&dispatch[i], &ops[i]);
		slot = roce_dispatch_open(&dispatch[i]);
		assert_in_range(slot, 1, HCA_GSI_SLOTS - 1);
		slots[i] = (unsigned)slot;
	}
	return 0;
}

static int end(void **state)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		roce_dispatch_close(&dispatch[i]);
	return 0;
}

/* ---- tests ---- */

static void every_process_has_a_slot_of_its_own(void **state)
{
	assert_int_not_equal(slots[0], slots[1]);
	assert_int_not_equal(slots[1], slots[2]);
	assert_int_equal(roce_dispatch_open(&dispatch[0]), -EALREADY);
}

static void a_message_goes_to_the_slot_of_its_identifier(void **state)
{
	struct hca_gsi_address from = address(1, false);
	struct cm_mad rtu = to_slot(CM_RTU, slots[0]);

	arrive(0, &from, &rtu);
	wait_for(&world.got[0], 1);
	for (unsigned i = 1; i < PROCESSES; i++) {
		rtu = to_slot(CM_RTU, slots[i]);
		arrive(0, &from, &rtu);
		wait_for(&world.got[i], 1);
		assert_memory_equal(&world.last[i].at, &from, sizeof(from));
		assert_memory_equal(&world.last[i].mad, &rtu, sizeof(rtu));
	}
	rtu = (struct cm_mad){ .type = CM_SIDR_REP,
			       .sidr_rep.request_id = slots[2] << HCA_GSI_SLOT_SHIFT };
	arrive(1, &from, &rtu);
	wait_for(&world.got[2], 2);
	assert_int_equal(total(), 4);
}

static void many_messages_at_once_all_arrive(void **state)
{
	struct hca_gsi_address from = address(1, true);
	struct cm_mad rtu = to_slot(CM_RTU, slots[2]);

	for (unsigned i = 0; i < 100; i++)
		arrive(0, &from, &rtu);
	wait_for(&world.got[2], 100);
	assert_int_equal(total(), 100);
}

static void a_request_goes_to_the_most_precise_listener(void **state)
{
	struct hca_gsi_service any = service(1, HCA_GSI_ANY, 0),
			       any4 = service(1, HCA_GSI_IPV4, 0),
			       one = service(1, HCA_GSI_ADDRESS, 9);
	struct hca_gsi_address here = address(9, false), other = address(8, false),
			       v6 = address(9, true);
	struct cm_mad r = req(1);

	assert_int_equal(roce_dispatch_serve(&dispatch[0], &any), 0);
	assert_int_equal(roce_dispatch_serve(&dispatch[1], &any4), 0);
	assert_int_equal(roce_dispatch_serve(&dispatch[2], &one), 0);
	assert_int_equal(roce_dispatch_serve(&dispatch[1], &one), -EADDRINUSE);
	arrive(0, &here, &r);
	wait_for(&world.got[2], 1);
	arrive(0, &other, &r);
	wait_for(&world.got[1], 1);
	arrive(0, &v6, &r);
	wait_for(&world.got[0], 1);
	roce_dispatch_unserve(&dispatch[2], &one);
	arrive(2, &here, &r);
	wait_for(&world.got[1], 2);
	assert_int_equal(roce_dispatch_serve(&dispatch[0], &one), 0);
	arrive(2, &here, &r);
	wait_for(&world.got[0], 2);
	assert_int_equal(total(), 5);
}

static void a_request_for_no_listener_is_rejected(void **state)
{
	struct hca_gsi_service only = service(2, HCA_GSI_ADDRESS, 9);
	struct hca_gsi_address from = address(1, false);
	struct cm_mad r = req(2);

	assert_int_equal(roce_dispatch_serve(&dispatch[1], &only), 0);
	arrive(0, &from, &r);
	wait_for(&world.sent_count, 1);
	assert_int_equal(world.sent.mad.type, CM_REJ);
	assert_int_equal(world.sent.mad.tid, 7);
	assert_int_equal(world.sent.mad.rej.reason, CM_REASON_INVALID_SERVICE_ID);
	assert_int_equal(world.sent.mad.rej.remote_comm_id, 0x1234);
	assert_memory_equal(world.sent.at.source, from.destination, 16);
	assert_memory_equal(world.sent.at.destination, from.source, 16);
	r = (struct cm_mad){ .type = CM_SIDR_REQ,
			     .sidr_req = { .request_id = 3,
					   .service_id = service_base + 2 } };
	arrive(0, &from, &r);
	wait_for(&world.sent_count, 2);
	assert_int_equal(world.sent.mad.type, CM_SIDR_REP);
	assert_int_equal(world.sent.mad.sidr_rep.status, CM_SIDR_UNSUPPORTED);
	assert_int_equal(total(), 2);
}

static void a_request_waits_for_a_listener_that_is_about_to_come(void **state)
{
	struct hca_gsi_address from = address(1, false);
	struct hca_gsi_service soon = service(3, HCA_GSI_IPV4, 0);
	struct cm_mad r = req(3);

	/* Of the same process, and of another one. */
	for (unsigned i = 0; i < 2; i++) {
		arrive(0, &from, &r);
		arrive(0, &from, &r);
		assert_int_equal(roce_dispatch_serve(&dispatch[i], &soon), 0);
		wait_for(&world.got[i], 2);
		roce_dispatch_unserve(&dispatch[i], &soon);
	}
	assert_int_equal(world.sent_count, 0);
	/* Not without end, and not without a limit of their number. */
	for (unsigned i = 0; i < 100; i++)
		arrive(0, &from, &r);
	wait_for(&world.sent_count, 100);
	assert_int_equal(world.sent.mad.type, CM_REJ);
	assert_int_equal(total(), 104);
}

/* A slot that no process has; other tests may run meanwhile. */
static unsigned empty_slot(void)
{
	roce_dispatch_close(&dispatch[2]);
	return slots[2];
}

static void messages_to_nobody_are_answered_by_their_kind(void **state)
{
	struct hca_gsi_address from = address(1, false);
	unsigned nobody = empty_slot();
	struct cm_mad mad = to_slot(CM_DREQ, nobody);

	arrive(0, &from, &mad);
	wait_for(&world.sent_count, 1);
	assert_int_equal(world.sent.mad.type, CM_DREP);
	assert_int_equal(world.sent.mad.drep.remote_comm_id, 77);
	mad = to_slot(CM_REP, nobody);
	arrive(0, &from, &mad);
	wait_for(&world.sent_count, 2);
	assert_int_equal(world.sent.mad.type, CM_REJ);
	assert_int_equal(world.sent.mad.rej.reason, CM_REASON_INVALID_COMM_ID);
	mad = to_slot(CM_RTU, nobody);
	arrive(0, &from, &mad);
	mad = to_slot(CM_RTU, 0);
	arrive(0, &from, &mad);
	assert_int_equal(total(), 2);
}

static void a_callers_early_reject_reaches_all(void **state)
{
	struct hca_gsi_address from = address(1, false);
	struct cm_mad mad = { .type = CM_REJ,
			      .rej = { .local_comm_id = 9,
				       .reason = CM_REASON_TIMEOUT } };

	arrive(0, &from, &mad);
	for (unsigned i = 0; i < PROCESSES; i++)
		wait_for(&world.got[i], 1);
	assert_int_equal(total(), 3);
}

/* Each takes a socket for every slot: a flood of them is left alone after a while, and harms
 * other senders' messages only where they share its allowance. */
static void a_flood_of_early_rejects_is_bounded(void **state)
{
	enum { FLOOD = 5000, OTHERS = 32 };
	struct hca_gsi_address from = address(1, false);
	struct cm_mad mad = { .type = CM_REJ,
			      .rej = { .local_comm_id = 9,
				       .reason = CM_REASON_TIMEOUT } };
	struct cm_mad rtu = to_slot(CM_RTU, slots[2]);
	struct timespec begun, ended;
	unsigned allowed;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (unsigned i = 0; i < FLOOD; i++)
		arrive(0, &from, &mad);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	wait_for(&world.got[0], FLOOD);
	/* 4096 at once and 1000 in a second, 64 for each. */
	allowed = 64 + 17 * (unsigned)(ended.tv_sec - begun.tv_sec + 1);
	assert_in_range(world.got[1], 1, allowed);
	wait_until_quiet();
	allowed = world.got[1];
	for (unsigned i = 0; i < OTHERS; i++) {
		from.source[14] = (uint8_t)(i + 1);
		arrive(0, &from, &rtu);
	}
	wait_until_quiet();
	assert_in_range(world.got[2], allowed + OTHERS / 2, allowed + OTHERS);
}

/* Whoever holds a name and accepts nobody: it may be of another user, which nobody can tell. */
static void a_busy_name_hides_no_other_listener(void **state)
{
	struct hca_gsi_service any = service(4, HCA_GSI_ANY, 0);
	struct hca_gsi_address from = address(9, false);
	struct abstract_name name;
	struct cm_mad r = req(4);
	int listener, calls[64];
	unsigned n = 0;

	assert_int_equal(abstract_name(&name, "busbar.roce.service.%llx.any4",
				       (unsigned long long)any.service_id), 0);
	listener = abstract_open(&name, SOCK_SEQPACKET, 1);
	assert_true(listener >= 0);
	do {
		assert_in_range(n, 0, 63);
		calls[n] = abstract_connect(&name);
	} while (calls[n++] >= 0);
	assert_int_equal(calls[n - 1], -EAGAIN);
	assert_int_equal(roce_dispatch_serve(&dispatch[1], &any), 0);
	arrive(0, &from, &r);
	wait_for(&world.got[1], 1);
	while (--n)
		close(calls[n - 1]);
	close(listener);
}

static void what_is_no_message_is_dropped(void **state)
{
	struct hca_gsi_address from = address(1, false), bad = from;
	struct cm_mad mad = to_slot(CM_RTU, slots[0]);
	uint8_t bytes[CM_MAD_SIZE + 1] = { 0 };

	assert_int_equal(wire_cm_encode(&mad, bytes), 0);
	roce_dispatch_arrived(&dispatch[0], &from, bytes, CM_MAD_SIZE - 1);
	roce_dispatch_arrived(&dispatch[0], &from, bytes, CM_MAD_SIZE + 1);
	bad.source[12] = 239;
	roce_dispatch_arrived(&dispatch[0], &bad, bytes, CM_MAD_SIZE);
	memset(bad.source, 0, 16);
	roce_dispatch_arrived(&dispatch[0], &bad, bytes, CM_MAD_SIZE);
	bytes[1] = 4; /* the class of performance management */
	roce_dispatch_arrived(&dispatch[0], &from, bytes, CM_MAD_SIZE);
	assert_int_equal(total(), 0);
}

static void relayed_bytes_are_checked(void **state)
{
	struct hca_gsi_address from = address(1, false), got;
	uint8_t bytes[ROCE_RELAY_BYTES + 1], mad[HCA_GSI_MAD_BYTES] = { 1, 2, 3 },
		back[HCA_GSI_MAD_BYTES];

	roce_relay_encode(&from, mad, bytes);
	assert_int_equal(roce_relay_decode(bytes, ROCE_RELAY_BYTES, &got, back), 0);
	assert_memory_equal(&got, &from, sizeof(got));
	assert_memory_equal(mad, back, sizeof(mad));
	assert_int_equal(roce_relay_decode(bytes, ROCE_RELAY_BYTES - 1, &got, back),
			 -EBADMSG);
	assert_int_equal(roce_relay_decode(bytes, ROCE_RELAY_BYTES + 1, &got, back),
			 -EBADMSG);
	bytes[0] ^= 1;
	assert_int_equal(roce_relay_decode(bytes, ROCE_RELAY_BYTES, &got, back),
			 -EBADMSG);
	from.destination[12] = 0xe1;
	roce_relay_encode(&from, mad, bytes);
	assert_int_equal(roce_relay_decode(bytes, ROCE_RELAY_BYTES, &got, back),
			 -EBADMSG);
}

/* A process that was made before this one had threads. */
static struct {
	pid_t pid;
	int order, report; /* pipes */
} child;

/* Serves the service that it is told, until it is killed. */
static _Noreturn void serve_until_killed(int order, int report)
{
	struct hca_gsi_service s;

	if (read(order, &s, sizeof(s)) != sizeof(s))
		_exit(0);
	roce_dispatch_init(&dispatch[0], &ops[0]);
	if (progress_hold() || roce_dispatch_serve(&dispatch[0], &s) ||
	    write(report, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static bool child_make(void)
{
	int order[2], report[2];

	if (pipe(order) || pipe(report))
		return false;
	child.pid = fork();
	if (!child.pid) {
		close(order[1]);
		close(report[0]);
		serve_until_killed(order[0], report[1]);
	}
	close(order[0]);
	close(report[1]);
	child.order = order[1];
	child.report = report[0];
	return child.pid > 0;
}

static void the_names_of_a_killed_process_are_free(void **state)
{
	struct hca_gsi_service s = service(3, HCA_GSI_ANY, 0);
	struct hca_gsi_address from = address(1, false);
	struct cm_mad r = req(3);
	int status;
	char byte;

	assert_int_equal(write(child.order, &s, sizeof(s)), sizeof(s));
	assert_int_equal(read(child.report, &byte, 1), 1);
	assert_int_equal(roce_dispatch_serve(&dispatch[1], &s), -EADDRINUSE);
	arrive(0, &from, &r);
	assert_int_equal(total(), 0); /* it went to the child */
	kill(child.pid, SIGKILL);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	arrive(0, &from, &r);
	wait_for(&world.sent_count, 1);
	assert_int_equal(roce_dispatch_serve(&dispatch[1], &s), 0);
	arrive(0, &from, &r);
	wait_for(&world.got[1], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_process_has_a_slot_of_its_own),
		TEST(a_message_goes_to_the_slot_of_its_identifier),
		TEST(many_messages_at_once_all_arrive),
		TEST(a_request_goes_to_the_most_precise_listener),
		TEST(a_request_for_no_listener_is_rejected),
		TEST(a_request_waits_for_a_listener_that_is_about_to_come),
		TEST(messages_to_nobody_are_answered_by_their_kind),
		TEST(a_callers_early_reject_reaches_all),
		TEST(a_flood_of_early_rejects_is_bounded),
		TEST(a_busy_name_hides_no_other_listener),
		TEST(what_is_no_message_is_dropped),
		TEST(relayed_bytes_are_checked),
		TEST(the_names_of_a_killed_process_are_free),
	};
	int ret;

	pthread_cond_init(&world.more, NULL);
	hca_settings_init();
	if (!child_make() || progress_hold())
		return 1;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	progress_release();
	return ret;
}
