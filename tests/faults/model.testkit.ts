import type { TestApp } from '@callplane/testing';
import { readSource } from '../../packages/dev/src/model/spec.js';
import { readTraces, TraceValidator, type Refusal } from '../../packages/dev/src/model/trace.js';

/** Workers log their transitions with this setting. */
export const WITH_TRANSITIONS = { LOG_LEVEL: 'debug' };

/**
 * Compares what the workers of a test file did with specs/leases.qnt.
 * @param workers all of the file, also those that have stopped.
 * @returns the number of rows that were compared, and the lines that the specification does not allow.
 */
export function compareWithModel(workers: readonly TestApp[]): { rows: number; refused: Refusal[] } {
  const source = readSource('leases.qnt');
  const killed = workers.filter(({ logs }) => !logs.some(({ message }) => message === 'process stopped')).length;
  const validators = {
    operation: new TraceValidator(source.open('realOperation'), { cutOffMax: killed }),
    delivery: new TraceValidator(source.open('realDelivery'), { cutOffMax: killed }),
  };
  const traces = readTraces(workers.flatMap(({ logs }) => logs));
  return { rows: traces.length, refused: traces.flatMap((trace) => validators[trace.subject].validate(trace) ?? []) };
}
