/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of the server, its listening socket, its end; see service.h. */
#define LOG_ROOM "gateway/http"
#include "gateway/http/service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/own_thread.h"
#include "gateway/base/thread.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

#define BACKLOG 512
#define EVENTS 64
/* Of the kernel, for a client that takes nothing; by itself it would be megabytes. */
#define SEND_BYTES (128 << 10)
#define ACCEPTS 64             /* in a row */
#define TICK_NS (NSEC_PER_SEC / 10)
#define CERTIFICATES_NS (2 * NSEC_PER_SEC)
/* How long the end waits for clients that take their answers. */
#define STOP_NS (NSEC_PER_SEC / 2)
/* Descriptors of all else. */
#define SPARE_FDS 256

/* "*" is all addresses, of IPv6 and IPv4. */
static socklen_t make_address(const struct http_settings *s, struct sockaddr_storage *a)
{
	struct sockaddr_in *in = (struct sockaddr_in *)a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)a;
	uint16_t port = htons((uint16_t)http_settings_port(s));

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, s->address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = port;
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	if (strcmp(s->address, "*"))
		inet_pton(AF_INET6, s->address, &in6->sin6_addr);
	return sizeof(*in6);
}

static int open_socket(const struct sockaddr_storage *a, socklen_t len, bool both)
{
	int fd = socket(a->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, zero = 0, ret;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, both ? &zero : &one,
			   sizeof(one));
	if (bind(fd, (const struct sockaddr *)a, len) || listen(fd, BACKLOG)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static void tell_refused(const struct http_settings *s, int error)
{
	log_error("http: cannot listen at %s port %d (%s, %s): %s%s", s->address,
		  http_settings_port(s), http_setting_name(s, HTTP_ADDRESS),
		  http_setting_name(s, HTTP_PORT), strerror(error),
		  error == EADDRINUSE ? "; another program listens there" :
		  error == EACCES ? "; ports below 1024 need root or CAP_NET_BIND_SERVICE" :
		  error == EADDRNOTAVAIL ? "; no interface has this address" : "");
}

static int open_listener(struct http_server *s)
{
	struct sockaddr_storage a;
	socklen_t len = make_address(s->settings, &a);
	bool all = !strcmp(s->settings->address, "*");
	int fd = open_socket(&a, len, all);

	/* A host without IPv6. */
	if (fd == -EAFNOSUPPORT && all) {
		struct sockaddr_in in = { .sin_family = AF_INET,
					  .sin_port = ((struct sockaddr_in6 *)&a)->sin6_port };

		memcpy(&a, &in, sizeof(in));
		fd = open_socket(&a, sizeof(in), false);
	}
	if (fd < 0)
		tell_refused(s->settings, -fd);
	s->listener = fd;
	return fd < 0 ? fd : 0;
}

int http_server_port(const struct http_server *s)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	if (getsockname(s->listener, (struct sockaddr *)&a, &len))
		return 0;
	return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port :
					       ((struct sockaddr_in *)&a)->sin_port);
}

static void tell_address(const struct http_server *s)
{
	const char *address = s->settings->address;

	log_info("%s://%s%s%s:%d/ serves requests", s->settings->ssl_cert ? "https" : "http",
		 strchr(address, ':') ? "[" : "", address, strchr(address, ':') ? "]" : "",
		 http_server_port(s));
}

/* As many descriptors as there may be connections; else fewer connections. */
static unsigned allow_descriptors(const struct http_settings *s)
{
	unsigned wanted = (unsigned)s->max_connections;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return wanted;
	if (limit.rlim_cur < wanted + SPARE_FDS) {
		limit.rlim_cur = wanted + SPARE_FDS < limit.rlim_max ?
					 wanted + SPARE_FDS :
					 limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= wanted + SPARE_FDS)
		return wanted;
	wanted = limit.rlim_cur > 2 * SPARE_FDS ?
			 (unsigned)limit.rlim_cur - SPARE_FDS :
			 (unsigned)limit.rlim_cur / 2;
	log_warn("%s %d: the process may have %llu descriptors (ulimit -n), so no more than %u connections",
		 http_setting_name(s, HTTP_MAX_CONNECTIONS), (int)s->max_connections,
		 (unsigned long long)limit.rlim_cur, wanted);
	return wanted;
}

static int watch(struct http_server *s, int fd, void *what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_epoll(struct http_server *s)
{
	int ret;

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	s->wake_fd = wakeup_open_signal();
	if (s->wake_fd < 0)
		return s->wake_fd;
	ret = watch(s, s->listener, &s->listener) ?: watch(s, s->wake_fd, &s->wake_fd);
	s->listens = !ret;
	return ret;
}

static void wake(void *arg)
{
	struct http_server *s = arg;

	wakeup_post(s->wake_fd);
}

/* No descriptor is left: who waits is not asked for until the next tick. */
static void pause_listening(struct http_server *s)
{
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->listener, NULL);
	s->listens = false;
}

static void accept_some(struct http_server *s)
{
	const int one = 1, room = SEND_BYTES;

	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE) &&
		    !http_share_make_room(s))
			pause_listening(s);
		if (fd < 0)
			return;
		if (s->conn_count >= s->conns_max && !http_share_make_room(s)) {
			close(fd);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
		http_conn_accept(s, fd);
	}
}

/* Hands finished jobs to their connections. */
static void take_jobs(struct http_server *s)
{
	struct http_job *j;

	while ((j = http_worker_take(s->worker))) {
		struct http_conn *c = j->owner;

		if (j->id)
			http_jobs_keep(s, j);
		if (c) {
			c->job = NULL;
			http_reply_job(c, j);
			http_conn_pump(c);
		}
		if (!j->id)
			http_job_free(j);
	}
}

static void handle(struct http_server *s, const struct epoll_event *e)
{
	if (e->data.ptr == &s->listener) {
		accept_some(s);
	} else if (e->data.ptr == &s->wake_fd) {
		wakeup_drain(s->wake_fd);
		take_jobs(s);
		http_streams_wake(s);
	} else {
		http_conn_event(e->data.ptr, e->events);
	}
}

/* Ten times a second: whose time is over. */
static void tick(struct http_server *s)
{
	struct list *next;

	if (s->now_ns < s->tick_ns)
		return;
	s->tick_ns = s->now_ns + TICK_NS;
	for (struct list *l = s->conns.next; l != &s->conns; l = next) {
		struct http_conn *c = container_of(l, struct http_conn, entry);

		next = l->next;
		if (s->now_ns >= c->deadline_ns)
			http_conn_expire(c);
	}
	http_streams_watch(s);
	http_streams_flush(s);
	if (!s->listens && !watch(s, s->listener, &s->listener))
		s->listens = true;
	if (s->now_ns >= s->certificates_ns || atomic_load(&s->refresh)) {
		s->certificates_ns = s->now_ns + CERTIFICATES_NS;
		http_certificates_refresh(s, atomic_exchange(&s->refresh, false));
	}
}

static void free_closed(struct http_server *s)
{
	while (!list_empty(&s->closed))
		http_conn_free(container_of(s->closed.next, struct http_conn, entry));
}

/* The end: what was asked gets its answer. True: there is no more to do. */
static bool is_through(struct http_server *s)
{
	if (!atomic_load(&s->stopping))
		return false;
	if (!s->stop_ns) {
		s->stop_ns = s->now_ns;
		if (s->listens)
			accept_some(s);
	}
	return !http_conns_dismiss(s) || s->now_ns - s->stop_ns > STOP_NS;
}

/* ms that epoll waits at most */
static int patience(const struct http_server *s)
{
	if (!list_empty(&s->turns))
		return 0;
	if (s->stop_ns)
		return 10;
	return s->ticking ? WEB_TICK_MS : (int)(TICK_NS / 1000000);
}

static void *run(void *arg)
{
	struct http_server *s = arg;
	struct epoll_event events[EVENTS];
	bool through = false;

	own_thread_keep(OWN_PRIORITY | OWN_AFFINITY);
	while (!through) {
		int n = epoll_wait(s->epoll_fd, events, EVENTS, patience(s));

		s->now_ns = clock_now_ns();
		for (int i = 0; i < n; i++)
			handle(s, &events[i]);
		http_conns_go_on(s);
		http_streams_tick(s);
		http_streams_flush(s);
		tick(s);
		through = is_through(s);
		free_closed(s);
	}
	return NULL;
}

static void free_server(struct http_server *s)
{
	while (!list_empty(&s->conns))
		http_conn_close(container_of(s->conns.next, struct http_conn, entry));
	free_closed(s);
	if (s->tls)
		s->tls_ops->context_free(s->tls);
	if (s->listener >= 0)
		close(s->listener);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	http_jobs_free(&s->jobs);
	http_access_free(s->access);
	free(s);
}

int http_server_start(struct http_server **out, const struct http_requests *requests,
		      void *arg, const struct http_settings *settings)
{
	struct http_server *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->requests = requests;
	s->settings = settings;
	s->listener = s->epoll_fd = s->wake_fd = -1;
	s->now_ns = clock_now_ns();
	list_init(&s->conns);
	list_init(&s->closed);
	list_init(&s->streams);
	list_init(&s->unsent);
	list_init(&s->turns);
	list_init(&s->jobs);
	s->conns_max = allow_descriptors(settings);
	if (getrandom(&s->hash_seed, sizeof(s->hash_seed), GRND_NONBLOCK) < 0)
		s->hash_seed = s->now_ns;
	ret = http_access_new(&s->access, settings) ?: http_certificates_load(s) ?:
	      open_listener(s) ?: open_epoll(s) ?:
	      http_worker_start(&s->worker, requests, arg, wake, s);
	if (ret)
		goto err_server;
	ret = thread_start(&s->thread, "http", THREAD_NORMAL, run, s);
	if (ret)
		goto err_worker;
	web_set_waker(wake, s);
	tell_address(s);
	*out = s;
	return 0;
err_worker:
	http_worker_stop(s->worker);
err_server:
	free_server(s);
	return ret;
}

void http_server_refresh(struct http_server *s)
{
	atomic_store(&s->refresh, true);
	wake(s);
}

bool http_server_stop(struct http_server *s)
{
	web_set_waker(NULL, NULL);
	atomic_store(&s->stopping, true);
	wake(s);
	if (!thread_join_in_time(s->thread) || !http_worker_stop(s->worker))
		return false;
	free_server(s);
	return true;
}
