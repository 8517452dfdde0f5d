/* SPDX-License-Identifier: BSD-2-Clause */
/* What the commands have in common: Ctrl-C, and their command line. */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kind/command.h"

static atomic_bool asked;

static void on_signal(int number)
{
	atomic_store(&asked, true);
}

const atomic_bool *bench_catch_signals(void)
{
	/* Without SA_RESTART: what waits in a system call comes out of it. */
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = (int)SA_RESETHAND };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return &asked;
}

char **bench_command(int argc, char **argv)
{
	char **all = calloc((size_t)argc + 3, sizeof(*all));

	if (!all)
		return NULL;
	all[0] = (char *)"busbar";
	all[1] = (char *)"bench";
	memcpy(all + 2, argv, (size_t)argc * sizeof(*argv));
	return all;
}
