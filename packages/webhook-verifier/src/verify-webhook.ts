import { createHmac, timingSafeEqual } from 'node:crypto';
import { types } from 'node:util';
import type { components } from './events.generated.js';

/**
 * The body of a delivery: `type` determines the fields of `data`, which holds the resources of the event as the API
 * returns them. `id` is the same in every retry and replay: store it with the result of the processing. Later versions
 * of the API may send further types, so ignore types that you do not know.
 */
export type WebhookEvent = components['schemas']['Event'];

export type WebhookEventType = WebhookEvent['type'];

/** The event of one type: `WebhookEventOf<'room.ended'>`. */
export type WebhookEventOf<Type extends WebhookEventType> = Extract<WebhookEvent, { type: Type }>;

export interface VerifyWebhookInput {
  /** `request.headers` of Node or Express, Fetch `Headers`, or a plain object; case does not matter. */
  headers: WebhookHeaders;
  /** The body exactly as it arrived. Bytes are best: a string is correct only if the body was decoded as UTF-8. */
  rawBody: Uint8Array | string;
  /** One signing secret, several, or several by version; each complete, with its `whsec_` prefix. */
  secrets: SigningSecrets;
  /** The receiver's clock; defaults to the current time. */
  now?: Date;
  /** How far the timestamp may lie from that clock, before or after; defaults to 300. */
  toleranceSeconds?: number;
}

export type WebhookFailureReason =
  | 'missing_header'
  | 'malformed_header'
  | 'malformed_timestamp'
  | 'timestamp_out_of_tolerance'
  | 'unknown_signing_key_version'
  | 'signature_mismatch'
  | 'malformed_json';

export type VerifyWebhookResult =
  | { ok: true; event: WebhookEvent; deliveryId: string; replayCount: number; signingKeyVersion: number }
  | { ok: false; reason: WebhookFailureReason; message: string };

/** The sender sends each header exactly once. `v1` is the only scheme, so that a signature has exactly two parts. */
const SIGNATURE_FORMAT = /^t=([^,]*),v1=([0-9a-f]{64})$/;
const TIMESTAMP_FORMAT = /^(0|[1-9]\d{0,11})$/;
/** Without a dot, because dots separate the parts of the signed text. */
const DELIVERY_ID_FORMAT = /^[A-Za-z0-9_-]{1,128}$/;
const REPLAY_COUNT_FORMAT = /^(0|[1-9]\d{0,8})$/;
const VERSION_FORMAT = /^[1-9]\d{0,8}$/;

/**
 * Verifies one delivery. A sender's mistake is returned as a `reason`.
 * @throws TypeError for the caller's mistake: no secret, an already parsed body, an invalid clock.
 */
export function verifyWebhook(input: VerifyWebhookInput): VerifyWebhookResult {
  const { headers, rawBody, now = new Date(), toleranceSeconds = 300 } = input;
  const secrets = checkedSecrets(input.secrets);
  const nowMs = now.getTime();
  // Comparisons with NaN are false, so every timestamp would count as within the tolerance.
  if (Number.isNaN(nowMs)) throw new TypeError('`now` is not a valid date.');
  if (!(toleranceSeconds >= 0)) throw new TypeError('`toleranceSeconds` must be a number of at least 0.');
  const body = bytesOf(rawBody);

  const found = {} as Record<keyof typeof HEADERS, string>;
  for (const [key, { name, format }] of Object.entries(HEADERS) as [keyof typeof HEADERS, HeaderRule][]) {
    const values = headerValues(headers, name);
    if (values.length === 0) return failure('missing_header', `The header ${name} is missing.`);
    const [value = ''] = values;
    if (values.length > 1 || !format.test(value)) {
      return failure('malformed_header', `The header ${name} is malformed, or was sent more than once.`);
    }
    found[key] = value;
  }

  const [, timestamp = '', signature = ''] = SIGNATURE_FORMAT.exec(found.signature) ?? [];
  if (!TIMESTAMP_FORMAT.test(timestamp)) {
    return failure('malformed_timestamp', 'The timestamp of the signature is not a number of Unix seconds.');
  }
  if (Math.abs(nowMs - Number(timestamp) * 1000) > toleranceSeconds * 1000) {
    return failure('timestamp_out_of_tolerance', `The timestamp is more than ${toleranceSeconds} seconds from now.`);
  }

  const signingKeyVersion = Number(found.signingKeyVersion);
  const candidates = secretsOfVersion(secrets, signingKeyVersion);
  if (candidates.length === 0) {
    return failure('unknown_signing_key_version', `There is no secret of version ${signingKeyVersion}.`);
  }
  const signedHead = `${timestamp}.${found.deliveryId}.${found.replayCount}.`;
  if (!candidates.some((secret) => isSignedWith(secret, signedHead, body, signature))) {
    return failure('signature_mismatch', 'The signature does not match the body, delivery id and replay count.');
  }

  const event = parseEvent(body);
  if (event === null) return failure('malformed_json', 'The body is signed, but it is not a JSON object in UTF-8.');
  return { ok: true, event, deliveryId: found.deliveryId, replayCount: Number(found.replayCount), signingKeyVersion };
}

interface HeaderRule {
  name: string;
  format: RegExp;
}

const HEADERS = {
  signature: { name: 'x-service-signature', format: SIGNATURE_FORMAT },
  deliveryId: { name: 'x-service-delivery-id', format: DELIVERY_ID_FORMAT },
  replayCount: { name: 'x-service-replay-count', format: REPLAY_COUNT_FORMAT },
  signingKeyVersion: { name: 'x-service-signing-key-version', format: VERSION_FORMAT },
} satisfies Record<string, HeaderRule>;

function failure(reason: WebhookFailureReason, message: string): VerifyWebhookResult {
  return { ok: false, reason, message };
}

function bytesOf(rawBody: unknown): Uint8Array {
  if (types.isUint8Array(rawBody)) return rawBody;
  if (typeof rawBody === 'string') return Buffer.from(rawBody, 'utf8');
  throw new TypeError('`rawBody` must be bytes or a string. Read the body before a parser does.');
}

function isSignedWith(secret: string, signedHead: string, body: Uint8Array, signature: string): boolean {
  const expected = createHmac('sha256', secret).update(signedHead).update(body).digest();
  return timingSafeEqual(expected, Buffer.from(signature, 'hex'));
}

function parseEvent(body: Uint8Array): WebhookEvent | null {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as WebhookEvent) : null;
  } catch {
    return null;
  }
}

/** The header objects of Node, Express, Fetch and most frameworks. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns all values of a header, so that the caller can reject repeated ones.
 * Node and Fetch join repeated headers with a comma. A comma is legal in no header of a delivery except for the one in
 * the signature format.
 * @param name in lower case.
 */
function headerValues(headers: WebhookHeaders, name: string): string[] {
  if (isFetchHeaders(headers)) {
    const value = headers.get(name);
    return value === null ? [] : [value];
  }
  return Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value ?? []);
}

function isFetchHeaders(headers: WebhookHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}

/**
 * Prefer secrets by version: the version header then selects the secret, so that a rotation needs no trial and error.
 */
export type SigningSecrets =
  | string
  | readonly string[]
  | Readonly<Record<string, string>>
  | ReadonlyMap<string | number, string>;

/** Validated secrets: a list to try, or a map by version. */
type CheckedSecrets = readonly string[] | ReadonlyMap<string, string>;

/** @throws TypeError for a value that is not a signing secret. With an empty secret anyone could sign. */
function checkedSecrets(secrets: unknown): CheckedSecrets {
  if (typeof secrets === 'string') return [checkedSecret(secrets)];
  if (Array.isArray(secrets) && secrets.length > 0) return secrets.map(checkedSecret);
  if (typeof secrets !== 'object' || secrets === null || Array.isArray(secrets))
    throw new TypeError('`secrets` contains no signing secret.');
  const byVersion = types.isMap(secrets) ? [...secrets] : Object.entries(secrets);
  return new Map(byVersion.map(([version, secret]) => [String(version), checkedSecret(secret)]));
}

function secretsOfVersion(secrets: CheckedSecrets, version: number): readonly string[] {
  if (!(secrets instanceof Map)) return secrets as readonly string[];
  const secret = (secrets as ReadonlyMap<string, string>).get(String(version));
  return secret === undefined ? [] : [secret];
}

function checkedSecret(secret: unknown): string {
  if (typeof secret !== 'string' || !/^whsec_./.test(secret)) {
    throw new TypeError('A signing secret must be a string that begins with whsec_. The prefix is part of the secret.');
  }
  return secret;
}
