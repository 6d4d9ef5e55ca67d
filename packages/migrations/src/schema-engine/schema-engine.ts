import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type * as Engine from '@prisma/schema-engine-wasm/schema_engine_bg';
import type { SchemaEngine } from '@prisma/schema-engine-wasm/schema_engine_bg';
import type { ConnectionFields } from '../database/connection.js';
import { engineAdapters } from './engine-adapter.js';
import type { ScriptOptions } from '../scripts/run-script.js';
import type { PrismaFiles } from '../migrations/migration-files.js';
import { migrationError } from './migration-error.js';

export type { SchemaEngine } from '@prisma/schema-engine-wasm/schema_engine_bg';

type EngineModule = typeof Engine;

/** Functions of wasm-bindgen's generated module that its types do not declare. */
interface EngineInternals {
  __wbg_set_wasm(exports: Record<string, unknown>): void;
}

/** The part of WebAssembly that this file uses; TypeScript declares it for browsers only. */
declare const WebAssembly: {
  instantiate(
    binary: Uint8Array,
    imports: Record<string, Record<string, unknown>>,
  ): Promise<{ instance: { exports: Record<string, unknown> } }>;
};

let loaded: Promise<EngineModule> | undefined;
let idle: Promise<unknown> = Promise.resolve();

/**
 * Runs Prisma's schema engine (WebAssembly) on one database. Its module has one memory per process, so callers run one
 * after another.
 * @throws MigrationError
 */
export function withSchemaEngine<T>(
  fields: ConnectionFields,
  files: PrismaFiles,
  options: ScriptOptions,
  work: (engine: SchemaEngine) => Promise<T>,
): Promise<T> {
  const turn = idle.then(() => runEngine(fields, files, options, work));
  idle = turn.catch(() => undefined);
  return turn;
}

async function runEngine<T>(
  fields: ConnectionFields,
  files: PrismaFiles,
  options: ScriptOptions,
  work: (engine: SchemaEngine) => Promise<T>,
): Promise<T> {
  loaded ??= loadEngine();
  const { SchemaEngine } = await loaded;
  const adapters = engineAdapters(fields, { ...options, migrations: files.migrations });
  const bound = bindMigrationAwareSqlAdapterFactory(adapters);
  try {
    const datamodels: [string, string][] = [[files.schemaPath, files.schema]];
    // The log callback is empty, because the engine's log only repeats the errors that it throws.
    const engine = await SchemaEngine.new({ datamodels }, () => undefined, bound);
    try {
      return await work(engine);
    } finally {
      engine.free();
    }
  } catch (error) {
    throw migrationError(error, bound.errorRegistry);
  } finally {
    await adapters.close();
  }
}

/** The package's entry imports its .wasm file in a way that only bundlers support, so Node loads the parts by hand. */
async function loadEngine(): Promise<EngineModule> {
  const module = (await import('@prisma/schema-engine-wasm/schema_engine_bg')) as EngineModule & EngineInternals;
  const directory = dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg'));
  const binary = await readFile(join(directory, 'schema_engine_bg.wasm'));
  // The engine calls it when it panics, right before the trap that its caller sees. Without it, the call would be a
  // TypeError.
  (globalThis as { PRISMA_WASM_PANIC_REGISTRY?: unknown }).PRISMA_WASM_PANIC_REGISTRY ??= {
    set_message: (message: string) => process.stderr.write(`schema engine: ${message}\n`),
  };
  const { instance } = await WebAssembly.instantiate(binary, {
    './schema_engine_bg.js': withoutLingeringTimers(module),
  });
  module.__wbg_set_wasm(instance.exports);
  (instance.exports['__wbindgen_start'] as () => void)();
  return module;
}

/**
 * The module's functions, with timers that do not keep the process alive: the engine never clears the 10 s timer that
 * limits its wait for the advisory lock.
 */
function withoutLingeringTimers(module: object): Record<string, unknown> {
  const imports = Object.entries(module as Record<string, unknown>).map(([name, value]) => {
    if (!name.startsWith('__wbg_setTimeout_')) return [name, value] as const;
    return [name, (callback: () => void, ms: number) => setTimeout(callback, ms >>> 0).unref()] as const;
  });
  return Object.fromEntries(imports);
}
