// SPDX-License-Identifier: BSD-2-Clause
// What stands around the questions: the run, its machine, the floor, what disturbed it, one line each with the
// details folded; the source's findings; what was left out.
import { h } from '../components/dom';
import { icon } from '../components/icons';
import { disturbed } from './answer';
import { allVirtual } from './answer_virtual';
import { at, floorOf, Run, Shape } from './data';
import { figure, fold } from './parts';
import { bars } from './rows';
import { objectTable, table } from './tables';
import { list, percent, quantity, time } from './words';

/** A line that unfolds. */
function line(name: string, text: string, tone: string, details: () => (Node | null)[]): HTMLElement {
	const e = fold('', details);
	e.classList.add('line');
	e.querySelector('summary')!.replaceChildren(h('span', { class: 'line-name' }, name),
		h('span', {}, tone ? icon(tone === 'bad' ? 'warn' : tone === 'good' ? 'run' : 'off', tone) : null, text));
	return e;
}

/** A shell's way of writing a word. */
function word(w: string): string {
	return /^[\w./=,:+@%-]+$/.test(w) ? w : `'${w.replace(/'/g, '\'\\\'\'')}'`;
}

export function commandOf(run: Run): string {
	const words = at(run.run, 'command');
	return Array.isArray(words) ? words.map(w => word(String(w))).join(' ') : '';
}

function machineLimits(m: any): string[] {
	const limits: string[] = [], governor = at(m, 'cpu.governor'), first = Array.isArray(governor) ? governor[0] : null;
	if (at(m, 'virtual_machine'))
		limits.push(`It is a virtual machine (${at(m, 'hypervisor') ?? 'unknown hypervisor'}): the host may take its processors away at any time, and its speed changes with what else runs there.`);
	if (at(m, 'isolation.quota') && !String(at(m, 'isolation.quota')).startsWith('max'))
		limits.push(`The control group may use only so much processor time: cpu.max is ${at(m, 'isolation.quota')}.`);
	if (!at(m, 'isolation.isolcpus') && !at(m, 'isolation.isolated'))
		limits.push('No processor is isolated: the scheduler may put other threads beside those that measure.');
	if (first && first !== 'performance')
		limits.push('The frequency governor is not \'performance\': the clock rate follows the load.');
	for (const [key, beside] of [['paced_100k_missed', ''], ['paced_100k_missed_busy', ' while another thread is busy']]) {
		const missed = at(m, `floor.${key}.median`);
		if (missed >= 0.1)
			limits.push(`A loop that only waits for the next step, 100,000 times a second, misses ${percent(missed)} of the steps${beside}.`);
	}
	if (at(m, 'load.0') > 0.5)
		limits.push(`Other programs ran at the start: the load average was ${quantity(at(m, 'load.0'), '')}.`);
	const sanitizer = at(m, 'busbar.sanitizer');
	if (sanitizer && sanitizer !== 'none')
		limits.push(`busbar was built with a sanitizer (${sanitizer}), which makes it several times slower.`);
	if (at(m, 'busbar.optimized') === false)
		limits.push('busbar was built without optimization.');
	return limits;
}

function machineLine(run: Run): HTMLElement | null {
	const m = run.machine;
	if (!run.run)
		return null;
	if (!m)
		return h('p', { class: 'muted line' }, 'This run has no description of its machine, so its figures cannot be given as multiples of what the machine can do at best.');
	const cpus = at(m, 'cpu.online'), text = [`${at(m, 'host') ?? 'host'}: ${cpus ? `${cpus} × ` : ''}${at(m, 'cpu.model') ?? 'unknown processor'}`,
		at(m, 'virtual_machine') ? 'virtual' : '', at(m, 'os'), at(m, 'kernel.release') ? `kernel ${at(m, 'kernel.release')}` : ''].filter(t => t).join(', ');
	return line('Machine', text, '', () => [
		h('h3', {}, 'What limits this machine'), h('ul', { class: 'dots' }, ...machineLimits(m).map(t => h('li', {}, t))),
		h('h3', {}, 'All that was recorded of it'), objectTable(m, 'Machine'),
	]);
}

function floorLine(run: Run): HTMLElement | null {
	const floor = floorOf(run), all = at(run.machine, 'floor');
	if (!run.machine)
		return null;
	if (!Number.isFinite(floor))
		return h('p', { class: 'muted line' }, 'The floor of the machine was not measured in this run; so there are no multiples of it.');
	const checks = at(run.run, 'disturbance.floor_ratio');
	return line('Floor', `${time(floor)} for a cache line from one processor to another, the unit of all multiples` +
		(checks > 1.05 ? `; up to ${quantity(checks, '')} times that during the run` : ''), '', () => {
		const times = Object.entries<any>(all).filter(([k, v]) => k.endsWith('_ns') && v?.median).map(([k, v]) => ({ name: k.replace(/_ns$/, '').replace(/_/g, ' '), value: v.median }));
		return [times.length ? figure(bars('What this machine can do at best', 'ns', times)) : null, objectTable(all, 'Floor')];
	});
}

function disturbanceLine(run: Run): HTMLElement | null {
	const d = at(run.run, 'disturbance'), why = d?.line ?? disturbed(run, []);
	if (!run.run)
		return null;
	const load = at(run.machine, 'load.0');
	const text = why ? `${why[0].toUpperCase()}${why.slice(1)}${/[.!]$/.test(why) ? '' : ': figures of this run say little'}` : d ? 'Nothing took the processors away that would change a median.' :
		load > 0.5 ? `Load average ${quantity(load, '')} at the start; more is not known of this run.` : 'It is not known of this run what else the machine did.';
	return line('Disturbance', text, why ? 'bad' : d ? 'good' : 'idle', () => {
		const checks: any[] = d?.checks ?? [];
		return [d ? objectTable({ ...d, checks: undefined, reasons: d.reasons?.join('; ') }, 'What disturbed the run') :
			h('p', { class: 'muted' }, 'Runs of this version of busbar do not record it.'),
			checks.length ? table(['at', 'cache line', 'steps missed by an empty loop', 'load'], checks.map(c => [String(c.at), time(c.cacheline_oneway_ns), c.missed_percent === null ? '–' : percent(c.missed_percent), quantity(c.load, '')]), 'Checks') : null];
	});
}

function runLine(run: Run, name: string): HTMLElement | null {
	const r = run.run;
	if (!r)
		return null;
	const text = [at(r, 'suite'), `begun ${String(at(r, 'start') ?? 'at an unknown time').replace('T', ' ').replace('Z', ' UTC')}`,
		at(r, 'end') ? '' : 'not ended, or it was killed', `${run.cases.length} cases`].filter(t => t).join(', ');
	return line(name, text, '', () => [objectTable({ suite: at(r, 'suite'), begun: at(r, 'start'), ended: at(r, 'end') ?? 'not yet, or it was ended', busbar: at(r, 'version'), command: commandOf(run), folder: run.folder }, 'Run')]);
}

export function headLines(run: Run, name = 'Run'): HTMLElement {
	const virtual = allVirtual(run);
	return h('div', { class: 'lines' }, runLine(run, name), machineLine(run), virtual ? null : floorLine(run), virtual ? null : disturbanceLine(run));
}

// ---- what the source found

function verdictOf(x: Shape): string {
	return x.verdict ?? (x.holds === true ? 'holds' : x.holds === false ? 'does not hold' : 'not checked');
}

const TONES: Record<string, [string, string]> = { holds: ['run', 'good'], 'does not hold': ['warn', 'bad'], 'not decidable here': ['wait', 'held'] };

export function shapesView(run: Run): HTMLElement | null {
	const all = run.shapes ?? [], known = all.filter(x => verdictOf(x) !== 'not checked');
	if (!known.length)
		return null;
	const counts = ['holds', 'does not hold', 'not decidable here'].map(v => [v, known.filter(x => verdictOf(x) === v).length] as const).filter(([, n]) => n);
	const rest = all.length - known.length;
	return h('section', { class: 'card question', id: 'shapes' }, h('h2', {}, 'Does this run show what the source\'s did?'),
		h('div', { class: 'answer' }, h('p', { class: 'sentence' }, `Of ${known.length} findings ${list(counts.map(([v, n]) => `${n} ${n > 1 ? v.replace('holds', 'hold').replace('does not', 'do not') : v}`))}.`),
			rest ? h('p', { class: 'muted' }, `${rest} more cannot be checked: the run lacks their cases.`) : null),
		h('ul', { class: 'findings' }, ...known.map(x => {
			const [sign, tone] = TONES[verdictOf(x)] ?? ['off', 'idle'];
			return h('li', {}, h('p', {}, icon(sign, tone), h('b', {}, verdictOf(x)), `: ${x.claim}`), h('p', { class: 'muted' }, [x.figures, x.reason].filter(t => t).join('; ')));
		})));
}

export function leftOut(run: Run): HTMLElement | null {
	const all = at(run.run, 'left_out');
	if (!Array.isArray(all) || !all.length)
		return null;
	return fold(`${all.length} cases were left out`, () => [table(['Case', 'Scenario', 'Why'], all.map((x: any) => typeof x === 'string' ? [x, '', ''] :
		[String(x.id ?? ''), String(x.scenario ?? ''), String(x.reason ?? '')]), 'Cases that were left out', true)]);
}
