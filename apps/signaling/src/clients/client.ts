import type { ErrorDetail } from '@callplane/core';
import type { ClientMessage, CloseReason } from '@callplane/protocol';

/** A close reason, `lost` (the transport failed) or `moved` (the session has another client). */
export type Ending = CloseReason | 'lost' | 'moved';

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
  /** How it ended; null before. */
  readonly ending: Ending | null;
  /** Sends the first message of a session, before any other one. */
  sendWelcome(text: string): void;
  /** Sends a message that is already serialised, perhaps for several clients. */
  sendText(text: string): void;
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
