import { connect as connectTcp, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import type { RedisAddress, RedisTls } from './redis-target.js';

/** Replies keep the shapes of RESP2, which the type of a connection states. */
export type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

/** ioredis destroys a connection that we end after this time, even if Redis has not closed its side, in milliseconds. */
const DISCONNECT_MS = 100;

/**
 * The class with which ioredis opens connections to an address that may change, instead of its own two. Its connector
 * for Sentinels ends a connection for good that is closed while it asks them, as BullMQ does with a silent one, and hides
 * that a Sentinel is untrusted. Both listen for the first error of a socket only. A TLS socket can have two: its
 * certificate is refused, and then an alert of the server arrives. The second one would end the process.
 * @param find rejects if no address is known. The connection then tries again as after any loss.
 * @param role the role that the server must have.
 */
export function connectorOf(find: () => Promise<RedisAddress>, tls: RedisTls | null, role?: 'master') {
  return class extends AbstractConnector {
    constructor() {
      super(DISCONNECT_MS);
    }

    override check(info: Record<string, string>): boolean {
      return role === undefined || info['role'] === undefined || info['role'] === role;
    }

    override async connect(): Promise<Socket> {
      this.connecting = true;
      delete this.firstError;
      const stream = await find().then(
        (address) => (this.connecting ? open(address, tls) : new Socket().destroy()),
        (error: unknown) => {
          this.firstError = error as Error;
          return new Socket().destroy();
        },
      );
      this.stream = stream;
      stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      return stream.on('error', () => undefined);
    }
  };
}

function open({ host, port }: RedisAddress, tls: RedisTls | null): Socket {
  if (tls === null) return connectTcp({ host, port });
  // Addresses have no name for SNI.
  const name = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
  return connectTls({ ...tls, host, port, ...name });
}
