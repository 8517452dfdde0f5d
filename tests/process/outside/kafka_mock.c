/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster of one Kafka broker, by librdkafka's own mock: kafka_mock PORT ADVERTISED TOPIC...
 * It listens on 127.0.0.1:PORT and tells clients that it is on port ADVERTISED, for programs in
 * front of it. TOPIC is a name, or a name:partitions. SIGUSR1: the next messages are refused as
 * out of order, which ends an idempotent producer.
 *
 * The mock takes any free port, announces the one that it got, and makes topics that a client asks
 * for with four partitions: bind(), getsockname() and accept() below take the place of those of
 * the C library. The mock has no TLS and no SASL, and keeps all in memory.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint16_t listen_port, advertised_port;
static atomic_bool has_topics;

/* The functions of the C library. */
static void *next(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		abort();
	return f;
}

__attribute__((visibility("default"))) int bind(int fd, const struct sockaddr *addr,
						socklen_t len)
{
	int (*real)(int, const struct sockaddr *, socklen_t) =
		(int (*)(int, const struct sockaddr *, socklen_t))next("bind");
	struct sockaddr_in in;
	int on = 1;

	if (addr->sa_family != AF_INET || len < sizeof(in))
		return real(fd, addr, len);
	memcpy(&in, addr, sizeof(in));
	in.sin_port = htons(listen_port);
	/* Connections of a mock that was killed. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return real(fd, (struct sockaddr *)&in, sizeof(in));
}

__attribute__((visibility("default"))) int getsockname(int fd, struct sockaddr *addr,
						       socklen_t *len)
{
	int (*real)(int, struct sockaddr *, socklen_t *) =
		(int (*)(int, struct sockaddr *, socklen_t *))next("getsockname");
	int ret = real(fd, addr, len);
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)addr;

	if (!ret && addr->sa_family == AF_INET && in->sin_port == htons(listen_port))
		in->sin_port = htons(advertised_port);
	return ret;
}

__attribute__((visibility("default"))) int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	int (*real)(int, struct sockaddr *, socklen_t *) =
		(int (*)(int, struct sockaddr *, socklen_t *))next("accept");

	/* The mock tries again. */
	if (!atomic_load(&has_topics)) {
		usleep(1000);
		errno = EAGAIN;
		return -1;
	}
	return real(fd, addr, len);
}

int main(int argc, char *argv[])
{
	rd_kafka_mock_cluster_t *cluster;
	char error[200];
	rd_kafka_t *rk;
	sigset_t signals;
	int number;

	if (argc < 3)
		return 1;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	listen_port = (uint16_t)atoi(argv[1]);
	advertised_port = (uint16_t)atoi(argv[2]);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), error, sizeof(error));
	cluster = rk ? rd_kafka_mock_cluster_new(rk, 1) : NULL;
	if (!cluster) {
		fprintf(stderr, "no mock cluster: %s\n", rk ? "port" : error);
		return 1;
	}
	for (int i = 3; i < argc; i++) {
		char *count = strchr(argv[i], ':');

		if (count)
			*count++ = '\0';
		if (rd_kafka_mock_topic_create(cluster, argv[i], count ? atoi(count) : 1, 1)) {
			fprintf(stderr, "no topic %s\n", argv[i]);
			return 1;
		}
	}
	atomic_store(&has_topics, true);
	puts(rd_kafka_mock_cluster_bootstraps(cluster));
	fflush(stdout);
	/* 0: Produce. */
	while (!sigwait(&signals, &number))
		rd_kafka_mock_push_request_errors(
			cluster, 0, 1, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	return 1;
}
