/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What instances of ripc send each other, in network byte order: packets of the resolver,
 * private data of connections, and the headers of messages. Pure: no sockets, no clock.
 *
 * Decoders check lengths, counts, and that lengths fit together; whether an address, key or
 * number is one that was given out is the caller's to check. They return 0; -EBADMSG: not
 * such a packet; -EPROTONOSUPPORT: of another version; -EKEYREJECTED: the authentication
 * code is wrong or missing (or there is one and no secret here).
 */
#ifndef RIPC_PACKET_H
#define RIPC_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <busbar/ripc.h>

#define PACKET_VERSION 1

/* Authenticates packets: SipHash-2-4 of 128 bits with a key derived from the secret. */
struct packet_key {
	bool set; /* false: packets carry no code */
	uint8_t bytes[16];
};
/* From the bytes of a secret. */
void packet_key_make(struct packet_key *key, const void *secret, size_t bytes);

/* How to reach an instance. */
struct packet_where {
	uint64_t instance;    /* drawn at random when it was opened; never 0 */
	uint8_t address[16];  /* IPv6, or IPv4 mapped; all 0: the source of the packet */
	uint16_t port;        /* of its connection listener (RDMA CM, TCP port space) */
	uint32_t ud_qpn;      /* 0: takes no datagrams */
	uint32_t ud_qkey;
	uint8_t ud_gid[16];
};

/* ---- resolver ---- */

enum packet_resolve_type {
	PACKET_ASK = 1,   /* who has this ID (or, with ID 0, this name)? */
	PACKET_TELL,      /* answer: `where` has it; echoes nonce */
	PACKET_CLAIM,     /* like ASK, by who is about to open it; `where` of the asker */
	PACKET_ENTER,     /* to a rendezvous: `where` has it for lifetime_s (0: not any more);
			   * to everyone, as news: nobody answers */
	PACKET_ENTERED,   /* answer of the rendezvous; lifetime_s 0: refused, another instance
			   * has it, which `where` tells; with the asker itself there: no
			   * room, or the answer to a farewell */
};

struct packet_resolve {
	uint8_t type;
	uint64_t nonce;       /* drawn by who asks */
	uint32_t from;        /* service that asks; 0: none */
	uint32_t id;          /* that is asked for or told of; 0 in an ASK by name */
	uint16_t lifetime_s;
	struct packet_where where; /* of the sender; in a TELL of a rendezvous, of the service */
	char name[RIPC_NAME_MAX + 1];
};

#define PACKET_RESOLVE_BYTES_MAX 192

/* Whether these are 1 to RIPC_NAME_MAX bytes of UTF-8 without control characters. */
bool packet_name_valid(const char *name, size_t bytes);

/* How many bytes; `out` has PACKET_RESOLVE_BYTES_MAX. */
size_t packet_resolve_encode(const struct packet_resolve *p, const struct packet_key *key,
			     uint8_t *out);
/* A name that is not one (ripc.h) makes it -EBADMSG. */
int packet_resolve_decode(struct packet_resolve *p, const struct packet_key *key,
			  const uint8_t *bytes, size_t length);

/* ---- connections ---- */

/* Private data of the request (56 bytes are what all fabrics have) and of the acceptance. */
struct packet_connect {
	uint64_t instance;    /* the sender */
	uint64_t to;          /* the instance that is meant */
	uint16_t credits;     /* messages that the sender has receives for */
	uint32_t message_bytes; /* length of these receives */
	uint64_t nonce;       /* drawn for this connection */
};

#define PACKET_CONNECT_BYTES 52

/* Of an acceptance the code covers the nonce of the request, too, which it answers; of a
 * request `answers` is 0. */
void packet_connect_encode(const struct packet_connect *p, const struct packet_key *key,
			   uint64_t answers, uint8_t out[PACKET_CONNECT_BYTES]);
/* `length` may be more: fabrics pad with zeros. */
int packet_connect_decode(struct packet_connect *p, const struct packet_key *key,
			  uint64_t answers, const uint8_t *bytes, size_t length);
/* The number of HELLO: who connects has the secret now, and has not recorded a request.
 * Never 0; without a secret always 1. */
uint64_t packet_connect_proof(const struct packet_connect *request,
			      const struct packet_connect *acceptance,
			      const struct packet_key *key);

/* ---- messages ---- */

enum packet_type {
	PACKET_SHORT = 1, /* the items' bytes follow */
	PACKET_LONG,      /* descriptors of items; some lie in return buffers already */
	PACKET_DONE,      /* long message `number` has arrived whole: its memory is free */
	PACKET_FAILED,    /* long message `number` was not taken, `error` says why; 0: a short
			   * message found no such service, which may be elsewhere now */
	PACKET_CREDIT,    /* nothing but credits */
	PACKET_REVOKE,    /* the return buffers offered from `from` to `to` are void */
	PACKET_REVOKED,   /* and will not be written any more */
	PACKET_HOLD,      /* nothing short to service `from` of the sender, until */
	PACKET_GO,        /* it may be sent to again */
	PACKET_HELLO,     /* the first one, of the side that connects; `number` is the proof */
	PACKET_TYPE_LAST = PACKET_HELLO,
};

/* Memory of an instance: of the sender of the packet, but where `pushed`. */
struct packet_memory {
	uint64_t address;
	uint64_t bytes;
	uint32_t key;
	bool pushed;   /* the bytes lie already in this return buffer of the receiver */
};

struct packet_message {
	uint8_t type;
	uint16_t credits;     /* granted to the receiver with this packet, connections only */
	uint32_t from, to;    /* services */
	uint32_t error;       /* FAILED: a positive errno value */
	uint64_t instance;    /* datagrams only, else 0: the sender's */
	uint64_t number;      /* LONG, DONE, FAILED: of the long message, going up, per pair of
			       * instances and direction; REVOKE, REVOKED: of the request */
	uint8_t count;        /* items, at most RIPC_ITEMS_MAX */
	uint8_t returns_count; /* at most RIPC_RETURNS_MAX */
	uint32_t sizes[RIPC_ITEMS_MAX];            /* SHORT */
	struct packet_memory items[RIPC_ITEMS_MAX]; /* LONG */
	struct packet_memory returns[RIPC_RETURNS_MAX];
};

/* Bytes of the header of such a message; what SHORT carries comes behind it. */
size_t packet_message_bytes(uint8_t type, unsigned count, unsigned returns_count,
			    bool datagram);
/* Longest of all headers. */
#define PACKET_MESSAGE_BYTES_MAX 1280

/* On the data path: writes packet_message_bytes() bytes, no more. */
size_t packet_message_encode(const struct packet_message *p, bool datagram, uint8_t *out);
/* How long the header is in *header_bytes; of SHORT, `length` is that plus the sum of
 * `sizes`, exactly. Writes only the first `count` and `returns_count` entries of `p`. */
int packet_message_decode(struct packet_message *p, bool datagram, const uint8_t *bytes,
			  size_t length, size_t *header_bytes);

#endif
