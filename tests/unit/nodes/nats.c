/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of NATS servers, subjects of JetStream, addresses, and files of credentials. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/node/nats/credentials.h"
#include "gateway/node/nats/nats.h"

static int read_text(struct nats_frame *f, const char *text)
{
	return nats_frame_read(f, text, strlen(text));
}

#define PIECE(text) (&(struct nats_piece){ text, strlen(text) })

static void a_message_has_a_subject_a_number_and_its_bytes(void **state)
{
	struct nats_frame f;

	assert_int_equal(read_text(&f, "MSG lab.a 7 5\r\n1\r\n23\r\nPING\r\n"), 1);
	assert_true(f.op == NATS_MSG && f.sid == 7 && !f.reply.len && !f.head.len);
	assert_true(nats_piece_is(&f.subject, "lab.a") && nats_piece_is(&f.data, "1\r\n23"));
	assert_int_equal(f.size, 22);
	assert_int_equal(read_text(&f, "msg\tlab.a 7 to.me 0\r\n\r\n"), 1);
	assert_true(nats_piece_is(&f.reply, "to.me") && !f.data.len);
	assert_int_equal(read_text(&f, "MSG lab.a 7 5\r\n1\r\n23\r"), 0);
}

static void a_head_stands_before_the_bytes_and_may_be_a_status(void **state)
{
	struct nats_frame f;
	struct nats_piece text;

	assert_int_equal(read_text(&f, "HMSG a 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"), 1);
	assert_true(nats_piece_is(&f.data, "hi") && f.head.len == 12);
	assert_int_equal(nats_head_status(&f.head, &text), 0);
	assert_int_equal(read_text(&f, "HMSG a 1 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n"), 1);
	assert_int_equal(nats_head_status(&f.head, &text), 404);
	assert_true(nats_piece_is(&text, " No Messages"));
}

static void what_no_server_sends_is_refused(void **state)
{
	static const char *const wrong[] = {
		"GET / HTTP/1.1\r\n", "\r\n", "MSG a 1\r\n", "MSG a b 5\r\n", "MSG a 1 -5\r\n",
		"MSG a 1 r x 5\r\n", "MSG a 1 99999999999\r\n", "HMSG a 1 9 5\r\n12345\r\n",
		"HMSG a 1 5\r\n12345\r\n", "MSG a 1 2\r\n123\r\n", "PUB a 1\r\n",
	};
	struct nats_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(read_text(&f, wrong[i]), -EPROTO);
}

static void a_line_has_an_end(void **state)
{
	static char text[NATS_LINE_MAX + 1];
	struct nats_frame f;

	memset(text, 'x', sizeof(text));
	assert_int_equal(nats_frame_read(&f, text, NATS_LINE_MAX - 1), 0);
	assert_int_equal(nats_frame_read(&f, text, NATS_LINE_MAX), -EPROTO);
}

static void an_error_is_shown_without_quotes_and_control_characters(void **state)
{
	struct nats_frame f;
	char shown[20];

	assert_int_equal(read_text(&f, "-ERR 'Stale\x1b Connection'\r\n"), 1);
	assert_true(f.op == NATS_ERR);
	assert_string_equal(nats_piece_shown(&f.data, shown, sizeof(shown)), "Stale  Connection");
	assert_string_equal(nats_piece_shown(&f.data, shown, 6), "Stale");
}

static void subjects_of_streams_have_numbers(void **state)
{
	assert_int_equal(nats_reply_number(PIECE("$JS.ACK.LAB.reader.1.17.5.1700000000.0")), 17);
	assert_int_equal(nats_reply_number(PIECE("$JS.ACK.hub.acc.LAB.reader.1.18.5.17.0.x")), 18);
	assert_int_equal(nats_reply_number(PIECE("$JS.ACK.LAB.reader.1.-7.5.1700000000.0")), 0);
	assert_int_equal(nats_reply_number(PIECE("$JS.ACK.LAB.reader.1.17")), 0);
	assert_int_equal(nats_reply_number(PIECE("lab.reply")), 0);
	assert_int_equal(nats_subject_tag(PIECE("_INBOX.x.42")), 42);
	assert_int_equal(nats_subject_tag(PIECE("_INBOX.x.q")), 0);
	assert_int_equal(nats_subject_tag(PIECE("42")), 0);
}

static void addresses_are_taken_apart(void **state)
{
	struct nats_url u;

	assert_true(nats_url_parse(&u, "nats://broker.lab"));
	assert_string_equal(u.host, "broker.lab");
	assert_int_equal(u.port, 4222);
	assert_true(nats_url_parse(&u, "tls://lab:se:c@ret@[::1]:70/"));
	assert_string_equal(u.host, "::1");
	assert_string_equal(u.user, "lab");
	assert_string_equal(u.password, "se:c@ret");
	assert_int_equal(u.port, 70);
	assert_false(nats_url_parse(&u, "http://broker.lab"));
	assert_false(nats_url_parse(&u, "nats://"));
	assert_false(nats_url_parse(&u, "nats://token@broker.lab"));
	assert_false(nats_url_parse(&u, "nats://broker.lab:0"));
	assert_false(nats_url_parse(&u, "nats://broker.lab:x"));
	assert_false(nats_url_parse(&u, "nats://[::1:70"));
}

#define CREDENTIALS(seed) \
	"-----BEGIN NATS USER JWT-----\neyJ-_.a\n------END NATS USER JWT------\n\n" \
	"-----BEGIN USER NKEY SEED-----\n" seed "\n------END USER NKEY SEED------\n"

static void credentials_have_a_jwt_and_a_seed_with_a_check_sum(void **state)
{
	char good[] = CREDENTIALS("SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y");
	char damaged[] = CREDENTIALS("SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H777Y");
	char cut_off[] = CREDENTIALS("SU"), printed[NATS_SIGNATURE_SIZE];
	uint8_t signature[TLS_KEY_SIGNATURE_BYTES] = { 0xff, 0xff, 0xfe };
	struct nats_credentials c;

	assert_null(nats_credentials_read(&c, good));
	assert_string_equal(c.jwt, "eyJ-_.a");
	for (unsigned i = 0; i < TLS_KEY_SEED_BYTES; i++)
		assert_int_equal(c.seed[i], i);
	assert_non_null(nats_credentials_read(&c, damaged));
	assert_non_null(nats_credentials_read(&c, cut_off));
	nats_signature_print(signature, printed);
	assert_int_equal(strlen(printed), NATS_SIGNATURE_SIZE - 1);
	assert_memory_equal(printed, "___-AAAA", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_has_a_subject_a_number_and_its_bytes),
		cmocka_unit_test(a_head_stands_before_the_bytes_and_may_be_a_status),
		cmocka_unit_test(what_no_server_sends_is_refused),
		cmocka_unit_test(a_line_has_an_end),
		cmocka_unit_test(an_error_is_shown_without_quotes_and_control_characters),
		cmocka_unit_test(subjects_of_streams_have_numbers),
		cmocka_unit_test(addresses_are_taken_apart),
		cmocka_unit_test(credentials_have_a_jwt_and_a_seed_with_a_check_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
