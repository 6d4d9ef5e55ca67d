import { connect } from 'node:tls';
import type { Logger, Metrics } from '@callplane/runtime';

/** How long a server may take to show its certificate, in milliseconds. */
const ANSWER_DEADLINE_MS = 10_000;

/**
 * Looks at the certificates of TLS servers as clients reach them, because a renewed file that no server has loaded
 * helps no client. A server that does not answer has no value.
 */
export class Certificates {
  /** Expiry by server, in milliseconds since 1970. */
  readonly #expiries = new Map<string, number>();

  /** @param servers `host:port` each */
  constructor(
    private readonly servers: readonly string[],
    metrics: Metrics,
    private readonly logger: Logger,
    now: () => Date,
  ) {
    metrics.gauges(
      {
        name: 'callplane_certificate_valid_seconds',
        help: 'Time until the certificate of the server expires, in seconds; negative once it has expired.',
        label: 'server',
      },
      () =>
        Object.fromEntries(
          [...this.#expiries].map(([server, expiryMs]) => [server, (expiryMs - now().getTime()) / 1000]),
        ),
    );
  }

  async pass(): Promise<void> {
    await Promise.all(
      this.servers.map(async (server) => {
        try {
          this.#expiries.set(server, await readExpiry(server));
        } catch (error) {
          this.#expiries.delete(server);
          this.logger.warn('certificate not read', { server, error });
        }
      }),
    );
  }
}

/** When the certificate of a server expires, in milliseconds since 1970. */
function readExpiry(server: string): Promise<number> {
  const colon = server.lastIndexOf(':');
  const host = server.slice(0, colon).replaceAll(/[[\]]/g, '');
  const isName = /[a-z]/i.test(host) && !host.includes(':');
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(server.slice(colon + 1)),
      ...(isName ? { servername: host } : {}),
      // An expired certificate is a value as well. Nothing is sent over this connection.
      rejectUnauthorized: false,
      timeout: ANSWER_DEADLINE_MS,
    });
    socket.once('timeout', () => socket.destroy(new Error(`no certificate within ${ANSWER_DEADLINE_MS} ms`)));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const expiryMs = Date.parse(socket.getPeerCertificate().valid_to);
      socket.destroy();
      if (Number.isNaN(expiryMs)) reject(new Error('the server shows no certificate'));
      else resolve(expiryMs);
    });
  });
}
