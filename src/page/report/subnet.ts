// SPDX-License-Identifier: BSD-2-Clause
// The sections of a subnet: what was expected, the links, the flows, where packets wait, what was lost.
import { h } from '../components/dom';
import { icon } from '../components/icons';
import { Answer } from './answer';
import { chooser, figure, fold } from './parts';
import { colourClass } from './drawing';
import { Chart, Plot, Series } from './plot';
import { bars } from './rows';
import { axisFor } from './scale';
import { byName, Congested, Flow, Subnet, Way } from './subnet_data';
import { MapView, share, SubnetMap } from './subnet_map';
import { objectTable, table } from './tables';
import { list, percent, quantity, time } from './words';

export interface Part { question: string; answer: Answer; make: () => (Node | null)[] }

const BUSIEST = 20, LANES = 16, FULL = 0.9, SLIDER = 200;

function answer(text: string, key: string, of: string): Answer {
	return { text, figure: key, of, interval: '', sure: 'plain', why: '' };
}

function bits(x: number): string {
	return !Number.isFinite(x) ? 'not known' : x >= 1e12 ? `${quantity(x / 1e12, '')}\u202fTbit/s` : `${quantity(x / 1e9, '')}\u202fGbit/s`;
}

function some(n: number, one: string, several = `${one}s`): string {
	return `${quantity(n, '')} ${n === 1 ? one : several}`;
}

function wayName(w: Way): string {
	return `${w.from} port ${w.port} to ${w.to}`;
}

function most(ways: Way[], of: (w: Way) => number): Way | null {
	return ways.reduce<Way | null>((a, w) => Number.isFinite(of(w)) && (!a || of(w) > of(a)) ? w : a, null);
}

// ---- the links

interface Measure { name: string; value: (w: Way) => number; scale: string }

function measures(s: Subnet): Measure[] {
	const since = s.measured ? ', since the fabric began' : '';
	return [
		{ name: 'load', value: w => w.load, scale: `Share of its rate that a link carries${since}` },
		{ name: 'waits for credits', value: w => w.wait, scale: `Share of the time in which packets wait for credits${since}` },
		{ name: 'marked packets', value: w => w.marks, scale: 'Share of packets that are marked as congested' },
	];
}

function say(w: Way): string {
	return `${wayName(w)}: load ${share(w.load)}, waits ${share(w.wait)}, ${some(w.packets, 'packet')}` + (w.marked > 0 ? `, ${quantity(w.marked, '')} marked` : '') +
		(w.discards > 0 ? `, ${quantity(w.discards, '')} discarded` : '') + (w.errors > 0 ? `, ${some(w.errors, 'error')}` : '') + (w.up ? '' : ', down');
}

function linkTable(ways: Way[], name: string): HTMLElement {
	const n = (v: number): string => Number.isFinite(v) ? quantity(v, '') : '–';
	return table(['link', 'load', 'waits', 'packets', 'marked', 'discarded', 'errors'],
		ways.map(w => [wayName(w), share(w.load), share(w.wait), n(w.packets), n(w.marked), n(w.discards), n(w.errors)]), name);
}

function linksPart(s: Subnet): Part {
	const top = most(s.ways, w => w.load), waits = most(s.ways, w => w.wait), full = s.ways.filter(w => w.load > FULL).length;
	const loaded = top && top.load >= 0.0005, waited = waits && waits.wait >= 0.0005;
	const text = !top || !loaded ? 'No link carries a thousandth of its rate.' : `The busiest link is ${wayName(top)}: it carries ${share(top.load)} of its rate. ` +
		(full > 1 ? `${full} of ${s.ways.length} directions carry more than 90\u202f%.` : full ? 'No other one carries more than 90\u202f%.' : 'None carries more than 90\u202f%.') +
		(waited ? ` Packets wait for credits longest at ${wayName(waits)}: ${share(waits.wait)} of the time.` : ' No packet waits for credits.');
	return {
		question: 'Which links are loaded, and where do packets wait?',
		answer: answer(text, loaded ? share(top.load) : '0\u202f%', 'load of the busiest link'),
		make: () => {
			const order = [...s.ways].sort((a, b) => (b.load || 0) - (a.load || 0) || (b.wait || 0) - (a.wait || 0) || byName(a.name, b.name)), all = measures(s);
			return [
				chooser([{ label: 'Colour', options: all.map(m => m.name) }], ([i]) => topology(s, { what: `Topology: ${all[i].name}`, description: text, value: all[i].value, say, scale: all[i].scale })),
				h('h3', {}, 'The busiest links'), linkTable(order.slice(0, BUSIEST), 'The busiest links'),
				order.length > BUSIEST ? fold('All links', () => [linkTable(order, 'All links')]) : null,
			];
		},
	};
}

function topology(s: Subnet, view: MapView): HTMLElement {
	return h('figure', {}, h('figcaption', {}, view.what), new SubnetMap(s, view).element,
		h('p', { class: 'muted' }, 'The half of a cable at a node shows what the node sends. Squares are switches, circles hosts; a click on one shows its cables alone.'));
}

// ---- expectations, flows

function expectPart(s: Subnet): Part | null {
	const bad = s.expect.filter(e => !e.holds);
	if (!s.expect.length)
		return null;
	const value = (v: number): string => Number.isFinite(v) ? ` (it is ${quantity(v, '')})` : ' (it is not known)';
	const text = bad.length ? `${bad.length} of ${s.expect.length} expectations do not hold: ${list(bad.slice(0, 3).map(e => e.text + value(e.value)))}.` :
		s.expect.length > 1 ? `All ${s.expect.length} expectations hold.` : `What is expected holds: ${s.expect[0].text}.`;
	return {
		question: 'Does the experiment show what was expected?', answer: answer(text, `${s.expect.length - bad.length} of ${s.expect.length}`, 'expectations hold'),
		make: () => [h('ul', { class: 'findings' }, ...s.expect.map(e => h('li', {}, h('p', {}, icon(e.holds ? 'run' : 'warn', e.holds ? 'good' : 'bad'),
			h('b', {}, e.holds ? 'holds' : 'does not hold'), `: ${e.text}${value(e.value)}`))))],
	};
}

/** The flows of each line of traffic in the order of their shares. */
function flowPlot(s: Subnet, flows: Flow[], fair: boolean): Plot {
	const value = (f: Flow): number => fair ? 100 * f.share : f.rate / 1e9, names = [...new Set(flows.map(f => f.traffic))].slice(0, 8);
	const series = names.map((name, k): Series => {
		const own = flows.filter(f => f.traffic === name).sort((a, b) => value(a) - value(b));
		return { name: name || 'flows', colour: k,
			points: own.map((f, i) => ({ x: i + 1, y: value(f), text: `${f.from} to ${f.to}: ${fair ? `${share(f.share)} of its fair share, ` : ''}${bits(f.rate)}` })),
			draw: d => {
				d.path(own.map((f, i) => [d.x(i + 1), d.y(value(f))]), { class: `line ${colourClass(k)}` });
				if (own.length < 60)
					own.forEach((f, i) => d.add('circle', { class: `dot ${colourClass(k)}`, cx: d.x(i + 1), cy: d.y(value(f)), r: 3 }));
			} };
	});
	return { what: fair ? 'Share of each flow' : 'Rate of each flow', description: s.traffic.map(t => `${t.name}: ${bits(t.rate)}.`).join(' '),
		x: axisFor('flows, the one with the least first', '', [1, Math.max(...series.map(x => x.points.length), 2)], { log: false }),
		y: axisFor(fair ? 'share of the fair share' : 'Gbit/s', fair ? '%' : '', flows.map(value), { log: false }), series };
}

function flowsPart(s: Subnet): Part | null {
	const known = s.traffic.filter(t => Number.isFinite(t.share));
	if (!s.traffic.length)
		return null;
	const words = s.traffic.slice(0, 4).map(t => Number.isFinite(t.share) ? `${t.name} gets ${share(t.share)} of its fair share (${bits(t.rate)} of ${bits(t.fair)}` +
		`${t.flows > 1 && t.most - t.least > 0.005 ? `; its flows get ${share(t.least)} to ${share(t.most)}` : ''})` : `${t.name} carries ${bits(t.rate)}`);
	const worst = known.reduce<typeof known[0] | null>((a, t) => !a || t.share < a.share ? t : a, null);
	return {
		question: 'Does each flow get its share?', answer: answer(`${list(words)}.`, worst ? share(worst.share) : bits(s.traffic[0].rate), worst ? `of its fair share gets ${worst.name}` : `carries ${s.traffic[0].name}`),
		make: () => {
			const fair = s.flows.some(f => Number.isFinite(f.share)), shown = s.flows.slice(0, BUSIEST), n = (v: any): string => typeof v === 'number' ? time(v) : '–';
			return [
				known.length > 1 ? figure(bars('share of the fair share', '%', known.map(t => ({ name: t.name, value: 100 * t.share })))) : null,
				s.flows.length > 1 ? figure(flowPlot(s, s.flows, fair)) : null,
				h('h3', {}, fair ? 'The flows with the least share' : 'The slowest flows'),
				table(['flow', 'traffic', 'rate', 'fair share', 'share', 'latency, median', '99 %', 'lost'], shown.map(f => [`${f.from} to ${f.to}`, f.traffic, bits(f.rate),
					Number.isFinite(f.fair) ? bits(f.fair) : '–', Number.isFinite(f.share) ? share(f.share) : '–', n(f.p50), n(f.p99), quantity(f.lost, '')]), 'Flows'),
				s.flows_left_out ? h('p', { class: 'muted' }, `${some(s.flows_left_out, 'flow')} with a larger share are not in this page.`) : null,
				fold('Latencies of packets and messages', () => [table(['traffic', 'packets: min', 'median', '90 %', '99 %', '99.9 %', 'max', 'messages: median', '99 %'], s.traffic.map(t =>
					[t.name, ...['min', 'p50', 'p90', 'p99', 'p99.9', 'max'].map(k => n(t.row[`packet_latency_ns.${k}`])), n(t.row['message_latency_ns.p50']), n(t.row['message_latency_ns.p99'])]), 'Latencies')]),
			];
		},
	};
}

// ---- congestion over time

function at(all: Congested[], ns: number): Congested[] {
	return all.filter(c => c.from_ns <= ns && ns < c.to_ns);
}

/** When most lanes are congested. */
function worstTime(all: Congested[]): number {
	const events = all.flatMap(c => [[c.from_ns, 1], [c.to_ns, -1]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
	let now = 0, best = 0, when = 0;
	for (const [ns, step] of events) {
		now += step;
		if (now > best)
			[best, when] = [now, ns];
	}
	return when;
}

function treeView(s: Subnet, ns: number): MapView {
	const now = at(s.congestion, ns), ports = new Set(now.map(c => c.way)), roots = new Set(now.filter(c => c.root).map(c => c.way));
	return {
		what: 'Congestion tree', description: `At ${time(ns)} congested: ${list([...ports]) || 'nothing'}.`, scale: '', value: w => ports.has(w.name) ? 1 : 0,
		say: w => `${wayName(w)}: ${roots.has(w.name) ? 'root of the congestion' : ports.has(w.name) ? 'congested, behind a root' : 'not congested'}`,
		roots: () => new Set(s.ways.filter(w => roots.has(w.name)).map(w => w.from)),
	};
}

function treeFigure(s: Subnet): HTMLElement {
	const end = s.seconds * 1e9 || Math.max(...s.congestion.map(c => c.to_ns)), begin = worstTime(s.congestion), map = new SubnetMap(s, treeView(s, begin));
	const out = h('output', {}), tell = (ns: number): void => {
		const now = at(s.congestion, ns), roots = now.filter(c => c.root).length;
		out.textContent = `${time(ns)}: ${now.length ? `${some(now.length, 'lane')} congested, ${some(roots, 'root')}` : 'nothing is congested'}`;
		map.show(treeView(s, ns));
	};
	const input: HTMLInputElement = h('input', { type: 'range', min: 0, max: SLIDER, value: Math.round(begin / end * SLIDER), 'aria-label': 'Time',
		input: () => tell(Number(input.value) / SLIDER * end) });
	tell(begin);
	return h('figure', {}, h('figcaption', {}, 'Congestion tree'), map.element, h('label', { class: 'slider' }, 'Time ', input, out),
		h('p', { class: 'muted' }, 'Red: packets fill the buffers behind that port. A ring: the port is a root, whose own link is full.'));
}

function lanesPlot(s: Subnet): Plot {
	const first = new Map<string, number>(), name = (c: Congested): string => `${c.way} lane ${c.lane}`;
	for (const c of s.congestion)
		first.set(name(c), Math.min(first.get(name(c)) ?? Infinity, c.from_ns));
	const rows = [...first].sort((a, b) => a[1] - b[1] || byName(a[0], b[0])).slice(0, LANES).map(([n]) => n), shown = s.congestion.filter(c => rows.includes(name(c)));
	const series = [false, true].map((root): Series => {
		const own = shown.filter(c => c.root === root), k = root ? 1 : 0;
		return { name: root ? 'root' : 'behind a root', colour: k,
			points: own.map(c => ({ x: c.from_ns, y: rows.indexOf(name(c)) + 0.5, text: `${name(c)}: ${time(c.from_ns)} to ${time(c.to_ns)}, up to ${quantity(c.peak, 'B')}` })),
			draw: d => own.forEach(c => {
				const y = Chart.rowAt(d, rows.indexOf(name(c)));
				d.add('rect', { class: `bar ${colourClass(k)}`, x: d.x(c.from_ns), y: y - 6, width: Math.max(1.5, d.x(c.to_ns) - d.x(c.from_ns)), height: 12 });
			}) };
	}).filter(x => x.points.length);
	return { what: 'Congested lanes over time', description: rows.map(r => `${r}.`).join(' '), byRow: true, series,
		x: axisFor('time', 'ns', [0, s.seconds * 1e9 || Math.max(...shown.map(c => c.to_ns))], { log: false, low: 0, high: s.seconds * 1e9 || Math.max(...shown.map(c => c.to_ns)) }),
		y: { label: '', unit: '', log: false, low: 0, high: rows.length, rows }, note: first.size > LANES ? `the first ${LANES} of ${first.size} lanes` : undefined };
}

function congestionPart(s: Subnet): Part | null {
	if (s.measured)
		return null;
	const roots = [...new Set(s.congestion.filter(c => c.root).map(c => c.way))].sort(byName), ports = [...new Set(s.congestion.map(c => c.way))];
	const way = (name: string): string => (w => w ? wayName(w) : name)(s.ways.find(w => w.name === name));
	const behind = ports.length - roots.length, also = behind ? `${some(behind, 'port')} behind ${roots.length > 1 ? 'them' : 'it'} ${behind === 1 ? 'is' : 'are'} congested as well.` : 'It reaches no port behind.';
	const text = !ports.length ? 'No lane is congested.' : (roots.length ? `Congestion begins at ${list(roots.slice(0, 3).map(way))}${roots.length > 3 ? ` and ${roots.length - 3} more` : ''}. ${also}` :
		`${some(ports.length, 'port')} ${ports.length > 1 ? 'are' : 'is'} congested and none of them is a root: each waits for another one.`) +
		` The first lane was congested after ${time(Math.min(...s.congestion.map(c => c.from_ns)))}.`;
	return {
		question: 'Where does congestion begin, and how far does it reach?', answer: answer(text, `${ports.length}`, ports.length === 1 ? 'congested port' : 'congested ports'),
		make: () => !ports.length ? [] : [treeFigure(s), figure(lanesPlot(s)),
			s.congestion_left_out ? h('p', { class: 'muted' }, `${some(s.congestion_left_out, 'later interval')} of congestion are not in the file.`) : null],
	};
}

function deadlockPart(s: Subnet): Part | null {
	if (!s.deadlocks.length && !s.circle.length)
		return null;
	const d = s.deadlocks[0], lanes = d?.lanes.length ? d.lanes : s.circle, names = lanes.map(l => `${l.way} lane ${l.lane}`), ports = new Set(lanes.map(l => l.way));
	const text = (d ? `The fabric is deadlocked after ${time(d.at_ns)}: each of ${names.length} lanes waits for credits of the next one: ` :
		`It did not deadlock in this run, but it can: the paths make a circle of ${names.length} lanes: `) + `${list(names.slice(0, 5))}${names.length > 5 ? ` and ${names.length - 5} more` : ''}.`;
	return {
		question: 'Can the fabric deadlock?', answer: answer(text, d ? time(d.at_ns) : `${names.length} lanes`, d ? 'until the deadlock' : 'in a circle'),
		make: () => [topology(s, { what: 'Circle of lanes', description: text, scale: '', value: w => ports.has(w.name) ? 1 : 0, say: w => `${wayName(w)}: ${ports.has(w.name) ? 'in the circle' : 'not in the circle'}` })],
	};
}

// ---- what was lost; the rest

function statePart(s: Subnet): Part {
	const down = s.cables.filter(c => !c.up), lost = Object.entries(s.lost).filter(([, n]) => n > 0), errors = s.ways.filter(w => w.errors > 0).length;
	const upText = down.length ? `${down.length} of ${s.cables.length} cables ${down.length === 1 ? 'is' : 'are'} down: ${list(down.slice(0, 4).map(c => `${c.a} to ${c.b}`))}${down.length > 4 ? ' and more' : ''}.` : `All ${s.cables.length} cables are up.`;
	const lostText = lost.length ? ` Packets were lost: ${list(lost.map(([k, n]) => `${quantity(n, '')} ${k.replace(/_/g, ' ')}`))}.` : ' No packet was lost.';
	return {
		question: s.measured ? 'Are all links up, and was anything lost?' : 'Was anything lost?',
		answer: answer((s.measured ? upText : '') + lostText.slice(s.measured ? 0 : 1) + (errors ? ` ${some(errors, 'direction')} had errors.` : ''), quantity(lost.reduce((a, [, n]) => a + n, 0), ''), 'packets lost'),
		make: () => [s.ways.some(w => w.discards > 0 || w.errors > 0) ? linkTable(s.ways.filter(w => w.discards > 0 || w.errors > 0), 'Links with losses') : null],
	};
}

export function subnetParts(s: Subnet): Part[] {
	const all = s.measured ? [statePart(s), linksPart(s)] : [expectPart(s), deadlockPart(s), linksPart(s), flowsPart(s), congestionPart(s), statePart(s)];
	return all.filter((p): p is Part => !!p);
}

/** One line for the subnet, with its sums folded. */
export function subnetLine(s: Subnet): HTMLElement {
	const hosts = s.nodes.filter(n => n.host).length, e = fold('', () => [objectTable({ file: s.file, topology: s.topology || null, routing: s.routing || null, seed: s.seed, ...s.sums }, 'Sums')]);
	const text = [s.title, s.topology, s.routing, `${some(s.nodes.length - hosts, 'switch', 'switches')}, ${some(hosts, 'host')}, ${some(s.cables.length, 'cable')}`,
		s.measured ? `up for ${time(s.seconds * 1e9)}` : `${time(s.seconds * 1e9)} of virtual time${s.sums.carried !== undefined ? `, hosts received at ${percent(100 * s.sums.carried)} of their rate` : ''}`].filter(t => t).join('; ');
	e.classList.add('line');
	e.querySelector('summary')!.replaceChildren(h('span', { class: 'line-name' }, 'Subnet'), h('span', {}, text));
	return h('div', { class: 'lines' }, e);
}
