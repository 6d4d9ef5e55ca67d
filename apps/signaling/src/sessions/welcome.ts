import { issueTurnCredentials, presentRoom, type Clock, type TurnSettings } from '@callplane/core';
import type { SessionState } from '@callplane/db';
import type { ServerMessages } from '@callplane/protocol';
import type { Connection } from '../connections/connection.js';
import { participantText } from '../rooms/changes.js';
import { withParticipants } from '../rooms/roster.js';
import type { RoomInfo } from '../rooms/state.js';
import type { Session } from './session.js';
import type { Sessions } from './sessions.js';

export interface WelcomeDeps {
  clock: Clock;
  turn: TurnSettings;
  reconnectGraceSeconds: number;
  pingIntervalSeconds: number;
}

export interface WelcomeDetails {
  replyTo: string | undefined;
  resumed: boolean;
  resumeSecret: string;
  mediaContinued: boolean;
  /** The session as it was written. */
  own: SessionState;
}

/**
 * Sends the welcome, and makes the session a member of its room, so that every later change follows the welcome.
 * @returns false if the session is no longer in its room: it ends.
 */
export function welcome(
  deps: WelcomeDeps,
  sessions: Sessions,
  session: Session,
  connection: Connection,
  details: WelcomeDetails,
): boolean {
  const { room } = session;
  // Since the commit, the session may have been removed, superseded, resumed elsewhere, or ended with its room.
  const departure = room.departureOf(session);
  if (departure !== null || room.state === null) {
    sessions.onDeparture(session, departure ?? 'missing');
    return false;
  }
  session.onOwn(room.sessionOf(session.participantId) ?? details.own);
  session.media.readPlacement();
  const text = welcomeText(deps, session, room.state, details);
  room.add(session);
  session.dispatch('welcomed');
  connection.sendText(text);
  const speakers = room.speakers.present();
  if (speakers !== null) session.sendText(speakers);
  if (session.isConnected) session.media.onWelcomed();
  room.quality.welcome(session);
  return true;
}

export function iceServersFor(
  { turn, clock }: Pick<WelcomeDeps, 'turn' | 'clock'>,
  sessionId: string,
): Pick<ServerMessages['iceServers'], 'iceServers' | 'iceServersExpireAt'> {
  const issued = issueTurnCredentials(turn, sessionId, clock.now());
  return { iceServers: issued.iceServers, iceServersExpireAt: issued.expiresAt.toISOString() };
}

function welcomeText(deps: WelcomeDeps, session: Session, info: RoomInfo, details: WelcomeDetails): string {
  const { room, sessionId, participantId, permissions, media } = session;
  const { replyTo, resumed, resumeSecret, mediaContinued } = details;
  const own = participantText(room.sessionOf(participantId) ?? details.own);
  const { participants, ...page } = room.firstPage();
  const message = {
    type: 'welcome',
    ...(replyTo === undefined ? {} : { replyTo }),
    resumed,
    sessionId,
    resumeSecret,
    reconnectGraceSeconds: deps.reconnectGraceSeconds,
    room: presentRoom(info.tenant, info.room),
    permissions,
    ...iceServersFor(deps, sessionId),
    media: { state: media.state, continued: mediaContinued },
    pingIntervalSeconds: deps.pingIntervalSeconds,
    roster: { paged: info.rosterPaged, ...page },
  };
  const others = participants.filter((text) => text !== own);
  return `${withParticipants(message, others).slice(0, -1)},"participant":${own}}`;
}
