/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a case runs: its folder, its ports, and room for its recordings; see place.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/node/medium.h"
#include "bench/result/files.h"
#include "util/log.h"

/* Ports of the host that are free now, for both TCP and UDP as a rule. */
static int choose_ports(unsigned port[BENCH_NODE_ENDS])
{
	int fd[BENCH_NODE_ENDS] = { -1, -1 }, ret = 0;

	for (int i = 0; i < BENCH_NODE_ENDS && !ret; i++) {
		struct sockaddr_in a = { .sin_family = AF_INET };
		socklen_t len = sizeof(a);

		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd[i] < 0 || bind(fd[i], (struct sockaddr *)&a, len) ||
		    getsockname(fd[i], (struct sockaddr *)&a, &len))
			ret = -errno;
		port[i] = ntohs(a.sin_port);
	}
	for (int i = 0; i < BENCH_NODE_ENDS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	if (ret)
		log_error("cannot find a free port: %s", strerror(-ret));
	return ret;
}

/* Two recordings, in memory as a rule and then in files; rather no run than one that ends with
 * a full disk, or with all other programs pushed out. */
static int check_room(const struct bench_node_settings *s, const char *dir)
{
	uint64_t need = 2 * s->steps * bench_node_record_bytes(s);
	uint64_t memory = bench_node_memory_bytes();
	struct statvfs v;

	/* As text. */
	if (s->medium->logs)
		need += s->steps * (64 + 20 * (uint64_t)s->values);
	if (!strcmp(s->recording, "memory") && need > memory / 4 * 3)
		return log_fail(-EOPNOTSUPP, "node: %ju steps of %u values take %ju MiB of memory, there are %ju MiB; fewer samples, or recording stream",
				(uintmax_t)s->steps, s->values, (uintmax_t)(need >> 20),
				(uintmax_t)(memory >> 20));
	if (!statvfs(dir, &v) && need > v.f_bavail * v.f_frsize)
		return log_fail(-EOPNOTSUPP, "node: the recordings take %ju MiB, '%s' has %ju MiB left; fewer samples, or another TMPDIR",
				(uintmax_t)(need >> 20), dir, (uintmax_t)(v.f_bavail * v.f_frsize >> 20));
	return 0;
}

int bench_node_place_make(struct bench_node_settings *s, char dir[PATH_MAX])
{
	int ret = choose_ports(s->port);
	char *made;

	if (!ret)
		ret = files_make_temporary(&made);
	if (ret)
		return ret;
	snprintf(dir, PATH_MAX, "%s", made);
	free(made);
	return check_room(s, dir);
}
