/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar devices --faults`: the faults that messages of running processes meet. Each process
 * answers for itself what it has set, and where it cannot.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/devices.h"
#include "cli/processes.h"
#include "util/log.h"

/* Which processes. */
struct chosen {
	char **names; /* numbers of processes, names of devices; none: all */
	int count;
	const char *faults; /* NULL: they are shown only */
	unsigned asked, failed;
	bool useful, useless; /* the text, as processes said that could read it */
};

static bool is_pid(const char *name, uint32_t *pid)
{
	char *end;
	unsigned long n = strtoul(name, &end, 10);

	*pid = (uint32_t)n;
	return *name >= '0' && *name <= '9' && !*end && n > 0 && n <= INT32_MAX;
}

static bool uses(const struct hca_process_view *p, const char *device)
{
	char name[32];

	for (size_t i = 0; i < p->qp_count; i++) {
		snprintf(name, sizeof(name), "soft%u", p->qps[i].device);
		if (!strcmp(name, device))
			return true;
	}
	return false;
}

static void ask(struct chosen *c, uint32_t pid, const char *command)
{
	struct hca_faults_view faults;
	char *save = NULL, *line;
	int ret = processes_faults(pid, c->faults, &faults);

	c->asked++;
	c->failed += ret != 0;
	/* For all others, too; but one process alone is not believed. */
	c->useful = c->useful || !ret || ret == -EOPNOTSUPP;
	c->useless = ret == -EINVAL && c->faults && !c->useful;
	if (ret && ret != -EOPNOTSUPP)
		return;
	printf("  %-10u %-32s  %.60s\n", pid, *faults.set ? faults.set : "no faults", command);
	for (line = strtok_r(faults.notes, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		printf("             %s\n", line);
}

/* Of those that nobody has named: processes of another user are not ours to ask. */
static bool is_meant(const struct chosen *c, const struct hca_process_view *p)
{
	if (!c->count)
		return p->pid && (!geteuid() || p->uid == geteuid());
	for (int i = 0; i < c->count; i++)
		if (uses(p, c->names[i]))
			return true;
	return false;
}

static const char *command_of(const struct hca_view *v, uint32_t pid)
{
	for (size_t i = 0; i < v->process_count; i++)
		if (v->processes[i].pid == pid)
			return v->processes[i].command;
	return "";
}

static bool is_used(const struct hca_view *v, const char *device)
{
	for (size_t i = 0; i < v->process_count; i++)
		if (uses(&v->processes[i], device))
			return true;
	return false;
}

static void ask_all(struct chosen *c, const struct hca_view *v)
{
	uint32_t pid;

	for (int i = 0; i < c->count && !c->useless; i++)
		if (is_pid(c->names[i], &pid))
			ask(c, pid, command_of(v, pid));
	for (size_t i = 0; i < v->process_count && !c->useless; i++)
		if (is_meant(c, &v->processes[i]))
			ask(c, v->processes[i].pid, v->processes[i].command);
	for (int i = 0; i < c->count && c->asked; i++)
		if (!is_pid(c->names[i], &pid) && !is_used(v, c->names[i])) {
			log_error("no process uses %s here", c->names[i]);
			c->failed++;
		}
}

int devices_faults(const char *faults, char **names, int count)
{
	struct chosen c = { .names = names, .count = count, .faults = faults };
	struct processes p;
	struct hca_view *v;
	int ret = processes_open(&p);

	if (ret)
		return ret;
	if (!strcmp(faults, "off"))
		c.faults = "";
	else if (!strcmp(faults, "show"))
		c.faults = NULL;
	ret = p.look(p.inspector, &v);
	if (!ret) {
		ask_all(&c, v);
		p.view_free(v);
	} else {
		log_error("processes cannot be looked at: %s", strerror(-ret));
	}
	processes_close(&p);
	if (!ret && !c.asked) {
		log_error("no process uses %s here: one can be asked from its first queue pair on",
			  count ? names[0] : "busbar's adapter");
		ret = -ESRCH;
	}
	return ret ? ret : c.failed ? -EIO : 0;
}
