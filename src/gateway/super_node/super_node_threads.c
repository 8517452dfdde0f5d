/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `affinity` and `priority` of a gateway that runs: for each thread of the process but
 * the caller's, and those that have settings of their own. A thread that starts
 * another one hands its own settings on, so this comes behind the start of threads.
 */
#define LOG_ROOM "gateway"
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gateway/base/own_thread.h"
#include "gateway/super_node/super_node_private.h"
#include "util/log.h"

static cpu_set_t first_mask;
static bool has_first_mask;

/* What `affinity` 0 goes back to; in the first thread, before it changes. */
void super_node_note_first_mask(void)
{
	if (!has_first_mask)
		has_first_mask = !sched_getaffinity(0, sizeof(first_mask),
						    &first_mask);
}

static int set_affinity(pid_t tid, int64_t mask)
{
	cpu_set_t set = first_mask;

	if (!mask && !has_first_mask)
		return 0;
	if (mask) {
		CPU_ZERO(&set);
		for (unsigned i = 0; i < 63; i++)
			if (mask >> i & 1)
				CPU_SET(i, &set);
	}
	return sched_setaffinity(tid, sizeof(set), &set) ? -errno : 0;
}

static int set_priority(pid_t tid, int64_t priority)
{
	struct sched_param param = { .sched_priority = (int)priority };
	int policy = sched_getscheduler(tid);

	/* 0 is for those that had one. */
	if (!priority && policy != SCHED_FIFO)
		return policy < 0 ? -errno : 0;
	return sched_setscheduler(tid, priority ? SCHED_FIFO : SCHED_OTHER,
				  &param) ? -errno : 0;
}

struct spread {
	int (*set)(pid_t tid, int64_t value);
	unsigned setting;             /* enum own_setting */
	int64_t value;
	unsigned applied, own, refused;
	int error;                    /* of the first that was refused */
};

static void spread_to(struct spread *s, pid_t tid)
{
	int ret;

	if (own_thread_settings(tid) & s->setting) {
		s->own++;
		return;
	}
	ret = s->set(tid, s->value);
	if (ret == -ESRCH)
		return; /* it has ended meanwhile */
	s->applied += !ret;
	s->refused += ret != 0;
	s->error = s->error ?: ret;
}

static void spread(struct spread *s)
{
	pid_t own = (pid_t)syscall(SYS_gettid);
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	if (!tasks) {
		s->refused = 1;
		s->error = -errno;
		return;
	}
	while ((entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid && tid != own)
			spread_to(s, tid);
	}
	closedir(tasks);
}

static void add(json_t *report, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add(json_t *report, const char *key, const char *format, ...)
{
	json_t *list = json_object_get(report, key);
	va_list args;

	if (!list) {
		list = json_array();
		json_object_set_new(report, key, list);
	}
	va_start(args, format);
	json_array_append_new(list, json_vsprintf(format, args));
	va_end(args);
}

static void tell(const struct spread *s, const char *text, const char *remedy,
		 json_t *report)
{
	if (s->applied)
		add(report, "applied", "%s: %u threads", text, s->applied);
	if (s->own)
		add(report, "applied", "%s: not to %u threads that keep their own",
		    text, s->own);
	if (!s->refused)
		return;
	log_warn("%s refused for %u threads: %s%s", text, s->refused,
		 strerror(-s->error), remedy);
	add(report, "refused", "%s: %u threads: %s%s", text, s->refused,
	    strerror(-s->error), remedy);
}

void super_node_settings_spread(const struct super_node_settings *s,
				const struct super_node_settings *was,
				json_t *report)
{
	struct spread affinity = { .set = set_affinity,
				   .setting = OWN_AFFINITY,
				   .value = s->affinity };
	struct spread priority = { .set = set_priority,
				   .setting = OWN_PRIORITY,
				   .value = s->priority };
	char text[64];

	if (s->affinity || was->affinity) {
		spread(&affinity);
		snprintf(text, sizeof(text), "affinity 0x%llx",
			 (unsigned long long)s->affinity);
		if (s->affinity != was->affinity)
			tell(&affinity, text,
			     "; it names no CPU that is there for this process, or the process must not change it",
			     report);
	}
	if (s->priority || was->priority) {
		spread(&priority);
		snprintf(text, sizeof(text), "priority %d", (int)s->priority);
		if (s->priority != was->priority)
			tell(&priority, text,
			     "; give CAP_SYS_NICE or raise the limit with `ulimit -r`",
			     report);
	}
	if (s->nice != was->nice) {
		int ret = super_node_apply_nice(s->nice, was->nice);

		snprintf(text, sizeof(text), "nice %d", (int)s->nice);
		if (ret)
			add(report, "refused", "%s: %s%s", text,
			    strerror(-ret),
			    "; give CAP_SYS_NICE or raise the limit with `ulimit -e`");
		else
			add(report, "applied", "%s: all threads", text);
	}
}
