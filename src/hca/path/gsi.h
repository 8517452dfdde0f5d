/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pair 1, the general services interface (IBA volume 1, 13.5.1): management
 * datagrams (MADs) of 256 bytes to and from other hosts. Above it is communication
 * management (librdmacm); below it a transport that leads to other hosts, whose table
 * (struct hca_gsi_ops) is named by hca_transport_ops.gsi. MADs are lost, doubled and
 * reordered, and anybody may have sent them: the receiver checks them.
 *
 * An address has one queue pair 1, but several processes have connections. So each process
 * that opens this interface gets a slot, 1 to 63, and says which services it listens for. The
 * transport hands a REQ or SIDR_REQ to the process that serves it, and any other message
 * to the process whose slot is in the upper bits of the receiver's communication
 * identifier (SIDR: request identifier). Therefore all local identifiers of a process must
 * come from hca_gsi_comm_id(). Messages for which there is no process are answered by
 * the transport.
 */
#ifndef HCA_GSI_H
#define HCA_GSI_H

#include <stdbool.h>
#include <stdint.h>

#define HCA_GSI_MAD_BYTES 256
#define HCA_GSI_QPN 1u
#define HCA_GSI_QKEY 0x80010000u
#define HCA_GSI_PKEY 0xffffu

#define HCA_GSI_SLOTS 64u    /* 0 is nobody's */
#define HCA_GSI_SLOT_SHIFT 26 /* of the slot in a communication identifier */

/* The two ends of a MAD: GIDs, an IPv4 address is ::ffff:a.b.c.d. */
struct hca_gsi_address {
	uint8_t source[16];      /* the sender */
	uint8_t destination[16]; /* the receiver */
	uint32_t interface;      /* index of the local interface; 0 unless link-local */
};

/* Which requests for a service identifier a process listens for, by the address that the
 * request names. The most precise one gets the request. */
enum hca_gsi_scope {
	HCA_GSI_ADDRESS, /* only that address */
	HCA_GSI_IPV4,
	HCA_GSI_IPV6,
	HCA_GSI_ANY,
};

struct hca_gsi_service {
	uint64_t service_id;
	uint8_t scope;       /* enum hca_gsi_scope */
	uint8_t address[16]; /* GID, with HCA_GSI_ADDRESS; else zero */
};

/* A MAD came; on the progress thread, without locks. The arguments are valid during the
 * call. */
typedef void hca_gsi_receive(const struct hca_gsi_address *from,
			     const uint8_t mad[HCA_GSI_MAD_BYTES]);

/*
 * What a transport fills in. Errors are negative errno values, logged by the transport
 * where a person can do something about them. No function waits for the progress thread,
 * unless stated.
 */
struct hca_gsi_ops {
	/* Begins to receive, and takes a slot (1 to 63). The slot; -EUSERS: all are taken;
	 * -EADDRINUSE: something else on this host has the port of the network; or another
	 * error. The transport has been started. */
	int (*open)(void);
	/* Afterwards hca_gsi_deliver() is not called and not running. Not on the progress
	 * thread; no lock is held. */
	void (*close)(void);
	/* Any thread; a lock may be held that hca_gsi_deliver() takes. 0: it was sent, or is
	 * lost; -EAGAIN: no room now; -EHOSTUNREACH: nothing leads to the destination, or the
	 * source is no address of this host; or another error. Does not deliver. */
	int (*send)(const struct hca_gsi_address *to,
		    const uint8_t mad[HCA_GSI_MAD_BYTES]);
	/* 0; -EADDRINUSE: another process of this host serves it; or another error. Not
	 * twice for the same service. */
	int (*serve)(const struct hca_gsi_service *service);
	/* May be called on the progress thread. */
	void (*unserve)(const struct hca_gsi_service *service);
	/* In a forked child: the parent keeps the slot and its services. */
	void (*forked)(void);
};

/* For transports: hands a MAD to the receiver of this process. On the progress thread,
 * without locks; not before open() and not after close(). */
void hca_gsi_deliver(const struct hca_gsi_address *from,
		     const uint8_t mad[HCA_GSI_MAD_BYTES]);

/* ---- for the user of the interface, of which a process has one ---- */

/* Does a transport in use have this interface? It is then the way to remote addresses. After
 * the first context was opened. */
bool hca_gsi_exists(void);
/* Does a transport in use connect processes of one host? If not, local addresses are reached
 * by this interface, too. */
bool hca_local_exists(void);
/* 0; -EHOSTUNREACH: no transport in use has the interface; -EALREADY: it is open; or the error
 * of the transport. Takes a lock of its own. */
int hca_gsi_open(hca_gsi_receive *receive);
void hca_gsi_close(void);
/* `number` (any) with the process's slot in the upper bits; never 0. It must be open. */
uint32_t hca_gsi_comm_id(uint32_t number);
/* The functions of struct hca_gsi_ops; -ENOTCONN while the interface is not open. */
int hca_gsi_send(const struct hca_gsi_address *to,
		 const uint8_t mad[HCA_GSI_MAD_BYTES]);
int hca_gsi_serve(const struct hca_gsi_service *service);
void hca_gsi_unserve(const struct hca_gsi_service *service);
/* In a forked child: it is closed. */
void hca_gsi_forked(void);

#endif
