/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair 1 from the packets of transport roce to the user of hca/path/gsi.h, and back. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "hca/host/settings.h"
#include "hca/path/path.h"
#include "hca/run/progress.h"
#include "transport/roce/gsi.h"
#include "wire/cm_answer.h"

#define LIMIT_S 10

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct hca_gsi_address from, to;
	unsigned received, emitted;
	bool on_progress;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void receive(const struct hca_gsi_address *from, const uint8_t *mad)
{
	pthread_mutex_lock(&seen.lock);
	seen.from = *from;
	seen.received++;
	seen.on_progress = progress_is_self();
	pthread_cond_broadcast(&seen.more);
	pthread_mutex_unlock(&seen.lock);
}

static int emit(const struct hca_gsi_address *to, const uint8_t *mad)
{
	pthread_mutex_lock(&seen.lock);
	seen.to = *to;
	seen.emitted++;
	pthread_cond_broadcast(&seen.more);
	pthread_mutex_unlock(&seen.lock);
	return 0;
}

static int open_status;

static int open_port(void)
{
	return open_status;
}

static const struct roce_gsi_port port = { open_port, emit };

static void wait_for(const unsigned *count, unsigned want)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LIMIT_S;
	pthread_mutex_lock(&seen.lock);
	while (*count < want)
		if (pthread_cond_clockwait(&seen.more, &seen.lock, CLOCK_MONOTONIC,
					   &until))
			break;
	assert_int_equal(*count, want);
	pthread_mutex_unlock(&seen.lock);
}

static const struct hca_gsi_address from = {
	.source = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 },
	.destination = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 },
};

static void rtu_for(uint32_t comm_id, uint8_t bytes[CM_MAD_SIZE])
{
	struct cm_mad mad = { .type = CM_RTU };

	wire_cm_parties_set(&mad, comm_id, 9);
	assert_int_equal(wire_cm_encode(&mad, bytes), 0);
}

static void without_a_transport_there_is_none(void **state)
{
	hca_transports.count = hca_transports.paths = 0;
	assert_false(hca_gsi_exists());
	assert_int_equal(hca_gsi_open(receive), -EHOSTUNREACH);
	assert_int_equal(hca_gsi_send(&from, NULL), -ENOTCONN);
}

static void a_stopped_transport_opens_none(void **state)
{
	static const struct hca_transport_ops ops = { .name = "t", .gsi = &roce_gsi_ops };
	static const struct hca_local_ops local;
	static const struct hca_transport_ops serving = { .name = "l", .local = &local };

	/* One that no queue pair may use only serves the host. */
	hca_transports.at[0] = &ops;
	hca_transports.at[1] = &serving;
	hca_transports.paths = 1;
	hca_transports.count = 2;
	assert_true(hca_gsi_exists());
	assert_false(hca_local_exists());
	hca_transports.paths = 2;
	assert_true(hca_local_exists());
	hca_transports.paths = 1;
	assert_int_equal(hca_gsi_open(receive), -ENETDOWN);
}

static void messages_pass_in_both_directions(void **state)
{
	struct hca_gsi_service service = { .service_id = 0x7100000000000000,
					   .scope = HCA_GSI_ANY };
	uint8_t bytes[CM_MAD_SIZE];
	uint32_t comm_id;

	service.service_id |= (uint64_t)getpid();
	roce_gsi_start(&port);
	open_status = -EADDRINUSE;
	assert_int_equal(hca_gsi_open(receive), -EADDRINUSE);
	open_status = 0;
	assert_int_equal(hca_gsi_open(receive), 0);
	assert_int_equal(hca_gsi_open(receive), -EALREADY);
	comm_id = hca_gsi_comm_id(UINT32_MAX);
	assert_int_not_equal(comm_id >> HCA_GSI_SLOT_SHIFT, 0);
	assert_int_equal(comm_id & 0x3ffffff, 0x3ffffff);

	rtu_for(comm_id, bytes);
	roce_gsi_arrived(&from, bytes, sizeof(bytes) - 1);
	for (unsigned i = 0; i < 200; i++)
		roce_gsi_arrived(&from, bytes, sizeof(bytes));
	wait_for(&seen.received, 200);
	assert_true(seen.on_progress);
	assert_memory_equal(&seen.from, &from, sizeof(from));

	assert_int_equal(hca_gsi_send(&from, bytes), 0);
	wait_for(&seen.emitted, 1);
	assert_memory_equal(&seen.to, &from, sizeof(from));
	assert_int_equal(hca_gsi_serve(&service), 0);
	assert_int_equal(hca_gsi_serve(&service), -EADDRINUSE);
	hca_gsi_unserve(&service);
	assert_int_equal(hca_gsi_serve(&service), 0);

	/* Closed: what comes is for nobody, and other processes' messages are handed on. */
	hca_gsi_close();
	assert_int_equal(hca_gsi_send(&from, bytes), -ENOTCONN);
	assert_int_equal(hca_gsi_open(receive), 0);
	hca_gsi_close();
	roce_gsi_stop();
	assert_int_equal(seen.received, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_transport_there_is_none),
		cmocka_unit_test(a_stopped_transport_opens_none),
		cmocka_unit_test(messages_pass_in_both_directions),
	};
	int ret;

	pthread_cond_init(&seen.more, NULL);
	hca_settings_init();
	if (progress_hold())
		return 1;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	progress_release();
	return ret;
}
