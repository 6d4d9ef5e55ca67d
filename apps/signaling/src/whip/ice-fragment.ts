import { createHash } from 'node:crypto';
import { PublicError } from '@callplane/core';
import type { IceCandidate } from '@callplane/media';
import { checkCandidate } from '../media/sdp-gate.js';

const CANDIDATES_MAX = 64;
/** RFC 8839, section 5.4. */
const UFRAG = /^[A-Za-z0-9+/]{4,256}$/;
const PASSWORD = /^[A-Za-z0-9+/]{22,256}$/;

export interface IceFragment {
  credentials: IceCredentials | null;
  /** Null marks their end. */
  candidates: (IceCandidate | null)[];
}

export interface IceCredentials {
  ufrag: string;
  password: string;
}

/**
 * Reads the body of a PATCH (RFC 8840, section 9).
 * @throws PublicError or RequestFailure if it is malformed
 */
export function readFragment(text: string): IceFragment {
  let mid = '0';
  let [ufrag, password]: [string?, string?] = [];
  const candidates: (IceCandidate | null)[] = [];
  for (const line of text.split(/\r?\n/)) {
    const [, name = '', value = ''] = /^a=([a-z-]+)(?::(.*))?$/.exec(line) ?? [];
    if (name === 'mid' && !/^[\x21-\x7e]{1,64}$/.test(value)) throw malformed('has an invalid mid');
    if (name === 'mid') mid = value;
    else if (name === 'ice-ufrag') ufrag ??= value;
    else if (name === 'ice-pwd') password ??= value;
    else if (name === 'candidate') candidates.push({ candidate: checkCandidate(line.slice(2)), sdpMid: mid });
    else if (name === 'end-of-candidates') candidates.push(null);
    else if (line !== '' && !/^(a=[\x21-\x7e]|m=)[\x20-\x7e]*$/.test(line))
      throw malformed('has a line that is no SDP');
    if (candidates.length > CANDIDATES_MAX) throw malformed(`has more than ${CANDIDATES_MAX} candidates`);
  }
  if (ufrag === undefined && password === undefined) {
    if (candidates.length === 0) throw malformed('has neither candidates nor credentials');
    return { credentials: null, candidates };
  }
  if (!UFRAG.test(ufrag ?? '') || !PASSWORD.test(password ?? '')) throw malformed('has invalid ICE credentials');
  return { credentials: { ufrag: ufrag as string, password: password as string }, candidates };
}

export function credentialsIn(sdp: string): IceCredentials {
  const [, ufrag = ''] = /^a=ice-ufrag:(\S+)/m.exec(sdp) ?? [];
  const [, password = ''] = /^a=ice-pwd:(\S+)/m.exec(sdp) ?? [];
  return { ufrag, password };
}

/** A strong entity tag of the ICE session that the offer has begun (RFC 9725, section 4.3.1). */
export function entityTag(offer: string): string {
  const { ufrag, password } = credentialsIn(offer);
  return `"${createHash('sha256').update(`${ufrag}:${password}`).digest('base64url').slice(0, 22)}"`;
}

/** The offer with other credentials and without candidates: it restarts ICE. */
export function restartOffer(offer: string, { ufrag, password }: IceCredentials): string {
  return offer
    .replace(/^a=(candidate:.*|end-of-candidates)\r\n/gm, '')
    .replace(/^a=ice-ufrag:.*\r$/gm, `a=ice-ufrag:${ufrag}\r`)
    .replace(/^a=ice-pwd:.*\r$/gm, `a=ice-pwd:${password}\r`);
}

/** The ICE part of an answer, for the client that restarts ICE. */
export function fragmentOf(answer: string): string {
  const { ufrag, password } = credentialsIn(answer);
  const [media = ''] = /^m=.*$/m.exec(answer) ?? [];
  const [mid = ''] = /^a=mid:.*$/m.exec(answer) ?? [];
  const candidates = new Set(answer.match(/^a=candidate:.*$/gm)?.map((line) => line.trim()));
  const lines = [`a=ice-ufrag:${ufrag}`, `a=ice-pwd:${password}`, media.trim(), mid.trim(), ...candidates];
  return [...lines, 'a=end-of-candidates', ''].join('\r\n');
}

function malformed(message: string): PublicError {
  return new PublicError('VALIDATION_FAILED', { details: [{ path: 'body', message }] });
}
