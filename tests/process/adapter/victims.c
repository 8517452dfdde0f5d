/* SPDX-License-Identifier: BSD-2-Clause */
/* See victims.h. */
#include "victims.h"

#include <dirent.h>

void exchange(struct pair *p)
{
	static uint64_t seed = 1;

	seed++;
	side_recv(&p->a, seed, 0, 1000);
	side_recv(&p->b, seed, 0, 1000);
	side_fill(&p->a, 1000, 1000, seed);
	side_fill(&p->b, 1000, 1000, seed + 1000);
	side_send(&p->a, seed, 1000, 1000);
	side_send(&p->b, seed, 1000, 1000);
	side_wait_ok(&p->a, SEND_CQ, seed);
	side_wait_ok(&p->b, SEND_CQ, seed);
	side_wait_ok(&p->a, RECV_CQ, seed);
	side_wait_ok(&p->b, RECV_CQ, seed);
	side_check(&p->a, 0, 1000, seed + 1000);
	side_check(&p->b, 0, 1000, seed);
}

int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}
