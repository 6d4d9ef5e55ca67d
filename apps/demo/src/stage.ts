import type { Call, LocalTrack, Participant, RemoteTrack } from '@callplane/client-js';
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
  readonly #call: Call;
  readonly #rosterPages: RosterPages;
  readonly #tiles = new Map<string, Tile>();
  readonly #ownName: string;
  readonly #resizes = new ResizeObserver(() => this.#arrange());
  /** The user's choice: a tile, no tile, or (undefined) none, which shows the latest screen. */
  #pinned: string | null | undefined;
  #page = 0;
  #pages = 1;

  constructor(call: Call, ownName: string, rosterPages: RosterPages) {
    this.#call = call;
    this.#ownName = ownName;
    this.#rosterPages = rosterPages;
    this.#list.replaceChildren();
    this.#resizes.observe(this.#list);
    this.#tile('own', ownName, { own: true });
    for (const participant of call.participants.values()) {
      this.#joined(participant);
      for (const track of participant.tracks.values()) this.#changed(track);
    }
    this.#listen();
    button('page-back').onclick = () => void this.#turn(-1);
    button('page-on').onclick = () => void this.#turn(1);
    this.showOwn();
  }

  /** Call after a change of this participant's tracks. */
  showOwn(): void {
    const tracks = [...this.#call.tracks.values()];
    const camera = tracks.find(({ source }) => source === 'camera');
    const microphone = tracks.find(({ source }) => source === 'microphone');
    const own = this.#tiles.get('own');
    own?.show(camera === undefined || camera.muted ? null : camera);
    own?.setMuted(microphone?.muted !== false);
    const screen = tracks.find(({ source }) => source === 'screen');
    if (screen === undefined) this.#remove('own/screen');
    else this.#showScreen('own/screen', this.#ownName, screen, { own: true });
  }

  clear(): void {
    this.#resizes.disconnect();
    for (const tile of this.#tiles.values()) tile.remove();
    this.#tiles.clear();
  }

  #listen(): void {
    const call = this.#call;
    call.on('participantJoined', (participant) => this.#joined(participant));
    call.on('participantUpdated', (participant) => this.#updated(participant));
    for (const event of ['participantLeft', 'participantHidden'] as const) {
      call.on(event, ({ participantId }) => this.#remove(participantId));
    }
    for (const event of ['trackPublished', 'trackUpdated'] as const) call.on(event, (track) => this.#changed(track));
    call.on('trackUnpublished', (track) => this.#ended(track));
    for (const event of ['localTrackPublished', 'localTrackUpdated', 'localTrackUnpublished'] as const) {
      call.on(event, () => this.showOwn());
    }
    call.on('trackQuality', ({ track: { participant, source }, quality }) => {
      const key = source === 'screen' ? `${participant.participantId}/screen` : participant.participantId;
      this.#tiles.get(key)?.setPaused(quality === 'paused');
    });
    call.on('activeSpeakersChanged', (speakers) => this.#speaking(speakers));
    call.on('connectionQuality', ({ participant, level }) =>
      this.#tiles.get(participant?.participantId ?? 'own')?.setQuality(level),
    );
  }

  #joined(participant: Participant): void {
    if (this.#call.isRosterPaged && participant.tracks.size === 0) return;
    this.#addTile(participant);
  }

  #addTile(participant: Participant): Tile {
    const tile = this.#tile(participant.participantId, participant.name, {});
    tile.setMuted(true);
    this.#updated(participant);
    return tile;
  }

  #updated({ participantId, connected, connectionQuality }: Participant): void {
    const tile = this.#tiles.get(participantId);
    tile?.setAway(!connected);
    tile?.setQuality(connectionQuality);
  }

  #changed(track: RemoteTrack): void {
    const { participant, source, muted } = track;
    const { participantId, name } = participant;
    const tile = this.#tiles.get(participantId) ?? this.#addTile(participant);
    if (source === 'microphone') tile.setMuted(muted);
    if (source === 'camera') tile.show(muted ? null : track);
    if (source === 'screen') this.#showScreen(`${participantId}/screen`, name, track, {});
  }

  #ended({ participant, source }: RemoteTrack): void {
    const { participantId, tracks } = participant;
    if (source === 'microphone') this.#tiles.get(participantId)?.setMuted(true);
    if (source === 'camera') this.#tiles.get(participantId)?.show(null);
    if (source === 'screen') this.#remove(`${participantId}/screen`);
    if (this.#call.isRosterPaged && tracks.size === 0) this.#remove(participantId);
  }

  /** Marks the speakers, and brings the loudest to the first page. */
  #speaking(speakers: readonly Participant[]): void {
    const ids = speakers.map(({ participantId }) => participantId);
    for (const [key, tile] of this.#tiles) tile.setSpeaking(ids.includes(key));
    const [loudest] = ids;
    const tile = loudest === undefined ? undefined : this.#tiles.get(loudest);
    if (loudest === undefined || tile?.element.hidden !== true || this.#page > 0) return;
    const own = this.#tiles.get('own');
    const others = [...this.#tiles].filter(([key]) => key !== 'own' && key !== loudest);
    this.#tiles.clear();
    if (own !== undefined) this.#tiles.set('own', own);
    for (const [key, other] of [[loudest, tile] as const, ...others]) this.#tiles.set(key, other);
    this.#arrange();
  }

  #showScreen(key: string, name: string, track: RemoteTrack | LocalTrack, options: { own?: boolean }): void {
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
    if (page >= this.#pages) await this.#rosterPages.next();
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
    const hasMore = this.#rosterPages.hasNext;
    element('pages', HTMLElement).hidden = this.#pages === 1 && !hasMore;
    element('page-number', HTMLElement).textContent = `${this.#page + 1} of ${this.#pages}${hasMore ? '+' : ''}`;
    button('page-back').disabled = this.#page === 0;
    button('page-on').disabled = this.#page === this.#pages - 1 && !hasMore;
  }
}
