import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { repositoryRoot, stopAtEnd } from '@callplane/testing';

/** A fenced block of a guide. */
export interface Fence {
  page: string;
  line: number;
  language: string;
  /** Why it does not run as it stands: the text after `no-run` in the info string. */
  reason: string | undefined;
  code: string;
}

const GUIDES = ['README.md', ':(glob)docs/*.md', 'docs/operations/*.md', ':(glob)packages/*/README.md'];
/** Pages for developers of the code. */
const OTHERS = ['architecture', 'benchmarks', 'data-model', 'guarantees', 'style', 'tour'].map(
  (page) => `docs/${page}.md`,
);

/** The blocks of all guides, in the order of the pages. */
export function fences(): Fence[] {
  const files = execFileSync('git', ['ls-files', ...GUIDES], { cwd: repositoryRoot, encoding: 'utf8' });
  return files
    .split('\n')
    .filter((page) => page !== '' && !OTHERS.includes(page) && existsSync(join(repositoryRoot, page)))
    .flatMap(fencesOf);
}

function fencesOf(page: string): Fence[] {
  const text = readFileSync(join(repositoryRoot, page), 'utf8');
  return [...text.matchAll(/^( *)```(\S*)(?: +([^\n]*))?\n([^]*?)^\1```$/gm)].map((match) => {
    const [, indent = '', language = '', info = '', code = ''] = match;
    return {
      page,
      line: text.slice(0, match.index).split('\n').length,
      language,
      reason: /^no-run ?(.*)$/.exec(info)?.[1],
      code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    };
  });
}

export interface Ran {
  code: number | string;
  output: string;
}

/**
 * Runs blocks of commands in one shell, as a reader who pastes one after the other: `between` is awaited before each.
 * Background processes of a block end with the shell.
 */
export async function runCommands(
  blocks: string[],
  { env, folder, between }: { env: Record<string, string>; folder: string; between: () => Promise<unknown> },
): Promise<Ran> {
  const script = blocks.map((block) => `echo @@next >&3; read -r _ <&4\n${block}`).join('\n');
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const stop = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // Nothing of it runs any more.
    }
    return Promise.resolve();
  };
  stopAtEnd(stop);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream!.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const [, , , asks, answers] = child.stdio as unknown as [0, 0, 0, NodeJS.ReadableStream, NodeJS.WritableStream];
  createInterface(asks).on('line', () => void between().then(() => answers.write('\n'), stop));
  const code = await new Promise<number | string>((resolve) => {
    child.once('exit', (status, signal) => resolve(status ?? signal ?? 'unknown'));
  });
  await stop();
  return { code, output };
}

/** Runs a module that the blocks of a page make when they are pasted into one file, beside the packages of the API. */
export function startModule(code: string, env: Record<string, string>) {
  const cache = join(repositoryRoot, 'apps/api/node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'snippets-'));
  writeFileSync(join(folder, 'snippets.mjs'), code);
  const child = spawn(process.execPath, [join(folder, 'snippets.mjs')], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const ended = new Promise<Ran>((resolve) => {
    child.once('close', (status, signal) => {
      rmSync(folder, { recursive: true, force: true });
      resolve({ code: status ?? signal ?? 'unknown', output });
    });
  });
  stopAtEnd(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, ended, output: () => output };
}
