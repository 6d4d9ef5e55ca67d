import { createHmac } from 'node:crypto';

/** An entry of `RTCConfiguration.iceServers`; STUN entries have `urls` alone. */
export interface IceServer {
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
  /** coturn's `static-auth-secret`; null when no relay is configured: the answer is then STUN only. */
  readonly secret: string | null;
  readonly ttlSeconds: number;
}

/**
 * Temporary credentials in the scheme of coturn's `use-auth-secret`: username `<expiry Unix seconds>:<subject>`,
 * credential base64(HMAC-SHA1(secret, username)).
 * Source: draft-uberti-behave-turn-rest-00 and the coturn manual.
 * @param subject the session or environment that they are issued for.
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
