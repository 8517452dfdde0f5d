/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `iec60870-5-104`: its settings and callbacks; see station.h. */
#define LOG_ROOM "gateway/iec60870-5-104"
#include "gateway/node/iec60870-5-104/station.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

extern const struct node_type node_iec60870_5_104;

static const char *const mode_names[] = {
	[STATION_SLAVE] = "slave",
	[STATION_MASTER] = "master",
	NULL,
};

static const char *const freeze_names[] = {
	[IEC104_READ] = "read",
	[IEC104_FREEZE] = "freeze",
	[IEC104_FREEZE_RESET] = "freeze_reset",
	[IEC104_RESET] = "reset",
	NULL,
};

#define GROUPS_FORM(most) \
	"'type': ['array', 'null'], 'items': {'type': 'integer', 'minimum': 1, 'maximum': " most "}"
#define REDUNDANCY_FORM "'type': 'array', 'maxItems': 16, 'items': {'type': 'object', " \
	"'required': ['peers'], 'additionalProperties': false, 'properties': {'peers': {" CONFIG_TEXTS "}}}"
#define STANDBY_FORM "'type': 'array', 'maxItems': 7, 'items': {'type': 'string', " \
	"'minLength': 1, 'maxLength': 130, 'pattern': '^[A-Za-z0-9_.-]+(:[0-9]{1,5})?$|^[0-9a-fA-F:]+$|^\\\\[[0-9a-fA-F:]+\\\\](:[0-9]{1,5})?$'}"
#define STANDBY_MAX 7
#define REDUNDANCY_MAX 16
#define OFFSET(field) offsetof(struct station, field)

static const struct config_key station_keys[] = {
	{ "mode", CONFIG_ENUM, OFFSET(mode), "slave", .names = mode_names,
	  .help = "slave: the controlled station, which listens; master: the controlling one, which connects" },
	{ "address", CONFIG_STRING, OFFSET(address),
	  .help = "Slave: where to listen, 0.0.0.0 for all interfaces, default 127.0.0.1; master: the host of the slave" },
	{ "standby", CONFIG_JSON, OFFSET(standby_cfg), .form = STANDBY_FORM,
	  .help = "Master: further hosts, host[:port], of the same slave, which take over when the connection ends" },
	{ "port", CONFIG_INT, OFFSET(port), "2404", .min = 1, .max = 65535, .help = "TCP port" },
	{ "ca", CONFIG_INT, OFFSET(common_address), "1", .min = 1, .max = 65534,
	  .help = "Common address of the slave" },
	{ "originator", CONFIG_INT, OFFSET(originator), "0", .min = 0, .max = 255,
	  .help = "Originator address in what is sent" },
	{ "low_priority_queue", CONFIG_INT, OFFSET(low_size), "100", .min = 1, .max = 65536,
	  .help = "ASDUs of written samples that wait for each master; of a master: samples" },
	{ "high_priority_queue", CONFIG_INT, OFFSET(high_size), "100", .min = 1, .max = 65536,
	  .help = "Answers that wait for each master; more if an interrogation needs them" },
	{ "apci_t0", CONFIG_REAL, OFFSET(t0_s), "30", .min = 0.1, .max = 255,
	  .help = "Seconds until a connection has to be made" },
	{ "apci_t1", CONFIG_REAL, OFFSET(t1_s), "15", .min = 0.1, .max = 255,
	  .help = "Seconds until the peer has to acknowledge what was sent" },
	{ "apci_t2", CONFIG_REAL, OFFSET(t2_s), "10", .min = 0.1, .max = 255,
	  .help = "Seconds until what has come is acknowledged; less than apci_t1" },
	{ "apci_t3", CONFIG_REAL, OFFSET(t3_s), "20", .min = 0.1, .max = 172800,
	  .help = "Seconds of silence until the peer is tested" },
	{ "apci_k", CONFIG_INT, OFFSET(k), "12", .min = 1, .max = 32767,
	  .help = "ASDUs that may be sent without an acknowledgement" },
	{ "apci_w", CONFIG_INT, OFFSET(w), "8", .min = 1, .max = 32767,
	  .help = "ASDUs that may come until they are acknowledged; not more than apci_k" },
	{ "peers", CONFIG_JSON, OFFSET(peers_cfg), .form = CONFIG_TEXTS,
	  .help = "Slave: addresses or networks of the masters that may connect; all without" },
	{ "max_clients", CONFIG_INT, OFFSET(clients_max), "8", .min = 1, .max = 1024,
	  .help = "Slave: masters that are connected at a time" },
	{ "redundancy_groups", CONFIG_JSON, OFFSET(redundancy_cfg), .form = REDUNDANCY_FORM,
	  .help = "Slave: masters that share what is sent; one connection of a group at a time gets data" },
	{ "select_timeout", CONFIG_REAL, OFFSET(select_s), "10", .min = 0.1, .max = 3600,
	  .help = "Slave: seconds for which a command stays selected" },
	{ "command_max_age", CONFIG_REAL, OFFSET(command_age_s), "0", .min = 0, .max = 86400,
	  .help = "Slave: seconds by which the time of a command may differ from the clock; 0: any" },
	{ "command_timeout", CONFIG_REAL, OFFSET(command_s), "5", .min = 0.1, .max = 3600,
	  .help = "Master: seconds until the commands of a sample have to be confirmed" },
	{ "interrogation", CONFIG_BOOL, OFFSET(interrogation), "true",
	  .help = "Master: asks for all values when the transfer has started" },
	{ "counter_interrogation", CONFIG_BOOL, OFFSET(counter_interrogation), "false",
	  .help = "Master: asks for all counters, too" },
	{ "interrogation_groups", CONFIG_JSON, OFFSET(groups_cfg), .form = GROUPS_FORM("16"),
	  .help = "Master: asks for the values of these groups, 1 to 16, in place of all" },
	{ "counter_groups", CONFIG_JSON, OFFSET(counter_groups_cfg), .form = GROUPS_FORM("4"),
	  .help = "Master: asks for these groups of counters, 1 to 4, in place of all" },
	{ "counter_freeze", CONFIG_ENUM, OFFSET(counter_freeze), "read", .names = freeze_names,
	  .help = "Master: what is done with counters before they are asked for" },
	{ "counter_interval", CONFIG_REAL, OFFSET(counter_interval_s), "0", .min = 0, .max = 86400,
	  .help = "Master: seconds between questions for counters; 0: one when the transfer has started" },
	{ "counter_reset", CONFIG_BOOL, OFFSET(counter_reset), "false",
	  .help = "Slave: masters may reset counters" },
	{ "clock_synchronization", CONFIG_BOOL, OFFSET(clock_synchronization), "false",
	  .help = "Master: sends its time when the transfer has started; slave: compares it with its own, instead of refusing it" },
	{ "reconnect_interval", CONFIG_REAL, OFFSET(reconnect_s), "1", .min = 0.01, .max = 86400,
	  .help = "Master: seconds between attempts to connect, at most" },
};

static const struct config_key station_in_keys[] = {
	{ "duplicate_ioa_is_sequence", CONFIG_BOOL, OFFSET(in_sequence), "false",
	  .help = "A signal with the address of the one before it has the next address" },
	{ "complete", CONFIG_BOOL, OFFSET(complete), "false",
	  .help = "Master: a sample when all signals have come, not with each ASDU" },
	{ "queuelen", CONFIG_INT, OFFSET(queuelen), "1024", .min = 2, .max = 1 << 20,
	  .help = "Samples that wait to be read" },
};

static const struct config_key station_out_keys[] = {
	{ "duplicate_ioa_is_sequence", CONFIG_BOOL, OFFSET(out_sequence), "false",
	  .help = "A signal with the address of the one before it has the next address, and ASDUs of such signals have one address" },
};

/* ---- settings ---- */

static int station_init(struct node *n)
{
	struct station *s = n->private_data;

	s->node = n;
	s->inbox.event_fd = -1;
	s->faults.node = n;
	s->wake_fd = s->server.listener = -1;
	pthread_mutex_init(&s->lock, NULL);
	return 0;
}

static uint64_t seconds(double s)
{
	return (uint64_t)(s * 1e9);
}

static int parse_link(struct station *s, struct config *c, json_t *cfg)
{
	const char *why;

	s->link = (struct iec104_settings){ seconds(s->t1_s), seconds(s->t2_s), seconds(s->t3_s),
					    (unsigned)s->k, (unsigned)s->w };
	why = iec104_settings_check(&s->link);
	if (!why)
		return 0;
	config_fail(c, cfg, NULL, "apci_t1 %g s, apci_t2 %g s, apci_t3 %g s, apci_k %lld, apci_w %lld: %s",
		    s->t1_s, s->t2_s, s->t3_s, (long long)s->k, (long long)s->w, why);
	return -EINVAL;
}

static const json_t *signals_holder(const struct node_direction *d, const json_t *cfg)
{
	return json_object_get(d->cfg, "signals") ? d->cfg : cfg;
}

static int parse_points(struct station *s, struct config *c, json_t *cfg)
{
	struct node *n = s->node;
	bool master = s->mode == STATION_MASTER;
	int ret = 0;

	if (n->in.present && n->in.enabled)
		ret = points_parse(&s->in, c, signals_holder(&n->in, cfg), !master, s->in_sequence);
	if (n->out.present && n->out.enabled)
		ret = points_parse(&s->out, c, signals_holder(&n->out, cfg), master,
				   s->out_sequence) ?: ret;
	return ret;
}

static int parse_address(struct station *s, struct config *c, json_t *cfg)
{
	if (s->mode == STATION_MASTER && !s->address) {
		config_fail(c, cfg, "address", "is required: the host of the slave");
		return -EINVAL;
	}
	if (!s->address) {
		s->address = "127.0.0.1";
		config_warn(c, cfg, NULL,
			    "only masters on this host reach the slave, because there is no `address` to listen on");
	}
	if (*s->address && strlen(s->address) < SOCKET_ADDRESS_MAX)
		return 0;
	config_fail(c, cfg, "address", "is no address");
	return -EINVAL;
}

/* A list of groups as bits. */
static int parse_groups(uint32_t *to, struct config *c, json_t *cfg, const char *key, json_t *list,
			int most)
{
	size_t i;
	json_t *e;

	if (list && !json_is_null(list) && !json_is_array(list)) {
		config_fail(c, cfg, key, "expected a list of groups");
		return -EINVAL;
	}
	json_array_foreach(list, i, e) {
		if (!json_is_integer(e) || json_integer_value(e) < 1 || json_integer_value(e) > most) {
			config_fail(c, cfg, key, "has groups of 1 to %d", most);
			return -EINVAL;
		}
		*to |= UINT32_C(1) << json_integer_value(e);
	}
	return 0;
}

static int add_remote(struct station *s, struct config *c, json_t *cfg, const char *key,
		      const char *text)
{
	struct station_remote *r = &s->remotes[s->remote_count];
	char why[SOCKET_WHY_MAX];

	if (!socket_address_complete(text, (unsigned)s->port, r->address, sizeof(r->address))) {
		config_fail(c, cfg, key, "is too long");
		return -EINVAL;
	}
	if (socket_address_check(LAYER_TCP_CLIENT, r->address, why)) {
		config_fail(c, cfg, key, "%s", why);
		return -EINVAL;
	}
	s->remote_count++;
	return 0;
}

/* The slaves to which a master connects. */
static int parse_remotes(struct station *s, struct config *c, json_t *cfg)
{
	size_t count = json_array_size(s->standby_cfg), i;
	json_t *e;
	int ret = 0;

	if (s->standby_cfg && (!json_is_array(s->standby_cfg) || count > STANDBY_MAX)) {
		config_fail(c, cfg, "standby", "has to be a list of up to %d hosts", STANDBY_MAX);
		return -EINVAL;
	}
	if (s->mode != STATION_MASTER) {
		if (s->standby_cfg)
			config_fail(c, cfg, "standby", "is for a master");
		return s->standby_cfg ? -EINVAL : 0;
	}
	s->remotes = calloc(count + 1, sizeof(*s->remotes));
	if (!s->remotes)
		return -ENOMEM;
	ret = add_remote(s, c, cfg, "address", s->address);
	json_array_foreach(s->standby_cfg, i, e) {
		if (!json_is_string(e)) {
			config_fail(c, cfg, "standby", "entry %zu is no text", i);
			return -EINVAL;
		}
		ret = add_remote(s, c, cfg, "standby", json_string_value(e)) ?: ret;
	}
	return ret;
}

static int parse_redundancy(struct station *s, struct config *c, json_t *cfg)
{
	json_t *list = s->redundancy_cfg, *e;
	size_t i;
	int ret = 0;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > REDUNDANCY_MAX) {
		config_fail(c, cfg, "redundancy_groups", "has to be a list of up to %d groups: ( { peers = [ \"192.0.2.1\" ]; } )",
			    REDUNDANCY_MAX);
		return -EINVAL;
	}
	if (s->mode == STATION_MASTER) {
		config_fail(c, cfg, "redundancy_groups", "is for a slave");
		return -EINVAL;
	}
	s->redundancy = calloc(json_array_size(list) + 1, sizeof(*s->redundancy));
	if (!s->redundancy)
		return -ENOMEM;
	json_array_foreach(list, i, e) {
		if (!json_is_object(e) || json_object_size(e) != 1 || !json_object_get(e, "peers")) {
			config_fail(c, cfg, "redundancy_groups", "entry %zu has to be { peers = [ ... ]; }", i);
			return -EINVAL;
		}
		ret = peers_parse(&s->redundancy[s->redundancy_count++].peers, c, e,
				  json_object_get(e, "peers")) ?: ret;
	}
	return ret;
}

static int station_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct station *s = n->private_data;
	int ret = parse_address(s, c, cfg);

	s->node = n;
	s->role = s->mode == STATION_MASTER ? &station_master : &station_slave;
	ret = ret ?: parse_remotes(s, c, cfg);
	ret = parse_link(s, c, cfg) ?: ret;
	ret = peers_parse(&s->peers, c, cfg, s->peers_cfg) ?: ret;
	ret = parse_points(s, c, cfg) ?: ret;
	ret = parse_redundancy(s, c, cfg) ?: ret;
	ret = parse_groups(&s->groups, c, cfg, "interrogation_groups", s->groups_cfg,
			   POINT_GROUPS) ?: ret;
	ret = parse_groups(&s->counter_groups, c, cfg, "counter_groups", s->counter_groups_cfg,
			   POINT_COUNTER_GROUPS) ?: ret;
	if (s->mode == STATION_MASTER && s->peers_cfg) {
		config_fail(c, cfg, "peers", "is for a slave; a master connects to `address` alone");
		ret = -EINVAL;
	}
	if (!ret && s->mode == STATION_SLAVE && s->out.chunk_count > s->low_size) {
		config_fail(c, cfg, "low_priority_queue",
			    "a sample takes %u ASDUs, which is the least size", s->out.chunk_count);
		ret = -EINVAL;
	}
	return ret;
}

static int station_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	const struct station *s = n->private_data;
	const struct signal_list *l = n->out.hooked;
	unsigned needed = 0;

	for (unsigned i = 0; i < s->out.count; i++)
		needed = MAX(needed, s->out.list[i].value + 1);
	if (n->is_destination && l && l->count < needed)
		config_warn(c, n->out.cfg ? n->out.cfg : cfg, "signals",
			    "%u signals have addresses, samples have %u values", needed, l->count);
	return 0;
}

static void station_destroy(struct node *n)
{
	struct station *s = n->private_data;

	points_free(&s->in);
	points_free(&s->out);
	peers_free(&s->peers);
	for (unsigned i = 0; i < s->redundancy_count; i++)
		peers_free(&s->redundancy[i].peers);
	free(s->redundancy);
	free(s->remotes);
	pthread_mutex_destroy(&s->lock);
}

/* ---- life ---- */

/* What waits for a redundancy group when the node stops. */
static void groups_end(struct station *s)
{
	for (unsigned i = 0; i < s->redundancy_count; i++) {
		struct station_group *g = &s->redundancy[i].group;
		unsigned lost = g->low.slots ? station_queue_samples(&g->low) : 0;

		if (lost)
			node_lose(s->node, NODE_LOSS_ABSENT, lost,
				  "no master of its redundancy group has taken them");
		free(g->low.slots);
		*g = (struct station_group){ 0 };
	}
}

/* As many ASDUs as are not acknowledged may be taken back. */
static int groups_begin(struct station *s)
{
	int ret = 0;

	for (unsigned i = 0; i < s->redundancy_count && !ret; i++)
		ret = station_queue_init(&s->redundancy[i].group.low, (unsigned)s->low_size,
					 (unsigned)s->k);
	if (ret)
		log_error("%s: no memory for its redundancy groups", s->node->name);
	return ret;
}

static int station_stop(struct node *n)
{
	struct station *s = n->private_data;

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	if (s->wake_fd >= 0)
		wakeup_post(s->wake_fd);
	pthread_mutex_unlock(&s->lock);
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	s->has_thread = false;
	station_connections_free(s);
	groups_end(s);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	s->wake_fd = -1;
	free(s->last);
	free(s->counters);
	free(s->readings);
	free(s->orders.objects);
	free(s->orders.steps);
	free(s->values);
	free(s->seen);
	s->last = s->readings = NULL;
	s->counters = NULL;
	s->orders = (struct station_orders){ 0 };
	s->values = NULL;
	s->seen = NULL;
	inbox_note_unread(&s->inbox, &s->faults);
	inbox_destroy(&s->inbox);
	fault_finish(&s->faults);
	return 0;
}

/* What an interrogation before the first sample says. */
static void forget_values(struct station *s)
{
	for (unsigned i = 0; i < s->out.count; i++) {
		s->last[i] = (struct iec104_object){ .address = s->out.list[i].address,
						     .quality = IEC104_INVALID };
		s->last[i].time.invalid = true;
	}
}

static int allocate(struct station *s)
{
	const struct signal_list *in = s->node->in.signals;
	unsigned values = s->in.count && in ? in->count : 1;
	int ret = inbox_init(&s->inbox, 1, (unsigned)s->queuelen, values);

	s->inbox.faults = &s->faults;
	s->last = calloc(s->out.count + 1, sizeof(*s->last));
	s->counters = calloc(s->out.count + 1, sizeof(*s->counters));
	s->readings = calloc(s->out.count + 1, sizeof(*s->readings));
	s->values = calloc(values, sizeof(*s->values));
	s->seen = calloc(s->in.count + 1, sizeof(*s->seen));
	s->orders.size = (unsigned)s->low_size;
	s->orders.steps = calloc(s->out.count + 1, sizeof(*s->orders.steps));
	if (s->mode == STATION_MASTER)
		s->orders.objects = calloc((size_t)s->low_size * s->out.count + 1,
					   sizeof(*s->orders.objects));
	if (!ret && (!s->last || !s->counters || !s->readings || !s->values || !s->seen || !s->orders.steps ||
		     (s->mode == STATION_MASTER && !s->orders.objects)))
		ret = -ENOMEM;
	if (ret) {
		log_error("%s: no memory for its queues: %s", s->node->name, strerror(-ret));
		return ret;
	}
	for (unsigned i = 0; i < values && in && s->in.count; i++)
		s->values[i] = in->signals[i].init;
	forget_values(s);
	return 0;
}

static int station_start(struct node *n)
{
	struct station *s = n->private_data;
	int ret;

	s->node = n;
	s->faults.node = n;
	s->ending = s->asleep = false;
	s->was_active = NULL;
	s->started = s->seen_count = 0;
	s->end_ns = 0;
	s->counters_ns = IEC104_NEVER;
	s->shown = 0;
	for (unsigned i = 0; i < s->remote_count; i++) {
		struct station_remote *r = &s->remotes[i];

		r->target_count = r->target_next = 0;
		r->said_unreachable = false;
		backoff_reset(&r->retry);
	}
	s->wake_fd = wakeup_open_signal();
	ret = s->wake_fd < 0 ? s->wake_fd : 0;
	if (ret)
		log_error("%s: no event descriptor: %s", n->name, strerror(-ret));
	ret = ret ?: allocate(s) ?: station_connections_new(s) ?: groups_begin(s);
	if (!ret && s->mode == STATION_SLAVE)
		ret = stream_server_listen_at(&s->server, s->address, (unsigned)s->port, "address");
	if (!ret) {
		ret = thread_start(&s->thread, "iec104", THREAD_NORMAL, station_run, s);
		s->has_thread = !ret;
		if (ret)
			log_error("%s: no thread: %s", n->name, strerror(-ret));
	}
	if (ret)
		station_stop(n);
	return ret;
}

/* ---- samples ---- */

static int station_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct station *s = n->private_data;

	return s->mode == STATION_MASTER ? station_master_write(s, smps, cnt) :
					   station_slave_write(s, smps, cnt);
}

static void station_print(struct node *n, char *buf, size_t size)
{
	const struct station *s = n->private_data;

	snprintf(buf, size, "%s, %s %.80s, port %lld, ca %lld, in %u and out %u objects",
		 mode_names[s->mode], s->mode == STATION_MASTER ? "to" : "at", s->address,
		 (long long)s->port, (long long)s->common_address, s->in.count, s->out.count);
}

static const struct node_figure station_figures[STATION_FIGURES] = {
	[FAULT_MALFORMED] = { "malformed", "ASDUs that cannot be read", NODE_COUNTER },
	[FAULT_FOREIGN] = { "foreign", "ASDUs of other stations, and connections of hosts that peers does not have", NODE_COUNTER },
	[FAULT_OVERRUN] = { "overrun", "Samples that found no room until they were read", NODE_COUNTER },
	[FAULT_DROPPED] = { "dropped", "Connections that found no place", NODE_COUNTER },
	[STATION_CONNECTIONS] = { "connections", "Connections now", NODE_GAUGE },
	[STATION_STARTED] = { "started", "Connections whose data transfer is started", NODE_GAUGE },
	[STATION_CONNECTED] = { "connected", "Connections that were made", NODE_COUNTER },
	[STATION_BREACHES] = { "breaches", "Connections that were ended because the peer broke the protocol or was silent", NODE_COUNTER },
	[STATION_TURNED_AWAY] = { "turned_away", "Connections that were not taken", NODE_COUNTER },
	[STATION_RECEIVED] = { "asdus_received", "ASDUs received", NODE_COUNTER },
	[STATION_SENT] = { "asdus_sent", "ASDUs sent", NODE_COUNTER },
	[STATION_UNKNOWN] = { "unknown", "Objects and ASDUs that the configuration does not name", NODE_COUNTER },
	[STATION_INVALID] = { "invalid", "Values that were not taken because their quality is invalid or they are a test", NODE_COUNTER },
	[STATION_INCOMPLETE] = { "incomplete", "Samples that were given up because a signal came twice before all had come", NODE_COUNTER },
	[STATION_COMMANDS] = { "commands", "Commands that were taken", NODE_COUNTER },
	[STATION_REFUSED] = { "commands_refused", "Commands that were refused", NODE_COUNTER },
	[STATION_INTERROGATIONS] = { "interrogations", "Interrogations that were answered", NODE_COUNTER },
	[STATION_FREEZES] = { "freezes", "Times that counters were frozen or reset", NODE_COUNTER },
	[STATION_SWITCHES] = { "switches", "Times that a connection took over from another one", NODE_COUNTER },
	[STATION_CLOCK_OFFSET] = { "clock_offset_ms", "Milliseconds between this clock and that of the master at its last message", NODE_GAUGE },
};

const struct node_type node_iec60870_5_104 = {
	.name = "iec60870-5-104",
	.description = "Telecontrol of substations over TCP, as slave or as master",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_NEEDS_GROUP | NODE_STOP_WAITS,
	.size = sizeof(struct station),
	.keys = station_keys,
	.key_count = ARRAY_SIZE(station_keys),
	.in_keys = station_in_keys,
	.in_key_count = ARRAY_SIZE(station_in_keys),
	.out_keys = station_out_keys,
	.out_key_count = ARRAY_SIZE(station_out_keys),
	.signal_keys = point_keys,
	.signal_key_count = POINT_KEYS,
	.figures = station_figures,
	.figure_count = ARRAY_SIZE(station_figures),
	.init = station_init,
	.destroy = station_destroy,
	.parse = station_parse,
	.check_signals = station_check_signals,
	.start = station_start,
	.stop = station_stop,
	.read = inbox_node_read,
	.write = station_write,
	.sleep = inbox_node_sleep,
	.interrupt = inbox_node_interrupt,
	.rearm = inbox_node_rearm,
	.poll_fds = inbox_node_poll_fds,
	.print = station_print,
};
