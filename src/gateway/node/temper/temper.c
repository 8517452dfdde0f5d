/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `temper`: USB thermometers of PCsensor, which the kernel shows as HID devices. They are
 * asked at a rate; no library is needed. One that was pulled out is looked for again at each step.
 */
#define LOG_ROOM "gateway/temper"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/temper/sensor.h"
#include "gateway/part/fault.h"
#include "gateway/part/timer.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define TIMEOUT_MS 500

enum { TIMEOUTS = FAULT_KINDS, BAD_ANSWERS, ABSENT, FIGURES };

struct temper_node {
	const char *device;
	struct sensor_filter filter;
	int model;
	json_t *calibration;
	double rate, scale, offset;

	/* From start to stop */
	enum sensor_model is;
	int fd;                     /* -1: the device is gone */
	struct timer timer;
	bool has_timer, resumed;
	struct fault_counters faults;
};

extern const struct node_type node_temper;

static const char *const models[] = { "auto", "temper1", "temper2", "temperhum", NULL };

#define OFFSET(field) offsetof(struct temper_node, field)

/* The values of this group are stored in the node, too. */
static const struct config_key calibration_keys[] = {
	{ "scale", CONFIG_REAL, OFFSET(scale), "1.0", .min = -1e6, .max = 1e6,
	  .help = "A temperature is scale times what the device says, plus offset" },
	{ "offset", CONFIG_REAL, OFFSET(offset), "0.0", .min = -1e6, .max = 1e6,
	  .help = "Degrees Celsius" },
};

static const struct config_key temper_keys[] = {
	{ "bus", CONFIG_INT, OFFSET(filter.bus), "-1", .min = 0, .max = 65535,
	  .help = "Number of the USB bus; default any" },
	{ "port", CONFIG_INT, OFFSET(filter.port), "-1", .min = 0, .max = 255,
	  .help = "Number of the port on its hub; default any" },
	{ "device", CONFIG_STRING, OFFSET(device),
	  .help = "File of the device, \"/dev/hidraw3\", in place of bus and port" },
	{ "model", CONFIG_ENUM, OFFSET(model), "auto", .names = models,
	  .help = "temper1: a temperature; temper2: two; temperhum: temperature and humidity; auto: as the device calls itself" },
	{ "rate", CONFIG_REAL, OFFSET(rate), "1.0", .min = 1e-5, .max = 10,
	  .help = "Samples per second" },
	{ "calibration", CONFIG_JSON, OFFSET(calibration), .group = calibration_keys,
	  .group_count = ARRAY_SIZE(calibration_keys), .help = "Correction of temperatures" },
};

/* Names of the values, unless the configuration has signals. */
static int name_signals(struct node *n)
{
	static const char *const names[][SENSOR_VALUES] = {
		[SENSOR_AUTO] = { "temp", "second" },
		[SENSOR_ONE] = { "temp", NULL },
		[SENSOR_TWO] = { "temp_int", "temp_ext" },
		[SENSOR_HUMIDITY] = { "temp", "humidity" },
	};
	struct temper_node *t = n->private_data;
	unsigned count = names[t->model][1] ? 2 : 1;
	struct signal_list *l = signal_list_alloc(count);
	int ret = l ? 0 : -ENOMEM;

	for (unsigned i = 0; i < count && !ret; i++)
		ret = signal_set(&l->signals[i], names[t->model][i],
				 i && t->model == SENSOR_HUMIDITY ? "%" : i && t->model == SENSOR_AUTO ? NULL : "°C",
				 SIGNAL_FLOAT);
	if (ret) {
		signal_list_put(l);
		return ret;
	}
	signal_list_put(n->in.signals);
	n->in.signals = l;
	return 0;
}

static int temper_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct temper_node *t = n->private_data;
	bool given = signal_list_is_given(n->in.cfg, "signals") || signal_list_is_given(cfg, "signals");
	int ret = config_unpack(c, t->calibration, calibration_keys, ARRAY_SIZE(calibration_keys), t,
				NULL, 0);

	for (unsigned i = 0; given && n->in.signals && i < n->in.signals->count; i++)
		if (n->in.signals->signals[i].type != SIGNAL_FLOAT) {
			config_fail(c, n->in.cfg ? n->in.cfg : cfg, "signals", "temperatures are floats");
			ret = -EINVAL;
		}
	if (t->device && (!*t->device || t->filter.bus >= 0 || t->filter.port >= 0)) {
		config_fail(c, cfg, "device", "is a file such as \"/dev/hidraw3\", without bus and port");
		ret = -EINVAL;
	}
	if (t->device && t->model == SENSOR_AUTO) {
		config_fail(c, cfg, "model", "is required beside device");
		ret = -EINVAL;
	}
	return ret ?: given ? 0 : name_signals(n);
}

/* ---- the device ---- */

static int open_device(struct node *n, bool say)
{
	struct temper_node *t = n->private_data;
	char path[SENSOR_PATH];
	const char *file = t->device;

	t->is = (enum sensor_model)t->model;
	if (!file) {
		if (sensor_find("/sys", &t->filter, path, &t->is)) {
			if (say)
				log_error("node %s: it needs a thermometer TEMPer (USB 0c45:7401 or 0c45:7402), and none is there%s",
					  n->name, t->filter.bus >= 0 || t->filter.port >= 0 ?
							   ", at this bus and port" : "");
			return -ENODEV;
		}
		file = path;
	}
	t->fd = open(file, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (t->fd >= 0)
		return 0;
	if (say)
		log_error("node %s: the thermometer %s cannot be opened: %s", n->name, file,
			  strerror(errno));
	return -errno;
}

static void close_device(struct temper_node *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

static int temper_stop(struct node *n)
{
	struct temper_node *t = n->private_data;

	if (t->has_timer)
		timer_close(&t->timer);
	t->has_timer = false;
	close_device(t);
	fault_finish(&t->faults);
	return 0;
}

static int temper_start(struct node *n)
{
	struct temper_node *t = n->private_data;
	int ret = open_device(n, true);

	t->faults.node = n;
	if (ret)
		return ret;
	ret = timer_open(&t->timer, TIMER_TIMERFD, t->rate);
	t->has_timer = !ret;
	if (ret)
		close_device(t);
	else
		timer_start(&t->timer, t->rate);
	return ret;
}

static int temper_init(struct node *n)
{
	struct temper_node *t = n->private_data;

	t->fd = -1;
	return 0;
}

/* Counts a step without a sample, whose number is left out. */
static int miss(struct node *n, unsigned figure, const char *why)
{
	struct temper_node *t = n->private_data;

	node_figure_add(n, figure, 1);
	n->sequence++;
	if (fault_may_log(&t->faults))
		log_warn("node %s: a sample is lost: %s", n->name, why);
	return 0;
}

/* 0 with the values, or the figure of what went wrong. */
static unsigned ask(struct node *n, double values[SENSOR_VALUES], unsigned *count, const char **why)
{
	struct temper_node *t = n->private_data;
	uint8_t answer[SENSOR_ANSWER];
	int ret = t->fd >= 0 ? 0 : open_device(n, false);

	if (!ret)
		ret = sensor_ask(t->fd, TIMEOUT_MS, answer);
	if (ret == -ETIMEDOUT) {
		*why = "the thermometer does not answer";
		return TIMEOUTS;
	}
	if (ret && ret != -EBADMSG) {
		close_device(t);
		*why = "the thermometer is not there";
		return ABSENT;
	}
	*count = ret ? 0 : sensor_decode(t->is, answer, values);
	*why = "the thermometer answers something else";
	return *count ? 0 : BAD_ANSWERS;
}

static int temper_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct temper_node *t = n->private_data;
	struct sample *s = smps[0];
	double values[SENSOR_VALUES];
	unsigned count = 0, wrong;
	uint64_t late_ns;
	int64_t steps = timer_wait_step(&t->timer, &late_ns);
	const char *why;

	(void)cnt, (void)release;
	if (steps < 0)
		return (int)steps;
	if (!t->resumed)
		atomic_fetch_add_explicit(&n->counters.missed, (uint64_t)steps - 1,
					  memory_order_relaxed);
	t->resumed = false;
	wrong = ask(n, values, &count, &why);
	if (wrong)
		return miss(n, wrong, why);
	s->origin = clock_realtime();
	s->length = MIN(count, s->capacity);
	for (unsigned i = 0; i < s->length; i++)
		s->data[i].f = i && t->is == SENSOR_HUMIDITY ? values[i] : values[i] * t->scale + t->offset;
	s->sequence = n->sequence++;
	s->signals = n->in.signals;
	s->flags = SAMPLE_HAS_DATA | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_SEQUENCE;
	return 1;
}

static void temper_interrupt(struct node *n)
{
	struct temper_node *t = n->private_data;

	if (t->has_timer)
		timer_interrupt(&t->timer);
}

static void temper_rearm(struct node *n)
{
	struct temper_node *t = n->private_data;

	if (t->has_timer)
		timer_rearm(&t->timer);
}

static void temper_resume(struct node *n)
{
	struct temper_node *t = n->private_data;

	if (t->has_timer)
		timer_grid_forgive(&t->timer.grid);
	t->resumed = true;
}

static int temper_poll_fds(struct node *n, int fds[], int max)
{
	struct temper_node *t = n->private_data;

	if (!t->has_timer || max < 1)
		return 0;
	fds[0] = timer_poll_fd(&t->timer, false);
	return 1;
}

static void temper_print(struct node *n, char *buf, size_t size)
{
	const struct temper_node *t = n->private_data;

	snprintf(buf, size, "thermometer %.60s, model %s, %g Hz", t->device ? t->device : "on USB",
		 models[t->model], t->rate);
}

static const struct node_figure temper_figures[FIGURES] = {
	[TIMEOUTS] = { "timeouts", "Steps at which the thermometer did not answer", NODE_COUNTER },
	[BAD_ANSWERS] = { "bad_answers", "Steps at which it answered something else",
			  NODE_COUNTER },
	[ABSENT] = { "absent", "Steps at which it was not there", NODE_COUNTER },
};

const struct node_type node_temper = {
	.name = "temper",
	.description = "USB thermometers TEMPer of PCsensor",
	.vectorize_max = 1,
	.flags = NODE_CAN_READ | NODE_READ_BLOCKS,
	.size = sizeof(struct temper_node),
	.keys = temper_keys,
	.key_count = ARRAY_SIZE(temper_keys),
	.figures = temper_figures,
	.figure_count = FIGURES,
	.init = temper_init,
	.parse = temper_parse,
	.start = temper_start,
	.stop = temper_stop,
	.read = temper_read,
	.interrupt = temper_interrupt,
	.rearm = temper_rearm,
	.resume = temper_resume,
	.poll_fds = temper_poll_fds,
	.print = temper_print,
};
