/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taps (plugin/tap.h) for clients of the HTTP server, by WebSocket, protocol `live`:
 *
 *	/tap/NODE/in[.FORMAT][?rate=R]    samples that the node has read
 *	/tap/NODE/out[.FORMAT][?rate=R]   samples that were written to it
 *
 * in frames of up to 128 samples, fifty times a second. FORMAT is villas.web without an
 * extension. With a rate a client gets at most R samples a second, evenly picked by the
 * time at which they passed. What a client does not take in time is lost for it alone. When
 * the signals change the connection ends with status 1012, and the client comes back for
 * the new ones.
 */
#ifndef GATEWAY_OBSERVE_TAPS_H
#define GATEWAY_OBSERVE_TAPS_H

/* Offers them to the server of this process. 0 or -EEXIST. */
int taps_offer(void);
/* Ends their connections. Only after taps_offer() has succeeded. */
void taps_withdraw(void);

#endif
