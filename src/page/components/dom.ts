// SPDX-License-Identifier: BSD-2-Clause
// Elements, and figures as texts.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | null | undefined>;

function fill(e: Element, attributes: Attributes, children: Child[]): void {
	for (const [name, value] of Object.entries(attributes)) {
		if (typeof value === 'function')
			e.addEventListener(name, value);
		else if (value === true)
			e.setAttribute(name, '');
		else if (value !== false && value !== null && value !== undefined)
			e.setAttribute(name, String(value));
	}
	for (const c of children)
		if (c)
			e.append(c);
}

export function h<K extends keyof HTMLElementTagNameMap>(
	tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
	const e = document.createElement(tag);
	fill(e, attributes, children);
	return e;
}

export function s<K extends keyof SVGElementTagNameMap>(
	tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
	const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
	fill(e, attributes, children);
	return e;
}

/** Sets a text only where it differs: readers of screens are told of changes. */
export function setText(e: Node, text: string): void {
	if (e.textContent !== text)
		e.textContent = text;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
	return document.getElementById(id) as T;
}

/** Three digits, with thin spaces between thousands: "12 300", "1.25", "0". */
export function number(x: number): string {
	const a = Math.abs(x);
	if (!Number.isFinite(x))
		return '–';
	if (a === 0)
		return '0';
	const digits = a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3;
	const text = x.toFixed(digits);
	return digits ? text.replace(/\.?0+$/, '') : text.replace(/\B(?=(\d{3})+$)/g, '\u2009');
}

/** A count that may be large: "1 234 567". */
export function count(x: number): string {
	return Math.round(x).toString().replace(/\B(?=(\d{3})+$)/g, '\u2009');
}

/** Samples a second: "999.6/s" is "1 000/s". */
export function rate(x: number | null): string {
	if (x === null || !Number.isFinite(x))
		return '–';
	if (x >= 1e6)
		return number(x / 1e6) + '\u202fM/s';
	return (x >= 10 ? count(x) : number(x)) + '/s';
}

export function seconds(x: number): string {
	const a = Math.abs(x);
	if (!Number.isFinite(x))
		return '–';
	if (a === 0)
		return '0\u202fs';
	if (a < 1e-6)
		return number(x * 1e9) + '\u202fns';
	if (a < 1e-3)
		return number(x * 1e6) + '\u202fµs';
	if (a < 1)
		return number(x * 1e3) + '\u202fms';
	return number(x) + '\u202fs';
}

export function duration(s: number): string {
	const d = Math.floor(s / 86400), hours = Math.floor(s / 3600) % 24;
	const m = Math.floor(s / 60) % 60;
	if (d)
		return `${d} d ${hours} h`;
	if (hours)
		return `${hours} h ${m} min`;
	return m ? `${m} min ${Math.floor(s) % 60} s` : `${Math.floor(s)} s`;
}

/** A measured value, of constant width where it moves. */
export function value(x: number): string {
	const a = Math.abs(x);
	if (!Number.isFinite(x))
		return '–';
	if (Number.isInteger(x) && a < 1e7)
		return String(x).replace('-', '−');
	const text = a >= 1e6 || a < 1e-4 ? x.toExponential(3) : x.toFixed(
		Math.max(0, Math.min(6, 4 - Math.floor(Math.log10(a)))));
	return text.replace('-', '−');
}

export function clockTime(s: number): string {
	const d = new Date(s * 1000);
	const two = (n: number): string => String(n).padStart(2, '0');
	return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.` +
		String(d.getMilliseconds()).padStart(3, '0');
}

export function download(name: string, type: string, text: string): void {
	const url = URL.createObjectURL(new Blob([text], { type }));
	const a = h('a', { href: url, download: name });
	a.click();
	setTimeout(() => URL.revokeObjectURL(url), 1000);
}
