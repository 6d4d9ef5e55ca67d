import type { InvariantResult } from '@callplane/db';
import { failure, ok, warning, type Finding } from './findings.js';

const ADVICE =
  'This is a defect of Callplane, or of a restored or edited database: keep these rows and the logs of their time, and report them (docs/guarantees.md).';

export function checkInvariant({ invariant, checked, broken, ids }: InvariantResult): Finding {
  const { name, sentence, subject } = invariant;
  const check = `invariant ${name}`;
  if (checked === null) {
    return warning(check, 'not checked: the query took too long', 'Repeat it with fewer rows (--rows).');
  }
  if (broken === 0) return ok(check, `holds for the newest ${checked} ${subject}`);
  const more = broken > ids.length ? ` and ${broken - ids.length} more` : '';
  return failure(check, `broken by ${ids.join(', ')}${more}: ${sentence}`, ADVICE);
}
