/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar zmq-keygen` (villas-zmq-keygen): a key pair for the node-type zeromq. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"
#include "cli/zmq_pair.h"
#include "gateway/plugin/plugin.h"
#include "util/options.h"

struct settings {
	const char *file;
};

static const struct option_entry table[] = {
	{ "-s FILE: write the secret key to FILE, which must not exist yet and which only its owner may read, "
		     "and print the public key alone", OPTION_TEXT(struct settings, file) },
	TOOL_OPTIONS,
};

static const struct options options = {
	.synopsis = "[-s FILE]",
	.about = "Prints a new key pair of CURVE for the node-type zeromq, as the group of a\n"
		 "configuration.\n",
	.table = table,
};

/* A text of a configuration must not look like a variable of the environment. */
static bool is_plain(const char *key)
{
	return !strstr(key, "${");
}

static int make_pair(char **argv, char public[CLI_ZMQ_KEY_SIZE], char secret[CLI_ZMQ_KEY_SIZE])
{
	int (*pair)(char *, char *) =
		(int (*)(char *, char *))plugin_symbol("command_zmq", "cli_zmq_pair");
	int ret;

	if (!pair)
		return -ENOENT;
	do {
		ret = pair(public, secret);
	} while (!ret && !(is_plain(public) && is_plain(secret)));
	if (ret)
		fprintf(stderr, "%s: no key pair: %s\n", argv[0], ret == -ENOTSUP ?
			"the installed libzmq was built without CURVE" : strerror(-ret));
	return ret;
}

static int write_secret(char **argv, const char *file, const char *secret)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool good = fd >= 0 && dprintf(fd, "%s\n", secret) > 0;
	int error = errno;

	if (fd >= 0 && close(fd) && good) {
		error = errno;
		good = false;
	}
	if (!good)
		fprintf(stderr, "%s: cannot write %s: %s\n", argv[0], file, strerror(error));
	if (fd >= 0 && !good)
		unlink(file);
	return good ? 0 : -error;
}

static int print_pair(char **argv, const char *file, const char *public, const char *secret)
{
	printf("curve = {\n"
	       "\tpublic_key = \"%s\";\n"
	       "\t%s = \"%s\";\n"
	       "};\n", public, file ? "secret_key_file" : "secret_key", file ? file : secret);
	if (!fflush(stdout) && !ferror(stdout))
		return CLI_OK;
	fprintf(stderr, "%s: cannot write: %s\n", argv[0], strerror(errno));
	return CLI_FAILED;
}

int cli_zmq_keygen(int argc, char **argv)
{
	char public[CLI_ZMQ_KEY_SIZE], secret[CLI_ZMQ_KEY_SIZE];
	struct settings s = { 0 };
	int status;

	tool_begin(argv);
	status = options_parse(&options, argc, argv, &s, NULL);
	if (status >= 0)
		return status;
	if (make_pair(argv, public, secret))
		return CLI_FAILED;
	status = s.file && write_secret(argv, s.file, secret) ? CLI_FAILED :
		 print_pair(argv, s.file, public, secret);
	explicit_bzero(secret, sizeof(secret));
	return status;
}
