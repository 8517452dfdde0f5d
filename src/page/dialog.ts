// SPDX-License-Identifier: BSD-2-Clause
// Questions before what interrupts data, short notes after it, and the question for a token.
import { Refused, setToken, token, Unreachable } from './api';
import { byId, h, setText } from './components/dom';
import { icon } from './components/icons';
import { model } from './model';

/** True: yes. */
export function confirm(title: string, text: string, yes: string): Promise<boolean> {
	return new Promise(done => {
		const d = h('dialog', { class: 'question', 'aria-labelledby': 'question-title' },
			h('h2', { id: 'question-title' }, title), h('p', {}, text),
			h('div', { class: 'buttons' },
				h('button', { type: 'button', click: () => d.close('') }, 'Cancel'),
				h('button', { type: 'button', class: 'strong', 'data-yes': true, click: () => d.close('yes') }, yes)));
		d.addEventListener('close', () => {
			d.remove();
			done(d.returnValue === 'yes');
		});
		document.body.append(d);
		d.showModal();
	});
}

export function note(text: string, bad = false): void {
	const e = h('div', { class: bad ? 'note bad' : 'note' }, icon(bad ? 'warn' : 'run'),
		h('span', {}, text),
		h('button', { type: 'button', class: 'plain', 'aria-label': 'Close', click: () => e.remove() }, icon('close')));
	byId('notes').append(e);
	if (!bad)
		setTimeout(() => e.remove(), 5000);
	while (byId('notes').childElementCount > 3)
		byId('notes').firstElementChild!.remove();
}

/** What went wrong, for a person. */
export function told(e: unknown): string {
	if (e instanceof Unreachable)
		return 'The gateway does not answer.';
	if (e instanceof Refused)
		return e.message.charAt(0).toUpperCase() + e.message.slice(1) + '.';
	return String(e);
}

let asking = false;

export function askToken(): void {
	const d = byId<HTMLDialogElement>('token'), input = byId<HTMLInputElement>('token-text');
	if (asking)
		return;
	asking = true;
	input.value = '';
	setText(byId('token-why'), model.reason === '' || !token() ?
		'This gateway answers to those who show it a token.' : 'The gateway says: ' + model.reason + '.');
	d.showModal();
}

export function start(): void {
	const d = byId<HTMLDialogElement>('token'), input = byId<HTMLInputElement>('token-text');
	d.addEventListener('close', () => {
		asking = false;
		if (d.returnValue === 'use' && input.value.trim()) {
			setToken(input.value.trim());
			model.hurry();
		}
		input.value = '';
	});
	byId('token-forget').addEventListener('click', () => {
		setToken('');
		d.close('');
		model.hurry();
	});
	byId('token-cancel').addEventListener('click', () => d.close(''));
	byId('key').addEventListener('click', askToken);
	let was = '';
	model.listen(() => {
		if (model.link === 'refused' && was !== 'refused')
			askToken();
		if (model.link === 'connected' && asking && was === 'refused')
			d.close('');
		was = model.link;
	});
}
