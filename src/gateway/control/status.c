/* SPDX-License-Identifier: BSD-2-Clause */
/* See status.h. */
#include "gateway/control/status.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "gateway/config/secret.h"
#include "gateway/plugin/plugin.h"
#include "gateway/super_node/super_node_private.h"
#include "util/log_recent.h"

static json_t *names(const struct plugin *table)
{
	json_t *list = json_array();

	for (; table->name; table++)
		json_array_append_new(list, json_string(table->name));
	return list;
}

json_t *control_capabilities(json_t *apis)
{
	return json_pack("{so so so so so}", "build",
			 json_pack("{ss ss}", "name", "busbar", "version",
				   GATEWAY_VERSION),
			 "hooks", names(hook_plugins), "apis", apis,
			 "nodes", names(node_plugins),
			 "formats", names(format_plugins));
}

static json_t *kernel_json(const struct utsname *u)
{
	return json_pack("{ss ss ss ss ss}", "sysname", u->sysname, "nodename",
			 u->nodename, "release", u->release, "version",
			 u->version, "machine", u->machine);
}

static json_t *system_json(void)
{
	struct sysinfo info;
	double load = 1.0 / (1 << SI_LOAD_SHIFT);
	json_int_t unit;

	if (sysinfo(&info))
		return json_object();
	unit = info.mem_unit;
	return json_pack("{sI sI sI sI s[fff] s{sI sI sI sI} s{sI sI}}",
			 "cores_configured",
			 (json_int_t)sysconf(_SC_NPROCESSORS_CONF), "cores",
			 (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "processes",
			 (json_int_t)info.procs, "uptime",
			 (json_int_t)info.uptime, "load",
			 (double)info.loads[0] * load,
			 (double)info.loads[1] * load,
			 (double)info.loads[2] * load, "ram", "total",
			 (json_int_t)info.totalram * unit, "free",
			 (json_int_t)info.freeram * unit, "shared",
			 (json_int_t)info.sharedram * unit, "buffer",
			 (json_int_t)info.bufferram * unit, "swap", "total",
			 (json_int_t)info.totalswap * unit, "free",
			 (json_int_t)info.freeswap * unit);
}

static double seconds(const struct timespec *t)
{
	return (double)t->tv_sec + (double)t->tv_nsec / 1e9;
}

json_t *control_status(struct super_node *sn)
{
	static const char *const states[] = {
		[SUPER_NODE_PARSED] = "parsed",
		[SUPER_NODE_STARTED] = "running",
		[SUPER_NODE_STOPPED] = "stopped",
	};
	struct timespec now;
	struct utsname u;
	json_t *o;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	if (uname(&u))
		memset(&u, 0, sizeof(u));
	/* A reload may be changing settings. */
	pthread_mutex_lock(&sn->control);
	o = json_pack("{ss ss ss ss ss sf sf s{ss sI sb} so so so}", "state",
		      states[sn->state], "version", GATEWAY_VERSION, "hostname",
		      u.nodename, "name",
		      sn->settings.name ? sn->settings.name : u.nodename,
		      "uuid", sn->settings.uuid_text, "time_now",
		      seconds(&now), "time_started", seconds(&sn->started_at),
		      "timezone", "name", tm.tm_zone ? tm.tm_zone : "",
		      "offset", (json_int_t)tm.tm_gmtoff, "dst",
		      tm.tm_isdst > 0, "clock", super_node_clock_json(), "kernel",
		      kernel_json(&u), "system", system_json());
	pthread_mutex_unlock(&sn->control);
	return o;
}

/* Of text that may be no UTF-8, such as names of files. */
static json_t *text_json(char *text)
{
	json_t *o = json_string(text);

	for (char *s = text; !o && *s; s++)
		if ((unsigned char)*s >= 128)
			*s = '?';
	return o ? o : json_string(text);
}

static json_t *log_line_json(struct log_recent_line *l)
{
	return json_pack("{sI sf ss so so}", "number", (json_int_t)l->number, "time",
			 (double)l->time_ns / 1e9, "level", log_level_name(l->level), "room",
			 text_json(l->room), "message", text_json(l->message));
}

json_t *control_log(uint64_t after)
{
	struct log_recent_line line;
	json_t *lines = json_array();
	uint64_t last = log_recent_last();

	/* The log of a process that has begun again has smaller numbers. */
	if (after > last)
		after = 0;
	while (log_recent_next(after, &line) && line.number <= last) {
		json_array_append_new(lines, log_line_json(&line));
		after = line.number;
	}
	return json_pack("{sI so}", "last", (json_int_t)last, "lines", lines);
}

json_t *control_restart_json(struct super_node *sn, const json_t *config)
{
	return json_pack("{sI so}", "restarts", (json_int_t)sn->restarts + 1,
			 "config", config ? secret_copy(config) : json_null());
}
