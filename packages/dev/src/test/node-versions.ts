import { join } from 'node:path';
import { readJson, root, run, type Step } from '../bootstrap.js';

/** Node's current long-term release, which the README recommends and the images run. */
const RECOMMENDED = '24.21.0';

/**
 * The programs of Node that a test run uses: this one, and with `full` also the recommended release if this one is
 * older. npm's package of Node contains the same binary as nodejs.org.
 */
export async function nodePrograms(full: boolean, step: Step): Promise<string[]> {
  const [major = 0] = process.versions.node.split('.').map(Number);
  if (!full || major >= Number.parseInt(RECOMMENDED)) return [process.execPath];
  const folder = join(root, '.tools', 'node');
  const program = join(folder, 'node_modules', 'node', 'bin', 'node');
  const installed = readJson(join(folder, 'node_modules', 'node', 'package.json')) as { version: string } | undefined;
  if (installed?.version !== RECOMMENDED) {
    const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', `node@${RECOMMENDED}`];
    const failure = `Node ${RECOMMENDED} cannot be installed from the npm registry`;
    await step(`Installing Node ${RECOMMENDED}`, () => run('npm', args, { failure }));
  }
  return [process.execPath, program];
}
