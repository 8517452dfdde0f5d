/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of the lines. All processes of a tree append to one file. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace/calls.h"

/* High, because some programs expect certain low numbers to be free. */
#define FD_LOWEST 200
#define LINE_MAX_BYTES (TEXT_MAX + 128)

static struct {
	pthread_once_t once;
	int fd;
	dev_t dev;
	ino_t ino;
	const char *path; /* NULL: standard error */
} out = { .once = PTHREAD_ONCE_INIT, .fd = -1 };

bool trace_data;

uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown error";
}

/* secure_getenv(): a set-user-id program must not write where its caller says. */
__attribute__((constructor)) static void settings_read(void)
{
	const char *path = secure_getenv("BUSBAR_TRACE");
	const char *data = secure_getenv("BUSBAR_TRACE_DATA");

	if (path && *path == '/')
		out.path = strdup(path);
	trace_data = data && !strcmp(data, "1");
}

static void open_it(void)
{
	struct stat st;
	int fd = out.path ? open(out.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) :
			    STDERR_FILENO;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_LOWEST);

	if (high < 0)
		high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (out.path && fd >= 0)
		close(fd);
	if (high >= 0 && !fstat(high, &st)) {
		out.dev = st.st_dev;
		out.ino = st.st_ino;
	}
	out.fd = high;
}

/* Is the descriptor still the output file? Programs close descriptors that they do not
 * know, and later open other files under the same number. */
static bool still_ours(void)
{
	struct stat st;

	return out.fd >= 0 && !fstat(out.fd, &st) && st.st_dev == out.dev &&
	       st.st_ino == out.ino;
}

void out_line(uint64_t at_ns, uint32_t tid, const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char line[LINE_MAX_BYTES];
	time_t second = (time_t)(at_ns / UINT64_C(1000000000));
	struct tm tm;
	int n;

	pthread_once(&out.once, open_it);
	if (!still_ours()) {
		if (!out.path)
			return;
		pthread_mutex_lock(&lock);
		if (!still_ours())
			open_it();
		pthread_mutex_unlock(&lock);
	}
	localtime_r(&second, &tm);
	n = snprintf(line, sizeof(line), "%02d:%02d:%02d.%06u %d/%u %s\n", tm.tm_hour,
		     tm.tm_min, tm.tm_sec,
		     (unsigned)(at_ns % UINT64_C(1000000000) / 1000), (int)getpid(), tid,
		     text);
	if (n > 0)
	/* A failure is ignored: the line is lost. */
		(void)!write(out.fd, line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

uint32_t trace_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}
