const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });

/** @returns such as "12,345" */
export function countText(value: number): string {
  return whole.format(value);
}

/** @returns such as "12.3K", for axes and tiles */
export function shortCount(value: number): string {
  return short.format(value);
}

/** @param share between 0 and 1 */
export function shareText(share: number): string {
  return percent.format(share);
}

/** @returns the count with its noun: "1 room", "2 rooms" */
export function plural(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}
