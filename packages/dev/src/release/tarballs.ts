import { join } from 'node:path';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { build } from 'vite';
import { root, run, toolsEnvironment } from '../bootstrap.js';

/** `isEsmOnly`: without a CommonJS form. */
export const PUBLISHED: readonly { name: string; folder: string; isEsmOnly?: boolean }[] = [
  { name: '@callplane/client-js', folder: 'packages/client-js' },
  { name: '@callplane/react', folder: 'packages/react', isEsmOnly: true },
  // Before the server SDK, which contains it.
  { name: '@callplane/webhook-verifier', folder: 'packages/webhook-verifier' },
  { name: '@callplane/server', folder: 'packages/server-js' },
];

/** The browser SDK in one file, in `dist`. */
export const PAGE_FILE = 'callplane.min.js';
export const PAGE_WORKER_FILE = 'callplane-worker.min.js';

/**
 * Compiles the packages and packs them as pnpm would publish them: with `publishConfig` applied, versions in place of `workspace:`
 * and the licence of the repository.
 */
export async function packTarballs(target: string): Promise<void> {
  const pnpm = join(root, '.tools', 'node_modules', '.bin', 'pnpm');
  for (const { name, folder, isEsmOnly = false } of PUBLISHED) {
    await refreshBuild(folder, isEsmOnly);
    await run(pnpm, ['pack', '--pack-destination', target], {
      cwd: join(root, folder),
      env: toolsEnvironment(),
      failure: `${name} cannot be packed`,
    });
  }
}

const STYLES = ['styles.css', 'styles.css.d.ts'];
const COMPILER = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');

/**
 * Makes the `dist` of a package that others install equal to a build into an empty folder. A compiler deletes nothing:
 * without this, files of removed sources and edited files would be packed. Other processes may use `dist` meanwhile, so
 * only files that differ change.
 * @param folder such as `packages/server-js`
 */
async function refreshBuild(folder: string, isEsmOnly: boolean): Promise<void> {
  // Beside `dist`, because source maps contain the relative path to `src`.
  const fresh = join(root, folder, 'dist.fresh');
  rmSync(fresh, { recursive: true, force: true });
  try {
    const failure = `${folder} cannot be compiled`;
    const compile = (project: string, out: string) =>
      run(process.execPath, [COMPILER, '-p', join(root, folder, project), '--outDir', out], { failure });
    await compile('tsconfig.build.json', fresh);
    // The rest as the build script of the package writes it.
    if (!isEsmOnly) {
      await compile('tsconfig.cjs.json', join(fresh, 'cjs'));
      writeFileSync(join(fresh, 'cjs', 'package.json'), '{ "type": "commonjs" }\n');
    }
    for (const file of STYLES) {
      const source = join(root, folder, 'src', file);
      if (existsSync(source)) cpSync(source, join(fresh, file));
    }
    if (folder === 'packages/server-js') bundleVerifier(fresh);
    if (folder === 'packages/client-js') {
      cpSync(join(root, folder, 'open-worker.cjs'), join(fresh, 'cjs', 'open-worker.js'));
      await bundlePage(fresh);
    }
    mirror(fresh, join(root, folder, 'dist'));
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

const VERIFIER = '@callplane/webhook-verifier';

/** Puts the verifier into the server SDK: a dependency would install the package of a stranger who owns its scope at npm. */
function bundleVerifier(server: string): void {
  const verifier = join(root, 'packages/webhook-verifier/dist');
  for (const form of ['', 'cjs']) {
    for (const file of readdirSync(join(verifier, form)).filter((name) => /\.(?:js|d\.ts)(?:\.map)?$/.test(name))) {
      cpSync(join(verifier, form, file), join(server, form, 'webhook-verifier', file));
    }
    for (const file of ['index.js', 'index.d.ts']) {
      const path = join(server, form, file);
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll(VERIFIER, './webhook-verifier/index.js'));
    }
  }
}

/** One minified file of the browser SDK for pages without a bundler, and the worker for encryption beside it. */
async function bundlePage(client: string): Promise<void> {
  await build({
    configFile: false,
    logLevel: 'error',
    // The page finds the worker beside the file.
    base: './',
    worker: { format: 'es', rolldownOptions: { output: { entryFileNames: PAGE_WORKER_FILE } } },
    build: {
      outDir: client,
      emptyOutDir: false,
      target: 'es2022',
      rolldownOptions: {
        input: join(client, 'index.js'),
        // A page imports what it exports.
        preserveEntrySignatures: 'strict',
        output: { entryFileNames: PAGE_FILE, codeSplitting: false },
      },
    },
  });
}

function mirror(source: string, target: string): void {
  const wanted = new Set(filesIn(source));
  for (const file of filesIn(target)) if (!wanted.has(file)) rmSync(join(target, file));
  for (const file of wanted) {
    const [from, to] = [join(source, file), join(target, file)];
    if (!existsSync(to) || !readFileSync(from).equals(readFileSync(to))) cpSync(from, to);
  }
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return entries.filter((entry) => !statSync(join(folder, entry)).isDirectory());
}
