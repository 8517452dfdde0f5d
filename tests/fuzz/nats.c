/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a NATS server sends, for the node-type nats. Frames: the same bytes, in one piece and with
 * each beginning of them, give the same frames, which lie inside of their bytes. Answers of
 * JetStream: each is good, an error with a text that can be shown, or no answer. Numbers in
 * subjects. And files of credentials.
 *
 * usage: fuzz_nats [RUNS [SEED]]
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "{}[]\":,.0123456789-eE\\u \n\r\t\0\x7f\xff+'$MSGHINFOPR_="
#include "drive.h"
#include "gateway/node/nats/answer.h"
#include "gateway/node/nats/credentials.h"
#include "gateway/node/nats/protocol.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void check_piece(const struct nats_piece *p, const char *at, size_t size)
{
	char shown[40];

	must(p->at >= at && p->len <= size && p->at + p->len <= at + size);
	nats_piece_shown(p, shown, sizeof(shown));
	for (const char *t = shown; *t; t++)
		must(isprint((unsigned char)*t));
	must(nats_piece_is(p, shown) || p->len >= sizeof(shown) || memcmp(p->at, shown, p->len));
}

static void check_frame(const struct nats_frame *f, const char *at, size_t len)
{
	struct nats_piece text;
	uint64_t tag = nats_subject_tag(&f->subject), number = nats_reply_number(&f->reply);
	int status = nats_head_status(&f->head, &text);

	must(f->size && f->size <= len);
	check_piece(&f->subject, at, f->size);
	check_piece(&f->reply, at, f->size);
	check_piece(&f->head, at, f->size);
	check_piece(&f->data, at, f->size);
	check_piece(&text, at, f->size);
	must(f->op == NATS_MSG || (!f->subject.len && !f->reply.len && !f->head.len));
	must(f->op != NATS_MSG || f->subject.len);
	must(status >= 0 && status < 1000 && (!status || f->head.len));
	must(tag < UINT64_C(1000000000000000000) && (!number || f->reply.len > 8));
}

/* The first frame of `data`, also when it has come in pieces. */
static size_t read_frame(const char *data, size_t size)
{
	struct nats_frame f, piece;
	int ret = nats_frame_read(&f, data, size);

	must(ret == 1 || !ret || ret == -EPROTO);
	if (ret != 1)
		return 0;
	check_frame(&f, data, size);
	for (size_t len = 0; len < f.size; len++) {
		char *begun = malloc(len ? len : 1);

		must(begun);
		memcpy(begun, data, len);
		must(!nats_frame_read(&piece, begun, len));
		free(begun);
	}
	must(nats_frame_read(&piece, data, f.size) == 1 && piece.size == f.size);
	return f.size;
}

static void read_answer(const char *data, size_t size)
{
	struct nats_answer a;
	bool known = nats_answer_read(&a, data, size);

	must(!a.good || (known && !*a.text && !a.code));
	must(strnlen(a.text, sizeof(a.text)) < sizeof(a.text) && a.code >= 0 && a.code < 1000);
	for (const char *t = a.text; *t; t++)
		must(!iscntrl((unsigned char)*t));
}

static void read_credentials(const char *data, size_t size)
{
	char *text = malloc(size + 1);
	struct nats_credentials c;
	const char *why;

	must(text);
	memcpy(text, data, size);
	text[size] = 0;
	why = nats_credentials_read(&c, text);
	must(why ? *why : c.jwt >= text && c.jwt < text + size && *c.jwt);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const char *data = (const char *)bytes;
	size_t at = 0, n;

	while (at < size && (n = read_frame(data + at, size - at)))
		at += n;
	read_answer(data, size);
	read_credentials(data, size);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_OF_ANSWER 1024

static const char *const valid[] = {
	"INFO {\"server_id\":\"D\",\"headers\":true,\"max_payload\":1048576}\r\nPING\r\nPONG\r\n+OK\r\n",
	"MSG lab.a 1 5\r\n1 2 3\r\nMSG lab.a 2 lab.reply 0\r\n\r\n",
	"-ERR 'Permissions Violation for Publish to \"lab.x\"'\r\n",
	("HMSG _INBOX.x 2 $JS.ACK.LAB.reader.1.17.5.1700000000000000000.0 12 17\r\nNATS/1.0\r\n\r\n"
	 "1 2 3\r\n"),
	("HMSG _INBOX.x 2 $JS.ACK.hub.acc.LAB.reader.1.18.6.1700000000000000000.3.rnd 12 12\r\n"
	 "NATS/1.0\r\n\r\n\r\n"),
	"HMSG _INBOX.x.17 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
	"HMSG _INBOX.m 2 39 39\r\nNATS/1.0 409 Exceeded MaxWaiting 12\r\n\r\n\r\n",
	"MSG a 1 99999999999999999999\r\n",
	"{\"stream\":\"LAB\",\"seq\":17,\"duplicate\":true}",
	("{\"type\":\"io.nats.jetstream.api.v1.pub_ack_response\",\"error\":{\"code\":503,"
	 "\"err_code\":10008,\"description\":\"JetStream system temporarily unavailable\"}}"),
	"{\"error\":{\"code\":400},\"stream\":\"LAB\",\"seq\":0}",
	("-----BEGIN NATS USER JWT-----\neyJ0.e-_Q\n------END NATS USER JWT------\n\n"
	 "-----BEGIN USER NKEY SEED-----\nSUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y\n"
	 "------END USER NKEY SEED------\n"),
};

static size_t make(uint8_t *bytes, size_t capacity)
{
	const char *text = valid[random_below(sizeof(valid) / sizeof(valid[0]))];
	size_t size = strlen(text);

	memcpy(bytes, text, size);
	return mutate_times(bytes, size, capacity, random_below(6));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 100000, SIZE_MAX_OF_ANSWER, make);
}
#endif
