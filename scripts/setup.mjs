/**
 * Installs and builds missing parts, like `npm start` and `npm test`, and does nothing else. `.ci/run` calls it
 * before it runs the tests and the checks side by side, so that neither changes files under the other.
 */
import { bootstrap } from './lib/bootstrap.mjs';
import { explain } from './lib/failure.mjs';

try {
  await bootstrap({ say: (line) => console.log(line), signal: new AbortController().signal });
} catch (error) {
  explain(error);
  process.exitCode = 1;
}
