import {
  cutToSchema,
  describeSchemaFailures,
  ERROR_DETAILS_MAX,
  parseJsonBody,
  bucketTimes,
  TokenBucket,
  unknownName,
  type BucketSettings,
  type ErrorDetail,
} from '@callplane/core';
import { CLIENT_MESSAGES, PROTOCOL_LIMITS, type ClientMessage, type CloseReason } from '@callplane/protocol';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { InvalidMessage } from '../clients/client.js';
import { isFirstMessage } from '../clients/first-message.js';

/** Rate-limit cost of a message: one token, and another one for each of these bytes, because parsing costs by byte. */
const BYTES_PER_TOKEN = 16 * 1024;
/** Rate-limit cost of an invalid message, in tokens. Validating it is more expensive than validating a valid one. */
const INVALID_MESSAGE_TOKENS = 10;

export type ReceivedFrame =
  | { is: 'message'; message: ClientMessage; chars: number }
  | ({ is: 'invalid' } & InvalidMessage)
  /** The connection has to be closed. `cause` is for the log. */
  | { is: 'violation'; reason: CloseReason; cause: string };

const ajv = new Ajv2020({
  allErrors: true,
  // Errors then carry the schema, which says what an array must contain, and which fields an object may have.
  verbose: true,
  strict: true,
  strictTypes: false,
  ownProperties: true,
  // A test checks the schemas. Ajv's own check would compile the schema of schemas, in 0.1 s of each start (measured).
  validateSchema: false,
  meta: false,
});
interface MessageSchema {
  schema: object;
  validate: ValidateFunction<ClientMessage>;
}
const SCHEMAS = new Map<string, MessageSchema>(
  Object.entries(CLIENT_MESSAGES).map(([type, schema]) => [
    type,
    { schema, validate: ajv.compile<ClientMessage>(schema) },
  ]),
);

/** Parses and validates one frame. Never throws. */
export function readMessage(text: string): ReceivedFrame {
  const parsed = parseJsonBody(text);
  if (!parsed.ok) return violation('protocol_error', `The frame is not JSON: ${parsed.problem}.`);
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return violation('protocol_error', 'The frame is not a JSON object.');
  }
  const { type, id: givenId } = value as { type?: unknown; id?: unknown };
  if (typeof type !== 'string') return violation('protocol_error', 'The message has no type.');
  const id = typeof givenId === 'string' && givenId.length >= 1 && givenId.length <= 64 ? givenId : undefined;
  const invalid = (details: ErrorDetail[]): ReceivedFrame => ({
    is: 'invalid',
    type: SCHEMAS.has(type) ? type : 'unknown',
    id,
    details,
  });
  const known = SCHEMAS.get(type);
  if (known === undefined)
    return invalid([{ path: 'type', message: unknownName('message type', type, CLIENT_MESSAGES) }]);
  const unstorable = parsed.details.map(({ path, message }) => ({ path: path.replace(/^body\.?/, ''), message }));
  const { schema, validate } = known;
  const checked: unknown = cutToSchema(schema, value);
  if (validate(checked)) {
    return unstorable.length === 0 ? { is: 'message', message: checked, chars: text.length } : invalid(unstorable);
  }
  const failures = describeSchemaFailures('', validate.errors ?? []);
  return invalid([...failures, ...unstorable].slice(0, ERROR_DETAILS_MAX));
}

export class FrameReader {
  frames = 0;
  bytes = 0;
  readonly #bucket: TokenBucket;

  constructor(bucket: BucketSettings) {
    this.#bucket = new TokenBucket(bucketTimes(bucket));
  }

  get pauseMs(): number {
    return this.#bucket.halfFullInMs(performance.now());
  }

  ping(): boolean {
    return this.#bucket.take(performance.now());
  }

  /** @param isFirst whether this is the connection's first message, which {@link isFirstMessage} limits */
  read(data: Buffer, isBinary: boolean, isFirst: boolean): ReceivedFrame {
    const bytes = data.length;
    this.frames += 1;
    this.bytes += bytes;
    if (!this.#take(1 + Math.floor(bytes / BYTES_PER_TOKEN))) return violation('rate_limited', 'Too many messages.');
    // The sender of the first frame is not authenticated, so only a small one is parsed: a token has at most 8 KiB.
    const bytesMax = isFirst ? PROTOCOL_LIMITS.firstFrameBytesMax : PROTOCOL_LIMITS.frameBytesMax;
    if (bytes > bytesMax) return violation('message_too_large', `The frame has ${bytes} bytes.`);
    if (isBinary) return violation('protocol_error', 'The frame is binary.');
    const read = readMessage(data.toString());
    if (read.is === 'invalid') this.#take(INVALID_MESSAGE_TOKENS - 1);
    if (isFirst && read.is === 'message' && !isFirstMessage(read.message)) {
      return violation('protocol_error', 'The first message is none of join, resume and test.');
    }
    return read;
  }

  #take(count: number): boolean {
    const nowMs = performance.now();
    for (let taken = 0; taken < count; taken++) if (!this.#bucket.take(nowMs)) return false;
    return true;
  }
}

function violation(reason: CloseReason, cause: string): ReceivedFrame {
  return { is: 'violation', reason, cause };
}
