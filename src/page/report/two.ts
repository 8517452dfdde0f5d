// SPDX-License-Identifier: BSD-2-Clause
// Two runs over each other: what is faster, slower or shows no difference, and their figures in one.
import { h } from '../components/dom';
import { Answer, disturbed } from './answer';
import { Compared, Data, floorOf, latencyNamed, Run } from './data';
import { Group, latencyLabel, Section, sectionsOf, valueAt, withLatency } from './groups';
import { drawable, histogram, Named, tail } from './latency';
import { chooser, figure, fold } from './parts';
import { ratios } from './rows';
import { answerBox, whenNear } from './section';
import { medians, Swept } from './sweep';
import { table } from './tables';
import { list, quantity, time, times } from './words';

/** Rows that one figure of ratios still shows. */
const ROWS = 30;

function verdict(rows: Compared[], runs: Run[]): Answer {
	const ids = new Set(rows.map(r => r.id)), whose = ['first', 'second'];
	const why = runs.flatMap((run, i) => {
		const text = disturbed(run, run.cases.filter(c => ids.has(c.id)));
		return text ? [`in the ${whose[i]} run ${text}`] : [];
	});
	const of = (v: string): Compared[] => rows.filter(r => r.verdict === v);
	const slower = of('slower'), faster = of('faster'), same = of('no difference shown'), rest = rows.length - slower.length - faster.length - same.length;
	const parts = [slower.length ? `slower in ${slower.length}` : '', faster.length ? `faster in ${faster.length}` : '', same.length ? `not shown to differ in ${same.length}` : '', rest ? `not comparable in ${rest}` : ''].filter(t => t);
	const known = rows.filter(r => r.ratio !== null && r.ratio > 0).sort((a, b) => Math.abs(Math.log(b.ratio!)) - Math.abs(Math.log(a.ratio!)));
	const most = known.find(r => r.verdict === 'slower' || r.verdict === 'faster') ?? known[0];
	return {
		text: rows.length ? `Of ${rows.length} latencies the second run is ${list(parts)}.` : 'The two runs have no latency in common here.',
		figure: most ? times(most.ratio!) : '–', of: most ? `the largest change: ${most.id}` : '',
		interval: most && most.low !== null && most.high !== null ? `95 %: ${quantity(most.low, '')} to ${quantity(most.high, '')}` : '',
		sure: why.length ? 'busy' : slower.length || faster.length ? 'shown' : 'open',
		why: why.length ? `Not decidable: ${why.join('; ')}.` : 'By the bootstrap of both runs. It cannot know what changes from run to run, such as the speed of a virtual machine: compare several.',
	};
}

function rowsOf(section: Section, compared: Compared[], latency: (g: Group) => string[]): { name: string; compared: Compared }[] {
	return section.groups.flatMap(g => g.cases.flatMap(c => latency(g).flatMap(n => {
		const r = compared.find(x => x.id === c.id && x.latency === n);
		return r ? [{ name: g.labels.get(c)! + (latency(g).length > 1 ? `: ${latencyLabel(g, n)}` : ''), compared: r }] : [];
	})));
}

function overlay(a: Group, b: Group | undefined, draw: typeof histogram): HTMLElement | null {
	const cases = a.cases.filter(c => drawable(a.latencies.map(n => ({ name: n, c, l: latencyNamed(c, n)! })).filter(x => x.l)).length);
	if (!cases.length)
		return null;
	return chooser([{ label: 'Latency', options: a.latencies.map(n => latencyLabel(a, n)) }, { label: 'Case', options: cases.map(c => a.labels.get(c)!) }], ([l, k]) => {
		const other = b?.cases.find(x => x.id === cases[k].id);
		const both: Named[] = [cases[k], ...other ? [other] : []].flatMap((c, i) => withLatency([c], a.latencies[l]).map(e => ({ name: i ? 'second run' : 'first run', ...e })));
		const shown = drawable(both);
		return shown.length ? figure(draw(shown, `${a.labels.get(cases[k])}, ${latencyLabel(a, a.latencies[l])}`)) : null;
	});
}

function sweepOfBoth(a: Group, b: Group | undefined, floor: number): HTMLElement | null {
	if (!a.x || a.y)
		return null;
	return chooser([{ label: 'Latency', options: a.latencies.map(n => latencyLabel(a, n)) }], ([l]) => {
		const of = (g: Group | undefined, which: string): Swept[] => (g && g.x?.key === a.x!.key ? g.lines : []).map(line => ({
			line, group: g!, latency: a.latencies[l], name: `${which}${line.label ? ': ' + line.label : ''}` }));
		const all = [...of(a, 'first run'), ...of(b, 'second run')].filter(w => withLatency(w.line.cases, w.latency).some(e => Number.isFinite(valueAt(w.group.x, e.c))));
		return all.length ? figure(medians(all, latencyLabel(a, a.latencies[l]), floor)) : null;
	});
}

function sectionOfBoth(section: Section, other: Section | undefined, data: Data, run: Run, id: string): HTMLElement {
	const compared = data.compare ?? [], ids = new Set(section.groups.flatMap(g => g.cases.map(c => c.id)));
	const rows = compared.filter(r => ids.has(r.id)), body = h('div', { class: 'section-body' });
	const e = h('section', { id, class: 'card question', 'aria-labelledby': `${id}-h` },
		h('h2', { id: `${id}-h` }, section.question, section.scenario ? h('span', { class: 'tag' }, section.scenario) : null), answerBox(verdict(rows, data.runs)), body);
	let made = false;
	whenNear(e, () => {
		if (made)
			return;
		made = true;
		const first = rowsOf(section, compared, g => g.latencies.slice(0, 1)).slice(0, ROWS);
		body.append(...[first.length ? figure(ratios(first, section.question)) : null,
			h('div', { class: 'folds' },
				...section.groups.flatMap(g => {
					const twin = other?.groups.find(o => o.kind === g.kind);
					return g.latencies.length ? [g.x && !g.y ? fold('Medians of both', () => [sweepOfBoth(g, twin, floorOf(run))]) : null,
						fold('Histogram of both', () => [overlay(g, twin, histogram)]), fold('The slowest messages of both', () => [overlay(g, twin, tail)])] : [];
				}),
				rows.length ? fold('All numbers as a table', () => [table(['', 'first run', 'second run', 'ratio', '95 % interval', 'verdict'],
					rowsOf(section, compared, g => g.latencies).map(({ name, compared: r }) => [name, time(r.a_ns), time(r.b_ns), quantity(r.ratio, ''), r.low === null ? '–' : `${quantity(r.low, '')} to ${quantity(r.high, '')}`, r.verdict]), 'Comparison')]) : null)]
			.filter((n): n is HTMLElement => !!n));
	});
	return e;
}

export function overview(data: Data): { answer: Answer; sections: HTMLElement[]; list: { id: string; question: string; text: string }[] } {
	const [a, b] = data.runs, sections = sectionsOf(a), others = sectionsOf(b);
	const shown = sections.filter(x => x.groups.some(g => g.latencies.length));
	return {
		answer: verdict(data.compare ?? [], data.runs),
		sections: shown.map((x, i) => sectionOfBoth(x, others.find(o => o.scenario === x.scenario && o.question === x.question), data, a, `q${i + 1}`)),
		list: shown.map((x, i) => {
			const ids = new Set(x.groups.flatMap(g => g.cases.map(c => c.id)));
			return { id: `q${i + 1}`, question: x.question, text: verdict((data.compare ?? []).filter(r => ids.has(r.id)), data.runs).text };
		}),
	};
}
