import type { Tenant } from '../api-keys/api-key.js';
import { presentOperation, type OperationState } from '../operations/operation.js';
import {
  presentParticipant,
  presentTrack,
  type OtherParticipant,
  type ParticipantState,
  type Permission,
  type SessionEndReason,
  type TrackIdentity,
} from '../participants/participant.js';
import { presentRecording, type RecordingEventType, type RecordingState } from '../recordings/recording.js';
import { presentRoom, presentLiveRoom, type RoomState } from '../rooms/room.js';
import { presentWebhookEndpoint, type WebhookEndpointState } from '../webhooks/endpoint.presenter.js';
import type { EventType } from './event-types.js';

/** Everything except the id and the sequence, which an event gets when it is written. */
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

/** Replaces a participant's personal data. A name needs at least one character. */
export const ERASED_PARTICIPANT = { name: 'Erased', externalId: null, metadata: {} } as const;

/** An erased event is never sent again, so no receiver sees two different bodies of it. */
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

/** The participant and its session in the other room of a move. */
export interface OtherSession extends OtherParticipant {
  sessionId: string;
}

export interface EndedSession extends SessionSubject {
  tracks: TrackIdentity[];
  movedTo?: OtherSession;
  /** Whether it was in the lobby. */
  waiting: boolean;
}

function roomEvent(
  type: EventType,
  { tenant, room, now }: RoomSubject,
  data: NewEvent['data'],
  participantId: string | null = null,
): NewEvent {
  return { type, tenant, roomId: room.id, participantId, createdAt: now, data };
}

function sessionEvent(
  type: EventType,
  subject: RoomSubject,
  { sessionId, participant }: { sessionId: string | null; participant: ParticipantState },
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

export function roomStarted(subject: RoomSubject, participantCount: number): NewEvent {
  return ofRoom('room.started', subject, participantCount);
}

export function roomUpdated(subject: RoomSubject, participantCount: number): NewEvent {
  return ofRoom('room.updated', subject, participantCount);
}

export function roomEnded(subject: RoomSubject): NewEvent {
  return ofRoom('room.ended', subject, 0);
}

function ofRoom(type: EventType, subject: RoomSubject, participantCount: number): NewEvent {
  return roomEvent(type, subject, { room: presentLiveRoom(subject.tenant, { ...subject.room, participantCount }) });
}

export function participantJoined(subject: RoomSubject, session: SessionSubject, movedFrom?: OtherSession): NewEvent {
  return sessionEvent('participant.joined', subject, session, movedFrom === undefined ? {} : { movedFrom });
}

export function participantWaiting(subject: RoomSubject, session: SessionSubject): NewEvent {
  return sessionEvent('participant.waiting', subject, session);
}

/** A participant may be admitted before it joins. */
export function participantAdmitted(
  subject: RoomSubject,
  session: { participant: ParticipantState; sessionId: string | null },
): NewEvent {
  return sessionEvent('participant.admitted', subject, session);
}

/** All events of a session that has ended: `track.unpublished` for each of its tracks, then `participant.left`. */
export function participantLeft(subject: RoomSubject, ended: EndedSession, reason: SessionEndReason): NewEvent[] {
  return [
    ...ended.tracks.map((track) => trackEvent('track.unpublished', subject, ended, track)),
    sessionEvent('participant.left', subject, ended, {
      reason,
      ...(ended.movedTo === undefined ? {} : { movedTo: ended.movedTo }),
      ...(ended.waiting ? { waiting: true } : {}),
    }),
  ];
}

/** A participant may be changed before it joins and after it left. `permissions` are all from now on. */
export function participantUpdated(
  subject: RoomSubject,
  session: { participant: ParticipantState; sessionId: string | null },
  permissions: readonly Permission[],
): NewEvent {
  return sessionEvent('participant.updated', subject, session, { permissions });
}

/** Mutes by the participant itself have no event. */
export function trackEvent(
  type: 'track.published' | 'track.unpublished' | 'track.muted',
  subject: RoomSubject,
  session: SessionSubject,
  track: TrackIdentity,
): NewEvent {
  return sessionEvent(type, subject, session, { track: presentTrack(track) });
}

export function recordingEvent(type: RecordingEventType, subject: RoomSubject, recording: RecordingState): NewEvent {
  const data = { room: presentRoom(subject.tenant, subject.room), recording: presentRecording(recording) };
  return roomEvent(type, subject, data);
}

/**
 * The last attempt of an operation's run has failed.
 * @param participant the participant of a removal or a move; null for the end of a room.
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

export function webhookRecovered(
  tenant: Tenant,
  endpoint: WebhookEndpointState,
  failedSince: Date,
  now: Date,
): NewEvent {
  const event = endpointEvent('webhook.endpoint.recovered', tenant, endpoint, now);
  return { ...event, data: { ...event.data, failedSince: failedSince.toISOString() } };
}

/** Endpoints belong to no room, so their events have no sequence. */
export function endpointEvent(type: EventType, tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  const data = { webhook: presentWebhookEndpoint(endpoint) };
  return { type, tenant, roomId: null, participantId: null, createdAt: now, data };
}
