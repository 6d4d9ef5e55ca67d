import { CallplaneError, type CallplaneErrorCode, type TrackFailure } from '@callplane/client-js';

/** Texts of errors for the user of this page. The others keep the message of the SDK. */
const TEXTS: Partial<Record<CallplaneErrorCode, string>> = {
  room_ended: 'The room has ended. Join again to open a new one under this name.',
  removed: 'You were removed from the room.',
  superseded: 'You joined from another tab or device. This one has left.',
  capacity: 'The room is full.',
  token_expired: 'Your pass for this room has expired. Join again.',
  connection_lost: 'The connection was lost for too long. Join again.',
  invalid_session: 'The connection was lost for too long. Join again.',
  unreachable: 'The server does not answer. Check your connection, and try again in a moment.',
  too_many_attempts: 'Too many attempts. Wait a few seconds, then join again.',
  drain: 'The server is restarting. Join again in a moment.',
  unavailable: 'The server is busy. Try again in a moment.',
  media_unavailable: 'Audio and video are not available at the moment. The call and the chat continue without them.',
  permission_denied: 'You may not do that in this room.',
  rate_limited: 'That was too often. Wait a moment.',
};

/** Devices that could not be opened, while others could. */
export function readableFailures(failed: readonly TrackFailure[]): string {
  return failed.map(({ source, code, message }) => readable(new CallplaneError(code, message), source)).join(' ');
}

/** @param what the device that was requested, if any */
export function readable(error: unknown, what = 'camera and microphone'): string {
  if (!(error instanceof CallplaneError)) return error instanceof Error ? error.message : String(error);
  if (error.code === 'device_permission_denied') return allowText(what);
  return TEXTS[error.code] ?? error.message;
}

/** Where browsers hide the switch. */
function allowText(what: string): string {
  const { userAgent } = navigator;
  if (/iPhone|iPad/.test(userAgent)) return `Allow the ${what} in Settings → Apps → Safari, then reload the page.`;
  if (userAgent.includes('Firefox')) return `Allow the ${what} with the icon left of the address in Firefox.`;
  if (userAgent.includes('Edg/')) return `Allow the ${what} with the lock left of the address in Edge.`;
  if (userAgent.includes('Chrome')) return `Allow the ${what} with the icon left of the address in Chrome.`;
  return `Allow the ${what} in Safari → Settings → Websites.`;
}
