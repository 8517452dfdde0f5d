/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For scripts/bench-servers.sh: a bare loop that writes to an InfluxDB, in place of a gateway with
 * a node influxdb, and what a program costs.
 *
 *	udp HOST:PORT FILE LINES	sends the lines of FILE in datagrams of so many
 *	http URL FILE LINES	posts them to URL, so many in a request, one request at a time
 *	run COMMAND...		executes it; tells the seconds until its end and those of a
 *				processor that it took
 *
 * The file is read before the first line is sent.
 */
#include <curl/curl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct text {
	char *at, *end;
};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int read_file(const char *path, struct text *t)
{
	FILE *f = fopen(path, "re");
	long len;

	if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
		return fail(path);
	t->at = malloc((size_t)len + 1);
	if (!t->at || fread(t->at, 1, (size_t)len, f) != (size_t)len)
		return fail(path);
	fclose(f);
	t->end = t->at + len;
	return 0;
}

/* The next lines. */
static struct text take(struct text *t, unsigned long lines)
{
	struct text taken = { t->at, t->at };

	for (; lines && taken.end < t->end; lines--) {
		char *next = memchr(taken.end, '\n', (size_t)(t->end - taken.end));

		taken.end = next ? next + 1 : t->end;
	}
	t->at = taken.end;
	return taken;
}

static int write_udp(const char *server, const char *path, unsigned long lines)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	const char *colon = strrchr(server, ':');
	struct addrinfo *a;
	char host[256];
	struct text t;
	int fd;

	snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - server) : 0, server);
	if (!colon || getaddrinfo(host, colon + 1, &hints, &a)) {
		fprintf(stderr, "%s is no HOST:PORT\n", server);
		return 1;
	}
	fd = socket(a->ai_family, a->ai_socktype, 0);
	if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen))
		return fail(server);
	freeaddrinfo(a);
	if (read_file(path, &t))
		return 1;
	while (t.at < t.end) {
		struct text part = take(&t, lines);

		if (send(fd, part.at, (size_t)(part.end - part.at), 0) < 0)
			return fail("send");
	}
	return 0;
}

static size_t ignore(char *data, size_t size, size_t count, void *arg)
{
	(void)data;
	(void)arg;
	return size * count;
}

static int write_http(const char *url, const char *path, unsigned long lines)
{
	/* Else libcurl asks before a long request. */
	struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
	CURL *c = curl_easy_init();
	long status = 0;
	struct text t;

	if (!c || read_file(path, &t))
		return 1;
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, ignore);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	while (t.at < t.end) {
		struct text part = take(&t, lines);
		CURLcode rc;

		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(part.end - part.at));
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, part.at);
		rc = curl_easy_perform(c);
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
		if (rc || status / 100 != 2) {
			fprintf(stderr, "%s: %s, status %ld\n", url, curl_easy_strerror(rc), status);
			return 1;
		}
	}
	curl_easy_cleanup(c);
	curl_slist_free_all(headers);
	return 0;
}

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(char **argv)
{
	double since = now_s();
	pid_t pid = fork();
	struct rusage used;
	int status;

	if (pid < 0)
		return fail("fork");
	if (!pid) {
		execvp(*argv, argv);
		perror(*argv);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &used) != pid)
		return fail("wait");
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "%s has failed, status 0x%x\n", *argv, (unsigned)status);
		return 1;
	}
	printf("%.6f %.6f\n", now_s() - since,
	       seconds_of(used.ru_utime) + seconds_of(used.ru_stime));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	unsigned long lines = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;

	if (argc == 5 && lines && !strcmp(what, "udp"))
		return write_udp(argv[2], argv[3], lines);
	if (argc == 5 && lines && !strcmp(what, "http"))
		return write_http(argv[2], argv[3], lines);
	if (!strcmp(what, "run"))
		return run(argv + 2);
	fprintf(stderr, "usage: %s udp HOST:PORT FILE LINES | http URL FILE LINES | run COMMAND...\n", *argv);
	return 2;
}
