/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-types with every format, through a whole gateway: what check takes can be
 * run, and pausing, stopping, starting, exchanging and reloading a node leaves no
 * sample that points at what has gone. The address sanitizer sees the latter.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "gateway/plugin/format.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/signals.h"
#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_reload.h"
#include "util/clock.h"
#include "util/log.h"

#define TOP "stats = 0.0; hugepages = 0; idle_stop = false;\n"

static char folder[] = "/tmp/busbar-formats-XXXXXX";
static _Atomic unsigned errors; /* that were logged */
static bool told;                /* print what is logged */

static bool count_errors(enum log_level level, const char *line)
{
	if (level == LOG_ERROR)
		atomic_fetch_add(&errors, 1);
	if (told)
		fprintf(stderr, "%s\n", line);
	return true;
}

static void remove_files(void)
{
	static const char *const names[] = { "x", "f.out", "f.cff", "log", "held",
					     "print" };
	char path[100];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
}

static struct config *load(const char *text)
{
	struct config *c;

	if (config_load_text("test.conf", text, strlen(text), &c))
		fail_msg("cannot be read: %s", text);
	return c;
}

static uint64_t received(struct super_node *sn, const char *node)
{
	return atomic_load(&super_node_find(sn, node)->counters.received);
}

static uint64_t sent(struct super_node *sn, const char *node)
{
	return atomic_load(&super_node_find(sn, node)->counters.sent);
}

typedef uint64_t (*count_fn)(struct super_node *sn, const char *node);

/* Until `count` of `node` is at least `least`; false when the time is over. */
static bool wait_up_to(struct super_node *sn, count_fn count, const char *node,
		       uint64_t least, unsigned ms)
{
	uint64_t end_ns = clock_monotonic_ns_slow() + ms * UINT64_C(1000000);

	while (count(sn, node) < least) {
		if (clock_monotonic_ns_slow() > end_ns)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 250000 }, NULL);
	}
	return true;
}

static bool wait_for(struct super_node *sn, count_fn count, const char *node,
		     uint64_t least)
{
	return wait_up_to(sn, count, node, least, 20000);
}

/* Below those that the kernel gives to others, and other ones in the processes side by side. */
static uint16_t free_port(void)
{
	for (unsigned turn = 0; turn < 100; turn++) {
		struct sockaddr_in a = {
			.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
			.sin_port = htons((uint16_t)(20000 + ((unsigned)getpid() + 101 * turn) %
							     12000)),
		};
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool good;

		assert_true(fd >= 0);
		good = !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) &&
		       !bind(fd, (struct sockaddr *)&a, sizeof(a));
		close(fd);
		if (good)
			return ntohs(a.sin_port);
	}
	fail_msg("no port is free");
	return 0;
}

/* The kinds of node with a format. `x` is written, `y` (it may be the same) read;
 * "%F" stands for the format, "%D" for the folder, "%P" for a port, "%X" for what a
 * file of the format is called after. */
static const struct medium {
	const char *name, *reads, *nodes;
} media[] = {
	{ "datagrams", "x", "x = { type = \"socket\"; layer = \"unix\"; format = %F;"
	  " in = { address = \"%D/x\"; signals = \"%S\"; }; out = { address = \"%D/x\"; }; };" },
	{ "tcp", "y", "x = { type = \"socket\"; layer = \"tcp-client\"; format = %F;"
	  " out = { address = \"127.0.0.1:%P\"; }; };"
	  "y = { type = \"socket\"; layer = \"tcp-server\"; format = %F;"
	  " in = { address = \"127.0.0.1:%P\"; signals = \"%S\"; }; };" },
	{ "exec", "x", "x = { type = \"exec\"; exec = \"cat\"; shell = true; format = %F;"
	  " in = { signals = \"%S\" }; };" },
	{ "file", NULL, "x = { type = \"file\"; uri = \"%D/f.%X\"; format = %F; out = { flush = true; }; };" },
};

static void expand(char *to, size_t size, const char *from, const char *format,
		   const char *signals, uint16_t port)
{
	size_t used = 0;

	for (; *from && used + 100 < size; from++) {
		if (*from != '%') {
			to[used++] = *from;
			continue;
		}
		switch (*++from) {
		case 'F': used += (size_t)sprintf(to + used, "\"%s\"", format); break;
		case 'D': used += (size_t)sprintf(to + used, "%s", folder); break;
		case 'P': used += (size_t)sprintf(to + used, "%u", port); break;
		case 'S': used += (size_t)sprintf(to + used, "%s", signals); break;
		case 'X': used += (size_t)sprintf(to + used, "%s", strcmp(format, "comtrade") ?
						  "out" : "cff"); break;
		default: to[used++] = *from; break;
		}
	}
	to[used] = '\0';
}

static void for_each_format(void (*check)(const struct format_type *,
					  const struct medium *))
{
	for (const struct plugin *p = format_plugins; p->name; p++) {
		const struct format_type *type = plugin_type(p);

		if (!type || !type->print || !type->scan)
			continue;
		for (size_t m = 0; m < sizeof(media) / sizeof(media[0]); m++)
			check(type, &media[m]);
	}
}

/* ---- check and run ---- */

static void assert_runs(struct super_node *sn, const char *what, const char *reads)
{
	struct node *x = super_node_find(sn, "x");
	bool done;

	if (super_node_start(sn))
		fail_msg("%s: check takes it, but it does not start", what);
	done = !x || wait_for(sn, sent, "x", 3);
	if (done && reads && x)
		done = wait_for(sn, received, reads, 1);
	super_node_stop(sn);
	if (!done || atomic_load(&errors) || super_node_has_failed(sn))
		fail_msg("%s: check takes it, but it does not run", what);
}

static void check_agrees(const struct format_type *type, const struct medium *m)
{
	static const char letters[] = "fibc";

	for (int k = 0; k < 4; k++) {
		char nodes[1000], text[2000], what[100], signals[2] = { letters[k] };
		struct super_node *sn = NULL;
		struct config *c;
		int ret;

		snprintf(what, sizeof(what), "%s over %s of %s", type->name, m->name,
			 signal_type_name((enum signal_type)k));
		expand(nodes, sizeof(nodes), m->nodes, type->name, signals, free_port());
		snprintf(text, sizeof(text), TOP
			 "nodes = { g = { type = \"signal.v2\"; rate = 2000.0; in = { signals = ("
			 "{ name = \"s\"; signal = \"counter\"; type = \"%s\" } ) } }; %s };"
			 "paths = ( { in = \"g\"; out = \"x\" }%s%s%s );",
			 signal_type_name((enum signal_type)k), nodes,
			 m->reads ? ", { in = \"" : "", m->reads ? m->reads : "",
			 m->reads ? "\" }" : "");
		c = load(text);
		remove_files(); /* no record can be continued */
		atomic_store(&errors, 0);
		ret = super_node_new(&sn, c);
		/* An error is one for both: what is logged and what check says. */
		if (!ret != !config_errors(c) || !ret != !atomic_load(&errors))
			fail_msg("%s: check returns %d and counts %u errors, %u are logged",
				 what, ret, config_errors(c), atomic_load(&errors));
		if (type->carries.types &&
		    !ret != !!(type->carries.types & FORMAT_TYPE(k)))
			fail_msg("%s: check %s it", what, ret ? "refuses" : "takes");
		/* Names that a message must have are made up differently: only
		 * those that both sides know by their number are read back. */
		if (!ret)
			assert_runs(sn, what, !strncmp(type->name, "json.", 5) ||
				    !strcmp(type->name, "iotagent_ul") ||
				    !strcmp(type->name, "comtrade") ? NULL : m->reads);
		super_node_destroy(sn);
		config_destroy(c);
	}
}

static void check_agrees_with_run_for_every_format_and_type_of_signal(void **state)
{
	for_each_format(check_agrees);
}

/* The hook `print` has a format, too. */
static void check_agrees_with_run_for_what_hook_print_writes(void **state)
{
	for (const struct plugin *p = format_plugins; p->name; p++) {
		const struct format_type *type = plugin_type(p);

		for (int k = 0; type && type->carries.types && k < 4; k++) {
			char text[1000], path[100];
			struct super_node *sn = NULL;
			struct config *c;
			struct stat st;
			int ret;

			snprintf(path, sizeof(path), "%s/print", folder);
			unlink(path);
			snprintf(text, sizeof(text), TOP
				 "nodes = { g = { type = \"signal.v2\"; rate = 2000.0; in = { signals = ("
				 "{ name = \"s\"; signal = \"counter\"; type = \"%s\" } ) } };"
				 "x = { type = \"loopback\" } };"
				 "paths = ( { in = \"g\"; out = \"x\"; hooks = ( {"
				 "type = \"print\"; format = { type = \"%s\"; header = false };"
				 "output = \"%s\" } ) }, { in = \"x\" } );",
				 signal_type_name((enum signal_type)k), type->name, path);
			c = load(text);
			atomic_store(&errors, 0);
			ret = super_node_new(&sn, c);
			assert_int_equal(!ret, !!(type->carries.types & FORMAT_TYPE(k)));
			assert_int_equal(!ret, !config_errors(c));
			if (!ret)
				assert_runs(sn, type->name, "x");
			super_node_destroy(sn);
			config_destroy(c);
			if (ret)
				continue;
			assert_int_equal(stat(path, &st), 0);
			assert_true(st.st_size > 0);
		}
	}
}

/* What the path brings counts, whatever the node's own `signals` call it. */
static void signals_of_the_node_do_not_hide_what_the_path_brings(void **state)
{
	struct super_node *sn = NULL;
	char text[1000];
	struct config *c;

	snprintf(text, sizeof(text), TOP
		 "nodes = { g = { type = \"signal.v2\"; in = { signals = ("
		 "{ name = \"s\"; signal = \"counter\"; type = \"complex\" } ) } };"
		 "x = { type = \"file\"; uri = \"%s/x\"; format = \"villas.binary\"; out = { signals = \"1f\" } } };"
		 "paths = ( { in = \"g\"; out = \"x\" } );", folder);
	c = load(text);
	assert_int_not_equal(super_node_new(&sn, c), 0);
	assert_int_equal(config_errors(c), 1);
	super_node_destroy(sn);
	config_destroy(c);
}

/* Options that a format finds wrong by itself are errors of check as well. */
static void options_that_a_format_refuses_are_errors_of_check(void **state)
{
	static const char *const formats[] = {
		"{ type = \"raw\"; bits = 24 }",
		"{ type = \"raw\"; endianess = \"odd\" }",
		"{ type = \"gtnet\"; endianess = \"big\"; endianness = \"little\" }",
		"{ type = \"csv\"; columns = \"plain\"; time_column = \"t\"; header = false }",
		"{ type = \"tsv\"; separator = \"1\" }",
		"{ type = \"json.kafka\"; schema = 3 }",
		"{ type = \"comtrade\"; revision = 7 }",
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct super_node *sn = NULL;
		char text[1000];
		struct config *c;

		snprintf(text, sizeof(text), TOP
			 "nodes = { x = { type = \"socket\"; layer = \"unix\"; format = %s;"
			 "in = { address = \"%s/x\" } } }; paths = ( { in = \"x\" } );",
			 formats[i], folder);
		c = load(text);
		if (!super_node_new(&sn, c) || !config_errors(c))
			fail_msg("check takes %s", formats[i]);
		super_node_destroy(sn);
		config_destroy(c);
	}
}

/* ---- life cycle ---- */

static void control(struct super_node *sn, const char *node, enum control_verb verb)
{
	int ret = super_node_node_control(sn, node, verb);

	if (ret)
		fail_msg("verb %d of %s: %s", (int)verb, node, strerror(-ret));
}

static void reload(struct super_node *sn, const char *text)
{
	struct config *c = load(text);
	json_t *root = json_deep_copy(config_root(c)), *report = NULL;

	config_destroy(c);
	if (super_node_reload(sn, root, &report))
		fail_msg("reload of %s", text);
	json_decref(report);
	json_decref(root);
}

static void gateway_text(char *text, size_t size, const char *nodes,
			 const char *reads, unsigned queuelen)
{
	snprintf(text, size, TOP
		 "nodes = { g = { type = \"signal\"; signal = \"counter\"; rate = 1000.0; values = 2 };"
		 "l = { type = \"loopback\"; queuelen = %u }; f = { type = \"file\"; uri = \"%s/log\"; format = \"csv\" };"
		 "%s }; paths = ( { in = \"g\"; out = \"x\" }, { in = \"%s\"; out = \"l\" },"
		 "{ in = \"l\"; out = \"f\" } );", queuelen, folder, nodes, reads);
}

static void check_life(const struct format_type *type, const struct medium *m)
{
	char nodes[1000], other[1000], text[2000];
	struct super_node *sn = NULL;
	uint16_t port = free_port();
	struct config *c;

	if (!m->reads || !strcmp(type->name, "comtrade"))
		return;
	expand(nodes, sizeof(nodes), m->nodes, type->name, "2f", port);
	expand(other, sizeof(other), m->nodes, strcmp(type->name, "json") ?
	       "json" : "busbar.binary", "2f", port);
	gateway_text(text, sizeof(text), nodes, m->reads, 1024);
	c = load(text);
	atomic_store(&errors, 0);
	if (super_node_new(&sn, c) || super_node_start(sn))
		fail_msg("%s over %s does not start", type->name, m->name);
	if (!wait_for(sn, sent, "f", 3))
		fail_msg("%s over %s brings nothing", type->name, m->name);
	/* What was read meanwhile is held back, and goes on later. */
	control(sn, m->reads, CONTROL_PAUSE);
	control(sn, m->reads, CONTROL_STOP);
	control(sn, m->reads, CONTROL_START);
	control(sn, "x", CONTROL_RESTART);
	control(sn, "l", CONTROL_RESTART);
	if (!wait_for(sn, sent, "f", sent(sn, "f") + 3))
		fail_msg("%s over %s brings nothing after its start", type->name,
			 m->name);
	/* The same with another format, then with another loopback; both are
	 * exchanged while samples of the old ones are under way. */
	gateway_text(text, sizeof(text), other, m->reads, 1024);
	reload(sn, text);
	control(sn, "f", CONTROL_PAUSE);
	gateway_text(text, sizeof(text), nodes, m->reads, 512);
	reload(sn, text);
	if (node_state(super_node_find(sn, "f")) == NODE_STARTED)
		super_node_node_control(sn, "f", CONTROL_RESUME);
	if (!wait_for(sn, sent, "f", sent(sn, "f") + 3))
		fail_msg("%s over %s brings nothing after a reload", type->name,
			 m->name);
	super_node_stop(sn);
	super_node_destroy(sn);
	config_destroy(c);
}

static const char *own_path, *of_format;

/* Of the one format that the process was called with. */
static void a_node_goes_while_its_samples_are_under_way(void **state)
{
	const struct format_type *type = format_type_find(of_format);

	for (size_t m = 0; m < sizeof(media) / sizeof(media[0]); m++)
		check_life(type, &media[m]);
}

/* Nearly all of it is waiting: the formats side by side, in processes. */
static void no_format_leaves_samples_of_a_node_that_has_gone(void **state)
{
	pid_t children[64];
	unsigned count = 0, failed = 0;

	for (const struct plugin *p = format_plugins; p->name; p++) {
		char *const args[] = { (char *)own_path, (char *)p->name, NULL };

		assert_int_equal(posix_spawn(&children[count++], "/proc/self/exe",
					     NULL, NULL, args, environ), 0);
	}
	for (unsigned i = 0; i < count; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		failed += status != 0;
	}
	assert_int_equal(failed, 0);
}

/* ---- what a peer describes ---- */

static int call(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	for (unsigned i = 0; connect(fd, (struct sockaddr *)&a, sizeof(a)); i++) {
		assert_true(i < 1000);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return fd;
}

/* Writes one sample of busbar.binary, behind its description in the first message. */
static int write_described(int fd, const char *name, uint64_t sequence)
{
	struct signal_list *l = signal_list_alloc(1);
	struct sample *s = calloc(1, sizeof(*s) + sizeof(s->data[0]));
	struct format *f;
	char buf[1000];
	size_t head = 0, used;
	bool good;

	if (signal_set(&l->signals[0], name, NULL, SIGNAL_INTEGER) ||
	    format_new(&f, NULL, NULL, "busbar.binary", l))
		return 1;
	s->capacity = s->length = 1;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA;
	s->sequence = sequence;
	s->signals = l;
	if (!sequence)
		head = f->type->header(f, buf, sizeof(buf), l);
	good = f->type->print(f, buf + head, sizeof(buf) - head, &used, &s, 1) == 1 &&
	       write(fd, buf, head + used) == (ssize_t)(head + used);
	format_destroy(f);
	free(s);
	signal_list_put(l);
	return !good;
}

/* By a process of its own: the lists of its formats last as long as the process, and would
 * be found here as lists that are kept. */
static void send_described(int fd, const char *name, uint64_t sequence)
{
	posix_spawn_file_actions_t actions;
	char number[24];
	char *const args[] = { (char *)own_path, (char *)name, number, NULL };
	pid_t child;
	int status;

	snprintf(number, sizeof(number), "%" PRIu64, sequence);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	assert_int_equal(posix_spawn(&child, "/proc/self/exe", &actions, NULL, args,
				     environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void check_held_back(const char *name)
{
	uint16_t port = free_port();
	struct super_node *sn = NULL;
	char text[1000];
	struct config *c;
	uint64_t count;
	int fd;

	snprintf(text, sizeof(text), TOP
		 "nodes = { y = { type = \"socket\"; layer = \"tcp-server\"; format = \"busbar.binary\";"
		 "in = { address = \"127.0.0.1:%u\"; signals = \"1f\" } };"
		 "l = { type = \"loopback\" } };"
		 "paths = ( { in = \"y\"; out = \"l\"; hooks = ( { type = \"print\"; format = \"villas.human\";"
		 "output = \"%s/held\" } ) }, { in = \"l\" } );", port, folder);
	c = load(text);
	assert_int_equal(super_node_new(&sn, c), 0);
	assert_int_equal(super_node_start(sn), 0);
	fd = call(port);
	send_described(fd, name, 0);
	assert_true(wait_for(sn, received, "l", 1));
	/* A path that waits inside the read holds the next one back. One that was
	 * not yet there again leaves it, and another try is made. */
	for (count = 2;; count++) {
		assert_true(count < 50);
		control(sn, "y", CONTROL_PAUSE);
		send_described(fd, name, count - 1);
		if (wait_up_to(sn, received, "y", count, 500))
			break;
		control(sn, "y", CONTROL_RESUME);
		assert_true(wait_for(sn, received, "l", count));
	}
	control(sn, "y", CONTROL_STOP);
	/* It goes on now, when the node's formats have gone. */
	assert_true(wait_for(sn, received, "l", count));
	control(sn, "y", CONTROL_START);
	super_node_stop(sn);
	close(fd);
	super_node_destroy(sn);
	config_destroy(c);
}

/* Fills what is kept of descriptions, so that samples own further ones. */
static void fill_kept_lists(void)
{
	for (unsigned i = 0; i <= SIGNALS_TOLD_MAX; i++) {
		struct signal_list *l = signal_list_alloc(1);
		char name[40];

		snprintf(name, sizeof(name), "kept%u", i);
		assert_int_equal(signal_set(&l->signals[0], name, NULL,
					    SIGNAL_FLOAT), 0);
		signal_list_put(signal_list_intern_told(l));
	}
}

static void a_sample_held_back_keeps_the_description_of_a_node_that_stops(void **state)
{
	check_held_back("first");
	fill_kept_lists();
	check_held_back("owned");
	check_held_back("owned again");
}

static int set_up(void **state)
{
	clock_init();
	log_set_sink(count_errors);
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	remove_files();
	return rmdir(folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_agrees_with_run_for_every_format_and_type_of_signal),
		cmocka_unit_test(check_agrees_with_run_for_what_hook_print_writes),
		cmocka_unit_test(signals_of_the_node_do_not_hide_what_the_path_brings),
		cmocka_unit_test(options_that_a_format_refuses_are_errors_of_check),
		cmocka_unit_test(no_format_leaves_samples_of_a_node_that_has_gone),
		cmocka_unit_test(a_sample_held_back_keeps_the_description_of_a_node_that_stops),
	};
	const struct CMUnitTest one[] = {
		cmocka_unit_test(a_node_goes_while_its_samples_are_under_way),
	};

	if (argc > 2)
		return write_described(STDOUT_FILENO, argv[1],
				       strtoull(argv[2], NULL, 10));
	told = getenv("TOLD") != NULL;
	own_path = argv[0];
	of_format = argc > 1 ? argv[1] : NULL;
	return of_format ? cmocka_run_group_tests(one, set_up, tear_down) :
			   cmocka_run_group_tests(tests, set_up, tear_down);
}
