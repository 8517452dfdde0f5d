/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a capture: names, opening, the next one. Only for capture.c and its test. */
#ifndef TRANSPORT_CARRIER_CAPTURE_FILE_H
#define TRANSPORT_CARRIER_CAPTURE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture_file {
	/* Set by the owner. */
	const char *pattern;  /* see capture_params.path */
	uint64_t limit;       /* bytes; 0: none */
	unsigned files;

	int fd;               /* -1: not open */
	bool pipe;            /* what it was when it was opened last */
	bool own_name;        /* another process has the file: the id is in the name */
	unsigned number;      /* of the file, from 1 on */
	uint64_t bytes;       /* written */
	char name[PATH_MAX];
};

/* The name of file `number`. 0, -EINVAL (an unknown %), -ENAMETOOLONG. `own`: with the
 * process id even if the pattern has none. */
int capture_file_name(const struct capture_file *f, unsigned number, bool own,
		      char name[PATH_MAX]);
/* Opens the file with the present number, empty. 0, -ENXIO (a pipe without reader),
 * -EAGAIN (a pipe that another process writes), or another negative errno. */
int capture_file_open(struct capture_file *f);
void capture_file_close(struct capture_file *f);
/* Closes it and opens the next one; removes one that is too old. As capture_file_open(). */
int capture_file_next(struct capture_file *f);
/* How long the pipe may make us wait: see capture_file_write(). */
struct capture_patience {
	bool (*over)(void *arg);
	void *arg;
};
/* All of the bytes, which are whole blocks. Waits for the reader of a pipe until `over`
 * says that it was long enough, asked every 100 ms (then -ETIMEDOUT). Another negative
 * errno: the file ends before these bytes, a pipe somewhere in them. */
int capture_file_write(struct capture_file *f, const void *data, size_t bytes,
		       const struct capture_patience *p);

#endif
