import { parseJsonBody } from '@callplane/core';
import { CLIENT_MESSAGES, type ClientMessage } from '@callplane/protocol';
import type { ErrorObject, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

export interface Detail {
  path: string;
  message: string;
}

export type ReadMessage =
  | { ok: true; message: ClientMessage }
  /** No message at all: not JSON, or no object with a type. */
  | { ok: false; protocolError: string }
  /** A message that is wrong: told to the sender, with the id that it gave. */
  | { ok: false; protocolError: null; type: string; id: string | undefined; details: Detail[] };

/** Failures that are told of one message; a hostile one could have as many as it has bytes. */
const DETAILS_MAX = 20;

const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, ownProperties: true });
const validators = new Map<string, ValidateFunction<ClientMessage>>(
  Object.entries(CLIENT_MESSAGES).map(([type, schema]) => [type, ajv.compile<ClientMessage>(schema)]),
);

/** Reads one frame. Never throws, whatever it holds. */
export function readMessage(text: string): ReadMessage {
  const parsed = parseJsonBody(text);
  if (!parsed.ok) return { ok: false, protocolError: 'A frame is not JSON.' };
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { ok: false, protocolError: 'A frame is not a JSON object.' };
  }
  const { type, id: givenId } = value as { type?: unknown; id?: unknown };
  if (typeof type !== 'string') return { ok: false, protocolError: 'A message has no type.' };
  const id = typeof givenId === 'string' && givenId.length >= 1 && givenId.length <= 64 ? givenId : undefined;
  const invalid = (details: Detail[]): ReadMessage => ({
    ok: false,
    protocolError: null,
    type: type.slice(0, 64),
    id,
    details: details.slice(0, DETAILS_MAX),
  });
  const validate = validators.get(type);
  if (validate === undefined) return invalid([{ path: 'type', message: 'is not a known message' }]);
  const unstorable = parsed.details.map(({ path, message }) => ({ path: path.replace(/^body\.?/, ''), message }));
  if (validate(value)) return unstorable.length === 0 ? { ok: true, message: value } : invalid(unstorable);
  const failures = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'anyOf').map(toDetail);
  return invalid([...failures, ...unstorable]);
}

function toDetail(error: ErrorObject): Detail {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((segment) => (/^\d+$/.test(segment) ? `[${segment}]` : `.${segment}`))
    .join('')
    .replace(/^\./, '')
    .slice(0, 200);
  const { missingProperty, additionalProperty } = error.params as Record<string, string | undefined>;
  if (missingProperty !== undefined) return { path: join(path, missingProperty), message: 'is required' };
  if (additionalProperty !== undefined) {
    return { path: join(path, additionalProperty.slice(0, 64)), message: 'is not a known field' };
  }
  return { path, message: error.message ?? 'is not valid' };
}

function join(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}
