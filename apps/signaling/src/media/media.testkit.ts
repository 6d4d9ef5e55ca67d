import { EventEmitter } from 'node:events';
import { PERMISSIONS } from '@callplane/core';
import type { TrackState } from '@callplane/db';
import { MediaError, type MediaErrorCode, type MediaNode } from '@callplane/media';
import type { ClientMessages, ServerMessage } from '@callplane/protocol';
import type { MediaDeps, MediaOwner } from './media-writes.js';
import type { MediaPlaces } from './places.js';

/** Calls that wait for the test. Calls of other names pass at once. */
export class Gate {
  readonly #held = new Set<string>();
  #waiting: { name: string; open: (outcome: unknown) => void }[] = [];

  hold(...names: string[]): void {
    for (const name of names) this.#held.add(name);
  }

  waits(name: string): boolean {
    return this.#waiting.some((one) => one.name === name);
  }

  /** Lets the first waiting call of this name continue. An error as the outcome makes it fail. */
  open(name: string, outcome?: unknown): void {
    const first = this.#waiting.find((one) => one.name === name);
    if (first === undefined) throw new Error(`no call of ${name} waits`);
    this.#waiting = this.#waiting.filter((one) => one !== first);
    first.open(outcome);
  }

  async pass(name: string): Promise<unknown> {
    if (!this.#held.has(name)) return undefined;
    const outcome = await new Promise((open) => this.#waiting.push({ name, open }));
    if (outcome instanceof Error) throw outcome;
    return outcome;
  }
}

export const mediaError = (code: MediaErrorCode) => new MediaError(code, code);

export class FakeHandle extends EventEmitter {
  isDetached = false;
  constructor(
    readonly gate: Gate,
    readonly handleId: number,
    readonly feedId: string,
  ) {
    super();
  }
  async publish(): Promise<string> {
    await this.gate.pass('offer');
    return `answer ${this.feedId}`;
  }
  async addCandidate(): Promise<void> {}
  async detach(): Promise<void> {
    this.isDetached = true;
  }
}

/** A media server without media, whose answers wait for the test if `gate` holds them. */
export class FakeNode extends EventEmitter {
  readonly id = 'm1';
  readonly handles: FakeHandle[] = [];
  readonly did: string[] = [];
  constructor(readonly gate: Gate) {
    super();
  }
  async ensureRoom(): Promise<void> {}
  async moderate(_: string, feedId: string, mid: string, muted: boolean): Promise<void> {
    this.did.push(`moderate ${feedId}/${mid} ${muted}`);
    await this.gate.pass('moderate');
  }
  openSession(): Promise<object> {
    return Promise.resolve(this.#session());
  }
  claimSession(id: number): Promise<object> {
    this.did.push(`claim session ${id}`);
    return Promise.resolve(this.#session());
  }
  async destroySession(id: number): Promise<'destroyed'> {
    this.did.push(`destroy session ${id}`);
    await this.gate.pass('destroySession');
    return 'destroyed';
  }
  #session() {
    const session = {
      id: 7,
      isOpen: true,
      adoptPublisher: (handleId: number, feedId: string) => this.#add(new FakeHandle(this.gate, handleId, feedId)),
      detach: (handleId: number) => {
        this.did.push(`detach ${handleId}`);
        return Promise.resolve();
      },
      attachPublisher: async (_: string, feedId: string) => {
        await this.gate.pass('attach');
        return this.#add(new FakeHandle(this.gate, this.handles.length + 1, feedId));
      },
      destroy: async () => {
        session.isOpen = false;
        this.did.push('destroy session');
      },
      abandon: () => {
        session.isOpen = false;
      },
    };
    return session;
  }
  #add(handle: FakeHandle): FakeHandle {
    this.handles.push(handle);
    return handle;
  }
  /** The handles that are not detached. */
  get live(): FakeHandle[] {
    return this.handles.filter((handle) => !handle.isDetached);
  }
}

/** A session whose room and database are this object. */
export class FakeSession {
  readonly sessionId = 'sess_1';
  readonly participantId = 'part_1';
  readonly roomId = 'room_1';
  readonly permissions = PERMISSIONS;
  readonly autoSubscribe = false;
  readonly isGone = false;
  connectionNumber = 1;
  isConnected = true;
  /** Whether PostgreSQL says that this gateway holds the session. */
  isLive = true;
  stored: TrackState[] = [];
  encryption: 'none' | 'required' = 'none';
  placed = { mediaNodeId: 'm1' as string | null, mediaGeneration: 1, furtherNodeIds: [] as string[] };
  /** How often something has changed that another gateway would need. */
  changes = 0;
  /** Which tracks carry speech, and which ones no longer. */
  readonly spoken: [string, number | null][] = [];
  readonly sent: ServerMessage[] = [];
  readonly logged: { level: string; message: string; fields: unknown }[] = [];
  constructor(readonly gate: Gate) {}

  get room() {
    const { stored, encryption } = this;
    const has = (_: string, trackId: string) => stored.some((track) => track.trackId === trackId);
    return {
      state: { ...this.placed, room: { encryption } },
      tracks: { has, of: () => stored, publishers: { all: [] }, entries: new Map() },
      order: { version: 0, audio: [], video: [] },
      speakers: { note: (key: string, level: number | null) => this.spoken.push([key, level]) },
      layers: { note: () => undefined },
      sessionOf: () => ({ sessionId: this.sessionId, tracks: stored }),
      departureOf: () => (this.isLive ? null : 'missing'),
    };
  }
  send(message: ServerMessage): void {
    if (this.isConnected) this.sent.push(message);
  }
  of<T extends ServerMessage['type']>(type: T) {
    return this.sent.filter((message) => message.type === type) as Extract<ServerMessage, { type: T }>[];
  }
  get asOwner(): MediaOwner {
    return this as unknown as MediaOwner;
  }

  /** The database, the room's reader and the log, as this session's media sees them. */
  deps(places: MediaPlaces): MediaDeps {
    const log = (level: string) => (message: string, fields: unknown) => this.logged.push({ level, message, fields });
    const deps = {
      places,
      logger: Object.fromEntries(['debug', 'info', 'warn', 'error'].map((level) => [level, log(level)])),
      rooms: { load: () => this.gate.pass('load') },
      metrics: { mediaClaim: () => undefined },
      writes: this.writes,
    };
    return deps as unknown as MediaDeps;
  }

  readonly writes = {
    changed: () => {
      this.changes += 1;
    },
    publish: async (_: unknown, tracks: TrackState[]): Promise<boolean> => {
      if ((await this.gate.pass('publishTracks')) === false) return false;
      this.stored = tracks.map((track) => ({ ...track }));
      return true;
    },
    unpublishAll: async (): Promise<void> => {
      await this.gate.pass('unpublishAll');
      this.stored = [];
    },
    setMuted: async (_: unknown, trackId: string, muted: boolean): Promise<void> => {
      await this.gate.pass('setMuted');
      for (const track of this.stored) if (track.trackId === trackId) track.muted = muted;
    },
  };
}

export const asNode = (node: FakeNode) => node as unknown as MediaNode;

/** Places every room on the node, unless it is down. */
export function placesOn(node: FakeNode, state: { isUp: boolean } = { isUp: true }): MediaPlaces {
  return { up: () => (state.isUp ? asNode(node) : null) } as unknown as MediaPlaces;
}

/** @param peerConnection the same in all offers of a client's peer connection */
export function publishRequest(peerConnection = 1): ClientMessages['publish'] {
  const sdp = [
    'v=0',
    `o=- ${peerConnection} 2 IN IP4 127.0.0.1`,
    's=-',
    't=0 0',
    'm=audio 9 UDP/TLS/RTP/SAVPF 111',
    'c=IN IP4 0.0.0.0',
    'a=mid:0',
    'a=sendonly',
    'a=rtcp-mux',
    'a=rtpmap:111 opus/48000/2',
    '',
  ].join('\r\n');
  return { type: 'publish', sdp, tracks: [{ trackId: 'mic', mid: '0', source: 'microphone', muted: false }] };
}

/** Resolves when everything has run that waits for nothing but promises. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));
