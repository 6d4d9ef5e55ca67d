import { environmentSubject, TURN_TTL_SECONDS } from '@callplane/core';
import { refusalOfToken } from '@callplane/db';
import type { ClientMessages, ServerMessages } from '@callplane/protocol';
import type { Client } from '../clients/client.js';
import { iceServersFor, type ArrivalDeps } from './arrival.js';
import { begin, REFUSALS } from './join.js';

/**
 * Answers with ICE servers for a token that could join, and closes. Writes nothing: the participant stays out of the
 * room, and a session that it has elsewhere continues. A full room is no reason to refuse.
 * @throws if a dependency does not answer
 */
export async function testLine(deps: ArrivalDeps, client: Client, request: ClientMessages['test']): Promise<void> {
  const begun = await begin(deps, client, request.token);
  if (begun === null) return;
  const { arrival, claims } = begun;
  const { tenant, participantId } = claims;
  const { arrivalLimits, database, turn } = deps;
  if (arrival.refusedByLimit('participant', arrivalLimits.waitMs(participantId))) return;
  if (arrival.refusedByLimit('participant', arrivalLimits.takeTest(participantId))) return;
  const refusal = await refusalOfToken(database.sql, claims);
  if (refusal !== null) {
    arrival.refuse(REFUSALS[refusal], `test refused: ${refusal}`);
    return;
  }
  const brief = { ...deps, turn: { ...turn, ttlSeconds: TURN_TTL_SECONDS.min } };
  const answer: ServerMessages['iceServers'] = {
    type: 'iceServers',
    ...(request.id === undefined ? {} : { replyTo: request.id }),
    ...iceServersFor(brief, environmentSubject(tenant.environmentId)),
  };
  client.sendText(JSON.stringify(answer));
  client.close('left', { cause: 'The test of the line is answered.' });
  arrival.log('tested');
}
