/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Top-level keys of a configuration, and what they do to the process. Parsing
 * changes nothing, so that a file can be checked, also by a gateway that runs.
 */
#define LOG_ROOM "gateway"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/un.h>

#include "gateway/config/keys.h"
#include "gateway/base/memory.h"
#include "gateway/node/devices/devices.h"
#include "gateway/part/random.h"
#include "gateway/super_node/super_node_private.h"
#include "gateway/config/uuid.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/nice.h"

#define RULES_MAX 64

#define TOP(field) offsetof(struct super_node_settings, field)

static const char *const clock_names[] = {
	[CLOCK_WALL_REALTIME] = "realtime",
	[CLOCK_WALL_TAI] = "tai",
	NULL,
};

static const struct config_key top_keys[] = {
	{ "nodes", CONFIG_JSON, TOP(nodes), .help = "Nodes by name" },
	{ "paths", CONFIG_JSON, TOP(paths), .help = "List of paths" },
	{ "http", CONFIG_JSON, TOP(http_cfg),
	  .help = "Settings of the HTTP server" },
	{ "logging", CONFIG_JSON, TOP(logging), .help = "Log settings" },
	{ "control", CONFIG_STRING, TOP(control),
	  .help = "Path of a Unix socket for busbar-ctl, '@name' for an abstract one; none without this key" },
	{ "hugepages", CONFIG_INT, TOP(hugepages), "100", .min = 0,
	  .max = 1e9,
	  .help = "0 puts samples on the heap; other values: huge pages where there are any" },
	{ "stats", CONFIG_REAL, TOP(stats_hz), "1", .min = 0, .max = 1000,
	  .help = "Rate of periodic statistics in Hz, 0 for none" },
	{ "clock", CONFIG_ENUM, TOP(clock), "realtime", .names = clock_names,
	  .help = "What timestamps are told by: realtime, the wall clock (UTC), or tai, the atomic time, which knows no leap seconds" },
	{ "affinity", CONFIG_INT, TOP(affinity), "0", .min = 0,
	  .max = (double)INT64_MAX, .help = "CPU mask of the process" },
	{ "priority", CONFIG_INT, TOP(priority), "0", .min = 0, .max = 99,
	  .help = "SCHED_FIFO priority, 0 for none" },
	{ "nice", CONFIG_INT, TOP(nice), "0", .min = -20, .max = 19,
	  .help = "Nice value of the process: how much of the processors it gets beside others, -20 most, 19 least" },
	{ "idle_stop", CONFIG_BOOL, TOP(idle_stop), "false",
	  .help = "End when all paths have ended" },
	{ "name", CONFIG_STRING, TOP(name),
	  .help = "Name of the gateway, told in its status; default the host's" },
	{ "uuid", CONFIG_STRING, TOP(uuid),
	  .help = "Identifier of the gateway; default made from the configuration" },
	{ "seed", CONFIG_INT, TOP(seed), "0",
	  .min = 0, .max = UINT32_MAX,
	  .help = "Start of the random numbers that nodes without a seed of their own share" },
	{ "ethercat", CONFIG_JSON, TOP(ethercat), .group = device_ethercat_keys,
	  .group_count = DEVICE_ETHERCAT_KEYS, .help = "The EtherCAT master of nodes of type ethercat" },
	{ "fpgas", CONFIG_JSON, TOP(fpgas), .form = device_fpgas_form,
	  .help = "Cards of nodes of type fpga, by name" },
};

struct logging {
	const char *level, *file, *pattern;
	bool syslog;
	json_t *expressions;
};

#define LOGGING(field) offsetof(struct logging, field)

static const struct config_key logging_keys[] = {
	{ "level", CONFIG_STRING, LOGGING(level), "info",
	  .help = "off, critical, error, warning, info, debug or trace" },
	{ "file", CONFIG_STRING, LOGGING(file),
	  .help = "Path of a file that lines are appended to as well" },
	{ "syslog", CONFIG_BOOL, LOGGING(syslog), "false",
	  .help = "Send lines to the system's log as well" },
	{ "expressions", CONFIG_JSON, LOGGING(expressions),
	  .help = "List of { name, level }: the level of rooms whose name matches" },
	{ "pattern", CONFIG_STRING, LOGGING(pattern),
	  .help = "Form of a line, such as \"%H:%M:%S %l %n %v\"" },
};

struct expression {
	const char *name, *level;
};

static const struct config_key expression_keys[] = {
	{ "name", CONFIG_STRING, offsetof(struct expression, name),
	  .required = true, .help = "Name of rooms, * and ? stand for any" },
	{ "level", CONFIG_STRING, offsetof(struct expression, level),
	  .required = true, .help = "Their level" },
};

const struct key_table keys_top = { top_keys, ARRAY_SIZE(top_keys) };
const struct key_table keys_logging = { logging_keys,
					ARRAY_SIZE(logging_keys) };
const struct key_table keys_expression = { expression_keys,
					   ARRAY_SIZE(expression_keys) };

static int parse_level(struct config *c, json_t *cfg, const char *name)
{
	int level = log_level_parse(name);

	if (level < 0)
		config_fail(c, cfg, "level",
			    "'%.40s' is none of: off, critical, error, warning, info, debug, trace",
			    name);
	return level;
}

static void parse_expression(struct super_node_settings *s, struct config *c,
			     json_t *cfg)
{
	struct expression e;
	struct log_rule *more;
	int level;

	if (config_unpack(c, cfg, expression_keys, ARRAY_SIZE(expression_keys),
			  &e, NULL, 0))
		return;
	level = parse_level(c, cfg, e.level);
	if (level < 0)
		return;
	if (s->log.rule_count == RULES_MAX) {
		config_fail(c, cfg, NULL, "more than %d expressions", RULES_MAX);
		return;
	}
	more = reallocarray(s->log_rules, s->log.rule_count + 1, sizeof(*more));
	if (!more)
		return;
	s->log_rules = more;
	more[s->log.rule_count++] =
		(struct log_rule){ e.name, (enum log_level)level };
	s->log.rules = more;
}

static void parse_logging(struct super_node_settings *s, struct config *c,
			  json_t *cfg)
{
	const char *wrong;
	struct logging v;
	size_t i;
	json_t *e;

	s->log_level = -1;
	if (!cfg || config_unpack(c, cfg, logging_keys,
				  ARRAY_SIZE(logging_keys), &v, NULL, 0))
		return;
	if (json_object_get(cfg, "level"))
		s->log_level = parse_level(c, cfg, v.level);
	s->log.file = v.file;
	s->log.syslog = v.syslog;
	s->log.pattern = v.pattern;
	wrong = v.pattern ? log_pattern_check(v.pattern) : NULL;
	if (wrong)
		config_fail(c, cfg, "pattern",
			    "'%.2s' is not understood; there are %%v %%n %%l %%L %%Y %%m %%d %%H %%M %%S %%T %%e %%f %%F %%P %%t %%%%",
			    wrong);
	if (v.expressions && !json_is_array(v.expressions)) {
		config_fail(c, cfg, "expressions",
			    "expected a list such as ( { name = \"path\", level = \"debug\" } )");
		return;
	}
	json_array_foreach(v.expressions, i, e)
		parse_expression(s, c, e);
}

/* The same configuration has the same identifier. */
static void make_uuid(struct super_node_settings *s, struct config *c)
{
	char *text = json_dumps(config_root(c), JSON_COMPACT | JSON_SORT_KEYS);

	uuid_set(s->uuid_text, c, config_root(c), s->uuid, "gateway",
		 text ? text : "");
	free(text);
}

static enum super_node_idle_stop idle_stop_default;

void super_node_set_idle_stop(enum super_node_idle_stop when)
{
	idle_stop_default = when;
}

void super_node_settings_parse(struct super_node_settings *s, struct config *c)
{
	struct sockaddr_un *un = NULL;

	memset(s, 0, sizeof(*s));
	config_unpack(c, config_root(c), top_keys, ARRAY_SIZE(top_keys), s,
		      NULL, 0);
	s->idle_stop_given = json_object_get(config_root(c), "idle_stop");
	parse_logging(s, c, s->logging);
	device_ethercat_check(c, config_root(c), s->ethercat);
	device_fpgas_check(c, config_root(c), s->fpgas);
	http_settings_parse(&s->http, c, s->http_cfg);
	if (!s->idle_stop_given)
		s->idle_stop = idle_stop_default == SUPER_NODE_IDLE_STOP_ALWAYS ||
			       (idle_stop_default == SUPER_NODE_IDLE_STOP_UNSERVED &&
				!s->http.wanted);
	make_uuid(s, c);
	if (s->control && (!*s->control ||
			   strlen(s->control) >= sizeof(un->sun_path)))
		config_fail(c, config_root(c), "control",
			    "expected a path of 1 to %zu characters",
			    sizeof(un->sun_path) - 1);
}

void super_node_settings_clear(struct super_node_settings *s)
{
	free(s->log_rules);
	s->log_rules = NULL;
	s->log.rules = NULL;
	s->log.rule_count = 0;
}

static void apply_affinity(int64_t mask)
{
	cpu_set_t set;

	if (!mask)
		return;
	CPU_ZERO(&set);
	for (unsigned i = 0; i < 63; i++)
		if (mask >> i & 1)
			CPU_SET(i, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		log_warn("affinity 0x%llx refused: %s",
			 (unsigned long long)mask, strerror(errno));
}

static void apply_priority(int64_t priority)
{
	struct sched_param param = { .sched_priority = (int)priority };

	if (priority && sched_setscheduler(0, SCHED_FIFO, &param))
		log_warn("priority %d (SCHED_FIFO) refused: %s; give CAP_SYS_NICE or raise the limit with `ulimit -r`",
			 (int)priority, strerror(errno));
}

/* 0 is what it was started with, until it has had another. */
int super_node_apply_nice(int64_t nice, int64_t was)
{
	int now = getpriority(PRIO_PROCESS, 0), ret;

	if (nice == was)
		return 0;
	ret = nice_set((int)nice, now);
	if (ret) {
		log_warn("nice %d refused: %s; give CAP_SYS_NICE or raise the limit with `ulimit -e`",
			 (int)nice, strerror(-ret));
		return ret;
	}
	ret = nice_set_session((int)nice);
	if (ret == -EXDEV)
		log_warn("nice %d counts only among the programs of this session, which Linux makes a group of its own (autogroup); start the gateway with `setsid`",
			 (int)nice);
	else if (ret)
		log_warn("nice %d refused for the group of the session (autogroup): %s",
			 (int)nice, strerror(-ret));
	return 0;
}

static void apply_clock(int wall)
{
	struct timex t = { 0 };

	clock_init();
	clock_set_wall((enum clock_wall)wall);
	if (wall == CLOCK_WALL_TAI && adjtimex(&t) >= 0 && t.tai == 0)
		log_warn("clock tai: the system does not know the distance of TAI to UTC and takes 0; a PTP or NTP daemon has to set it (phc2sys, or leapsectz of chrony)");
}

/* A refusal is said and does no harm. */
void super_node_settings_apply(const struct super_node_settings *s,
			       const struct super_node_settings *was,
			       bool keep_level)
{
	int ret = log_configure(&s->log);

	if (ret)
		log_error("logging.file %s: %s; the log goes on as it was",
			  s->log.file, strerror(-ret));
	if (s->log_level >= 0 && !keep_level && !getenv("BUSBAR_LOG"))
		log_set_level((enum log_level)s->log_level);
	if (!was || was->clock != s->clock)
		apply_clock(s->clock);
	if (!was) {
		/* There are no other threads yet that matter; they inherit it. */
		super_node_note_first_mask();
		apply_affinity(s->affinity);
		apply_priority(s->priority);
		super_node_apply_nice(s->nice, 0);
	}
	if (!was || was->seed != s->seed)
		random_shared_seed((uint32_t)s->seed);
}
