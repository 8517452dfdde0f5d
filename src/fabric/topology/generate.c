/* SPDX-License-Identifier: BSD-2-Clause */
/* The text that names a subnet of a family: its sizes and keys. See generate.h. */
#include "fabric/topology/generate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/plan.h"
#include "fabric/topology/say.h"
#include "util/container_of.h"
#include "util/nearest.h"

#define SIZE_MAX_NODES TOPOLOGY_NODES_MAX

enum {
	KEY_HOSTS = 1,
	KEY_SPINES = 2,
	KEY_LINKS = 4,
	KEY_CORES = 8,
	KEY_GROUPS = 16,
};

static const struct family {
	const char *name, *form;
	unsigned sizes_min, sizes_max, keys;
	unsigned smallest; /* of a size */
	void (*plan)(struct topology_plan *p);
} families[] = {
	{ "single", "single:N", 1, 1, 0, 1, topology_plan_single },
	{ "line", "line:N", 1, 1, KEY_HOSTS, 1, topology_plan_mesh },
	{ "ring", "ring:N", 1, 1, KEY_HOSTS, 2, topology_plan_torus },
	{ "mesh", "mesh:XxY or mesh:XxYxZ", 2, 3, KEY_HOSTS, 1, topology_plan_mesh },
	{ "torus", "torus:XxY or torus:XxYxZ", 2, 3, KEY_HOSTS, 1, topology_plan_torus },
	{ "fat-tree", "fat-tree:LxH, fat-tree:PxLxH or fat-tree:k=K", 2, 3, KEY_SPINES | KEY_LINKS | KEY_CORES, 1,
	  topology_plan_fat_tree },
	{ "dragonfly", "dragonfly:AxPxH", 3, 3, KEY_GROUPS, 1, topology_plan_dragonfly },
};

static const struct {
	const char *name;
	unsigned bit;
	int min, max;
	size_t offset;
} number_keys[] = {
	{ "hosts", KEY_HOSTS, 0, TOPOLOGY_PORTS_MAX, offsetof(struct topology_request, hosts) },
	{ "spines", KEY_SPINES, 1, SIZE_MAX_NODES, offsetof(struct topology_request, spines) },
	{ "links", KEY_LINKS, 1, TOPOLOGY_PORTS_MAX, offsetof(struct topology_request, links) },
	{ "cores", KEY_CORES, 1, SIZE_MAX_NODES, offsetof(struct topology_request, cores) },
	{ "groups", KEY_GROUPS, 1, SIZE_MAX_NODES, offsetof(struct topology_request, groups) },
};

struct parser {
	const char *text; /* all of it, for messages */
	const struct family *family;
	struct topology_request request;
	char *why;
	size_t why_bytes;
};

/* A piece of the text that is cut to what a message needs. */
static int cut(size_t bytes)
{
	return (int)MIN(bytes, 40U);
}

/* A decimal number of at most four digits, and where it ends; -1: there is none. */
static int read_number(const char *text, const char **end)
{
	int value = 0, digits = 0;

	for (; *text >= '0' && *text <= '9' && digits < 5; text++, digits++)
		value = 10 * value + (*text - '0');
	*end = text;
	return digits >= 1 && digits <= 4 ? value : -1;
}

/* ---- sizes ---- */

static int refuse_sizes(const struct parser *p, const char *sizes, size_t bytes)
{
	return topology_say(p->why, p->why_bytes, -EINVAL,
			    "'%.*s' is no size of %s: right is %s, with numbers from %u to %d", cut(bytes), sizes,
			    p->family->name, p->family->form, p->family->smallest, SIZE_MAX_NODES);
}

/* "k=8": three levels of switches with 8 ports. */
static int read_arity(struct parser *p, const char *text, size_t bytes)
{
	const char *end;
	int k = read_number(text + 2, &end);

	if (k < 2 || k % 2 || end != text + bytes)
		return topology_say(p->why, p->why_bytes, -EINVAL,
				    "'%.*s': k is an even number of ports, 2 or more", cut(bytes), text);
	p->request.size[0] = (unsigned)k;
	p->request.size[1] = p->request.size[2] = (unsigned)k / 2;
	p->request.sizes = 3;
	return 0;
}

static int read_sizes(struct parser *p, const char *text, size_t bytes)
{
	const char *at = text;

	if (p->family->plan == topology_plan_fat_tree && bytes >= 2 && !memcmp(text, "k=", 2))
		return read_arity(p, text, bytes);
	for (p->request.sizes = 0; p->request.sizes < p->family->sizes_max;) {
		const char *end;
		int size = read_number(at, &end);

		if (size < (int)p->family->smallest || size > SIZE_MAX_NODES)
			return refuse_sizes(p, text, bytes);
		p->request.size[p->request.sizes++] = (unsigned)size;
		at = end;
		if (*at != 'x')
			break;
		at++;
	}
	if (at != text + bytes || at[-1] == 'x' || p->request.sizes < p->family->sizes_min)
		return refuse_sizes(p, text, bytes);
	return 0;
}

/* ---- keys ---- */

static int refuse_value(const struct parser *p, const char *key, const char *value, size_t bytes,
			const char *right)
{
	return topology_say(p->why, p->why_bytes, -EINVAL, "%s='%.*s': right is %s", key, cut(bytes), value,
			    right);
}

static int read_number_key(struct parser *p, size_t i, const char *value, size_t bytes)
{
	char right[40];
	const char *end;
	int number = read_number(value, &end);

	if (!(p->family->keys & number_keys[i].bit))
		return topology_say(p->why, p->why_bytes, -EINVAL, "%s is no key of %s", number_keys[i].name,
				    p->family->name);
	if (number < number_keys[i].min || number > number_keys[i].max || end != value + bytes) {
		snprintf(right, sizeof(right), "a number from %d to %d", number_keys[i].min, number_keys[i].max);
		return refuse_value(p, number_keys[i].name, value, bytes, right);
	}
	*(int *)((char *)&p->request + number_keys[i].offset) = number;
	return 0;
}

static int read_width(struct topology_link *l, const char *value, size_t bytes)
{
	return topology_parse_width(value, bytes, &l->width);
}

static int read_speed(struct topology_link *l, const char *value, size_t bytes)
{
	return topology_parse_speed(value, bytes, &l->speed);
}

static int read_delay(struct topology_link *l, const char *value, size_t bytes)
{
	return topology_parse_delay(value, bytes, &l->delay_ns);
}

static int read_error_rate(struct topology_link *l, const char *value, size_t bytes)
{
	return topology_parse_error_rate(value, bytes, &l->bit_error_rate);
}

static const struct {
	const char *name, *right;
	int (*read)(struct topology_link *l, const char *value, size_t bytes);
} link_keys[] = {
	{ "width", "1x, 2x, 4x, 8x or 12x", read_width },
	{ "speed", "SDR, DDR, QDR, FDR10, FDR, EDR, HDR or NDR", read_speed },
	{ "delay", "a time up to 1s, as 300ns or 1.5us", read_delay },
	{ "ber", "a bit error rate below 1, as 1e-12", read_error_rate },
};

static int refuse_key(const struct parser *p, const char *text, size_t bytes)
{
	char key[41], hint[64];
	struct nearest near = NEAREST(key);

	snprintf(key, sizeof(key), "%.*s", cut(bytes), text);
	for (size_t i = 0; i < ARRAY_SIZE(number_keys); i++)
		if (p->family->keys & number_keys[i].bit)
			nearest_try(&near, number_keys[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(link_keys); i++)
		nearest_try(&near, link_keys[i].name);
	return topology_say(p->why, p->why_bytes, -EINVAL, "'%s' is no key of %s%s", key, p->family->name,
			    nearest_hint(&near, hint, sizeof(hint)));
}

static bool is_name(const char *text, size_t bytes, const char *name)
{
	return strlen(name) == bytes && !memcmp(text, name, bytes);
}

static int read_key(struct parser *p, const char *text, size_t bytes)
{
	const char *equals = memchr(text, '=', bytes), *value;
	size_t key_bytes, value_bytes;

	if (!equals)
		return topology_say(p->why, p->why_bytes, -EINVAL, "'%.*s' is no KEY=VALUE, as hosts=2 is",
				    cut(bytes), text);
	key_bytes = (size_t)(equals - text);
	value = equals + 1;
	value_bytes = bytes - key_bytes - 1;
	for (size_t i = 0; i < ARRAY_SIZE(number_keys); i++)
		if (is_name(text, key_bytes, number_keys[i].name))
			return read_number_key(p, i, value, value_bytes);
	for (size_t i = 0; i < ARRAY_SIZE(link_keys); i++)
		if (is_name(text, key_bytes, link_keys[i].name))
			return link_keys[i].read(&p->request.link, value, value_bytes) ?
				       refuse_value(p, link_keys[i].name, value, value_bytes, link_keys[i].right) :
				       0;
	return refuse_key(p, text, key_bytes);
}

/* ---- the text ---- */

static int find_family(struct parser *p, size_t bytes)
{
	char name[41], hint[64];
	struct nearest near = NEAREST(name);

	snprintf(name, sizeof(name), "%.*s", cut(bytes), p->text);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		nearest_try(&near, families[i].name);
		if (is_name(p->text, bytes, families[i].name)) {
			p->family = &families[i];
			return 0;
		}
	}
	nearest_hint(&near, hint, sizeof(hint));
	return topology_say(p->why, p->why_bytes, -EINVAL, "'%s' is no family of subnets%s%s", name, hint,
			    *hint ? "" : "; known are single, line, ring, mesh, torus, fat-tree and dragonfly");
}

static int parse(struct parser *p)
{
	size_t bytes = strcspn(p->text, ":");
	const char *at = p->text + bytes;
	int err = find_family(p, bytes);

	if (err)
		return err;
	if (!*at)
		return topology_say(p->why, p->why_bytes, -EINVAL, "%s has no size: right is %s", p->family->name,
				    p->family->form);
	at++;
	bytes = strcspn(at, ",");
	err = read_sizes(p, at, bytes);
	for (at += bytes; !err && *at; at += bytes) {
		at++;
		bytes = strcspn(at, ",");
		err = read_key(p, at, bytes);
	}
	return err;
}

int topology_generate(const char *text, struct topology **t, char *why, size_t why_bytes)
{
	struct parser p = { .text = text, .why = why, .why_bytes = why_bytes };
	struct topology_plan plan = { .request = &p.request, .why = why, .why_bytes = why_bytes };
	struct topology *made;
	int err;

	p.request = (struct topology_request){ .hosts = -1, .spines = -1, .links = -1, .cores = -1, .groups = -1 };
	p.request.link.width = TOPOLOGY_4X;
	p.request.link.speed = TOPOLOGY_EDR;
	err = parse(&p);
	if (err)
		return err;
	made = topology_new();
	if (!made)
		return topology_say(why, why_bytes, -ENOMEM, "no memory for the subnet");
	p.family->plan(&plan);
	err = plan.err ? plan.err : topology_plan_build(&plan, made);
	topology_plan_free(&plan);
	if (err)
		topology_free(made);
	else
		*t = made;
	return err;
}
