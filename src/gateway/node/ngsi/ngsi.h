/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `ngsi`, for its own files: ngsi.c has the settings, attributes.c those of signals,
 * connect.c the requests, entity.c and scan.c the JSON.
 */
#ifndef GATEWAY_NODE_NGSI_NGSI_H
#define GATEWAY_NODE_NGSI_NGSI_H

#include "gateway/node/ngsi/entity.h"
#include "gateway/outside/http/outside_http.h"
#include "util/container_of.h"

enum {
	NGSI_POLLS = OUTSIDE_FIGURES,
	NGSI_SKIPPED,
	NGSI_EMPTY,
	NGSI_UNCHANGED,
	NGSI_LATER,
	NGSI_LEFT_OUT,
};

enum ngsi_step {
	NGSI_CREATE, /* the entity is to be created */
	NGSI_CHECK,  /* whether it is there is to be asked */
	NGSI_UP,
};

struct ngsi_node {
	struct outside outside;     /* first */

	/* Settings */
	const char *endpoint, *access_token, *access_token_file, *tenant, *service_path, *context;
	int api, token_header, update; /* indices of the names in ngsi.c */
	bool ssl_verify, create, delete, changed_only;
	bool creates_always;        /* also if no path writes the node */
	double timeout_s, rate_hz;
	int64_t answer_max;
	json_t *ssl;
	struct outside_tls tls;
	struct ngsi_entity entity;
	char target[300];

	/* From open to close */
	struct outside_http http;
	struct outside_http_call writer, reader;
	char create_url[OUTSIDE_HTTP_URL], update_url[OUTSIDE_HTTP_URL],
		read_url[OUTSIDE_HTTP_URL], delete_url[OUTSIDE_HTTP_URL];
	enum ngsi_step step;
	bool broken;
	uint64_t step_ns;           /* when the step is due */
	uint64_t poll_ns;           /* the next poll */
	/* An update that is sent, or is due at update_ns */
	bool has_update;
	char *body;
	size_t body_size, body_len;
	uint64_t tag, update_ns;
	unsigned samples;
	/* The last sample that was read */
	struct sample *last;
};

static inline struct ngsi_node *ngsi_of(struct outside *o)
{
	return container_of(o, struct ngsi_node, outside);
}

/* attributes.c */
#define NGSI_SIGNAL_KEYS 3
/* Keys of an entry of `signals`. */
extern const struct config_key ngsi_signal_keys[NGSI_SIGNAL_KEYS];
/* The attributes of `signals` of a direction. 0, -EINVAL after config_fail() or -ENOMEM. */
int ngsi_attributes_parse(struct ngsi_attributes *a, struct config *c, const json_t *at, bool ld);
void ngsi_attributes_free(struct ngsi_attributes *a);
/* Whether NGSI-v2 allows a name, or an ID. */
bool ngsi_name_is_good(const char *name);

/* connect.c */
extern const struct outside_ops ngsi_ops;

#endif
