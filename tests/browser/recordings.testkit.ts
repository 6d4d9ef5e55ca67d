import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { eventually } from '@callplane/testing';
import type { Page } from 'playwright-core';
import type { Stage } from './stage.testkit.js';

/** Starts recordings of a stage, waits for them, and finds their files. */
export function recordingsOf(stage: Stage) {
  const captured = (roomId: string): string => join(stage.janus.captureFolder, roomId);
  const bytesOf = (roomId: string): number[] =>
    existsSync(captured(roomId))
      ? readdirSync(captured(roomId)).map((file) => statSync(join(captured(roomId), file)).size)
      : [];
  const read = async (id: string) => (await stage.call('GET', `/v1/recordings/${id}`)).body;
  return {
    /** The folder into which Janus records the room. */
    captured,
    async record(roomId: string, body: object): Promise<any> {
      // The agent and the recorder may have just started.
      const started = await eventually(async () => {
        const answer = await stage.call('POST', `/v1/rooms/${roomId}/recordings`, body);
        return answer.status === 503 ? null : answer;
      });
      expect(started).toMatchObject({ status: 202, body: { roomId, status: 'recording', files: [] } });
      return started.body;
    },
    /** Waits until the room is recorded into this number of files, each with some seconds of media. */
    isRecorded: (roomId: string, files: number, bytes = 20_000) =>
      eventually(() => bytesOf(roomId).filter((size) => size > bytes).length >= files),
    finished: (id: string) =>
      eventually(async () => {
        const recording = await read(id);
        return ['completed', 'failed'].includes(recording.status) ? recording : null;
      }),
    linkOf: async (id: string, file: { id: string }): Promise<string> =>
      (await stage.call('POST', `/v1/recordings/${id}/files/${file.id}/url`)).body.url,
  };
}

interface Probe {
  streams: { codec_name: string; width?: number; height?: number; r_frame_rate?: string }[];
  format: { duration: string; format_name: string };
}

export function probe(path: string): Probe {
  const args = ['-v', 'error', '-of', 'json', '-show_format', '-show_streams', path];
  return JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8' })) as Probe;
}

/** Seeks to the middle of a file, plays it to its end, and returns its duration and that place in seconds. */
export function playedIn(page: Page, url: string): Promise<{ seconds: number; at: number }> {
  return page.evaluate(async (url) => {
    const video = document.createElement('video');
    Object.assign(video, { src: url, muted: true });
    const happens = (name: string) =>
      new Promise((resolve, reject) => {
        video.addEventListener(name, resolve, { once: true });
        video.addEventListener('error', () => reject(new Error(video.error?.message)), { once: true });
      });
    const ready = happens('canplay');
    video.load();
    await ready;
    for (const place of [0.5, Math.max(0.5, 1 - 3 / video.duration)]) {
      const seeked = happens('seeked');
      video.currentTime = place * video.duration;
      await seeked;
    }
    const ended = happens('ended');
    await video.play();
    await ended;
    return { seconds: video.duration, at: video.currentTime };
  }, url);
}
