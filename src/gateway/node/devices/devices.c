/* SPDX-License-Identifier: BSD-2-Clause */
/* See devices.h. */
#define LOG_ROOM "gateway/devices"
#include "gateway/node/devices/devices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "util/container_of.h"
#include "util/log.h"

/* The list of signals of a direction, or that of the node. */
static const json_t *signals_of(const struct node_direction *d, const json_t *cfg)
{
	return json_object_get(signal_list_is_given(d->cfg, "signals") ? d->cfg : cfg, "signals");
}

static int check_signals(struct node *n, struct config *c, const json_t *list)
{
	const struct device_node *d = n->private_data;
	size_t i;
	json_t *e;
	int ret = 0;

	if (!json_is_array(list) || !n->type->signal_key_count)
		return 0;
	json_array_foreach((json_t *)(uintptr_t)list, i, e) {
		struct device_node of_signal = { 0 };
		int wrong = config_unpack_part(c, e, n->type->signal_keys, n->type->signal_key_count,
					       &of_signal);

		if (!wrong && d->device->check_signal)
			wrong = d->device->check_signal(d, of_signal.v, c, e);
		ret = wrong ?: ret;
	}
	return ret;
}

int device_node_parse(struct node *n, struct config *c, json_t *cfg)
{
	const struct device_node *d = n->private_data;
	const json_t *in = signals_of(&n->in, cfg), *out = signals_of(&n->out, cfg);
	int ret = check_signals(n, c, in);

	if (out != in)
		ret = check_signals(n, c, out) ?: ret;
	if (d->device->check)
		ret = d->device->check(d, c, cfg) ?: ret;
	return ret;
}

int device_node_prepare(struct node *n)
{
	const struct device_node *d = n->private_data;

	log_error("node %s: a node of type %s needs %s, which busbar cannot use; %s", n->name,
		  n->type->name, d->device->needs, d->device->instead);
	return -ENODEV;
}

/* Never called, because no node is prepared. */
int device_node_refuse(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	return -ENODEV;
}

/* ---- the settings as a line ---- */

static int print_value(char *buf, size_t size, const struct config_key *k, const union device_value *v)
{
	switch (k->type) {
	case CONFIG_BOOL:
		return snprintf(buf, size, "%s", v->on ? "true" : "false");
	case CONFIG_INT:
		return snprintf(buf, size, "%lld", (long long)v->number);
	case CONFIG_REAL:
		return snprintf(buf, size, "%g", v->real);
	case CONFIG_STRING:
		return snprintf(buf, size, "%.60s", v->text ? v->text : "-");
	case CONFIG_ENUM:
		return snprintf(buf, size, "%s", k->names[v->index]);
	case CONFIG_JSON:
		break;
	}
	return snprintf(buf, size, "%s", v->json ? "given" : "-");
}

static size_t print_keys(char *buf, size_t size, size_t used, const char *group,
			 const struct config_key keys[], size_t count, const struct device_node *d)
{
	for (size_t i = 0; i < count && used < size; i++) {
		const union device_value *v = (const void *)((const char *)d + keys[i].offset);

		used += (size_t)snprintf(buf + used, size - used, "%s%s%s ", used ? ", " : "", group,
					 keys[i].name);
		if (used < size)
			used += (size_t)print_value(buf + used, size - used, &keys[i], v);
	}
	return used;
}

void device_node_print(struct node *n, char *buf, size_t size)
{
	const struct node_type *t = n->type;
	size_t used;

	*buf = '\0';
	used = print_keys(buf, size, 0, "", t->keys, t->key_count, n->private_data);
	used = print_keys(buf, size, used, "in.", t->in_keys, t->in_key_count, n->private_data);
	print_keys(buf, size, used, "out.", t->out_keys, t->out_key_count, n->private_data);
}
