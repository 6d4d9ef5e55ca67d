import { MediaError, type MediaErrorCode } from '../media-node.js';

/** Error codes of Janus 1.1.2: of its core (src/apierror.h) and of its VideoRoom plug-in (janus_videoroom.c). */
export const JANUS = {
  joinFirst: 424,
  alreadyJoined: 425,
  noSuchRoom: 426,
  roomExists: 427,
  noSuchFeed: 428,
  invalidSdpType: 431,
  notPublished: 435,
  idExists: 436,
  invalidSdp: 437,
  sessionNotFound: 458,
  handleNotFound: 459,
  jsepUnknownType: 464,
  jsepInvalidSdp: 465,
  unexpectedAnswer: 469,
  webrtcState: 471,
} as const;

const MEANING: Readonly<Record<number, MediaErrorCode>> = {
  [JANUS.joinFirst]: 'closed',
  [JANUS.alreadyJoined]: 'closed',
  [JANUS.noSuchRoom]: 'no_such_room',
  [JANUS.noSuchFeed]: 'no_such_feed',
  [JANUS.invalidSdpType]: 'invalid_sdp',
  [JANUS.idExists]: 'feed_exists',
  [JANUS.invalidSdp]: 'invalid_sdp',
  [JANUS.sessionNotFound]: 'unavailable',
  [JANUS.handleNotFound]: 'closed',
  [JANUS.jsepUnknownType]: 'invalid_sdp',
  [JANUS.jsepInvalidSdp]: 'invalid_sdp',
  [JANUS.unexpectedAnswer]: 'invalid_sdp',
  [JANUS.webrtcState]: 'closed',
};

/** An error that Janus answered; `janusCode` is its number. The message quotes Janus, which names only ids. */
export class JanusError extends MediaError {
  constructor(
    request: string,
    readonly janusCode: number,
    reason: string,
  ) {
    super(MEANING[janusCode] ?? 'refused', `Janus refused "${request}" (${janusCode}: ${reason})`);
  }
}

/** Whether `error` is a JanusError with one of `codes`. */
export function isJanusError(error: unknown, ...codes: number[]): boolean {
  return error instanceof JanusError && codes.includes(error.janusCode);
}
