/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns gnuplot's SVG into a part of a page; see svg.h. */
#include "bench/report/svg.h"

#include <errno.h>
#include <string.h>

#include "bench/report/plot.h"
#include "bench/report/text.h"

/*
 * The hues of Okabe and Ito, which people with any kind of colour vision tell apart; darker
 * on a light page, so that thin lines keep a contrast of at least 3 to 1.
 */
#define LIGHT "--page:#ffffff;--box:#ffffff;--text:#1a1a1a;--muted:#5a5a5a;--grid:#d8d8d8;" \
	"--reference:#7a3e9d;--warn:#b3261e;--c1:#0067a8;--c2:#c04f00;--c3:#00835f;" \
	"--c4:#b0508a;--c5:#9a6700;--c6:#2f86b7;"
#define DARK "--page:#16181c;--box:#16181c;--text:#e8e8e8;--muted:#a8a8a8;--grid:#3c4048;" \
	"--reference:#c9a2f0;--warn:#ff8a80;--c1:#6cb8f0;--c2:#ff9d5c;--c3:#2fd0a0;" \
	"--c4:#e79cc6;--c5:#e6c14a;--c6:#9fdcff;"

void svg_write_colours(FILE *out, const char *selector)
{
	fprintf(out, "%s{" LIGHT "}@media(prefers-color-scheme:dark){%s{" DARK "}}", selector,
		selector);
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Writes the element `svg` anew and returns what is behind gnuplot's. */
static const char *open_svg(FILE *out, const char *picture, const struct svg_texts *t)
{
	const char *svg = strstr(picture, "<svg"), *end = svg ? strchr(svg, '>') : NULL;
	const char *box = svg ? strstr(svg, "viewBox=\"") : NULL;
	int width, height;

	if (!end || !box || box > end ||
	    sscanf(box, "viewBox=\"0 0 %d %d\"", &width, &height) != 2)
		return NULL;
	fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"%s-t %s-d\"",
		width, height, t->id, t->id);
	if (t->alone)
		fprintf(out, " xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\"",
			width, height);
	fprintf(out, ">\n<title id=\"%s-t\">", t->id);
	report_text_html(out, t->title);
	fprintf(out, "</title>\n<desc id=\"%s-d\">", t->id);
	report_text_html(out, t->description);
	fputs("</desc>\n", out);
	if (t->alone) {
		fputs("<style>", out);
		svg_write_colours(out, ":root");
		fputs("</style>\n<rect width=\"100%\" height=\"100%\" "
		      "style=\"fill:var(--page)\"/>\n", out);
	}
	return end + 1;
}

/* "rgb(  1,   2,   3)", or a colour's name in quotes. Returns the bytes taken, 0: it is
 * something else. */
static size_t put_colour(FILE *out, const char *s)
{
	int red, green, blue, length = 0;
	const char *property;

	if (begins(s, "'black'") || begins(s, "\"black\"")) {
		fprintf(out, "%cvar(--text)%c", *s, *s);
		return strlen("'black'");
	}
	/* What gnuplot takes for the ground. */
	if (begins(s, "'white'") || begins(s, "\"white\"")) {
		fprintf(out, "%cvar(--page)%c", *s, *s);
		return strlen("'white'");
	}
	if (!begins(s, "rgb(") ||
	    sscanf(s, "rgb( %d , %d , %d )%n", &red, &green, &blue, &length) != 3 || !length)
		return 0;
	property = plot_role_property(red, green, blue);
	if (property)
		fprintf(out, "var(%s)", property);
	else
		fprintf(out, "rgb(%d,%d,%d)", red, green, blue);
	return (size_t)length;
}

/* Attributes with an id, or that point at one. */
static size_t put_id(FILE *out, const char *s, const char *id)
{
	static const struct { const char *old, *new; } forms[] = {
		{ " xlink:href='#", " href='#" }, { " xlink:href=\"#", " href=\"#" },
		{ " id=\"", " id=\"" }, { " id='", " id='" }, { "url(#", "url(#" },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (!begins(s, forms[i].old))
			continue;
		fprintf(out, "%s%s-", forms[i].new, id);
		return strlen(forms[i].old);
	}
	return 0;
}

/* The length of an element that is left out: gnuplot's own title and description. */
static size_t left_out(const char *s)
{
	static const struct { const char *open, *close; } elements[] = {
		{ "<title>", "</title>" }, { "<desc>", "</desc>" },
	};

	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
		const char *end = begins(s, elements[i].open) ?
					  strstr(s, elements[i].close) : NULL;

		if (end)
			return (size_t)(end - s) + strlen(elements[i].close);
	}
	return 0;
}

int svg_write(FILE *out, const char *picture, const struct svg_texts *texts)
{
	const char *at = open_svg(out, picture, texts);
	bool in_tag = false;

	if (!at)
		return -EBADMSG;
	while (*at) {
		size_t n = in_tag ? put_colour(out, at) : left_out(at);

		if (!n && in_tag)
			n = put_id(out, at, texts->id);
		if (n) {
			at += n;
			continue;
		}
		/* In a text '>' stands for itself, '<' never does. */
		in_tag = *at == '<' ? true : *at == '>' ? false : in_tag;
		putc(*at++, out);
	}
	return 0;
}
