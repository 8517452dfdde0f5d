// SPDX-License-Identifier: BSD-2-Clause
// The packets of a simulated run of memory on demand (packets.json of the kind "odp", docs/odp.md) as rows of a
// diagram: what is dropped, why a packet is sent again, where the queue pair waits, and which pages are missing.
import type { Packet } from './ladder';
import { quantity, time } from './words';

export interface RecordedEvent {
	at_ns: number; end: 'client' | 'server'; what: string; number: number;
	/** Of several alike: how many, and when the last was. */
	count?: number; until_ns?: number;
	rnr_ns?: number; nak?: number; again?: boolean; lost?: boolean;
}

export interface Recorded { queue_pair: number; trial: number; left_out: number; events: RecordedEvent[] }

/** A pause that the diagram breaks off: longer than a round trip or a usual page fault. */
const SILENCE_NS = 1e6;
const OWN = new Set(['posted', 'missing', 'there']);

function isRequest(e: RecordedEvent): boolean {
	return e.end === 'client' && !OWN.has(e.what);
}

function last(e: RecordedEvent): number {
	return e.number + (e.count ?? 1) - 1;
}

/** A response was dropped if the client asks for the same again behind it. */
function isDropped(all: RecordedEvent[], i: number): boolean {
	const e = all[i];
	return e.what.startsWith('READ response') && all.slice(i + 1).some(l => isRequest(l) && !!l.again && l.number <= last(e) && last(l) >= e.number);
}

function label(e: RecordedEvent): string {
	const several = (e.count ?? 1) > 1, n = several ? `${e.number} to ${last(e)}` : String(e.number), many = quantity(e.count ?? 1, '');
	switch (e.what) {
	case 'posted': return several ? `requests ${e.number + 1} to ${last(e) + 1} are posted` : `request ${e.number + 1} is posted`;
	case 'missing': return several ? `pages ${n} are missing` : `page ${n} is missing`;
	case 'there': return several ? `pages ${n} are there` : `page ${n} is there`;
	}
	const name = e.rnr_ns !== undefined ? 'RNR NAK' : e.nak === 0 ? 'sequence NAK' : e.nak !== undefined ? `NAK code ${e.nak}` : e.what;
	return several ? `${name} PSN ${n}: ${many} packets` : `${name} PSN ${n}${e.rnr_ns !== undefined ? `, ${time(e.rnr_ns)}` : ''}`;
}

/** What happened so far to the queue pair. */
class State {
	pending = false;
	/** Why packets are sent again. */
	private cause = '';
	private missing = { client: new Set<number>(), server: new Set<number>() };

	bars(): [boolean, boolean] {
		return [this.missing.client.size > 0, this.missing.server.size > 0];
	}

	/** Takes an event; returns what is noted of it. */
	take(e: RecordedEvent, dropped: boolean): string[] {
		if (e.what === 'missing')
			this.missing[e.end].add(e.number);
		else if (e.what === 'there')
			this.missing[e.end].delete(e.number);
		else if (e.what === 'posted')
			return [`${(e.count ?? 1) > 1 ? 'they wait' : 'it waits'}${this.pending ? '' : ' for those before'}`];
		else
			return isRequest(e) ? this.request(e) : this.answer(e, dropped);
		return [];
	}

	private request(e: RecordedEvent): string[] {
		const notes = e.again ? [`again: ${this.cause || 'timeout'}`] : [];
		if (this.pending && e.again)
			notes.push('pending period ends');
		this.pending &&= !e.again;
		return e.lost ? [...notes, 'LOST'] : notes;
	}

	private answer(e: RecordedEvent, dropped: boolean): string[] {
		const notes = dropped ? ['dropped by the client'] : [], begins = !this.pending && (dropped || e.rnr_ns !== undefined);
		if (!this.pending)
			this.cause = e.rnr_ns !== undefined ? 'RNR NAK' : e.nak === 0 ? 'sequence NAK' : dropped ? 'response dropped' : '';
		this.pending ||= begins;
		return begins ? [...notes, 'pending period begins'] : notes;
	}
}

/** Requests that are posted one behind the other while none leaves are one event. */
function joined(all: RecordedEvent[]): RecordedEvent[] {
	const out: RecordedEvent[] = [];
	for (const e of all) {
		const before = out[out.length - 1];
		if (e.what === 'posted' && before?.what === 'posted' && before.number + (before.count ?? 1) === e.number)
			out[out.length - 1] = { ...before, count: (before.count ?? 1) + (e.count ?? 1), until_ns: e.until_ns ?? e.at_ns };
		else
			out.push(e);
	}
	return out;
}

export function packetsOf(r: Recorded): Packet[] {
	const state = new State(), all = joined(r.events);
	return all.map((e, i) => {
		const before = all[i - 1], since = before ? e.at_ns - (before.until_ns ?? before.at_ns) : 0, was = state.pending;
		const notes = state.take(e, isDropped(all, i)), begins = !was && state.pending;
		return {
			number: i + 1, at_ns: e.at_ns, answer: e.end === 'server', label: label(e), notes, lost: !!e.lost, pending: begins || was && state.pending,
			silence_ns: since >= SILENCE_NS ? since : 0, own: OWN.has(e.what), missing: state.bars(),
		};
	});
}
