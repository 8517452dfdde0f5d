// SPDX-License-Identifier: BSD-2-Clause
// Where an axis has marks.

/** 1, 2 or 5 times a power of ten, so that there are about `wanted` steps. */
export function niceStep(width: number, wanted: number): number {
	const rough = width / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
	return ([1, 2, 5].find(m => m * power >= rough * 0.999) ?? 10) * power;
}

/** Multiples of such a step within the range. */
export function niceTicks(low: number, high: number, wanted: number): number[] {
	const step = niceStep(high - low, wanted), list = [];
	for (let v = Math.ceil(low / step - 1e-6) * step; v <= high + step * 1e-6; v += step)
		list.push(Math.abs(v) < step / 1e6 ? 0 : v);
	return list;
}
