import { spawnSync } from 'node:child_process';
import { toolsEnvironment } from '../lib/dependencies.mjs';
import { root } from '../lib/files.mjs';

/** @typedef {{ package: string, severity: string, title: string, url: string }} Advisory */

/**
 * Asks the registry for known advisories.
 * @returns {{ advisories: Advisory[] } | { unanswered: string }} `unanswered`: nothing is known, and why
 */
export function askForAdvisories() {
  const { stdout, stderr, error } = spawnSync('pnpm', ['audit', '--json'], {
    ...{ cwd: root, env: toolsEnvironment(), encoding: 'utf8', timeout: 60_000, maxBuffer: 64 * 1024 * 1024 },
  });
  if (error) return { unanswered: error.message };
  return readAnswer(stdout, stderr);
}

/**
 * @param {string} stdout
 * @param {string} [stderr]
 * @returns {{ advisories: Advisory[] } | { unanswered: string }}
 */
export function readAnswer(stdout, stderr = '') {
  /** @type {any} */
  let answer;
  try {
    answer = JSON.parse(stdout);
  } catch {
    return { unanswered: stderr.trim() || 'its answer is no JSON' };
  }
  if (answer?.error) return { unanswered: String(answer.error.message ?? answer.error.code) };
  // An answer of another shape must not pass for "there are none".
  if (typeof answer?.advisories !== 'object' || answer.advisories === null) {
    return { unanswered: 'its answer holds no list of advisories' };
  }
  return {
    advisories: Object.values(answer.advisories).map((each) => ({
      package: String(each.module_name),
      severity: String(each.severity),
      title: String(each.title),
      url: String(each.url),
    })),
  };
}
