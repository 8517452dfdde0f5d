/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs test cases, each in a fresh process per arrangement, with a time limit
 * and a look at what they leave behind.
 */
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "process.h"

/* The address sanitizer mistakes the end of a cancelled thread's alternate
 * signal stack for an overflow. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}

/* What transports of packets do not do as shared memory does it. */
#define WITHOUT_ON_PACKETS                                                          \
	/* What came too early is lost, and with a timeout of 0 nobody repeats it      \
	 * (IBTA 9.7.6.1.3); with no retries left nor does it after a timeout. */      \
	"a_timeout_of_0_waits_until_the_peer_is_ready",                                \
	"retries_count_anew_for_each_message",                                         \
	/* SRQs of other processes than the target's are not reached. */               \
	"three_processes_may_have_a_part_each",                                        \
	/* It has no links. */                                                         \
	"a_link_is_shown_from_both_ends"

static const char *const without_on_shm[] = {
	/* Messages are carried out one by one, so nothing has to be stored. */
	"a_responder_refuses_more_than_it_has_resources_for",
	NULL,
};

#define WITHOUT_ON_ROCE                                                                    \
	WITHOUT_ON_PACKETS,                                                                \
	/* Packets of connections do not name the queue pair that sent them. */            \
	"a_queue_pair_receives_only_from_the_one_it_is_connected_to",                      \
	/* Nor do those of UC invalidate keys, and flow labels are the host's. */          \
	"unreliable_connections_invalidate_too",                                           \
	"an_ipv6_header_has_the_length_of_what_follows",                                   \
	/* SRQs of other processes than the target's are not reached. */                   \
	"a_queue_dies_with_its_process", "a_target_serves_the_queues_of_other_processes",  \
	"messages_to_several_processes_keep_their_order",                                  \
	"an_empty_queue_holds_up_what_follows",                                            \
	"long_messages_of_two_initiators_do_not_mix",                                      \
	/* Nothing tells a peer that a process has ended. */                               \
	"a_killed_process_is_gone_at_the_next_look",                                       \
	/* The receiver may know of a message before its acknowledgement is here. */       \
	"what_was_received_is_not_flushed_at_the_sender"

static const char *const without_on_loop[] = { WITHOUT_ON_PACKETS, NULL };
static const char *const without_on_roce[] = { WITHOUT_ON_ROCE, NULL };
static const char *const without_on_fabric[] = {
	WITHOUT_ON_ROCE,
	/* What only a port of Ethernet has; of InfiniBand: tests/process/fabric. */
	"without_a_grh_each_service_means_this_host", "without_a_grh_it_is_this_host",
	"the_port_has_the_default_partition_only", "fields_of_infiniband_are_zero_on_ethernet",
	"an_answer_has_the_hop_limit_of_the_header", "the_completion_tells_which_ip_the_datagram_had",
	"a_handle_without_a_global_address_is_for_this_host",
	/* Packets of a train are messages of their own, so the first one may be answered early. */
	"a_responder_refuses_more_than_it_has_resources_for",
	"the_device_says_what_it_does_not_offer",
	/* Whose GID is not asked for: the LID is a host's. */
	"to_a_host_that_is_not_there_it_succeeds",
	NULL,
};
static const char *const without_between_hosts[] = {
	WITHOUT_ON_ROCE,
	/* About addresses of one host: of both IP versions, and none at all. */
	"the_completion_tells_which_ip_the_datagram_had",
	"an_answer_has_the_hop_limit_of_the_header",
	"a_handle_without_a_global_address_is_for_this_host",
	"without_a_grh_each_service_means_this_host", "without_a_grh_it_is_this_host",
	/* XRC domains and targets are shared by the processes of one host. */
	"a_target_of_another_process_is_not_opened", "a_domain_is_its_inode_for_all_processes",
	"a_domain_ends_with_its_processes",
	NULL,
};
static const char *const without_with_faults[] = {
	WITHOUT_ON_PACKETS,
	/* An acknowledgement that was lost comes too late behind the error state. */
	"what_was_received_is_not_flushed_at_the_sender",
	/* Wait a timeout for each last packet that was lost, minutes in all. */
	"many_thousand_messages_wrap_the_rings",
	"who_sees_a_write_finds_the_completion_of_the_send_before_it",
	NULL,
};

static const char *const without_on_late_streams[] = {
	/* A SEND is complete when the middlebox has taken it, whatever TCP does. */
	"what_arrived_before_a_reset_is_received",
	/* Each socket has a middlebox. */
	"few_sockets_wait_for_their_peers",
	NULL,
};

static const struct transport transports[] = {
	{ .name = "shm", .device = "soft0", .without = without_on_shm },
	/* With BUSBAR_TRANSPORTS=loop,shm; and with BUSBAR_FAULTS. */
	{ .name = "loop", .device = "soft0", .one_process = true,
	  .without = without_on_loop },
	{ .name = "loop-faults", .device = "soft0", .one_process = true,
	  .loses = true, .without = without_with_faults },
	/* With BUSBAR_TRANSPORTS=roce; and with BUSBAR_FAULTS. */
	{ .name = "roce", .device = "soft0", .waits = true, .without = without_on_roce },
	/* With ADAPTER_NETNS, too. */
	{ .name = "roce-hosts", .device = "soft0", .hosts = true, .waits = true,
	  .without = without_between_hosts },
	{ .name = "roce-faults", .device = "soft0", .loses = true, .waits = true,
	  .without = without_with_faults },
	/* With BUSBAR_FABRIC. */
	{ .name = "fabric", .device = "soft0", .waits = true, .without = without_on_fabric },
	{ .name = "shm-faults", .device = "soft0", .loses = true },
	/* With BUSBAR_DEVICES=iwarp. */
	{ .name = "iwarp", .device = "soft1", .streams = true },
	/* And with BUSBAR_FAULTS. */
	{ .name = "iwarp-faults", .device = "soft1", .streams = true, .loses = true,
	  .without = without_on_late_streams },
};

const struct transport *transport_under_test(void)
{
	const char *name = getenv("ADAPTER_TRANSPORT");

	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (!name || !strcmp(name, transports[i].name))
			return &transports[i];
	fail("ADAPTER_TRANSPORT: '%s' is none of the adapter's", name);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		fail("/proc/self/fd: %s", strerror(errno));
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* The adapter has nothing there. The gateway's shmem node has, and its tests, which may run at
 * the same time, name it so. */
static void check_shm(void)
{
	DIR *d = opendir("/dev/shm");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strstr(e->d_name, "busbar") &&
		    strncmp(e->d_name, "busbar-shmem", 12) != 0)
			fail("left behind: /dev/shm/%s", e->d_name);
	if (d)
		closedir(d);
}

_Noreturn static void run_case(const struct test_case *c, bool two_processes)
{
	static struct end end_a, end_b;
	struct pair p = {
		.two_processes = two_processes,
		.name = c->name,
		.a = { .end = &end_a },
		.b = { .end = two_processes ? NULL : &end_b },
		.conn = {
			.psn_a = 0x1234, .psn_b = 0xabcdef,
			.timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
			.min_rnr_timer = 1,
			.access_a = IBV_ACCESS_REMOTE_READ |
				    IBV_ACCESS_REMOTE_WRITE,
			.access_b = IBV_ACCESS_REMOTE_READ |
				    IBV_ACCESS_REMOTE_WRITE,
		},
	};
	int fds;

	if (transport_under_test()->waits)
		p.conn.timeout = transport_under_test()->loses ? 15 : 16;
	alarm(c->limit_s ? c->limit_s : 60);
	fds = count_fds();
	for (; p.spares < c->spares; p.spares++)
		process_spawn(&p.spare[p.spares], p.spare, p.spares);
	if (two_processes)
		process_spawn(&p.b, p.spare, p.spares);
	c->fn(&p);
	side_close(&p.a);
	side_close(&p.b);
	if (two_processes)
		process_end(&p.b);
	while (p.spares > 0)
		process_end(&p.spare[--p.spares]);
	expect_eq(count_fds(), fds);
	check_shm();
	exit(0);
}

static bool run(const struct test_case *c, bool two_processes)
{
	uint64_t start = now_ms();
	const char *what = NULL, *mark = "ok";
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_case(c, two_processes);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		what = "not run";
	else if (WIFSIGNALED(status))
		what = WTERMSIG(status) == SIGALRM ? "time is over" :
						     strsignal(WTERMSIG(status));
	else if (WEXITSTATUS(status) == 77)
		mark = "skip";
	else if (WEXITSTATUS(status) != 0)
		what = "failed";
	printf("%s %s (%s, %llu ms)%s%s\n", what ? "not ok" : mark, c->name,
	       two_processes ? "two processes" : "one process",
	       (unsigned long long)(now_ms() - start), what ? ": " : "",
	       what ? what : "");
	return !what;
}

static bool offered(const struct transport *t, const char *name)
{
	for (const char *const *w = t->without; w && *w; w++)
		if (!strcmp(*w, name))
			return false;
	return true;
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

/* A network namespace, if the user may make one and the script that runs this has not: other tests have processes of other users, which
 * hold the UDP port of RoCE v2, and stopped ones, which do not share it. */
static void own_network(void)
{
	struct ifreq lo = { .ifr_name = "lo" };
	int fd;

	if (getenv("IN_NETWORK") || unshare(CLONE_NEWNET))
		return;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ioctl(fd, SIOCGIFFLAGS, &lo))
		fail("no loopback interface: %s", strerror(errno));
	lo.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &lo))
		fail("the loopback interface stays down: %s", strerror(errno));
	close(fd);
}

int run_cases(int argc, char **argv, const struct test_case *cases, size_t count)
{
	const struct transport *t = transport_under_test();
	int failed = 0;

	if (argc == 2 && !strcmp(argv[1], "--rules")) {
		for (size_t i = 0; i < count; i++)
			printf("%s\t%s\n", cases[i].rule ? cases[i].rule : "–",
			       cases[i].name);
		return 0;
	}
	if (!t->hosts)
		own_network();
	for (size_t i = 0; i < count; i++) {
		if (!wanted(cases[i].name, argc, argv) || !offered(t, cases[i].name))
			continue;
		if (cases[i].where != ONLY_TWO_PROCESSES && !t->hosts)
			failed += !run(&cases[i], false);
		if (cases[i].where != ONLY_ONE_PROCESS && !t->one_process)
			failed += !run(&cases[i], true);
	}
	if (failed)
		printf("%d failed\n", failed);
	return failed ? 1 : 0;
}
