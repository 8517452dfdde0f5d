/* SPDX-License-Identifier: BSD-2-Clause */
/* The head of a report: what ran, when, on which machine, and what limits that machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/page.h"
#include "bench/report/table.h"
#include "bench/report/text.h"

/* More than this share of the steps of a loop that does nothing else: somebody takes the
 * processor away. */
#define MISSED_NOTABLE 0.1 /* percent */

/* The value at "cpu.model"; NULL: there is none, or it is null. */
static const json_t *at(const json_t *object, const char *path)
{
	char name[80];

	while (object) {
		size_t n = strcspn(path, ".");

		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		object = json_object_get(object, name);
		if (!path[n])
			break;
		path += n + 1;
	}
	return json_is_null(object) ? NULL : object;
}

static const char *text_at(const json_t *object, const char *path)
{
	return json_string_value(at(object, path));
}

static void fact(FILE *out, const char *name, const char *value)
{
	if (value && *value)
		report_html(out, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", name,
			    value);
}

static void fact_number(FILE *out, const char *name, const json_t *value)
{
	char text[32];

	if (json_is_number(value))
		fact(out, name, report_text_number(text, json_number_value(value)));
}

static void limit(FILE *out, const char *text)
{
	report_html(out, "<li>%s</li>\n", text);
}

static void limits_of_processors(FILE *out, const json_t *m)
{
	const char *hypervisor = text_at(m, "hypervisor");
	const json_t *governor = at(m, "cpu.governor");
	char text[300];

	if (json_is_true(at(m, "virtual_machine"))) {
		snprintf(text, sizeof(text), "It is a virtual machine (%.60s): the host may take "
			 "its processors away at any time, and its speed changes with what else "
			 "runs there.", hypervisor ? hypervisor : "unknown hypervisor");
		limit(out, text);
	}
	if (text_at(m, "isolation.quota") && strncmp(text_at(m, "isolation.quota"), "max", 3)) {
		snprintf(text, sizeof(text), "The control group may use only so much processor "
			 "time: cpu.max is %.60s.", text_at(m, "isolation.quota"));
		limit(out, text);
	}
	if (m && !at(m, "isolation.isolcpus") &&
	    (!text_at(m, "isolation.isolated") || !*text_at(m, "isolation.isolated")))
		limit(out, "No processor is isolated: the scheduler may put other threads beside "
		      "those that measure.");
	if (json_is_array(governor) && json_array_size(governor) &&
	    strcmp(json_string_value(json_array_get(governor, 0)) ?
			   json_string_value(json_array_get(governor, 0)) : "", "performance"))
		limit(out, "The frequency governor is not 'performance': the clock rate follows "
		      "the load.");
}

static void limits_of_build(FILE *out, const json_t *m)
{
	const char *sanitizer = text_at(m, "busbar.sanitizer");
	const json_t *optimized = at(m, "busbar.optimized");
	char text[200];

	if (sanitizer && *sanitizer && strcmp(sanitizer, "none")) {
		snprintf(text, sizeof(text), "busbar was built with a sanitizer (%.40s), which "
			 "makes it several times slower.", sanitizer);
		limit(out, text);
	}
	if (json_is_false(optimized))
		limit(out, "busbar was built without optimization.");
}

static void limits_of_machine(FILE *out, const json_t *m)
{
	static const char *const busy[] = { "floor.paced_100k_missed.median",
					    "floor.paced_100k_missed_busy.median" };
	const json_t *load = json_array_get(at(m, "load"), 0);
	char text[300], number[32];

	fputs("<h3>What limits this machine</h3>\n<ul>\n", out);
	limits_of_processors(out, m);
	for (size_t i = 0; i < 2; i++) {
		const json_t *missed = at(m, busy[i]);

		if (!json_is_number(missed) || json_number_value(missed) < MISSED_NOTABLE)
			continue;
		snprintf(text, sizeof(text), "A loop that only waits for the next step, 100,000 "
			 "times a second, misses %s %% of the steps%s.",
			 report_text_number(number, json_number_value(missed)),
			 i ? " while another thread is busy" : "");
		limit(out, text);
	}
	if (json_is_number(load) && json_number_value(load) > 0.5) {
		snprintf(text, sizeof(text), "Other programs ran at the start: the load average "
			 "was %s.", report_text_number(number, json_number_value(load)));
		limit(out, text);
	}
	limits_of_build(out, m);
	fputs("</ul>\n", out);
}

static void machine(struct page *p)
{
	const json_t *m = p->report->machine;
	char text[200], time[32];

	if (!m) {
		fputs("<p>This run has no description of its machine, so its figures cannot be "
		      "given as multiples of what the machine can do at best.</p>\n", p->out);
		return;
	}
	fputs("<div class=\"scroll\"><table class=\"facts\">\n", p->out);
	fact(p->out, "Host", text_at(m, "host"));
	fact(p->out, "Processor", text_at(m, "cpu.model"));
	fact_number(p->out, "Processors online", at(m, "cpu.online"));
	fact(p->out, "Processors allowed", text_at(m, "cpu.allowed"));
	fact(p->out, "Kernel", text_at(m, "kernel.release"));
	fact(p->out, "Preemption", text_at(m, "kernel.preempt"));
	fact(p->out, "System", text_at(m, "os"));
	fact(p->out, "Clock", text_at(m, "clock.busbar"));
	if (isfinite(p->report->floor_ns)) {
		snprintf(text, sizeof(text), "%s: a cache line from one processor to another; "
			 "the unit of all multiples below",
			 report_text_time(time, p->report->floor_ns));
		fact(p->out, "Floor", text);
	}
	fputs("</table></div>\n", p->out);
	if (!isfinite(p->report->floor_ns))
		fputs("<p>The floor of the machine was not measured in this run; so there are no "
		      "multiples of it.</p>\n", p->out);
	limits_of_machine(p->out, m);
	fputs("<details><summary>All that was recorded of the machine</summary>\n", p->out);
	table_object(p->out, m);
	fputs("</details>\n", p->out);
}

static void run(struct page *p)
{
	const json_t *r = p->report->run;
	char *command = r ? table_command(json_object_get(r, "command")) : NULL;

	if (r) {
		fputs("<div class=\"scroll\"><table class=\"facts\">\n", p->out);
		fact(p->out, "Suite", text_at(r, "suite"));
		fact(p->out, "Begun", text_at(r, "start"));
		fact(p->out, "Ended", text_at(r, "end") ? text_at(r, "end") :
			      "not yet, or it was ended");
		fact(p->out, "busbar", text_at(r, "version"));
		fact(p->out, "Command", command);
		fputs("</table></div>\n", p->out);
	}
	free(command);
}

static void left_out(struct page *p)
{
	const json_t *list = at(p->report->run, "left_out"), *e;
	size_t i;

	if (!json_array_size(list))
		return;
	fputs("<h2>Left out</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
	      "aria-label=\"table\"><table class=\"facts\">\n"
	      "<tr><th scope=\"col\">Case</th><th scope=\"col\">Scenario</th>"
	      "<th scope=\"col\">Why</th></tr>\n", p->out);
	json_array_foreach(list, i, e) {
		const char *id = json_is_string(e) ? json_string_value(e) : text_at(e, "id");

		report_html(p->out, "<tr><td>%s</td><td>%s</td><td>%s</td></tr>\n", id,
			    text_at(e, "scenario"), text_at(e, "reason"));
	}
	fputs("</table></div>\n", p->out);
}

/* The results that the source had, and whether this run has them too. */
static void shapes(struct page *p)
{
	const json_t *list = p->report->shapes, *e;
	size_t i, open = 0;

	json_array_foreach(list, i, e)
		open += json_is_null(json_object_get(e, "holds"));
	if (open == json_array_size(list))
		return;
	fputs("<h2>Does this run show what the source's did?</h2>\n"
	      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\">"
	      "<table class=\"facts\">\n<tr><th scope=\"col\">Expected</th>"
	      "<th scope=\"col\">Verdict</th><th scope=\"col\">Figures</th></tr>\n", p->out);
	json_array_foreach(list, i, e) {
		const json_t *holds = json_object_get(e, "holds");

		if (json_is_null(holds))
			continue;
		report_html(p->out, "<tr><td>%s</td><td class=\"%s\">%s</td><td>%s</td></tr>\n",
			    text_at(e, "claim"), json_is_true(holds) ? "" : "bad",
			    json_is_true(holds) ? "holds" : "does not hold",
			    text_at(e, "figures"));
	}
	fputs("</table></div>\n", p->out);
	if (open)
		report_html(p->out, "<p class=\"muted\">%zu more cannot be checked: the run lacks "
			    "their cases.</p>\n", open);
}

void page_head(struct page *p)
{
	run(p);
	if (p->report->run)
		machine(p);
	if (!p->draw)
		fputs("<p class=\"bad\">The figures are left out, because the program gnuplot was "
		      "not found when this report was made. In Debian and Ubuntu it is in the "
		      "package gnuplot-nox. The tables are complete.</p>\n", p->out);
	shapes(p);
	left_out(p);
	if (p->draw)
		fputs("<p class=\"muted\">The opposite axis of a figure and the column "
		      "\"median, in floors\" count multiples of the floor, where it was measured. "
		      "\"Other hardware\" marks what the source of an experiment measured on its "
		      "own machines: such a figure shows what is usual elsewhere, and is no goal "
		      "for this machine.</p>\n", p->out);
}
