/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tools share that laboratories know by other names (villas-pipe,
 * villas-hook ...): how they are called, their common options, how they end.
 *
 * Samples go to standard output and everything else to standard error. A tool
 * asks for no huge pages, locks nothing and changes nothing of the machine.
 */
#ifndef CLI_TOOL_H
#define CLI_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "gateway/base/memory.h"
#include "gateway/sample/sample.h"

/* What the log calls the tool: LOG_ROOM of what the tools share. */
extern const char *tool_room;

/* For the option string of getopt(). */
#define TOOL_OPTIONS "d:hV"

/* Samples that a tool has under way at a time. */
#define TOOL_BATCH 64

/*
 * Sets argv[0] to the whole name of the tool, as messages call it ("busbar
 * pipe", "villas-pipe"), and the log to its first level.
 */
void tool_begin(char **argv);

/*
 * The options of every tool, and what getopt() did not know. The exit status
 * when the tool is to end, or -1 to go on.
 */
int tool_option(char **argv, int opt, const char *usage);

/* "usage: NAME ..." from a text that begins behind the name. */
void tool_print_usage(char **argv, const char *usage, FILE *out);

/* An object in lines; the exit status. */
int tool_print_json(char **argv, const json_t *object);

/* The number of option -`opt`; false after saying what is wrong with it. */
bool tool_number(char **argv, int opt, double min, double max, double *value);

/* The types of option -t, "12f3i". False after saying what is wrong. */
bool tool_types(char **argv, const char *text, struct signal_list **out);

/*
 * From here on SIGINT and SIGTERM ask for the end (a second one forces it)
 * and a reader that has gone is an error of write(). 0 or a negative errno.
 */
int tool_catch_signals(void);
/* Asks for the end, from anywhere. `on_stop` is called then, from the signal
 * handler; NULL: none. */
void tool_stop(void);
void tool_on_stop(void (*on_stop)(void));
bool tool_stopping(void);
/* In a signal handler: whether an end was asked for before, and not just now. */
bool tool_means_it(void);
/* Readable once the end is asked for. */
int tool_stop_fd(void);

/*
 * Puts "key.key=value" into an object. The value is JSON where it can be read
 * as such, else a text. `lists`: a key that comes again, and values with commas
 * between them, make a list; else the last one counts. Values that are replaced
 * are kept in array `keep`, when there is one. 0, or -EINVAL after reporting.
 */
int tool_set(char **argv, json_t *object, const char *assignment, bool lists,
	     json_t *keep);

/* Memory that costs nothing until it is used: room for the longest sample. */
extern struct memory_type tool_memory;

#endif
