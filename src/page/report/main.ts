// SPDX-License-Identifier: BSD-2-Clause
// The page of a report: first the questions with a sentence each, then a section for each.
import { byId, h } from '../components/dom';
import * as theme from '../components/theme';
import { answerOf, Sure } from './answer';
import { at, Data, readData } from './data';
import { sectionsOf } from './groups';
import { headLines, leftOut, shapesView } from './head';
import { FIGURE_STYLE, figureText } from './save';
import { answerBox, makeAll, sectionView, signOf, whenNear } from './section';
import { Part, subnetLine, subnetParts } from './subnet';
import { subnetOf } from './subnet_data';
import { traceParts } from './trace';
import { overview } from './two';

function contents(entries: { id: string; question: string; text: string; sure?: Sure }[]): HTMLElement | null {
	return entries.length < 2 ? null : h('nav', { class: 'card answers', 'aria-label': 'Questions and answers' }, h('h2', {}, 'Answers'),
		h('ol', {}, ...entries.map(e => h('li', {}, h('a', { href: `#${e.id}` }, e.question), ' ', e.sure ? signOf(e.sure) : null, h('span', {}, ` ${e.text}`)))));
}

function one(data: Data): Node[] {
	const run = data.runs[0], sections = sectionsOf(run), shapes = shapesView(run);
	const entries: { id: string; question: string; text: string; sure?: Sure }[] = sections.map((x, i) => {
		const answer = answerOf(x, run);
		return { id: `q${i + 1}`, question: x.question, text: answer?.text ?? '', sure: answer?.sure };
	});
	if (shapes)
		entries.unshift({ id: 'shapes', question: 'Does this run show what the source\'s did?', text: shapes.querySelector('.sentence')!.textContent! });
	const none = sections.length ? null : h('section', { class: 'card question' }, h('h2', {}, 'Nothing was measured'), h('p', { class: 'sentence' }, 'This run has no case that is complete.'));
	return [contents(entries), headLines(run), none, shapes, ...sections.map((x, i) => sectionView(x, run, `q${i + 1}`)), leftOut(run)].filter((n): n is HTMLElement => !!n);
}

function two(data: Data): Node[] {
	const all = overview(data);
	return [h('section', { class: 'card question', id: 'all' }, h('h2', {}, 'Is the second run faster or slower than the first?'), answerBox(all.answer)),
		contents(all.list), headLines(data.runs[0], 'First'), headLines(data.runs[1], 'Second'), ...all.sections].filter((n): n is HTMLElement => !!n);
}

function partView(p: Part, id: string): HTMLElement {
	const body = h('div', { class: 'section-body' });
	const e = h('section', { id, class: 'card question', 'aria-labelledby': `${id}-h` }, h('h2', { id: `${id}-h` }, p.question), answerBox(p.answer), body);
	whenNear(e, () => body.append(...p.make().filter((n): n is Node => !!n)));
	return e;
}

function subnets(data: Data): Node[] {
	const all = data.subnets!.map(subnetOf).map((subnet, k) => ({ subnet, parts: subnetParts(subnet).map((p, i) => ({ p, id: `s${k + 1}q${i + 1}` })) }));
	const several = all.length > 1, named = (x: typeof all[0]): string => x.subnet.title || base(x.subnet.file);
	return [contents(all.flatMap(x => x.parts.map(({ p, id }) => ({ id, question: several ? `${named(x)}: ${p.question}` : p.question, text: p.answer.text, sure: p.answer.sure })))),
		...all.flatMap(x => [several ? h('h2', {}, named(x)) : null, subnetLine(x.subnet), ...x.parts.map(({ p, id }) => partView(p, id))])].filter((n): n is HTMLElement => !!n);
}

function trace(data: Data): Node[] {
	const all = traceParts(data.trace!);
	return [contents(all.map(({ p, id }) => ({ id, question: p.question, text: p.answer.text }))), ...all.map(({ p, id }) => partView(p, id))].filter((n): n is HTMLElement => !!n);
}

/** The last part of a path. */
function base(path: string): string {
	return path.replace(/\/+$/, '').split('/').pop() || path;
}

function start(): void {
	const data = readData(byId('data').textContent!), titles = data.trace ? [data.trace.file] : data.subnets ? data.subnets.map(s => s.title || base(s.file)) : data.runs.map(r => r.title);
	const title = data.trace ? data.trace.file : data.subnets ? titles.join(' and ') : data.runs.length > 1 ? data.runs.map(r => base(r.folder ?? '')).join(' and ') : base(titles[0]);
	document.title = data.trace ? `${title}: packets of RDMA` : `busbar report: ${title}`;
	document.head.append(h('style', {}, FIGURE_STYLE));
	byId('title').textContent = data.trace ? `Packets: ${title}` : `Report: ${title}`;
	const begun = at(data.runs[0]?.run, 'start');
	byId('when').textContent = [data.runs.length > 1 ? `suite ${[...new Set(titles)].join(' and ')}` : '', begun ? String(begun).slice(0, 16).replace('T', ' ') + ' UTC' : ''].filter(t => t).join(', ');
	theme.start(byId('theme'));
	byId('main').append(...data.trace ? trace(data) : data.subnets ? subnets(data) : data.runs.length > 1 ? two(data) : one(data));
	byId('about').append('Made by ', h('code', {}, data.command), data.subnets || data.trace ? '. ' : '. "Other hardware" marks what the source of an experiment measured on its own machines: it shows what is usual elsewhere and is no goal for this one. ',
		'In a figure: drag for a closer look, double-click for the whole axis; with the keyboard arrows step, + and - zoom, 0 shows all.');
	byId('open').addEventListener('click', () => {
		makeAll();
		const folds = document.querySelectorAll<HTMLDetailsElement>('.folds details'), open = [...folds].some(d => !d.open);
		folds.forEach(d => d.open = open);
	});
	addEventListener('beforeprint', makeAll);
	const moved = (): void => {
		const target = document.getElementById(location.hash.slice(1));
		// Sections above grow when they are made: it is looked for again behind that.
		makeAll();
		target?.scrollIntoView();
	};
	if (location.hash)
		moved();
	addEventListener('hashchange', moved);
	// For scripts that save figures of documents.
	(window as any).busbarFigure = figureText;
	document.documentElement.dataset.ready = 'yes';
}

start();
