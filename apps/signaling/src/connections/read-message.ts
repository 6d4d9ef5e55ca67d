import {
  cutToSchema,
  describeSchemaFailure,
  ERROR_DETAILS_MAX,
  parseJsonBody,
  type ErrorDetail,
} from '@callplane/core';
import { CLIENT_MESSAGES, type ClientMessage } from '@callplane/protocol';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

/** A message that does not match its schema. */
export interface InvalidMessage {
  /** A type of the protocol, or `unknown`. */
  type: string;
  id: string | undefined;
  details: ErrorDetail[];
}

export type ReadMessage =
  | { ok: true; message: ClientMessage }
  /** Not a message: not JSON, or not an object with a `type`. */
  | { ok: false; protocolError: string }
  /** The sender gets the details, with the message's id. */
  | ({ ok: false; protocolError: null } & InvalidMessage);

const ajv = new Ajv2020({
  allErrors: true,
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
export function readMessage(text: string): ReadMessage {
  const parsed = parseJsonBody(text);
  if (!parsed.ok) return { ok: false, protocolError: 'The frame is not JSON.' };
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { ok: false, protocolError: 'The frame is not a JSON object.' };
  }
  const { type, id: givenId } = value as { type?: unknown; id?: unknown };
  if (typeof type !== 'string') return { ok: false, protocolError: 'The message has no type.' };
  const id = typeof givenId === 'string' && givenId.length >= 1 && givenId.length <= 64 ? givenId : undefined;
  const invalid = (details: ErrorDetail[]): ReadMessage => ({
    ok: false,
    protocolError: null,
    type: SCHEMAS.has(type) ? type : 'unknown',
    id,
    details,
  });
  const known = SCHEMAS.get(type);
  if (known === undefined) return invalid([{ path: 'type', message: 'is not a known message type' }]);
  const unstorable = parsed.details.map(({ path, message }) => ({ path: path.replace(/^body\.?/, ''), message }));
  const { schema, validate } = known;
  const checked: unknown = cutToSchema(schema, value);
  if (validate(checked)) return unstorable.length === 0 ? { ok: true, message: checked } : invalid(unstorable);
  const failures = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'anyOf').slice(0, ERROR_DETAILS_MAX);
  return invalid(
    [...failures.map((failure) => describeSchemaFailure('', failure)), ...unstorable].slice(0, ERROR_DETAILS_MAX),
  );
}
