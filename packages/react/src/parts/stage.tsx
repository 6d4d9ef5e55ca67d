'use client';
import type { CallSnapshot, TrackSource } from '@callplane/client-js';
import { memo, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useCall, useCallState } from '../context.js';
import { useRosterPages } from '../hooks.js';
import { trackOf } from '../local-media.js';
import { useTexts } from '../texts.js';
import { Icon } from './icons.js';
import { layOut, type Rect } from './layout.js';
import { useReception } from './reception.js';
import { Tile } from './tile.js';

const OWN = 'own';
const SCREEN = '/screen';
const isScreen = (key: string) => key.endsWith(SCREEN);
const GAP_PX = 10;

export interface StageProps {
  /** `speaker` shows the latest speaker large; default `grid`. A shared screen is always large. */
  mode?: 'grid' | 'speaker' | undefined;
}

/** The pictures of all participants in pages. Plays the pictures that it shows, and receives no others. */
export function Stage({ mode = 'grid' }: StageProps) {
  const texts = useTexts();
  const call = useCall();
  const list = useRef<HTMLUListElement>(null);
  const space = useSize(list);
  const { hasNext, next } = useRosterPages();
  const [wantedPage, setPage] = useState(0);
  const [front, setFront] = useState<readonly string[]>([]);
  const present = useCallState(keysOf);
  const keys = useMemo(() => inOrder(present, front), [present, front]);
  const { staged, pin } = useStaged(keys, mode);
  const others = keys.filter((key) => key !== staged);
  const place = (from: number) => layOut(others.length - from, staged !== undefined, { ...space, gap: GAP_PX });
  const { perPage } = place(0);
  const pages = Math.max(1, Math.ceil(others.length / perPage));
  const page = Math.min(wantedPage, pages - 1);
  const { stage, tiles } = place(page * perPage);
  const shown = others.slice(page * perPage, page * perPage + tiles.length);
  const rects = new Map(shown.map((key, at) => [key, tiles[at]]));
  if (staged !== undefined) rects.set(staged, stage);
  const shownKeys = [...rects.keys()].sort().join(' ');
  // Before it has a size, nobody knows how many tiles fit.
  useReception(space.width > 0 ? call : undefined, shownKeys);
  useEffect(() => {
    // The loudest speaker comes to the first page.
    if (call === undefined || page > 0) return undefined;
    return call.subscribe(() => {
      const loudest = call.activeSpeakers[0]?.participantId;
      if (loudest === undefined || shownKeys.split(' ').includes(loudest)) return;
      setFront((before) => [loudest, ...before.filter((id) => id !== loudest)].slice(0, perPage));
    });
  }, [call, page, perPage, shownKeys]);
  const turn = async (to: number) => {
    if (to >= pages) await next();
    setPage(Math.max(0, to));
  };
  return (
    <section className="cp-stage" aria-label={texts.participants}>
      <ul ref={list} className="cp-grid">
        {space.width > 0 &&
          keys.map((key) => {
            const rect = rects.get(key);
            return rect && <Slot key={key} id={key} rect={rect} isStaged={key === staged} onPin={pin} />;
          })}
      </ul>
      {(pages > 1 || hasNext) && (
        <div className="cp-pages">
          <button
            type="button"
            className="cp-button"
            aria-label={texts.back}
            disabled={page === 0}
            onClick={() => void turn(page - 1)}
          >
            <Icon name="back" />
          </button>
          <span aria-live="polite">{texts.page(page + 1, `${pages}${hasNext ? '+' : ''}`)}</span>
          <button
            type="button"
            className="cp-button"
            aria-label={texts.next}
            disabled={page === pages - 1 && !hasNext}
            onClick={() => void turn(page + 1)}
          >
            <Icon name="next" />
          </button>
        </div>
      )}
    </section>
  );
}

/** A tile for each participant, and one for each shared screen. In a large room, viewers have none. */
function keysOf({ participants, tracks, isRosterPaged }: CallSnapshot): readonly string[] {
  const withScreen = (key: string, all: ReadonlyMap<string, { source: TrackSource }>) =>
    trackOf(all, 'screen') === undefined ? [key] : [key, key + SCREEN];
  return [
    ...withScreen(OWN, tracks),
    ...[...participants].flatMap(([id, one]) =>
      isRosterPaged && one.tracks.size === 0 ? [] : withScreen(id, one.tracks),
    ),
  ];
}

/** You come first, then the ids in `front`, then the others as they joined. */
function inOrder(keys: readonly string[], front: readonly string[]): readonly string[] {
  const rankOf = (key: string) => (key.startsWith(OWN) ? -1 : front.includes(key) ? front.indexOf(key) : front.length);
  return [...keys].sort((a, b) => rankOf(a) - rankOf(b));
}

/** The tile that is shown large: the user's choice, else the latest screen, else in the mode `speaker` the speaker. */
function useStaged(keys: readonly string[], mode: 'grid' | 'speaker') {
  /** The user's choice: a tile, no tile (null), or undefined. */
  const [pinned, setPinned] = useState<string | null>();
  const loudest = useCallState(({ activeSpeakers }) =>
    mode === 'speaker' ? activeSpeakers[0]?.participantId : undefined,
  );
  const [speaker, setSpeaker] = useState<string>();
  // In silence, the latest speaker stays.
  if (loudest !== undefined && loudest !== speaker) setSpeaker(loudest);
  const screens = keys.filter(isScreen);
  const screenCount = useRef(0);
  useEffect(() => {
    // A new screen takes the stage, whatever the user chose before.
    if (screens.length > screenCount.current) setPinned(undefined);
    screenCount.current = screens.length;
  }, [screens.length]);
  const latestScreen = screens.filter((key) => !key.startsWith(OWN)).at(-1) ?? screens.at(-1);
  const speaking = mode === 'speaker' ? (speaker ?? keys.find((key) => key !== OWN)) : undefined;
  const automatic = latestScreen ?? speaking;
  const chosen = pinned !== undefined && (pinned === null || keys.includes(pinned)) ? pinned : automatic;
  const staged = chosen !== null && chosen !== undefined && keys.includes(chosen) ? chosen : undefined;
  const latest = useRef(staged);
  useEffect(() => {
    latest.current = staged;
  });
  const pin = useCallback((key: string) => setPinned(latest.current === key ? null : key), []);
  return { staged, pin };
}

interface SlotProps {
  id: string;
  rect: Rect;
  isStaged: boolean;
  onPin: (key: string) => void;
}

const Slot = memo(
  function Slot({ id, rect, isStaged, onPin }: SlotProps) {
    const participantId = id.replace(SCREEN, '');
    const onPinTile = useCallback(() => onPin(id), [id, onPin]);
    return (
      <li
        className="cp-slot"
        style={{ insetInlineStart: rect.left, top: rect.top, width: rect.width, height: rect.height }}
      >
        <Tile
          participantId={participantId === OWN ? undefined : participantId}
          source={isScreen(id) ? 'screen' : 'camera'}
          isStaged={isStaged}
          onPin={onPinTile}
        />
      </li>
    );
  },
  (before, { rect, isStaged, onPin }) =>
    before.isStaged === isStaged &&
    before.onPin === onPin &&
    (['left', 'top', 'width', 'height'] as const).every((side) => before.rect[side] === rect[side]),
);

function useSize(ref: { readonly current: HTMLElement | null }): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = element;
      setSize((before) => (before.width === width && before.height === height ? before : { width, height }));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref]);
  return size;
}
