/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server, for its own files: service.c has the thread and the listening socket,
 * conn.c reads from connections and closes them, request.c decides about requests, reply.c
 * sends answers, jobs.c remembers commands that take long, share.c decides which connection is
 * ended for a new one.
 *
 * One thread has all of it and waits in epoll_wait() only. A connection is in one state
 * at a time, which says what it waits for and for how long; it reads nothing while its
 * answer is made or sent, so that a client who asks and does not read holds little.
 */
#ifndef GATEWAY_HTTP_SERVICE_H
#define GATEWAY_HTTP_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "gateway/http/access.h"
#include "gateway/http/head.h"
#include "gateway/http/http.h"
#include "gateway/http/parse.h"
#include "gateway/http/requests.h"
#include "gateway/http/worker.h"
#include "gateway/stream/stream.h"
#include "gateway/tls/tls.h"
#include "gateway/plugin/web.h"
#include "util/clock.h"
#include "util/list.h"

#define HTTP_HEADER_MAX 8192 /* bytes of the header of a request */
#define HTTP_ORIGIN_MAX 256
/* Bodies and answers of all connections; a half for those of one client. */
#define HTTP_BYTES_MAX (64u << 20)
#define HTTP_JOBS_MAX 32     /* finished ones that are remembered */
/* How long a client may take to close behind its last answer. */
#define HTTP_LEAVE_NS (2 * NSEC_PER_SEC)

#define HTTP_ENDING "the server ends or starts anew, ask again later"

enum http_state {
	HTTP_IDLE,      /* nothing, or a part of a header */
	HTTP_BODY,      /* the body comes */
	HTTP_WORKING,   /* a worker has the request */
	HTTP_ANSWERING, /* the answer goes */
	HTTP_STREAM,    /* an endpoint has it (plugin/web.h) */
	HTTP_LEAVING,   /* no more is sent; what comes is read and forgotten, so that the
			 * answer is not lost with the connection */
	HTTP_CLOSED,    /* freed before the next wait */
};

struct http_conn {
	struct list entry;        /* of the server; least recently used first */
	struct list turn;         /* of the server, while it has more to do */
	struct http_server *server;
	struct stream socket;
	uint32_t events;          /* that epoll waits for */
	enum http_state state;
	uint64_t deadline_ns;     /* UINT64_MAX: none */
	struct http_peer peer;
	bool peer_verified;       /* for the present request */
	bool trusted;             /* has shown a right to something */
	uint32_t client;          /* number of its client (http_share_client()) */

	/* What has come and is not used yet */
	char *in;
	size_t in_len, in_searched;

	/* The request */
	char method[8];
	char path[CONTROL_PATH_MAX];
	char origin[HTTP_ORIGIN_MAX]; /* that may read the answer; "" none */
	char *accept;
	bool is_head, is_command, is_form, keep;
	double wait_s;
	char *body;
	size_t body_len, body_size;
	struct http_job *job;
	struct http_stream *stream;

	/* The answer */
	char head[1536];
	size_t head_len, head_done;
	char *text;               /* owned */
	const char *file;         /* or borrowed */
	size_t text_len, text_done;
};

struct http_server {
	const struct http_requests *requests;
	const struct http_settings *settings;
	struct http_access *access;
	struct http_worker *worker;
	const struct tls_ops *tls_ops;
	struct tls_context *tls;
	pthread_t thread;
	int listener, epoll_fd, wake_fd;
	atomic_bool stopping, refresh;

	/* Of the server's thread */
	struct list conns, closed, streams;
	struct list unsent;       /* streams to which something was sent just now */
	struct list turns;        /* connections that go on after all others had their turn */
	unsigned ticking;         /* streams of endpoints that want ticks */
	unsigned conn_count, conns_max;
	bool listens;             /* the listener is in the epoll set */
	size_t bytes;             /* of bodies and answers */
	uint64_t hash_seed;
	struct list jobs;         /* finished ones that are resources, in order */
	unsigned job_count, job_last;
	uint64_t now_ns, stop_ns, tick_ns, streams_ns, certificates_ns;
	struct timespec cert_time, key_time;
};

/* service.c. All outlive the server. 0 or a negative errno, logged. */
int http_server_start(struct http_server **out, const struct http_requests *requests,
		      void *arg, const struct http_settings *settings);
/* Of the socket that it listens at; 0: unknown. */
int http_server_port(const struct http_server *s);
void http_server_refresh(struct http_server *s);
/* False: a request does not return, and nothing was freed. */
bool http_server_stop(struct http_server *s);

/* conn.c */
void http_conn_accept(struct http_server *s, int fd);
void http_conn_event(struct http_conn *c, uint32_t events);
/* Goes on with a connection whose state has changed. */
void http_conn_pump(struct http_conn *c);
/* A turn for each that has more to do. */
void http_conns_go_on(struct http_server *s);
void http_conn_close(struct http_conn *c);
void http_conn_free(struct http_conn *c); /* a closed one */
/* Its time is over. */
void http_conn_expire(struct http_conn *c);
/* At the end of the server: whether any are left that get an answer. */
bool http_conns_dismiss(struct http_server *s);
void http_conn_set_state(struct http_conn *c, enum http_state state);
/* Sends what waits in its stream. */
void http_conn_flush(struct http_conn *c);
/* Sends no more; what comes is read and forgotten for a moment. */
void http_conn_leave(struct http_conn *c);

/* stream.c: 101 when the endpoint has taken it, else the status of an error, with the reason
 * and header lines. `e` is used up. */
struct http_refusal {
	char why[200], lines[768];
};
int http_stream_open(struct http_conn *c, const struct http_request *r,
		     struct web_endpoint *e, const char *path, struct http_refusal *refusal);
void http_stream_received(struct http_conn *c, const void *data, size_t len);
/* 0: all is sent; 1: not yet; -1: the connection is to end. */
int http_stream_flush(struct http_conn *c);
/* Whether so little waits that the client may say more. */
bool http_stream_may_read(const struct http_conn *c);
void http_stream_close(struct http_conn *c);
/* The endpoint says its last, as much of it as goes without waiting. */
void http_stream_goodbye(struct http_conn *c);
/* Endpoints that were woken, and the clients of those that leave. */
void http_streams_wake(struct http_server *s);
/* Endpoints that want ticks, every WEB_TICK_MS. */
void http_streams_tick(struct http_server *s);
/* Endpoints that want to watch, every WEB_WATCH_MS. */
void http_streams_watch(struct http_server *s);
/* What was sent to others than those whose turn it was. */
void http_streams_flush(struct http_server *s);

/* request.c: starts an answer, or the wait for a body or a worker. */
void http_request(struct http_conn *c, const struct http_request *r);
/* The whole body is there. */
void http_request_ready(struct http_conn *c);

/* reply.c: start an answer; http_reply_write() sends it as the client takes it. */
/* `text` is used up. */
void http_reply(struct http_conn *c, struct http_head *h, char *text, size_t len);
/* `body` is used up; sets h->type. */
void http_reply_json(struct http_conn *c, struct http_head *h, json_t *body);
void http_reply_error(struct http_conn *c, int status, const char *text);
/* With further header lines. */
void http_reply_refusal(struct http_conn *c, int status, const struct http_refusal *r);
/* `file` is borrowed. */
void http_reply_file(struct http_conn *c, const struct web_file *file, const char *known);
void http_reply_job(struct http_conn *c, struct http_job *j);
/* 0: all is sent; 1: not yet; or a negative errno. */
int http_reply_write(struct http_conn *c);
void http_reply_clear(struct http_conn *c);

/* jobs.c */
void http_jobs_keep(struct http_server *s, struct http_job *j);
void http_jobs_reply(struct http_conn *c, const char *id);
void http_jobs_accepted(struct http_conn *c);

/* share.c: the number of a client; see there. */
uint32_t http_share_client(struct http_server *s, const struct http_peer *p);
/* Ends a connection of the client that has most of them; false: none that may be ended. */
bool http_share_make_room(struct http_server *s);
/* May a body or an answer of so many bytes be held for the client? */
bool http_share_allows(const struct http_conn *c, size_t more);

/* certificates.c: a new context, when there are other files, or if `force`. */
int http_certificates_load(struct http_server *s);
void http_certificates_refresh(struct http_server *s, bool force);

#endif
