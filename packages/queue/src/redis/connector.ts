import { connect as connectTcp, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import { reconnectDelayMs } from './reconnect-delay.js';
import { textOf, type RedisAddress, type RedisTls } from './redis-target.js';

type Connector = NonNullable<RedisOptions['Connector']>;

/** Knows where a connection has to lead at this moment. */
export interface Guide {
  /** Rejects if no address is known now. A connection then asks again. */
  find(): Promise<RedisAddress>;
  /** Called with the reply of INFO, as fields. False: the server is the wrong one, and the connection asks again. */
  accepts?(info: Record<string, string>): boolean;
  /**
   * The connections that exist or look for an address. The guide calls `leave` when they have to lead elsewhere. One that
   * still looks stays: it has to be counted, because its address may be older than the latest change.
   */
  readonly followers?: Set<Follower>;
}

export interface Follower {
  /** Closes the connection unless it leads to this address. ioredis then asks the guide again. */
  leave(unless: RedisAddress): void;
}

/**
 * Returns the class with which ioredis opens a connection to an address that may change. ioredis's own connector for
 * Sentinels asks one after the other, and ends a connection for good that is closed while it asks. Its other one listens
 * for the first error of a socket only, and a TLS socket can have two.
 * @param leads null: each connection leads to the address in its own options
 */
export function connectorOf(leads: Guide | null, tls: RedisTls | null, disconnectMs: number): Connector {
  return class extends AbstractConnector implements Follower {
    readonly #guide: Guide;
    #address: string | null = null;
    /** The search for an address that is under way. It ends when the connection is ended or begins anew. */
    #search = new AbortController();

    constructor(options: unknown) {
      super(disconnectMs);
      this.#guide = leads ?? inTurn([options as RedisAddress]);
    }

    override check(info: Record<string, string>): boolean {
      return this.#guide.accepts?.(info) ?? true;
    }

    override async connect(emit: (type: string, error: Error) => void): Promise<Socket> {
      this.connecting = true;
      this.#address = null;
      const search = new AbortController();
      this.#search = search;
      this.#guide.followers?.add(this);
      // Another attempt may have begun meanwhile.
      const unfollow = (): void => {
        if (this.#search === search) this.#guide.followers?.delete(this);
      };
      const stopped = new Promise<null>((resolve) => {
        search.signal.addEventListener('abort', () => resolve(null));
      });
      const address = await Promise.race([this.#find(emit, search.signal), stopped]);
      // A rejection would end the connection for good, also one that only has to reconnect.
      if (address === null || search.signal.aborted) {
        unfollow();
        return (this.stream = new Socket().destroy());
      }
      const { host, port } = address;
      this.#address = textOf(address);
      const stream =
        tls === null ? connectTcp({ host, port }) : connectTls({ ...tls, host, port, ...serverName(host) });
      this.stream = stream;
      stream.once('close', unfollow);
      stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      // The certificate can be refused, and an alert of the server can follow: the second error would end the process.
      stream.on('error', () => undefined);
      return stream;
    }

    override disconnect(): void {
      this.#search.abort();
      super.disconnect();
    }

    leave(unless: RedisAddress): void {
      if (this.#address !== null && this.#address !== textOf(unless)) this.stream.destroy();
    }

    async #find(emit: (type: string, error: Error) => void, signal: AbortSignal): Promise<RedisAddress | null> {
      for (let attempt = 0; !signal.aborted; attempt += 1) {
        try {
          return await this.#guide.find();
        } catch (error) {
          if (isAborted(signal)) break;
          emit('error', error as Error);
          await new Promise((resolve) => setTimeout(resolve, reconnectDelayMs(attempt)));
        }
      }
      return null;
    }
  };
}

/** The compiler takes a value that it has seen once for fixed. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** The name for SNI. Addresses have none. */
function serverName(host: string): { servername?: string } {
  return /^[\d.]+$|:/.test(host) ? {} : { servername: host };
}

/** Leads to the given addresses in turn, for connections that any node of a cluster can serve. */
export function inTurn(addresses: readonly RedisAddress[]): Guide {
  let next = 0;
  return {
    find: () => {
      const address = addresses[next % addresses.length];
      next += 1;
      return address === undefined ? Promise.reject(new Error('no address')) : Promise.resolve(address);
    },
  };
}
