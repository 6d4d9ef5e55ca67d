import puppeteer from 'puppeteer-core';
import { askPage, servePage, stopAtEnd, STRICT_PAGE } from '@callplane/testing';
import type { Participant } from './pages.testkit.js';

const PREFERENCES = {
  'media.navigator.streams.fake': true,
  'media.navigator.permission.disabled': true,
  'media.autoplay.default': 0,
  // Without mDNS: the media server finds no names of the local network.
  'media.peerconnection.ice.obfuscate_host_addresses': false,
};

/** Starts Debian's Firefox with fake devices, over WebDriver BiDi. Playwright needs a Firefox of its own. */
export async function openFirefox(): Promise<() => Promise<Participant>> {
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: '/usr/bin/firefox-esr',
    extraPrefsFirefox: PREFERENCES,
    // The tests have time-outs of their own.
    timeout: 0,
    protocolTimeout: 0,
  });
  stopAtEnd(() => browser.close());
  const { origin, close } = await servePage();
  stopAtEnd(close);
  return async () => {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    const ask = await askPage(page, `${origin}${STRICT_PAGE}`);
    return { ask, join: (options) => ask('join', options), events: () => ask('events'), close: () => context.close() };
  };
}
