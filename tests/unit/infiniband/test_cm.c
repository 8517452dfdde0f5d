/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management thread of the infiniband node-type, against a connection
 * manager that does what the test says.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fake_cm.h"
#include "gateway/base/lookup.h"
#include "harness.h"

#define LISTEN_HIGH "in = { address = \"127.0.0.2:1337\"; max_wrs = 32; "
#define LISTEN_LOW "in = { address = \"127.0.0.1:1337\"; max_wrs = 32; "
#define CALL_LOW "out = { address = \"127.0.0.1:1337\"; "
#define CALL_HIGH "out = { address = \"127.0.0.2:1337\"; "
#define OFTEN "reconnect_interval = 4; "
#define NEVER "reconnect_interval = 0; "
#define QUIET "use_fallback = false; "

static struct harness h;

static void begin(const char *text)
{
	fake_reset();
	assert_int_equal(harness_open(&h, text), 0);
}

static void start(const char *text)
{
	begin(text);
	assert_int_equal(harness_start(&h), 0);
}

static void end(void)
{
	struct fake_objects none = { 0 }, left;

	harness_close(&h);
	left = fake_objects();
	assert_memory_equal(&left, &none, sizeof(left));
}

static bool is(enum node_state s)
{
	return node_state(&h.node) == s;
}

static int write_one(unsigned *release)
{
	struct sample *s = sample_alloc(&h.pool);
	int ret;

	s->length = 2;
	*release = 1;
	ret = h.node.type->write(&h.node, &s, 1, release);
	sample_put_many(&s, *release);
	return ret;
}

/* One call as a path makes it; returns what read returned. */
static int read_one(void)
{
	struct sample *s = sample_alloc(&h.pool);
	unsigned release = 1;
	int ret;

	h.node.type->interrupt(&h.node);
	ret = h.node.type->read(&h.node, &s, 1, &release);
	sample_put_many(&s, release);
	return ret;
}

static void an_active_node_connects_and_sends(void **state)
{
	unsigned release;

	start(CALL_LOW "};");
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(write_one(&release), 1);
	assert_int_equal(release, 1);
	assert_int_equal(fake_sent(), 1);
	assert_int_equal(harness_logged("connected to 127.0.0.1:1337"), 1);
	harness_stop(&h);
	assert_int_equal(fake_disconnects(), 1);
	end();
}

/* Three addresses, of which the last one answers. */
static int three_addresses(const char *host, const char *service,
			   const struct addrinfo *hints, struct addrinfo **out)
{
	static const char *const hosts[] = { "127.0.0.3", "127.0.0.4", "127.0.0.5" };
	struct addrinfo numeric = *hints, **at = out;

	assert_string_equal(host, "substation");
	*out = NULL;
	numeric.ai_flags |= AI_NUMERICHOST;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(getaddrinfo(hosts[i], service, &numeric, at), 0);
		at = &(*at)->ai_next;
	}
	return 0;
}

/* A node that calls a name with these addresses, of which one at most is there. */
static void start_with_name(const char *only)
{
	begin("out = { address = \"substation:1337\"; " OFTEN "};");
	fake_set_only_address(only);
	lookup_resolver = three_addresses;
	assert_int_equal(harness_start(&h), 0);
	lookup_resolver = getaddrinfo;
}

static void each_address_of_a_name_is_tried(void **state)
{
	unsigned tried;

	start_with_name("127.0.0.5");
	WAIT_FOR(is(NODE_CONNECTED));
	/* One after the other, without a pause, so nothing is said. */
	assert_int_equal(harness_logged("cannot reach"), 0);
	/* The address that it had is the first one that is called again. */
	tried = fake_resolves();
	fake_event(RDMA_CM_EVENT_DISCONNECTED, 0);
	WAIT_FOR(harness_logged("after the connection was lost") == 1);
	assert_int_equal(fake_resolves(), tried + 1);
	/* And where that does not answer any more, the others have their turns. */
	fake_set_only_address("127.0.0.3");
	fake_event(RDMA_CM_EVENT_DISCONNECTED, 0);
	WAIT_FOR(harness_logged("after the connection was lost") == 2);
	end();
}

static void a_name_none_of_whose_addresses_answers_is_told_once(void **state)
{
	start_with_name("127.0.0.6");
	WAIT_FOR(harness_logged("cannot reach substation:1337") == 1);
	fake_set_only_address("127.0.0.4");
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(harness_logged("cannot reach substation:1337"), 1);
	end();
}

static void a_node_that_only_sends_is_connected_when_it_has_started(void **state)
{
	unsigned release;

	begin(CALL_LOW "};");
	h.node.is_destination = true;
	assert_int_equal(harness_start(&h), 0);
	assert_int_equal(write_one(&release), 1);
	WAIT_FOR(is(NODE_CONNECTED));
	end();
}

static void start_does_not_wait_for_a_peer_that_is_not_there(void **state)
{
	begin(CALL_LOW "reconnect_interval = 3600000; };");
	h.node.is_destination = true;
	fake_set_peer(FAKE_PEER_REJECTS);
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(harness_logged("cannot reach") == 1);
	end();
}

static void write_is_refused_until_the_peer_is_there(void **state)
{
	unsigned release;

	begin(CALL_LOW "};");
	fake_set_peer(FAKE_PEER_SILENT);
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(is(NODE_PENDING_CONNECT));
	assert_int_equal(write_one(&release), 0);
	assert_int_equal(release, 1);
	fake_event(RDMA_CM_EVENT_ESTABLISHED, 0);
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(write_one(&release), 1);
	end();
}

static void tries_again(enum fake_peer why, const char *reason)
{
	begin(CALL_LOW QUIET OFTEN "};");
	fake_set_peer(why);
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(harness_logged(reason) == 1);
	for (int i = 0; i < 60; i++)
		harness_pause();
	/* Once for the change, not for each attempt. */
	assert_int_equal(harness_logged("cannot reach"), 1);
	fake_set_peer(FAKE_PEER_ACCEPTS);
	WAIT_FOR(is(NODE_CONNECTED));
	end();
}

static void an_active_node_goes_on_trying_until_the_peer_is_there(void **state)
{
	tries_again(FAKE_PEER_REJECTS, "nobody listens there");
	tries_again(FAKE_PEER_UNREACHABLE, "no answer");
	tries_again(FAKE_PEER_NO_ADDRESS, "no adapter reaches");
	tries_again(FAKE_PEER_NO_ROUTE, "no route");
}

static void without_fallback_and_interval_an_unreachable_peer_is_fatal(void **state)
{
	begin(CALL_LOW QUIET NEVER "};");
	fake_set_peer(FAKE_PEER_REJECTS);
	h.node.services = &harness_services;
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(atomic_load(&harness_stops) == 1);
	assert_int_equal(atomic_load(&harness_failures), 1);
	assert_int_equal(harness_logged("giving up"), 1);
	WAIT_FOR(read_one() == -ENODATA);
	assert_int_equal(fake_connects(), 1);
	end();
}

static void with_fallback_an_unreachable_peer_makes_a_listener(void **state)
{
	begin(LISTEN_HIGH "}; " CALL_LOW NEVER "};");
	fake_set_peer(FAKE_PEER_REJECTS);
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(fake_objects().listeners == 1);
	assert_true(is(NODE_STARTED));
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(fake_connects(), 1);
	assert_int_equal(fake_accepts(), 1);
	end();
}

static void with_fallback_it_listens_between_attempts(void **state)
{
	begin(LISTEN_HIGH "}; " CALL_LOW "reconnect_interval = 3600000; };");
	fake_set_peer(FAKE_PEER_REJECTS);
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(harness_logged("meanwhile listening on 127.0.0.2:1337") == 1);
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	end();
}

static void a_passive_node_accepts_and_rejects_a_second_peer(void **state)
{
	start(LISTEN_LOW "};");
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	fake_request();
	WAIT_FOR(fake_rejects() == 1);
	assert_true(is(NODE_CONNECTED));
	assert_int_equal(fake_accepts(), 1);
	end();
}

static void a_peer_that_comes_back_unnoticed_is_accepted_in_the_end(void **state)
{
	start(LISTEN_LOW "};");
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	/* Its host is gone; nothing tells a node that only receives. */
	fake_break();
	fake_request();
	WAIT_FOR(harness_logged("does not answer any more") == 1);
	assert_int_equal(fake_rejects(), 1);
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(fake_accepts(), 2);
	end();
}

static void a_passive_node_accepts_again_after_the_peer_went_away(void **state)
{
	start(LISTEN_LOW "};");
	for (int i = 0; i < 3; i++) {
		fake_request();
		WAIT_FOR(is(NODE_CONNECTED));
		fake_event(RDMA_CM_EVENT_DISCONNECTED, 0);
		WAIT_FOR(is(NODE_STARTED));
	}
	assert_int_equal(fake_objects().qps, 0);
	assert_int_equal(fake_accepts(), 3);
	WAIT_FOR(harness_logged("connection lost") == 3);
	end();
}

static void an_active_node_reconnects_to_a_peer_that_died(void **state)
{
	start(CALL_LOW OFTEN "};");
	WAIT_FOR(is(NODE_CONNECTED));
	fake_set_peer(FAKE_PEER_REJECTS);
	fake_event(RDMA_CM_EVENT_DISCONNECTED, 0);
	WAIT_FOR(fake_connects() >= 3);
	assert_false(is(NODE_CONNECTED));
	fake_set_peer(FAKE_PEER_ACCEPTS);
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(harness_logged("connection lost"), 1);
	assert_int_equal(harness_logged("cannot reach"), 0);
	assert_int_equal(harness_logged("connected to"), 2);
	end();
}

static void a_failed_completion_ends_the_connection_and_it_comes_back(void **state)
{
	unsigned release;

	start(CALL_LOW OFTEN "};");
	WAIT_FOR(is(NODE_CONNECTED));
	fake_break();
	/* The first meets the error, whatever is posted with it comes back. */
	WAIT_FOR(write_one(&release) >= 0 &&
		 harness_logged("connection lost") == 1);
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(write_one(&release), 1);
	end();
}

/* Until it calls a peer that does not answer. */
static void wait_for_a_call_in_vain(void)
{
	unsigned before;

	fake_set_peer(FAKE_PEER_SILENT);
	before = fake_connects();
	WAIT_FOR(fake_connects() > before);
	WAIT_FOR(is(NODE_PENDING_CONNECT));
}

static void of_two_that_call_each_other_the_larger_address_gives_way(void **state)
{
	begin(LISTEN_HIGH "}; " CALL_LOW OFTEN "};");
	fake_set_peer(FAKE_PEER_REJECTS);
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(fake_objects().listeners == 1);
	wait_for_a_call_in_vain();
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(fake_accepts(), 1);
	end();
}

static void of_two_that_call_each_other_the_smaller_address_insists(void **state)
{
	begin(LISTEN_LOW "}; " CALL_HIGH OFTEN "};");
	fake_set_peer(FAKE_PEER_REJECTS);
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(fake_objects().listeners == 1);
	wait_for_a_call_in_vain();
	fake_request();
	WAIT_FOR(fake_rejects() == 1);
	fake_event(RDMA_CM_EVENT_ESTABLISHED, 0);
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(fake_accepts(), 0);
	end();
}

static void receive_requests_are_posted_before_the_peer_may_send(void **state)
{
	begin(LISTEN_LOW "};");
	h.node.is_source = true;
	assert_int_equal(harness_start(&h), 0);
	fake_request();
	while (fake_accepts() == 0)
		read_one();
	assert_true(fake_receives() >= 32 - 16);
	assert_true(h.pool.available < h.pool.count);
	/* Everything that is posted comes back. */
	harness_stop(&h);
	end();
}

static void a_disconnect_releases_what_was_posted(void **state)
{
	start(LISTEN_LOW "};");
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	while (fake_receives() < 32 - 16)
		read_one();
	fake_event(RDMA_CM_EVENT_DISCONNECTED, 0);
	WAIT_FOR(is(NODE_STARTED));
	assert_int_equal(h.pool.available, h.pool.count);
	/* Without a connection read has nothing and hands everything back. */
	assert_int_equal(read_one(), 0);
	assert_int_equal(h.pool.available, h.pool.count);
	end();
}

static atomic_bool reader_stop;

/* What a path's thread does. */
static void *read_until_stopped(void *arg)
{
	const struct node_type *t = h.node.type;
	struct sample *s;
	unsigned release;

	while (!atomic_load(&reader_stop)) {
		s = sample_alloc(&h.pool);
		if (!s)
			break;
		release = 1;
		t->read(&h.node, &s, 1, &release);
		sample_put_many(&s, release);
	}
	return NULL;
}

static void join_reader(pthread_t t)
{
	atomic_store(&reader_stop, true);
	h.node.type->interrupt(&h.node);
	pthread_join(t, NULL);
}

static void a_sleeping_reader_notices_loss_and_return_of_the_peer(void **state)
{
	pthread_t t;

	begin(LISTEN_LOW "polling = \"event\"; };");
	h.node.is_source = true;
	assert_int_equal(harness_start(&h), 0);
	atomic_store(&reader_stop, false);
	assert_int_equal(pthread_create(&t, NULL, read_until_stopped, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		unsigned arms = fake_arms();

		fake_request();
		WAIT_FOR(is(NODE_CONNECTED));
		/* It sleeps, or is about to. */
		WAIT_FOR(fake_arms() > arms);
		fake_event(RDMA_CM_EVENT_DISCONNECTED, 0);
		WAIT_FOR(is(NODE_STARTED));
		assert_int_equal(fake_objects().cqs, 0);
	}
	join_reader(t);
	end();
}

static void stop_with_a_sleeping_reader_ends_at_once(void **state)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		begin(LISTEN_LOW "polling = \"event\"; };");
		h.node.is_source = true;
		assert_int_equal(harness_start(&h), 0);
		atomic_store(&reader_stop, false);
		assert_int_equal(pthread_create(&t, NULL, read_until_stopped,
						NULL), 0);
		fake_request();
		WAIT_FOR(fake_arms() > 0);
		join_reader(t); /* sleeps for ever else */
		end();
	}
}

/* Reads when a descriptor says so, as a path of several sources does. */
static bool read_when_readable(void)
{
	struct pollfd pfds[2];
	int fds[2];

	assert_int_equal(h.node.type->poll_fds(&h.node, fds, 2), 2);
	for (int i = 0; i < 2; i++)
		pfds[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	if (poll(pfds, 2, 1) <= 0)
		return false;
	struct sample *s = sample_alloc(&h.pool);
	unsigned release = 1;

	assert_int_equal(h.node.type->read(&h.node, &s, 1, &release), 0);
	sample_put_many(&s, release);
	return true;
}

static void who_waits_for_descriptors_fills_the_queue_of_each_connection(void **state)
{
	begin(LISTEN_LOW "polling = \"adaptive\"; spin = 1000000; };");
	h.node.is_source = true;
	assert_int_equal(harness_start(&h), 0);
	while (read_when_readable())
		;
	for (int i = 0; i < 3; i++) {
		fake_request();
		WAIT_FOR((read_when_readable(), is(NODE_CONNECTED)));
		assert_true(fake_receives() >= 32 - 16);
		fake_event(RDMA_CM_EVENT_DISCONNECTED, 0);
		WAIT_FOR((read_when_readable(), is(NODE_STARTED)));
		assert_int_equal(h.pool.available, h.pool.count);
	}
	end();
}

static void a_connection_over_another_adapter_is_refused(void **state)
{
	begin(LISTEN_HIGH "}; " CALL_LOW "};");
	fake_set_other_adapter(true);
	assert_int_equal(harness_start(&h), 0);
	WAIT_FOR(harness_logged("goes over adapter fake1, but the samples are registered with fake0") >= 1);
	end();
}

static void deeper_queues_than_the_adapter_has_are_refused(void **state)
{
	begin("in = { address = \"127.0.0.1:1337\"; max_wrs = 8192; cq_size = 8192; };");
	assert_int_equal(harness_start(&h), -ERANGE);
	assert_int_equal(harness_logged("offers at most max_wrs 4096"), 1);
	end();
}

static void a_stopped_node_starts_again(void **state)
{
	start(CALL_LOW "};");
	WAIT_FOR(is(NODE_CONNECTED));
	harness_stop(&h);
	assert_int_equal(h.node.type->start(&h.node), 0);
	node_set_state(&h.node, NODE_STARTED);
	h.started = true;
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(fake_connects(), 2);
	end();
}

static void a_node_stops_in_every_phase(void **state)
{
	static const enum fake_peer peers[] = {
		FAKE_PEER_ACCEPTS, FAKE_PEER_REJECTS, FAKE_PEER_SILENT,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(peers); i++) {
		for (unsigned pauses = 0; pauses < 8; pauses++) {
			begin(CALL_LOW OFTEN "};");
			fake_set_peer(peers[i]);
			assert_int_equal(harness_start(&h), 0);
			for (unsigned k = 0; k < pauses; k++)
				harness_pause();
			end();
		}
	}
}

static void passive_ud_is_connected_at_once_and_answers_further_peers(void **state)
{
	unsigned release;

	start("rdma_transport_mode = \"UD\"; " LISTEN_LOW "};");
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	fake_request();
	WAIT_FOR(fake_accepts() == 2);
	assert_int_equal(fake_objects().qps, 1);
	/* No destination is configured. */
	assert_int_equal(write_one(&release), 0);
	assert_int_equal(release, 1);
	end();
}

static void active_ud_sends_through_an_address_handle(void **state)
{
	unsigned release;

	start("rdma_transport_mode = \"UD\"; " CALL_LOW "};");
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(fake_objects().ahs, 1);
	assert_int_equal(write_one(&release), 1);
	end();
}

static void a_uc_peer_that_is_back_after_its_host_went_down_is_accepted(void **state)
{
	start("rdma_transport_mode = \"UC\"; " LISTEN_LOW "};");
	h.node.is_destination = false;
	fake_request();
	WAIT_FOR(is(NODE_CONNECTED));
	/* A call is no proof, silence after it is. */
	fake_request();
	WAIT_FOR(fake_rejects() == 1);
	assert_int_equal(harness_logged("connection lost"), 0);
	for (int i = 0; i < 2100; i++)
		harness_pause();
	fake_request();
	WAIT_FOR(fake_accepts() == 2);
	WAIT_FOR(is(NODE_CONNECTED));
	assert_int_equal(harness_logged("calls anew"), 1);
	assert_int_equal(fake_rejects(), 1);
	end();
}

static void active_ud_goes_on_while_the_same_peer_answers(void **state)
{
	start("rdma_transport_mode = \"UD\"; " CALL_LOW OFTEN "};");
	WAIT_FOR(fake_connects() > 4);
	assert_int_equal(harness_logged("connected to"), 1);
	assert_int_equal(harness_logged("connection lost"), 0);
	fake_set_peer(FAKE_PEER_REJECTS); /* by its library: there is no listener */
	WAIT_FOR(harness_logged("connection lost") == 1);
	end();
}

static void active_ud_connects_anew_to_a_peer_that_was_started_anew(void **state)
{
	unsigned release;

	start("rdma_transport_mode = \"UD\"; " CALL_LOW OFTEN "};");
	WAIT_FOR(is(NODE_CONNECTED));
	fake_set_remote_qpn(0x77);
	WAIT_FOR(harness_logged("connection lost: the peer was started anew") == 1);
	WAIT_FOR(harness_logged("ms after the connection was lost") == 1);
	assert_int_equal(write_one(&release), 1);
	end();
}

static void active_ud_waits_for_a_late_answer_but_not_for_ever(void **state)
{
	start("rdma_transport_mode = \"UD\"; " CALL_LOW OFTEN "};");
	WAIT_FOR(is(NODE_CONNECTED));
	fake_set_peer(FAKE_PEER_SILENT);
	for (int i = 0; i < 200; i++)
		harness_pause();
	assert_int_equal(harness_logged("connection lost"), 0);
	WAIT_FOR(harness_logged("connection lost: the peer does not answer") == 1);
	end();
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_active_node_connects_and_sends),
		T(each_address_of_a_name_is_tried),
		T(a_name_none_of_whose_addresses_answers_is_told_once),
		T(a_node_that_only_sends_is_connected_when_it_has_started),
		T(start_does_not_wait_for_a_peer_that_is_not_there),
		T(write_is_refused_until_the_peer_is_there),
		T(an_active_node_goes_on_trying_until_the_peer_is_there),
		T(without_fallback_and_interval_an_unreachable_peer_is_fatal),
		T(with_fallback_an_unreachable_peer_makes_a_listener),
		T(with_fallback_it_listens_between_attempts),
		T(a_passive_node_accepts_and_rejects_a_second_peer),
		T(a_peer_that_comes_back_unnoticed_is_accepted_in_the_end),
		T(a_passive_node_accepts_again_after_the_peer_went_away),
		T(an_active_node_reconnects_to_a_peer_that_died),
		T(a_failed_completion_ends_the_connection_and_it_comes_back),
		T(of_two_that_call_each_other_the_larger_address_gives_way),
		T(of_two_that_call_each_other_the_smaller_address_insists),
		T(receive_requests_are_posted_before_the_peer_may_send),
		T(a_disconnect_releases_what_was_posted),
		T(a_sleeping_reader_notices_loss_and_return_of_the_peer),
		T(stop_with_a_sleeping_reader_ends_at_once),
		T(who_waits_for_descriptors_fills_the_queue_of_each_connection),
		T(a_connection_over_another_adapter_is_refused),
		T(deeper_queues_than_the_adapter_has_are_refused),
		T(a_stopped_node_starts_again),
		T(a_node_stops_in_every_phase),
		T(passive_ud_is_connected_at_once_and_answers_further_peers),
		T(active_ud_sends_through_an_address_handle),
		T(a_uc_peer_that_is_back_after_its_host_went_down_is_accepted),
		T(active_ud_goes_on_while_the_same_peer_answers),
		T(active_ud_connects_anew_to_a_peer_that_was_started_anew),
		T(active_ud_waits_for_a_late_answer_but_not_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
