import { ensureBuilt, START_BUILD } from '../../../scripts/lib/build.mjs';
// Jest does not transform an ES module here, so this imports the built package: `npm test` builds first.
import { startSharedPostgres } from '../dist/shared-postgres.js';

export default async function globalSetup() {
  const hasBundles = process.env.CALLPLANE_TEST_BUNDLES === 'true';
  const silently = (_title, work) => work();
  [globalThis.stopSharedPostgres] = await Promise.all([
    startSharedPostgres(),
    hasBundles && ensureBuilt(START_BUILD, silently),
  ]);
}
