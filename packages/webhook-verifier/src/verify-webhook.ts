import { createHmac, timingSafeEqual } from 'node:crypto';
import { types } from 'node:util';
import type { WebhookEvent } from './event.js';
import { headerValues, type WebhookHeaders } from './headers.js';
import { checkedSecrets, secretsOfVersion, type SigningSecrets } from './secrets.js';

export type { WebhookHeaders } from './headers.js';
export type { SigningSecrets } from './secrets.js';

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
