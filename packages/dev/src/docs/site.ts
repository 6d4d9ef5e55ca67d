import { join } from 'node:path';
import { root, run, toolsEnvironment } from '../bootstrap.js';

/** Builds the site if a page has changed. It takes its time, so it leaves the processor to everything else. */
export async function buildSite(signal: AbortSignal, options: string[] = []): Promise<void> {
  const turbo = join(root, 'node_modules', 'turbo', 'bin', 'turbo');
  const args = [turbo, 'run', 'site', '--filter=@callplane/docs', '--ui=stream', '--', ...options];
  const failure = 'The site of the documents cannot be built';
  await run('nice', ['-n', '19', process.execPath, ...args], { env: toolsEnvironment(), signal, failure });
}
