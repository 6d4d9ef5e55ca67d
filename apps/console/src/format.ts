const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });

/** @returns such as "12,345" */
export const countText = (value: number): string => whole.format(value);

/** @returns such as "12.3K", for axes and tiles */
export const shortCount = (value: number): string => short.format(value);

/** @param share between 0 and 1 */
export const shareText = (share: number): string => percent.format(share);

/** @returns the count with its noun: "1 room", "2 rooms" */
export function plural(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });
const full = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
});
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** @returns such as "5 min ago", "in 2 hr." */
export function agoText(time: string, nowMs: number): string {
  const seconds = Math.round((Date.parse(time) - nowMs) / 1_000);
  // Clocks of browser and server differ a little.
  if (Math.abs(seconds) < 5) return 'just now';
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return 'just now';
}

/** @returns the time in the zone of the reader, to the second */
export const fullTime = (time: string): string => full.format(new Date(time));

/** @param value a UTC day of the API, `YYYY-MM-DD` */
export const dayText = (value: string): string => day.format(new Date(`${value}T00:00:00Z`));

/** @returns a length of time in its two largest units: "1 h 5 min" */
export function durationText(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1_000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** @returns a size with one digit after the point: "1.5 MB" */
export function bytesText(bytes: number): string {
  if (bytes < 1e6) return `${Math.ceil(bytes / 1000)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

/** @returns the next round number at or above the value, so that half of it is round, too */
export function niceTop(value: number): number {
  if (value <= 2) return 2;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 4, 6, 8, 10].find((one) => one * power >= value) ?? 10;
  return step * power;
}
