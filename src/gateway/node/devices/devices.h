/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-types of VILLASnode whose devices need libraries or drivers that busbar cannot use: they
 * are closed, or not packaged. The types are there so that configurations can be checked in full;
 * a node that a gateway is to start says what is missing, and the start fails. Nothing here moves
 * a sample.
 *
 * tables.c has the keys, devices.c what all have in common.
 */
#ifndef GATEWAY_NODE_DEVICES_DEVICES_H
#define GATEWAY_NODE_DEVICES_DEVICES_H

#include "gateway/plugin/node.h"

#define DEVICE_VALUES 48

/* A setting; the type of its key says which member holds it. */
union device_value {
	bool on;
	int64_t number;
	double real;
	const char *text;
	int index;
	json_t *json;
};

struct device_node;

/* What a type has beyond struct node_type. */
struct device {
	const char *needs;         /* with where it comes from */
	const char *instead;       /* what to do */
	/* Checks what the tables cannot; 0 or -EINVAL, reported. May be NULL. */
	int (*check)(const struct device_node *d, struct config *c, const json_t *cfg);
	/* Likewise, for an entry of `in.signals` or `out.signals`, of which `v` has the keys. */
	int (*check_signal)(const struct device_node *d, const union device_value v[],
			    struct config *c, const json_t *entry);
};

/* The private data of a node of each of these types: the value of key KEY(i, ...) is v[i]. */
struct device_node {
	const struct device *device; /* set by init() */
	union device_value v[DEVICE_VALUES];
};

/* devices.c: members of struct node_type */
int device_node_parse(struct node *n, struct config *c, json_t *cfg);
int device_node_prepare(struct node *n);
int device_node_refuse(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
void device_node_print(struct node *n, char *buf, size_t size);

/* Keys of a whole configuration that VILLASnode has for these types. */
#define DEVICE_ETHERCAT_KEYS 3
extern const struct config_key device_ethercat_keys[DEVICE_ETHERCAT_KEYS];
extern const char device_fpgas_form[];
/* Check the values of `ethercat` and `fpgas` (NULL: absent), which stand in `at`. */
void device_ethercat_check(struct config *c, const json_t *at, const json_t *value);
void device_fpgas_check(struct config *c, const json_t *at, const json_t *value);

#endif
