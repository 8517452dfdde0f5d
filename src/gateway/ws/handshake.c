/* SPDX-License-Identifier: BSD-2-Clause */
/* The opening handshake of WebSocket; see handshake.h. */
#include "gateway/ws/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/part/sha.h"
#include "gateway/plugin/web.h"
#include "util/container_of.h"
#include "util/head_text.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define VERSION "13"
#define HEAD_MAX 8192 /* of an answer */

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Base64 (RFC 4648, section 4), ended by a NUL. */
static void base64(char *to, const uint8_t *from, size_t len)
{
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i;
		uint32_t bits = (uint32_t)from[i] << 16 | (n > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
				(n > 2 ? from[i + 2] : 0);

		*to++ = alphabet[bits >> 18];
		*to++ = alphabet[bits >> 12 & 63];
		*to++ = n > 1 ? alphabet[bits >> 6 & 63] : '=';
		*to++ = n > 2 ? alphabet[bits & 63] : '=';
	}
	*to = '\0';
}

void ws_key_write(char key[WS_KEY_SIZE], const uint8_t random[16])
{
	base64(key, random, 16);
}

void ws_accept_write(char accept[WS_ACCEPT_SIZE], const char *key)
{
	char text[128];
	uint8_t digest[SHA1_BYTES];

	snprintf(text, sizeof(text), "%s" GUID, key);
	sha1(text, strlen(text), digest);
	base64(accept, digest, sizeof(digest));
}

/* 16 bytes as base64. */
static bool is_key(const char *key)
{
	return strlen(key) == WS_KEY_SIZE - 1 && strspn(key, alphabet) == WS_KEY_SIZE - 3 &&
	       !strcmp(key + WS_KEY_SIZE - 3, "==");
}

/* Whether a list with commas has `word`, exactly: names of protocols have a case. */
static bool offers(const char *list, const char *word)
{
	while (*list) {
		size_t blanks = strspn(list, " \t,"), len;

		list += blanks;
		len = strcspn(list, " \t,");
		if (len && len == strlen(word) && !memcmp(list, word, len))
			return true;
		list += len;
	}
	return false;
}

int ws_handshake_answer(const struct web_request *r, const char *protocol, char *head,
			size_t size)
{
	char accept[WS_ACCEPT_SIZE];
	bool named = offers(r->protocols, protocol);
	int n;

	if (size)
		*head = '\0';
	if (strcasecmp(r->upgrade, "websocket") || !is_key(r->key))
		return 400;
	if (strcmp(r->version, VERSION)) {
		n = snprintf(head, size, "Sec-WebSocket-Version: " VERSION "\r\n");
		return n < 0 || (size_t)n >= size ? 500 : 426;
	}
	if (*r->protocols && !named)
		return 400;
	ws_accept_write(accept, r->key);
	n = snprintf(head, size, "Sec-WebSocket-Accept: %s\r\n%s%s%s", accept,
		     named ? "Sec-WebSocket-Protocol: " : "", named ? protocol : "",
		     named ? "\r\n" : "");
	return n < 0 || (size_t)n >= size ? 500 : 101;
}

size_t ws_request_write(char *to, size_t size, const char *host, const char *target,
			const char *key, const char *protocol, const char *lines)
{
	int n = snprintf(to, size,
			 "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n"
			 "Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
			 "Sec-WebSocket-Version: " VERSION "\r\nSec-WebSocket-Protocol: %s\r\n"
			 "%s\r\n",
			 target, host, key, protocol, lines);

	return n < 0 || (size_t)n >= size ? 0 : (size_t)n;
}

/* What an answer has said so far. */
struct answer {
	bool upgrade, connection, accept, protocol;
};

static int fail(char *error, size_t size, const char *why)
{
	snprintf(error, size, "%s", why);
	return -EPROTO;
}

static bool is_digits(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return true;
}

/* "HTTP/1.1 101 Switching Protocols" */
static int check_status(struct head_text line, char *error, size_t size)
{
	struct head_text version = { line.at, MIN(line.bytes, (size_t)8) };
	unsigned minor;

	for (size_t i = 0; i < line.bytes; i++)
		if (head_is_control(line.at[i]))
			return fail(error, size, "the answer is no HTTP");
	if (line.bytes < 12 || head_version_parse(version, &minor) || line.at[8] != ' ' ||
	    !is_digits(line.at + 9, 3) || (line.bytes > 12 && line.at[12] != ' '))
		return fail(error, size, "the answer is no HTTP");
	if (minor < 1)
		return fail(error, size, "the server speaks HTTP/1.0, which has no upgrades");
	if (!memcmp(line.at + 9, "101", 3))
		return 0;
	snprintf(error, size, "the server answers %.*s", (int)MIN(line.bytes - 9, (size_t)80),
		 line.at + 9);
	return -EPROTO;
}

static bool is_exactly(struct head_text t, const char *s)
{
	return t.bytes == strlen(s) && !memcmp(t.at, s, t.bytes);
}

static int check_field(struct answer *a, struct head_text line, const char *accept,
		       const char *protocol, char *error, size_t size)
{
	struct head_field f;

	if (head_field_parse(line, &f))
		return fail(error, size, "a header of the answer is not well-formed");
	if (head_is(f.name, "upgrade"))
		a->upgrade |= head_is(f.value, "websocket");
	if (head_is(f.name, "connection"))
		a->connection |= head_lists(f.value, head_text_of("upgrade"));
	if (head_is(f.name, "sec-websocket-accept")) {
		if (a->accept || !is_exactly(f.value, accept))
			return fail(error, size, "Sec-WebSocket-Accept is not that of our key");
		a->accept = true;
	}
	if (head_is(f.name, "sec-websocket-extensions") && f.value.bytes)
		return fail(error, size, "the server wants an extension that nobody has offered");
	if (head_is(f.name, "sec-websocket-protocol")) {
		if (a->protocol || !is_exactly(f.value, protocol))
			return fail(error, size, "the server wants a protocol that nobody has offered");
		a->protocol = true;
	}
	return 0;
}

/* text[0..len) is a whole head. */
static int check_head(const char *text, size_t len, const char *key, const char *protocol,
		      char *error, size_t size)
{
	char accept[WS_ACCEPT_SIZE];
	struct answer a = { 0 };

	ws_accept_write(accept, key);
	for (size_t at = 0; at < len - 2;) {
		const char *end = memmem(text + at, len - at, "\r\n", 2);
		struct head_text line = { text + at, (size_t)(end - text) - at };
		int ret = at ? check_field(&a, line, accept, protocol, error, size) :
			       check_status(line, error, size);

		if (ret)
			return ret;
		at += line.bytes + 2;
	}
	if (!a.upgrade || !a.connection)
		return fail(error, size, "the answer does not upgrade to websocket");
	if (!a.accept)
		return fail(error, size, "the answer has no Sec-WebSocket-Accept");
	return 0;
}

int ws_answer_check(const char *text, size_t len, const char *key, const char *protocol,
		    size_t *used, char *error, size_t size)
{
	const char *end = memmem(text, MIN(len, (size_t)HEAD_MAX), "\r\n\r\n", 4);

	if (!end)
		return len < HEAD_MAX ? -EAGAIN :
					fail(error, size, "the head of the answer does not end");
	*used = (size_t)(end - text) + 4;
	return check_head(text, *used, key, protocol, error, size);
}
