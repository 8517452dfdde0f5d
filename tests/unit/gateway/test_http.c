/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the HTTP server that need no connection: headers, tokens, queries, the
 * texts of answers. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "gateway/control/config_text.h"
#include "gateway/control/graph.h"
#include "gateway/control/metrics_print.h"
#include "gateway/control/query.h"
#include "gateway/http/access.h"
#include "gateway/http/head.h"
#include "gateway/http/http.h"
#include "gateway/http/parse.h"
#include "gateway/part/sha.h"
#include "util/clock.h"
#include "util/container_of.h"

static char room[4096];

static int parse(const char *text, struct http_request *r)
{
	const char *why = NULL;
	size_t len;
	int status;

	snprintf(room, sizeof(room), "%s", text);
	len = http_header_end(room, strlen(room), 0);
	assert_true(len > 0);
	status = http_parse(room, len, r, &why);
	assert_non_null(why);
	return status;
}

static void headers_are_taken_apart(void **state)
{
	struct http_request r;

	assert_int_equal(parse("GET /a?b=%20 HTTP/1.1\r\nHost: x:1\r\naccept:\t*/* \r\n"
			       "Connection: Upgrade, close\r\nX-Y: z\r\n\r\nrest", &r), 0);
	assert_string_equal(r.method, "GET");
	assert_string_equal(r.target, "/a?b=%20");
	assert_string_equal(r.host, "x:1");
	assert_string_equal(r.accept, "*/*");
	assert_string_equal(r.origin, "");
	assert_true(r.minor == 1 && r.close && r.upgrades && !r.has_length);
	assert_int_equal(parse("GET http://h:8/x HTTP/1.0\r\nContent-Length: 0\r\n\r\n", &r), 0);
	assert_string_equal(r.target, "/x");
	assert_true(r.minor == 0 && r.has_length);
	assert_int_equal(parse("OPTIONS * HTTP/1.1\r\n\r\n", &r), 0);
}

static void what_could_be_read_in_two_ways_is_refused(void **state)
{
	static const struct {
		const char *text;
		int status;
	} wrong[] = {
		{ "GET / HTTP/2.0\r\n\r\n", 505 },
		{ "GET / HTTP/1.1x\r\n\r\n", 505 },
		{ "GET /\r\n\r\n", 400 },
		{ "GET  / HTTP/1.1\r\n\r\n", 400 },
		{ "GET x HTTP/1.1\r\n\r\n", 400 },
		{ "GET * HTTP/1.1\r\n\r\n", 400 },
		{ "G(T / HTTP/1.1\r\n\r\n", 400 },
		{ "GET /\x01 HTTP/1.1\r\n\r\n", 400 },
		{ "GET /\xc3\xa4 HTTP/1.1\r\n\r\n", 400 },
		{ "\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n folded\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nno colon\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nX: a\nY: b\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nX: a\x7f\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400 },
	};
	struct http_request r;
	const char *why;
	char zero[] = "GET / HTTP/1.1\r\nX: \0\r\n\r\n";

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (parse(wrong[i].text, &r) != wrong[i].status)
			fail_msg("%s", wrong[i].text);
	assert_int_equal(http_parse(zero, sizeof(zero) - 1, &r, &why), 400);
	assert_int_equal(http_length_parse("12"), 12);
	assert_int_equal(http_length_parse("+12"), -1);
	assert_int_equal(http_length_parse("0x1"), -1);
	assert_int_equal(http_length_parse(""), -1);
	assert_int_equal(http_length_parse("99999999999999999999"), -1);
}

/* Two programs could take another one of them. */
static void no_field_that_counts_comes_twice_not_even_empty(void **state)
{
	static const char *const names[] = {
		"Host", "Origin", "Authorization", "Content-Length", "Content-Type", "Prefer",
		"Accept", "Expect", "Upgrade", "If-None-Match", "Sec-Fetch-Site",
		"Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol",
	};
	static const char *const values[] = { "", " ", "5" };
	struct http_request r;
	char text[200];

	for (size_t i = 0; i < ARRAY_SIZE(names) * 9; i++) {
		const char *name = names[i / 9];

		snprintf(text, sizeof(text), "POST / HTTP/1.1\r\n%s:%s\r\nX: y\r\n%s:%s\r\n\r\n",
			 name, values[i / 3 % 3], name, values[i % 3]);
		if (parse(text, &r) != 400)
			fail_msg("%s", text);
	}
}

static void the_end_of_a_header_is_found_across_reads(void **state)
{
	const char text[] = "GET / HTTP/1.1\r\nA: b\r\n\r\nGET";
	size_t end = sizeof(text) - 4;

	for (size_t cut = 0; cut < end; cut++) {
		assert_int_equal(http_header_end(text, cut, 0), 0);
		assert_int_equal(http_header_end(text, sizeof(text) - 1, cut), end);
	}
}

static void queries_and_types_are_understood(void **state)
{
	char value[16] = "as it was";

	assert_int_equal(query_value("a=1&layout=ne%61to&layout=x", "layout", value,
				     sizeof(value)), 0);
	assert_string_equal(value, "neato");
	assert_int_equal(query_value("layoutx=1", "layout", value, sizeof(value)), -ENOENT);
	assert_int_equal(query_value("a=%0", "a", value, sizeof(value)), -EINVAL);
	assert_int_equal(query_value("a=%00", "a", value, sizeof(value)), -EINVAL);
	assert_int_equal(query_value("a=12345678901234567890", "a", value, sizeof(value)),
			 -ENAMETOOLONG);
	assert_string_equal(value, "neato");
	assert_int_equal(query_encode("a b/\xff", 5, "/", value, sizeof(value)), 0);
	assert_string_equal(value, "a%20b/%FF");
	assert_int_equal(query_encode("      ", 6, "", value, sizeof(value)), -ENAMETOOLONG);

	assert_int_equal(query_weight("", "a/b"), 1000);
	assert_int_equal(query_weight("text/*;q=0.5, */*;q=0.1", "text/plain"), 500);
	assert_int_equal(query_weight("*/*;q=0.125, text/plain;q=0", "text/plain"), 0);
	assert_int_equal(query_weight("TEXT/plain ; x=y ; Q=1.0", "text/plain"), 1000);
	assert_int_equal(query_weight("a/b", "c/d"), 0);
	assert_true(query_prefers("*/*", "a/b", "c/d"));
	assert_false(query_prefers("a/b;q=0.9,c/d", "a/b", "c/d"));
}

static void hosts_and_origins_are_checked(void **state)
{
	json_t *list = json_pack("[s]", "https://lab.example:8443");

	assert_true(http_host_is_local("localhost:80"));
	assert_true(http_host_is_local("127.0.0.1"));
	assert_true(http_host_is_local("[::1]:8080"));
	assert_false(http_host_is_local("evil.example"));
	assert_false(http_host_is_local("localhost.evil.example"));
	assert_false(http_host_is_local("[::1"));
	assert_true(http_host_is_loopback("localhost:80") && http_host_is_loopback("[::1]:80"));
	assert_true(http_host_is_loopback("127.0.0.1:80") && http_host_is_loopback("127.9.8.7"));
	assert_false(http_host_is_loopback("0.0.0.0:80") || http_host_is_loopback("[::]:80"));
	assert_false(http_host_is_loopback("192.168.0.5:80") || http_host_is_loopback("localhost.evil"));
	assert_false(http_host_is_loopback("[::ffff:127.0.0.1]:80") || http_host_is_loopback(""));
	assert_true(http_origin_fits("http://h:1", "h:1", false, NULL));
	assert_false(http_origin_fits("http://h:1", "h:1", true, NULL));
	assert_false(http_origin_fits("http://h:2", "h:1", false, list));
	assert_true(http_origin_fits("https://lab.example:8443", "h", false, list));
	assert_false(http_origin_fits("null", NULL, false, list));
	json_decref(list);
	assert_true(http_type_is("application/json; charset=utf-8", "application/json"));
	assert_false(http_type_is("application/jsonx", "application/json"));
	assert_true(fabs(http_prefer_wait("respond-async, wait=7", 2, 60) - 7) < 1e-9);
	assert_true(http_prefer_wait("respond-async", 2, 60) <= 0);
	assert_true(fabs(http_prefer_wait("wait=999", 2, 60) - 60) < 1e-9);
	assert_true(fabs(http_prefer_wait("x", 2, 60) - 2) < 1e-9);
}

static const char *hex_of(const uint8_t *bytes, size_t count)
{
	static char text[2 * SHA256_BYTES + 1];

	for (size_t i = 0; i < count; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	return text;
}

/* Examples of the standard; and the hash of all hashes of texts of 0 to 199 bytes, as Python's
 * hashlib has it: the end of a text lies everywhere in a block. */
static void hashes_are_those_of_the_standard(void **state)
{
	static const struct {
		const char *text, *sha1, *sha256;
	} known[] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d",
		  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	static uint8_t all1[200 * SHA1_BYTES], all256[200 * SHA256_BYTES];
	uint8_t d1[SHA1_BYTES], d256[SHA256_BYTES];
	char a[200];

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		sha1(known[i].text, strlen(known[i].text), d1);
		assert_string_equal(hex_of(d1, SHA1_BYTES), known[i].sha1);
		sha256(known[i].text, strlen(known[i].text), d256);
		assert_string_equal(hex_of(d256, SHA256_BYTES), known[i].sha256);
	}
	memset(a, 'a', sizeof(a));
	for (size_t n = 0; n < sizeof(a); n++) {
		sha1(a, n, all1 + n * SHA1_BYTES);
		sha256(a, n, all256 + n * SHA256_BYTES);
	}
	sha1(all1, sizeof(all1), d1);
	assert_string_equal(hex_of(d1, SHA1_BYTES), "8a18f04bac7c86cfcffa6a93e5cb21ae0159deac");
	sha256(all256, sizeof(all256), d256);
	assert_string_equal(hex_of(d256, SHA256_BYTES),
			    "752c007f38611cfbf5fa42cb1cea3d8e086491c844d0cc4defd632cb81423506");
}

static char token_path[] = "/tmp/busbar-tokens-XXXXXX";

static void write_tokens(const char *text, mode_t mode)
{
	FILE *f = fopen(token_path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	chmod(token_path, mode);
}

static void token_files_are_checked(void **state)
{
	static const char *const wrong[] = {
		"", "# nothing\n", "king 0123456789abcdef\n", "watch\n", "watch short\n",
		"watch 0123456789abcdef more\n", "watch sha256:12\n",
	};
	struct http_settings s = { .token_file = token_path };
	struct http_access *a;
	int fd = mkstemp(token_path);

	assert_true(fd >= 0);
	close(fd);
	write_tokens("watch 0123456789abcdef\n", 0640);
	assert_int_equal(http_access_new(&a, &s), -EPERM);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		write_tokens(wrong[i], 0600);
		assert_true(http_access_new(&a, &s) < 0);
	}
	unlink(token_path);
	assert_int_equal(http_access_new(&a, &s), -ENOENT);
}

static void wrong_tokens_are_refused_for_a_while(void **state)
{
	json_t *list = json_pack("[{ss}]", "role", "operate");
	struct http_settings s = { .tokens = list };
	struct http_peer peer = { .address = { [10] = 0xff, 0xff, 192, 0, 2, 1 } };
	struct http_peer other = { .address = { [10] = 0xff, 0xff, 192, 0, 2, 2 } };
	unsigned char d[SHA256_BYTES];
	unsigned retry = 0;
	struct http_access *a;
	uint64_t now = NSEC_PER_SEC;
	char hash[65];
	int status;

	sha256("secret-of-test", 14, d);
	for (unsigned b = 0; b < SHA256_BYTES; b++)
		sprintf(hash + 2 * b, "%02x", d[b]);
	json_object_set_new(json_array_get(list, 0), "sha256", json_string(hash));
	assert_int_equal(http_access_new(&a, &s), 0);
	assert_false(http_access_trusts_local(a));
	assert_int_equal(http_access_check(a, &peer, NULL, now, &status, &retry), HTTP_NOBODY);
	assert_int_equal(status, 401);
	assert_int_equal(http_access_check(a, &peer, "bearer secret-of-test", now, &status,
					   &retry), HTTP_OPERATE);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(http_access_check(a, &peer, "Bearer secret-of-tesT", now,
						   &status, &retry), HTTP_NOBODY);
		assert_int_equal(status, 401);
	}
	assert_int_equal(http_access_check(a, &peer, "Bearer secret-of-tesT",
					   now + 59 * NSEC_PER_SEC, &status, &retry),
			 HTTP_NOBODY);
	assert_int_equal(status, 429);
	assert_true(retry >= 1 && retry <= 2);
	/* Others have this address, too: the right one is served at any time. */
	assert_int_equal(http_access_check(a, &peer, "Bearer secret-of-test",
					   now + 59 * NSEC_PER_SEC, &status, &retry),
			 HTTP_OPERATE);
	assert_int_equal(http_access_check(a, &other, "Bearer secret-of-test", now, &status,
					   &retry), HTTP_OPERATE);
	assert_int_equal(http_access_check(a, &peer, "Bearer secret-of-test",
					   now + 61 * NSEC_PER_SEC, &status, &retry),
			 HTTP_OPERATE);
	http_access_free(a);
	json_decref(list);
}

static void without_tokens_the_user_counts(void **state)
{
	struct http_settings s = { .wanted = true };
	struct http_peer peer = { .is_local = true, .has_owner = true, .owner.uid = geteuid() };
	struct http_access *a;
	unsigned retry;
	int status;

	assert_int_equal(http_access_new(&a, &s), 0);
	assert_true(http_access_trusts_local(a));
	assert_int_equal(http_access_check(a, &peer, NULL, 1, &status, &retry),
			 HTTP_CONFIGURE);
	peer.owner.uid = geteuid() + 12345;
	assert_int_equal(http_access_check(a, &peer, NULL, 1, &status, &retry), HTTP_NOBODY);
	assert_int_equal(status, 403);
	peer.owner.uid = geteuid();
	peer.has_owner = false;
	assert_int_equal(http_access_check(a, &peer, NULL, 1, &status, &retry), HTTP_NOBODY);
	http_access_free(a);
}

static void places_to_listen_at_are_parsed(void **state)
{
	static const struct {
		const char *text, *address;
		int port, ret;
	} cases[] = {
		{ "", "before", 7, 0 },
		{ "8080", "before", 8080, 0 },
		{ "0", "before", -1, 0 },
		{ "127.0.0.1", "127.0.0.1", 7, 0 },
		{ "127.0.0.1:80", "127.0.0.1", 80, 0 },
		{ "::1", "::1", 7, 0 },
		{ "[::1]:80", "::1", 80, 0 },
		{ "*:80", "*", 80, 0 },
		{ "localhost:80", NULL, 0, -EINVAL },
		{ "127.0.0.1:", NULL, 0, -EINVAL },
		{ "127.0.0.1:65536", NULL, 0, -EINVAL },
		{ "127.0.0.1:-1", NULL, 0, -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_settings s = { .address = "before", .port = 7 };
		char address[64];
		int ret = http_listen_parse(&s, cases[i].text, address, sizeof(address));

		if (ret != cases[i].ret)
			fail_msg("%s: %d", cases[i].text, ret);
		if (ret)
			continue;
		assert_string_equal(s.address, cases[i].address);
		assert_int_equal(s.port, cases[i].port);
	}
}

static void metrics_are_escaped(void **state)
{
	struct metrics_labels l = { { { "node", "a\"\\\nb" } } };
	const double bounds[] = { -0.5, 1, 1e-6 };
	const uint64_t counts[] = { 1, 2, 3 };
	char *text = NULL;
	size_t len;
	struct metrics m = { .out = open_memstream(&text, &len) };

	metrics_family(&m, "x", METRICS_COUNTER, "one\ntwo");
	metrics_count(&m, &l, 7);
	m.open = true;
	metrics_family(&m, "h", METRICS_HISTOGRAM, "\"q\"");
	metrics_histogram(&m, NULL, bounds, counts, 3, 9, 2.5);
	metrics_histogram(&m, &l, bounds, counts, 0, 9, NAN);
	metrics_end(&m);
	fclose(m.out);
	assert_string_equal(text,
			    "# HELP x_total one\\ntwo\n# TYPE x_total counter\n"
			    "x_total{node=\"a\\\"\\\\\\nb\"} 7\n"
			    "# HELP h \\\"q\\\"\n# TYPE h histogram\n"
			    "h_bucket{le=\"-0.5\"} 1\nh_bucket{le=\"1.0\"} 2\n"
			    "h_bucket{le=\"1e-06\"} 3\nh_bucket{le=\"+Inf\"} 9\n"
			    "h_count 9\nh_sum 2.5\n"
			    "h_bucket{node=\"a\\\"\\\\\\nb\",le=\"+Inf\"} 9\n# EOF\n");
	free(text);
}

static void configurations_survive_the_way_through_libconfig(void **state)
{
	json_t *o = json_pack("{s{sI sI sf sf sb ss s[ss] s[{si}]} sn}", "group", "i", 7,
			      "long", (json_int_t)5000000000, "whole", 2.0, "real", 1e-20,
			      "yes", 1, "text", "a\"b\\c\nd\te\x01", "list", "x", "y",
			      "groups", "z", 1, "nothing");
	char *text = config_text(o);
	struct config *c;

	assert_non_null(text);
	assert_int_equal(config_load_text("test", text, strlen(text), &c), 0);
	json_object_del(o, "nothing");
	if (!json_equal(config_root(c), o))
		fail_msg("%s", text);
	config_destroy(c);
	free(text);
	json_decref(o);
}

static void graphs_quote_names(void **state)
{
	json_t *nodes = json_pack("[{ss ss ss}]", "name", "a\"]; x", "type", "t", "state",
				  "stopped");
	json_t *paths = json_pack("[{s[s] s[] ss ss}]", "in", "a\"]; x", "out", "mode",
				  "any", "state", "running");
	char *text = graph_text(nodes, paths);

	assert_non_null(strstr(text, "\t\"a\\\"]; x\" [label=\"a\\\"]; x\""));
	assert_non_null(strstr(text, "style=dashed"));
	free(text);
	json_decref(nodes);
	json_decref(paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_taken_apart),
		cmocka_unit_test(what_could_be_read_in_two_ways_is_refused),
		cmocka_unit_test(no_field_that_counts_comes_twice_not_even_empty),
		cmocka_unit_test(the_end_of_a_header_is_found_across_reads),
		cmocka_unit_test(queries_and_types_are_understood),
		cmocka_unit_test(hosts_and_origins_are_checked),
		cmocka_unit_test(hashes_are_those_of_the_standard),
		cmocka_unit_test(token_files_are_checked),
		cmocka_unit_test(wrong_tokens_are_refused_for_a_while),
		cmocka_unit_test(without_tokens_the_user_counts),
		cmocka_unit_test(places_to_listen_at_are_parsed),
		cmocka_unit_test(metrics_are_escaped),
		cmocka_unit_test(configurations_survive_the_way_through_libconfig),
		cmocka_unit_test(graphs_quote_names),
	};

	return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
