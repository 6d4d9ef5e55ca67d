import { spawnSync } from 'node:child_process';
import { root, toolsEnvironment } from '../bootstrap.js';

export interface Advisory {
  package: string;
  severity: string;
  title: string;
  url: string;
}

/** An advisory in the answer of the registry. */
interface Listed {
  module_name: string;
  severity: string;
  title: string;
  url: string;
}

export type RegistryAnswer = { advisories: Advisory[] } | { unanswered: string };

/**
 * Asks the registry for known advisories.
 * @returns `unanswered`: why the advisories are unknown
 */
export function askForAdvisories(): RegistryAnswer {
  const { stdout, stderr, error } = spawnSync('pnpm', ['audit', '--json'], {
    cwd: root,
    env: toolsEnvironment(),
    encoding: 'utf8',
    timeout: 60_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error) return { unanswered: error.message };
  return readAnswer(stdout, stderr);
}

export function readAnswer(stdout: string, stderr = ''): RegistryAnswer {
  let answer: { error?: { message?: string; code?: string }; advisories?: Record<string, Listed> | null } | null;
  try {
    answer = JSON.parse(stdout) as typeof answer;
  } catch {
    return { unanswered: stderr.trim() || 'the response is not JSON' };
  }
  if (answer?.error) return { unanswered: String(answer.error.message ?? answer.error.code) };
  // An answer of another shape must not pass for "there are none".
  if (typeof answer?.advisories !== 'object' || answer.advisories === null) {
    return { unanswered: 'the response contains no list of advisories' };
  }
  return {
    advisories: Object.values(answer.advisories).map((each) => ({
      package: each.module_name,
      severity: each.severity,
      title: each.title,
      url: each.url,
    })),
  };
}
