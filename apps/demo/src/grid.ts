import type { Call, Participant, RemoteTrack } from '@callplane/client-js';
import { element } from './elements.js';
import { layOut } from './layout.js';
import { Tile } from './tile.js';

/** As in style.css. */
const GAP_PX = 10;

/** Everybody's pictures, and the others' sound. */
export class Grid {
  readonly #list = element('grid', HTMLUListElement);
  readonly #call: Call;
  readonly #tiles = new Map<string, Tile>();
  readonly #sounds = new Map<RemoteTrack, HTMLAudioElement>();
  readonly #ownName: string;
  readonly #resizes = new ResizeObserver(() => this.#arrange());

  constructor(call: Call, ownName: string) {
    this.#call = call;
    this.#ownName = ownName;
    this.#list.replaceChildren();
    this.#resizes.observe(this.#list);
    this.#tile('own', () => new Tile(ownName, { own: true }));
    for (const participant of call.participants.values()) {
      this.#joined(participant);
      for (const track of participant.tracks.values()) this.#received(track);
    }
    call.on('participantJoined', (participant) => this.#joined(participant));
    call.on('participantUpdated', (participant) => this.#updated(participant));
    call.on('participantLeft', ({ participantId }) => this.#remove(participantId));
    for (const event of ['trackSubscribed', 'trackUpdated', 'trackPublished'] as const) {
      call.on(event, (track) => this.#received(track));
    }
    for (const event of ['trackUnsubscribed', 'trackUnpublished'] as const) {
      call.on(event, (track) => this.#ended(track));
    }
    for (const event of ['localTrackPublished', 'localTrackUnpublished'] as const) call.on(event, () => this.showOwn());
  }

  /** After a change of what this participant sends. */
  showOwn(): void {
    const tracks = [...this.#call.tracks.values()];
    const camera = tracks.find(({ source }) => source === 'camera');
    const microphone = tracks.find(({ source }) => source === 'microphone');
    const own = this.#tiles.get('own');
    own?.show(camera === undefined || camera.muted ? null : camera.mediaStreamTrack);
    own?.setMuted(microphone?.muted !== false);
    const screen = tracks.find(({ source }) => source === 'screen');
    if (screen === undefined) this.#remove('own/screen');
    else {
      this.#tile('own/screen', () => new Tile(this.#ownName, { screen: true })).show(screen.mediaStreamTrack);
    }
  }

  clear(): void {
    this.#resizes.disconnect();
    for (const key of [...this.#tiles.keys()]) this.#remove(key);
    for (const sound of this.#sounds.values()) sound.srcObject = null;
    this.#sounds.clear();
  }

  #joined(participant: Participant): void {
    this.#tile(participant.participantId, () => new Tile(participant.name)).setMuted(true);
    this.#updated(participant);
  }

  #updated({ participantId, connected }: Participant): void {
    this.#tiles.get(participantId)?.setAway(!connected);
  }

  #received(track: RemoteTrack): void {
    const { participant, kind, source, muted, mediaStreamTrack = null } = track;
    const { participantId, name } = participant;
    if (source === 'microphone') this.#tiles.get(participantId)?.setMuted(muted);
    if (source === 'camera') this.#tiles.get(participantId)?.show(muted ? null : mediaStreamTrack);
    if (source === 'screen') {
      this.#tile(`${participantId}/screen`, () => new Tile(name, { screen: true })).show(mediaStreamTrack);
    }
    if (kind === 'audio' && mediaStreamTrack !== null && !this.#sounds.has(track)) {
      const sound = new Audio();
      sound.srcObject = new MediaStream([mediaStreamTrack]);
      void sound.play().catch(() => undefined);
      this.#sounds.set(track, sound);
    }
  }

  #ended(track: RemoteTrack): void {
    const { participantId } = track.participant;
    if (track.source === 'microphone') this.#tiles.get(participantId)?.setMuted(true);
    if (track.source === 'camera') this.#tiles.get(participantId)?.show(null);
    if (track.source === 'screen') this.#remove(`${participantId}/screen`);
    const sound = this.#sounds.get(track);
    if (sound !== undefined) sound.srcObject = null;
    this.#sounds.delete(track);
  }

  #tile(key: string, make: () => Tile): Tile {
    const known = this.#tiles.get(key);
    if (known !== undefined) return known;
    const tile = make();
    this.#tiles.set(key, tile);
    this.#list.append(tile.element);
    this.#arrange();
    return tile;
  }

  #remove(key: string): void {
    this.#tiles.get(key)?.element.remove();
    this.#tiles.delete(key);
    this.#arrange();
  }

  #arrange(): void {
    const { clientWidth: width, clientHeight: height, style } = this.#list;
    const { columns, tileWidth, tileHeight } = layOut(this.#tiles.size, { width, height, gap: GAP_PX });
    style.setProperty('--columns', String(columns));
    style.setProperty('--tile-width', `${tileWidth}px`);
    style.setProperty('--tile-height', `${tileHeight}px`);
  }
}
