/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The echo server and client of echo_tcp.c over ripc. docs/ripc.md shows what became of
 * each part.
 *
 *	ripc-echo-ripc serve NAME
 *	ripc-echo-ripc NAME TEXT...
 */
#include <busbar/ripc.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MS 5000 /* for an answer */
#define LOOK_MS 200  /* between two looks whether there was a Ctrl-C */

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

/* Short if it fits into a packet, long else. */
static int send_message(struct ripc_service *s, uint32_t to, const struct ripc_item *items,
			unsigned count)
{
	int ret = ripc_send_short(s, to, items, count, NULL, 0);

	return ret == -EMSGSIZE ? ripc_send_long(s, to, items, count, NULL, 0, NULL) : ret;
}

static int serve(const char *name)
{
	struct ripc_service *s;
	struct ripc_message m;
	int ret = ripc_service_open(NULL, 0, name, &s);

	if (ret)
		errx(1, "%s", ripc_error());
	printf("serving as %s\n", name);
	fflush(stdout);
	while (!stopped) {
		ret = ripc_receive(s, &m, LOOK_MS);
		if (ret == -EAGAIN)
			continue;
		if (ret)
			errx(1, "%s", ripc_error());
		/* The answer goes from where the question lies. */
		if (send_message(s, m.from, m.items, m.count))
			warnx("service %#x: %s", m.from, ripc_error());
		ripc_release(&m);
	}
	ripc_service_close(s);
	return 0;
}

static int ask(const char *name, char *words[])
{
	struct ripc_service *s;
	struct ripc_message m;
	uint32_t to;

	if (ripc_service_open(NULL, 0, NULL, &s) || ripc_find(NULL, name, -1, &to))
		errx(1, "%s", ripc_error());
	for (; *words; words++) {
		struct ripc_item item = { *words, strlen(*words) };

		if (send_message(s, to, &item, 1) || ripc_receive(s, &m, WAIT_MS))
			errx(1, "%s", ripc_error());
		printf("%.*s\n", (int)m.items[0].bytes, (char *)m.items[0].data);
		ripc_release(&m);
	}
	ripc_service_close(s);
	return 0;
}

int main(int argc, char *argv[])
{
	struct sigaction end = { .sa_handler = on_signal };

	if (argc < 3) {
		fprintf(stderr, "usage: ripc-echo-ripc serve NAME | NAME TEXT...\n");
		return 2;
	}
	if (strcmp(argv[1], "serve"))
		return ask(argv[1], argv + 2);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	return serve(argv[2]);
}
