// SPDX-License-Identifier: BSD-2-Clause
// What is known of the node or path that was chosen in the graph, and its commands.
import { post } from './api';
import { confirm, note, told } from './dialog';
import { byId, count, h, rate, seconds, setText } from './components/dom';
import * as graph from './graph';
import { icon, look } from './components/icons';
import { CAUSES, GatewayNode, GatewayPath, model } from './model';
import * as picker from './picker';

type Verb = 'start' | 'stop' | 'pause' | 'resume' | 'restart';

const VERBS: Record<Verb, { text: string; shape: string }> = {
	start: { text: 'Start', shape: 'play' }, resume: { text: 'Resume', shape: 'play' },
	pause: { text: 'Pause', shape: 'hold' }, stop: { text: 'Stop', shape: 'stop' },
	restart: { text: 'Restart', shape: 'again' },
};

let chosen: graph.Choice | null = null;
let drawn = '';
let opener: Element | null = null;

function verbsOf(kind: 'node' | 'path', state: string): Verb[] {
	if (state === 'disabled')
		return [];
	if (state === 'paused')
		return ['resume', 'stop', 'restart'];
	if (['started', 'connected', 'pending-connect', 'running', 'waiting'].includes(state))
		return ['pause', 'stop', 'restart'];
	return kind === 'node' || state !== 'ended' ? ['start'] : [];
}

/** What an interruption means here. */
function consequence(kind: 'node' | 'path', id: string, verb: Verb): string {
	const f = kind === 'node' ? model.nodeFigures.get(id) : null;
	const moving = kind === 'node' ? (f?.received ?? 0) + (f?.sent ?? 0) :
		model.pathFigures.get(id)?.samples ?? 0;
	const now = moving > 0 ? `Now ${rate(moving)} pass here. ` : '';
	const left = verb === 'restart' ? 'Until it runs again, samples that are written to it are lost and counted.' :
		kind === 'node' ? `Paths do not read it, and what they would write to it is lost and counted, until you ${verb === 'pause' ? 'resume' : 'start'} it.` :
			`It forwards nothing, and what comes in is discarded and counted, until you ${verb === 'pause' ? 'resume' : 'start'} it.`;
	return now + left;
}

async function command(kind: 'node' | 'path', id: string, name: string, verb: Verb): Promise<void> {
	const interrupts = ['stop', 'pause', 'restart'].includes(verb);
	if (interrupts && !await confirm(`${VERBS[verb].text} ${kind} ${name}?`,
		consequence(kind, id, verb), VERBS[verb].text))
		return;
	try {
		const answer = await post(`/${kind}/${encodeURIComponent(id)}/${verb}`);
		const done = { start: 'started', stop: 'stopped', pause: 'paused', resume: 'resumed', restart: 'restarted' };
		note(answer?.unchanged ? `${name} was ${done[verb]} already.` : `${name} is ${done[verb]}.`);
	} catch (e) {
		note(`${VERBS[verb].text} ${name}: ${told(e)}`, true);
	}
	model.hurry();
}

function buttons(kind: 'node' | 'path', id: string, name: string, state: string): HTMLElement {
	return h('div', { class: 'buttons' }, ...verbsOf(kind, state).map(v =>
		h('button', { type: 'button', 'data-verb': v, click: () => void command(kind, id, name, v) },
			icon(VERBS[v].shape), VERBS[v].text)));
}

function table(id: string, rows: [string, string, boolean?][]): HTMLElement {
	return h('dl', { 'data-table': id }, ...rows.flatMap(([name, text, bad]) => [
		h('dt', {}, name), h('dd', { class: bad ? 'bad' : '' }, bad ? icon('warn', 'bad') : null, text)]));
}

function fillTable(e: HTMLElement, rows: [string, string, boolean?][]): void {
	if (e.childElementCount !== rows.length * 2 ||
		rows.some(([name], i) => e.children[2 * i].textContent !== name)) {
		e.replaceChildren(...table('', rows).children);
		return;
	}
	rows.forEach(([, text, bad], i) => {
		const dd = e.children[2 * i + 1];
		if (dd.textContent === text && dd.classList.contains('bad') === !!bad)
			return;
		dd.className = bad ? 'bad' : '';
		dd.replaceChildren(...(bad ? [icon('warn', 'bad')] : []), text);
	});
}

function nodeRows(n: GatewayNode): [string, string, boolean?][] {
	const f = model.nodeFigures.get(n.name), k = n.stats;
	const rows: [string, string, boolean?][] = [
		['Received', `${rate(f?.received ?? null)} · ${count(k.received)} in all`],
		['Sent', `${rate(f?.sent ?? null)} · ${count(k.sent)} in all`],
	];
	const causes: [string, number][] = [...Object.entries<number>(k.losses), ['lost', k.lost], ['missed', k.missed]];
	for (const [cause, n] of causes)
		if (n)
			rows.push([(CAUSES[cause] ?? cause).replace(/^./, c => c.toUpperCase()), `${count(n)} samples`,
				cause !== 'missed' && (f?.losses ?? 0) > 0 && f?.cause === CAUSES[cause]]);
	if (k.reordered)
		rows.push(['Out of order', count(k.reordered)]);
	const late = k.step_late;
	if (late?.count)
		rows.push(['Steps late', `${seconds(late.p50_us * 1e-6)} half, ${seconds(late.p99_us * 1e-6)} 99 %`]);
	for (const [name, value] of Object.entries<number>(k.figures ?? {}))
		if (value)
			rows.push([name.replace(/_/g, ' ').replace(/^./, c => c.toUpperCase()), count(value)]);
	const figures = { in_hooks: 'Hooks in', out_hooks: 'Hooks out' };
	for (const [key, text] of Object.entries(figures)) {
		const lost = k[key].failed + k[key].starved;
		if (lost)
			rows.push([text, `${count(lost)} lost`, true]);
	}
	return rows;
}

function pathRows(p: GatewayPath): [string, string, boolean?][] {
	const f = model.pathFigures.get(p.uuid), k = p.stats, l = k.latency;
	const rows: [string, string, boolean?][] = [
		['Forwarded', `${rate(f?.samples ?? null)} · ${count(k.samples)} in all`],
		['Lost', `${rate(f?.dropped ?? null)} · ${count(k.dropped)} in all`, (f?.dropped ?? 0) > 0],
	];
	if (k.queue_full)
		rows.push(['Queue full', `${count(k.queue_full)} samples`]);
	if (k.discarded)
		rows.push(['Discarded while paused', count(k.discarded)]);
	if (l.count)
		rows.push(['Latency, half below', seconds(l.p50_us * 1e-6)], ['90 of 100 below', seconds(l.p90_us * 1e-6)],
			['99 of 100 below', seconds(l.p99_us * 1e-6)], ['999 of 1000 below', seconds(l.p999_us * 1e-6)],
			['Longest', seconds(l.max_us * 1e-6)]);
	if (l.below_zero)
		rows.push(['Below zero', `${count(l.below_zero)}: the clocks differ`, true]);
	return rows;
}

function signalsPart(n: GatewayNode): HTMLElement[] {
	return (['in', 'out'] as const).filter(d => n[d].signals.length).map(d => {
		const keys = n[d].signals.map((_, i) => picker.key(n.name, d, i));
		const names = n[d].signals.slice(0, 6).map(picker.signalName).join(', ');
		const more = n[d].signals.length > 6 ? ` and ${n[d].signals.length - 6} more` : '';
		return h('div', { class: 'part' }, h('h3', {}, d === 'in' ? 'Signals that it reads' : 'Signals written to it'),
			h('p', {}, names + more),
			h('button', {
				type: 'button', click: () => {
					picker.showOnly(keys.slice(0, 8));
					location.hash = 'signals';
				},
			}, keys.length > 8 ? 'Plot the first 8' : 'Plot them'));
	});
}

function build(kind: 'node' | 'path', n: GatewayNode | GatewayPath): void {
	const id = kind === 'node' ? n.name : n.uuid, l = look(n.state);
	const frame = byId('detail-body');
	const hooks = kind === 'node' ? [] : (n as GatewayPath).hooks.map(x => x.type);
	frame.replaceChildren(
		h('h2', { title: n.name }, n.name),
		h('p', { class: 'state' }, icon(l.shape, l.tone), h('span', {}, l.text),
			h('span', { class: 'tag' }, kind === 'node' ? (n as GatewayNode).type : 'path')),
		buttons(kind, id, n.name, n.state),
		h('p', { class: 'status' }),
		table('figures', []));
	if (kind === 'node') {
		frame.append(...signalsPart(n as GatewayNode));
	} else {
		const p = n as GatewayPath;
		frame.append(h('div', { class: 'part' }, h('h3', {}, 'How'),
			h('p', {}, `${p.in.join(', ')} → ${p.out.join(', ') || 'no destination'}` +
				(p.in.length > 1 ? `; forwards when ${p.mode} of its sources have a sample` : '') +
				(hooks.length ? `; hooks: ${hooks.join(', ')}` : ''))));
	}
}

function update(): void {
	const panel = byId('detail');
	const n = !chosen ? undefined : chosen.kind === 'node' ? model.node(chosen.id) :
		model.paths.find(p => p.uuid === chosen!.id);
	if (!n || !chosen) {
		if (!panel.hidden && model.link === 'connected')
			close();
		return;
	}
	panel.hidden = false;
	const key = [chosen.kind, n.uuid, n.name, n.state, model.shape].join('\n');
	if (key !== drawn) {
		const verb = (document.activeElement as HTMLElement | null)?.dataset?.verb;
		drawn = key;
		build(chosen.kind, n);
		if (verb)
			byId('detail-body').querySelector<HTMLElement>('button')?.focus();
	}
	const status = byId('detail-body').querySelector('.status') as HTMLElement;
	setText(status, chosen.kind === 'node' ? (n as GatewayNode).status ?? '' : '');
	status.hidden = !status.textContent;
	fillTable(byId('detail-body').querySelector('dl')!, chosen.kind === 'node' ?
		nodeRows(n as GatewayNode) : pathRows(n as GatewayPath));
}

export function open(c: graph.Choice): void {
	if (chosen?.kind === c.kind && chosen.id === c.id) {
		close();
		return;
	}
	opener = document.activeElement;
	chosen = c;
	graph.choose(c);
	update();
	byId('detail-close').focus({ preventScroll: true });
	if (innerWidth < 900)
		byId('detail').scrollIntoView({ block: 'nearest' });
}

export function close(): void {
	chosen = null;
	drawn = '';
	byId('detail').hidden = true;
	graph.choose(null);
	if (opener instanceof SVGElement || opener instanceof HTMLElement)
		opener.focus();
}

export function start(): void {
	byId('detail-close').addEventListener('click', close);
	document.addEventListener('keydown', e => {
		if (e.key === 'Escape' && chosen && !document.querySelector('dialog[open]'))
			close();
	});
	model.listen(update);
}
