import { setTimeout as delay } from 'node:timers/promises';
import { CLOSE_REASONS, type CloseReason } from '@callplane/protocol';
import type { Fleet, Instance } from './fleet.js';
import type { Message, SimSocket, SocketClient } from './ports/sockets.js';
import { running, type SimProcess } from './processes.js';
import type { Random } from '../src/random.js';

/** How often a client tries to resume by itself, and its longest pause before it, in milliseconds. */
const RESUMPTIONS_MAX = 3;
const PAUSE_MS = 1000;
const ANSWER = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n';

export interface Person {
  participantId?: string;
  token?: string;
  roomId?: string;
  sessionId?: string;
  resumeSecret?: string;
  /** The open connection whose welcome has come. */
  socket?: SimSocket;
  /** It does not resume by itself after it has lost its connection. */
  staysAway?: boolean;
  /** It publishes, also after its media server was lost. */
  publishes?: boolean;
  /** When the removal was accepted. */
  removedAtMs?: number;
}

export interface Joined {
  readonly roomId: string;
  readonly participantId: string;
  readonly sentAtMs: number;
  /** `joined`, or the reason of the refusal. */
  readonly outcome: string;
}

/** The clients of participants: their WebSockets to the gateways. */
export class Participants {
  readonly joins: Joined[] = [];

  constructor(
    private readonly fleet: Fleet,
    private readonly process: SimProcess,
    private readonly random: Random,
    /** Whether they receive tracks. */
    private readonly autoSubscribe: boolean,
    /** Called when the peer connections of a participant are new. */
    private readonly onMedia: (person: Person) => void,
  ) {}

  async join(roomId: string, person: Person): Promise<void> {
    const { participantId = '', token } = person;
    const sentAtMs = this.fleet.world.nowMsValue;
    const answer = await this.#arrive(person, { type: 'join', token });
    if (answer === null) return;
    const outcome = answer.type === 'welcome' ? 'joined' : String(answer['reason']);
    this.joins.push({ roomId, participantId, sentAtMs, outcome });
  }

  /** @returns whether the gateway has answered */
  async resume(person: Person): Promise<boolean> {
    const { roomId, sessionId, resumeSecret } = person;
    const answer = await this.#arrive(person, { type: 'resume', roomId, sessionId, resumeSecret });
    return answer !== null && !mayResume(answer['reason']);
  }

  leave({ socket }: Person): void {
    socket?.send({ type: 'leave' });
  }

  /** The network of the client fails. The client does not resume the session by itself. */
  lose(person: Person): void {
    person.socket?.break();
    delete person.socket;
  }

  holderOf(sessionId: string): Instance | undefined {
    return this.fleet.of('gateway').find(({ gateway }) => gateway?.held.has(sessionId) === true);
  }

  /** Opens a connection with its first message. @returns `welcome` or `closing`; null if the connection breaks. */
  #arrive(person: Person, first: object): Promise<Message | null> {
    const all = this.fleet.of('gateway');
    if (all.length === 0) return Promise.resolve(null);
    const { process, gateway } = this.random.pick(all);
    const { world } = this.fleet;
    return new Promise((resolve) => {
      let socket: SimSocket | null = null;
      let reason: unknown;
      const client: SocketClient = {
        received: (message) => {
          if (message.type === 'closing') reason = message['reason'];
          if (message.type === 'offer') socket?.send({ type: 'answer', offerId: message['offerId'], sdp: ANSWER });
          const isUp = message.type === 'mediaState' && message['state'] === 'up';
          if (isUp && person.publishes === true) this.#inside(() => this.onMedia(person));
          if (message.type === 'welcome') this.#welcome(person, socket as SimSocket, message);
          if (message.type === 'welcome' || message.type === 'closing') this.#inside(() => resolve(message));
        },
        closed: () => {
          this.#inside(() => resolve(null));
          if (socket === null || person.socket !== socket) return;
          delete person.socket;
          if (person.staysAway === true) return;
          if (reason === undefined || mayResume(reason)) this.#inside(() => void this.#comeBack(person));
        },
      };
      process.onDeath.push(() => world.after(1, null, `${process.name} accepts no connection`, client.closed));
      world.after(1, process, 'accepts a connection', () => {
        socket = running.run(process, () => gateway?.connect(client) ?? null);
        if (socket === null) client.closed();
        else socket.send({ ...first, autoSubscribe: this.autoSubscribe });
      });
    });
  }

  #welcome(person: Person, socket: SimSocket, { room, sessionId, resumeSecret }: Message): void {
    const { id: roomId } = room as { id: string };
    Object.assign(person, { socket, roomId, sessionId, resumeSecret });
    if (person.publishes === true) this.#inside(() => this.onMedia(person));
  }

  /** As a client library does after a loss or a drain. */
  async #comeBack(person: Person): Promise<void> {
    const isConnected = (): boolean => person.socket !== undefined;
    for (let tries = 0; tries < RESUMPTIONS_MAX && !isConnected(); tries += 1) {
      await delay(this.random.between(1, PAUSE_MS));
      if (isConnected() || (await this.resume(person))) return;
    }
  }

  #inside(run: () => void): void {
    running.run(this.process, run);
  }
}

function mayResume(reason: unknown): boolean {
  return typeof reason === 'string' && CLOSE_REASONS[reason as CloseReason].reconnect === 'resume';
}
