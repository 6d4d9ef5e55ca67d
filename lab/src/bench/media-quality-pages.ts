import { askPage, CHROMIUM_ARGUMENTS, servePage, type Ask } from '@callplane/testing';
import { chromium, type Page } from 'playwright-core';
import { cpuMs, treeOf } from '../fleet/stage.js';
import { printRow } from './figures.js';

/** Including the time in which the participants enter. */
const SCENARIO_MS_MAX = 120_000;

/** Sums of what a page has received so far, as `meter` of page.mjs counts it. */
export interface Meter {
  atMs: number;
  frames: number;
  freezes: number;
  frozenSeconds: number;
  concealed: number;
  samples: number;
  bytes: number;
  lost: number;
  height: number;
}

export interface BenchPage {
  join(options: object): Promise<unknown>;
  meter(): Promise<Meter>;
  /** Calls a function of page.mjs. */
  ask: Ask;
}

interface SentStats {
  type: string;
  bytesSent: number;
  headerBytesSent?: number;
  pliCount?: number;
  keyFramesEncoded?: number;
}

/** The statistics of each layer and track that the page sends. */
export async function sentOf(page: BenchPage): Promise<SentStats[]> {
  return (await page.ask<SentStats[]>('statsOf', 'publisher')).filter(({ type }) => type === 'outbound-rtp');
}

/** Of all media that the page has sent so far. */
export async function sentBytesOf(page: BenchPage): Promise<number> {
  const sent = await sentOf(page);
  return sent.reduce((sum, { bytesSent, headerBytesSent = 0 }) => sum + bytesSent + headerBytesSent, 0);
}

/**
 * The system's Chromium, with fake devices.
 * @param camera a Y4M file that the camera shows over and over; Chromium's own picture without one
 * @param program with a user interface unless it is given
 */
export async function openPages(camera?: string, program = '/usr/bin/chromium') {
  const server = await chromium.launchServer({
    executablePath: program,
    headless: true,
    args: [...CHROMIUM_ARGUMENTS, ...(camera ? [`--use-file-for-fake-video-capture=${camera}`] : [])],
  });
  const browser = await chromium.connect(server.wsEndpoint());
  const site = await servePage();
  const pid = server.process().pid ?? 0;
  const opened = new Set<Page>();
  return {
    /** Processor time of the browser with all of its processes so far. */
    cpuMs: () => treeOf(pid).reduce((sum, one) => sum + cpuMs(one), 0),
    async open(): Promise<BenchPage> {
      const page = await (await browser.newContext()).newPage();
      opened.add(page);
      const ask = await askPage(page, site.origin);
      return {
        ask,
        join: (options) => ask('join', options),
        meter: () => ask('meter'),
      };
    },
    /** Whatever waits for one of the pages fails. */
    async closeAll() {
      const all = [...opened];
      opened.clear();
      await Promise.all(all.map((page) => page.context().close()));
    },
    async close() {
      await server.close();
      await site.close();
    },
  };
}

export type Pages = Awaited<ReturnType<typeof openPages>>;

/** A scenario that fails, or does not end, takes its row alone: without its pages it fails. */
export async function bounded(name: string, pages: Pages, measuring: () => Promise<void>): Promise<void> {
  const timer = setTimeout(() => void pages.closeAll(), SCENARIO_MS_MAX);
  try {
    await measuring();
  } catch (error) {
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    printRow(name, `failed: ${reason}`);
  } finally {
    clearTimeout(timer);
    await pages.closeAll();
  }
}
