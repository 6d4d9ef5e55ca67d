import type { Permission } from '@callplane/core';
import type { ClientMessages } from '@callplane/protocol';
import { RequestFailure } from '../../connections/request-failure.js';
import { checkOffer, type CheckedOffer } from './sdp-gate.js';

export type ClientOffer = Extract<CheckedOffer, { ok: true }>;

/** @throws RequestFailure if the offer is invalid, or sends what the token does not permit */
export function clientOffer(request: ClientMessages['publish'], permissions: readonly Permission[]): ClientOffer {
  const checked = checkOffer(request.sdp, request.tracks, permissions);
  if (checked.ok) return checked;
  const { code, message, details } = checked.refusal;
  throw new RequestFailure(code, message, details);
}
