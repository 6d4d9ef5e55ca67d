import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { createTestDatabase, repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';

/** What `npm start` builds in a bare clone. Other tests run after the whole build, which contains more files. */

const SLOW_MS = 300_000;
const run = promisify(execFile);
let clone: string;

/** Copies the sources, and the links to the installed dependencies. No compiled file is copied. */
function cloneWithDependencies(): string {
  const to = join(temporaryDirectory('start-build'), 'clone');
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const listed = execFileSync('git', list, { cwd: repositoryRoot, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  const folders = new Set<string>(['.']);
  for (const file of listed.split('\0').filter((name) => /^(?:apps|packages|prisma|scripts)\/|^[^/]+$/.test(name))) {
    if (!existsSync(join(repositoryRoot, file))) continue;
    cpSync(join(repositoryRoot, file), join(to, file));
    if (file.endsWith('/package.json')) folders.add(dirname(file));
  }
  for (const folder of folders)
    copyLinks(join(repositoryRoot, folder, 'node_modules'), join(to, folder, 'node_modules'));
  return to;
}

function copyLinks(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    // Marks of the builds of this repository, which would be those of the clone as well.
    if (name.startsWith('.callplane')) continue;
    if (name === '.pnpm') symlinkSync(join(from, name), join(to, name));
    else cpSync(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
  }
}

beforeAll(async () => {
  clone = cloneWithDependencies();
  const build = join(clone, 'scripts/lib/build.mjs');
  const code = `import { ensureBuilt, START_BUILD } from '${build}'; await ensureBuilt(START_BUILD, (_, make) => make());`;
  await run(process.execPath, ['--input-type=module', '--eval', code]);
}, SLOW_MS);

test('the build of npm start is enough to migrate a database', async () => {
  const { url } = await createTestDatabase();
  const env = { PATH: process.env['PATH'], DATABASE_URL: url };
  const { stdout } = await run(process.execPath, [join(clone, 'apps/cli/dist/bundle/main.js'), 'db', 'migrate'], {
    env,
  });
  expect(stdout).toMatch(/migrat/i);
});

test('the build of npm start is enough to load what the local start runs', async () => {
  const main = join(clone, 'packages/dev/dist/start/main.js');
  const { stdout } = await run(process.execPath, [
    '--input-type=module',
    '--eval',
    `console.log(typeof (await import('${main}')).main)`,
  ]);
  expect(stdout).toBe('function\n');
});
