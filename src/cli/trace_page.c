/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of `busbar trace --page`: one file of HTML without scripts, which is also XML. All texts
 * that come from outside (the file's name) are written by report_text_html().
 */
#include "cli/trace_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/words.h"
#include "bench/report/text.h"
#include "cli/trace_lines.h"
#include "cli/trace_svg.h"
#include "util/replace_file.h"

static const char style[] =
	"*{box-sizing:border-box}"
	"body{margin:0 auto;padding:.75rem;max-width:72rem;background:var(--page);color:var(--text);"
	"font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}"
	"h1{font-size:1.5rem;line-height:1.25}"
	"h2{font-size:1.2rem;margin-top:2rem;border-top:1px solid var(--grid);padding-top:1rem;"
	"break-after:avoid}h3{font-size:1rem;margin-bottom:.25rem;break-after:avoid}"
	".muted,figcaption{color:var(--muted)}a{color:var(--c1)}"
	".bad,.bad a{color:var(--warn);font-weight:bold}"
	"ul{padding-left:1.2rem}figure{margin:1rem 0}"
	"table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}"
	"th,td{padding:.2rem .6rem;border-bottom:1px solid var(--grid);text-align:right;"
	"overflow-wrap:normal}td{white-space:nowrap}td.word{white-space:normal;overflow-wrap:anywhere}"
	"th:first-child,td:first-child,.word{text-align:left}"
	"tr{break-inside:avoid}"
	"@media(max-width:60rem){.flows thead{position:absolute;left:-99rem}"
	".flows,.flows tbody,.flows tr,.flows td{display:block}"
	".flows tr{border:1px solid var(--grid);margin-bottom:.75rem;padding:.25rem}"
	".flows td,.flows td:first-child{display:flex;justify-content:space-between;gap:1rem;"
	"border:0;text-align:right}"
	".flows td::before{content:attr(data-name);color:var(--muted);white-space:nowrap}}"
	"@media print{body{max-width:none;font-size:11pt}.packets{max-width:15cm}}";

static void begin(FILE *out, const struct trace_report *t)
{
	char text[512];

	report_html(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
		    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>"
		    "<meta name=\"color-scheme\" content=\"light dark\"/>"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
		    "style-src 'unsafe-inline'\"/><title>%s: packets of RDMA</title><style>", t->file);
	report_text_colours(out, ":root");
	trace_head(t, text, sizeof(text));
	fprintf(out, "%s%s</style></head><body>\n<h1>What went wrong on RDMA connections</h1>\n", style,
		trace_svg_style);
	report_html(out, "<p><code>%s</code>: %s</p>\n", t->file, text);
}

static void cell(FILE *out, const char *name, const char *class, const char *value)
{
	report_html(out, "<td class=\"%s\" data-name=\"%s\">%s</td>", class, name, value);
}

static void count(FILE *out, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%ju", (uintmax_t)value);
	cell(out, name, "", text);
}

/* A flow's row, with a link to its details if there are any. */
static void flow_row(FILE *out, const struct trace_report *t, const struct analyzer_result *r,
		     bool detailed)
{
	char text[TRACE_TEXT_MAX];

	fprintf(out, "<tr><td data-name=\"flow\">%u</td>", r->number);
	cell(out, "requester", "word", trace_address(&r->src, text));
	cell(out, "responder", "word", trace_address(&r->dst, text));
	cell(out, "queue pairs", "word", trace_qp(r, text));
	count(out, "requests", r->requests);
	count(out, "resends", trace_resends(r));
	count(out, "timeouts", r->timeouts);
	count(out, "RNR NAKs", r->rnr_naks);
	count(out, "sequence NAKs", r->sequence_naks);
	cell(out, "time lost", "", trace_duration(trace_lost_ns(r), text));
	fprintf(out, "<td class=\"word%s\" data-name=\"verdict\">",
		r->verdict < ANALYZER_PITFALLS_END ? " bad" : "");
	if (detailed)
		fprintf(out, "<a href=\"#flow%u\">%s</a></td></tr>\n", r->number,
			analyzer_kind_name(r->verdict));
	else
		fprintf(out, "%s</td></tr>\n", analyzer_kind_name(r->verdict));
}

/* Calls `each` for the shown flows; *detailed tells those with details, the first of them. */
static unsigned flows(FILE *out, const struct trace_report *t,
		      void (*each)(FILE *out, const struct trace_report *t,
				   const struct analyzer_result *r, bool detailed))
{
	unsigned detailed = 0;

	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++) {
		const struct analyzer_result *r = analyzer_flow(t->analyzer, i);
		bool wanted = trace_is_detailed(t, r) || t->ladder == r->number;

		if (!trace_is_shown(t, r) && t->ladder != r->number)
			continue;
		detailed += wanted;
		each(out, t, r, wanted && (detailed <= TRACE_DETAILED_MAX || t->ladder == r->number));
	}
	return detailed;
}

static void table(FILE *out, const struct trace_report *t)
{
	static const char *const heads[] = { "requester", "responder", "queue pairs", "requests", "resends",
					     "timeouts", "RNR NAKs", "sequence NAKs", "time lost",
					     "verdict" };

	if (!analyzer_flows(t->analyzer))
		return;
	fputs("<table class=\"flows\"><thead><tr><th scope=\"col\">flow</th>", out);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		fprintf(out, "<th scope=\"col\"%s>%s</th>", i < 3 || i == 9 ? " class=\"word\"" : "",
			heads[i]);
	fputs("</tr></thead><tbody>\n", out);
	flows(out, t, flow_row);
	fputs("</tbody></table>\n", out);
}

static void causes(FILE *out, const struct analyzer_result *r)
{
	char time[TRACE_TEXT_MAX];

	if (!trace_resends(r))
		return;
	fputs("<h3>Time lost by cause</h3><table><thead><tr><th scope=\"col\">cause</th>"
	      "<th scope=\"col\">packets sent again</th><th scope=\"col\">time lost</th></tr></thead><tbody>",
	      out);
	for (int i = 0; i < ANALYZER_TRIGGERS; i++)
		if (r->resends[i])
			fprintf(out, "<tr><td class=\"word\">%s</td><td>%ju</td><td>%s</td></tr>",
				analyzer_trigger_name((enum analyzer_trigger)i),
				(uintmax_t)r->resends[i], trace_duration(r->lost_ns[i], time));
	fprintf(out, "</tbody></table>\n<p>%ju bytes on the wire, %ju of payload that count once.</p>\n",
		(uintmax_t)r->wire_bytes, (uintmax_t)r->good_bytes);
}

static void figure(FILE *out, const struct trace_report *t, const struct analyzer_result *r)
{
	const struct analyzer_ladder *l = analyzer_ladder(t->analyzer, r->number);

	if (t->ladder && t->ladder != r->number)
		return;
	if (!l) {
		fprintf(out, "<p class=\"muted\">The packets of this flow were not kept: the first %u flows "
			"have a diagram. --ladder %u draws this one.</p>\n", ANALYZER_LADDERS_MAX, r->number);
		return;
	}
	fputs("<figure>", out);
	trace_svg(out, t, r);
	fprintf(out, "<figcaption>Packets %s: at the left the time in seconds, at the right the number "
		"in the capture. Shaded: a pending period. Distances are not to scale; where the lines are "
		"broken, no packet came for the time that is written there.</figcaption></figure>\n",
		l->ending ? "around the first stall" : "at the end of the capture");
}

static void say_item(void *arg, const char *line)
{
	report_html(arg, "<li>%s</li>\n", line);
}

static void say_doubt(void *arg, const char *line)
{
	report_html(arg, "<li>not judged: %s</li>\n", line);
}

static void details(FILE *out, const struct trace_report *t, const struct analyzer_result *r,
		    bool detailed)
{
	char text[512];

	if (!detailed)
		return;
	trace_sentence(r, text, sizeof(text));
	fprintf(out, "<section><h2 id=\"flow%u\">Flow %u: %s</h2>\n", r->number, r->number,
		analyzer_kind_name(r->verdict));
	report_html(out, "<p>%s</p>\n<ul>\n", text);
	trace_lines_evidence(t, r, say_item, out);
	trace_lines_waits(r, say_item, out);
	trace_lines_gaps(r, say_item, out);
	fputs("</ul>\n", out);
	if (*analyzer_kind_advice(r->verdict))
		report_html(out, "<p><strong>What to do:</strong> %s</p>\n",
			    analyzer_kind_advice(r->verdict));
	causes(out, r);
	figure(out, t, r);
	fputs("</section>\n", out);
}

static void say_nothing(void *arg, const char *line)
{
}

static void whole(FILE *out, const struct trace_report *t)
{
	char text[300];

	if (!analyzer_totals(t->analyzer)->pages && !t->capture->corrupt &&
	    !trace_doubts(t, say_nothing, NULL))
		return;
	fputs("<section><h2>The capture as a whole</h2><ul>\n", out);
	trace_lines_pages(t, say_item, out);
	trace_doubts(t, say_doubt, out);
	if (t->capture->corrupt) {
		trace_damage(t, text, sizeof(text));
		report_html(out, "<li>%s; the packets before it were analysed</li>\n", text);
	}
	fputs("</ul></section>\n", out);
}

static void write_page(FILE *out, const struct trace_report *t)
{
	unsigned detailed;

	begin(out, t);
	table(out, t);
	detailed = flows(out, t, details);
	if (detailed > TRACE_DETAILED_MAX)
		fprintf(out, "<p>%u more flows with findings: --flow N shows one.</p>\n",
			detailed - TRACE_DETAILED_MAX);
	whole(out, t);
	fputs("</body></html>\n", out);
}

int trace_page(const struct trace_report *t, const char *path, bool (*stopped)(void))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int error = out ? 0 : -ENOMEM;

	if (out) {
		write_page(out, t);
		error = fclose(out) ? -ENOMEM : 0;
	}
	if (!error)
		error = replace_file(path, text, size, stopped);
	free(text);
	if (error && error != -EINTR)
		fprintf(stderr, "busbar trace: the page %s cannot be written: %s\n",
			strcmp(path, "-") ? path : "for standard output", strerror(-error));
	return error;
}
