#!/usr/bin/env node
import { systemClock } from '@callplane/runtime';
import { run } from './program.js';

// `rtc keys list | head -1` closes the pipe early.
process.stdout.on('error', () => process.exit(0));

const cli = {
  environment: process.env,
  clock: systemClock,
  write: (text: string) => void process.stdout.write(text),
};
const failure = await run(cli, process.argv.slice(2));
if (failure !== null) process.stderr.write(`${failure.line}\n`);
// Explicitly: nothing that a library left open may keep a shell waiting. Writes to pipes and files are done by now.
process.exit(failure?.exitCode ?? 0);
