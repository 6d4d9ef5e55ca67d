import type { History } from './facts.js';
import { requestEvidence, textIn } from './facts.js';
import { faultsOf } from './faults.js';
import { Tally, type Finding } from './finding.js';

/** Of the load balancer itself, when no instance could be reached or answered. */
const OF_THE_LOAD_BALANCER = [502, 504];

/** What every answer and every app has to keep. */
export function checkAnswers(history: History): Finding[] {
  return [answered(history), running(history)].map((tally) => tally.finding());
}

function answered(history: History): Tally {
  const tally = new Tally('P1', 'no request was answered');
  const faults = faultsOf(history);
  for (const request of history.requests) {
    const { status, answer, retryAfter, startMs, endMs } = request;
    if (status === null) continue;
    const code = textIn(answer, 'error', 'code');
    if (status >= 400 && (code === null || textIn(answer, 'error', 'requestId') === null)) {
      tally.broken(`An answer ${status} has no code or no request id.`, requestEvidence(request));
      continue;
    }
    const isFault = OF_THE_LOAD_BALANCER.includes(status) && faults.overlap(startMs - faults.recoveryMs, endMs);
    const isAnnounced = code === 'UNAVAILABLE' && retryAfter !== null && (status === 503 || isFault);
    const sentence = `An answer ${status} (${code}) is not one of an outage, or its Retry-After is missing.`;
    tally.case(status < 500 || isAnnounced, sentence, requestEvidence(request));
  }
  return tally;
}

/** The harness marks each app that ends although the nemesis neither killed nor stopped it. */
function running({ marks, run }: History): Tally {
  const tally = new Tally('P2', 'the apps of a deployment are not watched');
  if (!run.hasNemesis) return tally;
  const failures = marks.filter(({ mark }) => mark === 'app failed');
  if (failures.length === 0) tally.held();
  for (const { n, detail, atMs } of failures) {
    const says = `${String(detail['app'])} at ${Math.round(atMs)} ms: ${String(detail['message'])}`;
    tally.broken(`${String(detail['app'])} failed, or ended by itself.`, { file: 'marks', n, says });
  }
  return tally;
}
