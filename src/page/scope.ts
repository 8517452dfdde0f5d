// SPDX-License-Identifier: BSD-2-Clause
// The plot: an axis of time that runs, or a window around a trigger.
import uPlot from 'uplot';
import { byId, clockTime, download, h, seconds, setText, value } from './components/dom';
import { model } from './model';
import * as picker from './picker';
import { Columns, columnsOf, Trigger } from './ring';
import { EPOCH, Tap } from './tap';
import { drawLine, drawPixels, Line, pixel, Range } from './trace';

const BEFORE = 0.25;      // part of the window before the trigger
const LATE_S = 0.08;      // the right edge stands this far behind the newest sample
const LEGEND_MAX = 12;
const MANY = 40;          // lines from which on they are drawn as pixels
const SHARE = 0.5;        // of the time may be spent on drawing

type Mode = 'off' | 'auto' | 'normal' | 'single';

const taps = new Map<string, Tap>();
let columns = new Map<string, Columns>();
let window_s = 10;
let mode: Mode = 'off';
let trigger: { hunt: Trigger; tap: Tap } | null = null;
let found: number | null = null;     // a crossing whose window is not complete yet
let still: { from: number; to: number; zero: number } | null = null; // what is seen does not move
let lastCapture = 0;
let paused = false;
let ahead = NaN;                     // of the stream before performance.now(), seconds
let plot: uPlot | null = null;
let canvas: HTMLCanvasElement;
let pen: CanvasRenderingContext2D;
let colours: string[] = [];
let units: string[] = [];
let ranges = [new Range(), new Range()];
let visible = false;
let dirty = true;
let lastFrame = 0, cost = 0, lastText = 0;
let axisKey = '';
/** For tests: frames that were drawn, and the mean time that one takes. */
const figures = { frames: 0, cost_ms: 0 };

function tapKey(x: { node: string; direction: string }): string {
	return `${x.direction}/${x.node}`;
}

function nodeRate(x: { node: string; direction: string }): number {
	const f = model.nodeFigures.get(x.node);
	return (x.direction === 'in' ? f?.received : f?.sent) ?? 0;
}

/** All samples where the memory for a window holds them; else a rate that it holds. */
function wantedRate(x: picker.Shown): number {
	const most = Tap.rateFor(signalsOf(x).length, window_s);
	return nodeRate(x) > most * 0.8 ? most : 0;
}

function signalsOf(x: picker.Shown): import('./model').Signal[] {
	return model.node(x.node)?.[x.direction].signals ?? [];
}

function connect(): void {
	const wanted = new Map(visible ? picker.list().map(x => [tapKey(x), x]) : []);
	for (const [k, tap] of taps) {
		const x = wanted.get(k);
		if (x && JSON.stringify(tap.signals) === JSON.stringify(signalsOf(x)))
			continue;
		tap.close();
		taps.delete(k);
	}
	for (const [k, x] of wanted)
		if (!taps.has(k))
			taps.set(k, new Tap(x.node, x.direction, signalsOf(x), wantedRate(x)));
		else
			taps.get(k)!.setRate(wantedRate(x));
	for (const tap of taps.values())
		tap.held = paused;
}

function plotWidth(): number {
	return Math.max(50, Math.round(canvas?.width ?? 600));
}

function columnCount(): number {
	return plotWidth();
}

function buildColumns(): void {
	const count = columnCount();
	columns = new Map();
	for (const [k, tap] of taps) {
		const signals = picker.list().filter(x => tapKey(x) === k).map(x => x.index);
		columns.set(k, new Columns(tap.ring, signals, window_s / count, count + 8));
	}
}

function buildUnits(): void {
	const all = [...new Set(picker.list().map(x => x.signal.unit ?? ''))];
	units = all.length <= 2 ? all : [''];
}

function axisOf(x: picker.Shown): number {
	return units.length === 2 && (x.signal.unit ?? '') === units[1] ? 1 : 0;
}

function setTrigger(): void {
	const keyOf = byId<HTMLSelectElement>('trigger-signal').value;
	const x = picker.list().find(y => y.key === keyOf), tap = x && taps.get(tapKey(x));
	found = null;
	trigger = mode === 'off' || !tap ? null : {
		tap, hunt: new Trigger(tap.ring, {
			signal: x!.index, level: Number(byId<HTMLInputElement>('trigger-level').value) || 0,
			rising: byId<HTMLSelectElement>('trigger-edge').value === 'rising',
		}),
	};
	lastCapture = performance.now();
	if (!paused)
		still = null;
	dirty = true;
}

function fillTriggerSignals(): void {
	const e = byId<HTMLSelectElement>('trigger-signal'), was = e.value;
	e.replaceChildren(...picker.list().map(x => h('option', { value: x.key },
		picker.signalName(x.signal, x.index) + (taps.size > 1 ? ` · ${x.node} ${x.direction}` : ''))));
	if (picker.list().some(x => x.key === was))
		e.value = was;
}

/** After a change of what is shown. */
function renew(): void {
	connect();
	buildUnits();
	buildColumns();
	fillTriggerSignals();
	setTrigger();
	ranges.forEach(r => r.forget());
	buildLegend();
	axisKey = '';
	dirty = true;
	byId('plot-empty').hidden = picker.list().length > 0;
}

// ---- the plot with its axes

function css(name: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function readColours(): void {
	colours = Array.from({ length: 8 }, (_, i) => css(`--c${i}`));
}

function xRange(): [number, number] {
	if (still)
		return [still.from - still.zero, still.to - still.zero];
	return mode === 'off' ? [-window_s, 0] : [-BEFORE * window_s, (1 - BEFORE) * window_s];
}

function makePlot(): void {
	const frame = byId('plot'), size = frame.getBoundingClientRect();
	const [x0, x1] = xRange(), fine = x1 - x0 < 2;
	const font = '12px system-ui, sans-serif';
	const axis = { stroke: css('--muted'), font, labelFont: font, labelSize: 22, labelGap: 2,
		grid: { stroke: css('--grid'), width: 1 }, ticks: { show: false }, gap: 6 };
	const ticks = (_: uPlot, at: number[]): string[] => {
		const step = at.length > 1 ? at[1] - at[0] : 1;
		const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
		return at.map(v => Math.abs(v) >= 1e6 ? v.toExponential(2) :
			(Math.abs(v) < step / 1e6 ? 0 : v).toFixed(digits).replace('-', '−'));
	};
	const times = (u: uPlot, at: number[]): string[] => ticks(u, fine ? at.map(v => v * 1000) : at);

	plot?.destroy();
	frame.replaceChildren();
	plot = new uPlot({
		width: Math.max(200, size.width), height: Math.max(160, size.height),
		padding: [12, units.length === 2 ? 4 : 16, 0, 4],
		legend: { show: false },
		cursor: { points: { show: false }, y: false, drag: { x: true, y: false, setScale: false } },
		scales: {
			x: { time: false, auto: false, range: (_, low, high) => [low, high] },
			y: { auto: false, range: (_, low, high) => [low, high] },
			y2: { auto: false, range: (_, low, high) => [low, high] },
		},
		axes: [
			{ ...axis, size: 28, values: times, space: 70,
				label: (still ? still.zero === still.to : mode === 'off') ?
					`time before now in ${fine ? 'ms' : 's'}` :
					`time from the trigger in ${fine ? 'ms' : 's'}` },
			{ ...axis, values: ticks, size: 62, label: units[0] || undefined },
			...(units.length === 2 ? [{ ...axis, scale: 'y2', side: 1 as const, values: ticks, size: 62,
				label: units[1] || '(no unit)', grid: { show: false } }] : []),
		],
		series: [{}, { scale: 'y' }, ...(units.length === 2 ? [{ scale: 'y2' }] : [])],
		hooks: {
			setSelect: [zoom],
			setCursor: [() => lastText = 0],
		},
	}, [[x0, x1], [null, null], ...(units.length === 2 ? [[null, null]] : [])] as any, frame);
	canvas = h('canvas', { class: 'traces', 'aria-hidden': 'true' });
	plot.over.before(canvas);
	plot.over.addEventListener('dblclick', unzoom);
	pen = canvas.getContext('2d')!;
	setScales();
	sizeCanvas();
}

function setScales(): void {
	const [min, max] = xRange();
	plot!.batch(() => {
		plot!.setScale('x', { min, max });
		ranges.slice(0, Math.max(1, units.length)).forEach((r, i) =>
			plot!.setScale(i ? 'y2' : 'y', { min: r.low, max: r.high }));
	});
}

function sizeCanvas(): void {
	const b = plot!.bbox, ratio = devicePixelRatio;
	canvas.style.left = `${b.left / ratio}px`;
	canvas.style.top = `${b.top / ratio}px`;
	canvas.style.width = `${b.width / ratio}px`;
	canvas.style.height = `${b.height / ratio}px`;
	if (canvas.width !== Math.round(b.width) || canvas.height !== Math.round(b.height)) {
		canvas.width = Math.round(b.width);
		canvas.height = Math.round(b.height);
		buildColumns();
	}
}

/** A part of what stands still, closer. */
function zoom(u: uPlot): void {
	const { left, width } = u.select;
	if (width < 6)
		return;
	const [x0, x1] = xRange(), all = u.over.clientWidth;
	if (!paused)
		setPaused(true);
	const from = still!.from + left / all * (x1 - x0), to = still!.from + (left + width) / all * (x1 - x0);
	still = { from, to, zero: still!.zero };
	u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
	axisKey = '';
	dirty = true;
}

function unzoom(): void {
	if (!still)
		return;
	const zero = still.zero;
	still = zero === edge && mode === 'off' ? { from: zero - window_s, to: zero, zero } :
		{ from: zero - BEFORE * window_s, to: zero + (1 - BEFORE) * window_s, zero };
	axisKey = '';
	dirty = true;
}

// ---- a frame

let edge = 0; // the time at the right edge

/** The newest time, which moves on evenly though samples come in frames. */
function rightEdge(now: number): number {
	let newest = -Infinity;
	for (const tap of taps.values())
		if (tap.ring.total)
			newest = Math.max(newest, tap.ring.newest);
	if (newest === -Infinity)
		return Date.now() / 1000 - EPOCH;
	const lead = newest - now / 1000;
	if (!(Math.abs(lead - ahead) < 2) || lead > ahead)
		ahead = lead;
	else
		ahead -= Math.min(0.0005, ahead - lead);
	return ahead + now / 1000 - LATE_S;
}

/** Runs the trigger; what it finds is seen once its window is complete. */
function hunt(now: number): void {
	if (!trigger)
		return;
	const { tap, hunt: h2 } = trigger, r = tap.ring;
	const after = (1 - BEFORE) * window_s;
	for (let i = 0; i < 10000; i++) {
		found ??= h2.next(still ? still.zero + 1e-9 : -Infinity);
		if (found === null || r.newest < found + after)
			break;
		if (r.times[r.at(r.first)] <= found - BEFORE * window_s || !still)
			still = { from: found - BEFORE * window_s, to: found + after, zero: found };
		found = null;
		lastCapture = now;
		dirty = true;
		if (mode === 'single') {
			setPaused(true);
			return;
		}
	}
	if (mode === 'auto' && now - lastCapture > Math.max(500, 1500 * window_s) && r.total) {
		const zero = r.newest - after;
		still = { from: zero - BEFORE * window_s, to: zero + after, zero };
		dirty = true;
	}
}

function linesNow(): { line: Line; axis: number; place: number }[] {
	const width = plotWidth(), many = columnCount();
	return picker.list().flatMap(x => {
		const tap = taps.get(tapKey(x));
		if (!tap || x.index >= tap.ring.values.length)
			return [];
		const common = { place: x.place, base: 0, scale: 0 };
		if (still) {
			const a = columnsOf(tap.ring, x.index, still.from, still.to, many);
			const step = (still.to - still.from) / many;
			return [{ axis: axisOf(x), place: x.place, line: { ...a, ...common, first: 0, count: many,
				left: 0, step: width / many, bridge: Math.max(1, tap.ring.gap / step) } }];
		}
		const c = columns.get(tapKey(x)), i = c?.signals.indexOf(x.index) ?? -1;
		if (!c || i < 0)
			return [];
		const from = Math.floor((edge - window_s) / c.width), pixels = width * c.width / window_s;
		return [{ axis: axisOf(x), place: x.place, line: {
			min: c.min[i], max: c.max[i], ...common, first: c.slot(from),
			// Behind the newest column old ones follow in the ring.
			count: Math.max(0, Math.min(c.count - 7, c.head - from + 1)),
			left: (from * c.width - (edge - window_s)) / window_s * width, step: pixels,
			bridge: Math.max(1, tap.ring.gap / c.width) } }];
	});
}

function fitRanges(lines: { line: Line; axis: number }[], now: number): boolean {
	let changed = false;
	for (let a = 0; a < units.length; a++) {
		let min = Infinity, max = -Infinity;
		for (const { line: l, axis } of lines) {
			if (axis !== a)
				continue;
			for (let i = 0; i < l.count; i++) {
				const k = (l.first + i) % l.min.length;
				if (l.min[k] < min)
					min = l.min[k];
				if (l.max[k] > max)
					max = l.max[k];
			}
		}
		changed = ranges[a].fit(min, max, now) || changed;
	}
	return changed;
}

function frame(now: number): void {
	requestAnimationFrame(frame);
	if (!visible || document.hidden || (cost && now - lastFrame < cost / SHARE))
		return;
	const begin = performance.now();
	if (!plot)
		makePlot();
	for (const c of columns.values())
		c.advance();
	if (!paused) {
		edge = rightEdge(now);
		hunt(now);
	}
	if (paused && !dirty) {
		text(now);
		return;
	}
	if (!still || dirty)
		draw(now);
	text(now);
	lastFrame = now;
	cost += (performance.now() - begin - cost) * 0.1;
	figures.frames++;
	figures.cost_ms = cost;
}

function draw(now: number): void {
	const lines = linesNow();
	fitRanges(lines, now);
	const key = JSON.stringify([xRange(), mode, ranges.map(r => [r.low, r.high]), units]);
	if (key !== axisKey) {
		const shape = JSON.stringify([units, mode, xRange()[1] - xRange()[0] < 2, still?.zero === still?.to]);
		if (shape !== plotShape) {
			plotShape = shape;
			makePlot();
		}
		axisKey = key;
		setScales();
		sizeCanvas();
	}
	dirty = false;
	const many = lines.length > MANY;
	if (many)
		clearImage();
	else
		pen.clearRect(0, 0, canvas.width, canvas.height);
	// Round joins cost more than the lines where no graphics processor draws them.
	pen.lineJoin = 'bevel';
	for (const { line, axis, place } of lines) {
		const r = ranges[axis];
		line.scale = canvas.height / (r.high - r.low);
		line.base = canvas.height + r.low * line.scale;
		if (many)
			drawPixels(pixels, canvas.width, canvas.height, line, pixel(colours[place % 8]));
		else
			drawLine(pen, line, colours[place % 8], devicePixelRatio);
	}
	if (many)
		pen.putImageData(image!, 0, 0);
	if (mode !== 'off' && trigger)
		drawLevel();
}

let plotShape = '';
let image: ImageData | null = null, pixels = new Uint32Array();

function clearImage(): void {
	if (image?.width !== canvas.width || image.height !== canvas.height) {
		image = pen.createImageData(canvas.width, canvas.height);
		pixels = new Uint32Array(image.data.buffer);
	}
	pixels.fill(0);
}

function drawLevel(): void {
	const x = picker.list().find(y => y.key === byId<HTMLSelectElement>('trigger-signal').value);
	if (!x)
		return;
	const r = ranges[axisOf(x)], level = Number(byId<HTMLInputElement>('trigger-level').value) || 0;
	const y = canvas.height * (r.high - level) / (r.high - r.low);
	const [x0, x1] = xRange(), zero = -x0 / (x1 - x0) * canvas.width;
	pen.strokeStyle = css('--muted');
	pen.lineWidth = devicePixelRatio;
	pen.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
	pen.beginPath();
	pen.moveTo(0, y);
	pen.lineTo(canvas.width, y);
	pen.moveTo(zero, 0);
	pen.lineTo(zero, canvas.height);
	pen.stroke();
}

// ---- texts: the legend, values at the cursor, what the plot does

let legend: { x: picker.Shown; value: HTMLElement }[] = [];

function buildLegend(): void {
	const all = picker.list();
	const several = new Set(all.map(tapKey)).size > 1;
	legend = all.slice(0, LEGEND_MAX).map(x => ({ x, value: h('b', {}) }));
	byId('legend').replaceChildren(
		...legend.map(l => h('li', { title: `${l.x.node}, ${l.x.direction}` },
			h('span', { class: `swatch c${l.x.place % 8} d${Math.floor(l.x.place / 8) % 4}` }),
			h('span', { class: 'name' }, picker.signalName(l.x.signal, l.x.index) +
				(several ? ` · ${l.x.node}` : '')),
			l.value, h('span', { class: 'unit' }, l.x.signal.unit ?? ''))),
		all.length > LEGEND_MAX && h('li', { class: 'more' }, `and ${all.length - LEGEND_MAX} more in the list`) || '');
}

/** The time at the cursor; null: there is none. */
function cursorTime(): number | null {
	const left = plot?.cursor.left ?? -1;
	if (!plot || left < 0)
		return null;
	const [x0, x1] = xRange(), t = x0 + left / plot.over.clientWidth * (x1 - x0);
	return t + (still ? still.zero : edge);
}

function valueAt(k: string, t: number | null): string {
	const [direction, index] = k.split('/');
	const tap = taps.get(`${direction}/${k.split('/').slice(2).join('/')}`);
	if (!tap || !tap.ring.total)
		return '';
	const r = tap.ring;
	const i = t === null ? r.total - 1 : r.find(t + 1e-12) - 1;
	if (i < r.first || (t !== null && t - r.times[r.at(i)] > r.gap + 1))
		return '–';
	return value(r.values[Number(index)]?.[r.at(i)] ?? NaN);
}

function tapText(): string {
	const states = [...taps.values()];
	const lost = states.filter(t => t.state === 'lost'), silent = states.filter(t => t.state === 'silent');
	const name = (t: Tap): string => `${t.node} (${t.direction})`;
	if (!states.length)
		return '';
	if (model.link !== 'connected')
		return '';
	if (lost.length)
		return `▲ no live samples of ${lost.map(name).join(', ')}; trying again`;
	if (silent.length)
		return `No samples come from ${silent.map(name).join(', ')}`;
	if (states.some(t => t.state === 'connecting'))
		return 'Waiting for the first samples';
	return '';
}

function doing(): string {
	if (paused)
		return mode === 'single' && still ? 'Captured' : 'Paused';
	if (mode === 'off')
		return 'Live';
	if (!trigger)
		return 'No signal to trigger on';
	if (found !== null)
		return 'Triggered';
	return performance.now() - lastCapture < Math.max(500, 1500 * window_s) ? 'Triggered' :
		mode === 'auto' ? 'No trigger, runs freely' : 'Waits for a trigger';
}

function text(now: number): void {
	if (now - lastText < 150)
		return;
	lastText = now;
	const t = cursorTime();
	for (const l of legend)
		setText(l.value, valueAt(l.x.key, t));
	picker.showValues(k => valueAt(k, t));
	setText(byId('plot-state'), doing());
	byId('plot-state').dataset.state = paused ? 'held' : 'live';
	const note = tapText();
	setText(byId('plot-note'), note);
	byId('plot-note').hidden = !note;
	const picked = [...taps.values()].some(tap => wantsRate(tap));
	setText(byId('plot-time'), t !== null ?
		`at ${clockTime(t + EPOCH)}, ${seconds(t - (still ? still.zero : edge))}` :
		picked ? 'evenly picked samples' : '');
}

function wantsRate(tap: Tap): boolean {
	const x = picker.list().find(y => tapKey(y) === tapKey(tap));
	return !!x && wantedRate(x) > 0;
}

// ---- commands

function setPaused(on: boolean): void {
	paused = on;
	for (const tap of taps.values())
		tap.held = on;
	if (on && !still)
		still = { from: edge - window_s, to: edge, zero: edge };
	if (!on) {
		still = null;
		ahead = NaN;
		axisKey = '';
		if (mode !== 'off')
			setTrigger();
	}
	const b = byId('plot-pause');
	setText(b.querySelector('span')!, on ? 'Go on' : 'Pause');
	b.setAttribute('aria-pressed', String(on));
	dirty = true;
}

function quote(text: string): string {
	return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** What is seen, with all samples that there are of it: a row for each time. */
export function csv(): string {
	const [from, to] = still ? [still.from, still.to] : [edge - window_s, edge];
	const all = picker.list();
	const head = ['time', ...all.map(x => `${x.node}/${x.direction}/` +
		picker.signalName(x.signal, x.index) + (x.signal.unit ? ` [${x.signal.unit}]` : ''))];
	const rows: { t: number; text: string[] }[] = [];
	for (const [k, tap] of taps) {
		const mine = all.map((x, i) => ({ x, i })).filter(m => tapKey(m.x) === k);
		for (let i = tap.ring.find(from); i < tap.ring.total; i++) {
			const at = tap.ring.at(i), t = tap.ring.times[at];
			if (t > to)
				break;
			const text = new Array<string>(all.length).fill('');
			for (const m of mine)
				text[m.i] = String(tap.ring.values[m.x.index][at]);
			rows.push({ t: t - tap.shift, text });
		}
	}
	rows.sort((a, b) => a.t - b.t);
	const stamp = (t: number): string => {
		const s = Math.floor(t), nano = Math.min(999999999, Math.round((t - s) * 1e9));
		return `${EPOCH + s}.${String(nano).padStart(9, '0')}`;
	};
	return [head.map(quote).join(','), ...rows.map(r => [stamp(r.t), ...r.text].join(','))].join('\n') + '\n';
}

export function setVisible(on: boolean): void {
	if (visible === on)
		return;
	visible = on;
	renew();
}

function setMode(m: Mode): void {
	mode = m;
	byId('trigger-more').hidden = m === 'off';
	if (paused)
		setPaused(false);
	still = null;
	setTrigger();
	axisKey = '';
}

export function redraw(): void {
	readColours();
	plotShape = '';
	axisKey = '';
	dirty = true;
}

export function start(): void {
	readColours();
	picker.start(renew);
	byId('plot-pause').addEventListener('click', () => setPaused(!paused));
	byId('plot-export').addEventListener('click', () =>
		download(`busbar-${new Date().toISOString().replace(/[:.]/g, '-')}.csv`, 'text/csv', csv()));
	byId<HTMLSelectElement>('plot-window').addEventListener('change', e => {
		window_s = Number((e.target as HTMLSelectElement).value);
		if (paused)
			setPaused(false);
		renew();
	});
	byId<HTMLSelectElement>('trigger-mode').addEventListener('change', e =>
		setMode((e.target as HTMLSelectElement).value as Mode));
	for (const id of ['trigger-signal', 'trigger-edge', 'trigger-level'])
		byId(id).addEventListener('change', setTrigger);
	byId('trigger-half').addEventListener('click', () => {
		const x = picker.list().find(y => y.key === byId<HTMLSelectElement>('trigger-signal').value);
		const r = ranges[x ? axisOf(x) : 0];
		byId<HTMLInputElement>('trigger-level').value = String(Number(((r.low + r.high) / 2).toPrecision(3)));
		setTrigger();
	});
	new ResizeObserver(() => {
		if (!plot || !visible)
			return;
		const size = byId('plot').getBoundingClientRect();
		plot.setSize({ width: Math.max(200, size.width), height: Math.max(160, size.height) });
		sizeCanvas();
		dirty = true;
	}).observe(byId('plot'));
	(window as any).busbarPlot = figures;
	requestAnimationFrame(frame);
}
