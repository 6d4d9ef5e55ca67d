import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { BROWSER_PROGRAM, eventually, repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { chromium, type Page } from 'playwright-core';
import { PAGE_FILE, PAGE_WORKER_FILE, PUBLISHED } from './tarballs.js';

/**
 * A rehearsal of a release, and its tarballs as a customer uses them. All projects share one folder and one
 * installation, because installing and compiling need the processor.
 */

const run = promisify(execFile);
const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as { version: string };
const fileOf = (name: string) => `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
const tarballs = PUBLISHED.map((one) => ({ isEsmOnly: false, ...one, file: fileOf(one.name) }));
const bin = (name: string) => join(repositoryRoot, 'node_modules', '.bin', name);
const REACT = '@callplane/react';
let out: string;
let project: string;

async function command(file: string, args: string[], cwd = project): Promise<string> {
  const { stdout } = await run(file, args, { cwd, maxBuffer: 64 * 1024 * 1024 }).catch((error: unknown) => {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${file} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error });
  });
  return stdout;
}

beforeAll(async () => {
  out = join(temporaryDirectory('release'), 'out');
  project = join(dirname(out), 'project');
  // Left over from a removed source and by hand. No other test uses the CommonJS form in `dist`.
  for (const { folder } of PUBLISHED) writeFileSync(join(repositoryRoot, folder, 'dist', 'stale.js'), '');
  appendFileSync(join(repositoryRoot, 'packages/server-js/dist/cjs/limits.js'), '\n// stale');
  await command(process.execPath, ['scripts/dev.mjs', 'release', '--dry-run', '--out', out], repositoryRoot);
  // An installation without a registry: the packages have no dependencies. Only React's has, and is unpacked beside them.
  const npm = ['install', '--offline', '--no-audit', '--no-fund', '--cache', join(dirname(out), 'npm-cache')];
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "name": "customer", "private": true, "type": "module" }');
  const alone = tarballs.filter(({ name }) => name !== REACT);
  await command('npm', [...npm, ...alone.map(({ file }) => join(out, file))]);
  const unpacked = join(project, 'node_modules', REACT);
  mkdirSync(unpacked);
  await command('tar', ['-xzf', join(out, fileOf(REACT)), '-C', unpacked, '--strip-components=1']);
});

describe('a release', () => {
  test('consists of the tarballs, the build context of the images, the bill of materials, notes and checksums', async () => {
    expect(readdirSync(out).sort()).toEqual(
      [
        ...tarballs.map(({ file }) => file),
        ...[`callplane-${version}-images.tar.gz`, `callplane-${version}.cdx.json`, 'NOTES.md', 'SHA256SUMS'],
      ].sort(),
    );
    expect(await command('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], out)).toBe('');
    expect(readFileSync(join(out, 'SHA256SUMS'), 'utf8').trim().split('\n')).toHaveLength(tarballs.length + 3);
    expect(readFileSync(join(out, 'NOTES.md'), 'utf8')).toMatch(/^# Callplane .*\n\nCommit [0-9a-f]{40}\.\n\n\S/);
  });

  test('has a build context with everything that the images need', async () => {
    const listed = await command('tar', ['--list', '--file', `callplane-${version}-images.tar.gz`], out);
    const files = listed.split('\n');
    expect(files).toEqual(
      expect.arrayContaining([
        ...[
          'infra/Dockerfile',
          'infra/image/build.sh',
          'infra/image/prune.sh',
          'pnpm-lock.yaml',
          'pnpm-workspace.yaml',
        ],
        ...['.pnpmfile.cjs', 'package.json', 'prisma/schema.prisma', 'apps/api/src/main.ts', 'LICENSE'],
      ]),
    );
    expect(files.filter((file) => /^(?:tests|\.ci)\/|node_modules|\/dist\//.test(file))).toEqual([]);
  });

  test('lists every package of the images with licence, hash and dependencies, as CycloneDX 1.6', () => {
    const bom: any = JSON.parse(readFileSync(join(out, `callplane-${version}.cdx.json`), 'utf8'));
    const names: string[] = bom.components.map(({ purl }: { purl: string }) => purl.split('@')[0]);
    expect(names).toEqual(
      expect.arrayContaining(['pkg:npm/express', 'pkg:npm/bullmq', 'pkg:npm/ioredis', 'pkg:npm/%40prisma/client']),
    );
    expect(names).not.toContain('pkg:npm/jest');
    for (const component of bom.components) {
      const own = component.group === '@callplane';
      const hash = component.externalReferences?.[0]?.hashes?.[0]?.alg;
      expect([component.purl, component.licenses?.length, hash]).toEqual([
        component.purl,
        1,
        own ? undefined : 'SHA-512',
      ]);
    }
    const refs = new Set(bom.components.map((component: any) => component['bom-ref']));
    const express = bom.dependencies.find(({ ref }: { ref: string }) => ref.startsWith('pkg:npm/express@'));
    expect(express.dependsOn.length).toBeGreaterThan(10);
    expect(express.dependsOn.every((ref: string) => refs.has(ref))).toBe(true);
    expect([bom.bomFormat, bom.specVersion, bom.metadata.component.version]).toEqual(['CycloneDX', '1.6', version]);
  });
});

describe.each(tarballs)('the tarball of $name', ({ folder, file, name, isEsmOnly }) => {
  test('passes publint', async () => {
    // In a process of its own: publint does not run inside Jest's module system.
    const script = `
      import { readFile } from 'node:fs/promises';
      import { publint } from 'publint';
      import { formatMessage } from 'publint/utils';
      const bytes = await readFile(${JSON.stringify(join(out, file))});
      const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
      console.log(JSON.stringify(messages.map((message) => formatMessage(message, pkg))));`;
    const printed = await command(process.execPath, ['--input-type=module', '--eval', script], repositoryRoot);
    expect(JSON.parse(printed)).toEqual([]);
  });

  test('passes Are the types wrong? for every kind of resolution', async () => {
    const printed = await command(bin('attw'), [
      join(out, file),
      '--format',
      'json',
      '--exclude-entrypoints',
      './test-vectors.json',
      './styles.css',
      // A page opens it as a worker; no module imports it.
      './encryption-worker',
      ...(isEsmOnly ? ['--profile', 'esm-only'] : []),
    ]);
    const problems: { resolutionKind: string }[] = JSON.parse(printed).analysis.problems;
    const resolvesEsm = ({ resolutionKind }: { resolutionKind: string }) => !/^node10$|cjs$/.test(resolutionKind);
    expect(isEsmOnly ? problems.filter(resolvesEsm) : problems).toEqual([]);
  });

  test('contains the licence, a manifest for the registry, and source maps with their sources', () => {
    const installed = join(project, 'node_modules', name);
    expect(readFileSync(join(installed, 'LICENSE'), 'utf8')).toContain('Apache License');
    expect(readFileSync(join(installed, 'README.md'), 'utf8')).toContain(`# ${name}`);
    const text = readFileSync(join(installed, 'package.json'), 'utf8');
    expect(text).not.toMatch(/workspace:|catalog:|"source"|publishConfig": \{[^}]*exports/);
    expect(JSON.parse(text)).toMatchObject({
      version,
      license: 'Apache-2.0',
      engines: { node: '>=20' },
      publishConfig: { provenance: true },
      repository: { type: 'git', url: expect.stringMatching(/^git\+https:/), directory: folder },
    });
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
    expect(files.filter((one) => /\.(?:test|testkit)\.|^src/.test(one))).toEqual([]);
    expect(Object.keys(JSON.parse(text).dependencies ?? {})).toEqual(name === REACT ? ['@radix-ui/react-dialog'] : []);
    const sourceOf = (one: string) =>
      one
        .replace(/^dist\/(?:cjs\/)?(.*)\.(?:js|js\.map|d\.ts|d\.ts\.map)$/, `${folder}/src/$1.ts`)
        .replace(/.*\/webhook-verifier\/(?=[\w.-]+$)/, 'packages/webhook-verifier/src/');
    const pageFiles = [PAGE_FILE, PAGE_WORKER_FILE].map((one) => `dist/${one}`);
    const made = ['dist/cjs/package.json', ...pageFiles, 'dist/styles.css', 'dist/styles.css.d.ts'];
    const compiled = files.filter((one) => /^dist\/.*\.\w+$/.test(one) && !made.includes(one));
    expect(
      compiled.filter((one) => ['', 'x'].every((end) => !existsSync(join(repositoryRoot, sourceOf(one) + end)))),
    ).toEqual([]);
    const maps = files.filter((one) => one.endsWith('.js.map'));
    expect(maps.length).toBeGreaterThan(4);
    for (const map of maps) {
      const { sources, sourcesContent } = JSON.parse(readFileSync(join(installed, map), 'utf8')) as {
        sources: string[];
        sourcesContent?: (string | null)[];
      };
      expect([map, sourcesContent?.filter((source) => typeof source === 'string').length]).toEqual([
        map,
        sources.length,
      ]);
    }
  });
});

const SERVER = `
const api = createClient({ baseUrl: 'https://calls.example.com/v1', apiKey: 'rtc_sk_1' });
const result = verifyWebhook({ headers: {}, rawBody: '{}', secrets: 'whsec_1' });
console.log(typeof api.createRoom, result.ok ? '' : result.reason, typeof reexported, typeof connect);
`;
const PRINTED = 'function missing_header function function\n';

describe('the installed tarballs', () => {
  test('contain no file and no line that only an earlier build or a hand wrote into dist', () => {
    const stale = PUBLISHED.filter(({ name }) => existsSync(join(project, 'node_modules', name, 'dist/stale.js')));
    expect(stale).toEqual([]);
    const edited = readFileSync(join(project, 'node_modules/@callplane/server/dist/cjs/limits.js'), 'utf8');
    expect(edited).toContain('CLIENT_LIMITS');
    expect(edited).not.toContain('// stale');
  });

  test('run as ES modules', async () => {
    const imports = `
      import { createClient, verifyWebhook as reexported } from '@callplane/server';
      import { verifyWebhook } from '@callplane/webhook-verifier';
      import { connect } from '@callplane/client-js';`;
    writeFileSync(join(project, 'esm.mjs'), imports + SERVER);
    expect(await command(process.execPath, ['esm.mjs'])).toBe(PRINTED);
  });

  test('run as CommonJS', async () => {
    const requires = `
      const { createClient, verifyWebhook: reexported } = require('@callplane/server');
      const { verifyWebhook } = require('@callplane/webhook-verifier');
      const { connect } = require('@callplane/client-js');`;
    writeFileSync(join(project, 'common.cjs'), requires + SERVER);
    expect(await command(process.execPath, ['common.cjs'])).toBe(PRINTED);
  });

  test.each([
    ['node16', ['--module', 'node16', '--moduleResolution', 'node16'], ['typed.mts', 'typed.cts']],
    ['bundler', ['--module', 'esnext', '--moduleResolution', 'bundler'], ['typed.ts']],
  ])('compile in strict TypeScript with the resolution %s', async (_name, options, files) => {
    for (const file of files) writeFileSync(join(project, file), TYPED);
    // A customer has the types of Node.
    const types = join(repositoryRoot, 'node_modules', '@types');
    const common = ['--ignoreConfig', '--strict', '--noEmit', '--exactOptionalPropertyTypes', '--target', 'es2022'];
    const libraries = ['--lib', 'es2022,dom,dom.iterable', '--typeRoots', types, '--types', 'node'];
    expect(await command(bin('tsc'), [...common, ...libraries, ...options, ...files])).toBe('');
  });

  test('have a server SDK that works alone', async () => {
    const alone = join(dirname(out), 'alone');
    mkdirSync(alone);
    writeFileSync(join(alone, 'package.json'), '{ "name": "alone", "private": true, "type": "module" }');
    const npm = ['install', '--offline', '--no-audit', '--no-fund', '--cache', join(dirname(out), 'npm-cache')];
    await command('npm', [...npm, join(out, fileOf('@callplane/server'))], alone);
    expect(readdirSync(join(alone, 'node_modules/@callplane'))).toEqual(['server']);
    writeFileSync(join(alone, 'esm.mjs'), "import { createClient, verifyWebhook } from '@callplane/server';" + ALONE);
    writeFileSync(
      join(alone, 'common.cjs'),
      "const { createClient, verifyWebhook } = require('@callplane/server');" + ALONE,
    );
    for (const file of ['esm.mjs', 'common.cjs']) {
      expect(await command(process.execPath, [file], alone)).toBe('function missing_header\n');
    }
  });

  test('have a browser SDK whose one file a page imports without a bundler', async () => {
    const file = join(project, 'node_modules/@callplane/client-js/dist', PAGE_FILE);
    expect(readFileSync(file, 'utf8')).not.toMatch(/^import |\bfrom\s*["']|import\(/m);
    expect(statSync(file).size).toBeLessThan(200_000);
    expect(await titleOf(dirname(file), `./${PAGE_FILE}`)).toBe('true invalid_argument unreachable');
  });

  test('are bundled by Vite, and the bundle runs', async () => {
    symlinkSync(join(repositoryRoot, 'node_modules', 'vite'), join(project, 'node_modules', 'vite'));
    writeFileSync(
      join(project, 'page.js'),
      `import { isSupported, connect } from '@callplane/client-js';
       connect({ url: 'http://wrong', token: 't' }).catch(({ code }) => console.log(isSupported(), code));
       export { isSupported, connect };`,
    );
    const build = `
      import { build } from 'vite';
      await build({ configFile: false, logLevel: 'error', build: { outDir: 'bundled', target: 'es2022', rolldownOptions: {
        input: 'page.js', preserveEntrySignatures: 'strict', output: { entryFileNames: 'page.mjs' } } } });`;
    await command(process.execPath, ['--input-type=module', '--eval', build]);
    expect(await command(process.execPath, ['bundled/page.mjs'])).toBe('false invalid_argument\n');
    expect(await titleOf(join(project, 'bundled'), './page.mjs')).toBe('true invalid_argument unreachable');
  });

  test('have components for React that Vite bundles with their styles, and Chromium shows', async () => {
    const root = join(dirname(out), 'with-react');
    const modules = join(repositoryRoot, 'packages/react/node_modules');
    mkdirSync(join(root, 'node_modules'), { recursive: true });
    for (const name of ['react', 'react-dom', '@radix-ui'])
      symlinkSync(join(modules, name), join(root, 'node_modules', name));
    for (const name of ['vite', '@callplane'])
      symlinkSync(join(project, 'node_modules', name), join(root, 'node_modules', name));
    cpSync(join(repositoryRoot, 'packages/react/examples/page.tsx'), join(root, 'page.tsx'));
    writeFileSync(join(root, 'index.html'), '<div id="place"></div><script type="module" src="./main.js"></script>');
    writeFileSync(join(root, 'main.js'), REACT_PAGE);
    // As an installation has them: a link out of the folder would find no React beside it.
    const build = `
      import { build } from 'vite';
      await build({ configFile: false, logLevel: 'error', resolve: { dedupe: ['react', 'react-dom', '@radix-ui/react-dialog'] } });`;
    await command(process.execPath, ['--input-type=module', '--eval', build], root);
    const built = readdirSync(join(root, 'dist/assets'));
    const assets = built.map((name): [string, Files[string]] => [
      `/assets/${name}`,
      [name.endsWith('css') ? 'text/css' : 'text/javascript', readFileSync(join(root, 'dist/assets', name))],
    ]);
    const pages: Files = {
      '/': ['text/html', readFileSync(join(root, 'dist/index.html'))],
      ...Object.fromEntries(assets),
    };
    await inBrowser(pages, async (page) => {
      const join = page.getByRole('button', { name: 'Join' });
      await join.waitFor();
      expect(await join.evaluate((shown) => getComputedStyle(shown).borderRadius)).toBe('10px');
    });
  });
});

type Files = Record<string, [type: string, content: string | Buffer]>;

/** Serves the files, and opens the first page. */
async function inBrowser(files: Files, look: (page: Page) => Promise<void>): Promise<void> {
  const server = createServer(({ url = '' }, response) => {
    const [type, content] = files[url] ?? ['text/plain', ''];
    response.writeHead(200, { 'content-type': type }).end(content);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const browser = await chromium.launch({ executablePath: BROWSER_PROGRAM, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await look(page);
  } finally {
    await browser.close();
    server.close();
  }
}

const REACT_PAGE = `
import '@callplane/react/styles.css';
import { createElement } from 'react';
import { createRoot } from 'react-dom/client';
import { CallPage } from './page.tsx';
createRoot(document.getElementById('place')).render(createElement(CallPage, { fetchToken: () => Promise.reject() }));
`;

const ALONE = `
const api = createClient({ baseUrl: 'https://calls.example.com/v1', apiKey: 'rtc_sk_1' });
console.log(typeof api.createRoom, verifyWebhook({ headers: {}, rawBody: '{}', secrets: 'whsec_1' }).reason);
`;

/** Without the worker, an encrypted call would not get as far as to its gateway. */
const page = (sdk: string) => `
  import { connect, isSupported } from '${sdk}';
  const codeOf = (options) => connect({ url: 'http://wrong', token: 't', ...options }).catch(({ code }) => code);
  const encryption = { key: crypto.getRandomValues(new Uint8Array(32)) };
  const unreachable = { url: 'ws://127.0.0.1:1024', token: 'e30.e30.e30', connectTimeoutMs: 1, encryption };
  document.title = [isSupported(), await codeOf({}), await codeOf(unreachable)].join(' ');`;

const POLICY = `<meta http-equiv="content-security-policy" content="script-src 'self'; worker-src 'self'">`;

/** The title that a page sets, which imports the SDK of a folder under a strict content security policy. */
async function titleOf(folder: string, sdk: string): Promise<string> {
  const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.m?js$/.test(name));
  const served = scripts.map((name): [string, Files[string]] => [
    `/${name}`,
    ['text/javascript', readFileSync(join(folder, name))],
  ]);
  const files: Files = {
    '/': ['text/html', `<!doctype html>${POLICY}<script type="module" src="/page"></script>`],
    '/page': ['text/javascript', page(sdk)],
    ...Object.fromEntries(served),
  };
  let title = '';
  await inBrowser(files, async (opened) => {
    title = await eventually(async () => (await opened.title()) || Promise.reject(new Error('the page has no title')));
  });
  return title;
}

const TYPED = `
import { createClient, isCallplaneError, type Room } from '@callplane/server';
import { verifyWebhook, type WebhookEvent } from '@callplane/webhook-verifier';
import { connect, type Call } from '@callplane/client-js';

export async function main(rawBody: Uint8Array, headers: Headers): Promise<Call> {
  const api = createClient({ baseUrl: 'https://calls.example.com/v1', apiKey: 'rtc_sk_1' });
  const room: Room = await api.createRoom({ name: 'Daily' });
  const result = verifyWebhook({ headers, rawBody, secrets: { 1: 'whsec_1' } });
  if (result.ok) receive(result.event);
  try {
    const { token } = await api.issueToken({ roomId: room.id, participantName: 'Ada' });
    return await connect({ url: 'wss://calls.example.com/v1/signaling', token });
  } catch (error) {
    if (isCallplaneError(error, 'ROOM_ENDED')) console.log(error.requestId);
    throw error;
  }
}

function receive(event: WebhookEvent): void {
  if (event.type === 'participant.left') console.log(event.data.participant.name, event.data.reason);
  // @ts-expect-error there is no such type
  if (event.type === 'participant.gone') console.log(event.id);
}
`;
