/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of a command in one table, from which come its parser, the messages of the
 * parser and the text of --help.
 *
 *	static const struct option_entry table[] = {
 *		{ "-f, --format FMT: format of both files", OPTION_TEXT(struct settings, format) },
 *		{ "--lanes N: data lanes of each port (8)", OPTION_WHOLE(struct settings, lanes, 1, 15) },
 *		{ "-j, --json: print JSON", OPTION_FLAG(struct settings, json) },
 *		{ .text = NULL },
 *	};
 *
 * What options_parse() accepts is what getopt_long() accepts: options behind operands, letters
 * together, "--name=VALUE", the beginning of a name, "--" before operands.
 */
#ifndef UTIL_OPTIONS_H
#define UTIL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Options in a table at most, without --help. */
#define OPTIONS_MAX 40

/* What options_parse() returns; the last two are exit statuses. */
enum {
	OPTIONS_GO_ON = -1, /* optind is the index of the first operand */
	OPTIONS_END = 0,    /* the help was printed, or a callback has done what was asked for */
	OPTIONS_WRONG = 2,  /* the command line is wrong, which was reported */
};

enum option_kind {
	OPTION_KIND_FLAG,    /* bool: true. unsigned: how often the option was given */
	OPTION_KIND_TEXT,    /* const char *, borrowed from argv; "": an optional argument was not given */
	OPTION_KIND_WHOLE,   /* an unsigned type; decimal, or hexadecimal behind 0x */
	OPTION_KIND_REAL,    /* double, finite */
	OPTION_KIND_SECONDS, /* uint64_t of nanoseconds; the value and its range are seconds */
	OPTION_KIND_CHOICE,  /* an unsigned type or bool: the index of the word */
	OPTION_KIND_CALL,
};

/* An option of a command line, for callbacks. */
struct option_given {
	const struct option_entry *entry;
	const char *program;
	const char *name;  /* "--format"; "-f" if it has no other name */
	const char *value; /* NULL: it takes none, or an optional one was not given */
	void *to;          /* the structure that options_parse() fills */
};

struct option_entry {
	/*
	 * The option's form as the help shows it, then ": " and what it means, which the help wraps
	 * to the width of its column. Forms: "-n, --name NAME", "--seed N", "-q". "--http[=PORT]":
	 * the argument is optional. "ORIGIN...": a callback collects the values of several such
	 * options; of all others the last one counts. "text|json|none": the words of a choice, from
	 * index 0. NULL: the end of the table.
	 */
	const char *text;
	union {
		struct {
			double min, max; /* inclusive; may be infinite */
		};
		struct {
			/* OPTIONS_GO_ON, or the status to end with; an error was reported. */
			int (*call)(const struct option_given *g);
			const void *data;
		};
	};
	uint16_t offset; /* of the member in the structure that options_parse() fills */
	uint8_t size;    /* of the member */
	uint8_t kind;    /* enum option_kind */
};

/* `ok` is checked when the table is compiled. */
#define OPTION_MEMBER(type, member, ok) \
	.offset = offsetof(type, member), \
	.size = sizeof(((type *)0)->member) + 0 * sizeof(char[(ok) ? 1 : -1])
#define OPTION_IS(type, member, wanted) \
	__builtin_types_compatible_p(__typeof__(((type *)0)->member), wanted)

#define OPTION_FLAG(type, member) \
	OPTION_MEMBER(type, member, OPTION_IS(type, member, bool) || OPTION_IS(type, member, unsigned)), \
	.kind = OPTION_KIND_FLAG
#define OPTION_TEXT(type, member) \
	OPTION_MEMBER(type, member, OPTION_IS(type, member, const char *)), .kind = OPTION_KIND_TEXT
#define OPTION_WHOLE(type, member, from, to) \
	OPTION_MEMBER(type, member, !OPTION_IS(type, member, double)), .kind = OPTION_KIND_WHOLE, \
	.min = (from), .max = (to)
#define OPTION_REAL(type, member, from, to) \
	OPTION_MEMBER(type, member, OPTION_IS(type, member, double)), .kind = OPTION_KIND_REAL, \
	.min = (from), .max = (to)
#define OPTION_SECONDS(type, member, from, to) \
	OPTION_MEMBER(type, member, OPTION_IS(type, member, uint64_t)), .kind = OPTION_KIND_SECONDS, \
	.min = (from), .max = (to)
#define OPTION_CHOICE(type, member) OPTION_MEMBER(type, member, 1), .kind = OPTION_KIND_CHOICE
/* The callback alone knows what it is for. */
#define OPTION_CALL(function, ...) .kind = OPTION_KIND_CALL, .call = (function), .data = (__VA_ARGS__)
/* The callback fills the member: option_member(). */
#define OPTION_TAKE(type, member, function) \
	OPTION_MEMBER(type, member, 1), .kind = OPTION_KIND_CALL, .call = (function)

static inline void *option_member(const struct option_given *g)
{
	return (char *)g->to + g->entry->offset;
}

struct options {
	const char *program;  /* in messages, "busbar delivery"; NULL: argv[0] */
	/* What follows the program's name, such as "[OPTIONS] FILE"; one form in a line. A line
	 * that begins with a blank continues the one before. */
	const char *synopsis;
	const char *about;    /* what the command does, with line breaks */
	const struct option_entry *table;
	const char *end;      /* behind the options, with line breaks; NULL: nothing */
	void (*print_more)(void); /* behind all of the help, to standard output; NULL: nothing */
	uint8_t operands_min, operands_max;
	bool any_operands;    /* no upper limit */
	bool in_order;        /* what follows the first operand is operands */
};

/*
 * Takes the options of argv, fills the structure `to` and counts the operands. Of the options
 * that were given, *given has a bit by their index in the table, if `given` is not NULL. --help
 * and -h print the help. An error is reported to standard error, with the synopsis if it is not
 * one of a value.
 */
int options_parse(const struct options *o, int argc, char **argv, void *to, uint64_t *given);

/* Reports that the value of an option is not usable; `why` may be "expected ...".
 * OPTIONS_WRONG. */
int options_refuse(const struct option_given *g, const char *why, ...)
	__attribute__((format(printf, 2, 3)));

/* Reports what is wrong with the command line as a whole. OPTIONS_WRONG. */
int options_wrong(const struct options *o, char **argv, const char *why, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints the synopsis to standard error. OPTIONS_WRONG. */
int options_usage(const struct options *o, char **argv);

#endif
