import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { readJson, root } from '../bootstrap.js';

/** An installed package of the tree. */
export interface Package {
  name: string;
  version: string;
  licence: string | null;
  /** The scripts that its installation would run. */
  scripts: string[];
  /** Whether an app's image contains it. */
  shipped: boolean;
}

/**
 * Folders of apps/ whose production tree becomes an image (infra/Dockerfile), and the console, whose bundle is in the
 * image of the API.
 */
const IMAGES = ['api', 'signaling', 'cleanup-worker', 'webhook-worker', 'cli', 'console'];
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall'];

/** Licences that packages state only in their LICENSE file, as a person read them. */
const READ_BY_HAND: Record<string, string> = { 'seq-queue@0.0.5': 'MIT' };

/** Versions by name. */
type Versions = Record<string, string>;
type Resolved = Record<string, { version: string }>;

/** The part of pnpm's lockfile that the check reads. */
export interface Lock {
  importers: Record<string, { dependencies?: Resolved; optionalDependencies?: Resolved }>;
  snapshots: Record<string, { dependencies?: Versions; optionalDependencies?: Versions }>;
  packages: Record<string, { resolution?: { integrity?: string } }>;
}

interface Workspace {
  catalogue: string[];
  /** Packages whose install scripts run, and those whose install scripts are skipped. */
  built: string[];
  ignored: string[];
  lock: Lock;
}

/** The part of a package.json that the check reads. */
interface Manifest {
  name?: string;
  version?: string;
  license?: string | { type?: string };
  licenses?: { type: string }[];
  scripts?: Record<string, string>;
}

/** The settings and the lockfile of pnpm. */
export function readWorkspace(): Workspace {
  const settings = parse(readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8')) as {
    catalog: Record<string, string>;
    allowBuilds: Record<string, boolean>;
  };
  const listed = Object.entries(settings.allowBuilds);
  return {
    catalogue: Object.keys(settings.catalog),
    built: listed.filter(([, isBuilt]) => isBuilt).map(([name]) => name),
    ignored: listed.filter(([, isBuilt]) => !isBuilt).map(([name]) => name),
    lock: parse(readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8')) as Lock,
  };
}

/**
 * Every package below node_modules/.pnpm that the lockfile names. `elsewhere` counts the other packages of the
 * lockfile, which are for other platforms.
 */
export function readTree(lock: Lock): { packages: Package[]; elsewhere: number } {
  const shipped = shippedPackages(lock);
  const locked = new Set(Object.keys(lock.packages));
  const found = new Map<string, Package>();
  const store = join(root, 'node_modules', '.pnpm');
  for (const place of readdirSync(store)) {
    if (place === 'node_modules') continue;
    for (const folder of realFolders(join(store, place, 'node_modules'))) {
      const manifest = (readJson(join(folder, 'package.json')) ?? {}) as Manifest;
      const { name = '', version = '' } = manifest;
      const id = `${name}@${version}`;
      // An older install may have left behind packages that the lockfile no longer names.
      if (!locked.has(id) || found.has(id)) continue;
      const { licence, scripts } = factsOf(folder, manifest);
      found.set(id, { name, version, licence: licence ?? READ_BY_HAND[id] ?? null, scripts, shipped: shipped.has(id) });
    }
  }
  const packages = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { packages, elsewhere: locked.size - packages.length };
}

function factsOf(folder: string, { license, licenses, scripts = {} }: Manifest): Pick<Package, 'licence' | 'scripts'> {
  const said =
    typeof license === 'string' ? license : (license?.type ?? licenses?.map(({ type }) => type).join(' OR '));
  const named = INSTALL_SCRIPTS.filter((script) => scripts[script] !== undefined);
  // npm and pnpm compile any package that has this file and no install script.
  const compiled = named.length === 0 && existsSync(join(folder, 'binding.gyp')) ? ['node-gyp'] : [];
  return { licence: said === undefined || said === '' ? null : said, scripts: [...named, ...compiled] };
}

/** Folders of packages that are stored here; links to packages stored elsewhere are skipped. */
function realFolders(modules: string): string[] {
  if (!existsSync(modules)) return [];
  return readdirSync(modules, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory() || entry.name.startsWith('.')) return [];
    const folder = join(modules, entry.name);
    return entry.name.startsWith('@') ? realFolders(folder) : [folder];
  });
}

/** The `name@version` of every package in the images' production trees. */
function shippedPackages(lock: Lock) {
  const seen = new Set();
  const shipped = new Set();
  const visitImporter = (importer: string) => {
    if (seen.has(importer)) return;
    seen.add(importer);
    const { dependencies = {}, optionalDependencies = {} } = lock.importers[importer] ?? {};
    for (const [name, { version }] of Object.entries({ ...dependencies, ...optionalDependencies })) {
      if (version.startsWith('link:')) visitImporter(join(importer, version.slice('link:'.length)));
      else visit(name, version);
    }
  };
  /** @param version the version, followed by its resolved peers in brackets */
  const visit = (name: string, version: string) => {
    // For an alias, the lockfile holds the name and version of the actual package here.
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
