import { EventEmitter } from 'node:events';
import { MediaError, MediaNodes, type MediaNode } from '@callplane/media';
import { running, type SimProcess } from '../processes.js';
import type { World } from '../world.js';

export class SimMediaServer {
  readonly id = 'media-1';
  readonly rooms = new Map<string, Set<string>>();
  state: 'up' | 'away' | 'hanging' | 'failing' = 'up';

  constructor(private readonly world: World) {}

  /** The connections of the process that runs. */
  nodes(): MediaNodes {
    return new MediaNodes([this.#node(running.getStore() as SimProcess)]);
  }

  publish(roomId: string, feedId: string): void {
    const feeds = this.rooms.get(roomId) ?? new Set();
    this.rooms.set(roomId, feeds.add(feedId));
  }

  #node(process: SimProcess): MediaNode {
    const call = <T>(what: string, run: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        const fail = (code: 'unavailable' | 'timeout' | 'refused') =>
          reject(new MediaError(code, `the media server is ${this.state}`));
        this.world.after(1, process, `${what} at the media server`, () => {
          if (this.state === 'up') resolve(run());
          else if (this.state === 'away') fail('unavailable');
          else if (this.state === 'failing') fail('refused');
          else this.world.after(5000, process, 'waits in vain for the media server', () => fail('timeout'));
        });
      });
    const isAway = (): boolean => this.state === 'away';
    const node = {
      id: this.id,
      get state() {
        return isAway() ? 'down' : 'up';
      },
      untilUp: (deadlineMs: number) =>
        this.state === 'away'
          ? new Promise((_, reject) =>
              this.world.after(deadlineMs, process, 'waits for the media server', () =>
                reject(new MediaError('unavailable', 'the media server is away')),
              ),
            )
          : Promise.resolve(),
      destroyRoom: (roomId: string) =>
        call('destroys a room', () => (this.rooms.delete(roomId) ? 'destroyed' : 'absent')),
      listRooms: () =>
        call('lists rooms', () => [...this.rooms].map(([roomId, feeds]) => ({ roomId, feeds: feeds.size }))),
      listFeeds: (roomId: string) => call('lists feeds', () => [...(this.rooms.get(roomId) ?? [])]),
      removeFeed: (roomId: string, feedId: string) =>
        call('removes a feed', () => (this.rooms.get(roomId)?.delete(feedId) === true ? 'removed' : 'absent')),
      destroySession: () => call('ends a session', () => 'absent'),
      ping: () => call('asks', () => undefined),
      close: () => Promise.resolve(),
    };
    return Object.assign(new EventEmitter(), node) as unknown as MediaNode;
  }
}
