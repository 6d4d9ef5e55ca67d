import { createHmac, randomBytes } from 'node:crypto';
import { ID_PREFIXES } from '../ids/ids.js';

const SESSION_USERNAME = new RegExp(`^\\d{1,12}:(${ID_PREFIXES.session}_[0-9a-z]{26})(?::(?:publisher|subscriber))?$`);

export const TURN_TTL_SECONDS = { min: 60, default: 3600, max: 86_400 } as const;

/** An entry of `RTCConfiguration.iceServers`; STUN entries have only `urls`. */
interface IceServer {
  urls: string[];
  username?: string;
  credential?: string;
  credentialType?: 'password';
}

export interface TurnCredentials {
  expiresAt: Date;
  username: string;
  ttlSeconds: number;
  iceServers: IceServer[];
}

export interface TurnSettings {
  readonly stunUrls: readonly string[];
  readonly turnUrls: readonly string[];
  /** coturn's `static-auth-secret`. Null when no relay is configured; the ICE servers are then STUN only. */
  readonly secret: string | null;
  readonly ttlSeconds: number;
}

/**
 * Subject of the credentials of an environment. coturn counts allocations by the part of the username after the expiry.
 * The random part therefore gives each credential its own quota, so that one caller cannot use up the quota of all.
 */
export function environmentSubject(environmentId: string): string {
  return `${environmentId}:${randomBytes(8).toString('hex')}`;
}

/**
 * Subject of the credentials of one peer connection of a session. It has a quota of its own, and a later credential
 * replaces the earlier ones: a client that has moved to another network cannot close the relays that it had there.
 */
export function peerSubject(sessionId: string, peer: 'publisher' | 'subscriber'): string {
  return `${sessionId}:${peer}`;
}

/** The id of the session that a username was issued for, as a whole or for a peer connection; null for any other one. */
export function sessionOfUsername(username: string): string | null {
  return SESSION_USERNAME.exec(username)?.[1] ?? null;
}

/**
 * Issues temporary credentials in the scheme of coturn's `use-auth-secret`: username `<expiry Unix seconds>:<subject>`,
 * credential base64(HMAC-SHA1(secret, username)).
 * Source: draft-uberti-behave-turn-rest-00 and the coturn manual.
 * @param subject a session's id, a {@link peerSubject} or an {@link environmentSubject}.
 */
export function issueTurnCredentials(settings: TurnSettings, subject: string, now: Date): TurnCredentials {
  const expiresUnixSeconds = Math.floor(now.getTime() / 1000) + settings.ttlSeconds;
  const username = `${expiresUnixSeconds}:${subject}`;
  const iceServers: IceServer[] = [];
  if (settings.stunUrls.length > 0) iceServers.push({ urls: [...settings.stunUrls] });
  if (settings.secret !== null && settings.turnUrls.length > 0) {
    const credential = createHmac('sha1', settings.secret).update(username).digest('base64');
    iceServers.push({ urls: [...settings.turnUrls], username, credential, credentialType: 'password' });
  }
  return { expiresAt: new Date(expiresUnixSeconds * 1000), username, ttlSeconds: settings.ttlSeconds, iceServers };
}
