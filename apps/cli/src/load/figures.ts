/** Times of participants; null without any. */
export interface Spread {
  count: number;
  median: number | null;
  p95: number | null;
  worst: number | null;
}

/** @param worst which end is the worst one */
export function spreadOf(values: readonly number[], worst: 'highest' | 'lowest' = 'highest'): Spread {
  const sorted = [...values].sort((a, b) => (worst === 'highest' ? a - b : b - a));
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  return { count: sorted.length, median: at(0.5), p95: at(0.95), worst: at(1) };
}

/** Totals of the streams that one participant has received. */
export interface Received {
  bytes: number;
  packets: number;
  lost: number;
  frames: number;
  pictures: number;
}

export const NOTHING: Received = { bytes: 0, packets: 0, lost: 0, frames: 0, pictures: 0 };

interface StreamEntry {
  type: string;
  kind?: string;
  bytesReceived?: number;
  packetsReceived?: number;
  packetsLost?: number;
  framesDecoded?: number;
}

/** The totals of a statistics report of a receiving connection. */
export function receivedOf(report: Iterable<StreamEntry>): Received {
  const total = { ...NOTHING };
  for (const { type, kind, bytesReceived = 0, packetsReceived = 0, packetsLost = 0, framesDecoded } of report) {
    if (type !== 'inbound-rtp') continue;
    total.bytes += bytesReceived;
    total.packets += packetsReceived;
    total.lost += Math.max(0, packetsLost);
    total.frames += framesDecoded ?? 0;
    total.pictures += kind === 'video' ? 1 : 0;
  }
  return total;
}

export interface Rates {
  kbps: number;
  lossPercent: number;
  /** Of each picture. Null without pictures. */
  framesPerSecond: number | null;
}

export function ratesBetween(before: Received, after: Received, seconds: number): Rates {
  const since = (name: keyof Received) => Math.max(0, after[name] - before[name]);
  const packets = since('packets') + since('lost');
  return {
    kbps: (since('bytes') * 8) / 1000 / seconds,
    lossPercent: packets === 0 ? 0 : (100 * since('lost')) / packets,
    framesPerSecond: after.pictures === 0 ? null : since('frames') / seconds / after.pictures,
  };
}

/** @returns the processor seconds that a page of Prometheus has for a process; null without them */
export function processorSeconds(page: string): { app: string; seconds: number } | null {
  const [, labels = '', value] = /^process_cpu_seconds_total(\{[^}\n]*\})? ([0-9.e+-]+)/m.exec(page) ?? [];
  if (value === undefined || !Number.isFinite(Number(value))) return null;
  const [, app = 'process'] = /app="([^"]*)"/.exec(labels) ?? [];
  return { app, seconds: Number(value) };
}
