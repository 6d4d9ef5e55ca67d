import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import {
  askPage,
  AUTOPLAY,
  BROWSER_PROGRAM,
  CHROMIUM_ARGUMENTS,
  eventually,
  servePage,
  serveScripts,
  stopAtEnd,
  STRICT_PAGE,
  type Site,
} from '@callplane/testing';

/** Counters by name of the sender. */
type Received = Record<string, { packets: number; frames: number; samples: number }>;

export interface JoinOptions {
  url: string;
  token: string;
  publish?: boolean | { audio?: boolean; video?: boolean | MediaTrackConstraints; simulcast?: boolean; codec?: 'h264' };
  iceTransportPolicy?: 'relay';
  /** The port at which relays are reached, such as a shaper's. */
  relayThrough?: number;
  autoSubscribe?: boolean;
  adaptive?: boolean;
  encryption?: { key: string; keyId?: number; cipher?: 'AES-GCM-128' | 'AES-GCM-256' };
  /** Opens a worker whose frames `seenFrames` returns. */
  isSpied?: boolean;
}

interface PageEvent {
  name: string;
  what: any;
  by?: string;
  atMs: number;
}

/** A page with the SDK, of any browser. */
export interface Participant {
  join(options: JoinOptions): Promise<{ sessionId: string; participantId: string }>;
  /** Calls a function of page.mjs. */
  ask<T = any>(what: string, argument?: unknown): Promise<T>;
  events(): Promise<PageEvent[]>;
  close(): Promise<void>;
}

export interface ParticipantPage extends Participant {
  readonly page: Page;
}

export interface Browsers {
  readonly browser: Browser;
  /** @param isStrict whether the page has a content security policy */
  newParticipant(isStrict?: boolean): Promise<ParticipantPage>;
  newPage(options?: BrowserContextOptions): Promise<Page>;
}

/**
 * Starts the Chromium of this test file, with fake microphones, cameras and a screen.
 * @param options.autoplay whether pages may play sound without a gesture of the user
 * @param options.more more arguments of Chromium
 */
export async function openBrowser({ autoplay = true, more = [] as string[] } = {}): Promise<Browsers> {
  const args = [...CHROMIUM_ARGUMENTS, ...more].filter((argument) => autoplay || argument !== AUTOPLAY);
  // Playwright itself allows sound without a gesture.
  const ignoreDefaultArgs = autoplay ? [] : [AUTOPLAY];
  const browser = await chromium.launch({ executablePath: BROWSER_PROGRAM, headless: true, args, ignoreDefaultArgs });
  stopAtEnd(() => browser.close());
  const origin = untilEnd(await servePage());
  const newPage = async (options: BrowserContextOptions = {}) => {
    const context = await browser.newContext(options);
    return context.newPage();
  };
  return {
    browser,
    newPage,
    async newParticipant(isStrict = false) {
      const page = await newPage();
      const ask = await askPage(page, isStrict ? `${origin}${STRICT_PAGE}` : origin);
      return {
        page,
        ask,
        join: (options) => ask('join', options),
        events: () => ask('events'),
        close: () => page.context().close(),
      };
    },
  };
}

/** Resolves once every counter of every participant has grown for each of the others since the call. */
export async function mediaFlows(
  participants: Participant[],
  {
    timeoutMs = 60_000,
    kinds = ['packets', 'frames', 'samples'],
  }: { timeoutMs?: number; kinds?: ('packets' | 'frames' | 'samples')[] } = {},
): Promise<void> {
  await Promise.all(
    participants.map(async (one) => {
      let first: Received | undefined;
      await eventually(
        async () => {
          const now = await one.ask<Received>('received');
          const names = Object.keys(now);
          if (names.length !== participants.length - 1) throw new Error(`sees ${names.join(', ') || 'nobody'}`);
          // Counters of a new connection start at zero, so growth is measured against the lowest value seen.
          first ??= now;
          for (const name of names) {
            for (const kind of kinds) {
              const before = Math.min(first[name]?.[kind] ?? 0, now[name]![kind]);
              if (first[name] !== undefined) first[name][kind] = before;
              if (now[name]![kind] <= before) throw new Error(`${kind} of ${name} do not grow: ${JSON.stringify(now)}`);
            }
          }
          return true;
        },
        { timeoutMs, intervalMs: 150 },
      );
    }),
  );
}

/** @returns the pictures of the participant that the page has decoded */
export async function framesOf(page: Participant, name: string): Promise<number> {
  return (await page.ask<Received>('received'))[name]?.frames ?? 0;
}

/** Resolves once more pictures of the participant are decoded. */
export async function plays(page: Participant, name: string): Promise<void> {
  const before = await framesOf(page, name);
  await eventually(async () => {
    const frames = await framesOf(page, name);
    // The counters of a new connection start at zero.
    return frames > before + 3 || (frames < before && frames > 3);
  });
}

export async function energyOf(page: Participant): Promise<number> {
  return (await page.ask<any[]>('statsOf', 'subscriber'))
    .filter(({ type, kind }) => type === 'inbound-rtp' && kind === 'audio')
    .reduce((sum, { totalAudioEnergy }) => sum + totalAudioEnergy, 0);
}

/** Resolves once more sound is heard. */
export async function hears(page: Participant): Promise<void> {
  const before = await energyOf(page);
  await eventually(async () => {
    const energy = await energyOf(page);
    return energy > 0 && energy !== before;
  });
}

/** Serves the scripts of a folder beside an empty page. */
export async function serveFolder(folder: string): Promise<string> {
  return untilEnd(await serveScripts('', (path) => join(folder, path)));
}

function untilEnd({ origin, close }: Site): string {
  stopAtEnd(close);
  return origin;
}
