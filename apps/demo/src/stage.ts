import type { Call, CallSnapshot, Participant, PublishedTrack, QualityLevel, RemoteTrack } from '@callplane/client-js';
import { button, element } from './elements.js';
import { layOut, type Rect } from './layout.js';
import type { RosterPages } from './people.js';
import { Tile } from './tile.js';

const GAP_PX = 10;

/**
 * The pictures of all participants, in pages. A shared screen, or a tile that the user enlarges, is on the stage and
 * the others are beside it.
 */
export class Stage {
  readonly #list = element('grid', HTMLUListElement);
  readonly #tiles = new Map<string, Tile>();
  readonly #resizes = new ResizeObserver(() => this.#arrange());
  readonly #stop: () => void;
  /** Undefined before the first one. */
  #shown: CallSnapshot | undefined;
  /** The user's choice: a tile, no tile, or (undefined) none, which shows the latest screen. */
  #pinned: string | null | undefined;
  #page = 0;
  #pages = 1;

  constructor(
    private readonly call: Call,
    private readonly ownName: string,
    private readonly rosterPages: RosterPages,
  ) {
    this.#list.replaceChildren();
    this.#resizes.observe(this.#list);
    this.#show();
    this.#stop = call.subscribe(() => this.#show());
    button('page-back').onclick = () => void this.#turn(-1);
    button('page-on').onclick = () => void this.#turn(1);
  }

  clear(): void {
    this.#stop();
    this.#resizes.disconnect();
    for (const tile of this.#tiles.values()) tile.remove();
    this.#tiles.clear();
  }

  /** Shows the differences between two snapshots. */
  #show(): void {
    const before = this.#shown;
    const now = (this.#shown = this.call.getSnapshot());
    const { tracks, connectionQuality, participants, activeSpeakers } = now;
    if (tracks !== before?.tracks || connectionQuality !== before.connectionQuality)
      this.#showPerson('own', this.ownName, { tracks, connectionQuality });
    for (const id of before?.participants.keys() ?? []) if (!participants.has(id)) this.#removePerson(id);
    for (const [id, participant] of participants) {
      if (participant !== before?.participants.get(id)) this.#showParticipant(id, participant);
    }
    if (activeSpeakers[0] !== before?.activeSpeakers[0]) this.#bringForward(activeSpeakers[0]?.participantId);
  }

  #showParticipant(id: string, participant: Participant): void {
    if (this.call.isRosterPaged && participant.tracks.size === 0) {
      this.#removePerson(id);
      return;
    }
    const tile = this.#showPerson(id, participant.name, participant);
    tile.setAway(!participant.connected);
    tile.setSpeaking(participant.isSpeaking);
  }

  #showPerson(
    key: string,
    name: string,
    person: { tracks: ReadonlyMap<string, RemoteTrack | PublishedTrack>; connectionQuality: QualityLevel | undefined },
  ): Tile {
    const own = key === 'own';
    const tracks = new Map([...person.tracks.values()].map((track) => [track.source, track]));
    const camera = tracks.get('camera');
    const tile = this.#tile(key, name, { own });
    tile.show(camera?.muted === false ? camera : null);
    tile.setMuted(tracks.get('microphone')?.muted !== false);
    tile.setQuality(person.connectionQuality);
    const screen = tracks.get('screen');
    if (screen === undefined) this.#remove(`${key}/screen`);
    else this.#showScreen(`${key}/screen`, name, screen, { own });
    return tile;
  }

  /** Brings the loudest speaker to the first page. */
  #bringForward(loudest: string | undefined): void {
    const tile = loudest === undefined ? undefined : this.#tiles.get(loudest);
    if (loudest === undefined || tile?.element.hidden !== true || this.#page > 0) return;
    const own = this.#tiles.get('own');
    const others = [...this.#tiles].filter(([key]) => key !== 'own' && key !== loudest);
    this.#tiles.clear();
    if (own !== undefined) this.#tiles.set('own', own);
    for (const [key, other] of [[loudest, tile] as const, ...others]) this.#tiles.set(key, other);
    this.#arrange();
  }

  #showScreen(key: string, name: string, track: RemoteTrack | PublishedTrack, options: { own?: boolean }): void {
    // A new screen takes the stage, whatever the user chose before.
    if (!this.#tiles.has(key)) this.#pinned = undefined;
    this.#tile(key, name, { ...options, screen: true }).show(track);
  }

  #tile(key: string, name: string, options: { own?: boolean; screen?: boolean }): Tile {
    const known = this.#tiles.get(key);
    if (known !== undefined) return known;
    const tile = new Tile(name, { ...options, onPin: () => this.#pin(key) });
    this.#tiles.set(key, tile);
    this.#list.append(tile.element);
    this.#arrange();
    return tile;
  }

  #removePerson(key: string): void {
    this.#remove(key);
    this.#remove(`${key}/screen`);
  }

  #remove(key: string): void {
    this.#tiles.get(key)?.remove();
    if (!this.#tiles.delete(key)) return;
    if (this.#pinned === key) this.#pinned = undefined;
    this.#arrange();
  }

  #pin(key: string): void {
    this.#pinned = this.#staged() === key ? null : key;
    this.#page = 0;
    this.#arrange();
  }

  /** The key of the tile on the stage. */
  #staged(): string | undefined {
    if (this.#pinned !== undefined) return this.#pinned ?? undefined;
    const screens = [...this.#tiles.keys()].filter((key) => this.#tiles.get(key)?.isScreen);
    return screens.filter((key) => key !== 'own/screen').at(-1) ?? screens.at(-1);
  }

  async #turn(pages: number): Promise<void> {
    const page = this.#page + pages;
    if (page >= this.#pages) await this.rosterPages.next();
    this.#page = Math.max(0, page);
    this.#arrange();
  }

  #arrange(): void {
    const { clientWidth: width, clientHeight: height } = this.#list;
    const staged = this.#staged();
    const others = [...this.#tiles.keys()].filter((key) => key !== staged);
    const place = (from: number) => layOut(others.length - from, staged !== undefined, { width, height, gap: GAP_PX });
    const { perPage } = place(0);
    this.#pages = Math.max(1, Math.ceil(others.length / perPage));
    this.#page = Math.min(this.#page, this.#pages - 1);
    const first = this.#page * perPage;
    const { stage, tiles } = place(first);
    const rects = new Map<string | undefined, Rect>(tiles.map((rect, index) => [others[first + index], rect]));
    if (staged !== undefined && stage !== undefined) rects.set(staged, stage);
    for (const [key, tile] of this.#tiles) tile.place(rects.get(key) ?? null, key === staged);
    this.#showPages();
  }

  #showPages(): void {
    const hasMore = this.rosterPages.hasNext;
    element('pages', HTMLElement).hidden = this.#pages === 1 && !hasMore;
    element('page-number', HTMLElement).textContent = `${this.#page + 1} of ${this.#pages}${hasMore ? '+' : ''}`;
    button('page-back').disabled = this.#page === 0;
    button('page-on').disabled = this.#page === this.#pages - 1 && !hasMore;
  }
}

const EVERY_MS = 1_000;

/** The fields of WebRTC's statistics that this page reads; browsers omit fields that they do not support. */
type Entry = Partial<RTCInboundRtpStreamStats & RTCOutboundRtpStreamStats & RTCIceCandidatePairStats>;

/** Updates one line every second: bitrates, resolution, loss, round trip. Returns a function that stops it. */
export function showStatistics(call: Call): () => void {
  const line = element('statistics', HTMLParagraphElement);
  let before = { sent: 0, received: 0, at: performance.now() };
  const look = async () => {
    const { publisher, subscriber } = await call.getStats();
    const [out, into] = [entriesOf(publisher), entriesOf(subscriber)];
    const sent = sum(out, 'outbound-rtp');
    const received = sum(into, 'inbound-rtp');
    const at = performance.now();
    const rate = (bytes: number, earlier: number) =>
      `${Math.round(Math.max(0, ((bytes - earlier) * 8) / (at - before.at)))} kbit/s`;
    const parts = [
      `↑ ${rate(sent.bytes, before.sent)}${sent.resolution}`,
      `↓ ${rate(received.bytes, before.received)}${received.resolution}`,
      `${received.lost} packets lost${shareOf(received)}`,
      roundTrip([...out, ...into]),
    ];
    line.textContent = parts.filter((part) => part !== '').join('  ·  ');
    before = { sent: sent.bytes, received: received.bytes, at };
  };
  const timer = setInterval(() => void look().catch(() => undefined), EVERY_MS);
  return () => {
    clearInterval(timer);
    line.textContent = '';
  };
}

function entriesOf(report: RTCStatsReport | undefined): Entry[] {
  return report === undefined ? [] : [...(report as unknown as Map<string, Entry>).values()];
}

/** Sums over all tracks of one direction. */
function sum(entries: Entry[], type: string) {
  const sums = { bytes: 0, packets: 0, lost: 0, resolution: '' };
  let largest = 0;
  for (const entry of entries) {
    if (entry.type !== type) continue;
    sums.bytes += entry.bytesSent ?? entry.bytesReceived ?? 0;
    sums.packets += entry.packetsSent ?? entry.packetsReceived ?? 0;
    sums.lost += Math.max(0, entry.packetsLost ?? 0);
    const { frameWidth = 0, frameHeight = 0, framesPerSecond = 0 } = entry;
    if (frameWidth * frameHeight <= largest) continue;
    largest = frameWidth * frameHeight;
    sums.resolution = `, ${frameWidth}×${frameHeight}, ${Math.round(framesPerSecond)} fps`;
  }
  return sums;
}

function roundTrip(entries: Entry[]): string {
  const pair = entries.find(
    ({ type, nominated, state }) => type === 'candidate-pair' && nominated && state === 'succeeded',
  );
  if (pair?.currentRoundTripTime === undefined) return '';
  return `round trip ${Math.round(pair.currentRoundTripTime * 1000)} ms`;
}

function shareOf({ lost, packets }: { lost: number; packets: number }): string {
  if (lost === 0) return '';
  return ` (${((100 * lost) / (lost + packets)).toFixed(1)} %)`;
}
