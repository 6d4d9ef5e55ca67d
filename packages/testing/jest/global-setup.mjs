import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
// Jest does not transform an ES module here, so this imports the built package: `npm test` builds first.
import { startSharedPostgres } from '../dist/shared-postgres.js';

export default async function globalSetup() {
  const hasBundles = process.env.CALLPLANE_TEST_BUNDLES === 'true';
  [globalThis.stopSharedPostgres] = await Promise.all([startSharedPostgres(), hasBundles && bundleApps()]);
}

function bundleApps() {
  return promisify(execFile)(process.execPath, [join(import.meta.dirname, 'bundle-apps.mjs')]);
}
