'use client';
import {
  CallplaneError,
  type CallplaneErrorCode,
  type ConnectionTestStep,
  type QualityLevel,
  type TrackSource,
} from '@callplane/client-js';
import { createContext, useContext } from 'react';

const SOURCES: Record<TrackSource, string> = {
  microphone: 'microphone',
  camera: 'camera',
  screen: 'screen',
  screen_audio: 'sound of the screen',
};

const QUALITIES: Record<QualityLevel, string> = {
  good: '',
  fair: 'fair connection',
  poor: 'poor connection',
  lost: 'no media arrives',
};

/** Texts for the user by the code of an error. The others keep the message of the SDK. */
const ERRORS: Partial<Record<CallplaneErrorCode, string>> = {
  left: 'You left the call.',
  room_ended: 'The room has ended.',
  removed: 'You were removed from the room.',
  superseded: 'You joined from another tab or device. This one has left.',
  capacity: 'The room is full.',
  token_expired: 'Your pass for this room has expired.',
  connection_lost: 'The connection was lost for too long.',
  invalid_session: 'The connection was lost for too long.',
  unreachable: 'The server does not answer. Check your connection, and try again in a moment.',
  too_many_attempts: 'Too many attempts. Wait a few seconds, then join again.',
  drain: 'The server is restarting. Join again in a moment.',
  unavailable: 'The server is busy. Try again in a moment.',
  media_unavailable: 'Audio and video are not available at the moment. The call and the chat continue without them.',
  encryption_required: 'This call is encrypted. You need its key, for example the whole link.',
  permission_denied: 'You may not do that in this room.',
  rate_limited: 'That was too often. Wait a moment.',
};

/** Every text of the components. `<Call texts>` replaces some of them, or all in another language. */
export const TEXTS = {
  allow: (device: string) => `Allow the ${device} in the settings of the browser for this site.`,
  and: ' and ',
  away: 'The connection is interrupted. Reconnecting… Picture, sound or chat may wait.',
  back: 'Previous page',
  call: 'Call',
  camera: 'Camera',
  cameraOff: 'Camera off',
  chat: 'Chat',
  close: 'Close',
  connected: 'Connected',
  connecting: 'Connecting…',
  connectionTest: 'Test the connection',
  deviceGone: (device: string) => `The chosen ${device} is gone. The default one is used.`,
  encrypted: 'Encrypted end to end',
  encryptedAs: (digits: string) => `Compare with the others: ${digits}`,
  ended: 'Ended',
  enlarge: (name: string) => `Show large: ${name}`,
  errors: ERRORS,
  firstPage: 'First page',
  here: (count: number) => `${count.toLocaleString()} here`,
  join: 'Join',
  joinAgain: 'Join again',
  joined: (others: number) => `You joined. Others here: ${others}.`,
  joinedOther: (name: string) => `${name} joined`,
  joining: 'Joining…',
  leave: 'Leave',
  leftOther: (name: string) => `${name} left`,
  message: 'Message to everybody',
  messageFrom: (name: string, text: string) => `Message from ${name}: ${text}`,
  messages: 'Messages',
  microphone: 'Microphone',
  muted: 'muted',
  mute: 'Mute',
  next: 'Next page',
  notSent: (why: string) => `Not sent: ${why}`,
  page: (page: number, pages: string) => `${page} of ${pages}`,
  participants: 'Participants',
  paused: 'video paused: slow network',
  people: 'People',
  playSound: 'Play the sound',
  qualities: QUALITIES,
  reconnecting: 'Reconnecting…',
  recorded: 'The call is recorded.',
  recording: 'Recording',
  recordingEnded: 'The recording has ended',
  recordingStarted: 'The call is recorded from now on',
  screenOf: (name: string) => `${name}’s screen`,
  send: 'Send',
  server: 'The server',
  settings: 'Settings',
  share: 'Share screen',
  shares: (name: string) => `${name} shares a screen`,
  shortcuts: 'Use the keys M, V, S, C, P and L',
  someone: 'A participant who left',
  soundBlocked: 'The browser has blocked the sound.',
  sources: SOURCES,
  speaker: 'Speaker',
  startCamera: 'Start camera',
  stopCamera: 'Stop camera',
  stopShare: 'Stop sharing',
  takeOff: (name: string) => `Take off the stage: ${name}`,
  testFailed: 'A call does not work here.',
  testing: 'Testing the connection…',
  testPassed: 'A call works here.',
  /** Of each step of the connection test. */
  testStep: ({ message }: ConnectionTestStep) => message,
  unmute: 'Unmute',
  undecryptable: 'cannot be decrypted',
  undecryptableFrom: (names: string) => `Picture or sound cannot be decrypted: ${names}. Your keys may differ.`,
  unread: (count: number) => `${count} unread`,
  waiting: 'Waiting to be let in',
  waitingFor: (here: number) => `You will be let in soon. In the call: ${here.toLocaleString()}.`,
  waitingSoon: 'You will be let in soon.',
  watching: (count: number) => `${count.toLocaleString()} more are watching.`,
  withoutIt: 'You can join without it.',
  you: (name: string) => `${name} (you)`,
  yourCamera: 'Your camera',
  yourName: 'You',
  yourScreen: 'Your screen',
};

export type Texts = typeof TEXTS;

export const TextsContext = createContext<Texts>(TEXTS);

/** The texts of the nearest `<Call>` or `<PreJoin>`. */
export function useTexts(): Texts {
  return useContext(TextsContext);
}

/** A text for the user: of an error of the SDK by its code, else its message. */
export function readable(texts: Texts, error: unknown, ...sources: TrackSource[]): string {
  if (!(error instanceof CallplaneError)) return error instanceof Error ? error.message : String(error);
  return readableCode(texts, error, sources);
}

/** @param sources the devices that were requested */
export function readableCode(
  texts: Texts,
  { code, message }: Pick<CallplaneError, 'code' | 'message'>,
  sources: readonly TrackSource[] = [],
): string {
  if (code !== 'device_permission_denied') return texts.errors[code] ?? message;
  return texts.allow(sources.map((source) => texts.sources[source]).join(texts.and));
}
