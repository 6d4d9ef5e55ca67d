/**
 * Runs the bundle of an app, with the compiled code of an earlier run. About half of an app's start is V8 that compiles
 * its 2 to 8 MB of source. V8 can keep compiled functions in a file, and checks the file against its own version and
 * flags. Node 22 has `module.enableCompileCache` for this; Node 20 has only `vm.Script`.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import { Script } from 'node:vm';

/** By then an app has started, so the code of its start is compiled. */
const SAVE_AFTER_MS = 2_000;

/**
 * @param {string} base the folder that the other paths begin at
 * @param {string} file a CommonJS file, as the bundler writes it. It may require other files of the bundle by a relative
 *   path, and anything else as usual.
 * @param {string} cache a folder for the compiled code of this app and build: V8 compares only the length of the source
 */
export function runBundle(base, file, cache) {
  const folder = resolve(base, cache, cachedDataVersionTag().toString(36));
  /** @type {Map<string, { exports: unknown }>} */
  const modules = new Map();
  /** @type {Map<string, Script>} */
  const unsaved = new Map();
  const save = () => {
    for (const [path, script] of unsaved) keep(join(folder, basename(path)), script);
    unsaved.clear();
  };
  /**
   * @param {string} path
   * @param {Script} script
   */
  const saveLater = (path, script) => {
    if (unsaved.size === 0) setTimeout(save, SAVE_AFTER_MS).unref();
    unsaved.set(path, script);
  };
  // A command of `rtc` ends sooner.
  process.once('exit', save);

  /** @param {string} path */
  const load = (path) => {
    const known = modules.get(path);
    if (known !== undefined) return known.exports;
    const module = { exports: {} };
    modules.set(path, module);
    const cachedData = contentOf(join(folder, basename(path)));
    const script = new Script(
      `(function (exports, require, module, __filename, __dirname) {${readFileSync(path, 'utf8')}\n})`,
      {
        filename: path,
        ...(cachedData === undefined ? {} : { cachedData }),
      },
    );
    if (cachedData === undefined || script.cachedDataRejected === true) saveLater(path, script);
    const native = createRequire(path);
    /** @param {string} name */
    const require = (name) => (name.startsWith('.') ? load(resolve(dirname(path), name)) : native(name));
    const run = script.runInThisContext();
    run.call(
      module.exports,
      module.exports,
      Object.assign(require, { resolve: native.resolve }),
      module,
      path,
      dirname(path),
    );
    return module.exports;
  };

  load(resolve(base, file));
}

/** Length of the checksum at the beginning of a file. V8 does not compare its own, and runs damaged code. */
const SUM_BYTES = 32;

/** @param {Buffer} code */
function sumOf(code) {
  return createHash('sha256').update(code).digest();
}

/** @param {string} path */
function contentOf(path) {
  try {
    const content = readFileSync(path);
    const code = content.subarray(SUM_BYTES);
    return content.subarray(0, SUM_BYTES).equals(sumOf(code)) ? code : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Another process never reads half of a file. A failure, as in a folder that belongs to another user, costs nothing but
 * the time of the next start.
 * @param {string} path
 * @param {Script} script
 */
function keep(path, script) {
  const draft = `${path}.${process.pid}`;
  try {
    const code = script.createCachedData();
    // Who may write these files decides what the app runs: only its user, whatever the umask is.
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    writeFileSync(draft, Buffer.concat([sumOf(code), code]), { mode: 0o644 });
    renameSync(draft, path);
  } catch {
    // The next start compiles its code again.
    discard(draft);
  }
}

/** @param {string} path */
function discard(path) {
  try {
    unlinkSync(path);
  } catch {
    // Nothing was written.
  }
}
