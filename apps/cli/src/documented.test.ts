import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@callplane/runtime';
import { repositoryRoot } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { run } from './program.js';

/** Compares the documents with the output of `--help`. */

const GENERAL = ['--json', '--help'];

async function helpOf(...path: string[]): Promise<string> {
  let text = '';
  const write = (more: string) => void (text += more);
  await run({ environment: {}, clock: systemClock, write }, [...path, '--help']);
  return text;
}

/** The names of the sub-commands in a help text. */
function subCommands(help: string): string[] {
  const [, list = ''] = /\nCommands:\n([^]*?)(\n\n|$)/.exec(help) ?? [];
  return [...list.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name!).filter((name) => name !== 'help');
}

async function commandsBelow(path: string[]): Promise<string[][]> {
  const below = subCommands(await helpOf(...path));
  if (below.length === 0) return [path];
  return (await Promise.all(below.map((name) => commandsBelow([...path, name])))).flat();
}

test('docs/cli.md documents every command and its options, and each has an example', async () => {
  const rows = readFileSync(join(repositoryRoot, 'docs', 'cli.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  const commands = await commandsBelow([]);
  expect(commands.length).toBeGreaterThan(25);
  const missing: string[] = [];
  for (const path of commands) {
    const name = path.join(' ');
    const row = rows.filter((line) => new RegExp(`\`${name}[ \`]`).test(line)).join('\n');
    if (row === '') missing.push(name);
    const help = await helpOf(...path);
    if (!new RegExp(`\nExample:\n  \\$ .*rtc ${name}`).test(help)) missing.push(`${name}: example`);
    const [, options = ''] = /\nOptions:\n([^]*?)(\n\n|$)/.exec(help) ?? [];
    for (const [option] of options.matchAll(/(?<=^ {2}(-\w, )?)--[a-z-]+/gm)) {
      if (!GENERAL.includes(option) && !row.includes(option)) missing.push(`${name} ${option}`);
    }
    if (!options.includes('--json')) missing.push(`${name} --json`);
  }
  expect(missing).toEqual([]);
});

/** The command lines of `rtc` in a page: in code spans, and in blocks of commands. */
function commandLinesOf(page: string): string[] {
  const spans = [...page.matchAll(/`(?:\.\/)?rtc ([a-z][^`\n]*)`/g)];
  const blocks = [...page.matchAll(/^ *```(?:sh|console)\b.*\n([^]*?)^ *```$/gm)].map(([, code]) => code!).join('\n');
  const lines = [...blocks.matchAll(/(?:\brtc|--rm cli|main\.js) ([a-z][^`\n|]*)$/gm)];
  return [...spans, ...lines].map(([, line]) => line!.replace(/ +#.*|[).,]+$/, ''));
}

test('every command of rtc that a guide names exists, with its options', async () => {
  const listed = execFileSync('git', ['ls-files', 'docs/*.md', ':(exclude)docs/decisions'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  });
  const guides = listed.split('\n').filter((file) => file !== '');
  const wrong: string[] = [];
  let seen = 0;
  for (const guide of ['README.md', ...guides]) {
    for (const line of commandLinesOf(readFileSync(join(repositoryRoot, guide), 'utf8'))) {
      const words = line.split(' ');
      const path: string[] = [];
      let help = await helpOf();
      while (subCommands(help).includes(words[path.length]!)) {
        path.push(words[path.length]!);
        help = await helpOf(...path);
      }
      const options = [...line.matchAll(/(?<= |^)--[a-z][a-z-]*/g)].map(([option]) => option);
      if (subCommands(help).length > 0 && /^[a-z]/.test(words[path.length] ?? '')) wrong.push(`${guide}: rtc ${line}`);
      wrong.push(
        ...options.filter((option) => !help.includes(option)).map((option) => `${guide}: rtc ${line}: ${option}`),
      );
      seen += 1;
    }
  }
  expect(wrong).toEqual([]);
  expect(seen).toBeGreaterThan(80);
});
