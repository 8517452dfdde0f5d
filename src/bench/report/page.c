/* SPDX-License-Identifier: BSD-2-Clause */
/* The page around the figures; see page.h. */
#define LOG_ROOM "bench/report"
#include "bench/report/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/gnuplot.h"
#include "bench/report/svg.h"
#include "bench/report/table.h"
#include "bench/report/text.h"
#include "util/container_of.h"
#include "util/log.h"

static const char style[] =
	"*{box-sizing:border-box}"
	"body{margin:0 auto;padding:1rem;max-width:84rem;background:var(--page);"
	"color:var(--text);font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}"
	"h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.25rem;line-height:1.3;"
	"margin-top:2.5rem;border-top:1px solid var(--grid);padding-top:1rem}"
	"h3{font-size:1rem;margin:1rem 0 0}figure h3{margin:0}"
	"h3 span,.muted{color:var(--muted);font-weight:normal}"
	"h3 span{display:block}"
	".figures{display:grid;gap:2rem;margin-top:1.5rem;"
	"grid-template-columns:repeat(auto-fit,minmax(min(100%,32rem),1fr))}"
	"figure{margin:0;min-width:0}figure svg{display:block;width:100%;height:auto;"
	"max-width:46rem}"
	".scroll{overflow-x:auto;max-width:100%;margin:.5rem 0}"
	"table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}"
	"th,td{padding:.2rem .6rem;border-bottom:1px solid var(--grid);text-align:right;"
	"white-space:nowrap}"
	"th:first-child{text-align:left}td:first-child{text-align:left}"
	".facts th,.facts td{text-align:left;white-space:normal;vertical-align:top}"
	"code{font-size:.85rem;overflow-wrap:anywhere;background:var(--grid);"
	"padding:.1rem .3rem;border-radius:.2rem}"
	"pre{white-space:pre-wrap;overflow-wrap:anywhere}"
	"summary{cursor:pointer}summary:focus-visible{outline:2px solid var(--c1)}"
	"nav ul{columns:18rem;padding-left:1.2rem}nav li{break-inside:avoid}a{color:var(--c1)}"
	".bad{color:var(--warn)}"
	"@media print{details:not([open])>*{display:block}}";

int page_figure_begin(struct page *p, struct drawing *d)
{
	*d = (struct drawing){ .figure.floor_ns = p->report->floor_ns };
	d->figure.script = open_memstream(&d->script, &d->script_size);
	d->figure.description = open_memstream(&d->description, &d->description_size);
	if (d->figure.script && d->figure.description)
		return 0;
	if (d->figure.script)
		fclose(d->figure.script);
	if (d->figure.description)
		fclose(d->figure.description);
	free(d->script);
	free(d->description);
	return -ENOMEM;
}

/* The figure as a file of its own, named after its number. */
static void write_alone(struct page *p, const char *picture, const struct svg_texts *texts)
{
	struct svg_texts alone = *texts;
	char *path = NULL;
	FILE *f = NULL;
	bool failed;

	alone.alone = true;
	if (asprintf(&path, "%s/figure-%03zu.svg", p->svg_dir, p->number) >= 0)
		f = fopen(path, "we");
	failed = !f || svg_write(f, picture, &alone);
	if ((f && fclose(f)) || failed) {
		p->failed++;
		log_error("file %s cannot be written: %s", path ? path : "of a figure",
			  strerror(errno));
	}
	free(path);
}

static int draw(struct page *p, struct drawing *d, const char *id, const char *title,
		const char *what)
{
	struct svg_texts texts = { .id = id, .description = d->description };
	char *picture = NULL, *both = NULL;
	int ret = report_gnuplot_run(what, d->script, d->script_size, &picture);

	if (ret == -EINTR)
		return ret;
	if (!ret && asprintf(&both, "%s (%s)", title, what) < 0)
		both = NULL;
	texts.title = both ? both : title;
	if (!ret) {
		ret = svg_write(p->out, picture, &texts);
		if (ret)
			log_error("figure '%s': gnuplot wrote no picture", what);
	}
	if (ret) {
		p->failed++;
		fputs("<p class=\"bad\">This figure could not be drawn; the log of the "
		      "command that made this report says why.</p>\n", p->out);
	} else {
		p->figures++;
		if (p->svg_dir)
			write_alone(p, picture, &texts);
	}
	free(both);
	free(picture);
	return 0;
}

int page_figure_draw(struct page *p, struct drawing *d, const char *title, const char *what)
{
	bool failed = fclose(d->figure.script) != 0;
	int ret = 0;
	char id[24];

	failed |= fclose(d->figure.description) != 0;
	p->number++;
	snprintf(id, sizeof(id), "f%zu", p->number);
	fprintf(p->out, "<figure id=\"%s\">\n", id);
	report_html(p->out, "<h3>%s<span>%s</span></h3>\n", title, what);
	if (failed)
		ret = -ENOMEM;
	else if (p->draw)
		ret = draw(p, d, id, title, what);
	if (!ret)
		report_html(p->out, "<figcaption>\n<p class=\"muted\">%s</p>\n",
			    d->description);
	free(d->script);
	free(d->description);
	return ret;
}

static const char *command_of(const struct report_case *c)
{
	return c->command ? c->command : "";
}

void page_figure_end(struct page *p, struct report_case *const *cases, size_t count)
{
	size_t shown = 0;

	for (size_t i = 0; i < count; i++) {
		const char *command = command_of(cases[i]);
		size_t j = 0;

		while (j < i && strcmp(command_of(cases[j]), command))
			j++;
		if (j < i || !*command)
			continue;
		if (!shown)
			fputs("<p>Repeat: ", p->out);
		else if (shown == 1)
			fputs("</p>\n<details><summary>Commands of the other cases</summary>\n"
			      "<pre>", p->out);
		report_html(p->out, shown ? "%s\n" : "<code>%s</code>", command);
		shown++;
	}
	if (shown)
		fputs(shown == 1 ? "</p>\n" : "</pre></details>\n", p->out);
	fputs("</figcaption>\n</figure>\n", p->out);
}

static void contents(struct page *p)
{
	const struct report *r = p->report;

	fputs("<nav aria-label=\"contents\"><ul>\n", p->out);
	for (size_t i = 0; i < r->group_count; i++) {
		const struct report_group *g = &r->groups[i];

		report_html(p->out, "<li><a href=\"#g%zu\">%s%s%s</a></li>\n", i, g->scenario,
			    *g->scenario ? ": " : "", g->question ? g->question : g->kind);
	}
	fputs("</ul></nav>\n", p->out);
}

static void begin(struct page *p)
{
	const char *title = p->report->title ? p->report->title : "benchmark";

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      /* Nothing from elsewhere, should a text ever not be escaped. */
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'\">\n", p->out);
	report_html(p->out, "<title>busbar report: %s</title>\n", title);
	fputs("<style>\n", p->out);
	svg_write_colours(p->out, ":root");
	fprintf(p->out, "%s\n</style>\n</head>\n<body>\n", style);
	report_html(p->out, "<h1>Report: %s</h1>\n", title);
}

int page_write(struct page *p)
{
	const struct report *r = p->report;

	begin(p);
	page_head(p);
	contents(p);
	for (size_t i = 0; i < r->group_count; i++) {
		const struct report_group *g = &r->groups[i];
		int ret;

		report_html(p->out, "<section id=\"g%zu\">\n<h2>%s%s%s</h2>\n", i, g->scenario,
			    *g->scenario ? ": " : "", g->question ? g->question : g->kind);
		ret = page_group(p, g);
		if (ret)
			return ret;
		fputs("</section>\n", p->out);
	}
	report_html(p->out, "<footer class=\"muted\"><p>Made by <code>%s</code></p></footer>\n"
		    "</body>\n</html>\n", p->command);
	return ferror(p->out) ? -EIO : 0;
}
