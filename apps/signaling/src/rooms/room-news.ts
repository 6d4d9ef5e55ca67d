import { presentRoom } from '@callplane/core';
import type { Members } from './members.js';
import type { RoomInfo } from './room-state.js';

/** The shortest interval between two messages, in milliseconds. A change within it is sent at its end. */
const EVERY_MS = 1000;

/** Sends the members of a room its new name, metadata or capacity. A welcome contains the room, so it begins silent. */
export class RoomNews {
  readonly #members: Members;
  #info: RoomInfo | null = null;
  #shown: string | null = null;
  #sentAtMs = -Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(members: Members) {
    this.#members = members;
  }

  /** @param info the present state of the room. */
  show(info: RoomInfo): void {
    this.#info = info;
    this.#shown ??= contentOf(info);
    if (this.#shown === contentOf(info)) return;
    const waitMs = this.#sentAtMs + EVERY_MS - performance.now();
    if (waitMs <= 0) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), waitMs);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #flush(): void {
    this.close();
    if (this.#info === null || this.#shown === contentOf(this.#info)) return;
    this.#shown = contentOf(this.#info);
    this.#sentAtMs = performance.now();
    const { tenant, room } = this.#info;
    const text = JSON.stringify({ type: 'roomUpdated', room: presentRoom(tenant, room) });
    for (const member of this.#members.all) member.sendText(text);
  }
}

/** What the server can change. Clients see the status by other means. */
function contentOf({ room }: RoomInfo): string {
  return JSON.stringify([room.name, room.metadata, room.maxParticipants]);
}
