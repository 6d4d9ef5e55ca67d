import { setTimeout as delay } from 'node:timers/promises';
import type { Call, Platform } from '@callplane/client-js';
import wrtc from '@roamhq/wrtc';
import { REGIONS } from '../fleet/media-servers.js';
import type { Joining } from './calls.js';
import { Load } from './load.js';
import type { HistoryWriter } from './history-writer.js';

const PERMISSIONS = ['room:join', 'audio:publish'];
/** Packets after which media flows. */
const FLOWING = 20;
const FLOWS_WITHIN_MS = 15_000;
/** How long an operation, and the media after it, are watched, in milliseconds. */
const COMPLETED_WITHIN_MS = 60_000;
const WATCHED_MS = 4000;
const LOOK_EVERY_MS = 250;
const PAUSE_MS = 500;

/** Rooms of one tenant in which somebody speaks and somebody listens, one after the other. */
export abstract class SpokenRooms extends Load {
  async run(): Promise<void> {
    while (!this.shared.isOver()) {
      await this.meet();
      await delay(PAUSE_MS);
    }
  }

  protected abstract meet(): Promise<void>;

  /**
   * Lets both join, mostly from two regions, and waits until the listener hears the speaker, at most 15 s.
   * @param calls gets the calls, also if only one could join
   * @returns speaker and listener; null if one of them got no token
   */
  protected async enter(
    roomId: string,
    { peers, tone, calls }: { peers: Peers; tone: ReturnType<typeof startTone>; calls: Call[] },
  ): Promise<[Joining, Joining] | null> {
    const [first, second] = this.random.pick([REGIONS, [...REGIONS].reverse(), []]);
    const speaker = await this.invite(roomId, 'Speaker', { permissions: PERMISSIONS, region: first });
    const listener = await this.invite(roomId, 'Listener', { permissions: PERMISSIONS, region: second });
    if (speaker === null || listener === null) return null;
    for (const one of [speaker, listener]) {
      const call = await this.shared.calls.join(one, (name) => peers.classFor(one, name));
      if (call !== null) calls.push(call);
    }
    await calls[0]?.publish(tone.track, { source: 'microphone' }).catch(() => undefined);
    await until(() => peers.receivedBy(listener.participantId) > FLOWING, FLOWS_WITHIN_MS);
    return [speaker, listener];
  }
}

/**
 * Rooms of one tenant with media: a participant who speaks and one who listens, until one of them is removed or the room
 * is ended. Their peer connections stay open then.
 */
export class MediaLoop extends SpokenRooms {
  protected async meet(): Promise<void> {
    const { random, shared } = this;
    const roomId = await this.newRoom({ name: `Media ${random.text()}`, maxParticipants: 2 }, random.text());
    if (roomId === null) return;
    const peers = new Peers(shared.calls.history, random.chance(0.5));
    const tone = startTone();
    const calls: Call[] = [];
    try {
      const both = await this.enter(roomId, { peers, tone, calls });
      if (both === null) return;
      await this.#cutOff(roomId, random.pick([...both, null]));
      await delay(WATCHED_MS);
    } finally {
      tone.stop();
      peers.close();
      await this.insist('DELETE', `/v1/rooms/${roomId}`);
      await Promise.all(calls.map((call) => call.leave()));
    }
  }

  /** Removes a participant, or ends the room, and waits until that has completed. */
  async #cutOff(roomId: string, who: Joining | null): Promise<void> {
    const path = who === null ? `/v1/rooms/${roomId}` : `/v1/rooms/${roomId}/participants/${who.participantId}`;
    const sent = { prefer: this.random.pick(['respond-async', 'wait=3']) };
    const isEnded = async (): Promise<boolean> => ((await this.insist('DELETE', path, sent))?.status ?? 500) < 300;
    if (!(await (who === null ? isEnded() : this.remove(who, sent)))) return;
    const untilMs = performance.now() + COMPLETED_WITHIN_MS;
    while (performance.now() < untilMs) {
      const { body } = await this.call('GET', `${path}/runtime-operation`);
      if (body.status === 'completed') return;
      await delay(LOOK_EVERY_MS);
    }
  }
}

export async function until(isReached: () => boolean, withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (!isReached() && performance.now() < untilMs) await delay(LOOK_EVERY_MS);
}

const SAMPLE_RATE = 48_000;
const BLOCK_MS = 10;
const SAMPLE_EVERY_MS = 500;

/**
 * The peer connections of the calls of one room. They ignore that the SDK closes them, as a hostile client does: then
 * the media servers alone decide which media they relay. Writes down what each call has received.
 */
export class Peers {
  readonly #connections: { joining: Joining; call: string; connection: RTCPeerConnection; close: () => void }[] = [];
  readonly #sampling: NodeJS.Timeout;
  #latest = new Map<string, number>();
  #isSampling = false;

  /** @param isRelayed whether media takes the way over the TURN server. */
  constructor(
    private readonly history: HistoryWriter,
    private readonly isRelayed: boolean,
  ) {
    this.#sampling = setInterval(() => void this.#sampleAlone(), SAMPLE_EVERY_MS);
  }

  /** The class of the connections of one call. */
  classFor(joining: Joining, call: string): Platform['RTCPeerConnection'] {
    const connections = this.#connections;
    const policy = this.isRelayed ? { iceTransportPolicy: 'relay' as const } : {};
    return function Stubborn(configuration?: RTCConfiguration) {
      const connection = new wrtc.RTCPeerConnection({ ...configuration, ...policy });
      const close = connection.close.bind(connection);
      connection.close = () => undefined;
      connections.push({ joining, call, connection, close });
      return connection;
    } as unknown as Platform['RTCPeerConnection'];
  }

  /** Packets of media that a participant has received, in all of its calls. */
  receivedBy(participantId: string): number {
    return this.#connections
      .filter(({ joining }) => joining.participantId === participantId)
      .reduce((sum, { call }) => Math.max(sum, this.#latest.get(call) ?? 0), 0);
  }

  close(): void {
    clearInterval(this.#sampling);
    for (const { close } of this.#connections.splice(0)) close();
  }

  /** Two samples at once could be written in the wrong order. */
  async #sampleAlone(): Promise<void> {
    if (this.#isSampling) return;
    this.#isSampling = true;
    await this.#sample().finally(() => {
      this.#isSampling = false;
    });
  }

  /** A connection that has just been closed has no statistics: its call would seem to have received less than before. */
  async #sample(): Promise<void> {
    const totals = new Map<string, { joining: Joining; packets: number }>();
    for (const { joining, call, connection } of [...this.#connections]) {
      const packets = await packetsOf(connection).catch(() => null);
      if (packets === null || !this.#connections.some((each) => each.connection === connection)) return;
      totals.set(call, { joining, packets: packets + (totals.get(call)?.packets ?? 0) });
    }
    for (const [call, { joining, packets }] of totals) {
      this.#latest.set(call, packets);
      const { tenant, roomId, participantId } = joining;
      this.history.write('media', {
        atMs: this.history.nowMs,
        tenant,
        roomId,
        participantId,
        call,
        packetsReceived: packets,
      });
    }
  }
}

async function packetsOf(connection: RTCPeerConnection): Promise<number> {
  let packets = 0;
  const stats = await connection.getStats();
  stats.forEach((one: { type?: string; packetsReceived?: number }) => {
    if (one.type === 'inbound-rtp') packets += one.packetsReceived ?? 0;
  });
  return packets;
}

/** Starts an audio track with a sine tone. */
export function startTone(): { track: MediaStreamTrack; stop(): void } {
  const source = new wrtc.nonstandard.RTCAudioSource();
  const track = source.createTrack();
  const numberOfFrames = (SAMPLE_RATE * BLOCK_MS) / 1000;
  const samples = Int16Array.from({ length: numberOfFrames }, (_, n) => 8000 * Math.sin((n * 2 * Math.PI) / 109));
  const block = { samples, sampleRate: SAMPLE_RATE, bitsPerSample: 16, channelCount: 1, numberOfFrames };
  const timer = setInterval(() => source.onData(block), BLOCK_MS);
  return {
    track,
    stop: () => {
      clearInterval(timer);
      track.stop();
    },
  };
}
