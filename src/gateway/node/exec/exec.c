/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `exec`: a program's standard output is read, its standard input
 * written. program.c has the process; here are settings and samples.
 */
#define LOG_ROOM "gateway/exec"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/plugin/format.h"
#include "gateway/plugin/node.h"
#include "gateway/node/exec/program.h"
#include "gateway/part/fault.h"
#include "util/clock.h"
#include "util/log.h"

#define EXEC_DEFAULT_FORMAT "villas.human"
#define BUFFER_SIZE (1u << 20) /* more where a sample to be written needs it */
#define GATHER_SIZE (64u << 10) /* without flush: bytes written at once */
#define STUCK_NS (2 * NSEC_PER_SEC)
#define BLOCK_MS 20
/* A write gives up when it was asked to this often while it waits: once may have
 * been meant for the reader of the same node. */
#define INTERRUPTS 3
#define LAST_MS 100

struct exec_node {
	json_t *exec, *format, *environment;
	bool shell, flush;
	const char *folder;
	int64_t grace_ms;

	char **argv, **envp;
	struct format *reader, *writer;

	/* From start to stop. */
	struct program program;
	struct fault_counters faults;
	int wake_fd;
	atomic_bool polled, interrupted;
	atomic_uint write_interrupts;
	char *in;                 /* what the program has written */
	size_t in_start, in_end;
	bool in_pending, in_over;
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

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

static int parse_command(struct exec_node *e, struct config *c, json_t *cfg)
{
	bool said = json_object_get(cfg, "shell");
	size_t count = json_array_size(e->exec);
	const json_t *line = e->exec; /* also the only one of a list */

	if (json_is_string(e->exec) && said && !e->shell) {
		config_fail(c, cfg, "exec",
			    "without a shell is a list of the program and its arguments");
		return -EINVAL;
	}
	if (json_is_array(e->exec) && said && e->shell && count != 1) {
		config_fail(c, cfg, "exec", "is one text when shell = true");
		return -EINVAL;
	}
	if (said && e->shell && count == 1)
		line = json_array_get(e->exec, 0);
	if (json_is_string(line)) {
		e->argv = calloc(4, sizeof(*e->argv));
		if (!e->argv)
			return -ENOMEM;
		e->argv[0] = strdup("/bin/sh");
		e->argv[1] = strdup("-c");
		e->argv[2] = strdup(json_string_value(line));
		return 0;
	}
	if (!count || !*(json_string_value(json_array_get(e->exec, 0)) ?: "")) {
		config_fail(c, cfg, "exec",
			    "is a text, or a list of texts that begins with the program");
		return -EINVAL;
	}
	e->argv = calloc(count + 1, sizeof(*e->argv));
	if (!e->argv)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(e->exec, i));

		if (!text) {
			config_fail(c, cfg, "exec", "entry %zu is no text", i);
			return -EINVAL;
		}
		e->argv[i] = strdup(text);
	}
	return 0;
}

static bool overridden(const json_t *with, const char *variable)
{
	const char *equals = strchr(variable, '=');
	char name[256];

	if (!equals || (size_t)(equals - variable) >= sizeof(name))
		return false;
	memcpy(name, variable, (size_t)(equals - variable));
	name[equals - variable] = '\0';
	return json_object_get(with, name);
}

/* "NAME=value"; NULL when the value is neither a text nor a number. */
static char *variable(const char *name, const json_t *value)
{
	char *text = NULL;
	int n = -1;

	if (json_is_string(value))
		n = asprintf(&text, "%s=%s", name, json_string_value(value));
	else if (json_is_integer(value))
		n = asprintf(&text, "%s=%lld", name,
			     (long long)json_integer_value(value));
	else if (json_is_real(value))
		n = asprintf(&text, "%s=%.17g", name, json_real_value(value));
	else if (json_is_boolean(value))
		n = asprintf(&text, "%s=%s", name,
			     json_is_true(value) ? "true" : "false");
	return n < 0 ? NULL : text;
}

static int parse_environment(struct exec_node *e, struct config *c)
{
	size_t count = json_object_size(e->environment), k = 0;
	const char *name;
	json_t *value;

	if (e->environment && !json_is_object(e->environment)) {
		config_fail(c, e->environment, NULL,
			    "is a group of variables, { NAME = \"value\"; }");
		return -EINVAL;
	}
	for (char **v = environ; v && *v; v++)
		count++;
	e->envp = calloc(count + 1, sizeof(*e->envp));
	if (!e->envp)
		return -ENOMEM;
	for (char **v = environ; v && *v; v++)
		if (!overridden(e->environment, *v))
			e->envp[k++] = strdup(*v);
	json_object_foreach(e->environment, name, value) {
		e->envp[k] = variable(name, value);
		if (!e->envp[k++]) {
			config_fail(c, e->environment, name,
				    "is neither a text nor a number");
			return -EINVAL;
		}
	}
	return 0;
}

static int exec_init(struct node *n)
{
	struct exec_node *e = n->private_data;

	e->wake_fd = -1;
	e->out_size = BUFFER_SIZE;
	return 0;
}

static int exec_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct exec_node *e = n->private_data;
	int ret = parse_command(e, c, cfg);

	if (parse_environment(e, c))
		ret = -EINVAL;
	if (!ret)
		ret = format_new(&e->reader, c, e->format, EXEC_DEFAULT_FORMAT,
				 n->in.signals);
	if (!ret)
		ret = format_new(&e->writer, c, e->format, EXEC_DEFAULT_FORMAT,
				 n->out.signals);
	if (!ret && (!e->reader->type->scan || !e->writer->type->print)) {
		config_fail(c, cfg, "format", "'%s' cannot be %s",
			    e->reader->type->name,
			    e->reader->type->scan ? "written" : "read");
		ret = -EINVAL;
	}
	return ret;
}

static int exec_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct exec_node *e = n->private_data;
	struct format_sizes sizes;
	int ret;

	if (!n->is_destination)
		return 0;
	ret = format_check_signals(e->writer, c, cfg, n->out.hooked);
	if (ret || !n->out.hooked)
		return ret;
	ret = format_check_sizes(e->writer, c, cfg, n->out.hooked, &sizes);
	if (!ret)
		e->out_size = MAX(e->out_size, sizes.room_max);
	return ret;
}

static void exec_destroy(struct node *n)
{
	struct exec_node *e = n->private_data;

	format_destroy(e->reader);
	format_destroy(e->writer);
	free_list(e->argv);
	free_list(e->envp);
}

/* A program that has ended is an error of a write, not the gateway's death. */
static int exec_type_start(struct services *services)
{
	struct sigaction now;

	if (!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
	return 0;
}

static void release(struct exec_node *e)
{
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	e->wake_fd = -1;
	free(e->in);
	free(e->out);
	e->in = e->out = NULL;
}

static int exec_start(struct node *n)
{
	struct exec_node *e = n->private_data;
	const struct program_settings settings = {
		.node = n->name,
		.argv = e->argv,
		.envp = e->envp,
		.folder = e->folder,
		.read = n->is_source,
		.write = n->is_destination,
		.grace_ms = (unsigned)e->grace_ms,
	};
	int ret;

	e->faults.node = n;
	e->in_start = e->in_end = e->out_start = e->out_end = 0;
	e->in_pending = e->in_over = e->stuck = false;
	e->broken = 0;
	e->out_samples = 0;
	atomic_store(&e->interrupted, false);
	if (e->reader->type->reset)
		e->reader->type->reset(e->reader);
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->in = malloc(BUFFER_SIZE + 1);
	e->out = malloc(e->out_size);
	if (e->wake_fd < 0 || !e->in || !e->out)
		ret = e->wake_fd < 0 ? -errno : -ENOMEM;
	else
		ret = program_start(&e->program, &settings, e->wake_fd);
	if (ret)
		release(e);
	return ret;
}

/* Reading. */

static void kick(struct exec_node *e)
{
	uint64_t one = 1;

	if (write(e->wake_fd, &one, sizeof(one)) < 0) {
		/* It is readable, which is all we want. */
	}
}

static void clear_kick(struct exec_node *e)
{
	uint64_t count;

	if (read(e->wake_fd, &count, sizeof(count)) < 0) {
		/* Nobody had written. */
	}
}

static void stamp(struct sample *smps[], unsigned n)
{
	struct timespec now = clock_realtime();

	for (unsigned i = 0; i < n; i++) {
		smps[i]->received = now;
		smps[i]->flags |= SAMPLE_HAS_RECEIVED;
	}
}

static void forget(struct exec_node *e, const char *why)
{
	fault_note(&e->faults, FAULT_MALFORMED, 1, "%zu bytes %s",
		   e->in_end - e->in_start, why);
	e->in_start = e->in_end = 0;
}

static unsigned take_samples(struct exec_node *e, struct sample *smps[],
			     unsigned cnt)
{
	const struct format_type *type = e->reader->type;
	unsigned n = 0;

	while (e->in_pending && n < cnt) {
		size_t used = 0, left = e->in_end - e->in_start;
		int ret = type->scan(e->reader, e->in + e->in_start, left, &used,
				     smps + n, cnt - n);

		assert(used <= left);
		e->in_start += used;
		if (ret > 0)
			n += (unsigned)ret;
		else if (ret < 0)
			fault_note(&e->faults, FAULT_MALFORMED, 1, "%s",
				   format_error(e->reader));
		if (ret && !used)
			e->in_start = e->in_end; /* cannot go on behind it */
		e->in_pending = ret && e->in_start < e->in_end;
	}
	if (!e->in_pending && e->in_start < e->in_end) {
		if (e->in_over)
			forget(e, "behind the last whole sample");
		else if (e->in_end - e->in_start == BUFFER_SIZE)
			forget(e, "without the end of a sample");
	}
	stamp(smps, n);
	return n;
}

/* Reads the output of the program. False: there is none for now. */
static bool receive(struct exec_node *e)
{
	/* Looked at before: what it wrote before its end is there then. */
	bool ended = atomic_load(&e->program.ended);
	ssize_t n;

	if (e->in_start == e->in_end) {
		e->in_start = e->in_end = 0;
	} else if (e->in_start) {
		memmove(e->in, e->in + e->in_start, e->in_end - e->in_start);
		e->in_end -= e->in_start;
		e->in_start = 0;
	}
	n = read(e->program.out_fd, e->in + e->in_end, BUFFER_SIZE - e->in_end);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN && !ended)
		return false;
	if (n > 0) {
		e->in_end += (size_t)n;
		e->in_pending = true;
		return true;
	}
	/* At its end, or what it started still has its output open. */
	e->in_over = true;
	e->in_pending = e->in_start < e->in_end;
	if (e->in_pending && e->reader->type->lines &&
	    e->in[e->in_end - 1] != e->reader->delimiter)
		e->in[e->in_end++] = e->reader->delimiter;
	return true;
}

static int exec_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *releases)
{
	struct exec_node *e = n->private_data;
	bool polled = atomic_load_explicit(&e->polled, memory_order_relaxed);
	struct pollfd fds[] = {
		{ .fd = e->program.out_fd, .events = POLLIN },
		{ .fd = e->wake_fd, .events = POLLIN },
	};

	if (polled)
		clear_kick(e);
	for (;;) {
		unsigned got = take_samples(e, smps, cnt);

		if (polled && e->in_pending)
			kick(e);
		if (got)
			return (int)got;
		if (e->in_over) {
			/* Its end, if that is what it was, comes just behind. */
			child_wait(&e->program.child, LAST_MS);
			return -ENODATA;
		}
		if (atomic_exchange(&e->interrupted, false))
			return -EINTR;
		if (receive(e))
			continue;
		if (polled)
			return 0;
		poll(fds, 2, -1);
		if (fds[1].revents)
			clear_kick(e);
	}
}

static int exec_poll_fds(struct node *n, int fds[], int max)
{
	struct exec_node *e = n->private_data;

	if (atomic_exchange(&e->polled, max >= 2) != (max >= 2) && max >= 2)
		kick(e);
	if (max < 2)
		return 0;
	fds[0] = e->program.out_fd;
	fds[1] = e->wake_fd;
	return 2;
}

/* Writing. */

/* Writes what waits; true when nothing is left. */
static bool flush(struct exec_node *e)
{
	while (e->out_start < e->out_end) {
		ssize_t n = write(e->program.in_fd, e->out + e->out_start,
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
	struct pollfd p = { .fd = e->program.in_fd, .events = POLLOUT };
	unsigned asked = atomic_load(&e->write_interrupts);
	uint64_t since_ns = clock_monotonic_ns_slow();

	while (!flush(e)) {
		if (e->broken || e->stuck)
			return false;
		/* Of this write alone: the next one waits again. */
		if (atomic_load(&e->write_interrupts) - asked >= INTERRUPTS)
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

static void refuse(struct node *n, const struct sample *s, unsigned count,
		   int ret)
{
	struct exec_node *e = n->private_data;

	if (e->broken)
		node_refuse(n, NODE_LOSS_REFUSED, count, "%s: %s", e->argv[0],
			    e->broken == EPIPE ? "it does not read any more" :
						 strerror(e->broken));
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

	atomic_store(&e->interrupted, true);
	atomic_fetch_add(&e->write_interrupts, 1);
	kick(e);
}

static int exec_stop(struct node *n)
{
	struct exec_node *e = n->private_data;

	if (e->program.in_fd >= 0 && n->is_destination && !e->broken)
		flush_patiently(e);
	if (e->out && n->is_destination)
		node_lose(n, e->broken ? NODE_LOSS_REFUSED : NODE_LOSS_STUCK,
			  samples_left(e), "%s, %zu bytes: %s", e->argv[0],
			  e->out_end - e->out_start,
			  !e->broken ? "it takes nothing" :
			  e->broken == EPIPE ? "it does not read any more" :
					       strerror(e->broken));
	program_stop(&e->program);
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
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS,
	.size = sizeof(struct exec_node),
	.keys = exec_keys,
	.key_count = ARRAY_SIZE(exec_keys),
	.figures = exec_figures,
	.figure_count = FAULT_KINDS,
	.type_start = exec_type_start,
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
