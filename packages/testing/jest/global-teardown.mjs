import { stopKeptServers } from './environment.mjs';

export default async function globalTeardown() {
  await stopKeptServers();
  await globalThis.stopSharedPostgres?.();
}
