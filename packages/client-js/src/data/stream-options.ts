import { CallplaneError } from '../errors.js';

/** The bytes of a stream. Text is sent as UTF-8. */
export type StreamSource = Blob | BufferSource | string | ReadableStream<Uint8Array | string>;

export interface StreamProgress {
  /** Bytes that have arrived at every recipient; at the receiver: here. */
  bytes: number;
  /** Undefined if the sender does not know it. */
  size: number | undefined;
}

export interface StreamOptions {
  /** Participant ids, at most 100. Without it, all other participants; in a paged room the ones that are shown. */
  to?: readonly string[];
  /** Default: the name of a `File`. */
  name?: string;
  /** Default: the type of a `Blob`. */
  contentType?: string;
  /** Bytes of a `ReadableStream`, if you know it. */
  size?: number;
  attributes?: Readonly<Record<string, string>>;
  onProgress?: (progress: StreamProgress) => void;
  /** Gives the stream up, for all recipients. */
  signal?: AbortSignal;
}

export interface StreamResult {
  /** The participants that have received everything. */
  delivered: string[];
  /** Why the others have not. */
  failed: ReadonlyMap<string, CallplaneError>;
}

export const STREAM_BYTES_MAX = 16 * 1024 * 1024;

export function tooLarge(bytes: number): CallplaneError {
  return new CallplaneError('payload_too_large', `A stream has at most ${STREAM_BYTES_MAX} bytes, not ${bytes}.`);
}

export function recipientGone(): CallplaneError {
  return new CallplaneError('recipient_gone', 'The participant is not in the room, or has left it.');
}
