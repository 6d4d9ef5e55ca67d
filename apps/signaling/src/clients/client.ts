import { type ErrorDetail, boundDetails, boundMessage } from '@callplane/core';
import {
  type ClientMessage,
  type CloseReason,
  ERROR_CODES,
  type ErrorCode,
  type ServerMessage,
} from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';

/** A close reason, `lost` (the transport failed) or `elsewhere` (the session has another client). */
export type Ending = CloseReason | 'lost' | 'elsewhere';

/** The cause of a close with the reason `drain`. */
export const DRAINS = 'This gateway drains.';

export interface CloseDetails {
  /** For the log: why the gateway chose this reason. */
  cause: string;
  retryAfterSeconds?: number;
}

/**
 * A client of this gateway, over any transport. It joins or resumes a session, and ends once: by `close`, by `drop`, or
 * because its transport fails. The transport reports each end with `ClientHandler.onEnd`.
 */
export interface Client {
  /** For the log. */
  readonly id: string;
  /** Fields for its log lines. Handlers add what they learn about the client. */
  readonly logFields: Record<string, unknown>;
  /** Key of its address for the limit of failed arrivals. */
  readonly addressKey: string;
  /** Whether it has asked to leave. The request may still wait behind others. */
  readonly isLeaving: boolean;
  /**
   * Whether it keeps no connection to this gateway, as an encoder that publishes by WHIP. A session without a gateway is
   * continued by another one, unasked, and its record has what further requests of the client need.
   */
  readonly isHeadless?: boolean;
  /** The secret that resumes its session. Undefined: the join makes one, and the welcome carries it. */
  readonly resumeSecret?: string | undefined;
  /** How long stream messages should pause so that half of its burst of messages is free, in milliseconds. */
  readonly pauseMs: number;
  /** How it ended; null before. */
  readonly ending: Ending | null;
  /** Sends the first message of a session, before any other one. */
  sendWelcome(text: string): void;
  /** Sends a message that is already serialised, perhaps for several clients. */
  sendText(text: string): void;
  /** The same, unless it has read too little of the text before. @returns whether it has sent the text */
  sendPart(text: string): boolean;
  /** Tells the client the reason, and ends it. Idempotent: the first reason counts. */
  close(reason: CloseReason, details: CloseDetails): void;
  /** Ends it without a reason, because the session continues with another client. */
  drop(): void;
}

/** A message that does not match its schema. The sender gets the details, with the message's id. */
export interface InvalidMessage {
  type: string;
  id: string | undefined;
  details: ErrorDetail[];
}

/** Handles the messages of clients. A transport calls it. */
export interface ClientHandler {
  /** Handles one valid message. The next message waits for it. Must neither throw nor reject. */
  onMessage(client: Client, message: ClientMessage): void | Promise<void>;
  onInvalid(client: Client, invalid: InvalidMessage): void;
  /** Called once, as soon as the end is known. */
  onEnd(client: Client, ending: Ending): void;
}

/** Refusals of one client that get a log line of their own. The rest is counted in the line of its end. */
const REFUSALS_LOGGED_MAX = 20;
const FAILURES_LOGGED_MAX = 5;

export class RequestFailure extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string = ERROR_CODES[code],
    readonly details?: { path: string; message: string }[],
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'RequestFailure';
  }
}

/** Builds the answer to a refused request. It has at most 16 KiB, whatever the details hold. */
export function errorMessage(
  id: string | undefined,
  code: ErrorCode,
  message: string,
  details?: readonly ErrorDetail[],
): ServerMessage {
  return {
    type: 'error',
    ...(id === undefined ? {} : { replyTo: id }),
    code,
    message: boundMessage(message),
    ...(details === undefined ? {} : { details: boundDetails(details) }),
  };
}

export function logRefusal(
  logger: Logger,
  client: Client,
  refusal: {
    type: string;
    code: string;
    answer?: string;
    details?: readonly ErrorDetail[] | undefined;
    cause?: unknown;
  },
): void {
  const refused = (client.logFields['refused'] ??= {}) as Record<string, number>;
  refused[refusal.code] = (refused[refusal.code] ?? 0) + 1;
  if (Object.values(refused).reduce((sum, count) => sum + count, 0) > REFUSALS_LOGGED_MAX) return;
  const { cause, details = [], ...fields } = refusal;
  // Without paths, which may hold names that the client chose.
  const failures = [...new Set(details.map(({ message }) => boundMessage(message)))].slice(0, FAILURES_LOGGED_MAX);
  logger.info('request refused', {
    connectionId: client.id,
    sessionId: client.logFields['sessionId'],
    ...fields,
    ...(failures.length === 0 ? {} : { failures }),
    ...(cause === undefined ? {} : { error: cause }),
  });
}
