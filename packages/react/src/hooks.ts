'use client';
import type {
  CallEncryption,
  CallplaneError,
  CallSnapshot,
  CloseInfo,
  ConnectionState,
  Participant,
  QualityLevel,
} from '@callplane/client-js';
import { useCallback, useContext, useMemo } from 'react';
import { type Companion, companionOf, type Message, type RosterState } from './companion.js';
import { JoiningContext, useCall, useCallState } from './context.js';
import { Store, useStore } from './store.js';

/** The other participants; in a paged room the shown ones. Renders at each change of any of them. */
export function useParticipants(): readonly Participant[];
/** A value of each of the other participants, such as their ids. Renders when one of the values changes. */
export function useParticipants<T>(select: (participant: Participant) => T): readonly T[];
export function useParticipants(select: (participant: Participant) => unknown = (one) => one): readonly unknown[] {
  return useCallState(({ participants }) => [...participants.values()].map(select));
}

/** One of the other participants; undefined once it has left. */
export function useParticipant(participantId: string): Participant | undefined {
  return useCallState(({ participants }) => participants.get(participantId));
}

/** The participants who speak at this moment, the loudest first. */
export function useActiveSpeakers(): readonly Participant[] {
  return useCallState(({ activeSpeakers }) => activeSpeakers);
}

export interface Connection {
  state: ConnectionState;
  mediaState: CallSnapshot['mediaState'];
  /** Why the call is over. */
  closeInfo: CloseInfo | undefined;
  /** Why the room could not be joined. */
  error: CallplaneError | undefined;
  /** Whether the browser blocks sound until `startAudio` runs in a click handler. */
  isAudioBlocked: boolean;
  startAudio: () => void;
}

export function useConnectionState(): Connection {
  const { call, error } = useContext(JoiningContext);
  const [state, mediaState, closeInfo, isAudioBlocked] = useCallState(
    (now) => [now.state, now.mediaState, now.closeInfo, now.isAudioBlocked] as const,
  );
  const startAudio = useCallback(() => void call?.startAudio().catch(() => undefined), [call]);
  return { state: error === undefined ? state : 'closed', mediaState, closeInfo, error, isAudioBlocked, startAudio };
}

/** Whether you are in the lobby, also while its connection is interrupted. */
export function useWaiting(): boolean {
  // In the room, there is always `room:join`.
  return useCallState(({ sessionId, permissions }) => sessionId !== undefined && permissions.length === 0);
}

/** How well a participant sends and receives; without an id, you. Undefined until media has flowed. */
export function useQuality(participantId?: string): QualityLevel | undefined {
  return useCallState(({ connectionQuality, participants }) =>
    participantId === undefined ? connectionQuality : participants.get(participantId)?.connectionQuality,
  );
}

/** Since when the room is recorded; undefined while it is not. Show it to everyone in the room. */
export function useRecording(): { isRecording: boolean; since: Date | undefined } {
  const since = useCallState(({ recordingSince }) => recordingSince);
  return useMemo(() => ({ isRecording: since !== null, since: since === null ? undefined : new Date(since) }), [since]);
}

/** The key of the call: its `fingerprint`, `rotate()` and `ratchet()`; undefined if the call is not encrypted. */
export function useEncryption(): CallEncryption | undefined {
  return useCallState(({ encryption }) => encryption);
}

/** Selects a store of the call's companion; `empty` before there is a call. */
export function useCompanion<T>(select: (companion: Companion) => Store<T>, empty: Store<T>): T {
  const call = useCall();
  return useStore(call === undefined ? empty : select(companionOf(call)));
}

const NO_MESSAGES = new Store<readonly Message[]>([]);

/**
 * The newest 500 messages since the call was joined, the oldest first, also your own of `send`.
 * @returns `send` rejects with a CallplaneError, such as `permission_denied`.
 */
export function useMessages(): {
  messages: readonly Message[];
  maySend: boolean;
  send: (data: unknown, options?: { to?: string[] }) => Promise<void>;
} {
  const call = useCall();
  const messages = useCompanion((companion) => companion.messages, NO_MESSAGES);
  const maySend = useCallState(({ permissions }) => permissions.includes('messages:send'));
  const send = useCallback(
    async (data: unknown, options?: { to?: string[] }) => {
      if (call !== undefined) await companionOf(call).send(data, options);
    },
    [call],
  );
  return { messages, maySend, send };
}

const NO_ROSTER = new Store<RosterState>({ participants: [], hasNext: false });

/** The pages of a room that is too large to list everyone: `isPaged` is false in a small one. */
export function useRosterPages(): RosterState & { isPaged: boolean; next: () => Promise<void> } {
  const call = useCall();
  const isPaged = useCallState(({ isRosterPaged }) => isRosterPaged);
  const roster = useCompanion((companion) => companion.roster, NO_ROSTER);
  const next = useCallback(async () => call && companionOf(call).nextPage(), [call]);
  return { ...roster, isPaged, hasNext: isPaged && roster.hasNext, next };
}
