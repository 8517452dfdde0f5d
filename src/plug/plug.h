/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process that is plugged into a host port of a running fabric (`busbar fabric run`) and the
 * fabric's process say to each other; and the client's side of it. The adapter (transport/fabric),
 * libibumad.so.3 (src/umad) and `busbar fabric show` are clients, src/fabric/serve is the server.
 *
 * A connection is a SOCK_SEQPACKET socket under the abstract name "busbar.fabric.NAME". Both sides ask
 * the kernel who the other one is (SO_PEERCRED). The first message is PLUG_HELLO, the answer
 * PLUG_WELCOME or PLUG_REFUSED. Each message is a struct plug_head and a body. Integers are in host
 * order (both are on one host), packets and MADs are bytes of the wire. The server believes nothing of
 * a message: it checks the source LID, the P_Key and the queue pair number against what it knows of
 * the connection.
 *
 * A host has one port, one LID and one space of queue pair numbers, and any number of processes.
 */
#ifndef PLUG_PLUG_H
#define PLUG_PLUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUG_VERSION 1
#define PLUG_NAME "busbar.fabric.%s"
#define PLUG_NAME_MAX 64 /* of a fabric, of a host, with the zero */
#define PLUG_PKEYS 32
#define PLUG_GUIDS 8
#define PLUG_MAD_BYTES 256
#define PLUG_PACKET_BYTES (8 + 40 + 12 + 28 + 4096 + 4 + 4) /* LRH to ICRC, rounded up */
#define PLUG_MESSAGE_BYTES 8192

enum plug_type {
	/* from the client */
	PLUG_HELLO = 1,
	PLUG_QP_OPEN,     /* struct plug_qp: packets for this number come here */
	PLUG_QP_CLOSE,
	PLUG_GROUP_JOIN,  /* struct plug_group: multicast packets to this MLID and MGID come here */
	PLUG_GROUP_LEAVE,
	PLUG_PACKET,      /* both ways: a native packet from the LRH to the ICRC. `a`: 0. A port without
			   * room is not read any more, so that the client's next send() is -EAGAIN */
	PLUG_AGENT_OPEN,  /* struct plug_agent: MADs of this class come to agent `a` (0 to 31, which the
			   * client chooses); answered by PLUG_AGENT */
	PLUG_AGENT_CLOSE, /* `a`: its number */
	PLUG_MAD,         /* both ways: struct plug_mad, then the MAD (256 bytes) */
	PLUG_SET_CAPABILITY, /* `a`: bits of PortInfo:CapabilityMask to set, `b`: to clear (IsSM) */
	PLUG_ASK,         /* a line of text for the fabric's process, of PLUG_CONTROL clients alone. The
			   * answer is any number of PLUG_TEXT, then a PLUG_DONE with `b` as here, not 0.
			   * If that says an error, the text is a line for a person */
	PLUG_FIND,        /* struct plug_peer with a GUID or a number, the rest 0, of PLUG_VERBS clients; `b` is
			   * not 0. Answered by PLUG_PEER with the same `b` */
	/* from the server */
	PLUG_WELCOME = 0x40, /* struct plug_welcome, then a PLUG_PORT message */
	PLUG_REFUSED,     /* `a`: errno; the body is a line for a person; the connection ends */
	PLUG_PORT,        /* struct plug_port: the state of the port, at first and when it changes */
	PLUG_DONE,        /* the answer to a message with `b` != 0: `a` 0 or errno, `b` as there */
	PLUG_EVENT,       /* `a`: an ibv_event_type of the port (client re-register, P_Key change ...) */
	PLUG_AGENT,       /* `a`: as in PLUG_AGENT_OPEN; `b`: the upper 32 bits of the transaction ids of
			   * its requests, unique on the host, by which answers find it; 0: refused, as
			   * another agent has the class and one of the methods */
	PLUG_TEXT,        /* a piece of the answer to PLUG_ASK, without a zero at its end */
	PLUG_PEER,        /* struct plug_peer: the host that was asked for; all 0: there is none */
};

struct plug_head {
	uint16_t type;   /* enum plug_type */
	uint16_t bytes;  /* of the body */
	uint32_t a, b;
};

enum plug_purpose {
	PLUG_VERBS,
	PLUG_MANAGEMENT, /* MADs only */
	PLUG_CONTROL,    /* PLUG_ASK only; it names no host, and what it is told of one is zeros */
};

struct plug_hello {
	uint32_t version; /* PLUG_VERSION */
	uint8_t purpose;  /* enum plug_purpose */
	char host[PLUG_NAME_MAX];    /* name of the host in the topology; its port 2 is "NAME:2" */
	char program[32]; /* for people */
};

struct plug_welcome {
	uint64_t node_guid, system_guid, port_guid; /* host order */
	uint32_t vendor_id, device_id, revision;
	uint32_t host_number; /* of the hosts of the fabric, from 1 */
	uint8_t port, ports;  /* the port that the client is plugged into, from 1 */
	char description[64]; /* NodeDescription */
};

/* PortInfo, as the agent of the host has it, with the tables of P_Keys and GUIDs. */
struct plug_port {
	uint64_t subnet_prefix; /* host order */
	uint64_t guids[PLUG_GUIDS];
	uint32_t capability_mask;
	uint16_t lid, sm_lid;
	uint16_t pkeys[PLUG_PKEYS];
	uint8_t lmc, sm_sl;
	uint8_t state, physical_state; /* as in PortInfo */
	uint8_t mtu_active, mtu_max;   /* codes 1 to 5 */
	uint8_t width_active;          /* 1, 2, 4, 8 as in PortInfo */
	uint8_t speed_active, speed_extended;
	uint8_t lanes;                 /* code, VLCap */
	uint8_t client_reregister;     /* the manager asks to register again: once */
	uint8_t pkey_count, guid_count;
	uint8_t init_type_reply, subnet_timeout;
	uint32_t qkey_violations, pkey_violations;
	uint32_t link_bps_mbit;        /* data rate, Mbit/s */
};

struct plug_qp {
	uint32_t qpn;
};

/* A host of the fabric, as the SA and a name service would tell it. */
struct plug_peer {
	uint64_t port_guid; /* host order; the first GUID */
	uint32_t host_number; /* from 1; its IPv4 address is 10.0.0.0 + this */
	uint16_t lid;
	uint16_t zero;
};

struct plug_group {
	uint8_t mgid[16];
	uint16_t mlid;
	uint16_t zero;
};

/* Which MADs come to an agent, as umad_register(3). */
struct plug_agent {
	uint32_t method_mask[4]; /* requests of these methods; all zero: only answers */
	uint8_t class, class_version;
	uint8_t qpn;             /* 0 or 1 */
	uint8_t oui[3];          /* of vendor classes 0x30 to 0x4f */
	uint16_t zero;
};

/*
 * The client writes the upper 32 bits of the transaction id into requests; the server drops requests
 * with those of another agent, except RMPP packets other than DATA, which keep the id of what they
 * answer. RMPP is the client's: each message is one MAD of 256 bytes.
 */
struct plug_mad {
	uint32_t agent;  /* to the server: that sends; to the client: that receives */
	uint32_t qpn;    /* of the remote end */
	uint32_t qkey;
	uint16_t lid;    /* of the remote end */
	uint16_t pkey_index;
	uint8_t sl, path_bits;
	uint8_t grh;     /* the four members below mean something */
	uint8_t hop_limit, traffic_class, gid_index;
	uint16_t status; /* to the client: 0, or ETIMEDOUT: no answer came to what it sent */
	uint32_t flow_label;
	uint8_t gid[16];
	uint32_t timeout_ms, retries; /* of requests that wait for an answer; 0: none is waited for */
};

/* ---- the client ---- */

/* Where BUSBAR_FABRIC says that this process is plugged in: "NAME/HOST". False: it is not set.
 * A value that cannot be used: -EINVAL, logged once. */
struct plug_place {
	char fabric[PLUG_NAME_MAX], host[PLUG_NAME_MAX];
};
int plug_place(struct plug_place *place); /* 1: *place is set, 0: not set, -EINVAL */

/* Connects, says hello and waits (up to 5 s) for the answer and the state of the port. The
 * descriptor, non-blocking, or a negative errno, logged: -ENOENT: no such fabric runs, -ENODEV: it has no
 * such host, -EACCES: it is of another user. */
int plug_connect(const struct plug_place *place, enum plug_purpose purpose, struct plug_welcome *welcome,
		 struct plug_port *port);
/* Sends one message; 0, -EAGAIN, or another negative errno. */
int plug_send(int fd, enum plug_type type, uint32_t a, uint32_t b, const void *body, size_t bytes);
/* Checks what was received: true when `head` and the body's length fit the type. */
bool plug_check(const struct plug_head *head, size_t received);

#endif
