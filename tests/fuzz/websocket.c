/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of WebSocket and heads of handshakes from outside, and URLs of configurations. The
 * same bytes, in one piece and in random pieces, give the same messages and end with the same
 * status; no message is longer than allowed, and texts are UTF-8.
 *
 * usage: fuzz_websocket [RUNS [SEED]]
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/comtrade/fields.h"
#include "gateway/node/websocket/url.h"
#include "gateway/ws/frame.h"
#include "gateway/ws/handshake.h"

#define MUTATE_BYTES "\x00\x01\x02\x08\x09\x0a\x80\x81\x82\x88\x89\x8a\x7d\x7e\x7f\xfd\xfe\xff\xc3\xa9\xed\xf4:/[].?@"
#include "drive.h"

#define MESSAGE_MAX 300
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

static void must(bool good)
{
	if (!good)
		abort();
}

static void check(const struct ws_message *m)
{
	must(m->opcode == WS_TEXT || m->opcode == WS_BINARY ||
	     (m->opcode >= WS_CLOSE && m->opcode <= WS_PONG));
	must(m->len <= (m->opcode >= WS_CLOSE ? WS_CONTROL_MAX : MESSAGE_MAX));
	if (m->opcode == WS_TEXT)
		must(utf8_is_valid(m->data, m->len));
	if (m->opcode != WS_CLOSE)
		return;
	must(m->status >= 1000 && m->status < 5000);
	must(utf8_is_valid(m->reason, m->reason_len));
}

/* All that a reader finds in `data`, as one number, and its status at the end. */
static uint64_t read_all(enum ws_side side, const uint8_t *data, size_t size, bool pieces,
			 int *status)
{
	struct ws_reader *r = ws_reader_new(side, MESSAGE_MAX);
	uint64_t hash = 1;
	size_t at = 0, used;
	int ret = 0;

	must(r);
	while (at < size && ret >= 0) {
		size_t n = pieces ? 1 + random_below(size - at < 9 ? size - at : 9) : size - at;
		uint8_t *piece = malloc(n);
		struct ws_message m;

		memcpy(piece, data + at, n);
		ret = ws_reader_take(r, piece, n, &used, &m);
		must(used <= n && (ret || used == n));
		free(piece);
		at += used;
		if (ret != 1)
			continue;
		check(&m);
		hash = hash * 31 + m.opcode;
		for (size_t i = 0; i < m.len; i++)
			hash = hash * 31 + ((const uint8_t *)m.data)[i];
		hash = hash * 31 + m.len;
	}
	must(ret >= 0 || *ws_reader_error(r));
	*status = ret < 0 ? ret : 0;
	must(ret >= 0 || ret == -WS_PROTOCOL_ERROR || ret == -WS_INVALID_DATA ||
	     ret == -WS_TOO_BIG);
	ws_reader_free(r);
	return hash;
}

static void read_answer(const uint8_t *data, size_t size)
{
	char why[100] = "";
	size_t used = 0;
	int ret = ws_answer_check((const char *)data, size, KEY, "live", &used, why,
				  sizeof(why));

	must(ret == 0 || ret == -EAGAIN || ret == -EPROTO);
	if (ret == -EPROTO)
		must(*why);
	if (ret)
		return;
	must(used >= 4 && used <= size);
	must(ws_answer_check((const char *)data, used - 1, KEY, "live", &used, why,
			     sizeof(why)) == -EAGAIN);
}

/* Refused with a reason, or in parts that make a URL with the same parts. */
static void read_url(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), again[1400];
	const char *why = NULL;
	struct ws_url u, v;
	int ret;

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	ret = ws_url_parse(&u, text, &why);
	free(text);
	must(ret == 0 || (ret == -EINVAL && why));
	if (ret)
		return;
	must(*u.host && *u.port && *u.target == '/');
	snprintf(again, sizeof(again), "%s://%s%s", u.tls ? "wss" : "ws", u.authority, u.target);
	must(!ws_url_parse(&v, again, &why) && !memcmp(&u, &v, sizeof(u)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int side = WS_SERVER; side <= WS_CLIENT; side++) {
		int whole, cut;
		uint64_t hash = read_all((enum ws_side)side, data, size, false, &whole);

		must(hash == read_all((enum ws_side)side, data, size, true, &cut));
		must(whole == cut);
	}
	read_answer(data, size);
	read_url(data, size);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_BYTES 1024

/* Some frames as a client or a server may send them, mostly in a valid order. */
static size_t make_frames(uint8_t *to, bool masked)
{
	static const char text[] = "plain text \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and more";
	size_t at = 0;
	bool open = false;

	for (uint64_t frames = 1 + random_below(5); frames; frames--) {
		uint8_t mask[4] = { (uint8_t)random_below(256), 2, 3, (uint8_t)random_below(256) };
		bool control = !random_below(4), fin = control || random_below(2);
		enum ws_opcode opcode = control ? (enum ws_opcode)(WS_CLOSE + random_below(3)) :
				 open ? WS_CONTINUATION : (enum ws_opcode)(1 + random_below(2));
		size_t len = random_below(control ? 40 : 160), n;

		n = ws_head_write(to + at, opcode, fin, len, masked ? mask : NULL);
		at += n;
		for (size_t i = 0; i < len; i++)
			to[at + i] = (uint8_t)text[i % (sizeof(text) - 1)];
		if (opcode == WS_CLOSE && len > 1)
			memcpy(to + at, "\x03\xe8", 2);
		if (masked)
			ws_mask(to + at, len, mask, 0);
		at += len;
		open = control ? open : !fin;
	}
	return at;
}

static const char answer[] =
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
	"Sec-WebSocket-Protocol: live\r\n\r\n";

static const char url[] = "wss://[2001:db8::1]:8443/a/node.villas.web?x=1.y";

static size_t make(uint8_t *bytes, size_t capacity)
{
	uint64_t kind = random_below(6);
	size_t size = kind ? sizeof(url) - 1 : sizeof(answer) - 1;

	if (kind > 1)
		size = make_frames(bytes, kind < 4);
	else
		memcpy(bytes, kind ? url : answer, size);
	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, SIZE_MAX_BYTES, make);
}
#endif
