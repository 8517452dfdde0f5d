/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the URLs of WebSocket in a configuration: each is refused with a reason, or
 * taken apart within its bounds, and what its parts spell means the same again.
 *
 * usage: fuzz_ws_url [RUNS [SEED]]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "wsWS:/@[]?#.%0123456789 \0\x7f\xff"
#include "drive.h"
#include "gateway/node/websocket/url.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void check(const struct ws_url *u)
{
	char text[2048];
	struct ws_url again;
	const char *why, *s;
	long port = strtol(u->port, NULL, 10);

	must(*u->host && !strpbrk(u->host, "[]@/? "));
	must(port >= 1 && port <= 65535 && strspn(u->port, "0123456789") == strlen(u->port));
	must(*u->target == '/');
	for (s = u->target; *s; s++)
		must(*s > ' ' && *s <= '~' && *s != '#');
	must(!strpbrk(u->format, "/?"));
	snprintf(text, sizeof(text), "%s://%s%s", u->tls ? "wss" : "ws", u->authority, u->target);
	must(!ws_url_parse(&again, text, &why));
	must(!memcmp(u, &again, sizeof(again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const char *why = NULL;
	struct ws_url u;
	int ret;

	memcpy(text, data, size);
	text[size] = '\0';
	ret = ws_url_parse(&u, text, &why);
	must(!ret || (ret == -EINVAL && why && *why));
	if (!ret)
		check(&u);
	free(text);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_OF_URL 2048

static const char *const valid[] = {
	"ws://127.0.0.1:8080/node.villas.web", "wss://[::1]:443/a/b.json?x=1&y=2",
	"WS://lab.example", "http://lab.example/a.json", "HTTPS://[::1]/b", "ws://lab.example:80?query", "wss://[fe80::1]/x.y.z",
};

static size_t make(uint8_t *bytes, size_t capacity)
{
	const char *text = valid[random_below(sizeof(valid) / sizeof(valid[0]))];
	size_t size = strlen(text);

	memcpy(bytes, text, size);
	/* Now and then one at the bounds of its parts. */
	while (random_below(8) == 0 && size < capacity / 2) {
		memcpy(bytes + size, bytes, size);
		size *= 2;
	}
	return mutate_times(bytes, size, capacity, random_below(5));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, SIZE_MAX_OF_URL, make);
}
#endif
