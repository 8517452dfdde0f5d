/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets into capture files. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"
#include "pcapng_read.h"
#include "transport/carrier/capture.h"
#include "transport/carrier/capture_file.h"
#include "util/log.h"

#define LIMIT_MS 10000

static char dir[64], said[4096];

static bool hear(enum log_level level, const char *line)
{
	size_t at = strlen(said);

	(void)level;
	snprintf(said + at, sizeof(said) - at, "%s\n", line);
	return true;
}

static const char *in_dir(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, PATH_MAX, "%s/%s", dir, name);
	return p;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static struct capture *open_to(const char *path, uint64_t bytes, unsigned files)
{
	const struct capture_params p = {
		.path = path, .file_bytes = bytes, .files = files,
		.link = PCAPNG_ETHERNET, .application = "test",
		.interfaces = { "one", "two" }, .buffer_bytes = 1 << 20,
	};
	struct capture *c;

	check(capture_open(&p, &c) == 0);
	return c;
}

/* The first bytes are the number. */
static void put(struct capture *c, uint32_t number, uint32_t bytes)
{
	uint8_t data[4096] = { 0 };

	memcpy(data, &number, sizeof(number));
	capture_packet(c, &(struct capture_packet){
		.interface = number & 1, .data = data, .bytes = bytes,
		.direction = number & 2 ? CARRIER_IN : CARRIER_OUT });
}

static uint64_t dropped(struct capture *c)
{
	struct capture_counters n;

	capture_count(c, &n);
	return n.dropped;
}

static uint32_t number_of(const struct read_packet *p)
{
	return pcapng_u32(p->data);
}

static void what_was_put_is_in_the_file(void)
{
	const char *path = in_dir("all.pcapng");
	struct capture *c = open_to(path, 0, 1);
	struct pcapng_file f;
	struct read_packet p;
	uint64_t last = 0;

	for (uint32_t i = 0; i < 1000; i++)
		put(c, i, 4 + i);
	capture_close(c);
	check(pcapng_load(path, &f));
	for (uint32_t i = 0; i < 1000; i++) {
		check(pcapng_next(&f, &p) && number_of(&p) == i && p.length == 4 + i);
		check(p.captured == p.length && p.interface == (i & 1));
		check(p.flags == (i & 2 ? 1 : 2) && p.when_ns >= last);
		last = p.when_ns;
	}
	check(!pcapng_next(&f, &p) && f.interfaces == 2 && f.statistics == 2);
	check(f.received[0] == 500 && !f.dropped[0] && !strcmp(f.names[1], "two"));
	pcapng_free(&f);
}

/* As after a kill: nothing is closed. */
static void the_file_can_be_read_while_it_is_written(void)
{
	const char *path = in_dir("killed.pcapng");
	struct pcapng_file f;
	struct read_packet p;
	pid_t child = fork();
	unsigned n = 0;

	if (!child) {
		struct capture *c = open_to(path, 0, 1);

		for (uint32_t i = 0; i < 100; i++)
			put(c, i, 100);
		pause();
	}
	for (unsigned ms = 0; n < 100; ms++) {
		check(ms < LIMIT_MS);
		pause_ms(1);
		if (!pcapng_load(path, &f))
			continue;
		for (n = 0; pcapng_next(&f, &p); n++)
			check(number_of(&p) == n);
		pcapng_free(&f);
	}
	kill(child, SIGKILL);
	check(waitpid(child, NULL, 0) == child);
	check(pcapng_load(path, &f));
	for (n = 0; pcapng_next(&f, &p); n++)
		;
	check(n == 100);
	pcapng_free(&f);
}

static void long_packets_are_cut_where_that_is_wanted(void)
{
	const struct capture_params params = {
		.path = in_dir("snap.pcapng"), .files = 1, .snap = 64,
		.link = PCAPNG_ETHERNET, .interfaces = { "one", "two" },
	};
	struct pcapng_file f;
	struct read_packet p;
	struct capture *c;

	check(capture_open(&params, &c) == 0);
	put(c, 0, 1000);
	put(c, 1, 20);
	capture_close(c);
	check(pcapng_load(params.path, &f));
	check(pcapng_next(&f, &p) && p.captured == 64 && p.length == 1000);
	check(pcapng_next(&f, &p) && p.captured == 20 && p.length == 20);
	pcapng_free(&f);
}

static void a_file_with_a_limit_ends_there_and_says_so(void)
{
	const char *path = in_dir("limit.pcapng");
	struct capture *c = open_to(path, CAPTURE_SIZE_MIN, 1);
	struct pcapng_file f;
	struct read_packet p;
	unsigned n = 0;

	said[0] = '\0';
	for (uint32_t i = 0; i < 200; i++)
		put(c, i, 1000);
	for (unsigned ms = 0; !dropped(c); ms++) {
		check(ms < LIMIT_MS);
		pause_ms(1);
	}
	put(c, 1000, 1000);
	capture_close(c);
	check(pcapng_load(path, &f) && f.size <= CAPTURE_SIZE_MIN);
	for (; pcapng_next(&f, &p); n++)
		check(number_of(&p) == n);
	check(n > 20 && n < 200 && f.statistics == 2 && strstr(f.comment, "size"));
	check(strstr(said, "has the size that was allowed"));
	check(strstr(said, "packets are missing"));
	pcapng_free(&f);
}

static void a_ring_of_files_keeps_the_latest_ones(void)
{
	struct capture *c = open_to(in_dir("ring.pcapng"), CAPTURE_SIZE_MIN, 3);
	uint32_t next = 0, last = 0;
	glob_t found;

	for (uint32_t i = 0; i < 1000; i++) {
		put(c, i, 1000);
		if (i % 100 == 99)
			pause_ms(5);
	}
	capture_close(c);
	check(!glob(in_dir("ring-*-*.pcapng"), 0, NULL, &found) && found.gl_pathc == 3);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct pcapng_file f;
		struct read_packet p;

		check(pcapng_load(found.gl_pathv[i], &f) && f.size <= CAPTURE_SIZE_MIN);
		while (pcapng_next(&f, &p)) {
			check(!next || number_of(&p) == next);
			last = number_of(&p);
			next = last + 1;
		}
		check(f.sections == 1 && f.statistics == 2);
		pcapng_free(&f);
	}
	check(last == 999);
	globfree(&found);
}

static __attribute__((unused)) void two_processes_do_not_share_a_file(void)
{
	const char *path = in_dir("one.pcapng");
	struct capture *c = open_to(path, 0, 1);
	struct pcapng_file f;
	struct read_packet p;
	char other[PATH_MAX];
	int status;
	pid_t child;

	put(c, 1, 100);
	child = fork();
	if (!child) {
		capture_forked(c);
		c = open_to(path, 0, 1);
		put(c, 2, 100);
		capture_close(c);
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child && !status);
	put(c, 3, 100);
	capture_close(c);
	snprintf(other, sizeof(other), "%s/one-%d.pcapng", dir, (int)child);
	check(pcapng_load(path, &f));
	check(pcapng_next(&f, &p) && number_of(&p) == 1);
	check(pcapng_next(&f, &p) && number_of(&p) == 3 && !pcapng_next(&f, &p));
	pcapng_free(&f);
	check(pcapng_load(other, &f));
	check(pcapng_next(&f, &p) && number_of(&p) == 2 && !pcapng_next(&f, &p));
	pcapng_free(&f);
}

static void the_process_id_can_be_in_the_name(void)
{
	struct capture_file f = { .pattern = "/a.b/x%%%p.pcapng", .files = 1 };
	char name[PATH_MAX], want[PATH_MAX];

	check(!capture_file_name(&f, 1, false, name));
	snprintf(want, sizeof(want), "/a.b/x%%%d.pcapng", (int)getpid());
	check(!strcmp(name, want));
	check(!capture_file_name(&f, 1, true, name) && !strcmp(name, want));
	f.pattern = "/a.b/x";
	f.files = 2;
	check(!capture_file_name(&f, 7, false, name));
	snprintf(want, sizeof(want), "/a.b/x-%d-00007", (int)getpid());
	check(!strcmp(name, want));
	f.pattern = "x%q";
	check(capture_file_name(&f, 1, false, name) == -EINVAL);
	f.pattern = "x%";
	check(capture_file_name(&f, 1, false, name) == -EINVAL);
	f.pattern = "";
	f.files = 1;
	check(capture_file_name(&f, 1, false, name) < 0);
}

static void a_path_that_cannot_be_written_is_told(void)
{
	struct capture_params p = { .path = in_dir("no/such"), .files = 1,
				    .interfaces = { "one" } };
	struct capture *c;

	said[0] = '\0';
	check(capture_open(&p, &c) == -ENOENT);
	check(strstr(said, "No such file"));
	p.path = dir;
	check(capture_open(&p, &c) < 0);
	p.path = in_dir("a%z");
	check(capture_open(&p, &c) == -EINVAL && strstr(said, "%p"));
	p.path = in_dir("x");
	p.files = 2;
	check(capture_open(&p, &c) == -EINVAL);
	p.file_bytes = 100;
	check(capture_open(&p, &c) == -EINVAL);
}

/* RLIMIT_FSIZE: the kernel raises a signal, too, whose default is death. */
static void a_full_disk_ends_the_capture_and_is_told(void)
{
	const char *path = in_dir("full.pcapng");
	int status;
	pid_t child = fork();

	if (!child) {
		const struct rlimit limit = { 100000, 100000 };
		struct pcapng_file f;
		struct read_packet p;
		struct capture *c;
		uint32_t n = 0;

		check(!setrlimit(RLIMIT_FSIZE, &limit));
		c = open_to(path, 0, 1);
		said[0] = '\0';
		for (unsigned ms = 0; !dropped(c); ms++) {
			check(ms < LIMIT_MS);
			put(c, n++, 4000);
			pause_ms(1);
		}
		capture_close(c);
		check(strstr(said, "File too large") && strstr(said, "missing"));
		check(pcapng_load(path, &f));
		for (n = 0; pcapng_next(&f, &p); n++)
			check(number_of(&p) == n);
		check(n > 10);
		pcapng_free(&f);
		exit(0);
	}
	check(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- pipes ---- */

/* Reads up to `bytes`, waits for more as long as nothing is there. */
static size_t read_pipe(int fd, uint8_t *to, size_t bytes, unsigned limit_ms)
{
	size_t at = 0;

	for (unsigned ms = 0; at < bytes && ms < limit_ms;) {
		ssize_t n = read(fd, to + at, bytes - at);

		if (n > 0) {
			at += (size_t)n;
			continue;
		}
		pause_ms(1);
		ms++;
	}
	return at;
}

static void a_reader_of_a_pipe_sees_packets_at_once_and_may_go_and_come_back(void)
{
	const char *path = in_dir("fifo");
	static uint8_t bytes[1 << 16];
	struct capture *c;
	struct pcapng_file f;
	struct read_packet p;
	uint32_t type;
	int fd;

	check(!mkfifo(path, 0600));
	/* Before there is a reader. */
	c = open_to(path, 0, 1);
	put(c, 7, 100);
	for (unsigned round = 0; round < 2; round++) {
		size_t head = 0;

		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		check(fd >= 0);
		/* Block by block, up to the first packet. */
		do {
			uint32_t length;

			check(read_pipe(fd, bytes + head, 8, LIMIT_MS) == 8);
			type = pcapng_u32(bytes + head);
			length = pcapng_u32(bytes + head + 4);
			check(length < 1000);
			check(read_pipe(fd, bytes + head + 8, length - 8, LIMIT_MS) ==
			      length - 8);
			head += length;
		} while (type != PCAPNG_PACKET);
		pcapng_from_memory(bytes, head, &f);
		check(pcapng_next(&f, &p) && f.sections == 1 && p.captured == 100);
		check(round || number_of(&p) == 7);
		close(fd);
		/* What comes now has no reader, and the writer may notice late. */
		for (uint32_t i = 0; i < 200; i++) {
			put(c, 100 + i, 100);
			pause_ms(1);
		}
	}
	capture_close(c);
}

static void a_reader_that_has_stopped_holds_up_nobody(void)
{
	const char *path = in_dir("slow");
	struct capture *c;
	struct timespec before, after;
	int fd;

	check(!mkfifo(path, 0600));
	c = open_to(path, 0, 1);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	check(fd >= 0);
	for (uint32_t i = 0; i < 1000; i++)
		put(c, i, 4000);
	check(dropped(c) > 100); /* 4 MB do not fit into a buffer of 1 MiB */
	clock_gettime(CLOCK_MONOTONIC, &before);
	capture_close(c);
	clock_gettime(CLOCK_MONOTONIC, &after);
	check(after.tv_sec - before.tv_sec < 5);
	close(fd);
}

/* ---- threads ---- */

static atomic_uint number;

static void *put_many(void *arg)
{
	for (unsigned i = 0; i < 2000; i++)
		put(arg, atomic_fetch_add(&number, 1), 200);
	return NULL;
}

static void threads_lose_nothing_that_is_not_counted(void)
{
	const char *path = in_dir("threads.pcapng");
	struct capture *c = open_to(path, 0, 1);
	struct capture_counters sums;
	pthread_t threads[4];
	struct pcapng_file f;
	struct read_packet p;

	for (unsigned i = 0; i < 4; i++)
		check(!pthread_create(&threads[i], NULL, put_many, c));
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	capture_count(c, &sums);
	check(sums.packets == 8000);
	capture_close(c);
	check(pcapng_load(path, &f));
	while (pcapng_next(&f, &p))
		check(p.captured == 200);
	check(f.packets + sums.dropped == 8000);
	check(f.received[0] + f.received[1] == 8000);
	check(f.dropped[0] + f.dropped[1] == sums.dropped);
	pcapng_free(&f);
}

static pid_t parent;

static void remove_all(void)
{
	glob_t found;

	if (getpid() != parent)
		return;
	if (!glob(in_dir("*"), 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			unlink(found.gl_pathv[i]);
		globfree(&found);
	}
	rmdir(dir);
}

int main(void)
{
	snprintf(dir, sizeof(dir), "/tmp/busbar-capture-XXXXXX");
	check(mkdtemp(dir));
	parent = getpid();
	atexit(remove_all);
	log_set_sink(hear);
	run_test(what_was_put_is_in_the_file);
	run_test(the_file_can_be_read_while_it_is_written);
	run_test(long_packets_are_cut_where_that_is_wanted);
	run_test(a_file_with_a_limit_ends_there_and_says_so);
	run_test(a_ring_of_files_keeps_the_latest_ones);
#ifndef __SANITIZE_THREAD__ /* which wants no threads in children of threads */
	run_test(two_processes_do_not_share_a_file);
#endif
	run_test(the_process_id_can_be_in_the_name);
	run_test(a_path_that_cannot_be_written_is_told);
	run_test(a_full_disk_ends_the_capture_and_is_told);
	run_test(a_reader_of_a_pipe_sees_packets_at_once_and_may_go_and_come_back);
	run_test(a_reader_that_has_stopped_holds_up_nobody);
	run_test(threads_lose_nothing_that_is_not_counted);
	return 0;
}
