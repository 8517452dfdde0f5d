/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar fabric show`: asks the process of a running fabric for everything, once or again and
 * again, and prints it. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/fabric.h"
#include "plug/plug.h"
#include "util/log.h"
#include "util/options.h"

#define ANSWER_MAX (256u << 20)
#define ANSWER_MS 10000

struct answer {
	char *text;
	size_t bytes, size;
};

static bool append(struct answer *a, const void *bytes, size_t count)
{
	if (a->bytes + count + 1 > a->size) {
		size_t size = a->size ? a->size * 2 : 65536;
		char *more = size <= ANSWER_MAX ? realloc(a->text, size) : NULL;

		if (!more)
			return false;
		a->text = more;
		a->size = size;
	}
	memcpy(a->text + a->bytes, bytes, count);
	a->bytes += count;
	a->text[a->bytes] = '\0';
	return true;
}

/* The next message; its length, or a negative errno. */
static ssize_t receive(int fd, void *buf, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	for (;;) {
		n = recv(fd, buf, size, MSG_DONTWAIT);
		if (n > 0)
			return n;
		if (!n)
			return -ECONNRESET;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (!poll(&p, 1, ANSWER_MS))
			return -ETIMEDOUT;
	}
}

/* 0, the errno of the answer, or a negative errno: there is none. */
static int collect(int fd, struct answer *a)
{
	union {
		struct plug_head head;
		char bytes[PLUG_MESSAGE_BYTES];
	} m;

	for (;;) {
		ssize_t n = receive(fd, &m, sizeof(m));

		if (n < 0)
			return (int)n;
		if (!plug_check(&m.head, (size_t)n))
			return -EPROTO;
		if (m.head.type == PLUG_DONE)
			return (int)m.head.a;
		if (m.head.type == PLUG_TEXT && !append(a, m.bytes + sizeof(m.head), m.head.bytes))
			return -ENOMEM;
	}
}

/* The text of the process' answer, with a zero behind its end, which the caller frees. NULL: it
 * was refused, or nobody answers, which is logged. */
static char *ask_text(const char *name, const char *question, size_t *bytes)
{
	struct plug_place place = { .host = "" };
	struct plug_welcome welcome;
	struct answer a = { 0 };
	struct plug_port port;
	int fd, ret;

	if (strlen(name) >= sizeof(place.fabric)) {
		log_error("'%s' is longer than the name of a fabric may be, %zu", name,
			  sizeof(place.fabric) - 1);
		return NULL;
	}
	strcpy(place.fabric, name);
	fd = plug_connect(&place, PLUG_CONTROL, &welcome, &port);
	if (fd < 0)
		return NULL;
	ret = plug_send(fd, PLUG_ASK, 0, 1, question, strlen(question)) ?: collect(fd, &a);
	close(fd);
	if (ret > 0)
		log_error("%s", a.bytes ? a.text : strerror(ret));
	else if (ret < 0)
		log_error("the fabric '%s' does not answer: %s", name, strerror(-ret));
	if (ret || !append(&a, "", 0)) {
		free(a.text);
		return NULL;
	}
	*bytes = a.bytes;
	return a.text;
}

int fabric_ask_and_print(const char *name, const char *question)
{
	size_t bytes;
	char *text = ask_text(name, question, &bytes);

	if (!text)
		return CLI_FAILED;
	fwrite(text, 1, bytes, stdout);
	free(text);
	return CLI_OK;
}

/* ---- for people ---- */

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "?";
}

/* A member of `now`, less that of `before` where there is one. */
static double since(const json_t *now, const json_t *before, const char *key)
{
	return number(now, key) - (before ? number(before, key) : 0);
}

static void print_client(const json_t *c)
{
	const json_t *refused = json_object_get(c, "refused"), *value;
	const char *key;

	printf("    %s %.0f (%s): %.0f queue pairs, %.0f sent, %.0f received", text(c, "program"),
	       number(c, "process"), text(c, "purpose"), number(c, "queue_pairs"), number(c, "taken"),
	       number(c, "delivered"));
	if (number(c, "slow") > 0)
		printf(", %.0f lost because it did not read", number(c, "slow"));
	json_object_foreach ((json_t *)refused, key, value)
		if (json_number_value(value) > 0)
			printf(", %.0f refused: %s", json_number_value(value), key);
	putchar('\n');
}

static void print_port(const json_t *p, const json_t *before, double seconds, bool all)
{
	const double sent = since(p, before, "sent_bytes"), received = since(p, before, "received_bytes");
	const double rate = number(p, "bit_rate");
	const json_t *clients = json_object_get(p, "clients");
	size_t i;

	if (!all && sent == 0 && received == 0 && json_is_true(json_object_get(p, "up")) &&
	    !json_array_size(clients))
		return;
	printf("  %3.0f %-6s %5.1f Gbit/s  %s:%.0f", number(p, "port"), text(p, "state"), rate / 1e9,
	       text(p, "peer"), number(p, "peer_port"));
	if (json_object_get(p, "lid"))
		printf("  lid %.0f", number(p, "lid"));
	if (before && seconds > 0 && rate > 0)
		printf("  out %.1f %%  in %.1f %%", 800 * sent / seconds / rate,
		       800 * received / seconds / rate);
	else
		printf("  out %.0f B  in %.0f B", sent, received);
	printf("  wait %.0f", since(p, before, "xmit_wait"));
	if (since(p, before, "discards") + since(p, before, "errors") + since(p, before, "no_route") > 0)
		printf("  lost %.0f", since(p, before, "discards") + since(p, before, "errors") +
					      since(p, before, "no_route"));
	if (since(p, before, "marked") > 0)
		printf("  marked %.0f", since(p, before, "marked"));
	putchar('\n');
	for (i = 0; i < json_array_size(clients); i++)
		print_client(json_array_get(clients, i));
}

/* An answer to `show`, or what changed since the one `before`, which may be NULL. `all`: also
 * ports that carried nothing. */
static void print(const json_t *now, const json_t *before, bool all)
{
	const json_t *nodes = json_object_get(now, "nodes"), *drops = json_object_get(now, "drops");
	const json_t *earlier = before ? json_object_get(before, "nodes") : NULL, *value;
	const double seconds = since(now, before, "seconds");
	const char *key;
	size_t i, p;

	printf("fabric %s, %.1f s\n", text(now, "name"), number(now, "seconds"));
	for (i = 0; i < json_array_size(nodes); i++) {
		const json_t *n = json_array_get(nodes, i), *ports = json_object_get(n, "ports");
		const json_t *old = json_object_get(json_array_get(earlier, i), "ports");

		printf("%s %s\n", text(n, "kind"), text(n, "name"));
		for (p = 0; p < json_array_size(ports); p++)
			print_port(json_array_get(ports, p), json_array_get(old, p), seconds, all);
	}
	if (since(now, before, "deadlocks") > 0)
		printf("deadlock: packets wait for each other in a circle\n");
	json_object_foreach ((json_t *)drops, key, value)
		if (json_number_value(value) > 0)
			printf("lost: %s %.0f\n", key, json_number_value(value));
}

struct show_options {
	bool json, all, watch;
};

static const struct option_entry table[] = {
	{ "-j, --json: as JSON", OPTION_FLAG(struct show_options, json) },
	{ "-a, --all: also ports that carried nothing", OPTION_FLAG(struct show_options, all) },
	{ "-w, --watch: every second what changed, until Ctrl-C", OPTION_FLAG(struct show_options, watch) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar fabric show",
	.synopsis = "[OPTIONS] [NAME]",
	.about = "Shows the nodes of a running fabric, the state of their ports, what they carried, and\n"
		 "the programs that are plugged in.\n",
	.table = table,
	.operands_max = 1,
};

static json_t *ask(const char *name)
{
	json_error_t error;
	size_t bytes;
	char *text = ask_text(name, "show", &bytes);
	json_t *o;

	if (!text)
		return NULL;
	o = json_loadb(text, bytes, 0, &error);
	if (!o)
		log_error("the fabric's answer is no JSON: %s", error.text);
	free(text);
	return o;
}

static int watch(const char *name, bool all)
{
	json_t *before = ask(name), *now;

	while (before) {
		if (nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL))
			break;
		now = ask(name);
		if (now) {
			print(now, before, all);
			putchar('\n');
			if (fflush(stdout)) {
				json_decref(now);
				break;
			}
		}
		json_decref(before);
		before = now;
	}
	json_decref(before);
	return CLI_FAILED; /* the fabric has ended */
}

int cli_fabric_show(int argc, char **argv)
{
	struct show_options set = { 0 };
	int status = options_parse(&options, argc, argv, &set, NULL);
	const char *name = FABRIC_NAME_DEFAULT;
	json_t *o;

	if (status >= 0)
		return status;
	if (set.json && set.watch)
		return options_wrong(&options, argv, "--watch prints no JSON");
	if (optind < argc)
		name = argv[optind];
	if (set.json)
		return fabric_ask_and_print(name, "show");
	if (set.watch)
		return watch(name, set.all);
	o = ask(name);
	if (!o)
		return CLI_FAILED;
	print(o, NULL, set.all);
	json_decref(o);
	return CLI_OK;
}
