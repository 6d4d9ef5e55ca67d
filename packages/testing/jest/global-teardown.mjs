import { stopKeptServers } from './environment.mjs';

export default async function globalTeardown() {
  await stopKeptServers();
  try {
    const folder = process.env.CALLPLANE_STATEMENTS;
    if (folder !== undefined) await (await import('../dist/statements/check-statements.js')).checkStatements(folder);
  } finally {
    await globalThis.stopSharedPostgres?.();
  }
}
