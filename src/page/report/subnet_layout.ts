// SPDX-License-Identifier: BSD-2-Clause
// Where the nodes of a subnet stand in a figure of a given width: trees by levels, rings on a circle, grids by their
// coordinates, all else on a circle. The same subnet always has the same places. Hosts that have no room are folded
// into one mark beside their switch.
import { byName, Cable, Node_, Subnet } from './subnet_data';

export interface Spot { x: number; y: number; r: number; node: Node_ | null; hosts: Node_[]; below: boolean }
export interface Line { cable: Cable; from: Spot; to: Spot; cx: number; cy: number }
export interface Layout { height: number; spots: Spot[]; lines: Line[]; kind: string; /** How far hosts stand from their switch. */ reach: number }

type Graph = Map<string, Set<string>>;
const HOST_ROOM = 10;
const OUTWARD_MAX = 8;

interface Place { x: number; y: number }
interface Plan { kind: string; height: number; at: Map<string, Place>; away: (name: string) => Place | null; slot: (name: string) => number }

function other(c: Cable, name: string): string {
	return c.a === name ? c.b : c.a;
}

function graphOf(switches: Node_[]): Graph {
	const known = new Set(switches.map(n => n.name));
	return new Map(switches.map(n => [n.name, new Set(n.cables.map(c => other(c, n.name)).filter(o => o !== n.name && known.has(o)))]));
}

function hostsOf(n: Node_, hosts: Map<string, Node_>): Node_[] {
	return [...new Set(n.cables.map(c => hosts.get(other(c, n.name))).filter((x): x is Node_ => !!x))].sort((a, b) => byName(a.name, b.name));
}

/** The distance of each switch from hosts, if each cable joins neighbouring levels; null: it is no tree. */
function levelsOf(graph: Graph, bottom: string[]): Map<string, number> | null {
	const level = new Map(bottom.map(n => [n, 0]));
	for (const [n, l] of level)
		for (const o of graph.get(n)!)
			if (!level.has(o))
				level.set(o, l + 1);
	for (const [n, all] of graph)
		for (const o of all)
			if (Math.abs((level.get(n) ?? -9) - (level.get(o) ?? 9)) !== 1)
				return null;
	return level.size === graph.size && (graph.size === 1 || [...level.values()].some(l => l > 0)) ? level : null;
}

/** The switches from one end of a row to the other, or around a circle; null: they are neither. */
function chainOf(graph: Graph): { names: string[]; closed: boolean } | null {
	const all = [...graph.keys()], ends = all.filter(n => graph.get(n)!.size < 2), closed = !ends.length;
	if (!all.length || all.some(n => graph.get(n)!.size > 2) || (!closed && ends.length !== (all.length > 1 ? 2 : 1)))
		return null;
	const names = [ends[0] ?? all[0]];
	for (let next: string | undefined = names[0]; next;) {
		next = [...graph.get(next)!].sort(byName).find(o => !names.includes(o));
		if (next)
			names.push(next);
	}
	return names.length === all.length ? { names, closed } : null;
}

/** Coordinates from names like switch-2-3, if cables join neighbours or the two edges; null: no grid. */
function gridOf(graph: Graph): Map<string, number[]> | null {
	const at = new Map<string, number[]>();
	for (const n of graph.keys()) {
		const found = /^\D*(\d+(?:-\d+){1,2})$/.exec(n);
		if (!found)
			return null;
		at.set(n, found[1].split('-').map(Number));
	}
	const sizes = [0, 1, 2].map(k => Math.max(...[...at.values()].map(v => v[k] ?? 0)));
	for (const [n, all] of graph)
		for (const o of all) {
			const a = at.get(n)!, b = at.get(o)!, differ = a.map((v, k) => Math.abs(v - (b[k] ?? 0))).map((d, k) => [d, k]).filter(([d]) => d);
			if (a.length !== b.length || differ.length !== 1 || (differ[0][0] !== 1 && differ[0][0] !== sizes[differ[0][1]] - 1))
				return null;
		}
	return at;
}

function levelsPlan(width: number, rows: string[][], count: (name: string) => number, unfolded: boolean): Plan {
	const gap = rows.length > 1 ? Math.max(90, Math.min(190, width / 5)) : 90, at = new Map<string, Place>(), slots = new Map<string, number>();
	const left = 14, room = width - 28;
	rows.forEach((names, level) => {
		const weights = names.map(n => level === 0 && unfolded ? Math.max(1.2, count(n)) : 1), sum = weights.reduce((a, b) => a + b, 0);
		let x = left;
		names.forEach((n, i) => {
			const slot = room * weights[i] / sum;
			slots.set(n, slot);
			at.set(n, { x: x + slot / 2, y: 34 + (rows.length - 1 - level) * gap });
			x += slot;
		});
	});
	return { kind: rows.length > 1 ? 'levels' : 'row', height: 34 + (rows.length - 1) * gap + 90, at, away: () => null, slot: n => slots.get(n) ?? 0 };
}

function circlePlan(width: number, names: string[], kind: string): Plan {
	const hub = { x: width / 2, y: 0 }, r = Math.max(60, Math.min(width / 2 - 96, 90 + names.length * 9, names.length > 24 ? 330 : 250)), at = new Map<string, Place>();
	hub.y = r + 84;
	const group = (n: string): string => n.replace(/-?\d+$/, ''), gaps = kind === 'ring' || names.length < 4 ? 0 : names.filter((n, i) => group(n) !== group(names[(i + 1) % names.length])).length;
	const step = 2 * Math.PI / (names.length + (gaps > 1 ? gaps * 0.7 : 0));
	let angle = -Math.PI / 2;
	names.forEach((n, i) => {
		at.set(n, { x: hub.x + r * Math.cos(angle), y: hub.y + r * Math.sin(angle) });
		angle += step * (gaps > 1 && group(n) !== group(names[(i + 1) % names.length]) ? 1.7 : 1);
	});
	return { kind, height: 2 * hub.y, at, away: n => {
		const p = at.get(n)!;
		return { x: (p.x - hub.x) / r, y: (p.y - hub.y) / r };
	}, slot: () => r * step };
}

function gridPlan(width: number, coordinates: Map<string, number[]>): Plan {
	const all = [...coordinates.values()], size = [0, 1, 2].map(k => Math.max(1, ...all.map(v => v[k] ?? 1)));
	const depth = (size[2] - 1) * 0.34, cell = Math.min(130, (width - 84) / (size[0] - 1 + depth || 1)), at = new Map<string, Place>();
	const span = cell * (size[0] - 1 + depth), left = (width - span) / 2;
	for (const [n, [x, y, z = 1]] of coordinates)
		at.set(n, { x: left + cell * (x - 1 + (z - 1) * 0.34), y: 46 + cell * ((y - 1) + (size[2] - z) * 0.3) });
	return { kind: 'grid', height: 46 + cell * (size[1] - 1 + (size[2] - 1) * 0.3) + 66, at, away: () => ({ x: 0.6, y: 0.8 }), slot: () => cell };
}

function planOf(width: number, switches: Node_[], hosts: Map<string, Node_>): Plan {
	const graph = graphOf(switches), counts = new Map(switches.map(n => [n.name, hostsOf(n, hosts).length])), total = [...counts.values()].reduce((a, b) => a + b, 0);
	const count = (n: string): number => counts.get(n) ?? 0, names = switches.map(n => n.name), unfolded = total * HOST_ROOM <= width - 28;
	const chain = chainOf(graph), grid = names.length > 3 ? gridOf(graph) : null;
	if (chain && !chain.closed)
		return levelsPlan(width, [chain.names], count, unfolded);
	if (grid)
		return gridPlan(width, grid);
	if (chain)
		return circlePlan(width, chain.names, chain.names.length > 16 ? 'circle' : 'ring');
	const levels = levelsOf(graph, names.filter(n => count(n)));
	if (levels)
		return levelsPlan(width, Array.from({ length: Math.max(...levels.values()) + 1 }, (_, l) => names.filter(n => levels.get(n) === l)), count, unfolded);
	return circlePlan(width, names, 'circle');
}

function reachOf(slot: number): number {
	return Math.max(22, Math.min(46, slot * 0.5));
}

/** Marks of the hosts of a switch: one each where there is room, else one for all. */
function hostSpots(p: Plan, spot: Spot, hosts: Node_[]): Spot[] {
	const away = p.away(spot.node!.name), slot = p.slot(spot.node!.name), each = away ? hosts.length <= Math.min(OUTWARD_MAX, slot / 14) : hosts.length * HOST_ROOM <= slot * 1.05;
	const mark = (x: number, y: number, all: Node_[]): Spot => ({ x, y, r: all.length > 1 ? 7 : 4.5, node: all.length > 1 ? null : all[0], hosts: all, below: true });
	if (!hosts.length)
		return [];
	if (!away)
		return each ? hosts.map((n, i) => mark(spot.x + (i + 0.5 - hosts.length / 2) * slot / hosts.length, spot.y + 54, [n])) : [mark(spot.x, spot.y + 46, hosts)];
	const far = reachOf(slot), lean = Math.atan2(away.y, away.x), spread = Math.min(0.5, 2.2 / hosts.length);
	const on = (a: number, all: Node_[]): Spot => mark(spot.x + far * Math.cos(a), spot.y + far * Math.sin(a), all);
	return each ? hosts.map((n, i) => on(lean + (i + 0.5 - hosts.length / 2) * spread, [n])) : [on(lean, hosts)];
}

/** Control points: straight, but apart where several cables join the same two, and around what stands between. */
function bend(p: Plan, from: Spot, to: Spot, k: number, of: number, cell: number): Place {
	const x = (from.x + to.x) / 2, y = (from.y + to.y) / 2, dx = to.x - from.x, dy = to.y - from.y, long = Math.hypot(dx, dy) || 1;
	let out = (k - (of - 1) / 2) * 14 * (byName(from.node?.name ?? '', to.node?.name ?? '') > 0 ? -1 : 1);
	if (p.kind === 'grid' && from.node && to.node && !from.node.host && !to.node.host && long > cell * 1.5)
		out += Math.min(46, long * 0.16) * (dx + dy > 0 ? 1 : -1);
	return { x: x - dy / long * out, y: y + dx / long * out };
}

export function layoutOf(s: Subnet, width: number): Layout {
	const hosts = new Map(s.nodes.filter(n => n.host).map(n => [n.name, n])), switches = s.nodes.filter(n => !n.host);
	// Hosts that are joined directly.
	const plan = planOf(width, switches.length ? switches : s.nodes, switches.length ? hosts : new Map());
	const spots: Spot[] = [], of = new Map<string, Spot>(), taken = new Set<Node_>();
	for (const n of switches.length ? switches : s.nodes) {
		const p = plan.at.get(n.name) ?? { x: width / 2, y: 40 }, spot: Spot = { ...p, r: Math.max(3, Math.min(9, plan.slot(n.name) * 0.33)), node: n, hosts: [], below: false };
		spots.push(spot);
		of.set(n.name, spot);
		for (const h of switches.length ? hostSpots(plan, spot, hostsOf(n, hosts).filter(x => !taken.has(x))) : []) {
			spots.push(h);
			h.hosts.forEach(x => {
				taken.add(x);
				of.set(x.name, h);
			});
		}
	}
	const pairs = new Map<string, Cable[]>(), key = (c: Cable): string => [c.a, c.b].sort().join('\n');
	for (const c of s.cables)
		pairs.set(key(c), [...pairs.get(key(c)) ?? [], c]);
	const lines = s.cables.flatMap((cable): Line[] => {
		const from = of.get(cable.a), to = of.get(cable.b), same = pairs.get(key(cable))!;
		if (!from || !to || from === to)
			return [];
		const c = bend(plan, from, to, same.indexOf(cable), same.length, plan.slot(cable.a));
		return [{ cable, from, to, cx: c.x, cy: c.y }];
	});
	return { height: plan.height, spots, lines, kind: plan.kind, reach: spots.some(x => x.below) && spots[0].node ? reachOf(plan.slot(spots[0].node.name)) : 8 };
}
