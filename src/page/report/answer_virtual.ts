// SPDX-License-Identifier: BSD-2-Clause
// The answer of cases in virtual time (kind "odp"): what the whole took, and whether a request was lost or sent
// many times. A median over the requests says nothing there: mostly one of them waits for all others.
import type { Answer } from './answer';
import { Case, Run, valueOf } from './data';
import { Group, Line, valueAt } from './groups';
import { quantity, sentence, times } from './words';

/** Kinds whose clock is virtual: nothing disturbs them. */
const VIRTUAL = new Set(['odp']);
/** Rows that a sentence still names one by one. */
const NAMED = 8;
/** Requests of which it says something how often each was sent. */
const MANY = 16;

export function isVirtual(c: Case): boolean {
	return VIRTUAL.has(c.kind);
}

export function allVirtual(run: Run): boolean {
	return run.cases.length > 0 && run.cases.every(isVirtual);
}

function took(c: Case): string {
	return quantity(valueOf(c, 'time'), 'ms');
}

/** How often each request was sent. */
function sent(c: Case): number {
	return valueOf(c, 'requests') / Number(c.parameters.num_ops || NaN);
}

function what(c: Case): string {
	const often = Number(c.parameters.num_ops) < MANY ? 1 : sent(c);
	return valueOf(c, 'timeouts') > 0 ? ', a request waits for a timeout' : often >= 2 ? `, each request is sent ${times(often)}` : '';
}

function place(g: Group, c: Case): string {
	return quantity(valueAt(g.x, c), g.x!.unit);
}

/** Where on the axis a request waits for a timeout. */
function windowOf(g: Group, line: Line): string {
	const lost = line.cases.filter(c => valueOf(c, 'timeouts') > 0), rest = line.cases.filter(c => !lost.includes(c));
	const at = lost.length > 1 ? `from ${place(g, lost[0])} to ${place(g, lost[lost.length - 1])}` : lost.length ? `at ${place(g, lost[0])}` : 'nowhere';
	const worst = lost.map(c => valueOf(c, 'time')), least = rest.map(c => valueOf(c, 'time'));
	return `${line.label ? `${line.label} ` : ''}${at}${lost.length ? `, which takes up to ${quantity(Math.max(...worst), 'ms')}` : ''}` +
		(lost.length && rest.length ? `, otherwise ${quantity(Math.max(...least), 'ms')} at most` : '');
}

function growth(g: Group, line: Line): string {
	const a = line.cases[0], b = line.cases[line.cases.length - 1], ratio = valueOf(b, 'time') / valueOf(a, 'time');
	const packets = Math.abs(sent(b) - sent(a)) < 0.05 ? '' : `, and each request is sent ${times(sent(b))} in place of ${times(sent(a))}`;
	return `${line.label ? `${line.label}: the` : 'the'} time ${ratio >= 1 ? 'grows' : 'falls'} from ${took(a)} to ${took(b)} while the ${g.x!.label} ${g.x!.plural ? 'grow' : 'grows'} from ${place(g, a)} to ${place(g, b)}${packets}`;
}

export function virtualAnswer(g: Group): Answer | null {
	const known = g.cases.filter(c => Number.isFinite(valueOf(c, 'time'))).sort((a, b) => valueOf(b, 'time') - valueOf(a, 'time'));
	if (!known.length)
		return null;
	const name = (c: Case): string => g.labels.get(c)!, worst = known[0], best = known[known.length - 1];
	const text = known.length === 1 ? `it takes ${took(worst)}${what(worst)}` :
		g.x && known.some(c => valueOf(c, 'timeouts') > 0) ? `a request waits for a timeout: ${g.lines.map(l => windowOf(g, l)).join('; ')}` :
			g.x ? g.lines.map(l => growth(g, l)).join('; ') :
				known.length <= NAMED ? known.map(c => `${name(c)}: ${took(c)}${what(c)}`).join('; ') :
					`from ${took(best)} (${name(best)}) to ${took(worst)} (${name(worst)}${what(worst)})`;
	return { text: `${g.x || known.length === 1 ? sentence(text) : text}.`, figure: took(worst), of: `first post to last completion${known.length > 1 ? `, ${name(worst)}` : ''}`, interval: '',
		sure: 'plain', why: 'By a model of the adapter, in virtual time: the same on every machine.' };
}
