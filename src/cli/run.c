/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar run`: runs a gateway until it is told to stop, its paths have ended
 * (idle_stop) or its time is over.
 */
#define LOG_ROOM "run"
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/end_guard.h"
#include "cli/run.h"
#include "cli/tool.h"
#include "gateway/base/ending.h"
#include "gateway/config/config.h"
#include "gateway/control/metrics.h"
#include "gateway/control/server.h"
#include "gateway/http/http.h"
#include "gateway/plugin/plugin.h"
#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_reload.h"
#include "util/bounded_write.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/log_recent.h"
#include "util/options.h"

/* How long the summary waits for a reader that takes nothing: by itself, and behind a request
 * to end, which leaves less time. */
#define SUMMARY_MS 2000
#define SUMMARY_ASKED_MS 300

/* Under mlockall() whole stacks are resident, and the default is 8 MiB for each thread. */
#define THREAD_STACK_BYTES (1 << 20)

enum summary { SUMMARY_TEXT, SUMMARY_JSON, SUMMARY_NONE };

struct run_options {
	const char *file; /* NULL: none, the gateway waits for a configuration */
	int level;        /* enum log_level, -1: as configured */
	double seconds;   /* < 0: no limit */
	bool quiet;
	const char *control; /* path of the control socket */
	const char *http;    /* where the HTTP server listens; "": as configured */
	bool idle_stop;
	enum summary summary;
};

static struct super_node *_Atomic running;
static _Atomic bool live_line;
static atomic_bool reload_wanted, end_wanted;

/* Called by the thread of end_guard.c when the time is over. */
static void tell_unfinished(void)
{
	struct super_node *sn = atomic_load(&running);

	if (sn)
		super_node_tell_unfinished(sn);
	else
		log_error("the process has not ended in time");
}

static void on_signal(int number)
{
	struct super_node *sn = atomic_load(&running);

	/* A second request ends the process at once. */
	if (tool_asked_again()) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	end_guard_begin();
	atomic_store(&end_wanted, true);
	if (sn)
		super_node_request_stop(sn);
}

static void on_hangup(int number)
{
	atomic_store(&reload_wanted, true);
}

static void catch_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal };

	end_guard_start(tell_unfinished);

	sigemptyset(&act.sa_mask);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	act.sa_handler = on_hangup;
	sigaction(SIGHUP, &act, NULL);
	/* A closed pipe is an error of write(), and does not end the process. */
	signal(SIGPIPE, SIG_IGN);
}

/* For all threads of the process. A smaller limit of the user (`ulimit -s`) is kept. */
static void limit_stacks(void)
{
	pthread_attr_t attr;
	size_t bytes;

	if (pthread_getattr_default_np(&attr))
		return;
	if (!pthread_attr_getstacksize(&attr, &bytes) &&
	    bytes > THREAD_STACK_BYTES &&
	    !pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES))
		pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

/* Clears the live line before a message is printed. */
static bool clear_line(enum log_level level, const char *line)
{
	static const char clear[] = "\r\033[K";

	if (live_line)
		bounded_write(STDERR_FILENO, clear, sizeof(clear) - 1, 0);
	return false;
}

static int take_level(const struct option_given *g)
{
	int level = log_level_parse(g->value);

	*(int *)option_member(g) = level;
	return level < 0 ? options_refuse(g, "expected off, error, warn, info, debug or trace") : OPTIONS_GO_ON;
}

static const struct option_entry table[] = {
	{ "-d LEVEL: log level: off, error, warn, info, debug, trace",
	  OPTION_TAKE(struct run_options, level, take_level) },
	{ "-t SECONDS: stop after this time", OPTION_REAL(struct run_options, seconds, 0, 1e9) },
	{ "-q: no live line on the terminal", OPTION_FLAG(struct run_options, quiet) },
	{ "--summary text|json|none: form of the summary (text)", OPTION_CHOICE(struct run_options, summary) },
	{ "--idle-stop: end when all paths have ended, unless CONFIG says idle_stop",
	  OPTION_FLAG(struct run_options, idle_stop) },
	{ "--control PATH: offer a socket for busbar-ctl there ('@name': abstract)",
	  OPTION_TEXT(struct run_options, control) },
	{ "--http[=LISTEN]: offer HTTP at PORT, ADDRESS or ADDRESS:PORT, else as `http` of CONFIG says, else at "
			     "127.0.0.1 port 8080 (root: 80)", OPTION_TEXT(struct run_options, http) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar run",
	.synopsis = "[OPTIONS] CONFIG\n[OPTIONS] --control PATH | --http[=LISTEN]",
	.about = "Runs the gateway that CONFIG describes (libconfig or JSON, '-' for standard\n"
		 "input) until SIGINT or SIGTERM, and prints a summary. SIGHUP reads CONFIG\n"
		 "again and changes what has changed in it. Without CONFIG it waits for one:\n"
		 "busbar ctl PATH restart CONFIG, or POST /api/v2/restart over HTTP.\n",
	.table = table,
	.operands_max = 1,
	.end = "Exit status: 0 ended as asked, 1 failed at run time, 2 wrong usage or\n"
	       "configuration, 3 samples were lost that the configuration does not allow to be\n"
	       "lost, 4 asked to end and a part of it did not end within two seconds.\n",
};

static int parse_options(int argc, char **argv, struct run_options *o)
{
	int status;

	*o = (struct run_options){ .level = -1, .seconds = -1 };
	status = options_parse(&options, argc, argv, o, NULL);
	if (status >= 0)
		return status;
	if (optind == argc && !o->control && !o->http)
		return options_usage(&options, argv);
	o->file = argv[optind];
	return OPTIONS_GO_ON;
}

/* SIGHUP. After an error, which is logged, the gateway goes on unchanged. */
static void reload(struct super_node *sn, struct http *http)
{
	json_t *report = NULL;

	http_refresh(http);

	log_info("SIGHUP, reading the configuration again");
	if (super_node_reload(sn, NULL, &report) == -ESHUTDOWN)
		log_warn("too late for a new configuration");
	json_decref(report);
}

/* Waits for the end; prints a line of figures once per second. */
static void wait_for_end(struct super_node *sn, struct http *http,
			 const struct run_options *o)
{
	uint64_t start = clock_now_ns(), limit_ns = UINT64_MAX;
	char line[256] = "\r\033[K";
	const size_t clear = strlen(line);

	if (o->seconds >= 0)
		limit_ns = (uint64_t)(o->seconds * 1e9);
	for (;;) {
		uint64_t past = clock_now_ns() - start;

		if (past >= limit_ns)
			break;
		if (super_node_wait(sn, (int)MIN((limit_ns - past) / 1000000 + 1,
						 UINT64_C(1000))))
			break;
		if (atomic_exchange(&reload_wanted, false))
			reload(sn, http);
		if (!live_line)
			continue;
		super_node_progress(sn, line + clear, sizeof(line) - clear);
		bounded_write(STDERR_FILENO, line, strlen(line), 0);
	}
	if (live_line)
		bounded_write(STDERR_FILENO, line, clear, 0);
	live_line = false;
}

/* With a limit of time: a reader that has stopped does not delay the end. */
static void print_summary(struct super_node *sn, enum summary form)
{
	char *text = NULL;
	int limit_ms = ending_has_begun() ? SUMMARY_ASKED_MS : SUMMARY_MS;
	size_t len = 0, done;
	FILE *f = form == SUMMARY_NONE ? NULL : open_memstream(&text, &len);
	json_t *o;

	if (!f)
		return;
	if (form == SUMMARY_TEXT) {
		super_node_print_summary(sn, f);
	} else {
		o = super_node_summary(sn);
		json_dumpf(o, f, JSON_INDENT(2));
		fputc('\n', f);
		json_decref(o);
	}
	fclose(f);
	fflush(stdout);
	done = bounded_write(STDOUT_FILENO, text, len,
			     (unsigned)ending_left_ms(ENDING_SUMMARY_MS, limit_ms));
	if (done < len)
		log_warn("nobody reads standard output: the last %zu bytes of the summary are left out",
			 len - done);
	free(text);
}

/* Figures of the RDMA adapter, once a node has loaded the library for it. */
static json_t *read_adapters(void)
{
	void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	json_t *(*figures)(void);

	if (!library)
		return NULL;
	dlclose(library);
	figures = (json_t *(*)(void))plugin_symbol("command_devices",
						   "cli_devices_figures");
	return figures ? figures() : NULL;
}

/* What a gateway without a configuration says. */
static void tell_waiting(const char *path)
{
	if (path)
		log_warn("no configuration: the gateway waits for one; give it with: busbar ctl %s restart CONFIG",
			 path);
	else
		log_warn("no configuration: the gateway waits for one; give it with: POST /api/v2/restart");
}

/* Runs the started super-node until its end, with a control socket and an HTTP server if
 * they are wanted. */
static int run_started(struct super_node *sn, const struct run_options *o)
{
	const char *path = o->control ? o->control : super_node_control_path(sn);
	struct control_server *server = NULL;
	struct http *http = NULL;
	/* A copy: once the socket is open, a reload may change the file's name. */
	char *file = strdup(super_node_file(sn));

	if ((path && control_server_start(&server, sn, path)) ||
	    http_start(&http, sn, o->http)) {
		control_server_stop(server);
		super_node_stop(sn);
		free(file);
		return CLI_FAILED;
	}
	if (file && !strcmp(file, SUPER_NODE_NO_FILE))
		tell_waiting(path);
	else
		log_info("%s is running", file ? file : "the gateway");
	free(file);
	live_line = !o->quiet && isatty(STDERR_FILENO);
	log_set_sink(clear_line);
	wait_for_end(sn, http, o);
	if (super_node_must_end_soon(sn))
		end_guard_begin();
	http_stop(http);
	control_server_stop(server);
	super_node_stop(sn);
	log_set_sink(NULL);
	print_summary(sn, o->summary);
	if (super_node_is_stuck(sn))
		end_guard_leave();
	if (super_node_losses(sn))
		return CLI_LOST;
	return super_node_has_failed(sn) ? CLI_FAILED : CLI_OK;
}

/* Runs one super-node. *next: the configuration of the next one; NULL: none. */
static int run(struct config *c, const struct run_options *o, unsigned restarts,
	       json_t **next)
{
	struct super_node *sn;
	int ret;

	if (super_node_new(&sn, c))
		return CLI_USAGE;
	if (o->level >= 0)
		super_node_keep_log_level(sn);
	super_node_allow_restart(sn, restarts);
	atomic_store(&running, sn);
	catch_signals();
	/* The request for the end may have come before this super-node was made. */
	if (atomic_load(&end_wanted))
		super_node_request_stop(sn);
	ret = super_node_start(sn) ? CLI_FAILED : run_started(sn, o);
	if (super_node_is_stuck(sn))
		end_guard_leave();
	atomic_store(&running, NULL);
	if (!super_node_restart_wanted(sn, next))
		*next = NULL;
	super_node_destroy(sn);
	return ret;
}

static int load(const json_t *from, struct config **c)
{
	char *text;
	int ret;

	if (json_is_null(from))
		return config_load_text(SUPER_NODE_NO_FILE, "{}", 2, c);
	if (json_is_string(from))
		return config_load(json_string_value(from), c);
	text = json_dumps(from, JSON_INDENT(1));
	ret = text ? config_load_text("request", text, strlen(text), c) :
		     -ENOMEM;
	free(text);
	return ret;
}

/* Runs the configuration `from`, and those that requests put in its place. Takes it over. */
static int run_all(json_t *from, const struct run_options *o)
{
	int ret = CLI_OK;
	struct config *c;
	json_t *next;

	log_init(o->level >= 0 ? (enum log_level)o->level : LOG_INFO);
	if (o->level >= 0)
		log_set_level((enum log_level)o->level);
	/* For GET /log; without memory there is no more to say than that. */
	if (log_recent_keep())
		log_warn("no memory to keep the last lines of the log");
	if (o->idle_stop)
		super_node_set_idle_stop(SUPER_NODE_IDLE_STOP_ALWAYS);
	limit_stacks();
	metrics_set_adapters(read_adapters);
	for (unsigned restarts = 0; from && !end_wanted; restarts++) {
		next = NULL;
		ret = load(from, &c) ? CLI_USAGE : CLI_OK;
		if (!ret) {
			ret = run(c, o, restarts, &next);
			config_destroy(c);
		}
		json_decref(from);
		from = next;
	}
	json_decref(from);
	/* Before the guard stops: this blocks if nobody reads standard output. */
	fflush(stdout);
	end_guard_finish();
	return ret;
}

int cli_run(int argc, char **argv)
{
	struct run_options o;
	int ret = parse_options(argc, argv, &o);

	if (ret >= 0)
		return ret;
	return run_all(o.file ? json_string(o.file) : json_null(), &o);
}

int cli_run_config(json_t *config, double seconds)
{
	const struct run_options o = { .level = -1, .seconds = seconds, .idle_stop = true };

	return run_all(config, &o);
}
