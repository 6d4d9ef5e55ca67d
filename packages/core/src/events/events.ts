import type { Tenant } from '../api-keys/api-key.js';
import { presentOperation, type OperationState } from '../operations/operation.js';
import {
  presentParticipant,
  presentTrack,
  type ParticipantState,
  type Permission,
  type SessionEndReason,
  type TrackIdentity,
} from '../participants/participant.js';
import { presentRoom, presentLiveRoom, type RoomState } from '../rooms/room.js';
import { presentWebhookEndpoint, type WebhookEndpointState } from '../webhooks/endpoint.presenter.js';
import type { EventType } from './event.js';

/**
 * A finished event: everything except its id and its sequence, which it gets when it is written. Only the builders
 * below decide its content.
 */
export interface NewEvent {
  readonly type: EventType;
  readonly tenant: Tenant;
  /** Null for events that belong to no room; they have no sequence. */
  readonly roomId: string | null;
  /** The participant whose personal data `data` contains. An erasure finds the event by it. */
  readonly participantId: string | null;
  readonly createdAt: Date;
  /** The resources of the event by name, each as the API returns it. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Serialises an event, once: every delivery, retry and replay sends these bytes.
 * @param sequence strictly increasing and gap-free per room; null for events that belong to no room.
 */
export function serialiseEvent(
  { type, tenant, createdAt, data }: NewEvent,
  { id, sequence }: { id: string; sequence: number | null },
): string {
  return JSON.stringify({
    id,
    type,
    apiVersion: 'v1',
    createdAt: createdAt.toISOString(),
    projectId: tenant.projectId,
    environmentId: tenant.environmentId,
    sequence,
    data,
  });
}

/** Name of a participant whose data was erased; not empty, because a name needs at least one character. */
const ERASED_PARTICIPANT_NAME = 'Erased';

/** Replaces a participant's personal data. */
export const ERASED_PARTICIPANT = { name: ERASED_PARTICIPANT_NAME, externalId: null, metadata: {} } as const;

/**
 * Removes the personal data of its participant from the JSON text of an event, and adds `erasedAt` for readers. An
 * erased event is never sent again, so no receiver sees two different bodies of it.
 */
export function eraseEventBody(body: string, erasedAt: Date): string {
  const event = JSON.parse(body) as { data: { participant?: object } };
  if (event.data.participant !== undefined) Object.assign(event.data.participant, ERASED_PARTICIPANT);
  return JSON.stringify({ ...event, erasedAt: erasedAt.toISOString() });
}

/** The room of an event in its state after the change, and the time of the change. */
interface RoomSubject {
  readonly tenant: Tenant;
  readonly room: RoomState;
  readonly now: Date;
}

/** The session and participant of an event, in their state after the change. */
interface SessionSubject {
  sessionId: string;
  participant: ParticipantState;
}

/** A session that was just ended, with the tracks that it was publishing. */
export interface EndedSession extends SessionSubject {
  tracks: TrackIdentity[];
}

/** An event of a room. */
function roomEvent(
  type: EventType,
  { tenant, room, now }: RoomSubject,
  data: NewEvent['data'],
  participantId: string | null = null,
): NewEvent {
  return { type, tenant, roomId: room.id, participantId, createdAt: now, data };
}

/** An event of a session: room, participant and session id, followed by the fields of its type. */
function sessionEvent(
  type: EventType,
  subject: RoomSubject,
  { sessionId, participant }: SessionSubject,
  fields: NewEvent['data'] = {},
): NewEvent {
  const data = {
    room: presentRoom(subject.tenant, subject.room),
    participant: presentParticipant(participant, subject.now),
    sessionId,
    ...fields,
  };
  return roomEvent(type, subject, data, participant.id);
}

export function roomCreated(tenant: Tenant, room: RoomState): NewEvent {
  return ofRoom('room.created', { tenant, room, now: room.createdAt }, 0);
}

/** The first participants have joined. */
export function roomStarted(subject: RoomSubject, participantCount: number): NewEvent {
  return ofRoom('room.started', subject, participantCount);
}

/** The server has changed the name, the metadata, the capacity or the time-out of the room. */
export function roomUpdated(subject: RoomSubject, participantCount: number): NewEvent {
  return ofRoom('room.updated', subject, participantCount);
}

/** The clean-up of the room is complete. */
export function roomEnded(subject: RoomSubject): NewEvent {
  return ofRoom('room.ended', subject, 0);
}

function ofRoom(type: EventType, subject: RoomSubject, participantCount: number): NewEvent {
  return roomEvent(type, subject, { room: presentLiveRoom(subject.tenant, { ...subject.room, participantCount }) });
}

export function participantJoined(subject: RoomSubject, session: SessionSubject): NewEvent {
  return sessionEvent('participant.joined', subject, session);
}

/** All events of a session that has ended: `track.unpublished` for each of its tracks, then `participant.left`. */
export function participantLeft(subject: RoomSubject, ended: EndedSession, reason: SessionEndReason): NewEvent[] {
  return [
    ...ended.tracks.map((track) => trackUnpublished(subject, ended, track)),
    sessionEvent('participant.left', subject, ended, { reason }),
  ];
}

/**
 * The server has changed a participant. A participant may be changed before it joins and after it left.
 * @param sessionId the participant's live session, if it has one.
 * @param permissions all permissions of the participant from now on.
 */
export function participantUpdated(
  subject: RoomSubject,
  {
    participant,
    sessionId,
    permissions,
  }: { participant: ParticipantState; sessionId: string | null; permissions: readonly Permission[] },
): NewEvent {
  const data = {
    room: presentRoom(subject.tenant, subject.room),
    participant: presentParticipant(participant, subject.now),
    sessionId,
    permissions,
  };
  return roomEvent('participant.updated', subject, data, participant.id);
}

export function trackPublished(subject: RoomSubject, session: SessionSubject, track: TrackIdentity): NewEvent {
  return sessionEvent('track.published', subject, session, { track: presentTrack(track) });
}

export function trackUnpublished(subject: RoomSubject, session: SessionSubject, track: TrackIdentity): NewEvent {
  return sessionEvent('track.unpublished', subject, session, { track: presentTrack(track) });
}

/** The server has muted a track. Mutes by the participant itself have no event. */
export function trackMuted(subject: RoomSubject, session: SessionSubject, track: TrackIdentity): NewEvent {
  return sessionEvent('track.muted', subject, session, { track: presentTrack(track) });
}

/**
 * The last attempt of an operation's run has failed.
 * @param participant the participant of a removal; null for the end of a room.
 */
export function operationFailed(
  subject: RoomSubject,
  operation: OperationState,
  participant: ParticipantState | null,
): NewEvent {
  const data = { operation: presentOperation(operation), room: presentRoom(subject.tenant, subject.room) };
  if (participant === null) return roomEvent('operation.failed', subject, data);
  const shown = presentParticipant(participant, subject.now);
  return roomEvent('operation.failed', subject, { ...data, participant: shown }, participant.id);
}

/** The service or an operator has disabled an endpoint. */
export function webhookDisabled(tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  return endpointEvent('webhook.disabled', tenant, endpoint, now);
}

/** All attempts of an endpoint have failed for a while, since `endpoint.failingSince`. */
export function webhookFailing(tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  return endpointEvent('webhook.endpoint.failing', tenant, endpoint, now);
}

/** An attempt of a failing endpoint has succeeded. */
export function webhookRecovered(
  tenant: Tenant,
  endpoint: WebhookEndpointState,
  failedSince: Date,
  now: Date,
): NewEvent {
  const event = endpointEvent('webhook.endpoint.recovered', tenant, endpoint, now);
  return { ...event, data: { ...event.data, failedSince: failedSince.toISOString() } };
}

/** The owner of an endpoint asked for a test delivery. */
export function webhookTest(tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  return endpointEvent('webhook.test', tenant, endpoint, now);
}

/** Endpoints belong to no room, so their events have no sequence. */
function endpointEvent(type: EventType, tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  const data = { webhook: presentWebhookEndpoint(endpoint) };
  return { type, tenant, roomId: null, participantId: null, createdAt: now, data };
}
