export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2;
}

/** @param share from 0 to 1 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Median, 95th and 99th percentile and maximum of times in milliseconds. */
export function spread(values: readonly number[]): string {
  const [p50, p95, p99, most] = [0.5, 0.95, 0.99, 1].map((share) => percentile(values, share).toFixed(1));
  return `median ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, max ${most} ms`;
}

/** The median of ratios, with the smallest and the largest. */
export function ratioOf(ratios: readonly number[]): string {
  return `${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(3)}-${Math.max(...ratios).toFixed(3)})`;
}

export function printHead(...columns: readonly string[]): void {
  printRow(...columns);
  printRow(...columns.map(() => '---'));
}

export function printRow(...cells: readonly (string | number)[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}
