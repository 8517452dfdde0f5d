/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of the programs, and their beginning and end. */
#include "common.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_BYTES (1L << 26)
#define MESSAGES_MAX 100000000L
#define WINDOW_MAX 4096L

static void print_help(FILE *f, const struct program *p)
{
	fprintf(f, "usage: mpirun -n %s %s [OPTIONS]\n\n%s\n\n",
		p->processes ? "2" : "N", p->name, p->summary);
	if (p->option) {
		fprintf(f, "  --%-10s WORD  ", p->option);
		for (size_t i = 0; p->words[i]; i++)
			fprintf(f, "%s%s", i ? ", " : "", p->words[i]);
		fprintf(f, " (%s)\n", p->words[0]);
	}
	fputs("  --size       N     bytes of a message (8)\n"
	      "  --messages   N     messages, windows or operations that are measured (10000)\n"
	      "  --warmup     N     before them (100)\n", f);
	if (p->has_window)
		fputs("  --window     N     messages that are sent before an answer comes (64)\n", f);
	fputs("  --times      FILE  write every measured time there, in ns\n"
	      "  --marks      FILE  stop before and behind what is measured: each process\n"
	      "                     appends its id to FILE.begin (FILE.end), and goes on when\n"
	      "                     that file has been removed\n"
	      "  --help             this text\n", f);
}

/* Rank 0 says why; all end. */
static _Noreturn void leave(const struct run *r, int status, const char *option,
			    const char *value)
{
	if (!r->rank && option)
		fprintf(stderr, "%s: %s%s%s is not usable, see --help\n", r->program->name,
			option, value ? " " : "", value ? value : "");
	MPI_Finalize();
	exit(status);
}

static bool number(const char *text, long low, long high, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return !errno && end != text && !*end && *out >= low && *out <= high;
}

static bool word_of(const struct program *p, const char *text, int *out)
{
	for (int i = 0; p->words && p->words[i]; i++) {
		if (!strcmp(p->words[i], text)) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool take(struct run *r, int option, const char *value)
{
	long size = 0;
	bool good;

	switch (option) {
	case 's':
		good = number(value, 0, SIZE_MAX_BYTES, &size);
		r->size = (size_t)size;
		return good;
	case 'n': return number(value, 1, MESSAGES_MAX, &r->messages);
	case 'w': return number(value, 0, MESSAGES_MAX, &r->warmup);
	case 'W': return number(value, 1, WINDOW_MAX, &r->window);
	case 'c': return word_of(r->program, value, &r->word);
	case 't':
		r->times = value;
		return true;
	case 'm':
		r->marks = value;
		return true;
	default: return false;
	}
}

static void parse(struct run *r, int argc, char **argv)
{
	const struct program *p = r->program;
	const struct option longs[] = {
		{ "size", required_argument, NULL, 's' },
		{ "messages", required_argument, NULL, 'n' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "times", required_argument, NULL, 't' },
		{ "marks", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ p->has_window ? "window" : p->option ? p->option : NULL, required_argument,
		  NULL, p->has_window ? 'W' : 'c' },
		{ NULL, 0, NULL, 0 },
	};
	int opt, index = 0;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "h", longs, &index)) != -1) {
		if (opt == 'h') {
			if (!r->rank)
				print_help(stdout, p);
			leave(r, 0, NULL, NULL);
		}
		if (!take(r, opt, optarg))
			leave(r, 2, opt == '?' ? argv[optind - 1] : longs[index].name,
			      opt == '?' ? NULL : optarg);
	}
	if (optind < argc)
		leave(r, 2, argv[optind], NULL);
}

void run_begin(struct run *r, const struct program *program, int argc, char **argv)
{
	char why[20];

	*r = (struct run){ .program = program, .size = 8, .messages = 10000, .warmup = 100,
			   .window = 64 };
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &r->ranks);
	parse(r, argc, argv);
	if (program->processes ? r->ranks != program->processes : r->ranks < 2) {
		snprintf(why, sizeof(why), "-n %d", r->ranks);
		leave(r, 2, "mpirun", why);
	}
	table_begin(r);
}

int run_end(struct run *r)
{
	uint64_t all = 0;

	MPI_Allreduce(&r->damaged, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	table_row(r, "damaged", "-", (double)all, "messages that arrived changed");
	fflush(stdout);
	MPI_Finalize();
	return all ? 1 : 0;
}
