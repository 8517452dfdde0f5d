// SPDX-License-Identifier: BSD-2-Clause
// The configuration as it was written; a changed text can be checked, with what is wrong at its
// lines, applied and saved as a copy. A reload takes the file of the gateway.
import { get, post, Refused } from './api';
import { confirm, note, told } from './dialog';
import { byId, download, h, setText } from './components/dom';
import { icon } from './components/icons';
import { model } from './model';

interface Problem { level: string; file: string; line: number; key?: string; message: string }

let file = '';
let loaded = '';
let revision = ''; // of `loaded`
let known = '';
let visible = false;
let applying = false;
let problems: Problem[] = [];

const area = (): HTMLTextAreaElement => byId<HTMLTextAreaElement>('config-text');

/** Numbers of lines, and a shape at those where something is wrong. */
function drawGutter(): void {
	const n = area().value.split('\n').length;
	const at = new Map<number, Problem>();
	for (const p of problems)
		if (p.file === file && (!at.has(p.line) || p.level === 'error'))
			at.set(p.line, p);
	byId('config-gutter').replaceChildren(...Array.from({ length: n }, (_, i) => {
		const p = at.get(i + 1);
		return h('span', { class: p ? p.level : '', title: p?.message ?? '' }, p ? '▲ ' : '', String(i + 1));
	}));
	area().rows = n + 1;
}

function goTo(line: number): void {
	const e = area(), all = e.value.split('\n');
	const from = all.slice(0, line - 1).reduce((t, l) => t + l.length + 1, 0);
	e.focus({ preventScroll: true });
	e.setSelectionRange(from, from + (all[line - 1] ?? '').length);
	byId('config-gutter').children[line - 1]?.scrollIntoView({ block: 'center' });
}

function drawProblems(): void {
	byId('config-problems').replaceChildren(...problems.map(p => {
		const here = p.file === file;
		const inside = [icon('warn', p.level === 'error' ? 'bad' : 'held'),
			h('span', { class: 'where' }, here ? `line ${p.line}` : `${p.file}:${p.line}`),
			h('span', { class: 'what' }, h('b', {}, p.level), p.key ? ` ${p.key}: ` : ' ', p.message)];
		return h('li', {}, here ? h('button', { type: 'button', class: 'plain', click: () => goTo(p.line) }, ...inside) :
			h('div', {}, ...inside));
	}));
	drawGutter();
}

function say(text: string, tone: 'good' | 'bad' | '' = ''): void {
	const e = byId('config-result');
	e.className = tone;
	e.replaceChildren(...(tone ? [icon(tone === 'good' ? 'run' : 'warn', tone)] : []), text);
}

function edited(): void {
	const changed = area().value !== loaded;
	byId('config-changed').hidden = !changed;
	byId<HTMLButtonElement>('config-revert').disabled = !changed;
	byId<HTMLButtonElement>('config-apply').disabled = !changed;
}

async function fetchText(): Promise<void> {
	try {
		const answer = await get<{ file: string; text: string; given: boolean; revision: string }>('/config/text');
		const untouched = area().value === loaded;
		file = answer.file;
		revision = answer.revision;
		loaded = answer.text.replace(/\r\n?/g, '\n'); // as the field has it
		setText(byId('config-file'), file);
		byId('config-given').hidden = !answer.given;
		if (untouched && area().value !== loaded) {
			area().value = loaded;
			problems = [];
			drawProblems();
			say('');
		}
		edited();
	} catch (e) {
		if (e instanceof Refused)
			say(told(e), 'bad');
	}
}

function show(list: Problem[], good: boolean, where: string): void {
	problems = list;
	drawProblems();
	const errors = list.filter(p => p.level === 'error').length, warnings = list.length - errors;
	const words = [errors ? `${errors} error${errors > 1 ? 's' : ''}` : '', warnings ? `${warnings} warning${warnings > 1 ? 's' : ''}` : ''];
	say(good ? `${where} is good` + (warnings ? `, with ${words[1]}.` : '.') :
		`${where} has ${words.filter(Boolean).join(' and ')}.`, good ? 'good' : 'bad');
}

/** True: it is good. */
async function check(text = area().value): Promise<boolean> {
	try {
		const answer = await post<{ good: boolean; problems: Problem[] }>('/check', { text });
		show(answer.problems, answer.good, 'This text');
		return answer.good;
	} catch (e) {
		say(told(e), 'bad');
		return false;
	}
}

/** "FILE:LINE: MESSAGE" */
function parse(text: string): Problem {
	const m = /^(.*?):(\d+): (.*)$/s.exec(text);
	return { level: 'error', file: m?.[1] ?? '', line: Number(m?.[2] ?? 0), message: m?.[3] ?? text };
}

function sayChanged(): void {
	say('The configuration of the gateway has changed meanwhile: Revert shows it as it is now, Apply replaces it.', 'bad');
}

/** The gateway takes another configuration; `where` names it if it has errors. */
async function take(body: { text: string; revision: string } | undefined, done: string, where: string): Promise<void> {
	try {
		const r = await post('/reload', body);
		const parts = ['started', 'stopped', 'kept', 'failed'].filter(k => r[k]?.length).map(k => `${r[k].length} ${k}`);
		note(`${done}: ${parts.join(', ')}.`, r.failed?.length > 0);
		if (body) {
			loaded = body.text; // what was typed meanwhile is a change
			edited();
		}
		if (r.failed?.length)
			say(`Failed to start: ${r.failed.join(', ')}.`, 'bad');
		known = '';
		model.hurry();
	} catch (e) {
		if (e instanceof Refused && e.body?.errors) {
			show(e.body.errors.map(parse), false, where);
		} else if (e instanceof Refused && e.status === 409) {
			await fetchText();
			sayChanged();
		} else
			say(told(e), 'bad');
	}
}

/** False, with a message: somebody else has changed it since this page asked for it. */
async function isPresent(): Promise<boolean> {
	const before = loaded;
	await fetchText();
	if (loaded === before)
		return true;
	sayChanged();
	return false;
}

async function apply(): Promise<void> {
	const text = area().value;
	let from = ''; // a later one may be shown before the answer
	if (applying)
		return; // the button keeps the focus, so it is not disabled
	applying = true;
	if (await isPresent() && (from = revision) && await check(text) && await confirm('Apply this text?',
		'Nodes and paths that are other in it stop and start; what is the same goes on. ' +
		`The file ${file} is not written: a restart, or a reload of it, takes what it says.`, 'Apply'))
		await take({ text, revision: from }, 'Applied', 'This text');
	applying = false;
}

async function reload(): Promise<void> {
	if (await confirm(`Reload ${file}?`,
		'The gateway reads its file again. Nodes and paths that are other there stop and start; what is the same goes on. ' +
		'With an error in the file nothing changes.' +
		(area().value !== loaded ? ' Your changes on this page are not in the file.' : ''), 'Reload'))
		await take(undefined, 'Reloaded', 'The file');
}

function update(): void {
	const now = `${model.shape}/${model.status?.time_started}`;
	if (!visible || model.link !== 'connected' || known === now)
		return;
	known = now;
	void fetchText();
}

export function setVisible(on: boolean): void {
	visible = on;
	update();
	if (on)
		drawGutter();
}

export function start(): void {
	area().addEventListener('input', () => {
		problems = [];
		drawProblems();
		say('');
		edited();
	});
	// Tab indents; Escape and then Tab leaves the text.
	let leaves = false;
	area().addEventListener('keydown', e => {
		if (e.key === 'Tab' && !leaves && !e.shiftKey) {
			e.preventDefault();
			document.execCommand('insertText', false, '\t');
		}
		leaves = e.key === 'Escape';
	});
	byId('config-check').addEventListener('click', () => void check());
	byId('config-apply').addEventListener('click', () => void apply());
	byId('config-reload').addEventListener('click', () => void reload());
	byId('config-save').addEventListener('click', () =>
		download(file.split('/').pop() || 'busbar.conf', 'text/plain', area().value));
	byId('config-revert').addEventListener('click', () => {
		area().value = loaded;
		problems = [];
		drawProblems();
		say('');
		edited();
	});
	model.listen(update);
}
