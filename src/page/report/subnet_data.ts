// SPDX-License-Identifier: BSD-2-Clause
// A subnet as src/bench/report/subnet.h describes it, and what follows from it: which node is a host, which two
// directions are one cable, how much of its rate each carries.

interface Table { keys: string[]; rows: (string | number | boolean | null)[][] }

interface Raw {
	file: string; of: 'state' | 'experiment'; title: string | null; topology: string | null; routing: string | null;
	seed: number | null; seconds: number | null; sums: Record<string, number>; lost: Record<string, number>;
	nodes: Table; links: Table; traffic?: Table; flows?: Table; flows_left_out?: number; congestion?: Table;
	congestion_left_out?: number; circle?: Table; deadlocks?: { at_ns: number | null; lanes: Table }[]; expect?: Table;
}

/** One direction of a cable: what the port `port` of `from` sends. Shares are 0 to 1, NaN: not known. */
export interface Way {
	name: string; from: string; to: string; port: string; to_port: string;
	load: number; wait: number; marks: number; packets: number; marked: number; discards: number; errors: number;
	up: boolean; rate: number; downed: number;
}

export interface Cable { a: string; b: string; ways: Way[]; up: boolean }
export interface Node_ { name: string; description: string; host: boolean; cables: Cable[] }
export interface Traffic {
	name: string; pattern: string; flows: number; lost: number; reordered: number; messages: number; rate: number; fair: number;
	share: number; least: number; most: number; row: Record<string, any>;
}
export interface Flow { traffic: string; from: string; to: string; rate: number; fair: number; share: number; lost: number; p50: number; p99: number }
export interface Congested { way: string; lane: number; root: boolean; from_ns: number; to_ns: number; peak: number }
export interface Lane { way: string; lane: number }
export interface Expected { text: string; value: number; holds: boolean }

export interface Subnet {
	file: string; measured: boolean; title: string; topology: string; routing: string; seed: number | null; seconds: number;
	sums: Record<string, number>; lost: Record<string, number>;
	nodes: Node_[]; cables: Cable[]; ways: Way[]; traffic: Traffic[]; flows: Flow[]; flows_left_out: number;
	congestion: Congested[]; congestion_left_out: number; circle: Lane[]; deadlocks: { at_ns: number; lanes: Lane[] }[]; expect: Expected[];
}

/** A tick of PortXmitWait. */
const TICK_S = 22e-9;
const BY_NUMBERS = new Intl.Collator('en', { numeric: true });

export function byName(a: string, b: string): number {
	return BY_NUMBERS.compare(a, b);
}

function rows(t?: Table): Record<string, any>[] {
	return (t?.rows ?? []).map(r => Object.fromEntries(t!.keys.map((k, i) => [k, r[i]])));
}

function num(v: any): number {
	return typeof v === 'number' ? v : NaN;
}

function split(end: string): [string, string] {
	const i = end.lastIndexOf(':');
	return i < 0 ? [end, ''] : [end.slice(0, i), end.slice(i + 1)];
}

/** "switch-1:5", without the port where the node has one cable. */
function wayOf(r: Record<string, any>, seconds: number): Way {
	const [from, port] = split(r.from ?? '?'), [to, to_port] = split(r.to ?? '?');
	const packets = num(r.packets ?? r.sent_packets), marked = num(r.marked), rate = num(r.bit_rate);
	const bits = 8 * num(r.sent_bytes) / (rate * seconds), waits = num(r.xmit_wait) * TICK_S / seconds;
	return {
		name: r.from ?? '?', from, to, port, to_port, packets, marked, rate, up: r.up !== false, discards: num(r.discards), errors: num(r.errors),
		downed: num(r.link_downed), load: Number.isFinite(num(r.load)) ? r.load : bits, wait: Number.isFinite(num(r.wait)) ? r.wait : waits,
		marks: packets > 0 ? marked / packets : 0,
	};
}

function cablesOf(ways: Way[]): Cable[] {
	const by = new Map<string, Cable>();
	for (const w of ways) {
		const back = by.get(`${w.to}:${w.to_port}`);
		if (back && back.a === w.to && back.ways[0].to_port === w.port && back.b === w.from) {
			back.ways.push(w);
			back.up &&= w.up;
		} else {
			by.set(w.name, { a: w.from, b: w.to, ways: [w], up: w.up });
		}
	}
	return [...by.values()];
}

/** Hosts are named as such, or send and receive, or have one cable and no name of a switch. */
function nodesOf(given: Record<string, any>[], cables: Cable[], flows: Flow[]): Node_[] {
	const by = new Map<string, Node_>(), kinds = new Map(given.map(g => [g.name, g.kind]));
	const get = (name: string): Node_ => {
		const n = by.get(name) ?? { name, description: '', host: false, cables: [] };
		by.set(name, n);
		return n;
	};
	for (const g of given)
		get(g.name ?? '?').description = g.description ?? '';
	for (const c of cables) {
		get(c.a).cables.push(c);
		if (c.a !== c.b)
			get(c.b).cables.push(c);
	}
	const ends = new Set(flows.flatMap(f => [f.from, f.to]));
	for (const n of by.values())
		n.host = kinds.has(n.name) ? kinds.get(n.name) === 'host' : ends.has(n.name) || (n.cables.length < 2 && !/^(switch|leaf|spine|core|s-)/i.test(n.name));
	return [...by.values()].sort((a, b) => byName(a.name, b.name));
}

function flowOf(r: Record<string, any>): Flow {
	const rate = num(r.rate_bps), fair = num(r.fair_bps);
	return { traffic: r.traffic ?? '', from: split(r.from ?? '?')[0], to: split(r.to ?? '?')[0], rate, fair, share: fair > 0 ? rate / fair : NaN,
		lost: num(r.lost), p50: num(r['packet_latency_ns.p50']), p99: num(r['packet_latency_ns.p99']) };
}

function lanes(t?: Table): Lane[] {
	return rows(t).map(r => ({ way: r.port ?? '?', lane: r.lane ?? 0 }));
}

export function subnetOf(raw: Raw): Subnet {
	const seconds = raw.seconds || NaN, ways = rows(raw.links).map(r => wayOf(r, seconds)), cables = cablesOf(ways), flows = rows(raw.flows).map(flowOf);
	return {
		file: raw.file, measured: raw.of === 'state', title: raw.title ?? '', topology: raw.topology ?? '', routing: raw.routing ?? '', seed: raw.seed, seconds,
		sums: raw.sums, lost: raw.lost, nodes: nodesOf(rows(raw.nodes), cables, flows), cables, ways,
		traffic: rows(raw.traffic).map(r => ({ name: r.name ?? '', pattern: r.pattern ?? '', flows: num(r.flows), lost: num(r.lost), reordered: num(r.reordered),
			messages: num(r.messages), rate: num(r.rate_bps), fair: num(r.fair_bps), share: num(r.share), least: num(r.least_share), most: num(r.most_share), row: r })),
		flows, flows_left_out: raw.flows_left_out ?? 0,
		congestion: rows(raw.congestion).map(r => ({ way: r.port ?? '?', lane: r.lane ?? 0, root: !!r.root, from_ns: r.from_ns ?? 0, to_ns: r.to_ns ?? 0, peak: num(r.peak_bytes) })),
		congestion_left_out: raw.congestion_left_out ?? 0, circle: lanes(raw.circle),
		deadlocks: (raw.deadlocks ?? []).map(d => ({ at_ns: d.at_ns ?? 0, lanes: lanes(d.lanes) })),
		expect: rows(raw.expect).map(r => ({ text: r.text ?? '', value: num(r.value), holds: r.holds === true })),
	};
}

export type { Raw as RawSubnet };
