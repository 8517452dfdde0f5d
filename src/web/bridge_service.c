/* SPDX-License-Identifier: BSD-2-Clause */
/* The bridge's side of ripc: a thread that sends requests, and what comes back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "web/bridge_private.h"

/* ---- the sender ---- */

static int send_one(struct bridge *b, uint32_t to, struct bridge_job *j)
{
	const struct ripc_item item = { j->text, j->bytes };

	atomic_store(&b->asked[j->number % b->o->clients_max], to);
	return j->bytes <= ripc_short_max(b->o->r, 1) ?
		       ripc_send_short(b->o->service, to, &item, 1, NULL, 0) :
		       ripc_send_long(b->o->service, to, &item, 1, NULL, 0, NULL);
}

/* The service's number: by its name, again when it was not reached. */
static int find_server(struct bridge *b, uint32_t *server)
{
	if (!*server && b->o->server)
		*server = b->o->server;
	return *server ? 0 : ripc_find(b->o->r, b->o->name, -1, server);
}

static void give_back(struct bridge *b, struct list *jobs, int error)
{
	const uint64_t one = 1;

	for (struct list *e = jobs->next; e != jobs; e = e->next)
		container_of(e, struct bridge_job, entry)->error = error;
	pthread_mutex_lock(&b->lock);
	list_splice(&b->failed, jobs);
	pthread_mutex_unlock(&b->lock);
	list_init(jobs);
	if (write(b->failed_fd, &one, sizeof(one)) < 0)
		return; /* it is readable anyhow */
}

/* All of `jobs`. When the service cannot be reached none of those that wait is tried: each
 * would take as long. */
static void send_all(struct bridge *b, struct list *jobs, uint32_t *server)
{
	int ret = find_server(b, server);

	while (!ret && !list_empty(jobs)) {
		struct bridge_job *j = container_of(jobs->next, struct bridge_job, entry);

		ret = send_one(b, *server, j);
		if (!ret) {
			list_remove(&j->entry);
			free(j);
		}
	}
	if (ret) {
		*server = 0;
		give_back(b, jobs, ret);
	}
}

static void *sender(void *arg)
{
	struct bridge *b = arg;
	uint32_t server = 0;

	pthread_mutex_lock(&b->lock);
	while (!b->end) {
		struct list jobs;

		if (list_empty(&b->jobs)) {
			pthread_cond_wait(&b->more, &b->lock);
			continue;
		}
		list_init(&jobs);
		list_splice(&jobs, &b->jobs);
		list_init(&b->jobs);
		pthread_mutex_unlock(&b->lock);
		send_all(b, &jobs, &server);
		pthread_mutex_lock(&b->lock);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

int bridge_service_start(struct bridge *b)
{
	int err;

	list_init(&b->jobs);
	list_init(&b->failed);
	b->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->failed_fd < 0)
		return -errno;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->more, NULL);
	err = pthread_create(&b->sender, NULL, sender, b);
	if (err)
		close(b->failed_fd);
	return -err;
}

static void free_jobs(struct list *jobs)
{
	struct list *e;

	while ((e = list_pop(jobs)))
		free(container_of(e, struct bridge_job, entry));
}

void bridge_service_stop(struct bridge *b)
{
	pthread_mutex_lock(&b->lock);
	b->end = true;
	pthread_cond_signal(&b->more);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->sender, NULL);
	free_jobs(&b->jobs);
	free_jobs(&b->failed);
	pthread_cond_destroy(&b->more);
	pthread_mutex_destroy(&b->lock);
	close(b->failed_fd);
}

int bridge_service_ask(struct bridge *b, uint64_t number, const char *text, size_t bytes)
{
	struct bridge_job *j = malloc(sizeof(*j) + bytes);

	if (!j)
		return -ENOMEM;
	j->number = number;
	j->bytes = bytes;
	memcpy(j->text, text, bytes);
	pthread_mutex_lock(&b->lock);
	list_push(&b->jobs, &j->entry);
	pthread_cond_signal(&b->more);
	pthread_mutex_unlock(&b->lock);
	return 0;
}

/* ---- what comes back ---- */

/* Whose request that was; NULL: nobody waits for it any more. */
static struct bridge_client *client_of(struct bridge *b, uint64_t number)
{
	struct bridge_client *c = b->slots[number % b->o->clients_max];

	return c && c->state == BRIDGE_ASKED && c->number == number ? c : NULL;
}

void bridge_service_failures(struct bridge *b)
{
	struct list jobs, *e;
	uint64_t count;

	if (read(b->failed_fd, &count, sizeof(count)) < 0)
		return;
	list_init(&jobs);
	pthread_mutex_lock(&b->lock);
	list_splice(&jobs, &b->failed);
	list_init(&b->failed);
	pthread_mutex_unlock(&b->lock);
	while ((e = list_pop(&jobs))) {
		struct bridge_job *j = container_of(e, struct bridge_job, entry);
		struct bridge_client *c = client_of(b, j->number);

		if (c)
			bridge_client_fail(c, j->error == -EHOSTUNREACH ? 504 : 502,
					   j->error == -EHOSTUNREACH ?
						   "the service was not found" :
						   "the service was not reached");
		free(j);
	}
}

static void receive_one(struct bridge *b, struct ripc_message *m)
{
	const struct head_field *f;
	struct bridge_client *c;
	struct head_answer a;
	uint64_t number;

	if (!m->is_long || m->count != 2 ||
	    head_answer_parse(&a, m->items[0].data, m->items[0].bytes) ||
	    !(f = head_find(&a.head, "Ripc-Request")) || !head_number(f->value, &number)) {
		b->n->failed++;
		ripc_release(m);
		return;
	}
	c = client_of(b, number);
	/* Only the service that was asked may answer. Services asked before may know the number,
	 * too. */
	if (!c || m->from != atomic_load(&b->asked[c->slot])) {
		b->n->late++;
		ripc_release(m);
		return;
	}
	bridge_client_answer(c, m, &a);
}

void bridge_service_receive(struct bridge *b)
{
	struct ripc_message m;

	while (!ripc_receive(b->o->service, &m, 0))
		receive_one(b, &m);
}
