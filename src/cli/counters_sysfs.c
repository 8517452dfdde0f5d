/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of ports as the kernel shows them below /sys/class/infiniband, for everybody to read. The
 * files stay open: an interval costs one read for each of them.
 */
#include "cli/counters.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/container_of.h"

#define CLASS "sys/class/infiniband"
#define WORD_BYTES 4 /* port_*_data count words */

/* What the drivers call it: that of mlx5 and most others first, then that of rxe. */
struct name {
	const char *folder, *name, *other;
	enum analyzer_counter means;
};

static const struct name names[] = {
	{ "hw_counters", "local_ack_timeout_err", NULL, ANALYZER_COUNT_TIMEOUTS },
	{ "hw_counters", "rnr_nak_retry_err", "rcvd_rnr_err", ANALYZER_COUNT_RNR_NAKS },
	{ "hw_counters", "packet_seq_err", "rcvd_seq_err", ANALYZER_COUNT_SEQUENCE },
	{ "hw_counters", "implied_nak_seq_err", NULL, ANALYZER_COUNT_SEQUENCE },
	{ "hw_counters", "out_of_sequence", "out_of_seq_request", ANALYZER_COUNT_GAPS },
	{ "hw_counters", "duplicate_request", NULL, ANALYZER_COUNT_REPEATS },
	{ "hw_counters", "rx_read_requests", NULL, ANALYZER_COUNT_REQUESTS },
	{ "hw_counters", "rx_write_requests", NULL, ANALYZER_COUNT_REQUESTS },
	{ "hw_counters", "rx_atomic_requests", NULL, ANALYZER_COUNT_REQUESTS },
	{ "hw_counters", "req_transport_retries_exceeded", "retry_exceeded_err", ANALYZER_COUNT_GIVEN_UP },
	{ "counters", "port_xmit_data", NULL, ANALYZER_COUNT_BYTES },
	{ "counters", "port_rcv_data", NULL, ANALYZER_COUNT_BYTES },
	{ "counters", "port_rcv_errors", NULL, ANALYZER_COUNT_DAMAGED },
	{ "counters", "port_xmit_discards", NULL, ANALYZER_COUNT_DAMAGED },
};
_Static_assert(ARRAY_SIZE(names) <= COUNTERS_MAX, "room for all counters");

struct files {
	int fd[COUNTERS_MAX];
};

static int read_value(int fd, struct counter *c)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	char *end;

	if (n < 0)
		return -errno;
	text[n] = '\0';
	c->value = strtoull(text, &end, 10) * (c->means == ANALYZER_COUNT_BYTES ? WORD_BYTES : 1);
	return end == text ? -EBADMSG : 0;
}

static int read_all(struct counters *c)
{
	const struct files *f = c->own;
	int error = 0;

	for (unsigned i = 0; i < c->count && !error; i++)
		error = read_value(f->fd[i], &c->counter[i]);
	return error;
}

static void close_all(struct counters *c)
{
	struct files *f = c->own;

	for (unsigned i = 0; i < c->count; i++)
		close(f->fd[i]);
	free(f);
	c->own = NULL;
	c->count = 0;
}

/* Of the port; some drivers have them for the device alone. */
static int open_named(const char *device, unsigned port, const char *folder, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/ports/%u/%s/%s", device, port, folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	snprintf(path, sizeof(path), "%s/%s/%s", device, folder, name);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static void open_counter(struct counters *c, const char *device, unsigned port, const struct name *n)
{
	struct counter *to = &c->counter[c->count];
	const char *name = n->name;
	int fd = open_named(device, port, n->folder, name);
	size_t at;

	if (fd < 0 && n->other) {
		name = n->other;
		fd = open_named(device, port, n->folder, name);
	}
	*to = (struct counter){ .name = name, .means = n->means };
	if (fd >= 0 && !read_value(fd, to)) {
		((struct files *)c->own)->fd[c->count++] = fd;
		return;
	}
	if (fd >= 0)
		close(fd);
	at = strlen(c->missing);
	snprintf(c->missing + at, sizeof(c->missing) - at, "%s%s", at ? " " : "", n->name);
}

/* A folder that --root names may have any names. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			*text = '?';
}

int counters_sysfs_open(struct counters *c, const char *root, const char *device, unsigned port)
{
	char path[PATH_MAX], ports[PATH_MAX + 32];

	memset(c, 0, sizeof(*c));
	snprintf(path, sizeof(path), "%s/" CLASS "/%s", root, device);
	snprintf(ports, sizeof(ports), "%s/ports/%u", path, port);
	if (strchr(device, '/') || access(ports, X_OK))
		return -ENOENT;
	c->own = calloc(1, sizeof(struct files));
	if (!c->own)
		return -ENOMEM;
	snprintf(c->name, sizeof(c->name), "%.64s port %u", device, port);
	make_printable(c->name);
	c->read = read_all;
	c->close = close_all;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		open_counter(c, path, port, &names[i]);
	return 0;
}

static int list_ports(const char *root, const char *device,
		      int (*each)(void *arg, const char *device, unsigned port), void *arg)
{
	char path[PATH_MAX];
	struct dirent **list;
	int count, ret = 0;

	snprintf(path, sizeof(path), "%s/" CLASS "/%s/ports", root, device);
	count = scandir(path, &list, NULL, versionsort);
	for (int i = 0; i < count; i++) {
		unsigned port = (unsigned)strtoul(list[i]->d_name, NULL, 10);

		if (port && !ret)
			ret = each(arg, device, port);
		free(list[i]);
	}
	if (count >= 0)
		free(list);
	return count < 0 ? -ENOENT : ret;
}

int counters_sysfs_list(const char *root, const char *device,
			int (*each)(void *arg, const char *device, unsigned port), void *arg)
{
	char path[PATH_MAX];
	struct dirent **list;
	int count, ret = -ENOENT;

	if (device)
		return strchr(device, '/') || *device == '.' ? -ENOENT : list_ports(root, device, each, arg);
	snprintf(path, sizeof(path), "%s/" CLASS, root);
	count = scandir(path, &list, NULL, versionsort);
	for (int i = 0; i < count; i++) {
		if (*list[i]->d_name != '.' && (!ret || ret == -ENOENT))
			ret = list_ports(root, list[i]->d_name, each, arg);
		free(list[i]);
	}
	if (count >= 0)
		free(list);
	return ret;
}
