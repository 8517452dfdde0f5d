/* SPDX-License-Identifier: BSD-2-Clause */
/* Names whose server does not answer; the end of the process does not wait for it. */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "gateway/base/ending.h"
#include "gateway/base/lookup.h"
#include "util/clock.h"

static sem_t asked, may_answer, has_answered;

static int silent(const char *host, const char *service,
		  const struct addrinfo *hints, struct addrinfo **out)
{
	sem_post(&asked);
	while (sem_wait(&may_answer) && errno == EINTR)
		;
	sem_post(&has_answered);
	return EAI_FAIL;
}

static int quick(const char *host, const char *service,
		 const struct addrinfo *hints, struct addrinfo **out)
{
	assert_string_equal(host, "lab.example");
	return getaddrinfo("127.0.0.9", service, hints, out);
}

static void numbers_need_no_server_of_names(void **state)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *found;

	lookup_resolver = silent;
	assert_int_equal(lookup_address("127.0.0.1", "12000", &hints, &found), 0);
	assert_int_equal(found->ai_family, AF_INET);
	freeaddrinfo(found);
}

static void a_name_gets_the_answer_of_its_server(void **state)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *found;

	lookup_resolver = quick;
	assert_int_equal(lookup_address("lab.example", "12000", &hints, &found), 0);
	assert_int_equal(found->ai_family, AF_INET);
	freeaddrinfo(found);
}

static void *end_soon(void *arg)
{
	sem_wait(&asked);
	ending_begin();
	return arg;
}

/* The last one: from here on the process ends. */
static void the_end_does_not_wait_for_a_silent_server(void **state)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *found;
	uint64_t start = clock_monotonic_ns_slow();
	pthread_t thread;

	lookup_resolver = silent;
	assert_int_equal(pthread_create(&thread, NULL, end_soon, NULL), 0);
	assert_int_equal(lookup_address("lab.example", "1", &hints, &found),
			 EAI_AGAIN);
	assert_true(clock_monotonic_ns_slow() - start < 5 * NSEC_PER_SEC);
	pthread_join(thread, NULL);
	sem_post(&may_answer);
	sem_wait(&has_answered);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_need_no_server_of_names),
		cmocka_unit_test(a_name_gets_the_answer_of_its_server),
		cmocka_unit_test(the_end_does_not_wait_for_a_silent_server),
	};

	sem_init(&asked, 0, 0);
	sem_init(&may_answer, 0, 0);
	sem_init(&has_answered, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
