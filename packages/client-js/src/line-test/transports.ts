/** A way to a relay. `tls` includes TURN over DTLS. */
export type Transport = 'udp' | 'tcp' | 'tls';

/** The entries of the ICE servers whose relays are reached over `transport`, with only these URLs. */
export function relaysOver(iceServers: readonly RTCIceServer[], transport: Transport): RTCIceServer[] {
  return withUrls(iceServers, (url) => transportOf(url) === transport);
}

/** STUN URLs, or if there are none the TURN servers over UDP, which answer STUN, too. */
export function stunServers(iceServers: readonly RTCIceServer[]): RTCIceServer[] {
  const stun = withUrls(iceServers, (url) => url.startsWith('stun:')).map(({ urls }) => ({ urls }));
  if (stun.length > 0) return stun;
  return relaysOver(iceServers, 'udp').map(({ urls }) => ({
    urls: [urls].flat().map((url) => url.replace(/^turn:/, 'stun:').replace(/\?.*/, '')),
  }));
}

/** Of the first URL. */
export function addressOf(
  [server]: readonly RTCIceServer[],
  transport: Transport,
): { host: string; port: string | number } {
  const [url = ''] = [server?.urls ?? []].flat();
  const [, host = '', port = transport === 'tls' ? 5349 : 3478] = /^\w+:(.*?)(?::(\d+))?(?:\?.*)?$/.exec(url) ?? [];
  return { host, port };
}

function withUrls(iceServers: readonly RTCIceServer[], isWanted: (url: string) => boolean): RTCIceServer[] {
  return iceServers
    .map(({ urls, ...rest }) => ({ ...rest, urls: [urls].flat().filter(isWanted) }))
    .filter(({ urls }) => urls.length > 0);
}

export function transportOf(url: string): Transport | undefined {
  if (url.startsWith('turns:')) return 'tls';
  if (!url.startsWith('turn:')) return undefined;
  return /\?transport=tcp$/.test(url) ? 'tcp' : 'udp';
}
