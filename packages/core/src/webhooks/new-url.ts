import { isIP } from 'node:net';
import { checkUrl } from './destination.js';

/**
 * Checks the URL of an endpoint that is created or changed. Rejects everything that {@link checkUrl} rejects, and
 * everything that the WHATWG parser would silently repair. A URL with a space, a backslash or a missing slash is a
 * mistake, and the repaired URL leads elsewhere than its author expects. Deliveries skip this check: a stored URL
 * passed the rules at the time of its creation.
 */
export function checkNewUrl(
  text: string,
  settings: { allowHttp: boolean; isAllowed: (address: string) => boolean },
): ReturnType<typeof checkUrl> {
  // Errors of the scheme and the length take precedence: an FTP URL gets no error about its slashes.
  const checked = checkUrl(text, settings);
  const reason = spellingFault(text) ?? (checked.ok ? hostFault(text, checked.url.hostname) : null);
  if (reason === null || (!checked.ok && !IS_HTTP.test(text.trim()))) return checked;
  return { ok: false, reason };
}

const IS_HTTP = /^https?:/i;
/** White space, control, format and other characters that a parser drops or escapes and that a reader cannot see. */
const UNSEEN = /[\p{White_Space}\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;
const HOST_CHARACTERS_MAX = 253;
/** Letters, digits, hyphens inside, and the underscore, which DNS allows and container networks use. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

function spellingFault(text: string): string | null {
  if (UNSEEN.test(text)) return 'must not contain white space, control or invisible characters';
  if (text.includes('\\')) return 'must not contain a backslash';
  if (text.includes('#')) return 'must not have a fragment';
  const authority = authorityOf(text);
  if (authority === null) return 'must have two slashes and a host after its scheme';
  if (authority.includes('@')) return 'must not contain a user name or a password';
  if (!/^(?:\[[^\]]*\]|[^:[\]]*)(?::[1-9]\d{0,4})?$/.test(authority))
    return 'must have a port from 1 to 65535, or none';
  return null;
}

/** The text between the two slashes and the path; null without two slashes or without a host. */
function authorityOf(text: string): string | null {
  return /^https?:\/\/([^/?#]+)/i.exec(text)?.[1] ?? null;
}

/** @param hostname the host as the parser understood it. */
function hostFault(text: string, hostname: string): string | null {
  if (hostname.startsWith('[')) return null;
  const written = (authorityOf(text) ?? '').replace(/:\d+$/, '').toLowerCase();
  // A host in other scripts may change its spelling, but must not become an address.
  const isAscii = /^[\x21-\x7e]*$/.test(written);
  if (isAscii ? written !== hostname : isIP(hostname) !== 0) return `must spell its host as ${hostname}`;
  if (isIP(hostname) !== 0) return null;
  if (hostname.length > HOST_CHARACTERS_MAX)
    return `must have a host name of at most ${HOST_CHARACTERS_MAX} characters`;
  if (hostname.endsWith('.')) return 'must have a host name without a dot at its end';
  const isPossible = hostname.split('.').every((label) => LABEL.test(label));
  return isPossible
    ? null
    : 'must have a host name of labels with 1 to 63 letters, digits, hyphens or underscores, none with a hyphen at its end';
}
