import { connect } from '@callplane/client-js';

/** Joins an encrypted room with the key in the page's link, and makes one for the first participant. */
export function joinEncrypted(url: string, token: string) {
  const random = crypto.getRandomValues(new Uint8Array(32));
  location.hash ||= btoa(String.fromCharCode(...random))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
  return connect({ url, token, encryption: { key: location.hash.slice(1) } });
}
