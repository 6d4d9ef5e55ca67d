import { checkAcceptedWork } from './accepted-work.js';
import { checkAnswers } from './answers.js';
import { checkEvents } from './events.js';
import type { History } from './facts.js';
import type { Finding } from './finding.js';
import { readHistory } from './read-history.js';
import { checkRooms } from './rooms.js';

/**
 * Checks the history of a run against the guarantees of docs/guarantees.md that callers and receivers can see. Knows
 * the HTTP API, the messages of calls and the bodies of events, and nothing of the implementation.
 * @returns a finding for every guarantee, in the order of the document.
 */
export async function checkHistory(folder: string): Promise<Finding[]> {
  return checkHistoryLines(await readHistory(folder));
}

export function checkHistoryLines(history: History): Finding[] {
  return [...checkAcceptedWork(history), ...checkRooms(history), ...checkEvents(history), ...checkAnswers(history)];
}
