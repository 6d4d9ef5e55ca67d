import { isReported } from '@callplane/core';
import { Ajv } from 'ajv';
import type { Static, TSchema } from 'typebox';

/** A payload from Redis that no process of this release writes: another release, or somebody else, has written it. */
export class InvalidPayloadError extends Error {
  constructor(what: string, problem: string) {
    super(`${what} from Redis is not valid: ${problem}`);
    this.name = 'InvalidPayloadError';
  }
}

/** Maximum length of a payload, in characters. It is above the longest report of a gateway. */
const PAYLOAD_CHARS_MAX = 1024 * 1024;

const ajv = new Ajv({ strict: true, strictTuples: false, ownProperties: true, validateSchema: false, meta: false });

/** @returns a function that returns a valid payload as it is. It throws an InvalidPayloadError for any other. */
export function payloadReader<T extends TSchema>(what: string, schema: T): (payload: unknown) => Static<T> {
  const validate = ajv.compile<Static<T>>(schema);
  return (payload) => {
    if (validate(payload)) return payload;
    const failure = (validate.errors ?? []).find(isReported);
    throw new InvalidPayloadError(what, `${failure?.instancePath ?? ''} ${failure?.message ?? 'another shape'}`.trim());
  };
}

/** @throws InvalidPayloadError */
export function parsePayload(what: string, text: string): unknown {
  if (text.length > PAYLOAD_CHARS_MAX)
    throw new InvalidPayloadError(what, `longer than ${PAYLOAD_CHARS_MAX} characters`);
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidPayloadError(what, 'not JSON');
  }
}
