/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An echo server and its client over TCP sockets. echo_ripc.c is the same over ripc;
 * docs/ripc.md shows what became of each part.
 *
 *	ripc-echo-tcp serve PORT        (0: one that is free; it is printed)
 *	ripc-echo-tcp PORT TEXT...
 *
 * A TCP stream has no messages, so each is preceded by its length.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BYTES_MAX 65536

/* A stream may give and take any part of what was asked for. */
static int read_all(int fd, void *to, size_t bytes)
{
	for (ssize_t n; bytes; bytes -= (size_t)n, to = (char *)to + n)
		if ((n = read(fd, to, bytes)) <= 0)
			return -1;
	return 0;
}

static int write_all(int fd, const void *from, size_t bytes)
{
	for (ssize_t n; bytes; bytes -= (size_t)n, from = (const char *)from + n)
		if ((n = send(fd, from, bytes, MSG_NOSIGNAL)) <= 0)
			return -1;
	return 0;
}

static int send_message(int fd, const char *text, uint32_t bytes)
{
	uint32_t length = htonl(bytes);

	return write_all(fd, &length, sizeof(length)) ? -1 : write_all(fd, text, bytes);
}

/* The number of bytes, -1 at the end of the connection. */
static int receive_message(int fd, char text[BYTES_MAX])
{
	uint32_t length;

	if (read_all(fd, &length, sizeof(length)) || ntohl(length) > BYTES_MAX)
		return -1;
	return read_all(fd, text, ntohl(length)) ? -1 : (int)ntohl(length);
}

static int serve(struct sockaddr_in *at)
{
	socklen_t length = sizeof(*at);
	char text[BYTES_MAX];
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)at, sizeof(*at)) || listen(listener, 16))
		err(1, "port %d", ntohs(at->sin_port));
	getsockname(listener, (struct sockaddr *)at, &length);
	printf("serving at port %d\n", ntohs(at->sin_port));
	fflush(stdout);
	for (;;) {
		int bytes, fd = accept(listener, NULL, NULL);

		/* A process for each client, or one would hold up the others. */
		if (fd >= 0 && !fork()) {
			while ((bytes = receive_message(fd, text)) >= 0)
				if (send_message(fd, text, (uint32_t)bytes))
					break;
			_exit(0);
		}
		close(fd);
	}
}

static int ask(struct sockaddr_in *at, char *words[])
{
	int bytes, fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[BYTES_MAX];

	if (connect(fd, (struct sockaddr *)at, sizeof(*at)))
		err(1, "port %d", ntohs(at->sin_port));
	for (; *words; words++) {
		if (send_message(fd, *words, (uint32_t)strlen(*words)) ||
		    (bytes = receive_message(fd, text)) < 0)
			errx(1, "the server has closed the connection");
		printf("%.*s\n", bytes, text);
	}
	return 0;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (argc < 3) {
		fprintf(stderr, "usage: ripc-echo-tcp serve PORT | PORT TEXT...\n");
		return 2;
	}
	signal(SIGCHLD, SIG_IGN);
	if (!strcmp(argv[1], "serve")) {
		at.sin_port = htons((uint16_t)atoi(argv[2]));
		return serve(&at);
	}
	at.sin_port = htons((uint16_t)atoi(argv[1]));
	return ask(&at, argv + 2);
}
