// SPDX-License-Identifier: BSD-2-Clause
// Light or dark: as the system has it, until a button chooses.

const KEY = 'busbar-theme';

function chosen(): string {
	try {
		return localStorage.getItem(KEY) ?? 'auto';
	} catch {
		return 'auto';
	}
}

/** `changed` is called after each change. */
export function start(button: HTMLElement, changed: () => void = () => {}): void {
	const system = matchMedia('(prefers-color-scheme: dark)');
	const set = (name: string): void => {
		const dark = name === 'dark' || (name === 'auto' && system.matches);
		document.documentElement.dataset.theme = dark ? 'dark' : 'light';
		button.title = dark ? 'Light colours' : 'Dark colours';
		button.setAttribute('aria-label', button.title);
		changed();
	};
	set(chosen());
	button.addEventListener('click', () => {
		const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
		try {
			localStorage.setItem(KEY, next);
		} catch { /* then it holds for this visit */ }
		set(next);
	});
	system.addEventListener('change', () => set(chosen()));
}
