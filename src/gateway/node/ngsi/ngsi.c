/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `ngsi`: samples are attributes of an entity of a context broker, by NGSI-v2 or
 * NGSI-LD. A broker keeps the last value only: the reader asks for it again and again.
 */
#define LOG_ROOM "gateway/ngsi"
#include "gateway/node/ngsi/ngsi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/sample/signals.h"

extern const struct node_type node_ngsi;

static const char *const apis[] = { "v2", "ld", NULL };
static const char *const token_headers[] = { "x-auth-token", "bearer", NULL };
static const char *const updates[] = { "append", "existing", NULL };

#define OFFSET(field) offsetof(struct ngsi_node, field)

static const struct config_key ngsi_keys[] = {
	{ "endpoint", CONFIG_STRING, OFFSET(endpoint), .required = true,
	  .help = "Address of the broker, \"http://host:1026\" or https" },
	{ "api", CONFIG_ENUM, OFFSET(api), "v2", .names = apis, .help = "NGSI-v2 or NGSI-LD" },
	{ "entity_id", CONFIG_STRING, OFFSET(entity.id), .required = true, .help = "ID of the entity" },
	{ "entity_type", CONFIG_STRING, OFFSET(entity.type), .required = true,
	  .help = "Type of the entity" },
	{ "access_token", CONFIG_STRING, OFFSET(access_token),
	  .help = "Sent with each request; better access_token_file or ${NAME}" },
	{ "access_token_file", CONFIG_STRING, OFFSET(access_token_file),
	  .help = "File whose first line is the token" },
	{ "token_header", CONFIG_ENUM, OFFSET(token_header), "x-auth-token", .names = token_headers,
	  .help = "X-Auth-Token: TOKEN, or Authorization: Bearer TOKEN" },
	{ "tenant", CONFIG_STRING, OFFSET(tenant),
	  .help = "Header Fiware-Service, of NGSI-LD NGSILD-Tenant" },
	{ "service_path", CONFIG_STRING, OFFSET(service_path),
	  .help = "Header Fiware-ServicePath of NGSI-v2" },
	{ "context", CONFIG_STRING, OFFSET(context),
	  .help = "Address of the @context of NGSI-LD, default is the broker's" },
	{ "create", CONFIG_BOOL, OFFSET(create), "true",
	  .help = "The node that writes creates the entity, unless it is there" },
	{ "delete", CONFIG_BOOL, OFFSET(delete), "false", .help = "The node deletes it when it stops" },
	{ "rate", CONFIG_REAL, OFFSET(rate_hz), "1.0", .min = 1e-5, .max = 1e4,
	  .help = "How often a second the entity is read" },
	{ "timeout", CONFIG_REAL, OFFSET(timeout_s), "1.0", .min = 0.01, .max = 3600,
	  .help = "Seconds of a request with its answer, at most" },
	{ "ssl_verify", CONFIG_BOOL, OFFSET(ssl_verify), "true",
	  .help = "false: as ssl = { verify = false }" },
	{ "max_answer", CONFIG_INT, OFFSET(answer_max), "1048576", .min = 1024, .max = 1 << 28,
	  .help = "Bytes of an answer, at most" },
	OUTSIDE_TLS_KEY(OFFSET(ssl)),
	OUTSIDE_CONNECT_KEYS,
};

static const struct config_key ngsi_in_keys[] = {
	{ "changed_only", CONFIG_BOOL, OFFSET(changed_only), "false",
	  .help = "An answer that is as the one before makes no sample" },
	OUTSIDE_IN_KEYS,
};

static const struct config_key ngsi_out_keys[] = {
	{ "update", CONFIG_ENUM, OFFSET(update), "append", .names = updates,
	  .help = "append: attributes that the entity lacks are added; existing: it has to have them" },
	{ "timestamp", CONFIG_BOOL, OFFSET(entity.timestamp), "true",
	  .help = "The origin time goes with each attribute: metadata timestamp, or observedAt" },
	{ "sequence", CONFIG_BOOL, OFFSET(entity.sequence), "true",
	  .help = "The sequence number goes with each attribute: metadata sequence" },
	OUTSIDE_OUT_KEYS,
};

/* ---- settings ---- */

static int check_text(struct config *c, json_t *cfg, const char *key, const char *text, bool good)
{
	if (!text || good)
		return 0;
	config_fail(c, cfg, key, "it holds a character that is not allowed there");
	return -EINVAL;
}

/* For a header. */
static bool is_word(const char *text)
{
	size_t len = strlen(text);

	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '<' || *p == '>')
			return false;
	return len && len < 1000;
}

static bool is_id(const struct ngsi_node *x, const char *text)
{
	return x->entity.ld ? is_word(text) : ngsi_name_is_good(text);
}

static int parse_names(struct ngsi_node *x, struct config *c, json_t *cfg)
{
	int ret = check_text(c, cfg, "entity_id", x->entity.id, is_id(x, x->entity.id));

	ret = check_text(c, cfg, "entity_type", x->entity.type, is_id(x, x->entity.type)) ?: ret;
	ret = check_text(c, cfg, "tenant", x->tenant, x->tenant && is_word(x->tenant)) ?: ret;
	ret = check_text(c, cfg, "service_path", x->service_path,
			 x->service_path && is_word(x->service_path)) ?: ret;
	ret = check_text(c, cfg, "context", x->context, x->context && is_word(x->context)) ?: ret;
	if (x->entity.ld && !strchr(x->entity.id, ':')) {
		config_fail(c, cfg, "entity_id", "an ID of NGSI-LD is a URI: \"urn:ngsi-ld:%.60s:%.60s\"",
			    x->entity.type, x->entity.id);
		ret = -EINVAL;
	}
	if ((x->entity.ld && x->service_path) || (!x->entity.ld && x->context)) {
		config_fail(c, cfg, x->context && !x->entity.ld ? "context" : "service_path",
			    "is of api = \"%s\"", x->entity.ld ? "v2" : "ld");
		ret = -EINVAL;
	}
	return ret;
}

static int ngsi_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct ngsi_node *x = n->private_data;
	static const char *const secrets[] = { "access_token", "access_token_file", NULL };
	const json_t *in = signal_list_is_given(n->in.cfg, "signals") ? n->in.cfg : cfg;
	const json_t *out = signal_list_is_given(n->out.cfg, "signals") ? n->out.cfg : cfg;
	int ret;

	x->entity.ld = x->api == 1;
	x->creates_always = x->create && json_object_get(cfg, "create");
	ret = parse_names(x, c, cfg);
	ret = ngsi_attributes_parse(&x->entity.in, c, in, x->entity.ld) ?: ret;
	ret = ngsi_attributes_parse(&x->entity.out, c, out, x->entity.ld) ?: ret;
	ret = outside_secret_check(c, cfg, "access_token", "access_token_file") ?: ret;
	if (outside_http_parse(&x->tls, c, cfg, "endpoint", x->endpoint, secrets))
		return -EINVAL;
	if (!x->ssl_verify)
		x->tls.verify = x->tls.verify_host = false;
	outside_url_shown(x->endpoint, x->target, sizeof(x->target));
	outside_set_target(&x->outside, x->target);
	return ret;
}

static int ngsi_check(struct node *n, struct config *c, json_t *cfg)
{
	if (!n->is_source || (n->in.signals && n->in.signals->count))
		return 0;
	config_fail(c, cfg, NULL, "a path reads the node, but in.signals is missing");
	return -EINVAL;
}

/* Two values of one attribute would be one. */
static int ngsi_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct ngsi_node *x = n->private_data;
	const struct signal_list *l = n->out.signals ?: n->out.hooked;
	int ret = 0;

	for (unsigned i = 0; l && i < l->count && l->count <= 4096; i++) {
		const char *name = ngsi_attribute_name(&x->entity.out, i, l), *why = NULL;

		if (!x->entity.ld && !ngsi_name_is_good(name))
			why = "NGSI-v2 has no such names; ngsi_attribute_name gives another one";
		for (unsigned k = 0; k < i && !why; k++)
			if (!strcmp(name, ngsi_attribute_name(&x->entity.out, k, l)))
				why = "another signal has this name";
		if (!why)
			continue;
		config_fail(c, cfg, "out", "the signal '%.60s' cannot be an attribute: %s", name, why);
		ret = -EINVAL;
	}
	return ret;
}

static int ngsi_init(struct node *n)
{
	outside_init(n, &ngsi_ops);
	return 0;
}

static void ngsi_destroy(struct node *n)
{
	struct ngsi_node *x = n->private_data;

	if (!x->outside.has_thread) {
		ngsi_attributes_free(&x->entity.in);
		ngsi_attributes_free(&x->entity.out);
	}
	outside_destroy(n);
}

static void ngsi_print_node(struct node *n, char *buf, size_t size)
{
	struct ngsi_node *x = n->private_data;

	snprintf(buf, size, "%s, NGSI-%s, entity %s of type %s, rate %g", x->target, apis[x->api],
		 x->entity.id, x->entity.type, x->rate_hz);
}

static const struct node_figure ngsi_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[NGSI_POLLS] = { "polls", "Requests that read the entity", NODE_COUNTER },
	[NGSI_SKIPPED] = { "polls_left_out", "Polls for which the answer before them came too late",
			   NODE_COUNTER },
	[NGSI_EMPTY] = { "empty", "Answers without any of the attributes", NODE_COUNTER },
	[NGSI_UNCHANGED] = { "unchanged", "Answers that were as the one before", NODE_COUNTER },
	[NGSI_LATER] = { "postponed", "Requests that the broker asked to repeat later", NODE_COUNTER },
	[NGSI_LEFT_OUT] = { "left_out", "Values that are no number, or infinite, and were left out",
			    NODE_COUNTER },
};

const struct node_type node_ngsi = {
	.name = "ngsi",
	.description = "Samples are attributes of an entity of a context broker",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct ngsi_node),
	.keys = ngsi_keys,
	.key_count = ARRAY_SIZE(ngsi_keys),
	.in_keys = ngsi_in_keys,
	.in_key_count = ARRAY_SIZE(ngsi_in_keys),
	.out_keys = ngsi_out_keys,
	.out_key_count = ARRAY_SIZE(ngsi_out_keys),
	.signal_keys = ngsi_signal_keys,
	.signal_key_count = NGSI_SIGNAL_KEYS,
	.figures = ngsi_figures,
	.figure_count = ARRAY_SIZE(ngsi_figures),
	.type_start = outside_http_type_start,
	.type_stop = outside_http_type_stop,
	OUTSIDE_SAMPLES,
	.init = ngsi_init,
	.destroy = ngsi_destroy,
	.check_signals = ngsi_check_signals,
	.parse = ngsi_parse,
	.check = ngsi_check,
	.start = outside_start,
	.stop = outside_stop,
	.print = ngsi_print_node,
};
