/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines by table; see options.h. getopt_long() takes them apart. */
#include "util/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "util/nearest.h"

#define NAME_MAX_BYTES 32
#define NO_LETTER 256 /* what getopt_long() returns for options without one, plus the index */
/* The help's columns. */
#define WIDTH 90
#define LEFT_MAX 26

static const struct option_entry help_entry = { .text = "-h, --help: this text" };

/* ---- forms ---- */

struct form {
	char letter;               /* '\0': none */
	char name[NAME_MAX_BYTES]; /* "": none */
	const char *argument;      /* of "[=FILE]": "FILE]" */
	size_t argument_length;    /* 0: none */
	bool optional;
};

static size_t form_length(const char *text)
{
	const char *end = strstr(text, ": ");

	return end ? (size_t)(end - text) : strlen(text);
}

static void read_form(const char *text, struct form *f)
{
	const char *end = text + form_length(text);
	size_t length;

	*f = (struct form){ 0 };
	if (text[1] != '-') {
		f->letter = text[1];
		text += 2;
		text += 2 * !strncmp(text, ", ", 2);
	}
	if (!strncmp(text, "--", 2)) {
		length = strcspn(text += 2, " [=:");
		snprintf(f->name, sizeof(f->name), "%.*s", (int)length, text);
		text += length;
	}
	f->optional = *text == '[';
	text += strspn(text, " [=");
	f->argument = text;
	f->argument_length = text < end ? (size_t)(end - text) : 0;
}

/* ---- messages ---- */

static const char *program_of(const struct options *o, char **argv)
{
	return o->program ? o->program : argv[0];
}

static void print_synopsis(const struct options *o, const char *program, FILE *out)
{
	const char *before = "usage:";

	for (const char *at = o->synopsis, *next; *at; at = *next ? next + 1 : next, before = "") {
		next = strchrnul(at, '\n');
		if (*at == ' ')
			fprintf(out, "      %*s%.*s\n", (int)strlen(program) + 1, "", (int)(next - at), at);
		else
			fprintf(out, "%-6s %s%s%.*s\n", before, program, *at == '\n' ? "" : " ",
				(int)(next - at), at);
	}
	if (!*o->synopsis)
		fprintf(out, "usage: %s\n", program);
}

int options_usage(const struct options *o, char **argv)
{
	print_synopsis(o, program_of(o, argv), stderr);
	return OPTIONS_WRONG;
}

int options_refuse(const struct option_given *g, const char *why, ...)
{
	va_list args;

	fprintf(stderr, "%s: %s%s%s: ", g->program, g->name, g->value ? " " : "", g->value ? g->value : "");
	va_start(args, why);
	vfprintf(stderr, why, args);
	va_end(args);
	fputc('\n', stderr);
	return OPTIONS_WRONG;
}

int options_wrong(const struct options *o, char **argv, const char *why, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_of(o, argv));
	va_start(args, why);
	vfprintf(stderr, why, args);
	va_end(args);
	fputc('\n', stderr);
	return OPTIONS_WRONG;
}

/* ---- help ---- */

static unsigned left_width(const struct option_entry *e)
{
	return (e->text[1] == '-' ? 6 : 2) + (unsigned)form_length(e->text) + 2;
}

/* Prints a text from column `left` on, and breaks its lines at blanks. */
static void print_wrapped(const char *text, unsigned left, FILE *out)
{
	size_t column = left;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (column + word > WIDTH && column > left) {
			fprintf(out, "\n%*s", (int)left, "");
			column = left;
		}
		fwrite(text, 1, word, out);
		text += word;
		column += word;
		if (*text == ' ') {
			text++;
			if (column + 1 + strcspn(text, " ") <= WIDTH) {
				fputc(' ', out);
				column++;
			} else {
				column = WIDTH;
			}
		}
	}
	fputc('\n', out);
}

static void print_entry(const struct option_entry *e, unsigned left, FILE *out)
{
	unsigned width = left_width(e);
	size_t length = form_length(e->text);

	fprintf(out, "%s%.*s", e->text[1] == '-' ? "      " : "  ", (int)length, e->text);
	if (width > left)
		fprintf(out, "\n%*s", (int)left, "");
	else
		fprintf(out, "%*s", (int)(left - width + 2), "");
	print_wrapped(e->text + length + 2, left, out);
}

static void print_help(const struct options *o, const char *program)
{
	unsigned left = left_width(&help_entry), width;

	for (const struct option_entry *e = o->table; e->text; e++) {
		width = left_width(e);
		if (width > left && width <= LEFT_MAX)
			left = width;
	}
	print_synopsis(o, program, stdout);
	printf("\n%s\n", o->about);
	for (const struct option_entry *e = o->table; e->text; e++)
		print_entry(e, left, stdout);
	print_entry(&help_entry, left, stdout);
	if (o->end)
		printf("\n%s", o->end);
	if (o->print_more)
		o->print_more();
}

/* ---- values ---- */

static void store(const struct option_given *g, uint64_t value)
{
	void *member = option_member(g);

	switch (g->entry->size) {
	case 1: *(uint8_t *)member = (uint8_t)value; break;
	case 2: *(uint16_t *)member = (uint16_t)value; break;
	case 4: *(uint32_t *)member = (uint32_t)value; break;
	default: *(uint64_t *)member = value; break;
	}
}

static int refuse_number(const struct option_given *g, const char *what)
{
	const struct option_entry *e = g->entry;

	if (!isfinite(e->min))
		return options_refuse(g, "expected %s", what);
	if (e->min == 1 && e->max >= INT32_MAX)
		return options_refuse(g, "expected a positive number");
	if (!isfinite(e->max))
		return options_refuse(g, "expected %s from %.15g on", what, e->min);
	return options_refuse(g, "expected %s from %.15g to %.15g", what, e->min, e->max);
}

static int take_whole(const struct option_given *g)
{
	bool hex = g->value[0] == '0' && (g->value[1] | 0x20) == 'x';
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(g->value, &end, hex ? 16 : 10);
	if (*g->value < '0' || *g->value > '9' || *end || errno || (double)value < g->entry->min ||
	    (double)value > g->entry->max)
		return refuse_number(g, "a whole number");
	store(g, value);
	return OPTIONS_GO_ON;
}

static int take_real(const struct option_given *g)
{
	bool seconds = g->entry->kind == OPTION_KIND_SECONDS;
	char *end;
	double value = strtod(g->value, &end);

	if (end == g->value || *end || !isfinite(value) || value < g->entry->min || value > g->entry->max)
		return refuse_number(g, seconds ? "seconds" : "a number");
	if (seconds)
		store(g, (uint64_t)(value * 1e9));
	else
		*(double *)option_member(g) = value;
	return OPTIONS_GO_ON;
}

/* "a|b|c]" is shown as "a, b or c". */
static int refuse_word(const struct option_given *g, const char *words)
{
	char shown[200];
	size_t used = 0, rest = strcspn(words, "]:");

	while (rest && used < sizeof(shown) - 4) {
		size_t word = strcspn(words, "|]:");
		bool last = word == rest;

		used += (size_t)snprintf(shown + used, sizeof(shown) - used, "%.*s%s", (int)word, words,
					 last ? "" : memchr(words + word + 1, '|', rest - word - 1) ? ", " :
												      " or ");
		words += word + !last;
		rest -= word + !last;
	}
	return options_refuse(g, "expected %s", shown);
}

/* The words are the argument of the form, "a|b|c". */
static int take_choice(const struct option_given *g, const char *words)
{
	size_t length = strlen(g->value);
	uint64_t index = 0;

	for (const char *at = words, *end = words + strcspn(words, "]:"); at < end; index++) {
		size_t word = strcspn(at, "|]:");

		if (word == length && !strncmp(at, g->value, word)) {
			store(g, index);
			return OPTIONS_GO_ON;
		}
		at += word + 1;
	}
	return refuse_word(g, words);
}

static int take(const struct option_given *g, const struct form *f)
{
	const struct option_entry *e = g->entry;
	void *member = option_member(g);

	switch ((enum option_kind)e->kind) {
	case OPTION_KIND_TEXT:
		*(const char **)member = g->value ? g->value : "";
		return OPTIONS_GO_ON;
	case OPTION_KIND_WHOLE:
		return take_whole(g);
	case OPTION_KIND_REAL:
	case OPTION_KIND_SECONDS:
		return take_real(g);
	case OPTION_KIND_CHOICE:
		return take_choice(g, f->argument);
	case OPTION_KIND_CALL:
		return e->call(g);
	case OPTION_KIND_FLAG:
		store(g, e->size == sizeof(unsigned) ? *(unsigned *)member + 1u : 1);
	}
	return OPTIONS_GO_ON;
}

/* ---- the command line ---- */

struct parser {
	const struct options *o;
	const char *program;
	unsigned count; /* of `forms`, the last of which is that of --help */
	struct form forms[OPTIONS_MAX + 1];
	struct option longs[OPTIONS_MAX + 2];
	char letters[3 * OPTIONS_MAX + 6];
};

static void add_form(struct parser *p, const char *text)
{
	struct form *f = &p->forms[p->count];
	int argument;

	read_form(text, f);
	argument = !f->argument_length ? no_argument : f->optional ? optional_argument : required_argument;
	if (f->letter)
		sprintf(p->letters + strlen(p->letters), "%c%.*s", f->letter, argument, "::");
	/* A name that nobody can type keeps the indices the same. */
	p->longs[p->count] = (struct option){ *f->name ? f->name : "=", argument, NULL,
					      NO_LETTER + (int)p->count };
	p->count++;
}

static void prepare(struct parser *p, const struct options *o, char **argv)
{
	p->o = o;
	p->program = program_of(o, argv);
	strcpy(p->letters, o->in_order ? "+:" : ":");
	for (const struct option_entry *e = o->table; e->text && p->count < OPTIONS_MAX; e++)
		add_form(p, e->text);
	add_form(p, help_entry.text);
}

/* The index of what getopt_long() has returned; `count` if it is none of the options. */
static unsigned index_of(const struct parser *p, int opt)
{
	unsigned i = 0;

	if (opt >= NO_LETTER)
		return (unsigned)opt - NO_LETTER;
	while (i < p->count && (!opt || p->forms[i].letter != opt))
		i++;
	return i;
}

/* "--name", or "-n" if there is no such name. */
static const char *name_of(const struct form *f, char text[NAME_MAX_BYTES + 4])
{
	if (*f->name)
		snprintf(text, NAME_MAX_BYTES + 4, "--%s", f->name);
	else
		snprintf(text, NAME_MAX_BYTES + 4, "-%c", f->letter);
	return text;
}

/* getopt_long() knows no such option, or more than one that begins so. */
static void report_unknown(const struct parser *p, const char *word)
{
	const char *name = word + 2;
	size_t length = strcspn(name, "=");
	char given[NAME_MAX_BYTES], hint[100];
	struct nearest near;

	if (optopt) {
		fprintf(stderr, "%s: unrecognized option '-%c'\n", p->program, optopt);
		return;
	}
	snprintf(given, sizeof(given), "%.*s", (int)length, name);
	near = NEAREST(given);
	for (unsigned i = 0; i < p->count; i++) {
		if (!strncmp(p->forms[i].name, name, length)) {
			fprintf(stderr, "%s: option '--%s' is the beginning of more than one\n", p->program, given);
			return;
		}
		if (*p->forms[i].name)
			nearest_try(&near, p->forms[i].name);
	}
	fprintf(stderr, "%s: unrecognized option '--%.*s'%s\n", p->program, (int)length, name,
		nearest_hint(&near, hint, sizeof(hint)));
}

static int report(const struct parser *p, int opt, char **argv)
{
	unsigned i = index_of(p, optopt);
	char name[NAME_MAX_BYTES + 4];

	if (i == p->count)
		report_unknown(p, argv[optind - 1]);
	else if (opt == ':')
		fprintf(stderr, "%s: option %s needs an argument: %.*s\n", p->program,
			name_of(&p->forms[i], name), (int)p->forms[i].argument_length, p->forms[i].argument);
	else
		fprintf(stderr, "%s: option %s takes no argument\n", p->program, name_of(&p->forms[i], name));
	return options_usage(p->o, argv);
}

static int count_operands(const struct options *o, int argc, char **argv)
{
	int count = argc - optind;

	if (count < o->operands_min)
		return options_usage(o, argv);
	if (count <= o->operands_max || o->any_operands)
		return OPTIONS_GO_ON;
	options_wrong(o, argv, o->operands_max ? "%s: one operand too many" : "%s: expected nothing but options",
		      argv[optind + o->operands_max]);
	return options_usage(o, argv);
}

int options_parse(const struct options *o, int argc, char **argv, void *to, uint64_t *given)
{
	struct parser p = { .count = 0 };
	int opt, status;

	prepare(&p, o, argv);
	if (given)
		*given = 0;
	opterr = 0;
	optind = 0; /* getopt_long() begins anew */
	while ((opt = getopt_long(argc, argv, p.letters, p.longs, NULL)) != -1) {
		char name[NAME_MAX_BYTES + 4];
		unsigned i = opt == '?' || opt == ':' ? p.count : index_of(&p, opt);

		if (i == p.count)
			return report(&p, opt, argv);
		if (i == p.count - 1) {
			print_help(o, p.program);
			return OPTIONS_END;
		}
		status = take(&(struct option_given){ &o->table[i], p.program, name_of(&p.forms[i], name),
						      optarg, to }, &p.forms[i]);
		if (status != OPTIONS_GO_ON)
			return status;
		if (given)
			*given |= UINT64_C(1) << i;
	}
	return count_operands(o, argc, argv);
}
