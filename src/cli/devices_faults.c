/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar devices --faults`: the faults that messages of running processes meet. Each process
 * answers for itself what it has set, and where it cannot, and which events at packet numbers
 * took place.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/devices.h"
#include "cli/json_out.h"
#include "cli/processes.h"
#include "util/log.h"

/* Which processes. */
struct chosen {
	char **names; /* numbers of processes, names of devices; none: all */
	int count;
	const char *faults; /* NULL: they are shown only */
	struct cli_json *json; /* NULL: as text */
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

/* ---- a process ---- */

/* A process that never ends to tell events is cut off. */
#define EVENTS_MAX 1000
#define EVENT_BYTES 512

/* The pairs of the line as members: numbers, or else texts. */
static void print_event_json(struct cli_json *j, char *line)
{
	char *save = NULL;

	cli_json_open(j, NULL, '{');
	for (char *pair = strtok_r(line, " ", &save); pair; pair = strtok_r(NULL, " ", &save)) {
		char *value = strchr(pair, '='), *end;
		unsigned long long n;

		if (!value)
			continue;
		*value++ = 0;
		n = strtoull(value, &end, 0);
		if (*value >= '0' && *value <= '9' && !*end)
			cli_json_put(j, j_uint(pair, n));
		else
			cli_json_put(j, j_text(pair, value));
	}
	cli_json_close(j, '}');
}

static void print_events(const struct chosen *c, uint32_t pid)
{
	char line[EVENT_BYTES];

	for (uint32_t i = 0; i < EVENTS_MAX && processes_fault_event(pid, i, line, sizeof(line)); i++)
		if (c->json)
			print_event_json(c->json, line);
		else
			printf("             event %s\n", line);
}

static void print_text(const struct chosen *c, uint32_t pid, const char *command,
		       struct hca_faults_view *faults)
{
	char *save = NULL, *line;

	printf("  %-10u %-32s  %.60s\n", pid, *faults->set ? faults->set : "no faults", command);
	for (line = strtok_r(faults->notes, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		printf("             %s\n", line);
	if (!c->faults)
		print_events(c, pid);
}

static void print_json(const struct chosen *c, uint32_t pid, const char *command,
		       const struct hca_faults_view *faults)
{
	cli_json_open(c->json, NULL, '{');
	cli_json_put(c->json, j_uint("pid", pid), j_text("command", command),
			      j_text("faults", faults->set), j_text("notes", faults->notes));
	cli_json_open(c->json, "events", '[');
	print_events(c, pid);
	cli_json_close(c->json, ']');
	cli_json_close(c->json, '}');
}

static void ask(struct chosen *c, uint32_t pid, const char *command)
{
	struct hca_faults_view faults;
	int ret = processes_faults(pid, c->faults, &faults);

	c->asked++;
	c->failed += ret != 0;
	/* For all others, too; but one process alone is not believed. */
	c->useful = c->useful || !ret || ret == -EOPNOTSUPP;
	c->useless = ret == -EINVAL && c->faults && !c->useful;
	if (ret && ret != -EOPNOTSUPP)
		return;
	if (c->json)
		print_json(c, pid, command, &faults);
	else
		print_text(c, pid, command, &faults);
}

/* Of those that nobody has named: processes of another user are not ours to ask. */
static bool is_meant(const struct chosen *c, const struct hca_process_view *p)
{
	if (!c->count)
		return p->pid && (!geteuid() || p->uid == geteuid());
	for (int i = 0; i < c->count; i++)
		if (process_uses(p, c->names[i]))
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
		if (process_uses(&v->processes[i], device))
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

/* The processes that are chosen, as one JSON object on one line if c->json. */
static void ask_and_print(struct chosen *c, const struct hca_view *v)
{
	if (!c->json) {
		ask_all(c, v);
		return;
	}
	cli_json_open_list(c->json, "processes");
	ask_all(c, v);
	cli_json_close_list(c->json);
}

int devices_faults(const char *faults, char **names, int count, bool as_json)
{
	struct cli_json json = { .out = stdout };
	struct chosen c = { .names = names, .count = count, .faults = faults,
			    .json = as_json ? &json : NULL };
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
		ask_and_print(&c, v);
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
