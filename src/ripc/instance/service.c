/* SPDX-License-Identifier: BSD-2-Clause */
/* Services of this instance, and the messages that wait for them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ripc/instance/instance.h"
#include "util/wakeup.h"

#define QUICK_LOOKS 32

static struct list *head_of(struct ripc *r, uint32_t id)
{
	return &r->services[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 52 & (TABLE_SIZE - 1)];
}

struct ripc_service *service_here(struct ripc *r, uint32_t id)
{
	struct list *head = head_of(r, id);

	for (struct list *e = head->next; e != head; e = e->next) {
		struct ripc_service *s = list_entry(e, struct ripc_service, entry);

		if (s->id == id)
			return s;
	}
	return NULL;
}

void service_use(struct ripc_service *s)
{
	atomic_fetch_add_explicit(&s->users, 1, memory_order_relaxed);
}

struct ripc_service *service_get(struct ripc *r, uint32_t id)
{
	struct ripc_service *s;

	spin_lock(&r->table_lock);
	s = service_here(r, id);
	if (s)
		service_use(s);
	spin_unlock(&r->table_lock);
	return s;
}

struct ripc_service *service_pumped(struct ripc *r, struct conn *c, uint32_t id)
{
	struct ripc_service *s;
	unsigned changes;

	/* One that leaves is removed from the table, and waits for pump_lock then. */
	if (c && c->to &&
	    c->to_changes == atomic_load_explicit(&r->table_changes, memory_order_acquire) &&
	    c->to->id == id)
		return c->to;
	spin_lock(&r->table_lock);
	s = service_here(r, id);
	changes = atomic_load_explicit(&r->table_changes, memory_order_relaxed);
	spin_unlock(&r->table_lock);
	if (c) {
		c->to = s;
		c->to_changes = changes;
	}
	return s;
}

void service_put(struct ripc_service *s)
{
	atomic_fetch_sub_explicit(&s->users, 1, memory_order_release);
}

struct ripc_service *service_next(struct ripc *r, unsigned head, uint32_t after)
{
	struct list *first = &r->services[head];
	struct ripc_service *next = NULL;

	spin_lock(&r->table_lock);
	for (struct list *e = first->next; e != first; e = e->next) {
		struct ripc_service *s = list_entry(e, struct ripc_service, entry);

		if (s->id > after && (!next || s->id < next->id))
			next = s;
	}
	if (next)
		service_use(next);
	spin_unlock(&r->table_lock);
	return next;
}

bool service_has(void *arg, uint32_t *id, const char *name)
{
	struct ripc *r = arg;
	bool has = false;

	spin_lock(&r->table_lock);
	if (*id) {
		has = service_here(r, *id) != NULL;
	} else {
		for (unsigned i = 0; i < TABLE_SIZE && !has; i++)
			for (struct list *e = r->services[i].next; e != &r->services[i];
			     e = e->next) {
				struct ripc_service *s =
					list_entry(e, struct ripc_service, entry);

				if (s->name[0] && !strcmp(s->name, name)) {
					*id = s->id;
					has = true;
				}
			}
	}
	spin_unlock(&r->table_lock);
	return has;
}

/* ---- the queue ---- */

static uint64_t long_bytes(const struct received *m)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; m->is_long && i < m->count; i++)
		bytes += m->items[i].bytes;
	return bytes;
}

bool service_is_full(struct ripc_service *s, uint64_t bytes)
{
	const struct ripc_config *c = &s->r->config.c;
	bool full = atomic_load_explicit(&s->queued, memory_order_relaxed) >= c->queue_max;

	if (full || !bytes)
		return full;
	spin_lock(&s->lock);
	full = s->queued_bytes && (s->queued_bytes >= c->message_bytes_max ||
				   bytes > c->message_bytes_max - s->queued_bytes);
	spin_unlock(&s->lock);
	return full;
}

/* s->lock */
static void set_queued(struct ripc_service *s, int more)
{
	unsigned n = atomic_load_explicit(&s->queued, memory_order_relaxed);

	atomic_store_explicit(&s->queued, n + (unsigned)more, memory_order_release);
}

static bool push(struct ripc_service *s, struct received *m, bool always)
{
	bool wake = false;

	spin_lock(&s->lock);
	if (!always && s->queued >= s->r->config.c.queue_max) {
		spin_unlock(&s->lock);
		return false;
	}
	list_push(&s->queue, &m->entry);
	set_queued(s, 1);
	s->queued_bytes += long_bytes(m);
	if (s->fd >= 0 && !s->fd_set)
		wake = s->fd_set = true;
	spin_unlock(&s->lock);
	if (wake)
		wakeup_post(s->fd);
	return true;
}

void service_push(struct ripc_service *s, struct received *m)
{
	push(s, m, true);
	event_signal(&s->event);
}

/* Who sends over a connection is asked to hold. */
bool service_push_pumped(struct ripc_service *s, struct received *m, bool connected)
{
	struct ripc *r = s->r;

	if (r->receiver == s && !r->handed &&
	    !atomic_load_explicit(&s->queued, memory_order_acquire)) {
		r->handed = m;
		return true;
	}
	if (!push(s, m, connected))
		return false;
	event_signal_locked(&s->event); /* pump_cool() takes pump_lock */
	return true;
}

/* *held: peers were asked to hold, so hold_end() has to follow. */
static struct received *take(struct ripc_service *s, bool *held)
{
	struct received *m = NULL;
	struct list *e;

	/* Most looks find nothing, and there is no descriptor to drain. */
	if (!atomic_load_explicit(&s->queued, memory_order_acquire) && s->fd < 0)
		return NULL;
	spin_lock(&s->lock);
	e = list_pop(&s->queue);
	if (e) {
		m = list_entry(e, struct received, entry);
		set_queued(s, -1);
		s->queued_bytes -= long_bytes(m);
		*held = !list_empty(&s->holds);
	} else if (s->fd_set) {
		wakeup_drain(s->fd);
		s->fd_set = false;
	}
	spin_unlock(&s->lock);
	return m;
}

/* The caller has a reference. */
static struct received *pop(struct ripc_service *s)
{
	bool held = false;
	struct received *m = take(s, &held);

	if (unlikely(held))
		hold_end(s);
	return m;
}

static bool has_message(void *arg)
{
	struct ripc_service *s = arg;

	return atomic_load_explicit(&s->queued, memory_order_acquire) ||
	       atomic_load_explicit(&s->closing, memory_order_relaxed);
}

/* The caller has a reference. */
static int wait_longer(struct ripc_service *s, int timeout_ms, struct received **out)
{
	uint64_t until = deadline_of(timeout_ms);

	for (;;) {
		int ret;

		*out = pop(s);
		if (*out)
			return 0;
		if (atomic_load(&s->closing))
			return ripc_fail(-EBADF, "service %#x was closed", s->id);
		if (!timeout_ms)
			return -EAGAIN;
		ret = wait_until(s->r, &s->event, has_message, s, until);
		if (ret)
			return ripc_fail(ret, "no message within %d ms", timeout_ms);
	}
}

/* The usual case: no other thread is at the messages. Then `s` needs no reference, because
 * service_end() waits for pump_lock, and there is no look at the clock, which costs as much as a
 * message. NULL: there is no message, or it is not so; the caller has a reference then. */
static struct received *look_at_once(struct ripc_service *s, unsigned looks)
{
	struct ripc *r = s->r;
	struct received *m;
	bool held = false;

	if (!spin_trylock(&r->pump_lock)) {
		service_use(s);
		return NULL;
	}
	m = take(s, &held);
	/* Who looks once and goes away does not look after the messages. */
	if (!m && looks > 1)
		atomic_store_explicit(&r->hot, true, memory_order_relaxed);
	r->receiver = s;
	for (unsigned i = 0; !m && i < looks; i++) {
		pump_locked(r);
		m = r->handed ? r->handed : take(s, &held);
	}
	r->receiver = NULL;
	r->handed = NULL;
	if (unlikely(!m || held))
		service_use(s);
	spin_unlock(&r->pump_lock);
	if (unlikely(held)) {
		hold_end(s);
		service_put(s);
	}
	return m;
}

static void hand_over(struct received *got, struct ripc_message *m)
{
	m->from = got->from;
	m->is_long = got->is_long;
	m->count = got->count;
	m->returned = got->returned;
	memcpy(m->items, got->items, got->count * sizeof(m->items[0]));
	m->private_data = got;
}

int ripc_receive(struct ripc_service *s, struct ripc_message *m, int timeout_ms)
{
	struct received *got;
	int ret = 0;

	if (!s || !m)
		return ripc_fail(-EINVAL, "no service, or no room for the message");
	got = look_at_once(s, timeout_ms ? QUICK_LOOKS : 1);
	if (!got) {
		ret = wait_longer(s, timeout_ms, &got);
		service_put(s);
	}
	if (!ret)
		hand_over(got, m);
	return ret;
}

void received_free(struct received *m)
{
	if (!m->slot) {
		if (m->fetch)
			fetch_free(m->fetch);
		else
			free(m);
	} else if (m->slot->conn) {
		conn_repost(m->slot, true);
	} else {
		device_ud_repost(m->slot);
	}
}

void ripc_release(struct ripc_message *m)
{
	if (!m || !m->private_data)
		return;
	received_free(m->private_data);
	m->private_data = NULL;
}

int ripc_service_fd(struct ripc_service *s)
{
	int fd = -1, made;

	if (!s)
		return ripc_fail(-EINVAL, "no service");
	made = wakeup_open_signal();
	if (made < 0)
		return ripc_fail(made, "eventfd: %s", strerror(-made));
	spin_lock(&s->lock);
	if (s->fd < 0) {
		s->fd = made;
		made = -1;
		if (!list_empty(&s->queue)) {
			s->fd_set = true;
			wakeup_post(s->fd);
		}
	}
	fd = s->fd;
	spin_unlock(&s->lock);
	if (made >= 0)
		close(made);
	pump_cool(s->r);
	return fd;
}

/* ---- opening and closing ---- */

static bool name_is_good(const char *name)
{
	return packet_name_valid(name, strlen(name));
}

/* FNV-1a, so that a name has the same number everywhere. */
static uint32_t id_of_name(const char *name)
{
	uint32_t h = UINT32_C(2166136261);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT32_C(16777619);
	return h | RIPC_ID_DRAWN;
}

static uint32_t draw(void)
{
	uint32_t id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		id = (uint32_t)now_ns();
	return id | RIPC_ID_DRAWN;
}

static int enter(struct ripc *r, struct ripc_service *s)
{
	int ret = 0;

	spin_lock(&r->table_lock);
	if (service_here(r, s->id)) {
		ret = -EADDRINUSE;
	} else {
		list_push(head_of(r, s->id), &s->entry);
		atomic_fetch_add(&r->table_changes, 1);
	}
	spin_unlock(&r->table_lock);
	return ret;
}

/* With a number of its own choice it tries some. */
static int claim(struct ripc *r, struct ripc_service *s, bool chosen)
{
	int ret = -EADDRINUSE;

	for (unsigned i = 0; i < 16 && ret == -EADDRINUSE; i++) {
		if (i)
			s->id = draw();
		ret = r->config.c.claim_ms == UINT32_MAX ? 0 :
			resolver_claim(r->resolver, s->id, s->name[0] ? s->name : NULL,
				       r->config.c.claim_ms);
		if (!ret)
			ret = enter(r, s);
		if (chosen)
			break;
	}
	return ret;
}

static void service_free(struct ripc_service *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

int ripc_service_open(struct ripc *r, uint32_t id, const char *name,
		      struct ripc_service **out)
{
	struct ripc_service *s;
	uint32_t other = 0;
	int ret = r ? 0 : ripc_default(&r);

	if (ret)
		return ret;
	if (!out || (name && !name_is_good(name)))
		return ripc_fail(-EINVAL, "a name has 1 to %d bytes and no control characters",
				 RIPC_NAME_MAX);
	if (name && service_has(r, &other, name))
		return ripc_fail(-EADDRINUSE, "the name \"%s\" is taken by service %#x here",
				 name, other);
	s = calloc(1, sizeof(*s));
	if (!s)
		return ripc_fail(-ENOBUFS, "no memory for a service");
	s->r = r;
	s->id = id ? id : name ? id_of_name(name) : draw();
	s->fd = -1;
	s->next_token = 1;
	if (name)
		strcpy(s->name, name);
	list_init(&s->queue);
	list_init(&s->holds);
	list_init(&s->offers);
	list_init(&s->sends);
	ret = claim(r, s, id != 0 || name);
	if (ret) {
		ripc_fail(ret, "service %#x%s%s: %s", s->id, name ? " " : "", name ? name : "",
			  ret == -EADDRINUSE ? "is taken" : strerror(-ret));
		service_free(s);
		return ret;
	}
	resolver_enter(r->resolver, s->id, name ? s->name : NULL);
	*out = s;
	return 0;
}

uint32_t ripc_service_id(const struct ripc_service *s)
{
	return s ? s->id : 0;
}

void service_end(struct ripc_service *s, bool withdraw)
{
	struct received *m;
	struct ripc *r = s->r;

	resolver_leave(r->resolver, s->id, s->name[0] ? s->name : NULL);
	spin_lock(&r->table_lock);
	list_remove(&s->entry);
	atomic_fetch_add(&r->table_changes, 1);
	spin_unlock(&r->table_lock);
	atomic_store(&s->closing, true);
	/* Those who use it without a reference have one of these locks. */
	pump_pass(r);
	peers_pass(r);
	while (atomic_load(&s->users)) {
		event_signal(&s->event);
		sched_yield();
	}
	while ((m = pop(s)))
		received_free(m);
	hold_end(s);
	sends_forget(s);
	if (withdraw)
		offers_withdraw(s);
	offers_forget(s);
	service_free(s);
}

void ripc_service_close(struct ripc_service *s)
{
	if (s)
		service_end(s, true);
}

int ripc_find(struct ripc *r, const char *name, int timeout_ms, uint32_t *id)
{
	uint32_t found = 0;
	int ret = r ? 0 : ripc_default(&r);

	if (ret)
		return ret;
	if (!name || !name_is_good(name) || !id)
		return ripc_fail(-EINVAL, "a name has 1 to %d bytes and no control characters",
				 RIPC_NAME_MAX);
	if (!service_has(r, &found, name))
		ret = resolver_find_name(r->resolver, name,
					 timeout_ms < 0 ? r->config.c.resolve_timeout_ms :
							  (unsigned)timeout_ms, &found);
	if (!ret)
		*id = found;
	return ret ? ripc_fail(ret, "nobody has answered for the name \"%s\"", name) : 0;
}
