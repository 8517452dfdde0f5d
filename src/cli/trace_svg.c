/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of a flow as a drawing for a page: the lifelines of requester and responder, an arrow
 * for each packet, pending periods shaded, the lifelines broken at a long silence. Distances are
 * not to scale; each row has its time. Texts have places of their own, so none covers another.
 */
#include "cli/trace_svg.h"

#include "bench/report/text.h"
#include "cli/trace_rows.h"

/* Places from left to right, in units that are pixels on a narrow screen. */
#define WIDTH 380
#define LEFT 88
#define RIGHT 318
#define MIDDLE ((LEFT + RIGHT) / 2)
#define LOST_AT (LEFT + (RIGHT - LEFT) * 3 / 4)
/* Heights. */
#define TOP 60
#define LABEL 16
#define SLOPE 7
#define NOTE 13
#define BETWEEN 5
#define BREAK 30

const char trace_svg_style[] =
	".packets{display:block;width:100%;height:auto;max-width:34rem}"
	".packets text{font:11px system-ui,sans-serif;fill:var(--text)}"
	".packets .time{font:10px ui-monospace,monospace;fill:var(--muted)}"
	".packets .note{font-size:10px;fill:var(--muted)}"
	".packets .lost{fill:var(--warn);font-weight:bold}"
	".packets .silence{font-style:italic;fill:var(--muted)}"
	".packets line,.packets path{fill:none;stroke-width:1.4}"
	".packets .life{stroke:var(--muted)}.packets .request{stroke:var(--c1)}"
	".packets .answer{stroke:var(--c3)}.packets .gone{stroke:var(--warn)}"
	".packets .pending{fill:var(--c2);fill-opacity:.16}";

struct drawing {
	FILE *out;
	const struct trace_report *t;
	const struct trace_row *row;
	unsigned count;
	int top[ANALYZER_LADDER_MAX + 1]; /* of each row; the last one: of what is behind */
};

static int height_of(const struct trace_row *r)
{
	return (r->silence_ns ? BREAK : 0) + LABEL + SLOPE + (int)r->notes * NOTE + BETWEEN;
}

/* Where the arrow of a row begins. */
static int arrow_top(const struct drawing *d, unsigned i)
{
	return d->top[i] + (d->row[i].silence_ns ? BREAK : 0) + LABEL;
}

static void place(struct drawing *d)
{
	d->top[0] = TOP;
	for (unsigned i = 0; i < d->count; i++)
		d->top[i + 1] = d->top[i] + height_of(&d->row[i]);
}

static bool is_pending_after(const struct trace_row *r)
{
	return r->pending || r->opens;
}

static void shade(const struct drawing *d)
{
	for (unsigned i = 0; i < d->count; i++) {
		int from = arrow_top(d, i);
		int to = i + 1 < d->count ? arrow_top(d, i + 1) : d->top[d->count];

		if (is_pending_after(&d->row[i]))
			fprintf(d->out, "<rect class=\"pending\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>",
				LEFT, from, RIGHT - LEFT, to - from);
	}
}

static void lifelines(const struct drawing *d)
{
	static const int at[] = { LEFT, RIGHT };

	for (unsigned k = 0; k < 2; k++) {
		fprintf(d->out, "<path class=\"life\" d=\"M%d %d", at[k], TOP - 6);
		for (unsigned i = 0; i < d->count; i++)
			if (d->row[i].silence_ns) /* a zigzag without a middle */
				fprintf(d->out, "V%dl4 2l-8 3M%d %dl8 3l-4 2", d->top[i] + 6, at[k] - 4,
					d->top[i] + 19);
		fprintf(d->out, "V%d\"/>", d->top[d->count]);
	}
}

static void text(const struct drawing *d, int x, int y, const char *anchor, const char *class,
		 const char *s)
{
	fprintf(d->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor, class);
	report_text_html(d->out, s);
	fputs("</text>", d->out);
}

static void head(const struct drawing *d, const struct analyzer_result *r)
{
	char address[TRACE_TEXT_MAX], line[TRACE_TEXT_MAX + 24];

	text(d, 2, 12, "start", "label", "requester");
	text(d, WIDTH - 2, 12, "end", "label", "responder");
	if (r->paired)
		snprintf(line, sizeof(line), "%s QP 0x%x", trace_address(&r->src, address), r->peer_qpn);
	else
		snprintf(line, sizeof(line), "%s", trace_address(&r->src, address));
	text(d, 2, 26, "start", "time", line);
	snprintf(line, sizeof(line), "%s QP 0x%x", trace_address(&r->dst, address), r->qpn);
	text(d, WIDTH - 2, 40, "end", "time", line);
}

/* From the requester to the responder or back; a lost one ends in a cross. */
static void arrow(const struct drawing *d, const struct trace_row *r, int y)
{
	int from = r->rung->answer ? RIGHT : LEFT, to = r->rung->answer ? LEFT : RIGHT;
	int back = r->rung->answer ? 6 : -6, end = y + SLOPE;

	if (r->lost) {
		fprintf(d->out, "<path class=\"packet gone\" d=\"M%d %dL%d %dm-4 -4l8 8m0 -8l-8 8\"/>",
			from, y, LOST_AT, y + SLOPE * 3 / 4);
		return;
	}
	fprintf(d->out, "<path class=\"packet %s\" d=\"M%d %dL%d %dm%d -4L%d %dl%d 4\"/>",
		r->rung->answer ? "answer" : "request", from, y, to, end, back, to, end, back);
}

static void row(const struct drawing *d, unsigned i)
{
	const struct trace_row *r = &d->row[i];
	char words[TRACE_TEXT_MAX], line[TRACE_TEXT_MAX + 24];
	int y = arrow_top(d, i);

	if (r->silence_ns) {
		snprintf(line, sizeof(line), "%s without a packet", trace_duration(r->silence_ns, words));
		text(d, MIDDLE, d->top[i] + 18, "middle", "silence", line);
	}
	text(d, LEFT - 7, y + 2, "end", "time", trace_when(d->t, r->rung->when_ns, words));
	text(d, MIDDLE, y - 4, "middle", "label", r->label);
	snprintf(line, sizeof(line), "#%ju", (uintmax_t)r->rung->number);
	text(d, WIDTH - 2, y + 2, "end", "time", line);
	arrow(d, r, y);
	for (unsigned k = 0; k < r->notes; k++)
		text(d, MIDDLE, y + SLOPE + (int)(k + 1) * NOTE - 2, "middle",
		     r->lost && k + 1 == r->notes ? "note lost" : "note", r->note[k]);
}

/* For those who do not see it: each packet that something is noted of, and each silence. */
static void describe(const struct drawing *d)
{
	char words[TRACE_TEXT_MAX];

	for (unsigned i = 0; i < d->count; i++) {
		const struct trace_row *r = &d->row[i];

		if (r->silence_ns)
			report_html(d->out, "%s without a packet. ", trace_duration(r->silence_ns, words));
		if (!r->notes)
			continue;
		fprintf(d->out, "Packet %ju: ", (uintmax_t)r->rung->number);
		report_html(d->out, "%s at %s s", r->label, trace_when(d->t, r->rung->when_ns, words));
		for (unsigned k = 0; k < r->notes; k++)
			report_html(d->out, ", %s", r->note[k]);
		fputs(". ", d->out);
	}
}

void trace_svg(FILE *out, const struct trace_report *t, const struct analyzer_result *r)
{
	static struct trace_row rows[ANALYZER_LADDER_MAX];
	struct drawing d = { .out = out, .t = t, .row = rows };

	d.count = trace_rows(analyzer_ladder(t->analyzer, r->number), rows);
	place(&d);
	fprintf(out, "<svg class=\"packets\" role=\"img\" viewBox=\"0 0 %d %d\" "
		"aria-labelledby=\"t%u d%u\"><title id=\"t%u\">Packets of flow %u</title><desc id=\"d%u\">",
		WIDTH, d.top[d.count] + 4, r->number, r->number, r->number, r->number, r->number);
	describe(&d);
	fputs("</desc>", out);
	head(&d, r);
	shade(&d);
	lifelines(&d);
	for (unsigned i = 0; i < d.count; i++)
		row(&d, i);
	fputs("</svg>\n", out);
}
