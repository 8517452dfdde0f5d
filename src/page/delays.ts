// SPDX-License-Identifier: BSD-2-Clause
// Histograms: the latency of each path (from its origin to its reception), by /metrics, and what
// hooks `stats` know of nodes (one-way delay, age, gaps between samples).
import { get, getText, Refused, Unreachable } from './api';
import { byId, count, h, s, seconds } from './components/dom';
import { niceTicks } from './components/ticks';
import { model } from './model';

interface Bin { low: number; high: number; count: number }
interface Histogram {
	title: string; what: string; bins: Bin[]; total: number;
	/** Name and value of lines across. */
	marks: [string, number][];
	note: string;
}

const SIZE = { width: 420, height: 190, left: 44, right: 12, top: 26, bottom: 26 };
const METRICS: [string, string][] = [
	['owd', 'one-way delay'], ['age', 'age when it was sent'], ['gap_received', 'time between two samples received'],
	['gap_sent', 'time between two samples at their origin'],
];

let visible = false;
let timer = 0;

/** The label `uuid` and the buckets of each path. */
function readBuckets(text: string): Map<string, [number, number][]> {
	const all = new Map<string, [number, number][]>();
	for (const m of text.matchAll(/^busbar_path_latency_seconds_bucket\{(.*)\} (\d+)/gm)) {
		const uuid = /uuid="([^"]*)"/.exec(m[1])?.[1] ?? '', le = /le="([^"]*)"/.exec(m[1])?.[1] ?? '';
		if (!all.has(uuid))
			all.set(uuid, []);
		all.get(uuid)!.push([le === '+Inf' ? Infinity : Number(le), Number(m[2])]);
	}
	return all;
}

function pathHistograms(text: string): Histogram[] {
	const buckets = readBuckets(text);
	return model.paths.map(p => {
		const steps = buckets.get(p.uuid) ?? [], l = p.stats.latency;
		let before: [number, number] = [0, 0];
		const bins: Bin[] = [];
		for (const [le, n] of steps) {
			bins.push({ low: before[0] || le / 2, high: Number.isFinite(le) ? le : before[0] * 2, count: n - before[1] });
			before = [le, n];
		}
		return {
			title: p.name, what: 'latency of the path', bins: trim(bins), total: l.count,
			marks: l.count ? [['half', l.p50_us * 1e-6], ['99 %', l.p99_us * 1e-6]] : [],
			note: l.below_zero ? `${count(l.below_zero)} below zero: the clocks differ` : '',
		};
	});
}

function trim(bins: Bin[]): Bin[] {
	let first = bins.findIndex(b => b.count), last = bins.length - 1;
	while (last > 0 && !bins[last].count)
		last--;
	if (first < 0)
		return [];
	// With a little room at both sides.
	return bins.slice(Math.max(0, first - 1), Math.min(bins.length, last + 2));
}

async function nodeHistograms(): Promise<Histogram[]> {
	const list: Histogram[] = [];
	for (const n of model.nodes) {
		if (![...n.in.hooks ?? [], ...n.out.hooks ?? []].some(x => x.type === 'stats'))
			continue;
		const all = await get(`/node/${encodeURIComponent(n.name)}/stats`);
		for (const [key, what] of METRICS) {
			const m = all[key];
			if (!m?.total || !m.buckets)
				continue;
			const width = (m.high - m.low) / m.buckets.length;
			list.push({
				title: n.name, what, total: m.total,
				bins: m.buckets.map((c: number, i: number) => ({ low: m.low + i * width, high: m.low + (i + 1) * width, count: c })),
				marks: [['half', m.p50], ['99 %', m.p99]],
				note: [m.higher ? `${count(m.higher)} above, up to ${seconds(m.highest)}` : '',
					m.lower ? `${count(m.lower)} below, down to ${seconds(m.lowest)}` : ''].filter(Boolean).join('; '),
			});
		}
	}
	return list;
}

function draw(g: Histogram): SVGSVGElement {
	const { width, height, left, right, top, bottom } = SIZE;
	const w = width - left - right, hgt = height - top - bottom;
	const svg = s('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label':
		`${g.what} of ${g.title}: ` + g.marks.map(m => `${m[0]} below ${seconds(m[1])}`).join(', ') });
	// Bins whose bounds grow by factors have the same width each.
	const even = g.bins.length > 1 && Math.abs(g.bins[1].high - g.bins[1].low - (g.bins[0].high - g.bins[0].low)) <
		1e-6 * Math.abs(g.bins[1].high - g.bins[1].low);
	const low = g.bins[0].low, high = g.bins[g.bins.length - 1].high;
	const x = even ? (v: number) => left + w * (v - low) / (high - low) :
		(v: number) => left + w * Math.log(v / low) / Math.log(high / low);
	const most = Math.max(...g.bins.map(b => b.count), 1), sum = g.bins.reduce((t, b) => t + b.count, 0) || 1;
	const y = (c: number): number => top + hgt - hgt * c / most;

	for (const share of niceTicks(0, most / sum * 100, 4)) {
		const at = y(share / 100 * sum);
		svg.append(s('line', { class: 'grid', x1: left, x2: width - right, y1: at, y2: at }),
			s('text', { class: 'tick', x: left - 6, y: at + 4, 'text-anchor': 'end' }, `${Number(share.toPrecision(3))} %`));
	}
	for (const b of g.bins) {
		const x0 = x(b.low), x1 = x(b.high), at = y(b.count);
		svg.append(s('rect', { class: 'bar', x: x0 + 0.75, y: at, width: Math.max(0.5, x1 - x0 - 1.5), height: top + hgt - at },
			s('title', {}, `${seconds(b.low)} to ${seconds(b.high)}: ${count(b.count)}`)));
	}
	svg.append(s('line', { class: 'base', x1: left, x2: width - right, y1: top + hgt, y2: top + hgt }));
	let free = -Infinity;
	const ticks = even ? niceTicks(low, high, 5) : g.bins.map(b => b.high);
	for (const t of ticks) {
		const at = x(t), text = seconds(t), half = text.length * 3.4;
		if (at - half < free || at + half > width || at - half < left - 20)
			continue;
		free = at + half + 8;
		svg.append(s('text', { class: 'tick', x: at, y: height - 8, 'text-anchor': 'middle' }, text));
	}
	// A mark beyond the last bin stands at its edge.
	let edge = -Infinity;
	for (const [name, v] of g.marks) {
		const at = Math.min(width - right, Math.max(left, x(Math.max(v, even ? v : low))));
		const text = `${name} ${seconds(v)}`, size = text.length * 6.2;
		const from = Math.min(Math.max(edge + 10, at - size / 2, left), width - right - size);
		edge = from + size;
		svg.append(s('line', { class: 'mark', x1: at, x2: at, y1: top - 6, y2: top + hgt }),
			s('text', { class: 'marked', x: from, y: top - 11 }, text));
	}
	return svg;
}

function card(g: Histogram): HTMLElement {
	return h('article', { class: 'card histogram' },
		h('h3', { title: g.title }, g.title), h('p', { class: 'muted' }, g.what +
			(g.total ? ` · ${count(g.total)} samples` : '')),
		g.total && g.bins.length ? draw(g) : h('p', { class: 'empty' }, 'No sample has come this way yet.'),
		g.note ? h('p', { class: 'muted' }, g.note) : null);
}

async function update(): Promise<void> {
	if (!visible || document.hidden || model.link !== 'connected')
		return;
	try {
		const paths = pathHistograms(await getText('/metrics', 'text/plain'));
		const nodes = await nodeHistograms();
		byId('delays-paths').replaceChildren(...paths.map(card));
		byId('delays-nodes').replaceChildren(...nodes.map(card));
		byId('delays-paths-empty').hidden = paths.length > 0;
		byId('delays-nodes-empty').hidden = nodes.length > 0;
	} catch (e) {
		// What does not answer is asked again in the next round.
		if (!(e instanceof Refused || e instanceof Unreachable))
			throw e;
	}
}

export function setVisible(on: boolean): void {
	visible = on;
	clearInterval(timer);
	if (!on)
		return;
	void update();
	timer = window.setInterval(() => void update(), 2000);
}

export function start(): void {
	let known = -1;
	model.listen(() => {
		if (known === model.shape)
			return;
		known = model.shape;
		void update();
	});
}
