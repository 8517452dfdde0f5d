/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libbusbar-shmem: what a simulator and a gateway rely on, most of it with both
 * sides in this process, some with a child that is killed.
 */
#include <busbar/shmem.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shmem/layout.h"

static char one[64], two[64];

static bool exists(const char *name)
{
	int fd = shm_open(name, O_RDONLY, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static struct busbar_shmem *must_open(const char *write_name,
				      const char *read_name, unsigned mode,
				      unsigned queuelen, unsigned values)
{
	struct busbar_shmem_options o = { .mode = mode, .queuelen = queuelen,
					  .values = values };
	struct busbar_shmem *s = NULL;

	if (busbar_shmem_open(&s, write_name, read_name, &o))
		fail_msg("%s", busbar_shmem_error());
	return s;
}

static int try_open(const char *write_name, const char *read_name)
{
	struct busbar_shmem_options o = { 0 };
	struct busbar_shmem *s;
	int ret = busbar_shmem_open(&s, write_name, read_name, &o);

	if (!ret)
		busbar_shmem_close(s);
	return ret;
}

static double read_one(struct busbar_shmem *s)
{
	double v = -1;

	assert_int_equal(busbar_shmem_read_values(s, &v, 1, 20000000000), 1);
	return v;
}

static int write_one(struct busbar_shmem *s, double v)
{
	return busbar_shmem_write_values(s, &v, 1);
}

static void samples_come_out_as_they_went_in(void **state)
{
	struct busbar_shmem *a = must_open(one, two, BUSBAR_SHMEM_PTHREAD, 8, 4);
	struct busbar_shmem *b = must_open(two, one, BUSBAR_SHMEM_POLLING, 0, 0);
	union busbar_shmem_value v[4] = { { .f = 1.5 }, { .i = -7 },
					  { .z = { 1, -2 } }, { .i = 1 } }, w[4];
	struct busbar_shmem_sample in = {
		.sequence = 99, .origin = { 10, 999999999 }, .received = { 11, 5 },
		.flags = 0x1f, .length = 4, .values = v,
	}, out = { .capacity = 4, .values = w };

	assert_int_equal(busbar_shmem_connected(a), 1);
	for (int i = 0; i < 100; i++) {
		in.sequence++;
		assert_int_equal(busbar_shmem_write(a, &in, 1), 1);
		assert_int_equal(busbar_shmem_read(b, &out, 1, 0), 1);
		assert_int_equal(out.sequence, in.sequence);
		assert_memory_equal(&out.origin, &in.origin, sizeof(in.origin));
		assert_memory_equal(&out.received, &in.received,
				    sizeof(in.received));
		assert_int_equal(out.flags, 0x1f);
		assert_int_equal(out.length, 4);
		assert_memory_equal(v, w, sizeof(v));
	}
	/* And the other way. */
	assert_int_equal(write_one(b, 2.5), 1);
	assert_true(read_one(a) == 2.5);
	busbar_shmem_close(a);
	busbar_shmem_close(b);
}

static void the_first_decides_the_dimensions(void **state)
{
	struct busbar_shmem *a = must_open(one, two, 0, 5, 3), *b;

	b = must_open(two, one, 0, 4096, 100);
	assert_int_equal(busbar_shmem_write_max(b), 3);
	assert_int_equal(busbar_shmem_read_max(b), 3);
	/* Five are eight. */
	for (int i = 0; i < 8; i++)
		assert_int_equal(write_one(b, i), 1);
	assert_int_equal(write_one(b, 8), 0);
	for (int i = 0; i < 8; i++)
		assert_true(read_one(a) == i);
	assert_int_equal(write_one(b, 9), 1);
	busbar_shmem_close(a);
	busbar_shmem_close(b);
}

static void values_that_do_not_fit_are_refused_or_cut(void **state)
{
	struct busbar_shmem *a = must_open(one, NULL, 0, 4, 2), *b;
	double v[3] = { 1, 2, 3 };
	union busbar_shmem_value w[2] = { { 0 }, { .i = 77 } };
	struct busbar_shmem_sample out = { .capacity = 1, .values = w };

	b = must_open(NULL, one, 0, 0, 0);
	assert_int_equal(busbar_shmem_write_values(a, v, 3), -EMSGSIZE);
	assert_int_equal(busbar_shmem_write_values(a, v, 2), 1);
	assert_int_equal(busbar_shmem_read(b, &out, 1, 0), 1);
	assert_int_equal(out.length, 1);
	assert_true(out.flags & BUSBAR_SHMEM_CUT);
	assert_int_equal(w[1].i, 77);
	assert_int_equal(busbar_shmem_read(a, &out, 1, 0), -ENOTSUP);
	assert_int_equal(write_one(b, 1), -ENOTSUP);
	busbar_shmem_close(a);
	busbar_shmem_close(b);
}

static void objects_go_with_the_last_user(void **state)
{
	struct busbar_shmem *a = must_open(one, two, 0, 0, 0), *b;
	struct stat st;
	char path[96];

	assert_true(exists(one) && exists(two));
	snprintf(path, sizeof(path), "/dev/shm%s", one);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	b = must_open(two, one, 0, 0, 0);
	busbar_shmem_close(a);
	assert_true(exists(one) && exists(two));
	busbar_shmem_close(b);
	assert_false(exists(one) || exists(two));
}

static void what_cannot_be_is_refused_with_words(void **state)
{
	struct busbar_shmem_options o = { .queuelen = 1u << 21 };
	struct busbar_shmem *s, *t;

	assert_int_equal(try_open("/a/b", one), -EINVAL);
	assert_non_null(strstr(busbar_shmem_error(), "'a/b'"));
	assert_int_equal(try_open("", one), -EINVAL);
	assert_int_equal(try_open("/..", one), -EINVAL);
	assert_int_equal(try_open(one, one + 1), -EINVAL);
	assert_int_equal(try_open(NULL, NULL), -EINVAL);
	assert_int_equal(busbar_shmem_open(&s, one, two, &o), -EINVAL);
	o = (struct busbar_shmem_options){ .mode = 2 };
	assert_int_equal(busbar_shmem_open(&s, one, two, &o), -EINVAL);
	assert_false(exists(one) || exists(two));

	/* Only one writer is possible, and the first one is not disturbed. */
	s = must_open(one, two, 0, 0, 0);
	assert_int_equal(try_open(one, NULL), -EBUSY);
	assert_non_null(strstr(busbar_shmem_error(), "writes it already"));
	assert_int_equal(try_open(NULL, two), -EBUSY);
	t = must_open(two, one, 0, 0, 0);
	assert_int_equal(write_one(s, 3), 1);
	assert_true(read_one(t) == 3);
	busbar_shmem_close(s);
	busbar_shmem_close(t);

	o = (struct busbar_shmem_options){ .timeout_ns = 2000000 };
	assert_int_equal(busbar_shmem_open(&s, one, two, &o), -ETIMEDOUT);
	assert_false(exists(one) || exists(two));
}

static void an_object_of_somebody_else_is_left_alone(void **state)
{
	int fd = shm_open(one, O_RDWR | O_CREAT | O_EXCL, 0600);
	char text[16] = "";

	assert_int_equal(write(fd, "precious data", 14), 14);
	assert_int_equal(try_open(one, two), -EEXIST);
	assert_int_equal(try_open(NULL, one), -EEXIST);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 14);
	assert_string_equal(text, "precious data");
	close(fd);
	shm_unlink(one);
	assert_false(exists(two));
}

/* Runs `what` in a process that is killed when it says that it is ready. */
static void kill_after(void (*what)(void))
{
	int fds[2], status;
	char c;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		what();
		if (write(fds[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static struct busbar_shmem *child_handle;

static void child_writes_three(void)
{
	child_handle = must_open(one, two, 0, 8, 2);
	for (int i = 0; i < 3; i++)
		write_one(child_handle, i);
}

static void leftovers_of_the_killed_are_taken_over(void **state)
{
	struct busbar_shmem *a, *b;

	kill_after(child_writes_three);
	assert_true(exists(one) && exists(two));
	a = must_open(one, two, 0, 16, 4);
	assert_int_equal(busbar_shmem_write_max(a), 4);
	assert_int_equal(busbar_shmem_connected(a), 0);
	b = must_open(two, one, 0, 0, 0);
	assert_int_equal(write_one(a, 42), 1);
	assert_true(read_one(b) == 42);
	busbar_shmem_close(a);
	busbar_shmem_close(b);
	assert_false(exists(one) || exists(two));
}

static void a_killed_writer_is_noticed_and_may_return(void **state)
{
	struct busbar_shmem *b = must_open(two, one, 0, 8, 2), *a;
	union busbar_shmem_value w[2];
	struct busbar_shmem_sample out = { .capacity = 2, .values = w };
	double v;

	kill_after(child_writes_three);
	/* What it wrote is there, then the news. */
	for (int i = 0; i < 3; i++)
		assert_true(read_one(b) == i);
	assert_int_equal(busbar_shmem_read_values(b, &v, 1, 5000000000),
			 -ENOTCONN);
	assert_int_equal(busbar_shmem_read_values(b, &v, 1, 1000000), 0);
	assert_int_equal(busbar_shmem_connected(b), 0);
	assert_int_equal(write_one(b, 1), -ENOTCONN);

	a = must_open(one, two, 0, 0, 0);
	assert_int_equal(write_one(a, 7), 1);
	assert_int_equal(write_one(a, 8), 1);
	assert_int_equal(busbar_shmem_read(b, &out, 1, 1000000000), 1);
	assert_true(w[0].f == 7);
	assert_true(out.flags & BUSBAR_SHMEM_NEW_SIMULATION);
	assert_int_equal(busbar_shmem_read(b, &out, 1, 1000000000), 1);
	assert_false(out.flags & BUSBAR_SHMEM_NEW_SIMULATION);
	assert_int_equal(write_one(b, 1), 1);
	busbar_shmem_close(a);
	assert_int_equal(busbar_shmem_read_values(b, &v, 1, -1), -ENOTCONN);
	busbar_shmem_close(b);
	assert_false(exists(one) || exists(two));
}

/* The next slot filled, but for its tag. */
static void child_dies_while_it_writes(void)
{
	struct shmem_header *h;
	struct shmem_slot *slot;
	int fd;

	child_writes_three();
	fd = shm_open(one, O_RDWR, 0);
	h = mmap(NULL, SHMEM_HEADER_BYTES + 8 * 128, PROT_READ | PROT_WRITE,
		 MAP_SHARED, fd, 0);
	slot = (void *)((char *)h + SHMEM_HEADER_BYTES + 3 * h->slot_bytes);
	slot->sequence = 666;
	slot->length = 2;
	slot->values[0] = 666;
}

static void a_half_written_sample_is_never_delivered(void **state)
{
	struct busbar_shmem *b = must_open(two, one, 0, 8, 2), *a;
	double v;

	kill_after(child_dies_while_it_writes);
	for (int i = 0; i < 3; i++)
		assert_true(read_one(b) == i);
	assert_int_equal(busbar_shmem_read_values(b, &v, 1, 5000000000),
			 -ENOTCONN);
	a = must_open(one, two, 0, 0, 0);
	assert_int_equal(write_one(a, 5), 1);
	assert_true(read_one(b) == 5);
	busbar_shmem_close(a);
	busbar_shmem_close(b);
}

static void child_reads(void)
{
	double v;

	child_handle = must_open(two, one, 0, 0, 0);
	busbar_shmem_read_values(child_handle, &v, 1, 1000000);
}

static void a_new_reader_begins_with_the_next_sample(void **state)
{
	struct busbar_shmem *a = must_open(one, two, 0, 8, 2), *b;
	int ret, written = 0;

	assert_int_equal(write_one(a, 0), -ENOTCONN);
	kill_after(child_reads);
	/* There is no reader: noticed at the latest when the ring is full. */
	while ((ret = write_one(a, written)) == 1)
		written++;
	assert_true(written <= 8);
	assert_true(ret == 0 || ret == -ENOTCONN);
	assert_int_equal(busbar_shmem_connected(a), 0);
	assert_int_equal(write_one(a, 0), -ENOTCONN);
	b = must_open(two, one, 0, 0, 0);
	assert_int_equal(write_one(a, 42), 1);
	assert_true(read_one(b) == 42);
	busbar_shmem_close(b);
	busbar_shmem_close(a);
}

#define MANY 20000

static void *echo(void *handle)
{
	double v;

	for (int i = 0; i < MANY; i++) {
		if (busbar_shmem_read_values(handle, &v, 1, 10000000000) != 1)
			return (void *)"the echo read nothing";
		while (write_one(handle, v) == 0)
			sched_yield();
	}
	return NULL;
}

static void keep_order(unsigned mode)
{
	struct busbar_shmem *a = must_open(one, two, mode, 16, 1);
	struct busbar_shmem *b = must_open(two, one, mode, 16, 1);
	pthread_t thread;
	void *failure;
	int sent = 0;

	assert_int_equal(pthread_create(&thread, NULL, echo, b), 0);
	for (int back = 0; back < MANY; back++) {
		while (sent < MANY && write_one(a, sent) == 1)
			sent++;
		assert_true(read_one(a) == back);
	}
	pthread_join(thread, &failure);
	assert_null(failure);
	busbar_shmem_close(a);
	busbar_shmem_close(b);
}

static void nothing_is_lost_or_reordered_while_both_sleep(void **state)
{
	keep_order(BUSBAR_SHMEM_PTHREAD);
}

static void nothing_is_lost_or_reordered_while_both_spin(void **state)
{
	keep_order(BUSBAR_SHMEM_POLLING);
}

static void *interrupt(void *handle)
{
	busbar_shmem_interrupt(handle);
	return NULL;
}

static void a_read_that_waits_can_be_interrupted(void **state)
{
	for (unsigned mode = 0; mode < 2; mode++) {
		struct busbar_shmem *a = must_open(one, two, mode, 0, 0);
		struct busbar_shmem *b = must_open(two, one, mode, 0, 0);
		pthread_t thread;
		double v;

		assert_int_equal(pthread_create(&thread, NULL, interrupt, a), 0);
		assert_int_equal(busbar_shmem_read_values(a, &v, 1, -1), -EINTR);
		pthread_join(thread, NULL);
		assert_int_equal(busbar_shmem_read_values(a, &v, 1, 1000000), 0);
		busbar_shmem_close(a);
		busbar_shmem_close(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_out_as_they_went_in),
		cmocka_unit_test(the_first_decides_the_dimensions),
		cmocka_unit_test(values_that_do_not_fit_are_refused_or_cut),
		cmocka_unit_test(objects_go_with_the_last_user),
		cmocka_unit_test(what_cannot_be_is_refused_with_words),
		cmocka_unit_test(an_object_of_somebody_else_is_left_alone),
		cmocka_unit_test(leftovers_of_the_killed_are_taken_over),
		cmocka_unit_test(a_killed_writer_is_noticed_and_may_return),
		cmocka_unit_test(a_half_written_sample_is_never_delivered),
		cmocka_unit_test(a_new_reader_begins_with_the_next_sample),
		cmocka_unit_test(nothing_is_lost_or_reordered_while_both_sleep),
		cmocka_unit_test(nothing_is_lost_or_reordered_while_both_spin),
		cmocka_unit_test(a_read_that_waits_can_be_interrupted),
	};

	snprintf(one, sizeof(one), "/busbar-shmem-rings-%d-a", (int)getpid());
	snprintf(two, sizeof(two), "/busbar-shmem-rings-%d-b", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
