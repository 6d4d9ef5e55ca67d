import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { captureFolderOf, freePort, hostIPv4, startCoturn, startJanus } from '@callplane/local-servers';
import { Machine } from './machine.js';
import type { Processes } from './processes.js';

/** UDP ports: of each Janus, and of the relays. */
const FIRST_RTP_PORT = 30_000;
const RTP_PORTS = 500;
const RELAY_PORTS = { minPort: 31_000, maxPort: 31_999 };
/** UDP ports of the feeds that one Janus receives from another. */
export const FORWARD_PORTS = { first: 29_000, last: 29_199 };
/** Of each Janus, if its agent names one. */
export const REGIONS = ['eu', 'us'];

const newSecret = (): string => randomBytes(16).toString('hex');

export class MediaServers {
  readonly januses: Machine[] = [];
  /** Of the WebSocket interface of each Janus. */
  readonly ports: number[] = [];
  /** The folder that each Janus records into. */
  readonly captureFolders: string[] = [];
  readonly #secrets = {
    apiSecret: newSecret(),
    adminKey: newSecret(),
    adminSecret: newSecret(),
    turn: newSecret(),
    turnAdmin: newSecret(),
  };
  #coturn: Machine | undefined;
  /** The UDP port of coturn on `hostIPv4()`. */
  relayPort = 0;

  constructor(
    private readonly processes: Processes,
    private readonly count: number,
  ) {}

  get coturn(): Machine {
    if (this.#coturn === undefined) throw new Error('coturn has not been started');
    return this.#coturn;
  }

  async start(): Promise<void> {
    const host = hostIPv4();
    const { dir } = this.processes;
    const { apiSecret, adminKey, adminSecret, turn, turnAdmin } = this.#secrets;
    for (let n = 0; n < this.count; n += 1) {
      const wsPort = await freePort();
      this.ports.push(wsPort);
      const rtpPortMin = FIRST_RTP_PORT + n * RTP_PORTS;
      const facts = { wsPort, rtpPortMin, rtpPortMax: rtpPortMin + RTP_PORTS - 1, host, apiSecret, adminKey };
      const own = join(dir, `janus-${n + 1}`);
      this.captureFolders.push(captureFolderOf(own));
      const machine = new Machine(
        `janus ${n + 1}`,
        (onSpawn) => startJanus({ dir: own, adminSecret, ...facts, onSpawn }),
        this.processes,
      );
      this.januses.push(machine);
    }
    const [listeningPort, adminPort] = [await freePort(host), await freePort()];
    this.relayPort = listeningPort;
    const coturn = { host, listeningPort, adminPort, ...RELAY_PORTS, secret: turn, adminPassword: turnAdmin };
    this.#coturn = new Machine(
      'coturn',
      (onSpawn) => startCoturn({ dir: join(dir, 'coturn'), ...coturn, onSpawn }),
      this.processes,
    );
    await Promise.all([...this.januses, this.#coturn].map((machine) => machine.start()));
  }

  /** @param ports that lead to each Janus; by default its own. */
  settingsFor(ports: readonly number[] = this.ports): Record<string, string> {
    return {
      MEDIA_NODES: ports.map((port, n) => `m${n + 1}=ws://127.0.0.1:${port}`).join(','),
      MEDIA_API_SECRET: this.#secrets.apiSecret,
      MEDIA_ADMIN_KEY: this.#secrets.adminKey,
      TURN_URLS: `turn:${hostIPv4()}:${this.relayPort}?transport=udp`,
      TURN_SECRET: this.#secrets.turn,
    };
  }

  async stop(): Promise<void> {
    await Promise.all(
      [...this.januses, ...(this.#coturn === undefined ? [] : [this.#coturn])].map((each) => each.stop()),
    );
  }
}
