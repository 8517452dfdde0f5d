// SPDX-License-Identifier: BSD-2-Clause
// The page of a gateway: which view is seen, and the line at the top.
import * as configview from './configview';
import * as delays from './delays';
import * as detail from './detail';
import * as dialog from './dialog';
import { byId, duration, h, number, rate, seconds, setText } from './components/dom';
import * as theme from './components/theme';
import * as graph from './graph';
import { icon, look } from './components/icons';
import * as logview from './logview';
import { model } from './model';
import * as scope from './scope';

const VIEWS = ['overview', 'signals', 'delays', 'log', 'configuration'];

function view(): string {
	const name = location.hash.slice(1);
	return VIEWS.includes(name) ? name : 'overview';
}

function showView(): void {
	const now = view();
	for (const v of VIEWS) {
		byId('view-' + v).hidden = v !== now;
		const link = document.querySelector(`nav a[href="#${v}"]`)!;
		if (v === now)
			link.setAttribute('aria-current', 'page');
		else
			link.removeAttribute('aria-current');
	}
	scope.setVisible(now === 'signals');
	delays.setVisible(now === 'delays');
	logview.setVisible(now === 'log');
	configview.setVisible(now === 'configuration');
}

function updateLink(): void {
	const e = byId('link'), connected = model.link === 'connected';
	const texts = { connecting: 'connecting', connected: 'connected', lost: 'not connected', refused: 'no access' };
	const shapes = { connecting: 'wait', connected: 'run', lost: 'warn', refused: 'warn' };
	if (e.dataset.link !== model.link) {
		e.dataset.link = model.link;
		e.replaceChildren(icon(shapes[model.link], connected ? 'good' : model.link === 'connecting' ? 'idle' : 'bad'),
			h('span', {}, texts[model.link]));
	}
	document.body.classList.toggle('stale', !connected);
	byId('lost').hidden = connected || model.link === 'connecting';
	if (model.link === 'refused') {
		setText(byId('lost-text'), `The gateway does not answer to this page: ${model.reason}.`);
	} else if (model.link === 'lost') {
		const since = model.lastAnswer ? `The last answer came ${duration((Date.now() - model.lastAnswer) / 1000)} ago; the figures are those of then. ` : '';
		setText(byId('lost-text'), `Not connected to the gateway. ${since}Trying again every second.`);
	}
}

interface Figure { name: string; text: string; bad?: boolean }

function figures(): Figure[] {
	let inRate = 0, outRate = 0, lost = 0, p99 = 0, known = false;
	for (const f of model.nodeFigures.values()) {
		known ||= f.received !== null;
		inRate += f.received ?? 0;
		outRate += f.sent ?? 0;
		lost += f.losses ?? 0;
	}
	for (const p of model.paths) {
		const f = model.pathFigures.get(p.uuid);
		lost += f?.dropped ?? 0;
		p99 = Math.max(p99, f?.count ? f.p99 : 0);
	}
	const running = model.nodes.filter(n => ['started', 'connected', 'pending-connect'].includes(n.state)).length;
	const going = model.paths.filter(p => ['running', 'waiting'].includes(p.state)).length;
	return [
		{ name: 'Nodes running', text: `${running} of ${model.nodes.length}` },
		{ name: 'Paths running', text: `${going} of ${model.paths.length}` },
		{ name: 'Received', text: known ? rate(inRate) : '–' },
		{ name: 'Sent', text: known ? rate(outRate) : '–' },
		{ name: 'Lost', text: known ? rate(lost) : '–', bad: lost > 0 },
		{ name: 'Latency, 99 of 100', text: p99 ? `≤ ${seconds(p99)}` : '–' },
	];
}

function updateTop(): void {
	const st = model.status;
	if (st) {
		setText(byId('name'), st.name);
		document.title = `${st.name} – busbar`;
		setText(byId('uptime'), `${look(st.state).text} for ${duration(st.time_now - st.time_started)}`);
		setText(byId('about'), `busbar ${st.version} on ${st.hostname} · ${st.system.cores} processors, load ${st.system.load?.[0]?.toFixed(2) ?? '–'} · ${number(st.system.ram?.free / 2 ** 30)} GiB free`);
	}
	const list = figures(), frame = byId('figures');
	if (frame.childElementCount !== list.length)
		frame.replaceChildren(...list.map(f => h('div', { class: 'figure' }, h('dt', {}, f.name), h('dd', {}))));
	list.forEach((f, i) => {
		const dd = frame.children[i].lastElementChild!;
		setText(dd, (f.bad ? '▲ ' : '') + f.text);
		dd.className = f.bad ? 'bad' : '';
	});
}

theme.start(byId('theme'), scope.redraw);
dialog.start();
detail.start();
graph.start(detail.open);
scope.start();
delays.start();
logview.start();
configview.start();
model.listen(updateLink);
model.listen(updateTop);
addEventListener('hashchange', showView);
document.addEventListener('visibilitychange', () => {
	if (!document.hidden)
		model.hurry();
});
showView();
void model.run();
