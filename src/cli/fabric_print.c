/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar fabric show` prints for people. */
#include <stdio.h>
#include <string.h>

#include "cli/fabric.h"

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

static void print_port(const json_t *p, const json_t *before, double seconds, int all)
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

void fabric_print(const json_t *now, const json_t *before, int all)
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
