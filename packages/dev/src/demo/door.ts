import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/** Guards the demo page's backend, which issues tokens to callers without an API key. */
export interface DemoDoor {
  /** Whether the `Host` header is a name under which the gateway serves the demo. */
  knowsHost(request: IncomingMessage): boolean;
  /** Whether the request comes from the demo's own page or from a client other than a browser. */
  isSameOrigin(request: IncomingMessage): boolean;
}

/**
 * The `Host` must be a known name, against DNS rebinding: another site can point its own name at this machine, and
 * browsers then treat that site's pages as same-origin with the demo. The `Origin` must be the demo's, against CSRF:
 * pages of other sites can send requests here, too.
 * @param listensOn the gateway's `HOST`. If it is not a loopback address, every IP address is accepted as `Host`: DNS
 *   rebinding needs a name, so an IP address is safe.
 */
export function createDemoDoor({ listensOn, names }: { listensOn: string; names: readonly string[] }): DemoDoor {
  const known = new Set(names.map((name) => name.toLowerCase()));
  const servesOthers = !isLoopback(listensOn.toLowerCase());
  return {
    knowsHost(request) {
      const name = hostName(request.headers.host ?? '');
      return isLoopback(name) || known.has(name) || name === listensOn || (servesOthers && isIP(name) !== 0);
    },
    isSameOrigin({ headers }) {
      // Browsers mark requests of other sites' pages with this header even if they send no Origin.
      const site = headers['sec-fetch-site'];
      if (site !== undefined && site !== 'same-origin') return false;
      if (headers.origin === undefined) return true;
      const origin = /^https?:\/\/(.+)$/.exec(headers.origin.toLowerCase())?.[1];
      return origin !== undefined && origin === headers.host?.toLowerCase();
    },
  };
}

/** The name or address in a `Host` header, in lower case, without port and brackets. */
function hostName(host: string): string {
  const [, address, name] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(host.toLowerCase()) ?? [];
  return address ?? name ?? '';
}

function isLoopback(name: string): boolean {
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '::1' ||
    (isIP(name) === 4 && name.startsWith('127.'))
  );
}
