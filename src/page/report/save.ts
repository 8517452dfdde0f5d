// SPDX-License-Identifier: BSD-2-Clause
// A figure as a file: SVG with its own colours for light and dark, or PNG as the page shows it.
import { download, h, s } from '../components/dom';

/** How a figure's elements look, on the page and in files. */
export const FIGURE_STYLE = [
	'text{font:11.5px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;fill:var(--muted)}',
	'.axis,.row,.value{fill:var(--ink)}.title{font-weight:650;font-size:13px;fill:var(--ink)}',
	'.grid{stroke:var(--grid)}.base{stroke:var(--muted)}.bar,.dot{stroke:none}',
	'.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.thin{fill:none;stroke-width:1.3}.dash{stroke-dasharray:5 3}',
	'.band{stroke:none;fill-opacity:.22}.fill{stroke:none;fill-opacity:.3}.faint{fill-opacity:.45}',
	'.elsewhere{fill:var(--card);stroke:var(--ink);stroke-width:1.5}.cursor{fill:none;stroke:var(--ink)}',
	'.select{fill:var(--accent);fill-opacity:.18}.cell{stroke:var(--card)}.on{fill:#fff}.off{fill:#10202f}',
	...Array.from({ length: 8 }, (_, i) => `.bar.s${i},.dot.s${i},.band.s${i},.fill.s${i}{fill:var(--c${i})}` +
		`.line.s${i},.thin.s${i}{stroke:var(--c${i})}`),
	'.way{fill:none;stroke-linecap:round}.w0{stroke:var(--muted);stroke-opacity:.4}.w1{stroke:#6d9ecb}.w2{stroke:#3f9a74}.w3{stroke:#c99a12}.w4{stroke:#d9691b}.w5{stroke:#c0211b}',
	'.jam{stroke:var(--bad)}.cut{stroke:var(--bad);stroke-dasharray:3 4}.switch{fill:var(--ink);stroke:var(--card)}.host{fill:var(--muted);stroke:var(--card)}',
	'.root{fill:none;stroke:var(--bad);stroke-width:2.5}.away{opacity:.12}.node-name{fill:var(--ink);paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}',
	'.rest{fill:var(--muted)}.whole{fill:var(--ink)}',
].join('');

export interface LegendEntry { name: string; colour: number; elsewhere: boolean }

const NAMES = ['ground', 'card', 'ink', 'muted', 'grid', 'line', 'accent', 'bad', ...Array.from({ length: 8 }, (_, i) => `c${i}`)];

/** The colours of a theme, as the style sheet has them. */
function colours(theme: string): string {
	const root = document.documentElement, before = root.dataset.theme;
	root.dataset.theme = theme;
	const style = getComputedStyle(root);
	const text = NAMES.map(n => `--${n}:${style.getPropertyValue('--' + n).trim()}`).join(';');
	root.dataset.theme = before;
	return text;
}

/** The figure with title and legend as a document of its own; `theme` "": light and dark, as its reader has it. */
export function svgText(what: string, svg: SVGSVGElement, legend: LegendEntry[], theme = ''): string {
	const box = svg.viewBox.baseVal, width = box.width, copy = svg.cloneNode(true) as SVGSVGElement;
	const rows: Node[] = [];
	let x = 10, y = 38;
	for (const e of legend.length > 1 ? legend : []) {
		const size = 36 + e.name.length * 6.9;
		if (x > 10 && x + size > width - 10)
			[x, y] = [10, y + 17];
		rows.push(s('circle', { class: e.elsewhere ? 'dot elsewhere' : `dot s${e.colour % 8}`, cx: x + 5, cy: y - 4, r: 4 }),
			s('text', { x: x + 14, y, class: 'row' }, e.name));
		x += size;
	}
	const head = legend.length > 1 ? y + 8 : 26;
	copy.querySelectorAll('.cursor').forEach(e => e.remove());
	copy.removeAttribute('style');
	copy.removeAttribute('tabindex');
	const inner = s('g', { transform: `translate(0 ${head})` }, ...copy.childNodes);
	copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
	copy.setAttribute('viewBox', `0 0 ${width} ${box.height + head}`);
	copy.setAttribute('width', String(width));
	copy.setAttribute('height', String(box.height + head));
	const own = theme ? `:root{${colours(theme)}}` :
		`:root{${colours('light')}}@media(prefers-color-scheme:dark){:root{${colours('dark')}}}`;
	copy.replaceChildren(s('title', {}, what), s('desc', {}, svg.getAttribute('aria-label') ?? ''), s('style', {}, own + FIGURE_STYLE),
		s('rect', { width: '100%', height: '100%', style: 'fill:var(--card)' }),
		s('text', { class: 'title', x: 10, y: 18 }, what), ...rows, inner);
	return new XMLSerializer().serializeToString(copy).replace(/( (?:d|[xy][12]?|c[xy]|width|height|points)=")([^"]*)/g, (_, name, v) =>
		name + v.replace(/\d+\.\d\d+/g, (n: string) => String(Number(Number(n).toFixed(1)))));
}

function fileName(what: string, end: string): string {
	return what.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 80) + end;
}

async function savePng(what: string, text: string, svg: SVGSVGElement): Promise<void> {
	const url = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' })), image = new Image();
	await new Promise<void>((done, failed) => {
		image.onload = () => done();
		image.onerror = () => failed(new Error('the figure cannot be drawn as a picture'));
		image.src = url;
	});
	const canvas = h('canvas', { width: image.width * 2, height: image.height * 2 });
	canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
	URL.revokeObjectURL(url);
	const blob = await new Promise<Blob | null>(done => canvas.toBlob(done, 'image/png'));
	if (!blob)
		throw new Error(`${svg.id || what}: the browser makes no picture of it`);
	const a = h('a', { href: URL.createObjectURL(blob), download: fileName(what, '.png') });
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

const legends = new WeakMap<SVGSVGElement, () => LegendEntry[]>();

/** The first figure that is shown and whose name begins so, as a document; for scripts. */
export function figureText(what: string): string | null {
	for (const svg of document.querySelectorAll<SVGSVGElement>('figure svg.plot')) {
		const name = svg.closest('figure')!.querySelector('figcaption')!.textContent!;
		if (name.startsWith(what) && svg.getClientRects().length)
			return svgText(name, svg, legends.get(svg)?.() ?? []);
	}
	return null;
}

export function saveButtons(what: string, svg: () => SVGSVGElement, legend: () => LegendEntry[]): HTMLElement[] {
	legends.set(svg(), legend);
	const name = (kind: string): Record<string, string> => ({ type: 'button', class: 'small', 'aria-label': `Save as ${kind}: ${what}` });
	return [
		h('button', { ...name('SVG'), click: () =>
			download(fileName(what, '.svg'), 'image/svg+xml', svgText(what, svg(), legend())) }, 'SVG'),
		h('button', { ...name('PNG'), click: () =>
			void savePng(what, svgText(what, svg(), legend(), document.documentElement.dataset.theme ?? 'light'), svg()) }, 'PNG'),
	];
}
