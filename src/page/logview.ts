// SPDX-License-Identifier: BSD-2-Clause
// The last lines of the gateway's log.
import { get } from './api';
import { byId, clockTime, download, h, setText } from './components/dom';
import { icon } from './components/icons';
import { model } from './model';

interface LogLine { number: number; time: number; level: string; room: string; message: string }

const MOST = 2000;
const LEVELS = ['error', 'warn', 'info', 'debug', 'trace'];
const SHAPES: Record<string, [string, string]> = { error: ['warn', 'bad'], warn: ['warn', 'held'] };

let lines: LogLine[] = [];
let rows: HTMLElement[] = [];
let last = 0;
let startedAt = 0;
let visible = false;
let seen = 0;
let asking = false;
let unanswered = 0;

function fits(l: LogLine): boolean {
	const most = LEVELS.indexOf(byId<HTMLSelectElement>('log-level').value);
	const word = byId<HTMLInputElement>('log-search').value.trim().toLowerCase();
	return LEVELS.indexOf(l.level) <= most &&
		(!word || `${l.room} ${l.message}`.toLowerCase().includes(word));
}

function row(l: LogLine): HTMLElement {
	const [shape, tone] = SHAPES[l.level] ?? ['', ''];
	return h('div', { class: `line ${l.level}`, role: 'row', hidden: !fits(l) },
		h('span', { class: 'time', role: 'cell' }, clockTime(l.time)),
		h('span', { class: 'level', role: 'cell' }, shape ? icon(shape, tone) : null, l.level),
		h('span', { class: 'room', role: 'cell', title: l.room }, l.room.replace(/^gateway\//, '')),
		h('span', { class: 'message', role: 'cell' }, l.message));
}

function follow(): void {
	const frame = byId('log-lines');
	if (byId<HTMLInputElement>('log-follow').checked)
		frame.scrollTop = frame.scrollHeight;
}

function tell(): void {
	const shown = rows.filter(r => !r.hidden).length;
	byId('log-empty').hidden = shown > 0;
	setText(byId('log-empty'), lines.length ? 'No line fits.' : 'The log is empty.');
	setText(byId('log-count'), lines.length ? `${shown} of ${lines.length} lines` : '');
	if (visible)
		seen = last;
	const bad = lines.filter(l => l.number > seen && l.level === 'error').length;
	const badge = byId('log-badge');
	badge.hidden = bad === 0;
	setText(badge, String(bad));
	badge.setAttribute('aria-label', `${bad} new errors`);
}

function filter(): void {
	lines.forEach((l, i) => rows[i].hidden = !fits(l));
	tell();
	follow();
}

function restart(): void {
	lines = [];
	rows = [];
	last = seen = 0;
	byId('log-lines').replaceChildren();
}

async function update(): Promise<void> {
	if (asking || model.link !== 'connected' || (!visible && unanswered++ % 4))
		return;
	const begun = model.status?.time_started ?? 0;
	if (startedAt && begun < startedAt - 1)
		restart();
	startedAt = begun;
	asking = true;
	try {
		const answer = await get<{ last: number; lines: LogLine[] }>(`/log?after=${last}`);
		const first = last === 0;
		if (answer.last < last)
			restart();
		for (const l of answer.lines) {
			lines.push(l);
			rows.push(row(l));
		}
		byId('log-lines').append(...rows.slice(rows.length - answer.lines.length));
		while (lines.length > MOST) {
			lines.shift();
			rows.shift()!.remove();
		}
		last = answer.last;
		// What was there before the page was opened is no news.
		if (first)
			seen = last;
		if (answer.lines.length || first) {
			tell();
			follow();
		}
	} catch { /* the state of the connection is told elsewhere */ }
	asking = false;
}

export function setVisible(on: boolean): void {
	visible = on;
	if (!on)
		return;
	unanswered = 0;
	void update();
	tell();
	follow();
}

export function start(): void {
	byId('log-level').addEventListener('change', filter);
	byId('log-search').addEventListener('input', filter);
	byId('log-follow').addEventListener('change', follow);
	// Who scrolls up reads; who comes back to the end follows.
	byId('log-lines').addEventListener('scroll', () => {
		const f = byId('log-lines');
		byId<HTMLInputElement>('log-follow').checked = f.scrollTop + f.clientHeight > f.scrollHeight - 30;
	});
	byId('log-save').addEventListener('click', () => download('busbar-log.txt', 'text/plain',
		lines.filter(fits).map(l => `${new Date(l.time * 1000).toISOString()} ${l.level.padEnd(5)} ${l.room}: ${l.message}\n`).join('')));
	model.listen(() => void update());
}
