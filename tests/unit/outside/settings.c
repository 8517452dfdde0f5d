/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of TLS, passwords, and what is shown of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "gateway/config/secret.h"
#include "gateway/outside/settings.h"
#include "util/container_of.h"
#include "util/log.h"

static struct config *load(const char *text)
{
	struct config *c = NULL;

	assert_int_equal(config_load_text("test", text, strlen(text), &c), 0);
	return c;
}

static int parse(struct outside_tls *t, const char *text, struct config **out)
{
	*out = load(text);
	return outside_tls_parse(t, *out, config_root(*out), false);
}

static void tls_is_off_without_its_group_and_strict_with_it(void **state)
{
	struct outside_tls t;
	struct config *c;

	assert_int_equal(parse(&t, "{}", &c), 0);
	assert_false(t.enabled);
	config_destroy(c);
	assert_int_equal(parse(&t, "{ \"ssl\": {} }", &c), 0);
	assert_true(t.enabled && t.verify && t.verify_host);
	assert_null(t.ca);
	config_destroy(c);
	assert_int_equal(parse(&t, "{ \"ssl\": { \"enabled\": false, \"ca\": \"/none\" } }", &c), 0);
	assert_false(t.enabled);
	config_destroy(c);
}

static void the_names_of_villasnode_mean_the_same(void **state)
{
	static const struct {
		const char *text;
		bool verify, verify_host;
	} cases[] = {
		{ "\"verify_peer\": false", false, false },
		{ "\"verify\": false", false, false },
		{ "\"verify_hostname\": false", true, false },
		{ "\"insecure\": true", true, false },
		{ "\"insecure\": false", true, true },
		{ "\"verify_peer\": true, \"verify\": true", true, true },
	};
	static const char *const authorities[] = { "ca", "cafile", "ca_cert", "cacert" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct outside_tls t;
		struct config *c;
		char text[200];

		snprintf(text, sizeof(text), "{ \"ssl\": { %s } }", cases[i].text);
		assert_int_equal(parse(&t, text, &c), 0);
		assert_int_equal(t.verify, cases[i].verify);
		assert_int_equal(t.verify_host, cases[i].verify_host);
		config_destroy(c);
	}
	for (size_t i = 0; i < ARRAY_SIZE(authorities); i++) {
		struct outside_tls t;
		struct config *c;
		char text[200];

		snprintf(text, sizeof(text), "{ \"ssl\": { \"%s\": \"/dev/null\", \"tls_version\": \"tlsv1.3\" } }",
			 authorities[i]);
		assert_int_equal(parse(&t, text, &c), 0);
		assert_string_equal(t.ca, "/dev/null");
		assert_string_equal(t.version, "1.3");
		config_destroy(c);
	}
}

static void what_cannot_be_meant_is_refused(void **state)
{
	static const char *const texts[] = {
		"{ \"ssl\": true }", "{ \"ssl\": { \"ca\": \"/no/such/file\" } }",
		"{ \"ssl\": { \"cert\": \"/dev/null\" } }",
		"{ \"ssl\": { \"ca\": \"/dev/null\", \"cafile\": \"/dev/null\" } }",
		"{ \"ssl\": { \"version\": \"1.1\" } }", "{ \"ssl\": { \"verfy\": true } }",
	};

	log_set_level(LOG_OFF);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct outside_tls t;
		struct config *c;

		assert_int_equal(parse(&t, texts[i], &c), -EINVAL);
		assert_int_equal(config_errors(c), 1);
		config_destroy(c);
	}
}

static void a_password_is_the_first_line_of_its_file(void **state)
{
	char path[] = "/tmp/busbar-secret-XXXXXX", fifo[] = "/tmp/busbar-fifo-XXXXXX";
	char buf[OUTSIDE_SECRET_MAX], why[100] = "";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "let me in\r\nnot this\n", 20), 20);
	close(fd);
	assert_string_equal(outside_secret(NULL, path, buf, why, sizeof(why)), "let me in");
	unlink(path);
	assert_null(outside_secret(NULL, path, buf, why, sizeof(why)));
	assert_non_null(strstr(why, path));
	assert_string_equal(outside_secret("given", NULL, buf, why, sizeof(why)), "given");
	assert_string_equal(outside_secret(NULL, NULL, buf, why, sizeof(why)), "");
	/* Nobody writes it. */
	close(mkstemp(fifo));
	unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_string_equal(outside_secret(NULL, fifo, buf, why, sizeof(why)) ?: "", "");
	unlink(fifo);
}

static void a_url_is_shown_without_its_password(void **state)
{
	static const char *const urls[][2] = {
		{ "amqp://guest:guest@localhost/x", "amqp://guest:...@localhost/x" },
		{ "amqp://u:p@ss@host", "amqp://u:...@host" },
		{ "redis://host:6379/a@b:c", "redis://host:6379/a@b:c" },
		{ "u:p@host", "u:...@host" },
		{ "http://u@host:80", "http://u@host:80" },
		{ "", "" },
	};
	char buf[100];

	for (size_t i = 0; i < ARRAY_SIZE(urls); i++)
		assert_string_equal(outside_url_shown(urls[i][0], buf, sizeof(buf)), urls[i][1]);
}

static void a_password_in_plain_text_is_warned_of(void **state)
{
	static const struct {
		const char *host;
		size_t warnings;
	} cases[] = {
		{ "localhost", 0 }, { "127.0.0.1", 0 }, { "::1", 0 }, { NULL, 0 },
		{ "broker", 1 }, { "10.0.0.1", 1 }, { "localhost.lab", 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config *c = load("{ \"password\": \"x\" }");
		json_t *list = json_array();

		config_collect_problems(list);
		outside_warn_plain(c, config_root(c), "password", cases[i].host);
		config_collect_problems(NULL);
		assert_int_equal(json_array_size(list), cases[i].warnings);
		assert_int_equal(config_errors(c), 0);
		json_decref(list);
		config_destroy(c);
	}
}

static void a_copy_of_a_configuration_has_no_secrets(void **state)
{
	struct config *c = load(
		"{ \"nodes\": { \"n\": { \"password\": \"hush\", \"sasl\": { \"password\": \"hush\" },"
		" \"uri\": \"amqp://me:hush@host/\", \"list\": [ { \"token\": \"hush\" } ],"
		" \"slash\": \"redis://me:h/hush@host/\", \"quote\": \"redis://me:'hush@host/\","
		" \"properties\": { \"password\": 4711 },"
		" \"key\": \"shown\", \"password_file\": \"/shown\" } } }");
	json_t *copy = secret_copy(config_root(c));
	char *text = json_dumps(copy, 0);

	assert_null(strstr(text, "hush"));
	assert_null(strstr(text, "4711"));
	assert_non_null(strstr(text, "shown"));
	assert_non_null(strstr(text, "/shown"));
	assert_non_null(strstr(text, "amqp://me:(hidden)@host/"));
	free(text);
	json_decref(copy);
	config_destroy(c);
}

static void a_text_has_no_secrets_and_the_rest_as_it_was(void **state)
{
	static const char *const texts[][2] = {
		{ "password = \"a\"; x = 1;", "password = \"(hidden)\"; x = 1;" },
		{ "{ \"password\" : \"a\\\"b\", \"y\": 2 }", "{ \"password\" : \"(hidden)\", \"y\": 2 }" },
		{ "password = \"${SECRET}\";", "password = \"${SECRET}\";" },
		{ "password = \"${SECRET:-abc}\";", "password = \"(hidden)\";" },
		{ "password_file = \"a\"; my-password = \"b\"", "password_file = \"a\"; my-password = \"b\"" },
		{ "uri = \"amqp://u:pw@h/\";", "uri = \"amqp://u:(hidden)@h/\";" },
		{ "uri = \"amqp://u:${PW}@h/\";", "uri = \"amqp://u:${PW}@h/\";" },
		{ "address = \"a:1\" # token: \"x\"\n", "address = \"a:1\" # token: \"(hidden)\"\n" },
		{ "token=\"x", "token=\"(hidden)\"" },
		{ "name = \"password\"; b = \"x\";", "name = \"password\"; b = \"x\";" },
		{ "password = 4711; b = 1;", "password = \"(hidden)\"; b = 1;" },
		{ "password = ${A}; token = ${A:-\"x\"};", "password = ${A}; token = \"(hidden)\";" },
		/* libconfig puts texts together, and comments may stand anywhere. */
		{ "password = \"a\" \"b\"\n# c\n\"d\"; e = \"f\";", "password = \"(hidden)\"; e = \"f\";" },
		{ "password /* x */ = # y\n\"a\";", "password /* x */ = # y\n\"(hidden)\";" },
		{ "uri = \"amqp://u:\" \"pw@h\";", "uri = \"amqp://u:(hidden)@h\";" },
		{ "a = \"x\" \"y\";", "a = \"x\" \"y\";" },
		{ "# 19\" rack\npassword = \"a\";", "# 19\" rack\npassword = \"(hidden)\";" },
		{ "# 19\" password = \"a\"\n", "# 19\" password = \"(hidden)\"\n" },
		{ "/* 19\" */ token = \"a\"; // \"\nsecret = \"b\"",
		  "/* 19\" */ token = \"(hidden)\"; // \"\nsecret = \"(hidden)\"" },
		{ "a = \"# no comment \"; token = \"b\";", "a = \"# no comment \"; token = \"(hidden)\";" },
		{ "a = \"the password:\"; b = \"c\";", "a = \"the password:\"; b = \"c\";" },
		{ "token = \"${A}x${B}\"; secret = \"${A}\" \"x\" \"${B}\";",
		  "token = \"(hidden)\"; secret = \"(hidden)\";" },
		/* Escapes. */
		{ "{ \"pass\\u0077ord\": \"a\" }", "{ \"pass\\u0077ord\": \"(hidden)\" }" },
		{ "{ \"uri\": \"amqp:\\/\\/u:pw@h\\/\" }", "{ \"uri\": \"amqp://u:(hidden)@h/\" }" },
		{ "uri = \"amqp\\x3a//u:pw@h\";", "uri = \"amqp://u:(hidden)@h\";" },
		{ "uri = \"amqp:\\/\\/h\\x41\";", "uri = \"amqp:\\/\\/h\\x41\";" },
		{ "uri = \"redis://u:p/w@h/0\";", "uri = \"redis://u:(hidden)@h/0\";" },
		{ "uri = \"redis://u:p'w?#@h/0\";", "uri = \"redis://u:(hidden)@h/0\";" },
		{ "a = \"\\", "a = \"\\" },
		{ "a = \"\\x4", "a = \"\\x4" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char *text = secret_hide_text(texts[i][0]);

		assert_string_equal(text, texts[i][1]);
		free(text);
	}
}

static void a_hidden_password_is_not_taken_for_one(void **state)
{
	static const struct config_key keys[] = {
		{ "password", CONFIG_STRING, 0, .help = "x" },
		{ "name", CONFIG_STRING, sizeof(char *), .help = "x" },
	};
	const char *values[2];
	struct config *c = load("{ \"password\": \"(hidden)\" }");

	assert_int_equal(config_unpack(c, config_root(c), keys, 2, values, NULL, 0), -EINVAL);
	config_destroy(c);
	c = load("{ \"name\": \"amqp://me:(hidden)@host/\" }");
	assert_int_equal(config_unpack(c, config_root(c), keys, 2, values, NULL, 0), -EINVAL);
	config_destroy(c);
	c = load("{ \"name\": \"(hidden)\" }");
	assert_int_equal(config_unpack(c, config_root(c), keys, 2, values, NULL, 0), 0);
	config_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tls_is_off_without_its_group_and_strict_with_it),
		cmocka_unit_test(the_names_of_villasnode_mean_the_same),
		cmocka_unit_test(what_cannot_be_meant_is_refused),
		cmocka_unit_test(a_password_is_the_first_line_of_its_file),
		cmocka_unit_test(a_url_is_shown_without_its_password),
		cmocka_unit_test(a_password_in_plain_text_is_warned_of),
		cmocka_unit_test(a_copy_of_a_configuration_has_no_secrets),
		cmocka_unit_test(a_text_has_no_secrets_and_the_rest_as_it_was),
		cmocka_unit_test(a_hidden_password_is_not_taken_for_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
