// SPDX-License-Identifier: BSD-2-Clause
// What busbar trace found: the flows as a table, and for each with details a sentence, the evidence, what to do and
// the diagram of its packets (ladder.ts).
import { h } from '../components/dom';
import type { Answer } from './answer';
import { ladderFigure, Packet } from './ladder';
import { fold } from './parts';
import { Part } from './subnet';
import { table } from './tables';
import { bytes, quantity, sentence, time } from './words';

export interface TraceFlow {
	number: number; requester: string; responder: string; queue_pairs: string; requests: number; resends: number; timeouts: number; rnr_naks: number;
	sequence_naks: number; lost_ns: number; verdict: string; bad: boolean; detailed: boolean;
	sentence?: string; lines?: string[]; advice?: string; causes?: { cause: string; packets: number; lost_ns: number }[];
	wire_bytes?: number; good_bytes?: number; kept?: boolean; ladder?: { ending: boolean; packets: Packet[] } | null;
}

export interface Trace { file: string; head: string; flows: TraceFlow[]; more: number; whole: string[] }

function answer(text: string, figure: string, of: string): Answer {
	return { text, figure, of, interval: '', sure: 'plain', why: '' };
}

function lines(all: string[]): HTMLElement | null {
	return all.length ? h('ul', { class: 'dots' }, ...all.map(t => h('li', {}, t))) : null;
}

function flowTable(t: Trace): HTMLElement | null {
	const n = (v: number): string => quantity(v, '');
	return t.flows.length ? table(['flow', 'requester', 'responder', 'queue pairs', 'requests', 'resends', 'timeouts', 'RNR NAKs', 'sequence NAKs', 'time lost', 'verdict'],
		t.flows.map(f => [String(f.number), f.requester, f.responder, f.queue_pairs, n(f.requests), n(f.resends), n(f.timeouts), n(f.rnr_naks), n(f.sequence_naks), time(f.lost_ns),
			f.detailed ? h('a', { href: `#flow${f.number}`, class: f.bad ? 'bad' : '' }, f.verdict) : f.verdict]), 'Flows') : null;
}

function all(t: Trace): Part {
	const bad = t.flows.filter(f => f.bad), kinds = [...new Set(bad.map(f => f.verdict))], lost = t.flows.reduce((a, f) => a + f.lost_ns, 0);
	const text = bad.length ? `${bad.length} of ${t.flows.length} ${t.flows.length === 1 ? 'flow' : 'flows'}: ${kinds.join(', ')}.` : 'No pitfall was found.';
	return { question: 'What went wrong on RDMA connections?', answer: answer(`${text} ${sentence(t.head)}.`, time(lost), 'time lost'),
		make: () => [flowTable(t), t.more ? h('p', { class: 'muted' }, `${t.more} more flows with findings: --flow N shows one.`) : null] };
}

function diagram(f: TraceFlow): HTMLElement | null {
	const l = f.ladder;
	if (!l)
		return f.kept ? null : h('p', { class: 'muted' }, `The packets of this flow were not kept: the first 1024 flows have a diagram. --ladder ${f.number} draws this one.`);
	const ends: [string, string] = [`${f.requester}, ${f.queue_pairs.split(' > ')[0]}`, `${f.responder}, ${f.queue_pairs.split(' > ')[1] ?? ''}`];
	return ladderFigure(`Packets of flow ${f.number}`, l.packets, { roles: ['requester', 'responder'], ends },
		`Packets ${l.ending ? 'around the first stall' : 'at the end of the capture'}: at the left the time in seconds, at the right the number in the capture. ` +
		'Shaded: a pending period. A cross: the packet got lost. Where the lines are broken, no packet came for the time that is written there.');
}

function flowPart(f: TraceFlow): Part {
	return {
		question: `Flow ${f.number}: ${f.verdict}`, answer: answer(f.sentence ?? '', time(f.lost_ns), 'time lost'),
		make: () => [lines(f.lines ?? []), f.advice ? h('p', {}, h('strong', {}, 'What to do: '), f.advice) : null, diagram(f),
			f.causes?.length ? fold('Time lost by cause', () => [table(['cause', 'packets sent again', 'time lost'], f.causes!.map(c => [c.cause, quantity(c.packets, ''), time(c.lost_ns)]), 'Causes'),
				h('p', {}, `${bytes(f.wire_bytes ?? 0)} on the wire, ${bytes(f.good_bytes ?? 0)} of payload that count once.`)]) : null],
	};
}

export function traceParts(t: Trace): { p: Part; id: string }[] {
	return [{ p: all(t), id: 'flows' }, ...t.flows.filter(f => f.detailed).map(f => ({ p: flowPart(f), id: `flow${f.number}` })),
		...t.whole.length ? [{ p: { question: 'The capture as a whole', answer: answer(`${sentence(t.whole[0])}.`, String(t.whole.length), t.whole.length > 1 ? 'remarks' : 'remark'), make: () => [lines(t.whole.slice(1))] }, id: 'whole' }] : []];
}
