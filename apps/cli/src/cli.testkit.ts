import { systemClock } from '@callplane/runtime';
import { expect } from '@jest/globals';
import type { Cli } from './cli.js';
import { run } from './program.js';

export interface Outcome {
  code: number | null;
  stdout: string;
  /** Ends with a line break, as of a process. */
  stderr: string;
}

/** Runs a command in this process, because a hundred processes would take minutes. An empty variable counts as unset. */
export async function runCommand(
  environment: NodeJS.ProcessEnv,
  commandLine: readonly string[],
  more: Partial<Cli> = {},
): Promise<Outcome> {
  let stdout = '';
  const write = (text: string) => void (stdout += text);
  const failure = await run({ environment, clock: systemClock, write, ...more }, commandLine);
  return { code: failure?.exitCode ?? 0, stdout, stderr: failure === null ? '' : `${failure.line}\n` };
}

/** The one JSON object that a command has printed. */
export function parse({ code, stdout, stderr }: Outcome): any {
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^\{.*\}\n$/);
  return JSON.parse(stdout);
}

/** Runs commands with this environment, which is read at each command. */
export function commandsWith(environment: () => Record<string, string>) {
  const rtcWith = (env: Record<string, string>, ...commandLine: string[]) =>
    runCommand({ ...environment(), ...env }, commandLine);
  const rtc = (...commandLine: string[]) => rtcWith({}, ...commandLine);
  return {
    rtc,
    rtcWith,
    /** Runs a command with `--json`, and parses its output. */
    json: async (...commandLine: string[]): Promise<any> => parse(await rtc(...commandLine, '--json')),
    /** A command that fails with one line on standard error, which says this. */
    expectFailure: async (
      code: 1 | 2,
      commandLine: readonly string[],
      hint: string,
      env: Record<string, string> = {},
    ): Promise<void> => {
      const outcome = await rtcWith(env, ...commandLine);
      expect(outcome).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(/^[^\n]+\n$/) });
      expect(outcome.stderr).toContain(hint);
    },
  };
}
