import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../bootstrap.js';

const PREFIX = 'rtc-';

/**
 * The entry point of `rtc` in one file. Loading its modules one by one takes 0.9 s of processor time, the one file
 * 0.3 s (measured with Node 20). The first command after a build makes the file, which takes 2 s.
 */
export function bundledRtc(): string {
  const app = join(root, 'apps', 'cli');
  const build = readFileSync(join(root, 'node_modules', '.callplane-built'), 'utf8');
  const name = `${PREFIX}${createHash('sha256').update(build).digest('hex').slice(0, 16)}`;
  const file = join(app, 'dist', name, 'main.js');
  if (existsSync(file)) return file;
  // Renamed when it is complete, because several commands may make the file at once.
  const beside = join('dist', `${name}.${process.pid}`);
  try {
    const bundler = join(root, 'packages', 'testing', 'jest', 'bundle-apps.mjs');
    execFileSync(process.execPath, [bundler, 'cli', beside], { stdio: 'ignore' });
    for (const old of readdirSync(join(app, 'dist'))) {
      const isOld = old.startsWith(PREFIX) && !old.startsWith(name);
      if (isOld) rmSync(join(app, 'dist', old), { recursive: true, force: true });
    }
    renameSync(join(app, beside), join(app, 'dist', name));
  } catch {
    rmSync(join(app, beside), { recursive: true, force: true });
    // Another command has made the file, or the bundler fails here. The modules do the same, only slower.
    if (!existsSync(file)) return join(app, 'dist', 'main.js');
  }
  return file;
}
