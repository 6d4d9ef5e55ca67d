import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { findSpeech } from './speech.js';

const folder = mkdtempSync(join(tmpdir(), 'callplane-speech-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['between(t,1,2)+between(t,2.3,3)+between(t,4.5,5)', ['1-3', '4.5-5']],
  ['1', ['0-6']],
  ['0', []],
])('the speech of a track is found beside its silence: %s', async (when, expected) => {
  const path = join(folder, 'track.weba');
  const tone = `aevalsrc=0.3*sin(2000*t)*(${when}):d=6`;
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-f', 'lavfi', '-i', tone, '-c:a', 'libopus', '-f', 'webm', path]);
  const speech = await findSpeech(path, 6000, new AbortController().signal);
  expect(speech.map(({ fromMs, toMs }) => [fromMs, toMs].map((ms) => Math.round(ms / 100) / 10).join('-'))).toEqual(
    expected,
  );
});
