// SPDX-License-Identifier: BSD-2-Clause
// One sentence for a question, the figure and the interval behind it, and how sure it is. The sentence
// follows from what varies in the cases and from what the question asks for; it says what this run shows.
import { isVirtual, virtualAnswer } from './answer_virtual';
import { at, Case, floorOf, Latency, latenciesOf, latencyNamed, missed, Run, valueOf } from './data';
import { Group, Line, numbersOf, Section, valueAt, withLatency } from './groups';
import { budgetsOf } from './rows';
import { list, median, percent, quantity, sentence, time, times } from './words';

export type Sure = 'shown' | 'open' | 'busy' | 'plain';

export interface Answer {
	text: string;
	/** The figure that the sentence is about, and what it is: "446 ns", "median of UD". */
	figure: string; of: string;
	/** "95 %: 430 to 452 ns", or "". */
	interval: string;
	sure: Sure; why: string;
}

interface Entry { name: string; c: Case; l: Latency }

/** Shares of processor time above which a figure says little, as for `busbar bench shapes`. */
const STOLEN = 5, OTHERS = 10, MISSED = 5;
/** Fewer values than this have no interval that means anything. */
const FEW = 10;
/** Kinds whose messages go from one processor to another. */
const BETWEEN = new Set(['hca', 'node', 'ripc', 'program', 'mpi']);
/** What others are compared with, and so never left out. */
const BASELINE = /^(tcp|udp|timerfd|loopback)\b/;
/** A size takes longer from here on. */
const LONGER = 1.25;

// ---- how sure

/** Why figures of this run say little; "": nothing is known that disturbed it. */
export function disturbed(run: Run, cases: Case[]): string {
	const whole = at(run.run, 'disturbance');
	if (cases.length && cases.every(isVirtual))
		return '';
	for (const c of cases) {
		const own = c.disturbance;
		if ((own?.stolen_percent ?? 0) >= STOLEN)
			return `the host took the processors away ${percent(own!.stolen_percent!)} of the time`;
		if ((own?.others_percent ?? 0) >= OTHERS)
			return `other programs used ${percent(own!.others_percent!)} of the processors meanwhile`;
	}
	if (whole?.missed_percent >= MISSED)
		return `a loop that does nothing else missed ${percent(whole.missed_percent)} of its steps at 100 kHz`;
	const idle = at(run.machine, 'floor.paced_100k_missed.median');
	if (!whole && idle >= MISSED)
		return `a loop that does nothing else missed ${percent(idle)} of its steps at 100 kHz`;
	const load = at(run.machine, 'load.0'), cpus = at(run.machine, 'cpu.online');
	if (!whole && cpus && load > cpus)
		return `other programs ran, the load average at the start was ${quantity(load, '')} on ${cpus} processors`;
	return '';
}

function interval(l: Latency): string {
	return l.low !== undefined && l.high !== undefined ? `95 %: ${time(l.low)} to ${time(l.high)}` : '';
}

function apart(a: Latency, b: Latency): boolean {
	return (a.high ?? a.p50) < (b.low ?? b.p50) || (b.high ?? b.p50) < (a.low ?? a.p50);
}

function base(run: Run, cases: Case[]): { sure: Sure; why: string } {
	const why = run.machine || run.run ? disturbed(run, cases) : '';
	return why ? { sure: 'busy', why: `Not decidable: ${why}.` } : { sure: 'shown', why: '' };
}

/** The claim is that the first is faster than the second. */
function judge(run: Run, first: Entry, second: Entry | undefined): { sure: Sure; why: string } {
	const all = base(run, second ? [first.c, second.c] : [first.c]), floor = floorOf(run);
	if (first.l.p50 < floor && BETWEEN.has(first.c.kind))
		return { sure: 'busy', why: `Not decidable: ${time(first.l.p50)} is less than a cache line takes to the other processor (${time(floor)}), so the machine was slower when that was measured.` };
	const few = Math.min(first.l.count, second?.l.count ?? Infinity);
	if (all.sure !== 'busy' && few < FEW)
		return { sure: 'plain', why: `There ${few === 1 ? 'is one value' : `are ${few} values`} only: their interval says nothing.` };
	if (all.sure === 'busy' || !second)
		return all.why ? all : { sure: 'shown', why: 'The interval is that of the median, from a bootstrap of this run.' };
	if (first.l.low === undefined || second.l.low === undefined)
		return { sure: 'plain', why: 'The run keeps no single values, so there is no interval.' };
	return apart(first.l, second.l) ? { sure: 'shown', why: `The 95 % intervals of ${first.name} and ${second.name} do not overlap.` } :
		{ sure: 'open', why: `The 95 % intervals of ${first.name} and ${second.name} overlap: no difference is shown between these two.` };
}

// ---- sentences

/** "RC takes 1.2 times and UC 1.5 times as long" */
function others(best: Entry, rest: Entry[]): string {
	const next = rest.slice(0, 3), base_ = rest.find(e => BASELINE.test(e.name) && !next.includes(e));
	const shown = next.map(e => `${e.name} ${times(e.l.p50 / Math.max(best.l.p50, 1))}`);
	const more = (base_ ? `, ${base_.name} ${times(base_.l.p50 / Math.max(best.l.p50, 1))}` : '') +
		(rest.length > 3 + Number(!!base_) ? `, ${rest.length - 3 - Number(!!base_)} more` : '');
	return rest.length ? `; ${list(shown)} as long${more}` : '';
}

/** Those whose intervals overlap that of the fastest are as fast. */
function fastest(run: Run, entries: Entry[], where: string): Answer {
	const by = [...entries].sort((a, b) => a.l.p50 - b.l.p50), best = by[0];
	const alike = by.filter(e => e === best || !(e.l.low === undefined || apart(best.l, e.l))), rest = by.filter(e => !alike.includes(e));
	const head = alike.length === 1 ? `${best.name} is the fastest${where}: ${median(best.l)}` :
		`no difference is shown between ${alike.length > 4 ? `${best.name} and ${alike.length - 1} others` : list(alike.map(e => e.name))}${where}: ${time(best.l.p50)} to ${time(alike[alike.length - 1].l.p50)}`;
	return {
		text: `${alike.length > 1 ? sentence(head) : head}${others(best, rest)}.`,
		figure: time(best.l.p50), of: `median, ${best.name}${where}`, interval: interval(best.l), ...judge(run, best, by[1]),
	};
}

function single(run: Run, e: Entry, name: string): Answer {
	const m = missed(e.c), above = e.l.share_above;
	return {
		text: `${name}${name ? ': half' : 'Half'} took ${time(e.l.p50)} or less, 99 % ${time(e.l.p99)}, the slowest ${time(e.l.max)}` +
			(above ? `; ${percent(100 * above)} took longer than ${time(e.c.limit_ns)}` : '') + (m > 0 ? `; ${percent(m)} of the steps were missed or lost` : '') + '.',
		figure: time(e.l.p50), of: `median, ${e.l.label}`, interval: interval(e.l), ...judge(run, e, undefined),
	};
}

function place(g: Group, c: Case): string {
	return `${g.x!.unit ? '' : g.x!.label + ' '}${quantity(valueAt(g.x, c), g.x!.unit)}`;
}

function ends(line: Line, latency: string): [Entry, Entry] | null {
	const known = withLatency(line.cases, latency);
	return known.length > 1 ? [{ name: line.label, ...known[0] }, { name: line.label, ...known[known.length - 1] }] : null;
}

function growth(run: Run, g: Group, line: Line, latency: string): Answer | null {
	const e = ends(line, latency);
	if (!e)
		return null;
	const [a, b] = e, ratio = b.l.p50 / Math.max(1, a.l.p50), span = valueAt(g.x, b.c) / valueAt(g.x, a.c);
	const change = ratio >= 1 ? `grows ${times(ratio)}` : `falls to ${percent(100 * ratio)}`;
	return {
		text: `${line.label ? line.label + ': the' : 'The'} median ${change} while the ${g.x!.label} grows ${times(span)}: from ${time(a.l.p50)} at ${place(g, a.c)} to ${time(b.l.p50)} at ${place(g, b.c)}.`,
		figure: `× ${quantity(ratio, '')}`, of: `from ${place(g, a.c)} to ${place(g, b.c)}`,
		interval: a.l.low !== undefined ? `95 %: ${time(a.l.low)} to ${time(a.l.high)}, and ${time(b.l.low)} to ${time(b.l.high)}` : '',
		...judge(run, { ...a, name: place(g, a.c) }, { ...b, name: place(g, b.c) }),
	};
}

/** From which x on a line takes longer than its shortest by a quarter, and stays so. */
function knee(run: Run, g: Group, latency: string): Answer | null {
	const said = g.lines.slice(0, 4).flatMap(line => {
		const known = withLatency(line.cases, latency), least = Math.min(...known.map(k => k.l.p50));
		let from = known.length;
		while (from > 0 && known[from - 1].l.p50 > LONGER * least)
			from--;
		return known.length > 2 ? [{ line, known, from }] : [];
	});
	if (!said.length)
		return null;
	const first = said[0], c = first.known[Math.min(first.from, first.known.length - 1)];
	const text = said.map(x => `${x.line.label ? x.line.label + ' ' : ''}${x.from < x.known.length ? `from ${place(g, x.known[x.from].c)} on` : 'at none'}`);
	const b = base(run, first.known.map(k => k.c));
	return { text: `The median is more than a quarter above its smallest value: ${list(text)}${g.lines.length > said.length ? ', and so on' : ''}.`,
		figure: first.from < first.known.length ? place(g, c.c) : 'none', of: `${first.line.label || g.x!.label}: longer from here on`, interval: interval(c.l),
		...(b.why ? b : { sure: 'plain', why: 'The bound of a quarter is arbitrary; the figure shows the whole course.' }) };
}

/** Over two axes: from where to where the median goes. */
function surface(run: Run, g: Group, latency: string): Answer | null {
	const known = withLatency(g.cases, latency).map(e => ({ name: g.labels.get(e.c)!, ...e })).sort((a, b) => a.l.p50 - b.l.p50);
	if (known.length < 2)
		return null;
	const low = known[0], high = known[known.length - 1];
	return { text: `The median goes from ${time(low.l.p50)} (${low.name}) to ${time(high.l.p50)} (${high.name}).`,
		figure: time(low.l.p50), of: `least median, ${low.name}`, interval: interval(low.l), ...judge(run, low, high) };
}

/** Several lines over x: who is the fastest where. */
function crossing(run: Run, g: Group, lines: { name: string; line: Line; latency: string }[]): Answer | null {
	const xs = [...new Set(g.cases.map(c => valueAt(g.x, c)))].sort((a, b) => a - b);
	const at_ = (x: number): Entry[] => lines.flatMap(w => {
		const c = w.line.cases.find(k => valueAt(g.x, k) === x), l = c && latencyNamed(c, w.latency);
		return l ? [{ name: w.name, c: c!, l }] : [];
	});
	const low = at_(xs[0]), high = at_(xs[xs.length - 1]);
	if (low.length < 2 || high.length < 2)
		return null;
	const answer = fastest(run, high, ` at ${place(g, high[0].c)}`);
	const first = [...low].sort((a, b) => a.l.p50 - b.l.p50)[0];
	const tail = low.find(e => BASELINE.test(e.name) && e !== first);
	answer.text = answer.text.replace(/\.$/, `; at ${place(g, low[0].c)} ${first.name} with ${time(first.l.p50)}${tail ? ` (${tail.name} ${time(tail.l.p50)})` : ''}.`);
	return answer;
}

// ---- missed and lost steps

function missedOf(run: Run, g: Group): Answer | null {
	const known = g.cases.filter(c => !Number.isNaN(missed(c)));
	if (!known.length)
		return null;
	const plain = { interval: '', ...base(run, known) };
	const name = (c: Case): string => g.labels.get(c)!;
	const why = plain.why || 'Counts of all steps of the run; another run has others.';
	if (known.length === 1)
		return { text: `${percent(missed(known[0]))} of the steps were missed or lost` +
			(valueOf(known[0], 'made_up_share') > 0 ? `, ${percent(valueOf(known[0], 'made_up_share'))} were late and made up` : '') + '.',
			figure: percent(missed(known[0])), of: 'steps missed or lost', ...plain, why };
	const by = [...known].sort((a, b) => missed(a) - missed(b)), least = by[0], most = by[by.length - 1];
	if (!g.x || g.lines.length > 1 && !g.y)
		return { text: `${name(least)} misses or loses the fewest steps, ${percent(missed(least))}; ${name(most)} the most, ${percent(missed(most))}.`,
			figure: percent(missed(least)), of: `missed or lost, ${name(least)}`, ...plain, why };
	const many = known.filter(c => missed(c) >= 1).sort((a, b) => valueAt(g.x, a) - valueAt(g.x, b) || valueAt(g.y, a) - valueAt(g.y, b));
	return { text: many.length ? `Steps are missed or lost (1 % or more) in ${many.length} of ${known.length} cases, first at ${name(many[0])}: ${percent(missed(many[0]))}; most at ${name(most)}: ${percent(missed(most))}.` :
		`Nowhere are 1 % of the steps missed or lost; most at ${name(most)}: ${percent(missed(most))}.`,
		figure: percent(missed(most)), of: `missed or lost, ${name(most)}`, ...plain, why };
}

// ---- budgets, numbers, recordings

function budget(run: Run, g: Group): Answer | null {
	const b = g.cases.flatMap(c => budgetsOf(c).map(x => ({ c, x })))[0];
	if (!b)
		return null;
	const { whole, parts, rest } = b.x, most = [...parts].sort((p, q) => (q.middle ?? 0) - (p.middle ?? 0))[0];
	const all = base(run, [b.c]);
	return { text: `"${most.label}" takes the most: ${time(most.middle)}, ${percent(100 * (most.middle ?? 0) / (whole.middle || NaN))} of ${time(whole.middle)} (${whole.label}); ${time(rest)} are not explained.`,
		figure: time(most.middle), of: most.label, interval: `10 to 90 %: ${time(most.p10)} to ${time(most.p90)}`,
		sure: all.sure === 'busy' ? 'busy' : Math.abs(rest) < 0.15 * (whole.middle ?? 0) ? 'shown' : 'open',
		why: all.why || `The parts together explain ${percent(100 * b.x.sum / (whole.middle || NaN))} of the whole as it was measured from outside.` };
}

function numbersAnswer(run: Run, g: Group): Answer | null {
	const all = base(run, g.cases), one = g.cases.length === 1;
	const found = numbersOf(g, one);
	if (!found.length && g.cases.length > 1) {
		const same = g.cases[0].figures[0];
		return same ? { text: `All ${g.cases.length} cases have the same: ${same.label} ${quantity(same.value, same.unit)}.`, figure: quantity(same.value, same.unit), of: same.label,
			interval: '', sure: all.sure === 'busy' ? 'busy' : 'plain', why: all.why || 'It was counted.' } : null;
	}
	if (!found.length)
		return null;
	const f = found[0], known = g.cases.map(c => ({ name: one ? '' : g.labels.get(c)!, v: valueOf(c, f.name) })).filter(k => Number.isFinite(k.v));
	const rest = one ? found.slice(1, 3).map(x => `${x.label} ${quantity(valueOf(g.cases[0], x.name), x.unit)}`) : [];
	const by = [...known].sort((a, b) => a.v - b.v), low = by[0], high = by[by.length - 1];
	const text = one ? `${sentence(f.label)}: ${quantity(low.v, f.unit)}${rest.length ? '; ' + rest.join('; ') : ''}.` : known.length <= 4 ?
		`${sentence(f.label)}: ${list(known.map(k => `${k.name} ${quantity(k.v, f.unit)}`))}.` :
		`${sentence(f.label)}: from ${quantity(low.v, f.unit)} (${low.name}) to ${quantity(high.v, f.unit)} (${high.name}).`;
	return { text, figure: quantity(one ? low.v : high.v, f.unit), of: one ? f.label : `${f.label}, ${high.name}`, interval: '',
		sure: all.sure === 'busy' ? 'busy' : 'plain', why: all.why || 'Single figures of this run: it has no interval for them.' };
}

function recording(c: Case): Answer {
	const l = latencyNamed(c, 't_lat'), gap = latencyNamed(c, 'gap'), lost = valueOf(c, 'lost');
	const order = valueOf(c, 'reordered'), counted = valueOf(c, 'samples');
	const parts = [
		l ? `half of the samples came within ${time(l.p50)} of their origin, 99 % within ${time(l.p99)}` : '',
		gap ? `${time(gap.p50)} apart (median; longest gap ${time(gap.max)})` : '',
		Number.isFinite(lost) ? (lost === 1 ? 'one sequence number is missing' : `${lost ? quantity(lost, '') : 'no'} sequence numbers are missing`) + (order > 0 ? `, ${quantity(order, '')} came out of order` : '') : '',
	].filter(t => t);
	const curve = c.curves.find(k => k.label.startsWith('one-way delay, highest')) ?? c.curves[0];
	if (!parts.length && curve)
		return { text: `${sentence(curve.label)} went from ${quantity(curve.min, curve.unit)} to ${quantity(curve.max, curve.unit)}, ${quantity(curve.mean, curve.unit)} on average.`,
			figure: quantity(curve.max, curve.unit), of: curve.label, interval: '', sure: 'plain', why: `${curve.samples} values of the recording.` };
	const shown = l ?? gap;
	return { text: sentence(parts.join('; ')) + '.', figure: shown ? time(shown.p50) : quantity(counted, ''), of: shown ? `median, ${shown.label}` : 'samples', interval: shown ? interval(shown) : '',
		sure: 'plain', why: `What was recorded: ${quantity(counted, '')} samples. Clocks of two hosts may differ, and a recording does not tell by how much.` };
}

// ---- which sentence

const ASKS_MISSED = /\bmiss|\blost\b|hold .* up|bottleneck|up to which rate|made up/i;
const ASKS_KNEE = /from which|up to which size/i;

/** A sentence that cannot be decided says what was measured, and no more. */
export function answerOf(section: Section, run: Run): Answer | null {
	const a = plainAnswer(section, run);
	return a && a.sure === 'busy' ? { ...a, text: `In this run: ${a.text.replace(/^[A-Z](?=[a-z ])/, first => first.toLowerCase())}` } : a;
}

function plainAnswer(section: Section, run: Run): Answer | null {
	const g = section.groups.find(x => x.latencies.length) ?? section.groups[0], asked = section.question;
	if (['recording', 'stats'].includes(g.kind))
		return recording(g.cases[0]);
	if (isVirtual(g.cases[0]))
		return virtualAnswer(g);
	if (/where does the time/i.test(asked) || !g.latencies.length) {
		const b = budget(run, g);
		if (b)
			return b;
	}
	const name = g.latencies[0];
	if (ASKS_MISSED.test(asked) && !/what gets lost/.test(asked)) {
		const m = missedOf(run, g);
		if (m)
			return m;
	}
	if (!name)
		return numbersAnswer(run, g);
	if (g.x && !g.y) {
		if (ASKS_KNEE.test(asked)) {
			const k = knee(run, g, name);
			if (k)
				return k;
		}
		const lines = section.groups.filter(o => o.x?.key === g.x!.key && !o.y && o.latencies.length).flatMap(o => o.lines.map(line => ({
			line, latency: o === g ? name : o.latencies[0], name: [section.groups.length > 1 ? kindName(o.kind) : '', line.label].filter(t => t).join(', ') })));
		const known = lines.filter(l => withLatency(l.line.cases, l.latency).length);
		return (known.length > 1 ? crossing(run, g, known) : null) ?? growth(run, g, known[0]?.line ?? g.lines[0], name) ?? numbersAnswer(run, g);
	}
	if (g.y) {
		const s = surface(run, g, name);
		if (s)
			return s;
	}
	const entries = withLatency(g.cases, name).map(e => ({ name: g.labels.get(e.c)!, ...e }));
	if (entries.length === 1)
		return single(run, entries[0], g.cases.length > 1 ? entries[0].name : '');
	if (entries.length)
		return fastest(run, entries, '');
	return numbersAnswer(run, g);
}

/** What a kind of benchmark is called beside another one. */
export function kindName(kind: string): string {
	return kind === 'program' ? 'the program' : kind === 'hca' ? 'own measurement' : kind;
}

/** Does a case have anything that is drawn? */
export function isEmpty(c: Case): boolean {
	return !latenciesOf(c).length && !c.figures.length && !c.curves.length;
}
