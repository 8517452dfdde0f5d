/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames and handshakes of WebSocket: what is well-formed comes out as it went in, however
 * it is cut; what is not ends with the status that RFC 6455 says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/ws/frame.h"
#include "gateway/ws/handshake.h"
#include "gateway/ws/silence.h"
#include "gateway/plugin/web.h"
#include "util/container_of.h"

#define LONGEST 100000

static const uint8_t mask[4] = { 0x12, 0x34, 0x56, 0x78 };

static uint8_t wire[3 * LONGEST];
static size_t wire_len;

static void put(const void *data, size_t len)
{
	assert_true(wire_len + len <= sizeof(wire));
	memcpy(wire + wire_len, data, len);
	wire_len += len;
}

static void put_frame_as(enum ws_side to, enum ws_opcode opcode, bool fin, const void *data,
			 size_t len)
{
	uint8_t head[WS_HEAD_MAX], *payload;

	put(head, ws_head_write(head, opcode, fin, len, to == WS_SERVER ? mask : NULL));
	payload = wire + wire_len;
	put(data, len);
	if (to == WS_SERVER)
		ws_mask(payload, len, mask, 0);
}

static void put_frame(enum ws_opcode opcode, bool fin, const void *data, size_t len)
{
	put_frame_as(WS_SERVER, opcode, fin, data, len);
}

/* What a reader says about all of `wire` in pieces of `step` bytes: the messages one after
 * another as text, then its error. */
static char told[8192];

static void tell(const struct ws_message *m)
{
	size_t at = strlen(told);

	at += (size_t)snprintf(told + at, sizeof(told) - at, "%d:%zu:%.*s", m->opcode, m->len,
			       m->opcode == WS_CLOSE ? 0 : (int)MIN(m->len, (size_t)40),
			       (const char *)m->data);
	if (m->opcode == WS_CLOSE)
		snprintf(told + at, sizeof(told) - at, "%u:%.*s", m->status,
			 (int)m->reason_len, m->reason);
	strcat(told, ";");
}

static int read_in_steps(enum ws_side side, size_t max, size_t step)
{
	struct ws_reader *r = ws_reader_new(side, max);
	size_t at = 0, used;
	int ret = 0;

	assert_non_null(r);
	*told = '\0';
	while (at < wire_len && ret >= 0) {
		size_t n = MIN(step, wire_len - at);
		/* A copy of its own, so that a sanitizer sees reading behind it. */
		uint8_t *piece = malloc(n);
		struct ws_message m;

		memcpy(piece, wire + at, n);
		ret = ws_reader_take(r, piece, n, &used, &m);
		assert_true(used <= n && (ret == 1 || ret < 0 || used == n));
		at += used;
		free(piece);
		if (ret == 1)
			tell(&m);
	}
	if (ret < 0)
		assert_true(*ws_reader_error(r));
	ws_reader_free(r);
	return ret;
}

static const size_t steps[] = { 1, 2, 3, 5, 7, 64, 1000, sizeof(wire) };

/* The same in each way to cut it. */
static void expect_of(enum ws_side side, int ret, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int got = read_in_steps(side, LONGEST, steps[i]);

		assert_string_equal(told, text);
		if (ret < 0)
			assert_int_equal(got, ret);
		else
			assert_true(got >= 0);
	}
	wire_len = 0;
}

static void expect(int ret, const char *text)
{
	expect_of(WS_SERVER, ret, text);
}

static void messages_come_out_as_they_went_in(void **state)
{
	put_frame(WS_TEXT, true, "hello", 5);
	put_frame(WS_BINARY, true, "\x01\x02", 2);
	put_frame(WS_TEXT, true, "", 0);
	put_frame(WS_PING, true, "p", 1);
	put_frame(WS_PONG, true, "", 0);
	expect(0, "1:5:hello;2:2:\x01\x02;1:0:;9:1:p;10:0:;");
	put_frame_as(WS_CLIENT, WS_TEXT, true, "hello", 5);
	put_frame_as(WS_CLIENT, WS_CLOSE, true, "", 0);
	expect_of(WS_CLIENT, 0, "1:5:hello;8:0:1005:;");
}

static void every_length_is_written_and_read(void **state)
{
	static const size_t lengths[] = { 0, 1, 124, 125, 126, 127, 128, 255, 256, 4095, 4096,
					  4097, 65535, 65536, 65537, LONGEST };
	char *data = malloc(LONGEST);

	for (size_t i = 0; i < LONGEST; i++)
		data[i] = (char)(i * 7 + i / 251);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (int side = WS_SERVER; side <= WS_CLIENT; side++) {
			struct ws_reader *r = ws_reader_new((enum ws_side)side, LONGEST);
			struct ws_message m;
			size_t used;

			put_frame_as((enum ws_side)side, WS_BINARY, true, data, lengths[i]);
			assert_int_equal(ws_reader_take(r, wire, wire_len, &used, &m), 1);
			assert_int_equal(used, wire_len);
			assert_int_equal(m.len, lengths[i]);
			assert_memory_equal(m.data, data, m.len);
			ws_reader_free(r);
			wire_len = 0;
		}
	}
	free(data);
}

static void fragments_are_put_together_in_every_way(void **state)
{
	static const char text[] = "abc\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80x"; /* a b c e-acute euro emoji x */
	const size_t len = sizeof(text) - 1;
	char told_once[100];

	snprintf(told_once, sizeof(told_once), "1:%zu:%s;", len, text);
	/* Each bit of `cuts` says whether a fragment ends behind that byte. */
	for (unsigned cuts = 0; cuts < 1u << (len - 1); cuts++) {
		size_t from = 0;

		for (size_t i = 1; i <= len; i++) {
			if (i < len && !(cuts >> (i - 1) & 1))
				continue;
			put_frame(from ? WS_CONTINUATION : WS_TEXT, i == len, text + from,
				  i - from);
			from = i;
		}
		assert_true(read_in_steps(WS_SERVER, LONGEST, 1 + cuts % 9) >= 0);
		assert_string_equal(told, told_once);
		wire_len = 0;
	}
	/* Empty ones, in front, between and at the end. */
	put_frame(WS_BINARY, false, "", 0);
	put_frame(WS_CONTINUATION, false, "ab", 2);
	put_frame(WS_CONTINUATION, false, "", 0);
	put_frame(WS_CONTINUATION, false, "c", 1);
	put_frame(WS_CONTINUATION, true, "", 0);
	expect(0, "2:3:abc;");
}

static void control_frames_come_between_fragments(void **state)
{
	put_frame(WS_TEXT, false, "a\xc3", 2);
	put_frame(WS_PING, true, "one", 3);
	put_frame(WS_CONTINUATION, false, "\xa9", 1);
	put_frame(WS_PONG, true, "two", 3);
	put_frame(WS_PING, true, "", 0);
	put_frame(WS_CONTINUATION, true, "z", 1);
	put_frame(WS_TEXT, true, "next", 4);
	expect(0, "9:3:one;10:3:two;9:0:;1:4:a\xc3\xa9z;1:4:next;");
	put_frame(WS_TEXT, false, "a", 1);
	put_frame(WS_CLOSE, true, "\x03\xe8", 2);
	expect(0, "8:2:1000:;");
}

static void nothing_is_looked_at_behind_a_close(void **state)
{
	put_frame(WS_CLOSE, true, "\x03\xe9" "bye", 5);
	put("\xff\xff\xff", 3);
	put_frame(WS_TEXT, true, "late", 4);
	expect(0, "8:5:1001:bye;");
}

static void each_status_is_taken_or_refused(void **state)
{
	for (unsigned status = 0; status < 65536; status += status < 5100 ? 1 : 977) {
		bool good = (status >= 1000 && status <= 1003) ||
			    (status >= 1007 && status <= 1014) ||
			    (status >= 3000 && status < 5000);
		uint8_t payload[2] = { (uint8_t)(status >> 8), (uint8_t)status };
		char text[40];

		put_frame(WS_CLOSE, true, payload, sizeof(payload));
		snprintf(text, sizeof(text), "8:2:%u:;", status);
		assert_int_equal(read_in_steps(WS_SERVER, LONGEST, 3),
				 good ? 1 : -WS_PROTOCOL_ERROR);
		assert_string_equal(told, good ? text : "");
		wire_len = 0;
	}
	put_frame(WS_CLOSE, true, "\x03", 1);
	expect(-WS_PROTOCOL_ERROR, "");
	put_frame(WS_CLOSE, true, "\x03\xe8 \xff", 4);
	expect(-WS_INVALID_DATA, "");
	put_frame(WS_CLOSE, true, "\x03\xe8 \xe2\x82", 5);
	expect(-WS_INVALID_DATA, "");
}

static void reasons_are_cut_at_a_character(void **state)
{
	uint8_t to[WS_CONTROL_MAX];
	char reason[200];

	assert_int_equal(ws_close_write(to, WS_NO_STATUS, "x"), 0);
	assert_int_equal(ws_close_write(to, WS_TOO_BIG, "x"), 3);
	assert_memory_equal(to, "\x03\xf1x", 3);
	for (unsigned shift = 0; shift < 3; shift++) {
		memset(reason, 'x', shift);
		for (unsigned i = shift; i + 3 < sizeof(reason); i += 3)
			memcpy(reason + i, "\xe2\x82\xac", 4);
		/* 123 bytes: 41 characters of 3, or less by those that begin later. */
		put_frame(WS_CLOSE, true, to, ws_close_write(to, WS_NORMAL, reason));
		assert_int_equal(read_in_steps(WS_SERVER, LONGEST, 1000), 1);
		wire_len = 0;
	}
}

static void reserved_bits_and_opcodes_are_refused(void **state)
{
	for (unsigned first = 0; first < 256; first++) {
		unsigned opcode = first & 15;
		bool good = !(first & 0x70) && (opcode == WS_TEXT || opcode == WS_BINARY ||
						(first & 0x80 && opcode >= WS_CLOSE &&
						 opcode <= WS_PONG));
		uint8_t bytes[6] = { (uint8_t)first, 0x80 };

		put(bytes, sizeof(bytes));
		assert_int_equal(read_in_steps(WS_SERVER, LONGEST, 1) < 0, !good);
		if (!good) {
			assert_int_equal(read_in_steps(WS_SERVER, LONGEST, 6), -WS_PROTOCOL_ERROR);
			/* The first byte is enough. */
			wire_len = 1;
			assert_int_equal(read_in_steps(WS_SERVER, LONGEST, 1), -WS_PROTOCOL_ERROR);
		}
		wire_len = 0;
	}
}

static void fragments_out_of_order_are_refused(void **state)
{
	put_frame(WS_TEXT, false, "a", 1);
	put_frame(WS_TEXT, true, "b", 1);
	expect(-WS_PROTOCOL_ERROR, "");
	put_frame(WS_TEXT, true, "a", 1);
	put_frame(WS_CONTINUATION, true, "b", 1);
	expect(-WS_PROTOCOL_ERROR, "1:1:a;");
	put_frame(WS_PING, false, "a", 1);
	expect(-WS_PROTOCOL_ERROR, "");
}

static void masks_are_the_clients(void **state)
{
	put_frame_as(WS_CLIENT, WS_TEXT, true, "a", 1);
	expect_of(WS_SERVER, -WS_PROTOCOL_ERROR, "");
	put_frame_as(WS_SERVER, WS_TEXT, true, "a", 1);
	expect_of(WS_CLIENT, -WS_PROTOCOL_ERROR, "");
}

static void lengths_that_are_not_minimal_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} heads[] = {
		{ "\x81\xfe\x00\x7d", 4 },
		{ "\x81\xfe\x00\x00", 4 },
		{ "\x81\xff\x00\x00\x00\x00\x00\x00\xff\xff", 10 },
		{ "\x81\xff\x00\x00\x00\x00\x00\x00\x00\x01", 10 },
		{ "\x81\xff\x80\x00\x00\x00\x00\x01\x00\x00", 10 },
		{ "\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10 },
		{ "\x89\xfe", 2 }, /* pings of more than 125 bytes */
		{ "\x88\xff", 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		put(heads[i].bytes, heads[i].len);
		expect(-WS_PROTOCOL_ERROR, "");
	}
}

static void messages_have_a_longest_length(void **state)
{
	char *data = calloc(1, LONGEST + 1);

	put_frame(WS_BINARY, true, data, LONGEST);
	assert_int_equal(read_in_steps(WS_SERVER, LONGEST, 1000), 1);
	wire_len = 0;
	put_frame(WS_BINARY, true, data, LONGEST + 1);
	expect(-WS_TOO_BIG, "");
	/* The head of what is much too long is enough. */
	put("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 10);
	expect(-WS_TOO_BIG, "");
	/* All fragments together. */
	put_frame(WS_BINARY, false, data, LONGEST - 1);
	put_frame(WS_PING, true, data, 125);
	put_frame(WS_CONTINUATION, false, data, 1);
	put_frame(WS_CONTINUATION, true, data, 1);
	assert_int_equal(read_in_steps(WS_SERVER, LONGEST, 999), -WS_TOO_BIG);
	assert_int_equal(read_in_steps(WS_SERVER, LONGEST + 1, 999), 1);
	wire_len = 0;
	put_frame(WS_BINARY, true, "", 0);
	assert_int_equal(read_in_steps(WS_SERVER, 0, 1), 1);
	wire_len = 0;
	free(data);
}

static void texts_that_are_not_utf8_are_refused_at_their_first_wrong_byte(void **state)
{
	static const char *const wrong[] = {
		"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3\x28", "\xe0\x9f\xbf", "\xe2\x28",
		"\xe2\x82\x28", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
		"\xf0\x9f\x98\x28", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
		"\xf8\x88\x80\x80\x80", "12345678\xff", "1234567\303890123456",
	};
	static const char *const right[] = {
		"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
		"\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "12345678\303\25112345678",
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		put_frame(WS_TEXT, true, wrong[i], strlen(wrong[i]));
		expect(-WS_INVALID_DATA, "");
		/* It is not waited for the end of the message. */
		put_frame(WS_TEXT, false, wrong[i], strlen(wrong[i]));
		expect(-WS_INVALID_DATA, "");
		/* As binary it is nobody's concern. */
		put_frame(WS_BINARY, true, wrong[i], strlen(wrong[i]));
		assert_int_equal(read_in_steps(WS_SERVER, LONGEST, 1), 1);
		wire_len = 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		size_t len = strlen(right[i]);

		put_frame(WS_TEXT, true, right[i], len);
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++)
			assert_int_equal(read_in_steps(WS_SERVER, LONGEST, steps[k]), 1);
		wire_len = 0;
		/* One that ends within a character. */
		if (len > 5)
			continue;
		put_frame(WS_TEXT, true, right[i], len - 1);
		expect(-WS_INVALID_DATA, "");
		put_frame(WS_TEXT, false, right[i], len - 1);
		put_frame(WS_CONTINUATION, true, "", 0);
		expect(-WS_INVALID_DATA, "");
	}
}

static void masks_turn_with_the_offset(void **state)
{
	uint8_t whole[100], parts[100];

	for (size_t cut = 0; cut <= sizeof(whole); cut++) {
		for (size_t i = 0; i < sizeof(whole); i++)
			whole[i] = parts[i] = (uint8_t)i;
		ws_mask(whole, sizeof(whole), mask, 0);
		ws_mask(parts, cut, mask, 0);
		ws_mask(parts + cut, sizeof(parts) - cut, mask, cut);
		assert_memory_equal(whole, parts, sizeof(whole));
		for (size_t i = 0; i < sizeof(whole); i++)
			assert_int_equal(whole[i], (uint8_t)i ^ mask[i % 4]);
	}
}

/* ---- handshakes ---- */

/* Of RFC 6455, section 1.3. */
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static void keys_are_those_of_the_rfc(void **state)
{
	char key[WS_KEY_SIZE], accept[WS_ACCEPT_SIZE];

	ws_key_write(key, (const uint8_t *)"the sample nonce");
	assert_string_equal(key, KEY);
	ws_accept_write(accept, KEY);
	assert_string_equal(accept, ACCEPT);
}

static char head[256];

static int answer(const char *upgrade, const char *key, const char *version,
		  const char *protocols)
{
	struct web_request r = { .upgrade = upgrade, .path = "/", .query = "", .key = key,
				 .version = version, .protocols = protocols };

	return ws_handshake_answer(&r, "live", head, sizeof(head));
}

static void servers_answer_with_the_protocol_that_is_offered(void **state)
{
	static const char *const lists[] = { "live", "x, live", "x,live,y", " live", "live," };

	assert_int_equal(answer("websocket", KEY, "13", ""), 101);
	assert_string_equal(head, "Sec-WebSocket-Accept: " ACCEPT "\r\n");
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		assert_int_equal(answer("WebSocket", KEY, "13", lists[i]), 101);
		assert_string_equal(head, "Sec-WebSocket-Accept: " ACCEPT
					  "\r\nSec-WebSocket-Protocol: live\r\n");
	}
	assert_int_equal(answer("websocket", KEY, "13", "alive"), 400);
	assert_int_equal(answer("websocket", KEY, "13", "Live"), 400);
	assert_int_equal(answer("websocket", KEY, "13", "live2, liv"), 400);
}

static void servers_refuse_what_is_no_upgrade(void **state)
{
	struct web_request r = { .upgrade = "websocket", .path = "/", .query = "", .key = KEY,
				 .version = "13", .protocols = "" };

	assert_int_equal(answer("h2c", KEY, "13", ""), 400);
	assert_int_equal(answer("websocket", "", "13", ""), 400);
	assert_int_equal(answer("websocket", "dGhlIHNhbXBsZSBub25jZQ=", "13", ""), 400);
	assert_int_equal(answer("websocket", "dGhlIHNhbXBsZSBub25jZ===", "13", ""), 400);
	assert_int_equal(answer("websocket", "dGhlIHNhbXBsZSBub25j Q==", "13", ""), 400);
	assert_int_equal(answer("websocket", KEY "A", "13", ""), 400);
	assert_int_equal(answer("websocket", KEY, "8", ""), 426);
	assert_string_equal(head, "Sec-WebSocket-Version: 13\r\n");
	assert_int_equal(ws_handshake_answer(&r, "live", head, 10), 500);
}

static char error[200];

static int check(const char *text)
{
	size_t used = 0, len = strlen(text);
	int ret = -EAGAIN;

	*error = '\0';
	/* Byte by byte: it is not complete before its last one. */
	for (size_t n = 0; n <= len && ret == -EAGAIN; n++) {
		char *copy = malloc(n + 1);

		memcpy(copy, text, n);
		ret = ws_answer_check(copy, n, KEY, "live", &used, error, sizeof(error));
		if (!ret)
			assert_int_equal(used, n);
		free(copy);
	}
	return ret;
}

#define ANSWER "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n" \
	       "Connection: Upgrade\r\n"

static void clients_take_answers_to_their_key_only(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "HTTP/1.1 404 Not Found\r\n\r\n", "404 Not Found" },
		{ "HTTP/1.1 200\r\n\r\n", "200" },
		{ "HTTP/1.0 101 ok\r\n\r\n", "HTTP/1.0" },
		{ "HTTP/2.0 101 ok\r\n\r\n", "no HTTP" },
		{ "SSH-2.0-other\r\n\r\n", "no HTTP" },
		{ "\r\n\r\n", "no HTTP" },
		{ "HTTP/1.1 1010\r\n\r\n", "no HTTP" },
		{ "HTTP/1.1 404 \x1b[31m\r\n\r\n", "no HTTP" },
		{ "HTTP/1.1 101 ok\r\n\r\n", "does not upgrade" },
		{ "HTTP/1.1 101 ok\r\nUpgrade: websocket\r\n\r\n", "does not upgrade" },
		{ "HTTP/1.1 101 ok\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "does not upgrade" },
		{ ANSWER "\r\n", "no Sec-WebSocket-Accept" },
		{ ANSWER "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOO=\r\n\r\n", "not that of our key" },
		{ ANSWER "Sec-WebSocket-Accept: " ACCEPT "\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
		  "not that of our key" },
		{ ANSWER "Sec-WebSocket-Accept: " ACCEPT "\r\nSec-WebSocket-Protocol: dead\r\n\r\n",
		  "protocol" },
		{ ANSWER "Sec-WebSocket-Accept: " ACCEPT
			 "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n", "extension" },
		{ ANSWER " folded: x\r\n\r\n", "not well-formed" },
	};

	assert_int_equal(check(ANSWER "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n"), 0);
	assert_int_equal(check("HTTP/1.1 101\r\nupgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\n"
			       "sec-websocket-accept:  " ACCEPT " \r\nsec-websocket-protocol: live\r\n"
			       "Server: x\r\n\r\n"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(check(wrong[i].text), -EPROTO);
		if (!strstr(error, wrong[i].why))
			fail_msg("'%s' does not say '%s'", error, wrong[i].why);
	}
	assert_int_equal(check("HTTP/1.1 101 ok\r\n"), -EAGAIN);
	memset(wire, 'x', 8192);
	wire[8192] = '\0';
	assert_int_equal(check((char *)wire), -EPROTO);
}

static void a_server_takes_what_a_client_asks(void **state)
{
	char text[400];
	size_t len = ws_request_write(text, sizeof(text), "host:1", "/a.json", KEY, "live",
				      "X: y\r\n");

	assert_int_equal(len, strlen(text));
	assert_non_null(strstr(text, "GET /a.json HTTP/1.1\r\nHost: host:1\r\n"));
	assert_non_null(strstr(text, "\r\nSec-WebSocket-Key: " KEY "\r\n"));
	assert_non_null(strstr(text, "\r\nX: y\r\n\r\n"));
	assert_int_equal(ws_request_write(text, len, "host:1", "/a.json", KEY, "live", "X: y\r\n"),
			 0);
}

static void who_is_silent_is_asked_before_it_is_given_up(void **state)
{
	struct ws_silence s = { .heard_ns = 1000 };
	uint64_t until;

	assert_int_equal(ws_silence_look(&s, 900000, 0, 5, &until), WS_SILENCE_WAIT);
	assert_true(until == UINT64_MAX);
	assert_int_equal(ws_silence_look(&s, 1099, 100, 30, &until), WS_SILENCE_WAIT);
	assert_int_equal(until, 1100);
	/* However long this process stood still, it asks first. */
	assert_int_equal(ws_silence_look(&s, 900000, 100, 30, &until), WS_SILENCE_ASK);
	assert_int_equal(until, 900030);
	assert_int_equal(ws_silence_look(&s, 900029, 100, 30, &until), WS_SILENCE_WAIT);
	/* It takes what it is sent. */
	s.heard_ns = 900010;
	assert_int_equal(ws_silence_look(&s, 900039, 100, 30, &until), WS_SILENCE_WAIT);
	assert_int_equal(until, 900040);
	assert_int_equal(ws_silence_look(&s, 900040, 100, 30, &until), WS_SILENCE_GIVE_UP);
	ws_silence_broken(&s, 900040);
	assert_int_equal(ws_silence_look(&s, 900041, 100, 30, &until), WS_SILENCE_WAIT);
	assert_int_equal(until, 900140);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_out_as_they_went_in),
		cmocka_unit_test(who_is_silent_is_asked_before_it_is_given_up),
		cmocka_unit_test(every_length_is_written_and_read),
		cmocka_unit_test(fragments_are_put_together_in_every_way),
		cmocka_unit_test(control_frames_come_between_fragments),
		cmocka_unit_test(nothing_is_looked_at_behind_a_close),
		cmocka_unit_test(each_status_is_taken_or_refused),
		cmocka_unit_test(reasons_are_cut_at_a_character),
		cmocka_unit_test(reserved_bits_and_opcodes_are_refused),
		cmocka_unit_test(fragments_out_of_order_are_refused),
		cmocka_unit_test(masks_are_the_clients),
		cmocka_unit_test(lengths_that_are_not_minimal_are_refused),
		cmocka_unit_test(messages_have_a_longest_length),
		cmocka_unit_test(texts_that_are_not_utf8_are_refused_at_their_first_wrong_byte),
		cmocka_unit_test(masks_turn_with_the_offset),
		cmocka_unit_test(keys_are_those_of_the_rfc),
		cmocka_unit_test(servers_answer_with_the_protocol_that_is_offered),
		cmocka_unit_test(servers_refuse_what_is_no_upgrade),
		cmocka_unit_test(clients_take_answers_to_their_key_only),
		cmocka_unit_test(a_server_takes_what_a_client_asks),
	};

	return cmocka_run_group_tests_name("websocket", tests, NULL, NULL);
}
