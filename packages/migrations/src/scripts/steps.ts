import { statementsOf } from './statements.js';

/** A statement that runs outside of a transaction, blocks neither reads nor writes, and can be repeated. */
export interface Step {
  readonly kind: 'build index' | 'drop index' | 'validate constraint';
  readonly statement: string;
  /** The index or constraint as it is written in the statement, with its quotes. */
  readonly name: string;
}

const NAME = String.raw`((?:"[^"]+"|\w+)(?:\.(?:"[^"]+"|\w+))?)`;
const STEPS: readonly (readonly [Step['kind'], RegExp])[] = [
  ['build index', new RegExp(String.raw`^CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?!IF\s)${NAME}\s+ON\s`, 'i')],
  ['drop index', new RegExp(String.raw`^DROP\s+INDEX\s+CONCURRENTLY\s+(?!IF\s)${NAME}$`, 'i')],
  [
    'validate constraint',
    new RegExp(String.raw`^ALTER\s+TABLE\s+(?:"[^"]+"|\w+)\s+VALIDATE\s+CONSTRAINT\s+${NAME}$`, 'i'),
  ],
];

/**
 * The steps of a migration script; null if it is to run as one transaction.
 * @throws Error when a script has a step beside another statement.
 */
export function stepsOf(script: string): Step[] | null {
  const statements = statementsOf(script);
  const steps = statements.map(stepOf);
  if (steps.every((step) => step === null)) return null;
  const other = statements.find((_, index) => steps[index] === null);
  if (other === undefined) return steps as Step[];
  const shown = other.replaceAll(/\s+/g, ' ').slice(0, 120);
  throw new Error(`a migration with concurrent steps must not contain other statements: ${shown}`);
}

function stepOf(statement: string): Step | null {
  for (const [kind, pattern] of STEPS) {
    const name = pattern.exec(statement)?.[1];
    if (name !== undefined) return { kind, statement, name };
  }
  return null;
}
