/** The outcome of one check. Every finding that is not `ok` has advice. */
export interface Finding {
  check: string;
  status: 'ok' | 'warning' | 'failure';
  detail: string;
  advice?: string;
}

export const ok = (check: string, detail: string): Finding => ({ check, status: 'ok', detail });
export const warning = (check: string, detail: string, advice: string): Finding => ({
  check,
  status: 'warning',
  detail,
  advice,
});
export const failure = (check: string, detail: string, advice: string): Finding => ({
  check,
  status: 'failure',
  detail,
  advice,
});

export const seconds = (ms: number): string => `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
