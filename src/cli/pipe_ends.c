/* SPDX-License-Identifier: BSD-2-Clause */
/* Standard input and output as nodes; see pipe_ends.h. */
#define LOG_ROOM "pipe"
#include "cli/pipe_ends.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gateway/plugin/node.h"
#include "gateway/plugin/services.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* After a write, output is collected for this time before the next one. */
#define FLUSH_NS UINT64_C(1000000)

struct pipe_ends pipe_ends;
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;

static int in_parse(struct node *n, struct config *c, json_t *cfg)
{
	n->in.signals = signal_list_get(pipe_ends.signals);
	return 0;
}

static int in_start(struct node *n)
{
	int ret = tool_input_open(&pipe_ends.in, "-", pipe_ends.in_format);

	pipe_ends.in_open = !ret;
	return ret;
}

static int in_stop(struct node *n)
{
	if (pipe_ends.in_open)
		tool_input_close(&pipe_ends.in);
	pipe_ends.in_open = false;
	return 0;
}

/* Sets what nodes need and a recording may lack: sequence number, origin timestamp. */
static void complete(struct node *n, struct sample *s)
{
	if (s->flags & SAMPLE_HAS_SEQUENCE)
		n->sequence = s->sequence;
	s->sequence = n->sequence++;
	if (!(s->flags & SAMPLE_HAS_ORIGIN))
		s->origin = clock_realtime();
	s->flags |= SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN;
}

/* The end of the input. All samples read before have been written to the node. */
static int in_end(struct node *n)
{
	if (!pipe_ends.stays && !(pipe_ends.stays_if_empty && !pipe_ends.sent))
		services_request_stop(n->services);
	return -ENODATA;
}

static int in_read(struct node *n, struct sample *smps[], unsigned cnt,
		   unsigned *release)
{
	struct pipe_ends *p = &pipe_ends;
	int ret;

	if (p->send_max && p->sent + cnt > p->send_max)
		cnt = (unsigned)(p->send_max - p->sent);
	if (!cnt)
		return in_end(n);
	ret = tool_input_next(&p->in, smps, cnt);
	if (ret < 0 && ret != -EINTR)
		atomic_store(&p->failed, true);
	if (ret <= 0)
		return in_end(n);
	for (int i = 0; i < ret; i++)
		complete(n, smps[i]);
	p->sent += (uint64_t)ret;
	return ret;
}

static void in_interrupt(struct node *n)
{
	tool_stop();
}

static const struct node_type pipe_in = {
	.name = PIPE_IN,
	.description = "Samples from standard input",
	.flags = NODE_CAN_READ | NODE_READ_BLOCKS,
	.parse = in_parse,
	.start = in_start,
	.stop = in_stop,
	.read = in_read,
	.interrupt = in_interrupt,
};

/* Samples may have more values than the node has signals, if it declares none. */
static int out_parse(struct node *n, struct config *c, json_t *cfg)
{
	n->out.capacity = pipe_ends.signals->count;
	return 0;
}

static int out_start(struct node *n)
{
	int ret = tool_output_open(&pipe_ends.out, pipe_ends.out_format);

	pipe_ends.out_open = !ret;
	return ret;
}

static int out_stop(struct node *n)
{
	struct signal_list *known = n->out.signals;
	int ret;

	if (pipe_ends.any_signals && known &&
	    known->count == pipe_ends.signals->count)
		known = NULL;
	pthread_mutex_lock(&out_lock);
	ret = pipe_ends.out_open ?
		      tool_output_close(&pipe_ends.out, known) : 0;
	pipe_ends.out_open = false;
	pthread_mutex_unlock(&out_lock);
	if (ret && ret != -EPIPE)
		atomic_store(&pipe_ends.failed, true);
	return 0;
}

static int out_write(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	struct pipe_ends *p = &pipe_ends;
	unsigned wanted = cnt;
	int ret;

	if (p->receive_max)
		wanted = (unsigned)MIN(cnt, p->receive_max - p->received);
	pthread_mutex_lock(&out_lock);
	ret = tool_output_put(&p->out, smps, wanted);
	p->received += wanted;
	/* Single samples are written at once, many together in large pieces. */
	if (clock_monotonic_ns_slow() - p->out.flushed_ns > FLUSH_NS)
		ret = tool_output_flush(&p->out);
	pthread_mutex_unlock(&out_lock);
	if (ret || (p->receive_max && p->received == p->receive_max))
		services_request_stop(n->services);
	/* Samples beyond the limit were not asked for: they count as written. */
	return (int)cnt;
}

void pipe_flush(void)
{
	pthread_mutex_lock(&out_lock);
	if (pipe_ends.out_open && pipe_ends.out.used)
		tool_output_flush(&pipe_ends.out);
	pthread_mutex_unlock(&out_lock);
}

static const struct node_type pipe_out = {
	.name = PIPE_OUT,
	.description = "Samples to standard output",
	.flags = NODE_CAN_WRITE,
	.parse = out_parse,
	.start = out_start,
	.stop = out_stop,
	.write = out_write,
};

const struct plugin pipe_plugins[] = {
	{ .name = PIPE_IN, .type = &pipe_in },
	{ .name = PIPE_OUT, .type = &pipe_out },
	{ .name = NULL },
};

/* ---- a node that cannot be written ---- */

static struct {
	pthread_t thread;
	bool started;
	atomic_bool ended;
	uint64_t samples; /* of the thread until it is joined */
} refusal;
/* How long what stands ready is read behind the end of the node. */
#define REFUSAL_MS 1000

static void *refuse(void *arg)
{
	struct pipe_ends *p = &pipe_ends;
	struct sample *smps[TOOL_BATCH];
	struct pool pool;
	int ret;

	if (tool_pool_init(&pool, TOOL_BATCH, p->signals->count)) {
		atomic_store(&p->failed, true);
		return NULL;
	}
	sample_alloc_many(&pool, smps, TOOL_BATCH);
	while ((ret = tool_input_next(&p->in, smps, TOOL_BATCH)) > 0)
		refusal.samples += (uint64_t)ret;
	if (ret < 0 && ret != -EINTR)
		atomic_store(&p->failed, true);
	sample_put_many(smps, TOOL_BATCH);
	pool_destroy(&pool);
	atomic_store(&refusal.ended, true);
	return NULL;
}

/* Bytes that could be read from standard input at once. */
static int standing_ready(void)
{
	int left = 0;

	return ioctl(STDIN_FILENO, FIONREAD, &left) ? 0 : left;
}

int pipe_refuse_start(void)
{
	int ret;

	/* Nothing comes from a terminal that was not meant, or from a closed descriptor. */
	if (isatty(STDIN_FILENO) || (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
		return 0;
	ret = tool_input_open(&pipe_ends.in, "-", pipe_ends.in_format);
	if (ret)
		return ret;
	ret = pthread_create(&refusal.thread, NULL, refuse, NULL);
	refusal.started = !ret;
	if (ret) {
		log_error("cannot start a thread: %s", strerror(ret));
		tool_input_close(&pipe_ends.in);
	}
	return -ret;
}

uint64_t pipe_refuse_stop(const char *node)
{
	int left;

	if (!refusal.started)
		return 0;
	for (int ms = 0; ms < REFUSAL_MS && standing_ready() > 0 && !tool_stopping() &&
			 !atomic_load(&refusal.ended); ms++)
		usleep(1000);
	tool_stop();
	pthread_join(refusal.thread, NULL);
	tool_input_close(&pipe_ends.in);
	left = standing_ready();
	if (refusal.samples || left > 0)
		log_error("node %s cannot be written: %ju samples of standard input are lost%s; -r leaves standard input alone",
			  node, (uintmax_t)refusal.samples,
			  left > 0 ? ", and what comes behind them" : "");
	return refusal.samples + (left > 0);
}
