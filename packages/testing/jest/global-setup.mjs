// Jest does not transform an ES module here, so this imports the built package: `npm test` builds first.
import { startSharedPostgres } from '../dist/shared-postgres.js';

export default async function globalSetup() {
  globalThis.stopSharedPostgres = await startSharedPostgres();
}
