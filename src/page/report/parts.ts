// SPDX-License-Identifier: BSD-2-Clause
// Pieces that sections are made of: folds whose contents are made when they are opened, and figures with
// a choice of what they show.
import { h } from '../components/dom';
import { Chart, Plot } from './plot';

export function fold(name: string, make: () => (Node | null)[], open = false): HTMLDetailsElement {
	const e = h('details', { class: 'fold', open }, h('summary', {}, name)), body = h('div', { class: 'body' });
	let made = false;
	const fill = (): void => {
		if (made || !e.open)
			return;
		made = true;
		body.append(...make().filter((n): n is Node => !!n));
	};
	e.append(body);
	e.addEventListener('toggle', fill);
	fill();
	return e;
}

export function figure(plot: Plot | null, ...more: (Node | null)[]): HTMLElement | null {
	if (!plot)
		return null;
	return h('figure', {}, h('figcaption', {}, plot.what), new Chart(plot).element, ...more);
}

export interface Choice { label: string; options: string[]; initial?: number }

/** A figure that is made anew for each choice; choices with one option are not shown. */
export function chooser(choices: Choice[], make: (chosen: number[]) => Node | null): HTMLElement {
	const chosen = choices.map(c => Math.max(0, Math.min(c.options.length - 1, c.initial ?? 0))), place = h('div', {});
	const show = (): void => place.replaceChildren(make(chosen) ?? h('p', { class: 'muted' }, 'No case has that.'));
	const selects = choices.map((c, i) => c.options.length < 2 ? null : h('label', {}, `${c.label} `,
		h('select', { change: (e: Event) => {
			chosen[i] = (e.target as HTMLSelectElement).selectedIndex;
			show();
		} }, ...c.options.map((o, k) => h('option', { selected: k === chosen[i] }, o)))));
	show();
	return h('div', { class: 'chooser' }, selects.some(x => x) ? h('div', { class: 'choices' }, ...selects) : null, place);
}
