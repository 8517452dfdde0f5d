// SPDX-License-Identifier: BSD-2-Clause
// The section of one question: sentence, figure, how sure; the rest folded by topic.
import { h, s } from '../components/dom';
import { icon } from '../components/icons';
import { Answer, answerOf, kindName } from './answer';
import { isVirtual } from './answer_virtual';
import { Case, floorOf, latenciesOf, latencyNamed, Run, valueOf } from './data';
import { Group, isPair, latencyLabel, numbersOf, Section, valueAt, withLatency } from './groups';
import { curve, drawable, histogram, Named, overTime, tail } from './latency';
import { ladderFigure } from './ladder';
import { packetsOf } from './packets';
import { chooser, figure, fold } from './parts';
import type { Plot } from './plot';
import { bars, budgetsOf, dots, waterfall } from './rows';
import { heatMap, medians, numbers, surfaceView, Swept } from './sweep';
import { budgetTable, latencyTable, numberTable, referenceTable } from './tables';
import { quantity, sentence } from './words';

/** Curves that one figure still tells apart. */
const CURVES = 8;
/** Rows up to which a figure shows all latencies of its cases. */
const ROWS_FOR_ALL = 10;
/** Fewer values than this have no histogram. */
const FEW = 5;
const MAPS_OPEN = 2;

const SIGNS: Record<Answer['sure'], [string, string]> = {
	shown: ['run', 'good'], open: ['wait', 'held'], busy: ['warn', 'bad'], plain: ['off', 'idle'],
};

/** How sure an answer is, as a sign with a text. */
export function signOf(sure: Answer['sure']): SVGSVGElement | null {
	if (sure !== 'open' && sure !== 'busy')
		return null;
	const e = icon(...SIGNS[sure]);
	e.removeAttribute('aria-hidden');
	e.setAttribute('role', 'img');
	e.setAttribute('aria-label', sure === 'busy' ? 'not decidable' : 'no difference shown');
	e.append(s('title', {}, sure === 'busy' ? 'Not decidable here' : 'No difference is shown'));
	return e;
}

export function answerBox(a: Answer): HTMLElement {
	const [sign, kind] = SIGNS[a.sure];
	return h('div', { class: 'answer' },
		h('p', { class: 'sentence' }, a.text),
		h('div', { class: 'key-figure' }, h('b', {}, a.figure), h('span', { class: 'muted' }, a.of), a.interval ? h('span', { class: 'muted' }, a.interval) : null),
		a.why ? h('p', { class: `sure ${kind}` }, icon(sign, kind), h('span', {}, a.why)) : null);
}

// ---- which cases a figure has

interface Place { label: string; cases: Case[] }

/** The places on the axes, each with one case of each line; without axes all cases, some at a time. */
function placesOf(g: Group): Place[] {
	if (!g.x) {
		const all: Place[] = [];
		for (let i = 0; i < g.cases.length; i += CURVES)
			all.push({ label: `cases ${i + 1} to ${Math.min(g.cases.length, i + CURVES)}`, cases: g.cases.slice(i, i + CURVES) });
		return all;
	}
	const by = new Map<string, Place>();
	for (const c of g.lines.flatMap(l => l.cases)) {
		const label = [g.x, g.y].flatMap(k => k ? [`${k.unit ? '' : k.label + ' '}${quantity(valueAt(k, c), k.unit)}`] : []).join(', ');
		by.set(label, { label, cases: [...by.get(label)?.cases ?? [], c] });
	}
	return [...by.values()].sort((a, b) => valueAt(g.x, a.cases[0]) - valueAt(g.x, b.cases[0]) || valueAt(g.y, a.cases[0]) - valueAt(g.y, b.cases[0]));
}

function nameOf(g: Group, c: Case): string {
	return (g.x && g.lines.find(l => l.cases.includes(c))?.label) || (g.x ? '' : g.labels.get(c)) || c.label || c.id;
}

function namedAt(g: Group, p: Place, latency: string): Named[] {
	return drawable(withLatency(p.cases, latency).map(e => ({ name: nameOf(g, e.c), ...e }))).slice(0, CURVES * 2);
}

/** One case: all its latencies. */
function allOf(c: Case): Named[] {
	return drawable(latenciesOf(c).map(l => ({ name: l.label, c, l })));
}

function latencyFigure(g: Group, draw: (all: Named[], what: string) => Plot, initial: (places: Place[]) => number): HTMLElement | null {
	const places = placesOf(g), one = g.cases.length === 1;
	if (!g.cases.some(c => allOf(c).length))
		return null;
	if (one) {
		const all = allOf(g.cases[0]);
		return figure(draw(all, g.labels.get(g.cases[0])!));
	}
	return chooser([
		{ label: 'Latency', options: g.latencies.map(n => latencyLabel(g, n)) },
		{ label: g.x ? 'At' : 'Show', options: places.map(p => p.label), initial: initial(places) },
	], ([l, p]) => {
		const all = namedAt(g, places[p], g.latencies[l]);
		return all.length ? figure(draw(all, [latencyLabel(g, g.latencies[l]), g.x ? places[p].label : ''].filter(t => t).join(', '))) : null;
	});
}

/** Where the single slowest message is. */
function worst(g: Group): (places: Place[]) => number {
	const max = (p: Place): number => Math.max(...p.cases.map(c => latencyNamed(c, g.latencies[0])?.max ?? 0));
	return places => places.reduce((best, p, i) => max(p) > max(places[best]) ? i : best, 0);
}

// ---- the figure of the answer

function sweptOf(section: Section, g: Group, latency: string): Swept[] {
	const same = section.groups.filter(o => o.x?.key === g.x!.key && !o.y && o.latencies.length);
	return same.flatMap(o => o.lines.map(line => ({ line, group: o, latency: o === g ? latency : o.latencies[0],
		name: [same.length > 1 ? kindName(o.kind) : '', line.label].filter(t => t).join(', ') || latencyLabel(o, o === g ? latency : o.latencies[0]) })))
		.filter(w => withLatency(w.line.cases, w.latency).length);
}

function dotsOf(g: Group, names: string[], floor: number): Plot {
	const rows = g.cases.map(c => ({ name: g.labels.get(c)!, c, latencies: names.flatMap(n => latencyNamed(c, n) ?? []) })).filter(r => r.latencies.length);
	return dots(rows, names.length > 1 ? 'all latencies' : latencyLabel(g, names[0]), floor);
}

/** A row for each line, with a mark for each of the two values of the axis. */
function pairOf(g: Group, name: string, floor: number): Plot {
	const values = [...new Set(g.cases.map(c => valueAt(g.x, c)))].sort((a, b) => a - b);
	const rows = g.lines.map(line => ({ name: line.label, c: line.cases[0], latencies: withLatency(line.cases, name).map(e => {
		const at = valueAt(g.x, e.c);
		return { ...e.l, name: String(values.indexOf(at)), label: `${g.x!.unit ? '' : g.x!.label + ' '}${quantity(at, g.x!.unit)}` };
	}) })).filter(r => r.latencies.length);
	return dots(rows, latencyLabel(g, name), floor);
}

function numberFigure(g: Group, f: { name: string; label: string; unit: string }): HTMLElement | null {
	if (g.x && !g.y)
		return figure(numbers(g, f));
	const values = g.cases.map(c => ({ name: g.labels.get(c)!, value: valueOf(c, f.name) })).filter(v => Number.isFinite(v.value));
	return values.length ? figure(bars(f.label, f.unit, values)) : null;
}

/** One of the numbers, the first one first. */
function numberFigures(g: Group): HTMLElement {
	const all = numbersOf(g, !g.latencies.length || isVirtual(g.cases[0]));
	return chooser([{ label: 'Number', options: all.map(f => f.label) }], ([i]) => numberFigure(g, all[i]));
}

/** One case with nothing but numbers: those of one unit are compared with each other. */
function unitFigures(g: Group): HTMLElement[] {
	const c = g.cases[0], units = [...new Set(c.figures.map(f => f.unit))];
	return units.flatMap(u => {
		const values = c.figures.filter(f => f.unit === u && f.value !== null).map(f => ({ name: f.label, value: f.value! }));
		return values.length ? [figure(bars(u === 'ns' ? 'times' : u ? `numbers in ${u}` : 'counts', u, values))!] : [];
	});
}

/** What the section shows first. */
function mainFigures(section: Section, g: Group, run: Run): (HTMLElement | null)[] {
	const floor = floorOf(run), asksBudget = /where does the time/i.test(section.question);
	const b = g.cases.flatMap(c => budgetsOf(c).map(x => ({ c, x })));
	if (b.length && (asksBudget || !g.latencies.length))
		return [figure(waterfall(b[0].x, `${b[0].x.whole.label}; ${g.labels.get(b[0].c)}`))];
	if (['recording', 'stats'].includes(g.kind))
		return [g.latencies.length ? latencyFigure(g, histogram, () => 0) : g.cases[0].curves.length ? figure(curve(g.cases[0].curves[0], g.labels.get(g.cases[0])!)) : null];
	if (isVirtual(g.cases[0]))
		return [numberFigures(g)];
	if (!g.latencies.length)
		return g.cases.length === 1 ? unitFigures(g).slice(0, 1) : numbersOf(g, true).slice(0, 1).map(f => numberFigure(g, f));
	if (g.x && g.y)
		return g.lines.slice(0, MAPS_OPEN).map(l => chooser([{ label: 'Latency', options: g.latencies.map(n => latencyLabel(g, n)) }],
			([i]) => figure(heatMap(g, l, g.latencies[i]))));
	if (g.x)
		return [chooser([{ label: 'Latency', options: g.latencies.map(n => latencyLabel(g, n)) }], ([i]) => {
			if (isPair(g))
				return figure(pairOf(g, g.latencies[i], floor));
			const swept = sweptOf(section, g, g.latencies[i]);
			return swept.length ? figure(medians(swept, latencyLabel(g, g.latencies[i]), floor)) : null;
		})];
	if (g.cases.length === 1)
		return [latencyFigure(g, histogram, () => 0) ?? unitFigures(g)[0] ?? null];
	const several = g.latencies.length > 1 && g.latencies.length < 4 && g.cases.length <= ROWS_FOR_ALL;
	return [chooser([{ label: 'Latency', options: [...several ? ['all'] : [], ...g.latencies.map(n => latencyLabel(g, n))], initial: several ? 1 : 0 }],
		([i]) => figure(dotsOf(g, several && i === 0 ? g.latencies : [g.latencies[several ? i - 1 : i]], floor)))];
}

/** Rows of a diagram that are shown at first. */
const PACKETS = 24;

/** The packets of one case: at first of the one that took the longest. */
function packetsOfRun(g: Group): HTMLElement | null {
	const known = g.cases.filter(c => c.packets), worst = known.reduce((a, c, i) => valueOf(c, 'time') > valueOf(known[a], 'time') ? i : a, 0);
	return !known.length ? null : chooser([{ label: 'Case', options: known.map(c => g.labels.get(c)!), initial: worst }], ([i]) => {
		const r = known[i].packets!, qps = Number(known[i].parameters.num_qps ?? 1);
		return ladderFigure(`Packets of a run${known.length > 1 ? `; ${g.labels.get(known[i])}` : ''}`, packetsOf(r), { roles: ['client', 'server'], ends: [qps > 1 ? `queue pair ${r.queue_pair + 1} of ${qps}` : '', ''], first: PACKETS },
			`In virtual time, by the model: at the left the time in seconds. A thick lifeline: a page is missing there. Shaded: a pending period, in which the client sends nothing and drops what comes. ` +
			`A cross: the adapter lost the packet. Where the lines are broken, nothing happened for the time that is written there.${qps > 1 ? ' Shown is the queue pair that lost the most packets, or sent the most again.' : ''}${r.left_out ? ` ${quantity(r.left_out, '')} later packets were not recorded.` : ''}`);
	});
}

// ---- the rest, by topic

function commands(g: Group): HTMLElement | null {
	const all = [...new Set(g.cases.map(c => c.command).filter(c => c))] as string[];
	return all.length ? fold(all.length > 1 ? `Repeat these cases: ${all.length} commands` : 'Repeat this case', () =>
		[h('pre', { tabindex: 0 }, all.join('\n'))]) : null;
}

function tables(g: Group, floor: number): HTMLElement {
	return fold('All numbers as tables', () => [latencyTable(g, floor), numberTable(g), referenceTable(g)]);
}

function topics(g: Group, run: Run): (HTMLElement | null)[] {
	const floor = floorOf(run), numbers_ = numbersOf(g, !g.latencies.length), rows = g.cases.some(c => allOf(c).some(x => x.l.count >= FEW));
	const budgets = g.cases.flatMap(c => budgetsOf(c).map(x => ({ c, x })));
	const curves = g.cases.flatMap(c => c.curves.map(k => ({ c, k })));
	return [
		g.cases.some(c => c.packets) ? fold('Packets over time', () => [packetsOfRun(g)], true) : null,
		g.x && g.y && g.lines.length > MAPS_OPEN ? fold('Further maps', () => g.lines.slice(MAPS_OPEN).map(l => figure(heatMap(g, l, g.latencies[0])))) : null,
		g.x && g.y ? fold('As a surface', () => [chooser([{ label: 'Latency', options: g.latencies.map(n => latencyLabel(g, n)) },
			{ label: 'Of', options: g.lines.map(l => l.label) }], ([n, l]) => surfaceView(g, g.lines[l], g.latencies[n]))]) : null,
		rows && !(g.cases.length === 1 && g.kind !== 'node') ? fold('Histogram', () => [latencyFigure(g, histogram, () => 0)]) : null,
		rows ? fold('The slowest messages', () => [latencyFigure(g, tail, p => p.length - 1)]) : null,
		rows ? fold('Over time', () => [latencyFigure(g, overTime, worst(g))]) : null,
		budgets.length ? fold('Where the time goes', () => budgets.map(b => figure(waterfall(b.x, `${b.x.whole.label}; ${g.labels.get(b.c)}`), budgetTable(b.x)))) : null,
		curves.length ? fold('Recorded over time', () => curves.map(x => figure(curve(x.k, g.labels.get(x.c)!)))) : null,
		numbers_.length && !isVirtual(g.cases[0]) ? fold('Other numbers', () =>
			!g.latencies.length && g.cases.length === 1 ? unitFigures(g) : [numberFigures(g)]) : null,
		tables(g, floor), commands(g),
	];
}

function groupBody(section: Section, g: Group, run: Run, first: boolean): Node[] {
	const joined = first ? null : section.groups[0].x && g.x?.key === section.groups[0].x.key;
	const main = joined ? [] : mainFigures(section, g, run).filter((n): n is HTMLElement => !!n);
	return [...first || section.groups.length < 2 ? [] : [h('h3', {}, g.question && g.question !== section.question ? g.question : sentence(kindName(g.kind)))],
		...main.length ? [h('div', { class: main.length > 1 ? 'pair' : '' }, ...main)] : [],
		h('div', { class: 'folds' }, ...topics(g, run))];
}

/** `shown` is called when the section comes near the window. */
export function sectionView(section: Section, run: Run, id: string): HTMLElement {
	const answer = answerOf(section, run), body = h('div', { class: 'section-body' });
	const e = h('section', { id, class: 'card question', 'aria-labelledby': `${id}-h` },
		h('h2', { id: `${id}-h` }, section.question, section.scenario && section.scenario !== section.question ? h('span', { class: 'tag' }, section.scenario) : null),
		answer ? answerBox(answer) : h('p', { class: 'sentence' }, 'This run has no figures for it.'), body);
	const main = section.groups.find(g => g.latencies.length) ?? section.groups[0];
	const groups = [main, ...section.groups.filter(g => g !== main)];
	let made = false;
	const make = (): void => {
		if (made)
			return;
		made = true;
		body.append(...groups.flatMap((g, i) => groupBody({ ...section, groups }, g, run, i === 0)));
	};
	whenNear(e, make);
	return e;
}

const waiting = new Map<Element, () => void>();
const near = new IntersectionObserver(entries => {
	for (const x of entries)
		if (x.isIntersecting)
			makeNow(x.target);
}, { rootMargin: '1200px' });

function makeNow(e: Element): void {
	waiting.get(e)?.();
	waiting.delete(e);
	near.unobserve(e);
}

export function whenNear(e: Element, make: () => void): void {
	waiting.set(e, make);
	near.observe(e);
}

/** Before the page is printed. */
export function makeAll(): void {
	for (const e of [...waiting.keys()])
		makeNow(e);
}
