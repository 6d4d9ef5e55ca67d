import type { SendingOptions } from './sending.js';

/** What to share. The browser lets the user choose the screen, window or tab. */
export interface ScreenOptions extends DisplayMediaStreamOptions, Pick<SendingOptions, 'codec' | 'encodings'> {
  signal?: AbortSignal;
}

/** With the sound, unprocessed: echo cancellation and noise suppression are made for voices. */
const DEFAULTS = {
  video: true,
  audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
  // Newer than TypeScript's types. Browsers ignore the ones that they do not know.
  systemAudio: 'include',
  surfaceSwitching: 'include',
  selfBrowserSurface: 'exclude',
};

export function screenOptions(given: DisplayMediaStreamOptions): DisplayMediaStreamOptions {
  const audio = given.audio === undefined || given.audio === true ? DEFAULTS.audio : given.audio;
  return { ...DEFAULTS, ...given, audio };
}
