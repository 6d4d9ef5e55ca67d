/** `npm run typecheck` checks this file: every line after `@ts-expect-error` must not compile. */
import { expect, test } from '@jest/globals';
import { EVENT_TYPES, type EventType } from '@callplane/core';
import type { WebhookEvent, WebhookEventOf, WebhookEventType } from './index.js';

/** Has one line for each type, so that the compiler finds a missing or a superfluous one. */
const SUMMARIES: { [Type in WebhookEventType]: (event: WebhookEventOf<Type>) => string } = {
  'room.created': ({ data }) => data.room.name,
  'room.started': ({ data }) => data.room.status,
  'room.updated': ({ data }) => data.room.status,
  'room.ended': ({ data }) => data.room.endedAt ?? '',
  'participant.joined': ({ data }) => data.participant.name,
  'participant.waiting': ({ data }) => data.sessionId,
  'participant.admitted': ({ data }) => data.sessionId ?? '',
  'participant.left': ({ data }) => data.reason,
  'participant.updated': ({ data }) => data.permissions.join(),
  'track.published': ({ data }) => data.track.source,
  'track.unpublished': ({ data }) => data.track.kind,
  'track.muted': ({ data }) => data.track.trackId,
  'recording.started': ({ data }) => data.recording.startedAt,
  'recording.stopped': ({ data }) => data.recording.status,
  'recording.completed': ({ data }) => data.recording.files.map(({ sha256 }) => sha256).join(),
  'recording.failed': ({ data }) => data.recording.lastError?.message ?? '',
  'operation.failed': ({ data }) => data.operation.kind,
  'webhook.disabled': ({ data }) => data.webhook.url,
  'webhook.endpoint.failing': ({ data }) => data.webhook.failingSince ?? '',
  'webhook.endpoint.recovered': ({ data }) => data.failedSince,
  'webhook.test': ({ data }) => data.webhook.url,
};

/** Never called. */
export function refused(event: WebhookEvent): void {
  // @ts-expect-error there is no such type
  if (event.type === 'room.startd') console.log(event);
  // @ts-expect-error not every event has a room
  console.log(event.data.room.name);
  // @ts-expect-error an event of a room has no participant
  if (event.type === 'room.ended') console.log(event.data.participant.name);
}

test('the union has exactly the types that the service sends', () => {
  const types: EventType[] = Object.keys(SUMMARIES) as WebhookEventType[];
  expect(types.sort()).toEqual([...EVENT_TYPES].sort());
});
