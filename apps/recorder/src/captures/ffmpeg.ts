import { spawn } from 'node:child_process';

/** Below the calls of the same machine. */
const NICENESS = '10';
/** Of the recorder's malloc. ffmpeg would map each frame anew, which takes 15 % more processor time (measured). */
const UNSET = ['MALLOC_TRIM_THRESHOLD_', 'MALLOC_MMAP_THRESHOLD_'].flatMap((name) => ['-u', name]);
const ERROR_CHARACTERS_MAX = 2000;

/**
 * @param options.cwd the folder of relative paths
 * @throws an error with what ffmpeg has said
 */
export function ffmpeg(args: readonly string[], options: { signal?: AbortSignal; cwd?: string } = {}): Promise<void> {
  const command = ['nice', '-n', NICENESS, 'ffmpeg', '-nostdin', '-hide_banner', '-loglevel', 'error', '-y'];
  return new Promise((resolve, reject) => {
    const child = spawn('env', [...UNSET, ...command, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      killSignal: 'SIGKILL',
      ...options,
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-ERROR_CHARACTERS_MAX)));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`ffmpeg exited with ${code ?? 'a signal'}: ${said.trim()}`));
    });
  });
}

export async function hasFfmpeg(): Promise<boolean> {
  try {
    await ffmpeg(['-version']);
    return true;
  } catch {
    return false;
  }
}

/** Writes the same track with an index in front and a duration, so that players can seek. */
export function addIndex(from: string, to: string, signal: AbortSignal): Promise<void> {
  return ffmpeg(['-i', from, '-map', '0', '-c', 'copy', '-cues_to_front', '1', '-f', 'webm', to], { signal });
}
