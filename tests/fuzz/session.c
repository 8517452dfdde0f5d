/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of routed GOOSE and sampled values: each is refused with a reason or taken apart within
 * its bounds; and a payload that was taken can be sent again, and is the same then.
 *
 * usage: fuzz_session [RUNS [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "wire/grid/session.h"

#define MUTATE_BYTES "\x00\x01\x02\x03\x05\x0b\x15\x17\x40\x61\x60\x80\x81\x82\x85\xa0\xa1\xa2\xa3\xaf\xff"
#include "drive.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void lies_in(const struct ber *b, const uint8_t *data, size_t size)
{
	must(!b->len || (b->at >= data && b->at + b->len <= data + size));
}

static void send_again(const struct session *s, const struct session_part *p)
{
	uint8_t *buffer = malloc(SESSION_HEAD_MAX + p->body.len), *at = buffer + SESSION_HEAD_MAX;
	size_t len = p->body.len;
	struct session again;
	struct session_part q;

	must(buffer);
	memcpy(at, p->body.at, len);
	at = session_wrap(s, p, at, &len);
	must(at >= buffer && at + len == buffer + SESSION_HEAD_MAX + p->body.len);
	must(!session_decode(at, len, &again) && !session_security(&again));
	must(again.kind == s->kind && again.number == s->number && again.version == s->version &&
	     again.key_time == s->key_time && again.key_id == s->key_id &&
	     again.next_key_minutes == s->next_key_minutes);
	must(session_next(&again.payloads, &q) == 1 &&
	     session_next(&again.payloads, &(struct session_part){ 0 }) == 0);
	must(q.type == p->type && q.simulation == p->simulation && q.appid == p->appid &&
	     q.body.len == p->body.len && !memcmp(q.body.at, p->body.at, q.body.len));
	free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session s;
	struct session_part p;
	struct ber rest;

	if (session_decode(data, size, &s))
		return 0;
	lies_in(&s.payloads, data, size);
	lies_in(&s.signature, data, size);
	lies_in(&s.vector, data, size);
	rest = s.payloads;
	while (session_next(&rest, &p) > 0) {
		lies_in(&p.body, data, size);
		must(p.body.len);
		send_again(&s, &p);
	}
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	uint8_t buffer[200], *at = buffer + 100;
	const struct session s = { .kind = random_below(2) ? SESSION_GOOSE : SESSION_SV,
				   .version = (uint16_t)(1 + random_below(2)),
				   .number = (uint32_t)random_below(300) };
	const struct session_part p = { .type = SESSION_PAYLOAD_GOOSE,
				       .simulation = random_below(2) };
	size_t len = 2 + random_below(20);

	memset(at, 'x', len);
	at[0] = 0x61;
	at[1] = (uint8_t)(len - 2);
	at = session_wrap(&s, &p, at, &len);
	if (!random_below(3)) {
		memcpy(at + len, "\xaf\1\0\x85\2ab", 7);
		len += 7;
	}
	memcpy(bytes, at, len);
	return mutate_times(bytes, len, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 300000, 300, make);
}
#endif
