/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the system's libibverbs.so.1 and finds its functions; see system.h.
 *
 * No lock is held while the loader or the library runs: a constructor may call our
 * functions, and another thread may be in a constructor and hold the loader's lock. So
 * two threads may open the library at the same time; the loader gives both the same
 * handle.
 */
#define LOG_ROOM "verbs"
#include "verbs/system.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "hca/host/settings.h"
#include "util/log.h"
#include "util/spin.h"
#include "verbs/thunk.h"

enum {
	/* A release has about twenty providers. */
	DRIVERS_MAX = 64,
};

enum system_state {
	SYSTEM_CLOSED,
	SYSTEM_OPENING, /* tables are being filled, providers registered */
	SYSTEM_OPEN,
	SYSTEM_UNUSABLE, /* permanent */
};

atomic_bool verbs_system_is_open;
void *verbs_system_public[VERBS_PUBLIC_COUNT];

static struct {
	struct spin lock; /* guards the fields below; not held in calls of the library */
	enum system_state state;
	unsigned int node; /* number of the library's private node */
	bool *data;
	void (*add_driver)(const void *driver);
	/* Providers that registered before the library was open. */
	size_t drivers;
	struct {
		unsigned int node;
		const void *driver;
	} driver[DRIVERS_MAX];
} sys;

static void *private_symbol(void *handle, unsigned int node, const char *name)
{
	char version[32];

	snprintf(version, sizeof(version), "IBVERBS_PRIVATE_%u", node);
	return dlvsym(handle, name, version);
}

/* Fails without a function of version 1.0 or 1.1; later functions may be missing. */
static bool has_public(void *handle)
{
	for (size_t i = 0; i < VERBS_PUBLIC_COUNT; i++) {
		const struct verbs_symbol *s = &verbs_public_symbols[i];

		if ((!strcmp(s->version, "IBVERBS_1.0") ||
		     !strcmp(s->version, "IBVERBS_1.1")) &&
		    !dlvsym(handle, s->name, s->version)) {
			log_warn("the system's libibverbs.so.1 has no %s@%s: real adapters are left out",
				 s->name, s->version);
			return false;
		}
	}
	return true;
}

/* The library's private node, of those in symbols.list; 0: none of these. */
static unsigned int private_node(void *handle)
{
	for (size_t i = 0; verbs_nodes[i]; i++)
		if (private_symbol(handle, verbs_nodes[i], "verbs_set_ops"))
			return verbs_nodes[i];
	log_warn("the system's libibverbs.so.1 has a private interface that this busbar does not know: real adapters are left out");
	return 0;
}

/* Filled before sys.lock is taken, because dlvsym() takes the loader's lock. */
struct tables {
	unsigned int node;
	void *public[VERBS_PUBLIC_COUNT];
	void *private[VERBS_PRIVATE_COUNT];
	void *add_driver;
	void *data;
};

static bool tables_find(void *handle, struct tables *t)
{
	char name[64];

	t->node = has_public(handle) ? private_node(handle) : 0;
	if (!t->node)
		return false;
	for (size_t i = 0; i < VERBS_PUBLIC_COUNT; i++)
		t->public[i] = dlvsym(handle, verbs_public_symbols[i].name,
				      verbs_public_symbols[i].version);
	for (size_t i = 0; i < VERBS_PRIVATE_COUNT; i++)
		t->private[i] = private_symbol(handle, t->node,
					       verbs_private_functions[i].name);
	snprintf(name, sizeof(name), "verbs_register_driver_%u", t->node);
	t->add_driver = private_symbol(handle, t->node, name);
	t->data = private_symbol(handle, t->node, VERBS_PRIVATE_DATA);
	return true;
}

static void tables_use(const struct tables *t)
{
	memcpy(verbs_system_public, t->public, sizeof(t->public));
	for (size_t i = 0; i < VERBS_PRIVATE_COUNT; i++)
		if (t->private[i])
			*verbs_private_functions[i].jump =
				(verbs_jump)(uintptr_t)t->private[i];
	sys.add_driver = (void (*)(const void *))(uintptr_t)t->add_driver;
	sys.data = t->data;
	sys.node = t->node;
}

static void pass_on(unsigned int node, const void *driver)
{
	if (node != sys.node || !sys.add_driver) {
		log_debug("provider of private interface %u left out, the system's library has %u",
			  node, sys.node);
		return;
	}
	log_debug("provider %p handed to the system's library", driver);
	sys.add_driver(driver);
}

/* Registers the stored providers, then sets the state to open: a thread that lists
 * devices afterwards sees all of them. */
static void drivers_pass_on(void)
{
	unsigned int node;
	const void *driver;

	for (;;) {
		spin_lock(&sys.lock);
		if (sys.drivers == 0) {
			sys.state = SYSTEM_OPEN;
			atomic_store_explicit(&verbs_system_is_open, true,
					      memory_order_release);
			spin_unlock(&sys.lock);
			return;
		}
		sys.drivers--;
		node = sys.driver[sys.drivers].node;
		driver = sys.driver[sys.drivers].driver;
		spin_unlock(&sys.lock);
		pass_on(node, driver);
	}
}

static enum system_state state_now(void)
{
	enum system_state state;

	spin_lock(&sys.lock);
	state = sys.state;
	spin_unlock(&sys.lock);
	return state;
}

static void state_unusable(void)
{
	spin_lock(&sys.lock);
	if (sys.state == SYSTEM_CLOSED)
		sys.state = SYSTEM_UNUSABLE;
	spin_unlock(&sys.lock);
}

bool verbs_system_open(void)
{
	struct tables tables;
	bool first;
	void *handle;

	if (verbs_system_opened())
		return true;
	hca_settings_init();
	if (!VERBS_CAN_FORWARD || !(hca_settings.devices & HCA_DEVICES_SYSTEM) ||
	    state_now() == SYSTEM_UNUSABLE || !verbs_system_kernel_has_rdma())
		return false;
	handle = verbs_system_dlopen();
	if (!handle && hca_settings.devices == HCA_DEVICES_SYSTEM)
		log_error("BUSBAR_DEVICES=system, and there is no libibverbs.so.1 of the system; its path may be given in BUSBAR_SYSTEM_LIBIBVERBS");
	if (!handle || !tables_find(handle, &tables)) {
		state_unusable();
		return false;
	}
	spin_lock(&sys.lock);
	first = sys.state == SYSTEM_CLOSED;
	if (first) {
		tables_use(&tables);
		sys.state = SYSTEM_OPENING;
	}
	spin_unlock(&sys.lock);
	if (first)
		drivers_pass_on();
	while (!verbs_system_opened())
		sched_yield();
	verbs_system_sync_data();
	return true;
}

/* In a forked child: the thread that held the lock, or opened it, may not exist. */
static void system_forked(void)
{
	sys.lock = (struct spin){ 0 };
	if (sys.state == SYSTEM_OPENING)
		sys.state = SYSTEM_CLOSED;
}

__attribute__((constructor)) static void system_load(void)
{
	pthread_atfork(NULL, NULL, system_forked);
}

void verbs_system_register(unsigned int node, const void *driver)
{
	bool later;

	spin_lock(&sys.lock);
	later = sys.state != SYSTEM_OPEN;
	if (later && sys.drivers < DRIVERS_MAX) {
		sys.driver[sys.drivers].node = node;
		sys.driver[sys.drivers].driver = driver;
		sys.drivers++;
	}
	spin_unlock(&sys.lock);
	if (!later)
		pass_on(node, driver);
}

/* The flag is set once and never cleared: if one library has it, both get it. */
void verbs_system_sync_data(void)
{
	bool *theirs = sys.data;
	bool *ours = &verbs_data_verbs_allow_disassociate_destroy;

	if (!theirs || theirs == ours)
		return;
	if (__atomic_load_n(theirs, __ATOMIC_RELAXED))
		__atomic_store_n(ours, true, __ATOMIC_RELAXED);
	else if (__atomic_load_n(ours, __ATOMIC_RELAXED))
		__atomic_store_n(theirs, true, __ATOMIC_RELAXED);
}
