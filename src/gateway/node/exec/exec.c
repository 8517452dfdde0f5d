/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `exec`: a program's standard output is read, its standard input
 * written. Its standard error goes to the log, line by line; its end is noticed and
 * logged by a thread, also while nobody reads or writes it.
 */
#define LOG_ROOM "gateway/exec"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "gateway/part/child.h"
#include "gateway/part/socket_wait.h"
#include "gateway/plugin/format.h"
#include "gateway/plugin/node.h"
#include "gateway/stream/stream_input.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"

#define EXEC_DEFAULT_FORMAT "villas.human"
#define BUFFER_SIZE (1u << 20) /* more where a sample to be written needs it */
#define GATHER_SIZE (64u << 10) /* without flush: bytes written at once */
#define STUCK_NS (2 * NSEC_PER_SEC)
#define BLOCK_MS 20
/* A write gives up when it was asked to this often while it waits: once may have
 * been meant for the reader of the same node. */
#define INTERRUPTS 3
#define LAST_MS 100
/* Most programs end by themselves at the end of their input. */
#define EOF_MS 500
/* Pieces of standard error that are still read at the end. */
#define LAST_WORDS 64

struct exec_node {
	json_t *exec, *format, *environment;
	bool shell, flush;
	const char *folder;
	int64_t grace_ms;

	char **argv, **envp; /* the texts of argv are those of `exec` */
	struct format *reader, *writer;

	/* From start to stop. */
	struct child child;
	pthread_t thread;         /* looks after its standard error and its end */
	int stop_fd;              /* ends the thread */
	atomic_bool stopping;
	atomic_bool ended;        /* it has; set before `wait` is kicked */
	char line[1024];          /* of its standard error */
	size_t line_used;
	struct fault_counters faults;
	struct socket_wait wait;
	struct stream_input in;   /* what the program has written */
	char *out;                /* what is written to it */
	size_t out_size, out_start, out_end;
	uint64_t out_samples;     /* since `out` was empty */
	bool stuck;               /* it took nothing for STUCK_NS, nor since */
	int broken;               /* errno: it cannot be written any more */
};

extern const struct node_type node_exec;

#define OFFSET(field) offsetof(struct exec_node, field)

static const struct config_key exec_keys[] = {
	{ "exec", CONFIG_JSON, OFFSET(exec), .required = true,
	  .help = "The program: one text for the shell, or a list of the program "
		  "and its arguments" },
	{ "shell", CONFIG_BOOL, OFFSET(shell), "false",
	  .help = "Follows from exec; may be said all the same" },
	{ "format", CONFIG_JSON, OFFSET(format),
	  .help = "Format of both directions, " EXEC_DEFAULT_FORMAT },
	{ "flush", CONFIG_BOOL, OFFSET(flush), "true",
	  .help = "Hand each write to the program at once; false: larger pieces" },
	{ "working_directory", CONFIG_STRING, OFFSET(folder),
	  .help = "Where the program runs" },
	{ "environment", CONFIG_JSON, OFFSET(environment),
	  .help = "Variables beside those of the gateway" },
	{ "grace", CONFIG_INT, OFFSET(grace_ms), "1000", .min = 0, .max = 60000,
	  .help = "Milliseconds from SIGTERM to SIGKILL when the node stops" },
};

/* What is wrong with key `exec`; NULL: nothing. `line` is the one text of it. */
static const char *check_command(const struct exec_node *e, bool said, const json_t *line)
{
	const char *first = json_string_value(json_array_get(e->exec, 0));

	if (json_is_string(e->exec) && said && !e->shell)
		return "without a shell is a list of the program and its arguments";
	if (json_is_array(e->exec) && said && e->shell && json_array_size(e->exec) != 1)
		return "is one text when shell = true";
	if (!json_is_string(line) && !(first && *first))
		return "is a text, or a list of texts that begins with the program";
	return NULL;
}

static int parse_command(struct exec_node *e, struct config *c, json_t *cfg)
{
	static const char *const shell[] = { "/bin/sh", "-c" };
	bool said = json_object_get(cfg, "shell");
	size_t count = json_array_size(e->exec), i;
	/* For the shell; also the only one of a list. */
	json_t *line = said && e->shell && count == 1 ? json_array_get(e->exec, 0) : e->exec;
	json_t *word;
	const char *wrong = check_command(e, said, line);

	if (wrong) {
		config_fail(c, cfg, "exec", "%s", wrong);
		return -EINVAL;
	}
	e->argv = calloc(count + ARRAY_SIZE(shell) + 2, sizeof(*e->argv));
	if (!e->argv)
		return -ENOMEM;
	if (json_is_string(line)) {
		memcpy(e->argv, shell, sizeof(shell));
		e->argv[ARRAY_SIZE(shell)] = (char *)(uintptr_t)json_string_value(line);
		return 0;
	}
	json_array_foreach(e->exec, i, word) {
		e->argv[i] = (char *)(uintptr_t)json_string_value(word);
		if (!e->argv[i]) {
			config_fail(c, cfg, "exec", "entry %zu is no text", i);
			return -EINVAL;
		}
	}
	return 0;
}

/* As a JSON text; NULL when it is neither a text nor a number. */
static json_t *as_text(json_t *value)
{
	if (json_is_string(value))
		return json_incref(value);
	if (json_is_integer(value))
		return json_sprintf("%lld", (long long)json_integer_value(value));
	if (json_is_real(value))
		return json_sprintf("%.17g", json_real_value(value));
	if (json_is_boolean(value))
		return json_string(json_is_true(value) ? "true" : "false");
	return NULL;
}

static int parse_environment(struct exec_node *e, struct config *c)
{
	struct spawn_variable *set = calloc(json_object_size(e->environment) + 1, sizeof(*set));
	json_t *texts = json_array(), *value;
	const char *name;
	size_t k = 0;
	int ret = set && texts ? 0 : -ENOMEM;

	if (e->environment && !json_is_object(e->environment)) {
		config_fail(c, e->environment, NULL,
			    "is a group of variables, { NAME = \"value\"; }");
		ret = -EINVAL;
	}
	json_object_foreach(ret ? NULL : e->environment, name, value) {
		json_t *text = as_text(value);

		set[k++] = (struct spawn_variable){ .name = name, .value = json_string_value(text) };
		if (json_array_append_new(texts, text)) {
			config_fail(c, e->environment, name, "is neither a text nor a number");
			ret = -EINVAL;
			break;
		}
	}
	if (!ret && !(e->envp = spawn_environment(set)))
		ret = -ENOMEM;
	json_decref(texts);
	free(set);
	return ret;
}

static int exec_init(struct node *n)
{
	struct exec_node *e = n->private_data;

	e->wait.wake_fd = e->stop_fd = -1;
	e->in.b.size = BUFFER_SIZE;
	e->out_size = BUFFER_SIZE;
	return 0;
}

static int exec_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct exec_node *e = n->private_data;
	int ret = parse_command(e, c, cfg);

	if (parse_environment(e, c))
		ret = -EINVAL;
	return ret ?: format_new(&e->reader, c, e->format, EXEC_DEFAULT_FORMAT, n->in.signals) ?:
		      format_new(&e->writer, c, e->format, EXEC_DEFAULT_FORMAT, n->out.signals) ?:
		      format_check_use(e->reader, e->writer, c, cfg);
}

static int exec_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct exec_node *e = n->private_data;
	struct format_sizes sizes = { 0 };
	int ret;

	if (!n->is_destination)
		return 0;
	ret = format_check_signals(e->writer, c, cfg, n->out.hooked);
	if (!ret && n->out.hooked)
		ret = format_check_sizes(e->writer, c, cfg, n->out.hooked, &sizes);
	e->out_size = MAX(e->out_size, sizes.room_max);
	return ret;
}

static void exec_destroy(struct node *n)
{
	struct exec_node *e = n->private_data;

	format_destroy(e->reader);
	format_destroy(e->writer);
	free(e->argv);
	spawn_environment_free(e->envp);
}

/* ---- the program ---- */

static void log_line(struct exec_node *e)
{
	if (e->line_used)
		log_info("%s: %.*s", e->child.node, (int)e->line_used, e->line);
	e->line_used = 0;
}

/* A piece of its standard error; as read(). */
static ssize_t take_error(struct exec_node *e)
{
	char buf[512];
	ssize_t n = read(e->child.pipes[STDERR_FILENO], buf, sizeof(buf));

	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] == '\n' || e->line_used == sizeof(e->line))
			log_line(e);
		/* Nothing unprintable into the log. */
		if (buf[i] != '\n')
			e->line[e->line_used++] =
				(unsigned char)buf[i] < ' ' && buf[i] != '\t' ?
					'?' : buf[i];
	}
	return n;
}

/* Bounded, because the program may write for ever. */
static void take_last_words(struct exec_node *e)
{
	for (unsigned i = 0; i < LAST_WORDS && take_error(e) > 0; i++)
		;
}

static void *watch(void *arg)
{
	enum { STOP, ITS_END, ITS_ERROR };
	struct exec_node *e = arg;
	struct pollfd fds[] = {
		[STOP] = { .fd = e->stop_fd, .events = POLLIN },
		[ITS_END] = { .fd = e->child.pid_fd, .events = POLLIN },
		[ITS_ERROR] = { .fd = e->child.pipes[STDERR_FILENO], .events = POLLIN },
	};

	do {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if (fds[ITS_ERROR].revents && !take_error(e))
			fds[ITS_ERROR].fd = -1;
		/* Also when it had ended before it was asked to. */
		if (fds[ITS_END].revents) {
			fds[ITS_END].fd = -1;
			take_last_words(e);
			if (!atomic_load(&e->stopping))
				child_tell_end(&e->child);
			atomic_store(&e->ended, true);
			socket_wait_kick(&e->wait);
		}
	} while (!fds[STOP].revents);
	take_last_words(e);
	log_line(e);
	return NULL;
}

static int start_program(struct node *n)
{
	struct exec_node *e = n->private_data;
	const struct child_settings settings = {
		.node = n->name, .argv = e->argv, .envp = e->envp, .folder = e->folder,
		.streams = { n->is_destination ? SPAWN_PIPE : SPAWN_NULL,
			     n->is_source ? SPAWN_PIPE : SPAWN_NULL, SPAWN_PIPE },
		/* A Ctrl-C for the gateway is not for the program, and what the
		 * program starts can be ended with it. */
		.group = true,
	};
	int ret = child_start(&e->child, &settings);

	if (ret)
		return ret;
	ret = thread_start(&e->thread, "exec-child", THREAD_AS_CALLER, watch, e);
	if (!ret)
		return 0;
	log_error("node %s: no thread to watch process %d: %s", n->name,
		  (int)e->child.pid, strerror(-ret));
	child_end(&e->child, 0, 0);
	child_reap(&e->child);
	return ret;
}

static void release(struct exec_node *e)
{
	socket_wait_close(&e->wait);
	if (e->stop_fd >= 0)
		close(e->stop_fd);
	e->stop_fd = -1;
	free(e->in.b.at);
	free(e->out);
	e->in.b.at = e->out = NULL;
}

static int exec_start(struct node *n)
{
	struct exec_node *e = n->private_data;
	int ret;

	e->faults.node = n;
	stream_input_reset(&e->in);
	e->out_start = e->out_end = e->line_used = 0;
	e->out_samples = 0;
	e->stuck = false;
	e->broken = 0;
	atomic_store(&e->ended, false);
	atomic_store(&e->stopping, false);
	if (e->reader->type->reset)
		e->reader->type->reset(e->reader);
	e->in.b.at = malloc(e->in.b.size + 1);
	e->out = malloc(e->out_size);
	e->stop_fd = wakeup_open_signal();
	ret = socket_wait_open(&e->wait) ?: MIN(e->stop_fd, 0);
	if (!ret)
		ret = e->in.b.at && e->out ? start_program(n) : -ENOMEM;
	if (ret)
		release(e);
	return ret;
}

/* ---- reading ---- */

/* Reads the output of the program. False: there is none for now. */
static bool receive(struct exec_node *e)
{
	/* Looked at before: what it wrote before its end is there then. */
	bool ended = atomic_load(&e->ended);
	size_t room = stream_input_room(&e->in);
	ssize_t n = read(e->child.pipes[STDOUT_FILENO], e->in.b.at + e->in.b.end, room);

	if (n > 0)
		stream_input_add(&e->in, e->reader, (size_t)n);
	else if (n < 0 && errno == EAGAIN && !ended)
		return false;
	else if (!n || errno != EINTR)
		/* At its end, or what it started still has its output open. */
		stream_input_end(&e->in, e->reader);
	return true;
}

static int exec_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *releases)
{
	struct exec_node *e = n->private_data;
	bool polled = atomic_load_explicit(&e->wait.polled, memory_order_relaxed);

	if (polled)
		socket_wait_clear(&e->wait);
	for (;;) {
		unsigned got = stream_input_scan(&e->in, e->reader, smps, cnt, &e->faults);

		if (polled && e->in.pending)
			socket_wait_kick(&e->wait);
		if (got)
			return (int)got;
		if (e->in.at_end) {
			/* Its end, if that is what it was, comes just behind. */
			child_wait(&e->child, LAST_MS);
			return -ENODATA;
		}
		if (socket_wait_interrupted(&e->wait))
			return -EINTR;
		if (receive(e))
			continue;
		if (polled)
			return 0;
		socket_wait_sleep(&e->wait, e->child.pipes[STDOUT_FILENO], UINT64_MAX);
	}
}

static int exec_poll_fds(struct node *n, int fds[], int max)
{
	struct exec_node *e = n->private_data;

	if (!socket_wait_set_polled(&e->wait, max >= 2))
		return 0;
	fds[0] = e->child.pipes[STDOUT_FILENO];
	fds[1] = e->wait.wake_fd;
	return 2;
}

/* ---- writing ---- */

/* Writes what waits; true when nothing is left. */
static bool flush(struct exec_node *e)
{
	while (e->out_start < e->out_end) {
		ssize_t n = write(e->child.pipes[STDIN_FILENO], e->out + e->out_start,
				  e->out_end - e->out_start);

		if (n > 0) {
			e->out_start += (size_t)n;
			e->stuck = false;
		} else if (n < 0 && errno != EINTR) {
			e->broken = errno != EAGAIN ? errno : 0;
			return false;
		}
	}
	e->out_start = e->out_end = 0;
	e->out_samples = 0;
	return true;
}

/* Until the program has taken all; false: it does not. */
static bool flush_patiently(struct exec_node *e)
{
	struct pollfd p = { .fd = e->child.pipes[STDIN_FILENO], .events = POLLOUT };
	unsigned asked = atomic_load(&e->wait.interrupts);
	uint64_t since_ns = clock_monotonic_ns_slow();

	while (!flush(e)) {
		if (e->broken || e->stuck)
			return false;
		/* Of this write alone: the next one waits again. */
		if (atomic_load(&e->wait.interrupts) - asked >= INTERRUPTS)
			return false;
		if (clock_monotonic_ns_slow() - since_ns > STUCK_NS) {
			e->stuck = true; /* until it takes something again */
			return false;
		}
		poll(&p, 1, BLOCK_MS);
	}
	return true;
}

/* Samples in `out` that it has not taken whole. In text they are counted, else
 * guessed from their share of the bytes. */
static uint64_t samples_left(const struct exec_node *e)
{
	const struct format_type *type = e->writer->type;
	uint64_t n = 0;

	if (!e->out_end)
		return 0;
	if (!type->lines)
		return (e->out_samples * (e->out_end - e->out_start) +
			e->out_end - 1) / e->out_end;
	for (size_t i = e->out_start; i < e->out_end; i++)
		n += e->out[i] == e->writer->delimiter;
	return MIN(n, e->out_samples);
}

static const char *why_not(const struct exec_node *e)
{
	if (!e->broken)
		return "it takes nothing";
	return e->broken == EPIPE ? "it does not read any more" : strerror(e->broken);
}

static void refuse(struct node *n, const struct sample *s, unsigned count,
		   int ret)
{
	struct exec_node *e = n->private_data;

	if (e->broken)
		node_refuse(n, NODE_LOSS_REFUSED, count, "%s: %s", e->argv[0], why_not(e));
	else if (ret < 0)
		node_refuse(n, NODE_LOSS_FORMAT, count,
			    "a sample of %u values: %s", s->length,
			    *format_error(e->writer) ? format_error(e->writer) :
						       strerror(-ret));
	else if (e->out_end)
		node_refuse(n, NODE_LOSS_STUCK, count, "%s takes nothing",
			    e->argv[0]);
	else
		node_refuse(n, NODE_LOSS_TOO_LONG, count,
			    "a sample of %u values takes more than %zu bytes",
			    s->length, e->out_size);
}

static int exec_write(struct node *n, struct sample *smps[], unsigned cnt,
		      unsigned *releases)
{
	struct exec_node *e = n->private_data;
	unsigned done = 0, refused = 0;

	while (done < cnt && !e->broken) {
		size_t used = 0;
		int ret = e->writer->type->print(e->writer, e->out + e->out_end,
						 e->out_size - e->out_end, &used,
						 smps + done, cnt - done);

		if (ret > 0) {
			e->out_end += used;
			e->out_samples += (unsigned)ret;
			done += (unsigned)ret;
		} else if (!ret && e->out_end) {
			/* Perhaps for want of room only. */
			if (!flush_patiently(e))
				break;
		} else {
			refuse(n, smps[done], 1, ret);
			done++;
			refused++;
		}
	}
	if (done < cnt)
		refuse(n, smps[done], cnt - done, 0);
	/* All of it, while the program reads: there may be no later write. */
	if (!e->broken && (e->flush || e->out_end - e->out_start > GATHER_SIZE))
		flush_patiently(e);
	return (int)(done - refused);
}

static void exec_interrupt(struct node *n)
{
	struct exec_node *e = n->private_data;

	socket_wait_interrupt(&e->wait);
}

static int exec_stop(struct node *n)
{
	struct exec_node *e = n->private_data;

	if (!e->child.pid)
		return 0;
	if (n->is_destination && !e->broken)
		flush_patiently(e);
	if (n->is_destination)
		node_lose(n, e->broken ? NODE_LOSS_REFUSED : NODE_LOSS_STUCK,
			  samples_left(e), "%s, %zu bytes: %s", e->argv[0],
			  e->out_end - e->out_start, why_not(e));
	atomic_store(&e->stopping, !child_wait(&e->child, 0));
	child_end(&e->child, EOF_MS, (unsigned)e->grace_ms);
	wakeup_post(e->stop_fd);
	pthread_join(e->thread, NULL);
	child_reap(&e->child);
	fault_finish(&e->faults);
	release(e);
	return 0;
}

static void exec_print(struct node *n, char *buf, size_t size)
{
	const struct exec_node *e = n->private_data;

	snprintf(buf, size, "exec %.150s",
		 json_is_string(e->exec) ? e->argv[2] : e->argv[0]);
}

/* For the program to read. */
static bool exec_may_wait(struct node *n)
{
	return true;
}

static const struct node_figure exec_figures[FAULT_KINDS] = {
	[FAULT_MALFORMED] = { "malformed", "Lines of the program that the format cannot read",
			      NODE_COUNTER },
};

const struct node_type node_exec = {
	.name = "exec",
	.description = "Samples to and from a program",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct exec_node),
	.keys = exec_keys,
	.key_count = ARRAY_SIZE(exec_keys),
	.figures = exec_figures,
	.figure_count = FAULT_KINDS,
	.init = exec_init,
	.parse = exec_parse,
	.check_signals = exec_check_signals,
	.destroy = exec_destroy,
	.start = exec_start,
	.stop = exec_stop,
	.read = exec_read,
	.write = exec_write,
	.may_wait = exec_may_wait,
	.interrupt = exec_interrupt,
	.rearm = node_rearm_nothing,
	.poll_fds = exec_poll_fds,
	.print = exec_print,
};
