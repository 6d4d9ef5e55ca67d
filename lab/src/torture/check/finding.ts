import type { HISTORY_FILES } from '../history.js';

/** A line of a history that proves a finding. */
export interface Evidence {
  file: keyof typeof HISTORY_FILES;
  n: number;
  says: string;
}

/** How often the history exercised a guarantee, and where it was broken. */
export interface Finding {
  /** As in docs/guarantees.md: `A1`. */
  guarantee: string;
  verdict: 'held' | 'broken' | 'not exercised';
  /** How many cases of the history could have broken it. */
  cases: number;
  brokenCases: number;
  /** The first broken cases, each with the lines that prove it. */
  proofs: Proof[];
  /** Why the history cannot show whether the guarantee held; null if it can. */
  remark: string | null;
}

interface Proof {
  sentence: string;
  evidence: Evidence[];
}

/** Proofs that a finding keeps. The number of broken cases counts all. */
const PROOFS_MAX = 3;

/** Counts the cases of one guarantee. */
export class Tally {
  readonly guarantee: string;
  readonly #proofs: Proof[] = [];
  #cases = 0;
  #broken = 0;

  /** @param remark the condition under which a history exercises the guarantee. */
  constructor(
    guarantee: string,
    private readonly remark: string,
  ) {
    this.guarantee = guarantee;
  }

  held(): void {
    this.#cases += 1;
  }

  broken(sentence: string, ...evidence: Evidence[]): void {
    this.#cases += 1;
    this.#broken += 1;
    if (this.#proofs.length < PROOFS_MAX) this.#proofs.push({ sentence, evidence });
  }

  case(isHeld: boolean, sentence: string, ...evidence: Evidence[]): void {
    if (isHeld) this.held();
    else this.broken(sentence, ...evidence);
  }

  finding(): Finding {
    return {
      guarantee: this.guarantee,
      verdict: this.#broken > 0 ? 'broken' : this.#cases > 0 ? 'held' : 'not exercised',
      cases: this.#cases,
      brokenCases: this.#broken,
      proofs: this.#proofs,
      remark: this.#cases > 0 ? null : this.remark,
    };
  }
}

/** The text of a finding for people: one line, and for each proof the lines of the history. */
export function describeFinding({ guarantee, verdict, cases, brokenCases, proofs, remark }: Finding): string {
  const head =
    verdict === 'not exercised'
      ? `${guarantee} not exercised: ${remark}`
      : `${guarantee} ${verdict}: ${verdict === 'held' ? '' : `${brokenCases} of `}${cases} cases`;
  const lines = proofs.flatMap(({ sentence, evidence }) => [
    `  ${sentence}`,
    ...evidence.map(({ file, n, says }) => `    ${file} ${n}: ${says}`),
  ]);
  return [head, ...lines].join('\n');
}

/** The last line of a check. */
export function summaryOf(findings: readonly Finding[]): string {
  const part = (verdict: Finding['verdict']): string => {
    const names = findings.filter((finding) => finding.verdict === verdict).map(({ guarantee }) => guarantee);
    return `${verdict}: ${names.length}${verdict === 'held' || names.length === 0 ? '' : ` (${names.join(', ')})`}`;
  };
  return `${part('held')}, ${part('broken')}, ${part('not exercised')}`;
}
