/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client of the HTTP server may send in front of a body: headers with their lines,
 * targets, queries, lists of types, tokens. Whatever comes is refused or taken apart
 * within its bounds; what is taken can be given to the table of requests.
 *
 * usage: fuzz_http [RUNS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/api.h"
#include "gateway/control/query.h"
#include "gateway/http/access.h"
#include "gateway/http/head.h"
#include "gateway/http/parse.h"
#include "util/clock.h"

static void must(bool good)
{
	if (!good)
		abort();
}

/* In the header, and ended there. */
static void check_text(const char *s, const char *head, size_t len)
{
	if (!*s)
		return;
	/* "http://host" means "/". */
	if (!strcmp(s, "/"))
		return;
	must(s >= head && s < head + len && s + strlen(s) < head + len);
	for (; *s; s++)
		must((unsigned char)*s >= 0x20 || *s == '\t');
}

static void check_values(const struct http_request *r)
{
	char value[300], text[64];
	struct http_head h = { .status = 200, .type = "text/plain", .origin = r->origin };
	size_t n;

	must(http_length_parse(r->length) >= -1);
	http_host_is_local(r->host);
	http_origin_fits(r->origin, r->host, false, NULL);
	http_type_is(r->type, CONTROL_JSON);
	must(http_prefer_wait(r->prefer, 2, 60) <= 60);
	n = (size_t)query_weight(r->accept, "application/json");
	must(n <= 1000);
	if (strlen(r->origin) < 256) {
		char answer[1536];

		n = http_head_write(answer, sizeof(answer), &h);
		must(n && n < sizeof(answer) && !memcmp(answer + n - 4, "\r\n\r\n", 4));
		/* No line of the client's own. */
		must(memmem(answer, n - 4, "\r\n\r\n", 4) == NULL);
	}
	if (query_value(r->target, "layout", text, sizeof(text)) == 0)
		must(strlen(text) < sizeof(text));
	if (!query_decode(r->target, strlen(r->target), value, sizeof(value))) {
		char again[1000], back[300];

		must(!query_encode(value, strlen(value), "/", again, sizeof(again)));
		must(!query_decode(again, strlen(again), back, sizeof(back)));
		must(!strcmp(value, back));
	}
}

/* A token that a page sends: whole, or empty. */
static void check_authorization(const struct http_request *r)
{
	char room[64], again[200];
	const char *a, *sent = strstr(r->socket_protocol, "bearer.");

	memset(room, 'x', sizeof(room));
	a = http_access_authorization(r, room, sizeof(room));
	if (*r->authorization || !a) {
		must(a == (*r->authorization ? r->authorization : NULL));
		return;
	}
	must(a == room && r->upgrades && sent && memchr(room, '\0', sizeof(room)));
	must(!strncmp(a, "Bearer ", 7) && strlen(a + 7) <= strlen(sent + 7));
	must(!query_encode(a + 7, strlen(a + 7), "", again, sizeof(again)));
}

static void check_request(const struct http_request *r)
{
	struct control_rule rule = { .role = HTTP_NOBODY };
	const char *allow = NULL;
	int status = control_find(r->method, r->target, &rule, &allow);

	must(status == 200 || status == 404 || status == 405);
	must((status == 200) == (rule.role != HTTP_NOBODY));
	must(status != 405 || allow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *head = malloc(size + 1), *line = malloc(size + 1);
	struct http_request r;
	unsigned char hash[32];
	const char *why = NULL;
	enum http_role role;
	size_t len;
	int status;

	memcpy(head, data, size);
	memcpy(line, data, size);
	line[size] = '\0';
	status = http_access_parse_line(line, hash, &role, &why);
	must(status >= 0 || why);
	query_decode_loosely(line);
	must(strlen(line) <= size);
	len = http_header_end(head, size, 0);
	if (len) {
		must(len <= size);
		status = http_parse(head, len, &r, &why);
		must(why && (status == 0 || status == 400 || status == 505));
		if (!status) {
			const char *const texts[] = {
				r.method, r.target, r.host, r.origin, r.authorization,
				r.length, r.type, r.prefer, r.accept, r.expect, r.upgrade,
				r.socket_protocol,
			};

			for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
				check_text(texts[i], head, len);
			check_values(&r);
			check_authorization(&r);
			check_request(&r);
		}
	}
	free(head);
	free(line);
	return 0;
}

#ifndef FUZZ_ENGINE
#define MUTATE_BYTES "\r\n\r\n :/?&=%.,;*+0123456789GETPOSHqw\t\"\0\xff"
#include "mutate.h"

static const char *const seeds[] = {
	"GET /api/v2/nodes HTTP/1.1\r\nHost: localhost:8080\r\n\r\n",
	"POST /api/v2/node/a%20b/restart?layout=dot&x=%41 HTTP/1.1\r\nHost: [::1]\r\n"
	"Content-Length: 12\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\r\n{}",
	"GET http://h/metrics HTTP/1.0\r\nAccept: text/plain;q=0.5, */*;q=0.1\r\n"
	"Authorization: Bearer 0123456789abcdef\r\nPrefer: respond-async, wait=3\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nOrigin: https://lab.example\r\nConnection: Upgrade, close\r\n"
	"Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
	"GET /live.json HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
	"Sec-WebSocket-Protocol: live, bearer.0123%2f%%41bcd, bearer.x\r\n\r\n",
	"operate sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n",
	"watch 0123456789abcdef # x\n",
};

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 300000;
	uint64_t end;

	random_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	printf("seed %llu\n", (unsigned long long)random_state);
	end = clock_now_ns() + (argc > 1 ? 3600 : 2) * NSEC_PER_SEC;
	for (unsigned long i = 0; i < runs && clock_now_ns() < end; i++) {
		uint8_t data[1024];
		const char *seed = seeds[random_below(sizeof(seeds) / sizeof(seeds[0]))];
		size_t size = strlen(seed);

		memcpy(data, seed, size);
		for (uint64_t k = random_below(6); k > 0; k--)
			size = mutate(data, size, sizeof(data));
		LLVMFuzzerTestOneInput(data, size);
	}
	return 0;
}
#endif
