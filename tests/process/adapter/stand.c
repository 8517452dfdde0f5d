/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected processes that do what they are told on standard input, for
 * tests of programs that look at them: no test by itself.
 *
 *   send N    N messages of 100 bytes, there and acknowledged when it says so
 *   kill      the second process is killed
 *   stop, go  it is stopped, goes on
 *
 * Each line is answered by one that begins with "ok". End of input ends both.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

static void send_messages(struct pair *p, unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		side_recv(&p->b, i, 0, 200);
		side_send(&p->a, i, 0, 100);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
}

static void stand(struct pair *p)
{
	char line[64];
	unsigned long count;

	pair_start(p, NULL);
	printf("ready %d %d %u %u\n", (int)getpid(), (int)p->b.pid, p->a.qpn[0],
	       p->b.qpn[0]);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "send %lu", &count) == 1)
			send_messages(p, count);
		else if (!strcmp(line, "kill\n"))
			side_kill(&p->b);
		else if (!strcmp(line, "stop\n"))
			side_stop(&p->b);
		else if (!strcmp(line, "go\n"))
			side_signal(&p->b, SIGCONT);
		else
			fail("unknown order '%s'", line);
		printf("ok %s", line);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ .name = "stand", .fn = stand, .where = ONLY_TWO_PROCESSES,
		  .limit_s = 300 },
	};

	return RUN_CASES(argc, argv, cases);
}
