import type { History } from './facts.js';

/** Time after a fault in which the service may still be late: leases end, processes start, connections return. */
const RECOVERY_MS = 30_000;
const LEASE_MS = 120_000;

/** When faults were active. */
export interface Faults {
  /** Time after the end of a fault that still belongs to it. */
  recoveryMs: number;
  /** Whether a fault was active at some time between these. */
  overlap(fromMs: number, untilMs: number): boolean;
}

export function faultsOf({ nemesis, run }: Pick<History, 'nemesis' | 'run'>): Faults {
  const begins = new Map<string, number>();
  const intervals: [fromMs: number, untilMs: number][] = [];
  for (const { fault, what, atMs } of nemesis) {
    if (what === 'begin') begins.set(fault, atMs);
    else {
      intervals.push([begins.get(fault) ?? -Infinity, atMs]);
      begins.delete(fault);
    }
  }
  for (const atMs of begins.values()) intervals.push([atMs, Infinity]);
  // A killed worker's lease ends after its length.
  const recoveryMs = Math.max(RECOVERY_MS, run.settings.leaseMs ?? LEASE_MS);
  return { recoveryMs, overlap: (from, until) => intervals.some(([begin, end]) => begin <= until && end >= from) };
}
