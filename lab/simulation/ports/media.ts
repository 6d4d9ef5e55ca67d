import { EventEmitter } from 'node:events';
import { MediaError, MediaNodes, type MediaNode, type MediaSession, type RemoteFeed } from '@callplane/media';
import { FakeSubscriber, type FakeStream } from '../../../apps/signaling/src/media/fake-subscriber.testkit.js';
import { janusForwards } from '../../../packages/media/src/janus/forwards.js';
import type { JanusHandle } from '../../../packages/media/src/janus/handle.js';
import { JANUS, JanusError } from '../../../packages/media/src/janus/messages.js';
import { running, type SimProcess } from '../processes.js';
import type { World } from '../world.js';

/** The region of each server. */
export const REGIONS = ['eu', 'us'];
/** Each feed has one stream. */
const MID = '0';
const DEADLINE_MS = 5000;
/** Until Janus lists a feed that it has said to receive, in milliseconds. */
const LISTED_WITHIN_MS = 100;

/** A stream of a publisher, or of a feed that another server forwards. */
interface Stream extends FakeStream {
  /** The forwards that send it to other servers. */
  readonly forwards: Set<string>;
}

/** A receiving handle of a session. */
interface Receiver {
  readonly process: SimProcess;
  readonly mediaSession: number;
  readonly roomId: string;
  readonly sessionId: string;
  readonly handle: FakeSubscriber;
}

type State = 'up' | 'away' | 'hanging' | 'failing';
type Call = <T>(what: string, run: () => T | Promise<T>) => Promise<T>;
type SimNode = MediaNode & { streamsOf(roomId: string, feedId: string): Promise<[]> };

const nameOf = (feedId: string): string => `${feedId}/${MID}`;
const isUsed = ({ process, handle }: Receiver): boolean => process.isAlive && !handle.isDetached;

/** The media servers of a fleet. */
export class SimMedia {
  readonly servers: readonly SimMediaServer[];

  constructor(world: World, count: number) {
    this.servers = Array.from({ length: count }, (_, at) => new SimMediaServer(world, `media-${at + 1}`));
  }

  /** The connections of the process that runs. */
  nodes(): MediaNodes {
    const process = running.getStore() as SimProcess;
    return new MediaNodes(this.servers.map((server) => server.connect(process)));
  }

  set state(state: State) {
    for (const server of this.servers) server.state = state;
  }

  /** The feed from which a session is sent a publisher's stream: its own, or a forward that is sent; null if it is not. */
  receivedAs(sessionId: string, feedId: string): string | null {
    const { forwards = [] } = this.feeds.find((feed) => feed.feedId === feedId) ?? {};
    const sent = this.servers.flatMap(({ receivers }) =>
      receivers.flatMap((one) => (one.sessionId === sessionId && isUsed(one) ? one.handle.sent : [])),
    );
    return [feedId, ...forwards].find((name) => sent.includes(nameOf(name))) ?? null;
  }

  /** All feeds, with the names of the forwards that send them. */
  get feeds(): { server: string; feedId: string; forwards: ReadonlySet<string> }[] {
    return this.servers.flatMap(({ id, rooms }) =>
      [...rooms.values()].flatMap((room) => [...room.values()].map((stream) => ({ server: id, ...stream }))),
    );
  }
}

/** A Janus in memory. Its forwards behave as forwards.slow.test.ts of packages/media proves for Janus. */
export class SimMediaServer {
  readonly rooms = new Map<string, Map<string, Stream>>();
  /** Feeds whose room was destroyed while the server began to receive them. Janus keeps their ports. */
  portsKept: string[] = [];
  receivers: Receiver[] = [];
  #state: State = 'up';
  #awaySinceMs = 0;
  #mediaSessions = 0;
  #life = 0;
  readonly #connected: { process: SimProcess; node: EventEmitter }[] = [];
  /** Requests that it carries out when it runs again. */
  #late: (() => void)[] = [];
  #isLate = false;

  constructor(
    private readonly world: World,
    readonly id: string,
  ) {}

  get state(): State {
    return this.#state;
  }

  set state(state: State) {
    if (state === this.#state) return;
    const isNews = state === 'away' || this.#state === 'away';
    this.#state = state;
    this.#awaySinceMs = this.world.monotonicMs();
    this.#isLate = true;
    if (state !== 'hanging') for (const run of this.#late.splice(0)) run();
    this.#isLate = false;
    for (const { process, node } of isNews ? this.#connected : []) {
      this.#tell(process, () => node.emit(state === 'away' ? 'down' : 'up', new Error('the media server is away')));
    }
  }

  /** It ends, and begins anew with nothing as soon as its state is `up`. */
  lose(): void {
    this.#late = [];
    this.rooms.clear();
    this.portsKept = [];
    this.#life += 1;
    for (const { process, handle } of this.receivers.splice(0))
      this.#tell(process, () => handle.emit('closed', 'lost'));
    this.state = 'away';
  }

  /** A session begins to publish, in place of what it has published here before. */
  publish(roomId: string, sessionId: string, feedId: string): void {
    for (const stream of [...(this.rooms.get(roomId)?.values() ?? [])]) {
      if (stream.feedId.startsWith(`${sessionId}-`) && !stream.feedId.includes('+')) this.end(roomId, stream.feedId);
    }
    this.#add(roomId, feedId);
  }

  /** @returns whether there was such a feed */
  end(roomId: string, feedId: string): boolean {
    for (const { handle, ...receiver } of this.receivers) {
      if (receiver.roomId === roomId) handle.end({ feedId, mid: MID });
    }
    return this.rooms.get(roomId)?.delete(nameOf(feedId)) === true;
  }

  #add(roomId: string, feedId: string): void {
    const room = this.rooms.get(roomId) ?? new Map<string, Stream>();
    this.rooms.set(roomId, room);
    room.set(nameOf(feedId), { feedId, mid: MID, kind: 'audio', codec: 'opus', forwards: new Set() });
  }

  #tell(process: SimProcess, run: () => void): void {
    if (process.isAlive) this.world.after(1, process, `hears of ${this.id}`, () => running.run(process, run));
  }

  connect(process: SimProcess): MediaNode {
    const call: Call = (what, run) =>
      new Promise((resolve, reject) => {
        const carryOut = () => running.run(process, async () => run());
        this.world.after(1, process, `${what} at ${this.id}`, () => {
          const { state } = this;
          const fail = (code: 'unavailable' | 'timeout' | 'refused') =>
            reject(new MediaError(code, `${this.id} is ${state}`));
          if (state === 'up') carryOut().then(resolve, reject);
          else if (state === 'away') fail('unavailable');
          else if (state === 'failing') fail('refused');
          else {
            this.#late.push(() => void carryOut().catch(() => undefined));
            this.world.after(DEADLINE_MS, process, `waits in vain for ${this.id}`, () => fail('timeout'));
          }
        });
      });
    const node = Object.assign(new EventEmitter(), this.#requests(call), this.#node(process, call));
    Object.defineProperty(node, 'state', { get: () => (this.state === 'away' ? 'down' : 'up') });
    Object.defineProperty(node, 'downForMs', {
      get: () => (this.state === 'away' ? this.world.monotonicMs() - this.#awaySinceMs : 0),
    });
    this.#connected.push({ process, node });
    return node as unknown as MediaNode;
  }

  #node(process: SimProcess, call: Call) {
    return {
      id: this.id,
      untilUp: (deadlineMs: number) =>
        this.state === 'away'
          ? new Promise((_, reject) =>
              this.world.after(deadlineMs, process, `waits for ${this.id}`, () =>
                reject(new MediaError('unavailable', `${this.id} is away`)),
              ),
            )
          : Promise.resolve(),
      openSession: () => call('opens a session', () => this.#openSession(process, call)),
      claimSession: () =>
        call('claims a session', () => {
          throw new MediaError('unavailable', 'there is no such session');
        }),
      destroySession: (id: number) => call('ends a session', () => (this.#endSession(id) ? 'destroyed' : 'absent')),
      ping: () => call('asks', () => undefined),
      close: () => Promise.resolve(),
    };
  }

  #requests(call: Call) {
    const listFeeds = (roomId: string) =>
      call('lists feeds', () => [...(this.rooms.get(roomId)?.values() ?? [])].map(({ feedId }) => feedId));
    const ensureRoom = (roomId: string) =>
      call('makes a room', () => void this.rooms.set(roomId, this.rooms.get(roomId) ?? new Map()));
    const control = {
      request: (body: Record<string, unknown>) => call(String(body['request']), () => ({ data: this.#forward(body) })),
    };
    const managed = (room: string) => ({ room, secret: '' });
    const forwards = janusForwards(control as unknown as JanusHandle, 'admin', managed, listFeeds);
    return {
      listFeeds,
      ensureRoom,
      forwards,
      destroyRoom: (roomId: string) =>
        call('destroys a room', () => (this.rooms.delete(roomId) ? 'destroyed' : 'absent')),
      listRooms: () =>
        call('lists rooms', () => [...this.rooms].map(([roomId, room]) => ({ roomId, feeds: room.size }))),
      removeFeed: (roomId: string, feedId: string) =>
        call('removes a feed', () => (this.end(roomId, feedId) ? 'removed' : 'absent')),
      streamsOf: (roomId: string, feedId: string) =>
        call('lists streams', () => {
          const stream = this.rooms.get(roomId)?.get(nameOf(feedId));
          if (stream === undefined) throw new MediaError('no_such_feed', `${feedId} publishes nothing`);
          return [{ ...stream, rest: {} }];
        }),
      /** As `MediaNode` does. */
      receiveFrom: async (from: SimNode, roomId: string, feedId: string, remote: RemoteFeed) => {
        const streams = await from.streamsOf(roomId, feedId);
        await ensureRoom(roomId);
        await forwards.receive(roomId, remote, streams, this.id);
        await from.forwards.send(roomId, feedId, remote, this.id, this.id);
        return [MID];
      },
    };
  }

  /** @throws JanusError */
  #forward({ request, room: roomId, id, publisher_id: publisherId, remote_id: remoteId }: Record<string, unknown>) {
    const room = this.rooms.get(String(roomId));
    const refuse = (code: number): never => {
      throw new JanusError(String(request), code, String(roomId));
    };
    if (room === undefined) return refuse(JANUS.noSuchRoom);
    if (request === 'add_remote_publisher') {
      // Janus answers before the room has the feed. A server that was frozen carries out its late requests at once: an
      // end that waits before it is sent separates them no more.
      const [life, isLate] = [this.#life, this.#isLate];
      this.world.after(this.world.random.below(LISTED_WITHIN_MS), null, 'a forwarded feed begins', () => {
        if (this.rooms.get(String(roomId)) === room) this.#add(String(roomId), String(id));
        else if (life === this.#life && !isLate) this.portsKept.push(String(id));
      });
      return {};
    }
    if (request === 'remove_remote_publisher') {
      return this.end(String(roomId), String(id)) ? {} : refuse(JANUS.noSuchFeed);
    }
    const { forwards } = room.get(nameOf(String(publisherId))) ?? refuse(JANUS.noSuchFeed);
    if (request === 'listremotes') return { list: [...forwards].map((name) => ({ remote_id: name })) };
    if (request === 'publish_remotely') forwards.add(String(remoteId));
    else if (!forwards.delete(String(remoteId))) refuse(JANUS.noSuchFeed);
    return {};
  }

  #openSession(process: SimProcess, call: Call): MediaSession {
    this.#mediaSessions += 1;
    const id = this.#mediaSessions;
    const destroy = () => call('ends a session', () => void this.#endSession(id)).catch(() => undefined);
    const session = {
      id,
      isOpen: true,
      attachSubscriber: (roomId: string, label: string) =>
        call('attaches', () => {
          const streams = () => this.rooms.get(roomId) ?? new Map<string, Stream>();
          const published = { get: (name: string) => streams().get(name), has: (name: string) => streams().has(name) };
          const handle = withCalls(new FakeSubscriber(published as ReadonlyMap<string, FakeStream>), call);
          const [sessionId = ''] = label.split('-');
          this.receivers.push({ process, mediaSession: id, roomId, sessionId, handle });
          return handle;
        }),
      destroy: () => {
        session.isOpen = false;
        return destroy();
      },
      abandon: () => (session.isOpen = false),
    };
    return session as unknown as MediaSession;
  }

  #endSession(id: number): boolean {
    const ended = this.receivers.filter(({ mediaSession }) => mediaSession === id);
    for (const { handle } of ended) void handle.detach();
    this.receivers = this.receivers.filter(({ handle }) => !handle.isDetached);
    return ended.length > 0;
  }
}

/** Each request of the handle takes its time, and fails as the server does. */
function withCalls(handle: FakeSubscriber, call: Call): FakeSubscriber {
  for (const name of ['update', 'switch', 'restart', 'configure', 'listSections', 'answer'] as const) {
    const request = handle[name].bind(handle) as (...args: unknown[]) => Promise<unknown>;
    Object.assign(handle, { [name]: (...args: unknown[]) => call(name, () => request(...args)) });
  }
  return handle;
}
