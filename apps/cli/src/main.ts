#!/usr/bin/env node
import { systemClock } from '@callplane/runtime';
import { run } from './program.js';

// `rtc keys list | head -1` closes the pipe early; that is not a failure.
process.stdout.on('error', () => process.exit(0));

const cli = {
  environment: process.env,
  clock: systemClock,
  write: (text: string) => void process.stdout.write(text),
  note: (text: string) => void process.stderr.write(text),
};
const failure = await run(cli, process.argv.slice(2));
if (failure !== null) process.stderr.write(`${failure.line}\n`);
// Exit explicitly: a handle that a library left open must not keep the shell waiting. Writes to pipes and files are
// complete by now.
process.exit(failure?.exitCode ?? 0);
