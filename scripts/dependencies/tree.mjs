import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { readJson, root } from '../lib/files.mjs';

/**
 * A package of the tree as it was installed.
 * @typedef {{ name: string, version: string, licence: string | null, scripts: string[], shipped: boolean }} Package
 * `shipped`: some app's image holds it. `scripts`: what would run when it is installed.
 */

/** Folders of apps/ whose production tree becomes an image (infra/Dockerfile). */
const IMAGES = ['api', 'signaling', 'cleanup-worker', 'webhook-worker', 'cli'];
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall'];

/** What packages say in their LICENSE file alone, as read by a person. @type {Record<string, string>} */
const READ_BY_HAND = { 'seq-queue@0.0.5': 'MIT' };

/** @typedef {Record<string, string>} Versions by name */
/** @typedef {Record<string, { version: string }>} Resolved by name */

/**
 * What pnpm was told, and what it locked.
 * @returns {{ catalogue: string[], built: string[], ignored: string[], lock: { importers: Record<string, { dependencies?: Resolved, optionalDependencies?: Resolved }>, snapshots: Record<string, { dependencies?: Versions, optionalDependencies?: Versions }>, packages: Record<string, unknown> } }}
 */
export function readWorkspace() {
  const workspace = parse(readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8'));
  return {
    catalogue: Object.keys(workspace.catalog),
    built: workspace.onlyBuiltDependencies ?? [],
    ignored: workspace.ignoredBuiltDependencies ?? [],
    lock: parse(readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8')),
  };
}

/**
 * Every package below node_modules/.pnpm that the lockfile names, and how many it names beside them: those are for other
 * platforms.
 * @param {ReturnType<typeof readWorkspace>['lock']} lock
 * @returns {{ packages: Package[], elsewhere: number }}
 */
export function readTree(lock) {
  const shipped = shippedPackages(lock);
  const locked = new Set(Object.keys(lock.packages));
  /** @type {Map<string, Package>} */
  const found = new Map();
  const store = join(root, 'node_modules', '.pnpm');
  for (const place of readdirSync(store)) {
    if (place === 'node_modules') continue;
    for (const folder of realFolders(join(store, place, 'node_modules'))) {
      const manifest = readJson(join(folder, 'package.json'));
      const id = `${manifest?.name}@${manifest?.version}`;
      // An older install may have left packages behind that nothing refers to any more.
      if (!locked.has(id) || found.has(id)) continue;
      const { name, version } = manifest;
      const { licence, scripts } = factsOf(folder, manifest);
      found.set(id, { name, version, licence: licence ?? READ_BY_HAND[id] ?? null, scripts, shipped: shipped.has(id) });
    }
  }
  const packages = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { packages, elsewhere: locked.size - packages.length };
}

/**
 * @param {string} folder
 * @param {{ license?: string | { type?: string }, licenses?: { type: string }[], scripts?: Record<string, string> }} manifest
 */
function factsOf(folder, { license, licenses, scripts = {} }) {
  const said =
    typeof license === 'string' ? license : (license?.type ?? licenses?.map(({ type }) => type).join(' OR '));
  const named = INSTALL_SCRIPTS.filter((script) => scripts[script] !== undefined);
  // npm and pnpm compile whatever has this file and no script of its own.
  const compiled = named.length === 0 && existsSync(join(folder, 'binding.gyp')) ? ['node-gyp'] : [];
  return { licence: said === undefined || said === '' ? null : said, scripts: [...named, ...compiled] };
}

/**
 * Folders of packages that live here; links lead to those that live elsewhere.
 * @param {string} modules
 * @returns {string[]}
 */
function realFolders(modules) {
  if (!existsSync(modules)) return [];
  return readdirSync(modules, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory() || entry.name.startsWith('.')) return [];
    const folder = join(modules, entry.name);
    return entry.name.startsWith('@') ? realFolders(folder) : [folder];
  });
}

/**
 * `name@version` of everything that the images' production trees hold.
 * @param {ReturnType<typeof readWorkspace>['lock']} lock
 */
function shippedPackages(lock) {
  const seen = new Set();
  const shipped = new Set();
  /** @param {string} importer */
  const visitImporter = (importer) => {
    if (seen.has(importer)) return;
    seen.add(importer);
    const { dependencies = {}, optionalDependencies = {} } = lock.importers[importer] ?? {};
    for (const [name, { version }] of Object.entries({ ...dependencies, ...optionalDependencies })) {
      if (version.startsWith('link:')) visitImporter(join(importer, version.slice('link:'.length)));
      else visit(name, version);
    }
  };
  /** @param {string} name @param {string} version with the peers it was resolved with in brackets */
  const visit = (name, version) => {
    // An alias stands there with the name of what it stands for.
    const key = lock.snapshots[version] === undefined ? `${name}@${version}` : version;
    if (seen.has(key)) return;
    seen.add(key);
    shipped.add(key.replace(/\(.*$/, ''));
    const { dependencies = {}, optionalDependencies = {} } = lock.snapshots[key] ?? {};
    for (const [next, at] of Object.entries({ ...dependencies, ...optionalDependencies })) visit(next, at);
  };
  for (const app of IMAGES) visitImporter(`apps/${app}`);
  return shipped;
}
