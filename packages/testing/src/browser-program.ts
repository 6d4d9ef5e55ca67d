/**
 * The browser of the tests: Chromium without a user interface. The same engine as /usr/bin/chromium, with the same media,
 * at half the processor time.
 */
export const BROWSER_PROGRAM = '/usr/bin/chromium-headless-shell';
